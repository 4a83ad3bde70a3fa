#include "processors/tail_sampling/waiting_traces.h"

#include "core/base/memory.h"
#include "processors/tail_sampling/held_spans.h"
#include "processors/tail_sampling/ready_spans.h"

#include <assert.h>

struct waiting_trace {
    struct list_link link;
    struct timer deadline;
    struct tail_node *node;
    struct trace_id id;
    struct piece *first, *last;
    uint32_t spans;
};

static struct waiting_trace *find(const struct waiting_traces *waiting, const uint8_t *id,
                                  uint32_t hash)
{
    struct trace_id *found = trace_ids_find(&waiting->ids, id, hash);
    return found ? container_of(found, struct waiting_trace, id) : NULL;
}

static void on_deadline(struct timer *timer);

static struct waiting_trace *add(struct tail_node *node, const uint8_t *id, uint32_t hash)
{
    struct waiting_traces *waiting = &node->waiting;
    struct waiting_trace *trace = memory_zalloc(sizeof *trace);
    trace->node = node;
    trace->deadline.on_timer = on_deadline;
    trace_ids_add(&waiting->ids, &trace->id, id, hash);
    list_append(&waiting->all, &trace->link);
    return trace;
}

/* Frees a trace, whose pieces were taken. */
static void end(struct waiting_trace *trace)
{
    struct waiting_traces *waiting = &trace->node->waiting;
    timer_queue_cancel(&waiting->deadlines, &trace->deadline);
    if (waiting->asked_next == &trace->link)
        waiting->asked_next = trace->link.next;
    if (trace->link.list)
        list_remove(&waiting->all, &trace->link);
    trace_ids_remove(&waiting->ids, &trace->id);
    free(trace);
}

/* ---- decisions ---- */

static void leave(struct waiting_trace *trace, enum trace_state state)
{
    struct tail_node *node = trace->node;
    struct piece *piece = trace->first;
    end(trace);
    if (state != TRACE_SAMPLED) {
        pieces_drop(piece);
        return;
    }
    while (piece) {
        struct piece *next = piece->next;
        ready_spans_add(node, piece);
        piece = next;
    }
}

/* Asks for the decision; lets the trace leave, or sets its deadline. early: enum tail_early, with
 * which it always leaves, and need not be in the list. */
static void ask(struct waiting_trace *trace, int early)
{
    struct tail_node *node = trace->node;
    struct table_user user = tail_user(node);
    struct trace_answer answer =
        trace_table_take(node->tail->table, &user, trace->id.bytes, node->waiting.holder,
                         node->node.worker->now_ns, early);
    if (answer.state != TRACE_PENDING)
        leave(trace, answer.state);
    else
        timer_queue_set(&node->waiting.deadlines, &trace->deadline, answer.deadline_ns);
}

static void on_deadline(struct timer *timer)
{
    ask(container_of(timer, struct waiting_trace, deadline), TAKE_WHEN_DUE);
}

static struct waiting_trace *take_oldest(struct tail_node *node)
{
    struct waiting_traces *waiting = &node->waiting;
    if (waiting->asked_next && waiting->asked_next == waiting->all.first)
        waiting->asked_next = waiting->asked_next->next;
    struct list_link *link = list_pop(&waiting->all);
    assert(link);
    return container_of(link, struct waiting_trace, link);
}

static uint32_t drop(struct waiting_trace *trace)
{
    struct tail_node *node = trace->node;
    struct table_user user = tail_user(node);
    uint32_t spans = trace->spans;
    trace_table_give_up(node->tail->table, &user, trace->id.bytes, node->waiting.holder,
                        node->node.worker->now_ns);
    leave(trace, TRACE_NOT_SAMPLED);
    return spans;
}

/* ---- public functions ---- */

bool waiting_traces_init(struct tail_node *node,
                         void (*on_message)(void *node, enum holder_message message,
                                            const uint8_t *id))
{
    struct holder holder = {node->node.worker, on_message, node, false};
    node->waiting.holder = trace_holders_add(trace_table_holders(node->tail->table), &holder);
    return node->waiting.holder >= 0;
}

void waiting_traces_add(struct tail_node *node, const uint8_t *id, struct piece *piece,
                        uint64_t deadline_ns)
{
    uint32_t hash = (uint32_t)trace_id_hash(id);
    struct waiting_trace *trace = find(&node->waiting, id, hash);
    if (!trace)
        trace = add(node, id, hash);
    if (trace->last)
        trace->last->next = piece;
    else
        trace->first = piece;
    trace->last = piece;
    trace->spans += piece->count;
    if (!timer_is_set(&trace->deadline) || deadline_ns < trace->deadline.deadline_ns)
        timer_queue_set(&node->waiting.deadlines, &trace->deadline, deadline_ns);
}

void waiting_traces_ask(struct tail_node *node, const uint8_t *id)
{
    struct waiting_trace *trace = find(&node->waiting, id, (uint32_t)trace_id_hash(id));
    if (trace)
        ask(trace, TAKE_WHEN_DUE);
}

void waiting_traces_ask_again(struct tail_node *node)
{
    node->waiting.asked_next = node->waiting.all.first;
}

bool waiting_traces_ask_more(struct tail_node *node, size_t most)
{
    struct waiting_traces *waiting = &node->waiting;
    for (size_t n = 0; n < most && waiting->asked_next; n++) {
        struct waiting_trace *trace = container_of(waiting->asked_next, struct waiting_trace, link);
        waiting->asked_next = trace->link.next;
        ask(trace, TAKE_WHEN_DUE);
    }
    return waiting->asked_next != NULL;
}

void waiting_traces_decide_due(struct tail_node *node, size_t most)
{
    timer_queue_run_some(&node->waiting.deadlines, node->node.worker->now_ns, most);
}

bool waiting_traces_oldest_is_read(const struct tail_node *node)
{
    const struct waiting_trace *oldest =
        container_of(node->waiting.all.first, const struct waiting_trace, link);
    for (const struct piece *piece = oldest->first; piece; piece = piece->next)
        if (piece->request->reading != tail_rules(node)->reading)
            return false;
    return true;
}

void waiting_traces_decide_oldest(struct tail_node *node, enum tail_early early)
{
    ask(take_oldest(node), (int)early);
}

uint32_t waiting_traces_drop_oldest(struct tail_node *node)
{
    return drop(take_oldest(node));
}

uint64_t waiting_traces_next_ns(const struct tail_node *node)
{
    return timer_queue_next(&node->waiting.deadlines);
}

uint64_t waiting_traces_stop(struct tail_node *node)
{
    struct waiting_traces *waiting = &node->waiting;
    uint64_t lost = 0;
    while (waiting->all.first)
        lost += waiting_traces_drop_oldest(node);
    trace_holders_remove(trace_table_holders(node->tail->table), waiting->holder);
    timer_queue_deinit(&waiting->deadlines);
    trace_ids_deinit(&waiting->ids);
    *waiting = (struct waiting_traces){0};
    return lost;
}

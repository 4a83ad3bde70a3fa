#include "processors/tail_sampling/waiting_traces.h"

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "processors/tail_sampling/held_spans.h"
#include "processors/tail_sampling/ready_spans.h"

#include <assert.h>

struct waiting_trace {
    struct list_link link;
    struct timer deadline;
    struct tail_node *node;
    uint8_t id[TRACE_ID_SIZE];
    uint32_t hash, number;
    struct piece *first, *last;
    uint32_t spans;
};

/* ---- traces by id ---- */

static struct waiting_trace *find(const struct waiting_traces *waiting, const uint8_t *id,
                                  uint32_t hash)
{
    if (!waiting->by_id.slots)
        return NULL;
    struct index_probe probe = index_table_probe(&waiting->by_id, hash);
    for (uint32_t number; index_table_next(&waiting->by_id, &probe, &number);)
        if (memcmp(waiting->items[number]->id, id, TRACE_ID_SIZE) == 0)
            return waiting->items[number];
    return NULL;
}

static uint32_t hash_of(const uint8_t *id)
{
    return (uint32_t)hash_bytes(slice_of(id, TRACE_ID_SIZE));
}

static uint32_t take_number(struct waiting_traces *waiting)
{
    if (waiting->free_count > 0)
        return waiting->free_numbers[--waiting->free_count];
    if (waiting->item_count == waiting->item_capacity) {
        waiting->item_capacity = waiting->item_capacity ? waiting->item_capacity * 2 : 64;
        waiting->items =
            memory_grow(waiting->items, waiting->item_capacity, sizeof(struct waiting_trace *));
        waiting->free_numbers = memory_grow(waiting->free_numbers, waiting->item_capacity,
                                            sizeof *waiting->free_numbers);
    }
    return waiting->item_count++;
}

static void on_deadline(struct timer *timer);

static struct waiting_trace *add(struct tail_node *node, const uint8_t *id, uint32_t hash)
{
    struct waiting_traces *waiting = &node->waiting;
    struct waiting_trace *trace = memory_zalloc(sizeof *trace);
    size_t bytes = index_table_growth(&waiting->by_id, 1);
    memcpy(trace->id, id, TRACE_ID_SIZE);
    trace->node = node;
    trace->hash = hash;
    trace->number = take_number(waiting);
    trace->deadline.on_timer = on_deadline;
    waiting->items[trace->number] = trace;
    if (bytes > 0)
        free(index_table_move(&waiting->by_id, memory_zalloc(bytes), bytes));
    index_table_add_new(&waiting->by_id, hash, trace->number);
    list_append(&waiting->all, &trace->link);
    return trace;
}

/* Frees a trace, whose pieces were taken. */
static void end(struct waiting_trace *trace)
{
    struct waiting_traces *waiting = &trace->node->waiting;
    timer_queue_cancel(&waiting->deadlines, &trace->deadline);
    if (trace->link.list)
        list_remove(&waiting->all, &trace->link);
    index_table_remove(&waiting->by_id, trace->hash, trace->number);
    waiting->items[trace->number] = NULL;
    waiting->free_numbers[waiting->free_count++] = trace->number;
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
        trace_table_take(node->tail->table, &user, trace->id, node->waiting.holder,
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
    struct list_link *link = list_pop(&node->waiting.all);
    assert(link);
    return container_of(link, struct waiting_trace, link);
}

static uint32_t drop(struct waiting_trace *trace)
{
    struct tail_node *node = trace->node;
    struct table_user user = tail_user(node);
    uint32_t spans = trace->spans;
    trace_table_give_up(node->tail->table, &user, trace->id, node->waiting.holder,
                        node->node.worker->now_ns);
    leave(trace, TRACE_NOT_SAMPLED);
    return spans;
}

/* ---- public functions ---- */

bool waiting_traces_init(struct tail_node *node, void (*on_wake)(void *node, const uint8_t *id))
{
    node->waiting.holder =
        trace_table_add_holder(node->tail->table, node->node.worker, on_wake, node);
    return node->waiting.holder >= 0;
}

void waiting_traces_add(struct tail_node *node, const uint8_t *id, struct piece *piece,
                        uint64_t deadline_ns)
{
    uint32_t hash = hash_of(id);
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
    struct waiting_trace *trace = find(&node->waiting, id, hash_of(id));
    if (trace)
        ask(trace, TAKE_WHEN_DUE);
}

void waiting_traces_decide_due(struct tail_node *node, size_t most)
{
    timer_queue_run_some(&node->waiting.deadlines, node->node.worker->now_ns, most);
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
    trace_table_remove_holder(node->tail->table, waiting->holder);
    timer_queue_deinit(&waiting->deadlines);
    free(waiting->items);
    free(waiting->free_numbers);
    free(waiting->by_id.slots);
    *waiting = (struct waiting_traces){0};
    return lost;
}

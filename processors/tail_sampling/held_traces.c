#include "processors/tail_sampling/held_traces.h"

#include "core/base/log.h"
#include "core/pipeline/outlet.h"
#include "core/pipeline/reservation.h"
#include "processors/tail_sampling/held_spans.h"
#include "processors/tail_sampling/ready_spans.h"
#include "processors/tail_sampling/reread_traces.h"
#include "processors/tail_sampling/waiting_traces.h"

#include <assert.h>

enum {
    TRACE_BYTES = 384, /* memory of a waiting trace, here and in the table */
    LEAVING_PART = 4,  /* at most a quarter of the limit leaves early at a time */
    EARLY_PART = 16,   /* so much of the limit is decided early together */
    EARLY_TRACES = 64, /* or so many traces */
    EARLY_ROUNDS = TRACES_PER_TURN / EARLY_TRACES,
};

static bool is_behind(const struct tail_node *node)
{
    return trace_holders_are_behind(trace_table_holders(node->tail->table));
}

/* Whether the next turn of the loop has something to do. */
static bool goes_on(const struct tail_node *node)
{
    bool decides = node->node.draining && node->waiting.all.count > 0 && !is_behind(node);
    bool adds = node->traces.arriving.batch && !reread_traces_has_first(node);
    return adds || node->traces.is_adapting || decides;
}

/* Sets the timer to when there is more to do: in the next turn of the loop, or at the next
 * deadline. While a node is behind, no trace is due. */
static void schedule(struct tail_node *node)
{
    struct held_traces *held = &node->traces;
    uint64_t now_ns = node->node.worker->now_ns;
    uint64_t next_ns = is_behind(node) ? UINT64_MAX : waiting_traces_next_ns(node);
    ready_spans_schedule(node);
    if (goes_on(node))
        next_ns = now_ns;
    if (next_ns == UINT64_MAX)
        worker_cancel_timer(node->node.worker, &held->turn);
    else if (!timer_is_set(&held->turn) || held->turn.deadline_ns != next_ns)
        worker_set_timer(node->node.worker, &held->turn, next_ns > now_ns ? next_ns - now_ns : 0);
}

/* ---- memory ---- */

static bool may_decide_oldest(const struct tail_node *node)
{
    return node->waiting.all.first && (!is_behind(node) || waiting_traces_oldest_is_read(node));
}

/* Decides about some of the oldest traces, so that what they sample leaves in one request. */
static void decide_oldest(struct tail_node *node)
{
    struct tail *tail = node->tail;
    size_t enough =
        budget_used(&tail->leaving) + tail->held[SIGNAL_TRACES].limit_bytes / EARLY_PART;
    int count = 0;
    while (may_decide_oldest(node) && count < EARLY_TRACES &&
           budget_used(&tail->leaving) < enough) {
        waiting_traces_decide_oldest(node, EARLY_MEMORY);
        count++;
    }
    ready_spans_send(node);
}

/* Decides about the oldest traces while what leaves has less than its part of the limit. Returns
 * false if there are more than one turn decides, or if the oldest has to be read again first. */
static bool decide_early(struct tail_node *node, size_t wanted)
{
    struct tail *tail = node->tail;
    struct budget *held = &tail->held[SIGNAL_TRACES];
    for (int round = 0; node->waiting.all.first &&
                        budget_used(&tail->leaving) < held->limit_bytes / LEAVING_PART &&
                        budget_used(held) + wanted > held->limit_bytes;
         round++) {
        if (round == EARLY_ROUNDS || !may_decide_oldest(node))
            return false;
        decide_oldest(node);
    }
    return true;
}

enum room_result { ROOM_RESERVED, ROOM_LATER, ROOM_NONE };

/* Reserves memory; decides about the oldest traces if there is not enough. ROOM_LATER: the next
 * turn decides or sends more. A request that is larger than the limit may exceed it alone. */
static enum room_result make_room(struct tail_node *node, size_t size)
{
    struct budget *held = &node->tail->held[SIGNAL_TRACES];
    if (budget_reserve(held, size))
        return ROOM_RESERVED;
    if (!decide_early(node, size))
        return ROOM_LATER;
    ready_spans_send(node);
    if (budget_reserve(held, size))
        return ROOM_RESERVED;
    if (size > held->limit_bytes && budget_used(held) <= held->limit_bytes) {
        budget_charge(held, size);
        return ROOM_RESERVED;
    }
    if (ready_spans_go_on(node))
        return ROOM_LATER;
    trace_holders_ask_for_memory(trace_table_holders(node->tail->table), node->waiting.holder);
    return ROOM_NONE;
}

/* ---- arrivals ---- */

/* Takes the batch and the reader back: the next request may come. */
static struct batch *end_arriving(struct tail_node *node)
{
    struct batch *batch = node->traces.arriving.batch;
    reservation_end_keep(node->traces.arriving.reservation);
    node->traces.arriving = (struct arriving_traces){0};
    trace_reader_clear(&node->reader);
    return batch;
}

/* Adds the spans of one trace of the request. */
static void arrive(struct tail_node *node, struct held_request *request, uint32_t index)
{
    const struct trace_reader *reader = &node->reader;
    struct table_user user = tail_user(node);
    struct trace_arrival arrival = {.id = reader->traces[index].id,
                                    .facts = reader->traces[index].facts,
                                    .bits = reader->bits + (size_t)index * reader->words};
    struct trace_answer answer = trace_table_arrive(
        node->tail->table, &user, &arrival, node->waiting.holder, node->node.worker->now_ns);
    struct piece *piece = &request->pieces[index];
    if (answer.state != TRACE_PENDING && answer.state != TRACE_SAMPLED)
        return;
    held_request_ref(request);
    if (answer.state == TRACE_SAMPLED)
        ready_spans_add(node, piece);
    else
        waiting_traces_add(node, arrival.id, piece, answer.deadline_ns);
}

/* Adds the next traces of the request. Returns whether these were the last. */
static bool add_traces(struct tail_node *node)
{
    struct arriving_traces *arriving = &node->traces.arriving;
    for (int n = 0; n < TRACES_PER_TURN && arriving->next < node->reader.trace_count; n++)
        arrive(node, arriving->request, arriving->next++);
    return arriving->next == node->reader.trace_count;
}

/* Makes room for the request, and holds it. Returns false if it was refused, or waits for room. */
static bool admit(struct tail_node *node)
{
    struct arriving_traces *arriving = &node->traces.arriving;
    if (receipt_is_abandoned(arriving->batch->receipt)) {
        batch_drop(end_arriving(node), &verdict_sender_is_gone);
        return false;
    }
    enum room_result room = make_room(node, arriving->size);
    if (room == ROOM_NONE)
        tail_refuse_full(node, end_arriving(node));
    if (room != ROOM_RESERVED)
        return false;
    struct held_request *request = held_request_new(
        &node->reader, arriving->batch, &node->tail->held[SIGNAL_TRACES], arriving->size);
    request->ordinal = ++node->traces.ordinal;
    request->reading = tail_rules(node)->reading;
    list_append(&node->traces.requests, &request->link);
    arriving->request = request;
    return true;
}

/* Goes on with the request that arrives. Returns whether it is settled. */
static bool go_on_arriving(struct tail_node *node)
{
    struct arriving_traces *arriving = &node->traces.arriving;
    if (!arriving->request && !admit(node))
        return !arriving->batch;
    if (tail_reader_is_stale(node)) {
        reread_traces_first(node, arriving->request);
        return false;
    }
    if (!add_traces(node))
        return false;
    held_request_unref(arriving->request);
    struct batch *batch = end_arriving(node);
    schedule(node);
    /* The last call: the answer may deliver the next request. */
    batch_drop(batch, &verdict_ok);
    return true;
}

static size_t memory_of(const struct trace_reader *reader, const struct batch *batch)
{
    return held_request_memory(reader, batch) +
           (size_t)reader->trace_count * (TRACE_BYTES + reader->words * sizeof(uint64_t));
}

void held_traces_add(struct tail_node *node, struct batch *batch)
{
    struct arriving_traces *arriving = &node->traces.arriving;
    assert(!arriving->batch);
    if (node->reader.span_count == 0) {
        batch_drop(batch, &verdict_ok);
        return;
    }
    *arriving = (struct arriving_traces){.batch = batch,
                                         .reservation = reservation_keep(batch->reservation),
                                         .size = memory_of(&node->reader, batch)};
    if (go_on_arriving(node))
        return;
    large_batches_hold(&node->arriving);
    schedule(node);
}

/* ---- the drain ---- */

static bool drops_pending(const struct tail_node *node)
{
    return tail_settings(node)->drop_pending_traces_on_shutdown &&
           atomic_load(&node->node.component->process->phase) == PROCESS_DRAINING;
}

static void log_dropped(struct tail_node *node)
{
    uint64_t dropped = node->traces.pending_dropped;
    node->traces.pending_dropped = 0;
    if (dropped == 0)
        return;
    counter_add(tail_metrics(node)->pending_dropped, node->node.worker->index, dropped);
    log_warn(node->node.origin, "Waiting traces are dropped, as configured",
             LOG_U64("dropped_items", dropped));
}

/* Decides about some of the traces, or drops them. */
static void end_waiting(struct tail_node *node)
{
    bool drops = drops_pending(node);
    for (int n = 0; n < TRACES_PER_TURN && node->waiting.all.first; n++)
        if (drops)
            node->traces.pending_dropped += waiting_traces_drop_oldest(node);
        else
            waiting_traces_decide_oldest(node, EARLY_DRAIN);
    if (!node->waiting.all.first)
        log_dropped(node);
}

void held_traces_drain(struct tail_node *node)
{
    if (!is_behind(node))
        end_waiting(node);
    schedule(node);
}

/* ---- messages and turns ---- */

static void on_message(void *context, enum holder_message message, const uint8_t *id)
{
    struct tail_node *node = context;
    switch (message) {
    case ASK_ABOUT_TRACE:
        waiting_traces_ask(node, id);
        break;
    case GIVE_MEMORY: /* the other node may hold nothing that it could decide */
        decide_early(node, node->tail->held[SIGNAL_TRACES].limit_bytes / LEAVING_PART);
        break;
    case RULES_CHANGED:
        node->traces.is_adapting = true;
        waiting_traces_ask_again(node);
        reread_traces_begin(node);
        break;
    case ALL_HAVE_READ:
        node->traces.is_adapting = true;
        break;
    }
    schedule(node);
}

/* Follows deadlines and limits that have changed. Returns whether the next turn has to go on. */
static bool adapt(struct tail_node *node)
{
    struct table_user user = tail_user(node);
    bool more = waiting_traces_ask_more(node, TRACES_PER_TURN);
    if (is_behind(node))
        return more;
    more |=
        trace_table_shrink(node->tail->table, &user, node->node.worker->now_ns, TRACES_PER_TURN);
    more |= !decide_early(node, 0);
    return more;
}

static void on_turn(struct timer *timer)
{
    struct held_traces *held = container_of(timer, struct held_traces, turn);
    struct tail_node *node = container_of(held, struct tail_node, traces);
    if (held->is_adapting)
        held->is_adapting = adapt(node);
    if (!is_behind(node)) {
        waiting_traces_decide_due(node, TRACES_PER_TURN);
        if (node->node.draining)
            end_waiting(node);
    }
    bool settled = held->arriving.batch && go_on_arriving(node);
    schedule(node);
    if (settled)
        large_batches_release(&node->arriving);
}

/* ---- start and end ---- */

bool held_traces_init(struct tail_node *node)
{
    node->traces.turn.on_timer = on_turn;
    ready_spans_init(node);
    reread_traces_init(node);
    return waiting_traces_init(node, on_message);
}

bool held_traces_are_idle(const struct tail_node *node)
{
    return !node->traces.arriving.batch && node->waiting.all.count == 0 &&
           ready_spans_are_idle(node) && reread_traces_is_idle(node);
}

/* What was added of the request counts as lost, although its sender may send it again. */
static void stop_arriving(struct tail_node *node)
{
    if (!node->traces.arriving.batch)
        return;
    if (node->traces.arriving.request)
        held_request_unref(node->traces.arriving.request);
    tail_refuse_at_stop(node, end_arriving(node));
}

void held_traces_stop(struct tail_node *node)
{
    stop_arriving(node);
    reread_traces_stop(node);
    worker_cancel_timer(node->node.worker, &node->traces.turn);
    log_dropped(node);
    node->lost += waiting_traces_stop(node);
    node->lost += ready_spans_stop(node);
    assert(node->traces.requests.count == 0);
    tail_count_stopped(node, node->lost);
}

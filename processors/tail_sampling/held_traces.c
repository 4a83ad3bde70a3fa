#include "processors/tail_sampling/held_traces.h"

#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/pipeline/outlet.h"
#include "processors/tail_sampling/held_spans.h"

#include <assert.h>

enum {
    REQUEST_SPANS = 8192,    /* a request that is sent has about as many at most */
    REQUEST_BYTES = 1 << 20, /* or as many bytes */
    REPEATED_PART = 4,       /* but then has four times the bytes that are repeated */
    TRACE_BYTES = 384,       /* memory of a waiting trace, here and in the table */
    LEAVING_PART = 4,        /* at most a quarter of the limit leaves early at a time */
    EARLY_PART = 16,         /* so much of the limit is decided early together */
    EARLY_TRACES = 64,       /* or so many traces */
};
#define GATHER_NS UINT64_C(50000000)
#define RETRY_AFTER_NS INT64_C(1000000000)

struct held_trace {
    struct list_link link;
    struct timer timer;
    struct tail_node *node;
    uint8_t id[TRACE_ID_SIZE];
    uint32_t hash, number;
    struct piece *first, *last;
    size_t bytes;
    uint32_t spans;
};

/* ---- traces by id ---- */

static struct held_trace *find(const struct held_traces *held, const uint8_t *id, uint32_t hash)
{
    if (!held->by_id.slots)
        return NULL;
    struct index_probe probe = index_table_probe(&held->by_id, hash);
    for (uint32_t number; index_table_next(&held->by_id, &probe, &number);)
        if (memcmp(held->items[number]->id, id, TRACE_ID_SIZE) == 0)
            return held->items[number];
    return NULL;
}

static uint32_t take_number(struct held_traces *held)
{
    if (held->free_count > 0)
        return held->free_numbers[--held->free_count];
    if (held->item_count == held->item_capacity) {
        held->item_capacity = held->item_capacity ? held->item_capacity * 2 : 64;
        held->items = memory_grow(held->items, held->item_capacity, sizeof(struct held_trace *));
        held->free_numbers =
            memory_grow(held->free_numbers, held->item_capacity, sizeof *held->free_numbers);
    }
    return held->item_count++;
}

static void on_trace_timer(struct timer *timer);

static struct held_trace *add(struct tail_node *node, const uint8_t *id, uint32_t hash)
{
    struct held_traces *held = &node->traces;
    struct held_trace *trace = memory_zalloc(sizeof *trace);
    size_t bytes = index_table_growth(&held->by_id, 1);
    memcpy(trace->id, id, TRACE_ID_SIZE);
    trace->node = node;
    trace->hash = hash;
    trace->number = take_number(held);
    trace->timer.on_timer = on_trace_timer;
    held->items[trace->number] = trace;
    if (bytes > 0)
        free(index_table_move(&held->by_id, memory_zalloc(bytes), bytes));
    index_table_add_new(&held->by_id, hash, trace->number);
    list_append(&held->waiting, &trace->link);
    return trace;
}

/* Frees a trace, whose pieces were taken. */
static void end(struct held_trace *trace)
{
    struct held_traces *held = &trace->node->traces;
    worker_cancel_timer(trace->node->node.worker, &trace->timer);
    if (trace->link.list)
        list_remove(&held->waiting, &trace->link);
    index_table_remove(&held->by_id, trace->hash, trace->number);
    held->items[trace->number] = NULL;
    held->free_numbers[held->free_count++] = trace->number;
    free(trace);
}

/* ---- sending ---- */

/* A request that was sent on and is not accepted yet. */
struct sent_spans {
    struct offer offer; /* first */
    struct tail_node *node;
    size_t charged;
    uint32_t items;
};

static void on_sent(struct offer *offer, const struct verdict *verdict)
{
    struct sent_spans *sent = container_of(offer, struct sent_spans, offer);
    struct tail *tail = sent->node->tail;
    if (!verdict_is_ok(verdict))
        tail_count_refused(sent->node, verdict, sent->items);
    budget_release(&tail->held[SIGNAL_TRACES], sent->charged);
    budget_release(&tail->leaving, sent->charged);
    free(sent);
}

/* Bytes that the request of a span and the next one both have if they are divided there. */
static size_t repeated_bytes(const struct held_request *request, const struct held_span *span)
{
    const struct held_scope *scope = &request->scopes[span->scope];
    return request->groups[scope->group].size + scope->header.size;
}

/* Returns how many of the spans that are ready leave in the next request, and their bytes. A large
 * resource is not repeated for a few spans. */
static uint32_t spans_of_next(const struct held_traces *held, size_t *bytes_out)
{
    uint32_t spans = 0;
    *bytes_out = 0;
    for (const struct piece *piece = held->ready; piece; piece = piece->next)
        for (uint32_t i = 0; i < piece->count; i++) {
            const struct held_span *span = &piece->request->spans[piece->first + i];
            if ((spans >= REQUEST_SPANS || *bytes_out >= REQUEST_BYTES) &&
                *bytes_out >= REPEATED_PART * repeated_bytes(piece->request, span))
                return spans;
            *bytes_out += span->size;
            spans++;
        }
    return spans;
}

/* Makes a request of spans that are ready. */
static struct buffer *take_ready(struct tail_node *node, uint32_t *spans_out)
{
    struct held_traces *held = &node->traces;
    size_t bytes;
    *spans_out = spans_of_next(held, &bytes);
    struct buffer *buffer =
        pieces_join(&held->ready, *spans_out, node->node.component->process->budget);
    if (!held->ready)
        held->ready_last = NULL;
    assert(held->ready_spans >= *spans_out && held->ready_bytes >= bytes);
    held->ready_spans -= *spans_out;
    held->ready_bytes -= bytes;
    budget_release(&node->tail->leaving, bytes);
    return buffer;
}

static bool send_next(struct offers *offers)
{
    struct held_traces *held = container_of(offers, struct held_traces, offers);
    struct tail_node *node = container_of(held, struct tail_node, traces);
    struct tail *tail = node->tail;
    if (!held->ready ||
        !(held->is_due || held->ready_spans >= REQUEST_SPANS || held->ready_bytes >= REQUEST_BYTES))
        return false;
    struct sent_spans *sent = memory_zalloc(sizeof *sent);
    struct buffer *buffer = take_ready(node, &sent->items);
    struct batch *batch =
        batch_new(node->node.worker, SIGNAL_TRACES, buffer, sent->items, NULL, NULL);
    held->is_due &= held->ready != NULL;
    sent->node = node;
    sent->charged = batch_memory(batch);
    budget_charge(&tail->held[SIGNAL_TRACES], sent->charged);
    budget_charge(&tail->leaving, sent->charged);
    offers_count_work(offers, sent->charged);
    offer_send(&sent->offer, offers, batch, true, on_sent);
    return true;
}

static void on_gathered(struct timer *timer)
{
    struct held_traces *held = container_of(timer, struct held_traces, gather);
    held->is_due = true;
    offers_pump(&held->offers);
}

static void schedule(struct tail_node *node)
{
    struct held_traces *held = &node->traces;
    if (!held->ready)
        return;
    if (node->node.draining) {
        held->is_due = true;
    } else if (!timer_is_set(&held->gather)) {
        worker_set_timer(node->node.worker, &held->gather, GATHER_NS);
    }
    offers_pump(&held->offers);
}

/* Appends a piece, with its reference, to what is sent next. */
static void make_ready(struct tail_node *node, struct piece *piece)
{
    struct held_traces *held = &node->traces;
    size_t bytes = 0;
    for (uint32_t i = 0; i < piece->count; i++)
        bytes += piece->request->spans[piece->first + i].size;
    piece->next = NULL;
    if (held->ready_last)
        held->ready_last->next = piece;
    else
        held->ready = piece;
    held->ready_last = piece;
    held->ready_spans += piece->count;
    held->ready_bytes += bytes;
    budget_charge(&node->tail->leaving, bytes);
}

/* ---- decisions ---- */

static void leave(struct held_trace *trace, enum trace_state state)
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
        make_ready(node, piece);
        piece = next;
    }
}

/* Asks for the decision; lets the trace leave, or sets its timer. early: enum tail_early, with
 * which it always leaves, and need not be in `waiting`. */
static void ask(struct held_trace *trace, int early)
{
    struct tail_node *node = trace->node;
    struct worker *worker = node->node.worker;
    struct table_user user = tail_user(node);
    struct trace_answer answer = trace_table_take(node->tail->table, &user, trace->id,
                                                  node->traces.holder, worker->now_ns, early);
    if (answer.state != TRACE_PENDING)
        leave(trace, answer.state);
    else
        worker_set_timer(worker, &trace->timer, answer.deadline_ns - worker->now_ns);
}

static void on_trace_timer(struct timer *timer)
{
    struct held_trace *trace = container_of(timer, struct held_trace, timer);
    struct tail_node *node = trace->node;
    ask(trace, TAKE_WHEN_DUE);
    schedule(node);
}

static void on_wake(void *context, const uint8_t *id)
{
    struct tail_node *node = context;
    uint32_t hash = (uint32_t)hash_bytes(slice_of(id, TRACE_ID_SIZE));
    struct held_trace *trace = find(&node->traces, id, hash);
    if (!trace)
        return;
    ask(trace, TAKE_WHEN_DUE);
    schedule(node);
}

/* ---- memory ---- */

/* Decides about some of the oldest traces, so that what they sample leaves in one request. Returns
 * false if none waits. */
static bool decide_oldest(struct tail_node *node)
{
    struct held_traces *held = &node->traces;
    struct tail *tail = node->tail;
    size_t enough =
        budget_used(&tail->leaving) + tail->held[SIGNAL_TRACES].limit_bytes / EARLY_PART;
    int count = 0;
    while (held->waiting.first && count < EARLY_TRACES && budget_used(&tail->leaving) < enough) {
        ask(container_of(list_pop(&held->waiting), struct held_trace, link), EARLY_MEMORY);
        count++;
    }
    held->is_due = held->ready != NULL;
    offers_pump(&held->offers);
    return count > 0;
}

/* Reserves memory; decides about the oldest traces if there is not enough. A request that is larger
 * than the limit may exceed it alone. */
static bool make_room(struct tail_node *node, size_t size)
{
    struct tail *tail = node->tail;
    struct budget *held = &tail->held[SIGNAL_TRACES];
    while (!budget_reserve(held, size)) {
        bool leaves = budget_used(&tail->leaving) < held->limit_bytes / LEAVING_PART;
        if (leaves && decide_oldest(node))
            continue;
        schedule(node);
        if (size <= held->limit_bytes || budget_used(held) > held->limit_bytes)
            return false;
        budget_charge(held, size);
        break;
    }
    schedule(node);
    return true;
}

/* ---- arrivals ---- */

static void refuse(struct tail_node *node, struct batch *batch)
{
    trace_reader_clear(&node->reader);
    struct verdict verdict =
        verdict_try_later(GRPC_RESOURCE_EXHAUSTED, RETRY_AFTER_NS,
                          "%s: max_held_mib is reached, and the next component accepts nothing",
                          node->node.component->id);
    node_refuse(&node->node, batch, REFUSED_FULL, &verdict);
}

static void wait_for(struct tail_node *node, const uint8_t *id, struct piece *piece,
                     uint64_t deadline_ns)
{
    struct worker *worker = node->node.worker;
    uint32_t hash = (uint32_t)hash_bytes(slice_of(id, TRACE_ID_SIZE));
    struct held_trace *trace = find(&node->traces, id, hash);
    if (!trace)
        trace = add(node, id, hash);
    if (trace->last)
        trace->last->next = piece;
    else
        trace->first = piece;
    trace->last = piece;
    trace->spans += piece->count;
    if (deadline_ns <= worker->now_ns)
        ask(trace, TAKE_WHEN_DUE);
    else if (!timer_is_set(&trace->timer) || deadline_ns < trace->timer.deadline_ns)
        worker_set_timer(worker, &trace->timer, deadline_ns - worker->now_ns);
}

static void give_up(struct held_trace *trace)
{
    struct tail_node *node = trace->node;
    struct table_user user = tail_user(node);
    trace_table_give_up(node->tail->table, &user, trace->id, node->traces.holder,
                        node->node.worker->now_ns);
    leave(trace, TRACE_NOT_SAMPLED);
}

static bool drops_pending(const struct tail_node *node)
{
    return node->tail->settings->drop_pending_traces_on_shutdown &&
           atomic_load(&node->node.component->process->phase) == PROCESS_DRAINING;
}

static void decide_all(struct tail_node *node)
{
    struct list *waiting = &node->traces.waiting;
    bool drops = drops_pending(node);
    uint64_t dropped = 0;
    for (struct list_link *link; (link = list_pop(waiting));) {
        struct held_trace *trace = container_of(link, struct held_trace, link);
        dropped += drops ? trace->spans : 0;
        if (drops)
            give_up(trace);
        else
            ask(trace, EARLY_DRAIN);
    }
    if (dropped > 0) {
        counter_add(node->tail->metrics.pending_dropped, node->node.worker->index, dropped);
        log_warn(node->node.origin, "Waiting traces are dropped, as configured",
                 LOG_U64("dropped_items", dropped));
    }
}

/* Adds the spans of one trace of the request. */
static void arrive(struct tail_node *node, struct held_request *request, uint32_t index)
{
    const struct trace_reader *reader = &node->reader;
    struct table_user user = tail_user(node);
    struct trace_arrival arrival = {.id = reader->traces[index].id,
                                    .facts = reader->traces[index].facts,
                                    .bits = reader->bits + (size_t)index * reader->words};
    struct trace_answer answer = trace_table_arrive(node->tail->table, &user, &arrival,
                                                    node->traces.holder, node->node.worker->now_ns);
    struct piece *piece = &request->pieces[index];
    if (answer.state != TRACE_PENDING && answer.state != TRACE_SAMPLED)
        return;
    held_request_ref(request);
    if (answer.state == TRACE_SAMPLED)
        make_ready(node, piece);
    else
        wait_for(node, arrival.id, piece, answer.deadline_ns);
}

void held_traces_add(struct tail_node *node, struct batch *batch)
{
    const struct trace_reader *reader = &node->reader;
    struct budget *held = &node->tail->held[SIGNAL_TRACES];
    size_t size = held_request_memory(reader, batch) + (size_t)reader->trace_count * TRACE_BYTES;
    if (reader->span_count == 0) {
        batch_drop(batch, &verdict_ok);
        return;
    }
    if (!make_room(node, size)) {
        refuse(node, batch);
        return;
    }
    struct held_request *request =
        held_request_new(reader, batch, ++node->traces.requests, held, size);
    for (uint32_t i = 0; i < reader->trace_count; i++)
        arrive(node, request, i);
    held_request_unref(request);
    if (node->node.draining)
        decide_all(node);
    schedule(node);
    trace_reader_clear(&node->reader);
    /* The last call: the answer may deliver the next request. */
    batch_drop(batch, &verdict_ok);
}

/* ---- start and end ---- */

bool held_traces_init(struct tail_node *node)
{
    struct held_traces *held = &node->traces;
    offers_init(&held->offers, &node->node, send_next);
    held->gather.on_timer = on_gathered;
    held->holder = trace_table_add_holder(node->tail->table, node->node.worker, on_wake, node);
    return held->holder >= 0;
}

void held_traces_drain(struct tail_node *node)
{
    decide_all(node);
    schedule(node);
}

bool held_traces_are_idle(const struct tail_node *node)
{
    const struct held_traces *held = &node->traces;
    return held->waiting.count == 0 && !held->ready && held->offers.under_way == 0;
}

void held_traces_stop(struct tail_node *node)
{
    struct held_traces *held = &node->traces;
    offers_stop(&held->offers);
    worker_cancel_timer(node->node.worker, &held->gather);
    for (struct list_link *link; (link = list_pop(&held->waiting));) {
        struct held_trace *trace = container_of(link, struct held_trace, link);
        node->lost += trace->spans;
        give_up(trace);
    }
    node->lost += held->ready_spans;
    budget_release(&node->tail->leaving, held->ready_bytes);
    pieces_drop(held->ready);
    trace_table_remove_holder(node->tail->table, held->holder);
    free(held->items);
    free(held->free_numbers);
    free(held->by_id.slots);
    tail_count_stopped(node, node->lost);
    *held = (struct held_traces){.offers = held->offers};
}

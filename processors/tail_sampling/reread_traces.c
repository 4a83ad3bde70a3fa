#include "processors/tail_sampling/reread_traces.h"

#include "core/base/container_of.h"
#include "processors/tail_sampling/held_spans.h"

#include <assert.h>

/* A turn reads as many bytes on the loop; a request of this size is read in a job. */
enum { TURN_BYTES = 256 * 1024 };

static struct tail_rules *current_rules(const struct tail_node *node)
{
    return trace_table_rules(node->tail->table)->current;
}

/* ---- the reader ---- */

static void drop_reader(struct rereading *reading)
{
    if (!reading->rules)
        return;
    trace_reader_deinit(&reading->reader);
    tail_rules_unref(reading->rules);
    reading->rules = NULL;
}

static void use_current_rules(struct tail_node *node)
{
    struct rereading *reading = &node->rereading;
    if (reading->rules == current_rules(node))
        return;
    drop_reader(reading);
    reading->rules = rules_book_ref(trace_table_rules(node->tail->table));
    trace_reader_init(&reading->reader, &reading->rules->settings->plan, &reading->rules->programs,
                      node->node.component->label);
}

static size_t bytes_of(const struct held_request *request)
{
    size_t bytes = 0;
    for (size_t i = 0; i < request->buffer_count; i++)
        bytes += request->buffers[i]->size;
    return bytes;
}

/* The worker holds a reference to the request. */
static void read_request(struct queued_job *queued)
{
    struct rereading *reading = container_of(queued, struct rereading, job);
    const struct held_request *request = reading->request;
    trace_reader_read_buffers(&reading->reader, request->buffers, request->buffer_count,
                              request->span_count);
}

static void on_read(struct queued_job *queued, bool did_run)
{
    struct rereading *reading = container_of(queued, struct rereading, job);
    struct tail_node *node = container_of(reading, struct tail_node, rereading);
    reading->is_reading = false;
    reading->is_read = did_run && reading->rules == current_rules(node);
    reading->next = 0;
    if (queued->is_large && did_run)
        reread_traces_begin(node);
}

/* ---- one request ---- */

static bool needs_reading(const struct tail_node *node, const struct list_link *link)
{
    return link && container_of(link, const struct held_request, link)->reading !=
                       current_rules(node)->reading;
}

/* Takes the next request; returns false if there is none. */
static bool take_next(struct tail_node *node)
{
    struct list_link *first = node->traces.requests.first;
    struct held_request *request =
        needs_reading(node, first) ? container_of(first, struct held_request, link) : NULL;
    if (!request)
        return false;
    node->rereading.has_first |= request == node->traces.arriving.request;
    held_request_ref(request);
    node->rereading.request = request;
    return true;
}

/* Returns the bytes that were read on the loop. */
static size_t read_next(struct tail_node *node)
{
    struct rereading *reading = &node->rereading;
    size_t bytes = bytes_of(reading->request);
    bool is_large = bytes >= TURN_BYTES;
    use_current_rules(node);
    reading->is_reading = true;
    reading->job = (struct queued_job){
        .run = read_request, .done = on_read, .size_bytes = bytes, .is_large = is_large};
    job_queue_add(&reading->queue, &reading->job);
    return is_large ? 0 : bytes;
}

/* Tells the table about the next traces. Returns whether these were the last. */
static bool tell_table(struct tail_node *node)
{
    struct rereading *reading = &node->rereading;
    const struct trace_reader *reader = &reading->reader;
    for (int n = 0; n < TRACES_PER_TURN && reading->next < reader->trace_count; n++) {
        uint32_t i = reading->next++;
        trace_table_add_bits(node->tail->table, reader->traces[i].id,
                             reader->bits + (size_t)i * reader->words);
    }
    return reading->next == reader->trace_count;
}

/* The request goes on arriving with what was read now. Its traces are in the same order. */
static void exchange_readers(struct tail_node *node)
{
    struct rereading *reading = &node->rereading;
    struct trace_reader reader = node->reader;
    struct tail_rules *rules = node->read_by;
    assert(reader.trace_count == reading->reader.trace_count);
    node->reader = reading->reader;
    node->read_by = reading->rules;
    reading->reader = reader;
    reading->rules = rules;
    reading->has_first = false;
    worker_set_timer(node->node.worker, &node->traces.turn, 0);
}

/* The request leaves those that have to be read again, which are the first ones. */
static void end_request(struct tail_node *node)
{
    struct rereading *reading = &node->rereading;
    struct held_request *request = reading->request;
    request->reading = reading->rules->reading;
    list_remove(&node->traces.requests, &request->link);
    list_append(&node->traces.requests, &request->link);
    if (request == node->traces.arriving.request)
        exchange_readers(node);
    trace_reader_clear(&reading->reader);
    reading->request = NULL;
    reading->is_read = false;
    held_request_unref(request);
}

/* ---- turns ---- */

static void catch_up(struct tail_node *node)
{
    drop_reader(&node->rereading);
    trace_holders_catch_up(trace_table_holders(node->tail->table), node->waiting.holder);
}

/* Does one step; returns the bytes that it counts for the turn. */
static size_t step(struct tail_node *node)
{
    struct rereading *reading = &node->rereading;
    if (reading->rules != current_rules(node))
        reading->is_read = false; /* by rules that have changed again */
    if (!reading->is_read)
        return read_next(node);
    if (!tell_table(node))
        return TURN_BYTES;
    end_request(node);
    return 0;
}

static void on_turn(struct timer *timer)
{
    struct rereading *reading = container_of(timer, struct rereading, turn);
    struct tail_node *node = container_of(reading, struct tail_node, rereading);
    size_t done = 0;
    while (done < TURN_BYTES && !reading->is_reading && (reading->request || take_next(node)))
        done += step(node);
    if (reading->is_reading)
        return;
    if (reading->request || done >= TURN_BYTES)
        worker_set_timer(node->node.worker, &reading->turn, 0);
    else if (!needs_reading(node, node->traces.requests.first))
        catch_up(node);
}

void reread_traces_init(struct tail_node *node)
{
    node->rereading.queue.worker = node->node.worker;
    node->rereading.turn.on_timer = on_turn;
}

void reread_traces_first(struct tail_node *node, struct held_request *request)
{
    if (node->rereading.has_first)
        return;
    node->rereading.has_first = true;
    request->reading = 0;
    list_remove(&node->traces.requests, &request->link);
    list_prepend(&node->traces.requests, &request->link);
    trace_holders_fall_behind(trace_table_holders(node->tail->table), node->waiting.holder);
    reread_traces_begin(node);
}

bool reread_traces_has_first(const struct tail_node *node)
{
    return node->rereading.has_first;
}

void reread_traces_begin(struct tail_node *node)
{
    if (!node->rereading.is_reading && !timer_is_set(&node->rereading.turn))
        worker_set_timer(node->node.worker, &node->rereading.turn, 0);
}

bool reread_traces_is_idle(const struct tail_node *node)
{
    return !node->rereading.request;
}

void reread_traces_stop(struct tail_node *node)
{
    struct rereading *reading = &node->rereading;
    job_queue_stop(&reading->queue);
    worker_cancel_timer(node->node.worker, &reading->turn);
    if (reading->request)
        held_request_unref(reading->request);
    reading->request = NULL;
    drop_reader(reading);
}

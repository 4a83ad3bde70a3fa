#include "processors/tail_sampling/reread_traces.h"

#include "core/base/container_of.h"
#include "processors/tail_sampling/held_spans.h"
#include "processors/tail_sampling/reread_turns.h"

#include <assert.h>

/* ---- the reader ---- */

static void init_reader(struct tail_node *node)
{
    struct rereading *reading = &node->rereading;
    trace_reader_init(&reading->reader, &reading->turns.rules->settings->plan,
                      &reading->turns.rules->programs, node->node.component->label);
}

static void deinit_reader(struct tail_node *node)
{
    trace_reader_deinit(&node->rereading.reader);
}

/* The worker holds a reference to the request. */
static void read_request(struct tail_node *node)
{
    struct rereading *reading = &node->rereading;
    const struct held_request *request = reading->request;
    trace_reader_read_buffers(&reading->reader, request->buffers, request->buffer_count,
                              request->span_count);
}

/* ---- one request ---- */

static bool needs_reading(const struct tail_node *node, const struct list_link *link)
{
    return link && container_of(link, const struct held_request, link)->reading !=
                       tail_rules(node)->reading;
}

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

static size_t bytes_of_taken(struct tail_node *node)
{
    const struct held_request *request = node->rereading.request;
    size_t bytes = 0;
    for (size_t i = 0; i < request->buffer_count; i++)
        bytes += request->buffers[i]->size;
    return bytes;
}

static bool tell_table(struct tail_node *node)
{
    struct reread_turns *turns = &node->rereading.turns;
    const struct trace_reader *reader = &node->rereading.reader;
    for (int n = 0; n < TRACES_PER_TURN && turns->next < reader->trace_count; n++) {
        uint32_t i = turns->next++;
        trace_table_add_bits(node->tail->table, reader->traces[i].id,
                             reader->bits + (size_t)i * reader->words);
    }
    return turns->next == reader->trace_count;
}

/* The request goes on arriving with what was read now. Its traces are in the same order. */
static void exchange_readers(struct tail_node *node)
{
    struct rereading *reading = &node->rereading;
    struct trace_reader reader = node->reader;
    struct tail_rules *rules = node->read_by;
    assert(reader.trace_count == reading->reader.trace_count);
    node->reader = reading->reader;
    node->read_by = reading->turns.rules;
    reading->reader = reader;
    reading->turns.rules = rules;
    reading->has_first = false;
    worker_set_timer(node->node.worker, &node->traces.turn, 0);
}

/* The request leaves those that have to be read again, which are the first ones. */
static void end_request(struct tail_node *node)
{
    struct rereading *reading = &node->rereading;
    struct held_request *request = reading->request;
    request->reading = reading->turns.rules->reading;
    list_remove(&node->traces.requests, &request->link);
    list_append(&node->traces.requests, &request->link);
    if (request == node->traces.arriving.request)
        exchange_readers(node);
    trace_reader_clear(&reading->reader);
    reading->request = NULL;
    held_request_unref(request);
}

static void catch_up(struct tail_node *node)
{
    trace_holders_catch_up(trace_table_holders(node->tail->table), node->waiting.holder);
}

void reread_traces_init(struct tail_node *node)
{
    static const struct reread_steps steps = {
        .take_next = take_next,
        .bytes_of_taken = bytes_of_taken,
        .init_reader = init_reader,
        .deinit_reader = deinit_reader,
        .read = read_request,
        .tell_table = tell_table,
        .end_request = end_request,
        .catch_up = catch_up,
    };
    reread_turns_init(&node->rereading.turns, node, &steps);
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
    reread_turns_begin(&node->rereading.turns);
}

bool reread_traces_is_idle(const struct tail_node *node)
{
    return !node->rereading.request;
}

void reread_traces_stop(struct tail_node *node)
{
    struct rereading *reading = &node->rereading;
    reread_turns_stop(&reading->turns);
    if (reading->request)
        held_request_unref(reading->request);
    reading->request = NULL;
}

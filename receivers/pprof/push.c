#include "receivers/pprof/push.h"

#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/pipeline/empty_profiles.h"
#include "core/pipeline/reading.h"
#include "core/pipeline/received.h"
#include "core/pipeline/receiver_server.h"
#include "core/pipeline/threads_behind.h"
#include "receivers/pprof/profile_intake.h"
#include "receivers/pprof/static_labels.h"

#include <assert.h>

#define PUSH_PATH "/v1/pprof"

struct pusher {
    const struct push_settings *settings;
    struct receiver_server server;
    struct received_counters counters;
    struct series series;
    struct node *nodes[WORKERS_MAX];
};

/* A request without an answer yet. */
struct push_request {
    struct received received;
    struct pusher *pusher;
    uint32_t samples;
};

static void respond(struct exchange *exchange, const struct verdict *verdict)
{
    int status = verdict_http_status(verdict);
    struct http_header retry;
    char seconds[24];
    if (verdict_is_ok(verdict))
        exchange_respond(exchange, 204, NULL, (struct slice){0}, NULL, 0);
    else
        exchange_respond(exchange, status, "text/plain; charset=utf-8",
                         slice_of_string(verdict->text), &retry,
                         received_retry_after(verdict, status, &retry, seconds));
}

static bool on_head(void *context, struct exchange *exchange)
{
    static const struct http_header allow = {{(const uint8_t *)"allow", sizeof "allow" - 1},
                                             {(const uint8_t *)"POST", sizeof "POST" - 1}};
    (void)context;
    if (!slice_is(exchange_path(exchange), PUSH_PATH))
        exchange_respond(exchange, 404, "text/plain; charset=utf-8", SLICE("404 page not found\n"),
                         NULL, 0);
    else if (!slice_is(exchange_method(exchange), "POST"))
        exchange_respond(exchange, 405, "text/plain; charset=utf-8", SLICE("405 only POST\n"),
                         &allow, 1);
    else
        return true;
    return false;
}

static void on_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct push_request *request = container_of(receipt, struct push_request, received.receipt);
    struct exchange *exchange = request->received.exchange;
    assert(worker_is_current(exchange_worker(exchange)));
    const struct received_counters *counters = &request->pusher->counters;
    counter_add(verdict_is_ok(verdict) ? counters->accepted : counters->refused,
                exchange_worker(exchange)->index, request->samples);
    respond(exchange, verdict);
    free(request);
}

static void forward(struct pusher *pusher, struct exchange *exchange, unsigned added_threads,
                    struct buffer *profiles, uint32_t samples)
{
    struct worker *worker = exchange_worker(exchange);
    assert(pusher->nodes[worker->index]->worker == worker);
    struct push_request *request = memory_zalloc(sizeof *request);
    *request = (struct push_request){.pusher = pusher, .samples = samples};
    received_init(&request->received, exchange, on_settled);
    bool with_headers = pusher->settings->server.include_metadata;
    struct batch *batch =
        batch_new(worker, SIGNAL_PROFILES, profiles, samples, &request->received.receipt,
                  received_context(exchange, with_headers));
    batch->peer = exchange_peer_key(exchange);
    batch->links_are_labels = true;
    batch->arrived_empty = samples == 0;
    batch->has_added_threads = added_threads != 0;
    node_forward(pusher->nodes[worker->index], batch);
}

/* profiles: the request for the pipelines; NULL: it is refused, see *why. */
static void finish_reading(struct pusher *pusher, struct exchange *exchange, unsigned added_threads,
                           struct buffer *profiles, uint32_t samples, const struct verdict *why)
{
    assert(profiles || !verdict_is_ok(why));
    const struct node *node = pusher->nodes[exchange_worker(exchange)->index];
    if (profiles && profiles_are_wanted(node, samples)) {
        forward(pusher, exchange, added_threads, profiles, samples);
        return;
    }
    /* Refused or empty: answer without passing it on. */
    buffer_unref(profiles);
    received_count_unread(&pusher->counters, exchange, why);
    respond(exchange, why);
}

static struct profile_intake intake_of(const struct pusher *pusher, const struct exchange *exchange,
                                       unsigned added_threads, const struct buffer *body)
{
    size_t max_size = (size_t)pusher->settings->server.max_request_body_size;
    size_t limit = decompress_limit(exchange_received_bytes(exchange));
    return (struct profile_intake){
        .bytes = buffer_slice(body),
        .series = &pusher->series,
        .max_size = limit < max_size ? limit : max_size,
        .first_try_bytes = READING_UNPACKED_BYTES,
        .time_unix_nano = clock_wall_ns(),
        .budget = exchange_budget(exchange),
        .added_threads = added_threads,
    };
}

/* ---- a large request, which a job reads ---- */

struct push_reading {
    struct reading reading;
    struct pusher *pusher;
    unsigned added_threads;
};

static void read_large(struct reading *reading)
{
    const struct push_reading *self = container_of(reading, struct push_reading, reading);
    struct profile_intake intake =
        intake_of(self->pusher, reading->exchange, self->added_threads, reading->body);
    reading->request = profile_intake_read(&intake, NULL, &reading->items, &reading->why);
    buffer_unref(reading->body);
}

static void on_large_read(struct reading *reading)
{
    struct push_reading *self = container_of(reading, struct push_reading, reading);
    reading_drop_abandoned(reading, self->pusher->counters.refused);
    finish_reading(self->pusher, reading->exchange, self->added_threads, reading->request,
                   reading->items, &reading->why);
    free(self);
}

static void start_reading(struct pusher *pusher, struct exchange *exchange, unsigned added_threads,
                          struct buffer *body)
{
    struct push_reading *self = memory_zalloc(sizeof *self);
    self->pusher = pusher;
    self->added_threads = added_threads;
    self->reading = (struct reading){
        .exchange = exchange, .body = body, .read = read_large, .done = on_large_read};
    reading_start(&self->reading);
}

static void on_request(void *context, struct exchange *exchange)
{
    struct pusher *pusher = context;
    struct buffer *body = exchange_take_body(exchange), *profiles = NULL;
    unsigned added_threads =
        threads_behind_receiver(pusher->nodes[exchange_worker(exchange)->index]);
    struct profile_intake intake = intake_of(pusher, exchange, added_threads, body);
    struct verdict why = verdict_ok;
    uint32_t samples = 0;
    bool is_large = body->size >= READING_PACKED_BYTES;
    if (!is_large)
        profiles = profile_intake_read(&intake, &is_large, &samples, &why);
    if (is_large) {
        assert(!profiles); /* the first try is abandoned */
        start_reading(pusher, exchange, added_threads, body);
        return;
    }
    buffer_unref(body);
    finish_reading(pusher, exchange, added_threads, profiles, samples, &why);
}

static const struct server_handler handler = {.on_head = on_head, .on_request = on_request};

struct pusher *pusher_new(struct component *component, const struct push_settings *settings,
                          struct pusher *former, struct error *err)
{
    struct server_options options = http_server_options(&settings->server, settings->endpoint,
                                                        component->process, component->label);
    struct pusher *pusher = memory_zalloc(sizeof *pusher);
    bool is_same = former && pprof_push_is_same(former->settings, settings);
    pusher->settings = settings;
    if (!static_labels_read(&settings->labels, &pusher->series, err) ||
        !receiver_server_open(&pusher->server, component, &options, &handler, pusher,
                              is_same ? &former->server : NULL, err)) {
        free(pusher);
        return NULL;
    }
    received_counters_init(&pusher->counters, component, "http", SIGNAL_PROFILES);
    return pusher;
}

void pusher_free(struct pusher *pusher)
{
    if (!pusher)
        return;
    receiver_server_close(&pusher->server);
    free(pusher);
}

void pusher_take_over(struct pusher *pusher)
{
    receiver_server_take_over(&pusher->server);
}

void pusher_start(struct pusher *pusher, struct node *node)
{
    assert(node->worker->index < WORKERS_MAX);
    pusher->nodes[node->worker->index] = node;
    if (receiver_server_start(&pusher->server, node))
        log_info(log_component(node->component->label), "Starting HTTP server",
                 LOG_TEXT("endpoint", pusher->settings->endpoint));
}

void pusher_drain(struct pusher *pusher, struct node *node, void (*on_drained)(void *context),
                  void *context)
{
    receiver_server_drain(&pusher->server, node, on_drained, context);
}

void pusher_stop(struct pusher *pusher, struct node *node)
{
    receiver_server_stop(&pusher->server, node);
}

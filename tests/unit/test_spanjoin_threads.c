/*
 * The join on two real workers: each request is sent on once, whichever worker holds it and
 * whichever wakes it. The test is meant for the thread sanitizer.
 */
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/pipeline/graph.h"
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/spanjoin_requests.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type spanjoin_processor_type;

enum { WORKERS = 2, ROUNDS = 150, SPANS_EACH = 8, SAMPLES_EACH = 6 };

#define SLOT (SECOND / SPANS_EACH)

static _Atomic uint64_t items_out[SIGNAL_OPENED_COUNT];

static void count_items(struct node *node, struct batch *batch)
{
    (void)node;
    atomic_fetch_add(&items_out[batch->signal], batch->items);
    batch_drop(batch, &verdict_ok);
}

static const struct field no_fields[] = {FIELD_END};
static const struct component_type source_type = {
    .config = {.name = "source",
               .section = CONFIG_RECEIVERS,
               .fields = no_fields,
               .config_size = 1,
               .stability = {STABILITY_STABLE, STABILITY_STABLE}},
};
static const struct component_type sink_type = {
    .config = {.name = "sink",
               .section = CONFIG_EXPORTERS,
               .fields = no_fields,
               .config_size = 1,
               .stability = {STABILITY_STABLE, STABILITY_STABLE}},
    .consume = count_items,
};

static const char yaml[] =
    "receivers: {source: }\n"
    "exporters: {sink: }\n"
    "processors: {spanjoin: {samples: {wait: 100ms}, spans: {wait: 30ms}, max_held_mib: 1, "
    "attribute_children: true}}\n"
    "service: {pipelines: {\n"
    "  traces: {receivers: [source], processors: [spanjoin], exporters: [sink]},\n"
    "  profiles: {receivers: [source], processors: [spanjoin], exporters: [sink]}}}\n";

/* Posts itself to its worker until it has sent everything. */
struct driver {
    struct post post;
    struct node *source;
    uint64_t random;
    unsigned rounds;
    uint64_t items[SIGNAL_OPENED_COUNT];
    sem_t *done;
};

static uint64_t next_random(struct driver *driver, uint64_t below)
{
    driver->random = driver->random * 6364136223846793005u + 1442695040888963407u;
    return (driver->random >> 33) % below;
}

static void forward(struct driver *driver, struct request *request)
{
    enum signal signal = request->traces ? SIGNAL_TRACES : SIGNAL_PROFILES;
    struct slice bytes = request_encode(request);
    struct buffer *buffer = buffer_new_charged(bytes.size, NULL);
    memcpy(buffer->data, bytes.data, bytes.size);
    buffer->size = bytes.size;
    driver->items[signal] += request->items;
    node_forward(driver->source,
                 batch_new(driver->source->worker, signal, buffer, request->items, NULL, NULL));
    request_free(request);
}

/* Returns a span id. Both workers use the same ones at about the same time. */
static uint64_t some_span(struct driver *driver)
{
    return 1 + (ROUNDS - driver->rounds) * 4 + next_random(driver, 24);
}

static void on_drive(struct worker *worker, struct post *post)
{
    struct driver *driver = (struct driver *)post;
    struct request request;
    traces_begin(&request, "shop");
    uint64_t root = some_span(driver);
    traces_span(&request, 7, root, WALL, WALL + SECOND, "a root");
    for (uint64_t i = 1; i < SPANS_EACH; i++) { /* children, which may arrive before their root */
        uint64_t start = WALL + i * SLOT;
        SpanMessage *child =
            traces_span(&request, 7, some_span(driver), start, start + SLOT, "a child");
        child->kind = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_INTERNAL;
        span_set_parent(&request, child, root);
    }
    forward(driver, &request);
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    for (int i = 0; i < SAMPLES_EACH; i++) {
        SampleMessage *sample = profiles_sample(&request, i);
        sample_link(&request, sample, next_random(driver, 3) ? 7 : 0, some_span(driver));
        sample_time(&request, sample, WALL + next_random(driver, SECOND));
        sample_value(&request, sample, 1);
    }
    forward(driver, &request);
    if (--driver->rounds > 0)
        worker_post(worker, post);
    else
        sem_post(driver->done);
}

static void start_workers(struct worker *workers)
{
    struct error err;
    for (unsigned i = 0; i < WORKERS; i++)
        assert_true(worker_init(&workers[i], i, &err) && worker_start(&workers[i], &err));
}

static void drive(struct graph *graph, struct worker *workers, uint64_t *items_in)
{
    static struct driver drivers[WORKERS];
    sem_t done;
    sem_init(&done, 0, 0);
    for (unsigned i = 0; i < WORKERS; i++) {
        drivers[i] = (struct driver){.post.on_post = on_drive,
                                     .source = graph_node(graph, i, "source", NULL, SIGNAL_TRACES),
                                     .random = i + 1,
                                     .rounds = ROUNDS,
                                     .done = &done};
        assert_non_null(drivers[i].source);
        worker_post(&workers[i], &drivers[i].post);
    }
    for (unsigned i = 0; i < WORKERS; i++)
        sem_wait(&done);
    graph_drain(graph);
    assert_true(graph_wait_drained(graph, 20 * SECOND));
    sem_destroy(&done);
    for (unsigned i = 0; i < WORKERS; i++)
        for (int signal = 0; signal < SIGNAL_OPENED_COUNT; signal++)
            items_in[signal] += drivers[i].items[signal];
}

static void join_on_two_workers(void)
{
    static struct worker workers[WORKERS];
    atomic_store(&items_out[SIGNAL_TRACES], 0);
    atomic_store(&items_out[SIGNAL_PROFILES], 0);
    const struct config_type *types[] = {&source_type.config, &sink_type.config,
                                         &spanjoin_processor_type.config, NULL};
    struct text report = {0};
    struct error err = {0};
    hash_init();
    struct config *config = config_load_text(types, "t", slice_of_string(yaml), &report);
    if (!config)
        fail_msg("%s", text_string(&report));
    start_workers(workers);
    struct process process = {.workers = workers,
                              .worker_count = WORKERS,
                              .metrics = metrics_new(WORKERS),
                              .memory_limit_bytes = (size_t)1 << 30};
    struct graph *graph = graph_new(config, &process, &err);
    if (!graph || !graph_start(graph, &err))
        fail_msg("%s", err.text);
    uint64_t items_in[SIGNAL_OPENED_COUNT] = {0};
    drive(graph, workers, items_in);
    for (int signal = 0; signal < SIGNAL_OPENED_COUNT; signal++)
        assert_int_equal(atomic_load(&items_out[signal]), items_in[signal]);
    assert_true(metrics_value(process.metrics, "profcol_spanjoin_samples_joined",
                              "spanjoin=\"spanjoin\"") > 0);
    assert_true(metrics_value(process.metrics, "profcol_spanjoin_samples_to_children",
                              "spanjoin=\"spanjoin\"") > 0);
    assert_int_equal(
        metrics_value(process.metrics, "profcol_spanjoin_held_requests", "spanjoin=\"spanjoin\""),
        0);
    graph_stop(graph);
    graph_free(graph);
    for (unsigned i = 0; i < WORKERS; i++)
        worker_stop(&workers[i]);
    for (unsigned i = 0; i < WORKERS; i++) {
        worker_join(&workers[i]);
        worker_deinit(&workers[i]);
    }
    metrics_free(process.metrics);
    config_free(config);
    text_deinit(&report);
}

static void test_two_workers(void **state)
{
    (void)state;
    join_on_two_workers();
}

/* About every second request is large, so a job processes it. */
static void test_two_workers_and_jobs(void **state)
{
    (void)state;
    spanjoin_set_large_bytes(400);
    join_on_two_workers();
}

int main(void)
{
    log_init(LOG_ERROR, LOG_CONSOLE);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_workers),
        cmocka_unit_test(test_two_workers_and_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

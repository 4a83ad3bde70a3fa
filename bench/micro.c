/*
 * bench_micro: what the parts cost, in one process without sockets; a line of JSON for each.
 *
 *     bench_micro [--quick] [NAME...]    only those whose name begins so
 *
 * Rates are the best of several tries, because others may use the machine.
 */
#include "bench/payload.h"
#include "bench/sockets.h"
#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/components.h"
#include "core/data/json.h"
#include "core/data/profiles_merge.h"
#include "core/data/scan.h"
#include "core/data/signals.h"
#include "core/data/span_index.h"
#include "core/data/wire.h"
#include "core/net/compression.h"
#include "core/pipeline/graph.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)

static char *no_names[] = {NULL};

static struct {
    int tries;
    uint64_t try_ns;
    uint64_t spans; /* in the index */
    char **names;
} options = {.tries = 5, .try_ns = SECOND_NS / 2, .spans = 10000000, .names = no_names};

static struct payload traces, profiles, metrics, logs;

static bool wanted(const char *name)
{
    for (char **wish = options.names; *wish; wish++)
        if (strncmp(name, *wish, strlen(*wish)) == 0)
            return true;
    return !*options.names;
}

static void print(const char *name, double value, const char *unit)
{
    printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"}\n", name, value, unit);
    fflush(stdout);
}

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "bench_micro: %s\n", what);
    exit(1);
}

/* ---- one request, many times ---- */

struct job {
    const char *name;
    void (*run)(const struct job *job);
    const struct payload *payload;
    int argument;
};

/* Items and bytes (of the protobuf) in a second of CPU time. */
static void measure(const struct job *job)
{
    double best = 0;
    char name[64];
    if (!wanted(job->name))
        return;
    for (int i = 0; i < options.tries; i++) {
        uint64_t begin = cpu_ns(), rounds = 0, end;
        do {
            job->run(job);
            rounds++;
            end = cpu_ns();
        } while (end - begin < options.try_ns);
        double rate = (double)rounds * 1e9 / (double)(end - begin);
        if (rate > best)
            best = rate;
    }
    print(job->name, best * job->payload->items, "items/s");
    snprintf(name, sizeof name, "%s, bytes", job->name);
    print(name, best * (double)job->payload->size / 1e6, "MB/s");
}

static size_t walk(struct slice bytes, const uint32_t *way, size_t depth)
{
    struct wire_cursor cursor = wire_cursor(bytes);
    struct wire_field field;
    size_t fields = 0;
    while (wire_next(&cursor, &field)) {
        fields++;
        if (depth > 0 && field.number == way[0] && field.type == WIRE_BYTES)
            fields += walk(field.bytes, way + 1, depth - 1);
    }
    return fields;
}

static volatile size_t walked; /* so that walking is not optimised away */

static void run_walk(const struct job *job)
{
    static const uint32_t way[] = {TRACES_RESOURCE_SPANS, RESOURCE_SPANS_SCOPE_SPANS,
                                   SCOPE_SPANS_SPANS, SPAN_ATTRIBUTES};
    walked += walk(payload_slice(job->payload), way, 4);
}

static void run_scan(const struct job *job)
{
    struct scan_result result;
    struct error err;
    if (!signal_traits(job->payload->signal)
             ->scan(payload_slice(job->payload), &scan_limits_default, &result, &err) ||
        result.items != job->payload->items)
        fail(err.text);
}

/* As many samples as a batch has. */
static void run_merge(const struct job *job)
{
    static struct profiles_merge *merge;
    static struct buffer *request;
    if (!merge) {
        merge = profiles_merge_new(NULL);
        request = buffer_new_charged(job->payload->size, NULL);
        buffer_append(request, job->payload->data, job->payload->size, job->payload->size);
    }
    profiles_merge_add(merge, request);
    if (profiles_merge_items(merge) >= 8192)
        buffer_unref(profiles_merge_finish(merge));
}

static void run_print_json(const struct job *job)
{
    static struct text out;
    text_clear(&out);
    json_from_protobuf(signal_traits(job->payload->signal)->request, payload_slice(job->payload),
                       &out);
}

static void run_read_json(const struct job *job)
{
    static struct text json[SIGNAL_COUNT];
    enum json_message message = signal_traits(job->payload->signal)->request;
    struct text *text = &json[job->payload->signal];
    bool over_budget;
    struct error err;
    if (!text->size)
        json_from_protobuf(message, payload_slice(job->payload), text);
    struct buffer *read =
        json_to_protobuf(message, slice_of(text->data, text->size), NULL, &over_budget, &err);
    if (!read)
        fail(err.text);
    buffer_unref(read);
}

static void run_compress(const struct job *job)
{
    struct slice bytes = payload_slice(job->payload);
    buffer_unref(compress_slices((enum compression)job->argument, 0, false, &bytes, 1, NULL));
}

static void run_decompress(const struct job *job)
{
    static struct buffer *packed[COMPRESSION_COUNT];
    struct slice bytes = payload_slice(job->payload);
    struct buffer *out;
    struct error err;
    enum compression compression = (enum compression)job->argument;
    if (!packed[compression])
        packed[compression] = compress_slices(compression, 0, false, &bytes, 1, NULL);
    if (decompress(compression, buffer_slice(packed[compression]), SIZE_MAX / 2, NULL, &out,
                   &err) != DECOMPRESS_OK)
        fail(err.text);
    buffer_unref(out);
}

static void measure_compressions(void)
{
    for (int i = COMPRESSION_GZIP; i < COMPRESSION_COUNT; i++) {
        char names[3][64];
        struct slice bytes = payload_slice(&traces);
        snprintf(names[0], sizeof names[0], "compress %s", compression_names[i]);
        snprintf(names[1], sizeof names[1], "decompress %s", compression_names[i]);
        snprintf(names[2], sizeof names[2], "compress %s, ratio", compression_names[i]);
        if (!wanted(names[0]) && !wanted(names[1]))
            continue;
        measure(&(struct job){names[0], run_compress, &traces, i});
        measure(&(struct job){names[1], run_decompress, &traces, i});
        struct buffer *packed = compress_slices((enum compression)i, 0, false, &bytes, 1, NULL);
        print(names[2], (double)bytes.size / (double)packed->size, "");
        buffer_unref(packed);
    }
}

/* ---- the span index ---- */

enum { AT_ONCE = 500, OPERATIONS = 1000 };

/* A request has 50 of the operations: it comes from one process. */
enum { OPERATIONS_TOGETHER = 50, PROCESSES = OPERATIONS / OPERATIONS_TOGETHER };

static struct slice operation_of(uint64_t number)
{
    static char names[OPERATIONS][64];
    uint64_t process = number / AT_ONCE % PROCESSES;
    unsigned i = (unsigned)(process * OPERATIONS_TOGETHER + number % OPERATIONS_TOGETHER);
    if (!*names[i])
        snprintf(names[i], sizeof *names, "GET /api/v1/orders/%03u/{order_id}: server, unset", i);
    return slice_of_string(names[i]);
}

static struct span_key key_of(uint64_t number)
{
    struct span_key key;
    payload_ids(number / AT_ONCE, (uint32_t)(number % AT_ONCE), key.trace_id, key.span_id);
    return key;
}

static void put_spans(struct span_index *index, uint64_t first)
{
    struct span_put puts[AT_ONCE] = {0};
    struct span_wakeups wakeups = {0};
    struct arena arena = {0};
    for (uint64_t i = 0; i < AT_ONCE; i++) {
        puts[i].key = key_of(first + i);
        puts[i].facts = (struct span_facts){.start_ns = 1, .end_ns = 2, .kind = 2};
        puts[i].facts.values = operation_of(first + i);
    }
    span_index_put_many(index, SECOND_NS, puts, AT_ONCE, &arena, &wakeups);
    span_wakeups_deinit(&wakeups);
    arena_deinit(&arena);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 20;
}

/* Spans of one process, as samples name them. */
static void find_spans(struct span_index *index, uint64_t *random)
{
    struct span_find finds[AT_ONCE] = {0};
    struct arena arena = {0};
    uint64_t requests = options.spans / AT_ONCE / PROCESSES,
             process = next_random(random) % PROCESSES;
    for (int i = 0; i < AT_ONCE; i++) {
        uint64_t request = next_random(random) % requests * PROCESSES + process;
        finds[i].key = key_of(request * AT_ONCE + next_random(random) % AT_ONCE);
    }
    span_index_find_many(index, SECOND_NS, finds, AT_ONCE, &arena);
    for (int i = 0; i < AT_ONCE; i++)
        if (finds[i].presence != SPAN_FOUND || finds[i].match_count != 1)
            fail("a span was not found");
    arena_deinit(&arena);
}

/* Looks up the spans of a request, and adds a sample to each, as profiles that name them do. */
static void add_samples(struct span_index *index, uint64_t first, uint64_t *find_ns,
                        uint64_t *add_ns)
{
    struct span_find finds[AT_ONCE] = {0};
    static const uint64_t totals[3] = {1, 1, 10000000};
    struct arena arena = {0};
    for (uint64_t i = 0; i < AT_ONCE; i++) {
        finds[i].key = key_of(first + i);
        finds[i].totals = totals;
    }
    uint64_t begin = cpu_ns();
    span_index_find_many(index, SECOND_NS, finds, AT_ONCE, &arena);
    uint64_t found = cpu_ns();
    for (int i = 0; i < AT_ONCE; i++)
        finds[i].chosen = finds[i].matches;
    span_index_add_many(index, SECOND_NS, finds, AT_ONCE, NULL);
    *find_ns += found - begin;
    *add_ns += cpu_ns() - found;
    arena_deinit(&arena);
}

/* Each span makes another one leave; samples come some requests after their span. */
static void measure_full_index(void)
{
    const uint64_t most = 500000, later = 20 * (uint64_t)AT_ONCE;
    const struct span_index_options settings = {.max_spans = most,
                                                .window_ns = 3600 * SECOND_NS,
                                                .threads = 1,
                                                .type_count = 1,
                                                .sum_type = 0};
    if (!wanted("full span index"))
        return;
    struct span_index *index = span_index_new(&settings);
    uint64_t put_ns = 0, find_ns = 0, add_ns = 0, spans = 0;
    for (uint64_t i = 0; i < 2 * most + options.spans / 4; i += AT_ONCE) {
        if (i == 2 * most)
            spans = put_ns = find_ns = add_ns = 0;
        uint64_t begin = cpu_ns();
        put_spans(index, i);
        put_ns += cpu_ns() - begin;
        if (i >= later)
            add_samples(index, i - later, &find_ns, &add_ns);
        spans += AT_ONCE;
    }
    print("full span index: put", (double)put_ns / (double)spans, "ns per span");
    print("full span index: find", (double)find_ns / (double)spans, "ns per span");
    print("full span index: add", (double)add_ns / (double)spans, "ns per span");
    print("full span index: memory", (double)span_index_memory(index) / (double)most,
          "bytes per span");
    span_index_unref(index);
}

static void measure_span_index(void)
{
    const struct span_index_options settings = {.max_spans = options.spans + options.spans / 4,
                                                .window_ns = 3600 * SECOND_NS,
                                                .threads = 1,
                                                .sum_type = -1};
    if (!wanted("span index"))
        return;
    struct span_index *index = span_index_new(&settings);
    uint64_t begin = cpu_ns(), random = 1;
    for (uint64_t i = 0; i < options.spans; i += AT_ONCE)
        put_spans(index, i);
    uint64_t inserted = cpu_ns();
    for (uint64_t i = 0; i < options.spans; i += AT_ONCE)
        find_spans(index, &random);
    uint64_t found = cpu_ns();
    if (span_index_entries(index) != options.spans)
        fail("the index does not hold all spans");
    print("span index inserts", (double)options.spans * 1e9 / (double)(inserted - begin), "/s");
    print("span index finds", (double)options.spans * 1e9 / (double)(found - inserted), "/s");
    print("span index memory", (double)span_index_memory(index) / (double)options.spans,
          "bytes per span, of 1,000 operations");
    span_index_unref(index);
}

/* ---- a pipeline, from memory to nop ---- */

/* A receiver that makes requests as fast as they are taken: a traces request, then a profiles
 * request about its spans. */
struct memory_node {
    struct node node;
    struct post turn;
    struct payload payloads[2];
    uint64_t next_request;
};

static atomic_bool pipeline_stops;
static atomic_uint_fast64_t pipeline_spans;

static void send_one(struct memory_node *self, enum signal signal)
{
    struct payload *payload = &self->payloads[signal == SIGNAL_PROFILES];
    payload_stamp(payload, self->next_request);
    struct slice bytes = payload_slice(payload);
    struct buffer *buffer = buffer_new_charged(bytes.size, self->node.component->process->budget);
    memcpy(buffer->data, bytes.data, bytes.size);
    buffer->size = bytes.size;
    run_scan(&(struct job){NULL, NULL, signal == SIGNAL_PROFILES ? &profiles : &traces, 0});
    node_forward(&self->node,
                 batch_new(self->node.worker, signal, buffer, payload->items, NULL, NULL));
}

static void on_turn(struct worker *worker, struct post *post)
{
    struct memory_node *self =
        (struct memory_node *)((char *)post - offsetof(struct memory_node, turn));
    if (atomic_load_explicit(&pipeline_stops, memory_order_relaxed))
        return;
    send_one(self, SIGNAL_TRACES);
    send_one(self, SIGNAL_PROFILES);
    self->next_request++;
    atomic_fetch_add_explicit(&pipeline_spans, self->payloads[0].items, memory_order_relaxed);
    worker_post(worker, post);
}

static bool memory_start(struct node *node, struct error *err)
{
    (void)err;
    struct memory_node *self = (struct memory_node *)node;
    self->payloads[0] = payload_copy(&traces);
    self->payloads[1] = payload_copy(&profiles);
    self->next_request = (uint64_t)node->worker->index << 32;
    self->turn.on_post = on_turn;
    worker_post(node->worker, &self->turn);
    return true;
}

static void memory_stop(struct node *node)
{
    struct memory_node *self = (struct memory_node *)node;
    payload_deinit(&self->payloads[0]);
    payload_deinit(&self->payloads[1]);
}

static const struct field memory_fields[] = {FIELD_END};
static const struct component_type memory_receiver_type = {
    .config = {.name = "memory",
               .section = CONFIG_RECEIVERS,
               .stability = {STABILITY_STABLE, STABILITY_STABLE},
               .fields = memory_fields,
               .config_size = 1},
    .node_size = sizeof(struct memory_node),
    .node_start = memory_start,
    .node_stop = memory_stop,
};

static const char pipeline_yaml[] =
    "receivers: {memory: }\n"
    "processors: {spanjoin: {window: 10s, max_spans: 400000}}\n"
    "exporters: {nop: }\n"
    "service:\n"
    "  pipelines:\n"
    "    traces: {receivers: [memory], processors: [spanjoin], exporters: [nop]}\n"
    "    profiles: {receivers: [memory], processors: [spanjoin], exporters: [nop]}\n";

static struct config *load_pipeline(void)
{
    extern const struct component_type nop_exporter_type, spanjoin_processor_type;
    static const struct config_type *const types[] = {&memory_receiver_type.config,
                                                      &spanjoin_processor_type.config,
                                                      &nop_exporter_type.config, NULL};
    struct text report = {0};
    struct config *config =
        config_load_text(types, "bench", slice_of_string(pipeline_yaml), &report);
    if (!config)
        fail(text_string(&report));
    text_deinit(&report);
    return config;
}

static uint64_t process_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* Spans (each with its share of samples) that pass in a second, and in a second of CPU time. */
static void run_pipeline(unsigned worker_count, double *rate_out, double *cpu_rate_out)
{
    struct worker *workers = memory_zalloc(worker_count * sizeof(struct worker));
    struct budget budget = {.limit_bytes = (size_t)1 << 30};
    struct process process = {.workers = workers,
                              .worker_count = worker_count,
                              .metrics = metrics_new(worker_count),
                              .budget = &budget,
                              .memory_limit_bytes = (size_t)4 << 30,
                              .version = "bench"};
    struct error err = {0};
    struct config *config = load_pipeline();
    atomic_store(&pipeline_stops, false);
    for (unsigned i = 0; i < worker_count; i++)
        if (!worker_init(&workers[i], i, &err) || !worker_start(&workers[i], &err))
            fail(err.text);
    struct graph *graph = graph_new(config, &process, &err);
    if (!graph || !graph_start(graph, &err))
        fail(err.text);
    struct timespec pause = {.tv_sec = 1}; /* until the index is full and memory is warm */
    nanosleep(&pause, NULL);
    uint64_t begin = now_ns(), cpu = process_cpu_ns(), spans = atomic_load(&pipeline_spans);
    nanosleep(&pause, NULL);
    spans = atomic_load(&pipeline_spans) - spans;
    *rate_out = (double)spans * 1e9 / (double)(now_ns() - begin);
    *cpu_rate_out = (double)spans * 1e9 / (double)(process_cpu_ns() - cpu);
    atomic_store(&pipeline_stops, true);
    graph_drain(graph);
    graph_wait_drained(graph, 5 * SECOND_NS);
    graph_stop(graph);
    for (unsigned i = 0; i < worker_count; i++)
        worker_stop(&workers[i]);
    for (unsigned i = 0; i < worker_count; i++)
        worker_join(&workers[i]);
    workers_settle(workers, worker_count);
    graph_free(graph);
    for (unsigned i = 0; i < worker_count; i++)
        worker_deinit(&workers[i]);
    metrics_free(process.metrics);
    config_free(config);
    free(workers);
}

static void measure_pipeline(void)
{
    double best[3] = {0}, best_cpu[3] = {0};
    if (!wanted("pipeline"))
        return;
    for (int i = 0; i < options.tries; i++)
        for (unsigned workers = 1; workers <= 2; workers++) {
            double rate, cpu_rate;
            run_pipeline(workers, &rate, &cpu_rate);
            if (rate > best[workers])
                best[workers] = rate;
            if (cpu_rate > best_cpu[workers])
                best_cpu[workers] = cpu_rate;
        }
    print("pipeline, 1 worker", best[1], "spans/s with 4 samples each");
    print("pipeline, 2 workers", best[2], "spans/s with 4 samples each");
    print("pipeline, 1 worker, by CPU", best_cpu[1], "spans with 4 samples each per CPU second");
    print("pipeline, 2 workers, by CPU", best_cpu[2], "spans with 4 samples each per CPU second");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        options.names = argv + 1;
    if (argc > 1 && strcmp(argv[1], "--quick") == 0) {
        options.names++;
        options.tries = 3;
        options.try_ns = SECOND_NS / 5;
    }
    hash_init();
    scan_init();
    traces = payload_traces(500);
    profiles = payload_profiles(2000, 500, 0);
    metrics = payload_metrics(500);
    logs = payload_logs(500);
    const struct job jobs[] = {
        {"wire walk of traces", run_walk, &traces, 0},
        {"scan of traces", run_scan, &traces, 0},
        {"scan of profiles", run_scan, &profiles, 0},
        {"scan of metrics", run_scan, &metrics, 0},
        {"scan of logs", run_scan, &logs, 0},
        {"dictionary merge", run_merge, &profiles, 0},
        {"JSON from traces", run_print_json, &traces, 0},
        {"JSON to traces", run_read_json, &traces, 0},
        {"JSON from profiles", run_print_json, &profiles, 0},
        {"JSON to profiles", run_read_json, &profiles, 0},
        {"JSON from metrics", run_print_json, &metrics, 0},
        {"JSON to metrics", run_read_json, &metrics, 0},
        {"JSON from logs", run_print_json, &logs, 0},
        {"JSON to logs", run_read_json, &logs, 0},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
        measure(&jobs[i]);
    measure_compressions();
    measure_span_index();
    measure_full_index();
    measure_pipeline();
    payload_deinit(&traces);
    payload_deinit(&profiles);
    payload_deinit(&metrics);
    payload_deinit(&logs);
    return 0;
}

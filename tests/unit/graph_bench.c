#include "tests/unit/graph_bench.h"
#include "config/config.h"

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct field no_fields[] = {FIELD_END};
const struct component_type graph_bench_source_type = {
    .config = {.name = "source",
               .section = CONFIG_RECEIVERS,
               .stability = {STABILITY_STABLE, STABILITY_STABLE},
               .help = "Forwards what a test sends.",
               .fields = no_fields},
};

/* ---- start and end ---- */

static void start_worker(struct graph_bench *bench, unsigned index)
{
    struct error err = {0};
    struct worker *worker = &bench->workers[index];
    if (!bench->is_real) {
        worker_init_manual(worker, index, GRAPH_BENCH_START_NS);
        return;
    }
    bool ok = worker_init(worker, index, &err) && worker_start(worker, &err);
    assert(ok);
}

void graph_bench_init(struct graph_bench *bench, unsigned workers, bool is_real)
{
    assert(workers > 0 && workers <= GRAPH_BENCH_WORKERS_MAX);
    *bench = (struct graph_bench){.is_real = is_real};
    hash_init_with(1);
    bench->process = (struct process){.workers = bench->workers,
                                      .worker_count = workers,
                                      .metrics = metrics_new(workers),
                                      .budget = &bench->budget,
                                      .version = "test"};
    for (unsigned i = 0; i < workers; i++)
        start_worker(bench, i);
}

void graph_bench_begin(struct graph_bench *bench, const struct config_type *const *types,
                       const char *yaml)
{
    struct text report = {0};
    struct error err = {0};
    bench->config = config_load_text(types, "test", slice_of_string(yaml), &report);
    if (!bench->config)
        fprintf(stderr, "%s\n%s\n", yaml, text_string(&report));
    assert(bench->config);
    text_deinit(&report);
    bench->graph = graph_new(bench->config, &bench->process, &err);
    assert(bench->graph);
    bool ok = graph_start(bench->graph, &err);
    assert(ok);
}

void graph_bench_stop(struct graph_bench *bench)
{
    graph_stop(bench->graph);
}

void graph_bench_end(struct graph_bench *bench)
{
    unsigned count = bench->process.worker_count;
    for (unsigned i = 0; bench->is_real && i < count; i++) {
        worker_stop(&bench->workers[i]);
        worker_join(&bench->workers[i]);
    }
    workers_settle(bench->workers, count);
    for (unsigned i = 0; i < count; i++)
        worker_deinit(&bench->workers[i]);
    graph_free(bench->graph);
    config_free(bench->config);
    metrics_free(bench->process.metrics);
    assert(budget_used(&bench->budget) == 0);
}

/* ---- time ---- */

uint64_t graph_bench_now(const struct graph_bench *bench)
{
    return bench->workers[0].now_ns;
}

static uint64_t next_deadline(const struct graph_bench *bench)
{
    uint64_t next = UINT64_MAX;
    for (unsigned i = 0; i < bench->process.worker_count; i++) {
        uint64_t deadline = timer_queue_next(&bench->workers[i].timers);
        if (deadline < next)
            next = deadline;
    }
    return next;
}

static void advance_to(struct graph_bench *bench, uint64_t now_ns)
{
    for (unsigned i = 0; i < bench->process.worker_count; i++)
        worker_advance(&bench->workers[i], now_ns);
}

void graph_bench_advance(struct graph_bench *bench, uint64_t delta_ns)
{
    uint64_t end_ns = graph_bench_now(bench) + delta_ns;
    for (uint64_t next; (next = next_deadline(bench)) <= end_ns;)
        advance_to(bench, next > graph_bench_now(bench) ? next : graph_bench_now(bench));
    advance_to(bench, end_ns);
}

bool graph_bench_drain(struct graph_bench *bench, uint64_t limit_ns)
{
    graph_drain(bench->graph);
    if (bench->is_real)
        return graph_wait_drained(bench->graph, limit_ns);
    uint64_t end_ns = graph_bench_now(bench) + limit_ns;
    while (!graph_is_drained(bench->graph)) {
        uint64_t next = next_deadline(bench);
        assert(next != UINT64_MAX);
        if (next > end_ns)
            break;
        advance_to(bench, next > graph_bench_now(bench) ? next : graph_bench_now(bench));
    }
    return graph_is_drained(bench->graph);
}

/* ---- requests ---- */

static void put_varint(struct text *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        text_append_char(out, (char)(value | 0x80));
    text_append_char(out, (char)value);
}

static void put_field(struct text *out, unsigned number, struct slice bytes)
{
    put_varint(out, number << 3 | 2);
    put_varint(out, bytes.size);
    text_append_slice(out, bytes);
}

static struct slice text_slice(const struct text *text)
{
    return slice_of((const uint8_t *)text->data, text->size);
}

static void put_span(struct text *out, uint64_t id, size_t ballast)
{
    struct text span = {0}, name = {0};
    put_field(&span, SPAN_SPAN_ID, slice_of((const uint8_t *)&id, sizeof id));
    while (name.size < ballast)
        text_append_char(&name, 'x');
    if (ballast > 0)
        put_field(&span, SPAN_NAME, text_slice(&name));
    put_field(out, SCOPE_SPANS_SPANS, text_slice(&span));
    text_deinit(&span);
    text_deinit(&name);
}

static struct buffer *encode(const struct numbered_request *request, struct budget *budget)
{
    struct text scope = {0}, resource = {0}, whole = {0};
    for (uint32_t i = 0; i < request->count; i++)
        put_span(&scope, request->first + i, i == 0 ? request->ballast : 0);
    put_field(&resource, RESOURCE_SPANS_SCOPE_SPANS, text_slice(&scope));
    put_field(&whole, TRACES_RESOURCE_SPANS, text_slice(&resource));
    struct buffer *buffer = buffer_new_charged(whole.size, budget);
    bool ok = buffer_append(buffer, whole.data, whole.size, whole.size);
    assert(ok);
    text_deinit(&scope);
    text_deinit(&resource);
    text_deinit(&whole);
    return buffer;
}

static void on_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct sender *sender = (struct sender *)receipt;
    sender->settled++;
    sender->verdict = *verdict;
    sender->at_ns = sender->worker->now_ns;
}

static bool is_abandoned(const struct receipt *receipt)
{
    return ((const struct sender *)receipt)->has_given_up;
}

void graph_bench_send(struct graph_bench *bench, unsigned worker,
                      const struct numbered_request *request, struct sender *sender)
{
    struct node *source = graph_bench_node(bench, worker, "source", NULL);
    if (sender) {
        *sender = (struct sender){.worker = source->worker};
        receipt_init(&sender->receipt, on_settled);
        sender->receipt.is_abandoned = is_abandoned;
    }
    node_forward(source, batch_new(source->worker, SIGNAL_TRACES, encode(request, &bench->budget),
                                   request->count, sender ? &sender->receipt : NULL, NULL));
}

/* ---- reading ---- */

static uint64_t read_varint(struct slice *rest)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert(rest->size > 0 && shift < 64);
        uint8_t byte = *rest->data++;
        rest->size--;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
}

/* Reads a field; these requests have only fields of bytes. */
static struct slice read_field(struct slice *rest, uint64_t *number_out)
{
    uint64_t key = read_varint(rest), size = read_varint(rest);
    assert((key & 7) == 2 && size <= rest->size);
    struct slice field = slice_of(rest->data, size);
    rest->data += size;
    rest->size -= size;
    *number_out = key >> 3;
    return field;
}

struct visit {
    void (*visit)(void *context, uint64_t span);
    void *context;
    uint32_t count;
};

static void visit_span(struct visit *visit, struct slice span)
{
    uint64_t number, id;
    while (span.size > 0) {
        struct slice field = read_field(&span, &number);
        if (number != SPAN_SPAN_ID)
            continue;
        assert(field.size == sizeof id);
        memcpy(&id, field.data, sizeof id);
        visit->count++;
        visit->visit(visit->context, id);
    }
}

/* Visits a level: request, resources, scopes, then spans. */
static void visit_level(struct visit *visit, struct slice bytes, unsigned level)
{
    static const uint64_t numbers[] = {TRACES_RESOURCE_SPANS, RESOURCE_SPANS_SCOPE_SPANS,
                                       SCOPE_SPANS_SPANS};
    uint64_t number;
    if (level == 3) {
        visit_span(visit, bytes);
        return;
    }
    while (bytes.size > 0) {
        struct slice field = read_field(&bytes, &number);
        if (number == numbers[level])
            visit_level(visit, field, level + 1);
    }
}

void batch_visit_spans(struct batch *batch, void (*visit)(void *context, uint64_t span),
                       void *context)
{
    struct visit all = {.visit = visit, .context = context};
    assert(!batch_is_changed(batch));
    for (size_t i = 0; i < batch->part_count; i++)
        visit_level(&all, buffer_slice(batch->parts[i].buffer), 0);
    assert(all.count == batch->items);
}

static void keep_first(void *context, uint64_t span)
{
    uint64_t *first = context;
    if (*first == UINT64_MAX)
        *first = span;
}

uint64_t batch_first_span(struct batch *batch)
{
    uint64_t first = UINT64_MAX;
    batch_visit_spans(batch, keep_first, &first);
    return first;
}

/* ---- inspecting ---- */

struct node *graph_bench_node(struct graph_bench *bench, unsigned worker, const char *id,
                              const char *pipeline)
{
    struct node *node = graph_node(bench->graph, worker, id, pipeline, SIGNAL_TRACES);
    assert(node);
    return node;
}

double graph_bench_metric(const struct graph_bench *bench, const char *name, const char *labels)
{
    return metrics_value(bench->process.metrics, name, labels);
}

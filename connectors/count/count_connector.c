/*
 * count_connector: counts what is in requests, and passes the counts on as metrics.
 *
 * It is the Collector's `count` connector. The metrics are new data with a receipt of their own.
 * The counted batch stays here until they are accepted, like at an exporter without a queue: its
 * receipt gets their verdict, and if they are refused, the batch is handed back (node_refuse), so
 * that it is counted again later. What waits in this way stays within the connector's share of
 * memory (core/pipeline/share.h); one batch always fits.
 *
 * Owner: each node owns the batches that wait for a job, or for the verdict on their counts.
 *
 * Thread: that of the node; counting also in a job, for one batch at a time.
 */
#include "connectors/count/count_request.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/large_batches.h"
#include "core/pipeline/outlet.h"

/* A batch of this size or more is counted by a job; the first if there are conditions, each of
 * which takes about 100 ns for each item. */
enum { LARGE_WITH_CONDITIONS_BYTES = 256 << 10, LARGE_BYTES = 1024 * 1024 };

static const struct verdict no_room = {
    .code = GRPC_UNAVAILABLE,
    .retry_after_ns = 500000000,
    .text = "the connector's share of the memory for requests is used up"};

struct count_component {
    struct component component;     /* first */
    struct ottl_program **programs; /* of the conditions; NULL: none */
};

struct count_node {
    struct node node;
    struct count_conditions conditions;
    struct large_batches batches;
    struct wire_writer counts; /* of the batch that is counted */
    size_t waiting;            /* batches whose counts are not settled */
};

/* A batch whose counts were passed on, in the arena of the batch. */
struct counted_batch {
    struct receipt receipt; /* of the counts */
    struct node *node;
    struct batch *batch;
    size_t held_bytes;
    size_t lent_bytes; /* the part of them that is borrowed */
};

extern const struct component_type count_connector_type;

static struct count_component *component_of(struct component *component)
{
    return component_as(struct count_component, component, &count_connector_type);
}

static struct count_node *node_of(struct node *node)
{
    return node_as(struct count_node, node, &count_connector_type);
}

/* ---- the counts' receipt ---- */

static void on_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct counted_batch *counted = container_of(receipt, struct counted_batch, receipt);
    struct batch *batch = counted->batch;
    struct node *node = counted->node;
    assert(node_of(node)->waiting > 0);
    node_of(node)->waiting--;
    share_release(&node->component->held[batch->signal], counted->held_bytes, counted->lent_bytes);
    if (verdict_is_ok(verdict))
        batch_drop(batch, &verdict_ok);
    else
        node_refuse(node, batch, REFUSED_FAILED, verdict);
}

static bool is_abandoned(const struct receipt *receipt)
{
    return receipt_is_abandoned(
        container_of(receipt, const struct counted_batch, receipt)->batch->receipt);
}

static struct counted_batch *hold(struct node *node, struct batch *batch, size_t held_bytes,
                                  size_t lent_bytes)
{
    struct counted_batch *counted = arena_zalloc(&batch->arena, sizeof *counted);
    receipt_init(&counted->receipt, on_settled);
    counted->receipt.is_abandoned = is_abandoned;
    counted->node = node;
    counted->batch = batch;
    counted->held_bytes = held_bytes;
    counted->lent_bytes = lent_bytes;
    node_of(node)->waiting++;
    return counted;
}

/* ---- counting and passing on ---- */

static uint64_t count_batch(struct node *node, struct batch *batch)
{
    struct wire_writer *counts = &node_of(node)->counts;
    wire_writer_clear(counts); /* those of a batch that was dropped after its job */
    return count_request(&node_of(node)->conditions, batch, counts);
}

static struct buffer *take_counts(struct count_node *node, struct budget *budget)
{
    struct wire_writer counts = node->counts;
    node->counts = (struct wire_writer){0};
    return buffer_adopt(counts.data, counts.size, counts.capacity, budget);
}

static void refuse(struct node *node, struct batch *batch)
{
    struct verdict verdict =
        ottl_errors_verdict(&node_of(node)->conditions.errors, batch->acknowledged);
    node_refuse(node, batch, REFUSED_FAILED, &verdict);
}

static void forward_counts(struct node *node, struct batch *batch, uint64_t points)
{
    size_t held_bytes = batch_memory(batch) + sizeof(struct counted_batch), lent_bytes;
    struct share *held = &node->component->held[batch->signal];
    if (node_of(node)->conditions.errors.failed) {
        refuse(node, batch);
        return;
    }
    if (points == 0) {
        batch_drop(batch, &verdict_ok);
        return;
    }
    if (!share_reserve(held, held_bytes, &lent_bytes) &&
        !budget_reserve_alone(&held->own, held_bytes)) {
        node_refuse(node, batch, REFUSED_FAILED, &no_room);
        return;
    }
    struct buffer *buffer = take_counts(node_of(node), batch->arena.budget);
    struct counted_batch *counted = hold(node, batch, held_bytes, lent_bytes);
    struct batch *metrics = batch_new(node->worker, SIGNAL_METRICS, buffer, (uint32_t)points,
                                      &counted->receipt, context_ref(batch->context));
    metrics->peer = batch->peer;
    node_forward(node, metrics);
}

static const struct batch_work count_work = {
    .work = count_batch, .forward = forward_counts, .large_bytes = LARGE_BYTES};
static const struct batch_work conditional_work = {
    .work = count_batch, .forward = forward_counts, .large_bytes = LARGE_WITH_CONDITIONS_BYTES};

static void count_consume(struct node *node, struct batch *batch)
{
    large_batches_add(&node_of(node)->batches, batch);
}

static bool count_init(struct component *component, struct error *err)
{
    (void)err;
    component_of(component)->programs = count_programs_new(component->settings);
    return true;
}

static void count_deinit(struct component *component)
{
    const struct count_settings *settings = component->settings;
    count_programs_free(component_of(component)->programs, settings->condition_count);
}

static bool count_node_start(struct node *node, struct error *err)
{
    (void)err;
    count_conditions_init(&node_of(node)->conditions, node->component->settings,
                          component_of(node->component)->programs);
    large_batches_init(&node_of(node)->batches, node,
                       component_of(node->component)->programs ? &conditional_work : &count_work);
    return true;
}

static bool count_is_idle(const struct node *node)
{
    const struct count_node *count = node_as(const struct count_node, node, &count_connector_type);
    return large_batches_is_empty(&count->batches) && count->waiting == 0;
}

static void count_node_stop(struct node *node)
{
    large_batches_stop(&node_of(node)->batches);
    assert(node_of(node)->waiting == 0); /* the nodes behind have stopped */
    wire_writer_deinit(&node_of(node)->counts);
    count_conditions_deinit(&node_of(node)->conditions);
}

const struct component_type count_connector_type = {
    .config =
        {
            .name = "count",
            .section = CONFIG_CONNECTORS,
            .stability = {[CONFIG_TRACES] = STABILITY_ALPHA,
                          [CONFIG_PROFILES] = STABILITY_ALPHA,
                          [CONFIG_METRICS] = STABILITY_ALPHA,
                          [CONFIG_LOGS] = STABILITY_ALPHA},
            .emits = {[CONFIG_TRACES] = CONFIG_EMITS(CONFIG_METRICS),
                      [CONFIG_PROFILES] = CONFIG_EMITS(CONFIG_METRICS),
                      [CONFIG_METRICS] = CONFIG_EMITS(CONFIG_METRICS),
                      [CONFIG_LOGS] = CONFIG_EMITS(CONFIG_METRICS)},
            .help =
                "Counts spans and their events, profiles and their samples, metrics and their data "
                "points, and log records, and emits the counts to pipelines of metrics: for each "
                "request and resource, a monotonic sum with delta temporality for each metric of "
                "the sections below. If the metrics are refused, so is what was counted, unless "
                "another "
                "exporter of its pipeline accepted it: then its sender is told success, and "
                "`profcol_branch_lost_*` counts what was not counted here.",
            .fields = count_fields,
            .config_size = sizeof(struct count_settings),
            .check = count_settings_check,
        },
    .component_size = sizeof(struct count_component),
    .init = count_init,
    .deinit = count_deinit,
    .node_size = sizeof(struct count_node),
    .node_start = count_node_start,
    .consume = count_consume,
    .is_idle = count_is_idle,
    .node_stop = count_node_stop,
};

/*
 * batch_processor: merges many small requests into few large ones, and splits requests that are too
 * large.
 *
 * Like the Collector's, for traces and also for profiles (a merged request has one dictionary). It
 * acknowledges data on admission and is then responsible for it. Data counts as held until the next
 * component has accepted it. While more than max_held_mib is held, it refuses new data. With `ack:
 * delivered`, the sender gets its answer when its data was delivered or refused.
 *
 * This file has the settings, the admission, and start and stop. The rest is in the other files of
 * this folder (batch_node.h).
 *
 * Owner: batch_node.h.
 *
 * Thread: that of the node; the limit is an atomic over all workers.
 */
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/data/profiles_merge.h"
#include "core/pipeline/metadata_keys.h"
#include "core/pipeline/size_histogram.h"
#include "processors/batch/batch_node.h"
#include "processors/batch/batch_sending.h"
#include "processors/batch/held_requests.h"
#include "processors/batch/shards.h"

#include <assert.h>
#include <inttypes.h>
#include <strings.h>

#define FULL_RETRY_NS INT64_C(1000000000)

static const char *const ack_names[] = {"admitted", "delivered", NULL};

static const struct field batch_fields[] = {
    FIELD_DURATION(batch_settings, timeout,
                   "Longest time that data is held before it is sent; 0: sent at once.",
                   .fallback = "200ms", .min = "0"),
    FIELD_UINT(batch_settings, send_batch_size,
               "Number of spans or samples at which held data is sent; 0: sent at once.",
               .fallback = "8192"),
    FIELD_UINT(batch_settings, send_batch_max_size,
               "Most spans or samples in one request; larger requests are split; 0: no limit.",
               .fallback = "0"),
    FIELD_STRINGS(batch_settings, metadata_keys,
                  "Request headers (needs include_metadata); data with different values is batched "
                  "separately."),
    FIELD_UINT(batch_settings, metadata_cardinality_limit,
               "Most combinations of those values, per worker; data with further ones is refused "
               "permanently.",
               .fallback = "1000", .min = "1"),
    FIELD_UINT(batch_settings, max_held_mib,
               "Limit in MiB on held data, over all workers, at most half of the memory for "
               "requests; data beyond that is refused with a retryable error.",
               .fallback = "64", .min = "1"),
    FIELD_ENUM(batch_settings, ack,
               "When the sender is told success: once the data is held here (it is then lost if "
               "profcol is killed), or once the next component has accepted it.",
               ack_names, .fallback = "admitted"),
    FIELD_END,
};

/* ---- settings ---- */

static void check_settings(void *config, struct config_check *check)
{
    struct batch_settings *settings = config;
    if (settings->send_batch_max_size > 0 &&
        settings->send_batch_max_size < settings->send_batch_size)
        config_check_error(check, "send_batch_max_size",
                           "send_batch_max_size must be greater or equal to send_batch_size");
    metadata_keys_check(&settings->metadata_keys, check, "metadata_keys");
}

static bool sends_at_once(const struct batch_node *node)
{
    return batch_node_settings(node)->timeout == 0 ||
           batch_node_settings(node)->send_batch_size == 0;
}

/* ---- admission ---- */

/* Reserves held bytes. A request larger than the limit would never fit, because under load
 * something is always held. So one request at a time may exceed the limit. */
static bool admit(struct batch_node *node, size_t size_bytes)
{
    assert(size_bytes >= HOLDING_BYTES);
    struct budget *held = batch_node_held(node);
    if (budget_reserve(held, size_bytes))
        return true;
    if (size_bytes <= held->limit_bytes || budget_used(held) > held->limit_bytes)
        return false;
    budget_charge(held, size_bytes);
    return true;
}

static void refuse(struct batch_node *node, struct batch *batch, const struct verdict *verdict)
{
    uint32_t items = batch->items;
    if (!node_refuse(&node->node, batch, REFUSED_FULL, verdict))
        counter_add(node->refused, node->node.worker->index, items);
}

static void batch_consume(struct node *base, struct batch *batch)
{
    struct batch_node *node = container_of(base, struct batch_node, node);
    struct shard *shard = shards_find(node, batch->context);
    if (!shard) {
        struct verdict verdict =
            verdict_of(GRPC_INTERNAL, "too many batcher metadata-value combinations");
        refuse(node, batch, &verdict);
        return;
    }
    assert(shard->node == node && batch->signal == base->signal);
    batch_flatten(batch);
    size_t size_bytes = batch_memory(batch) + HOLDING_BYTES;
    if (!admit(node, size_bytes)) {
        struct verdict verdict =
            verdict_try_later(GRPC_UNAVAILABLE, FULL_RETRY_NS, "%s has reached its max_held_mib",
                              base->component->id);
        refuse(node, batch, &verdict);
        return;
    }
    context_unref(batch->context); /* the shard keeps what it needs of it */
    batch->context = NULL;
    if (batch_node_settings(node)->ack == ACK_ADMITTED)
        batch_settle(batch, &verdict_ok); /* from now on, this node is responsible for it */
    held_requests_append(shard, batch, size_bytes);
    if (sends_at_once(node) || base->draining)
        shard->due = shard->requests.count;
    batch_sending_pump(shard);
}

/* ---- start and stop ---- */

static struct counter *make_counter(struct node *node, const char *name, const char *help)
{
    struct text labels = {0};
    metrics_label(&labels, "processor", node->component->id);
    struct counter *counter =
        metrics_counter(node->component->process->metrics, name, help, text_string(&labels));
    text_deinit(&labels);
    return counter;
}

static struct counter *make_item_counter(struct node *node, const char *what, const char *help)
{
    struct text name = {0};
    text_printf(&name, "profcol_processor_batch_%s_%s", what, signal_item_name(node->signal));
    struct counter *counter = make_counter(node, text_string(&name), help);
    text_deinit(&name);
    return counter;
}

static bool batch_node_start(struct node *base, struct error *err)
{
    (void)err;
    struct batch_node *node = container_of(base, struct batch_node, node);
    assert(!node->merge && node->shard_count == 0);
    struct metrics *metrics = base->component->process->metrics;
    struct text labels = {0};
    metrics_label(&labels, "processor", base->component->id);
    node->send_size = size_histogram_items(metrics, "otelcol_processor_batch_batch_send_size",
                                           "Number of units in the batch.", text_string(&labels));
    if (metrics_are_detailed(metrics))
        node->send_bytes =
            size_histogram_bytes(metrics, "otelcol_processor_batch_batch_send_size_bytes",
                                 "Number of bytes in batch that was sent.", text_string(&labels));
    node->cardinality = metrics_gauge(
        metrics, "otelcol_processor_batch_metadata_cardinality",
        "Number of distinct metadata value combinations being processed.", text_string(&labels));
    text_deinit(&labels);
    node->size_triggers = make_counter(base, "otelcol_processor_batch_batch_size_trigger_send",
                                       "Number of times the batch was sent due to a size trigger.");
    node->timeout_triggers =
        make_counter(base, "otelcol_processor_batch_timeout_trigger_send",
                     "Number of times the batch was sent due to a timeout trigger.");
    node->refused =
        make_item_counter(base, "refused", "Items refused because the memory limit was reached.");
    node->dropped = make_item_counter(
        base, "dropped",
        "Acknowledged items that were lost: refused permanently, or still held at the end.");
    if (base->signal == SIGNAL_PROFILES)
        node->merge = profiles_merge_new(base->component->process->budget);
    return true;
}

static void batch_node_drain(struct node *base)
{
    struct batch_node *node = container_of(base, struct batch_node, node);
    assert(base->draining); /* from now on, batches are sent at once */
    for (uint32_t i = 0; i < node->shard_count; i++)
        batch_sending_flush(node->shards[i]);
}

static bool batch_is_idle(const struct node *base)
{
    const struct batch_node *node = container_of(base, const struct batch_node, node);
    for (uint32_t i = 0; i < node->shard_count; i++)
        if (node->shards[i]->requests.count > 0 || node->shards[i]->offers.under_way > 0)
            return false;
    return true;
}

static void batch_node_stop(struct node *base)
{
    struct batch_node *node = container_of(base, struct batch_node, node);
    shards_stop(node);
    if (node->lost > 0) {
        atomic_fetch_add(&base->component->process->lost_items, node->lost);
        counter_add(node->dropped, base->worker->index, node->lost);
        log_error(base->origin,
                  "Stopped with data that the next component had not accepted. It is lost. Raise "
                  "--drain-timeout.",
                  LOG_U64("dropped_items", node->lost));
    }
    profiles_merge_free(node->merge);
}

static double read_held(void *context)
{
    return (double)budget_used(&((struct batch_processor *)context)->held);
}

static bool batch_init(struct component *component, struct error *err)
{
    (void)err;
    struct batch_processor *processor = container_of(component, struct batch_processor, component);
    const struct batch_settings *settings = component->settings;
    size_t requests_bytes =
        component->process->budget ? component->process->budget->limit_bytes : 0;
    processor->held.limit_bytes = (size_t)settings->max_held_mib << 20;
    if (requests_bytes > 0 && processor->held.limit_bytes > requests_bytes / 2)
        processor->held.limit_bytes = requests_bytes / 2;
    struct text labels = {0};
    metrics_label(&labels, "processor", component->id);
    metrics_gauge_from(component->process->metrics, "profcol_processor_batch_held_bytes",
                       "Memory of data held until the next component accepts it.",
                       text_string(&labels), read_held, processor);
    text_deinit(&labels);
    return true;
}

static void batch_deinit(struct component *component)
{
    metrics_forget(component->process->metrics, component);
}

/* May run before `check`, which changes the keys. */
static bool batch_passes_header(const void *config, const char *name)
{
    const struct config_strings *keys = &((const struct batch_settings *)config)->metadata_keys;
    for (size_t i = 0; i < keys->count && name; i++)
        if (strcasecmp(keys->items[i], name) == 0)
            return true;
    return false;
}

extern const struct component_type batch_processor_type;
const struct component_type batch_processor_type = {
    .config =
        {
            .name = "batch",
            .section = CONFIG_PROCESSORS,
            .stability = {[CONFIG_TRACES] = STABILITY_BETA,
                          [CONFIG_PROFILES] = STABILITY_ALPHA,
                          [CONFIG_METRICS] = STABILITY_ALPHA,
                          [CONFIG_LOGS] = STABILITY_ALPHA},
            .help = "Merges small requests and splits large ones. Data is acknowledged when it is "
                    "held, and kept until the next component has accepted it.",
            .fields = batch_fields,
            .config_size = sizeof(struct batch_settings),
            .check = check_settings,
            .passes_header = batch_passes_header,
        },
    .component_size = sizeof(struct batch_processor),
    .init = batch_init,
    .deinit = batch_deinit,
    .node_size = sizeof(struct batch_node),
    .node_start = batch_node_start,
    .consume = batch_consume,
    .holds = true,
    .node_drain = batch_node_drain,
    .is_idle = batch_is_idle,
    .node_stop = batch_node_stop,
};

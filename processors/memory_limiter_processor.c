/*
 * memory_limiter: limits the memory that profcol uses for data, like the Collector's processor of
 * the same name.
 *
 * The Collector polls its heap; profcol counts what it holds. So the settings become the limits of
 * the process before anything starts. Above limit_mib minus spike_limit_mib, every request is
 * refused on arrival, without a periodic check. docs/architecture.md, Limits, says how that memory
 * is divided. If several limiters have different limits, the largest one is the process's, and each
 * of the others refuses requests in its own pipelines.
 *
 * Owner: nothing is kept of a batch.
 *
 * Thread: that of the node.
 */
#include "core/base/budget.h"
#include "core/base/log.h"
#include "core/pipeline/component_as.h"

#include <assert.h>

struct memory_limiter_settings {
    int64_t check_interval;
    uint64_t limit_mib, spike_limit_mib;
    uint64_t limit_percentage, spike_limit_percentage;
    int64_t min_gc_interval_when_soft_limited, min_gc_interval_when_hard_limited;
    int64_t max_gc_interval_when_soft_limited, max_gc_interval_when_hard_limited;
};

struct memory_limiter {
    struct component component;
    size_t requests_bytes; /* of that: for requests */
};

struct memory_limiter_node {
    struct node node;
    struct counter *accepted, *refused;
};

extern const struct component_type memory_limiter_processor_type;

static struct memory_limiter *limiter_of(struct component *component)
{
    return component_as(struct memory_limiter, component, &memory_limiter_processor_type);
}

static struct memory_limiter_node *node_of(struct node *node)
{
    return node_as(struct memory_limiter_node, node, &memory_limiter_processor_type);
}

#define NO_GC "profcol has no garbage collector."

static const struct field memory_limiter_fields[] = {
    FIELD_DURATION(memory_limiter_settings, check_interval,
                   "Required, as in the Collector, but without effect: the Collector checks its "
                   "memory this often, profcol counts every byte as it is reserved."),
    FIELD_UINT(memory_limiter_settings, limit_mib,
               "MiB that profcol may use for data and the join's index. Exporters may hold about a "
               "quarter of it (docs/tuning.md, Queues).",
               .max = "16777216"),
    FIELD_UINT(memory_limiter_settings, spike_limit_mib,
               "MiB below the limit that stay free; 0: a fifth of the limit.", .max = "16777216"),
    FIELD_UINT(memory_limiter_settings, limit_percentage,
               "The same as limit_mib, in percent of the memory of the cgroup or the machine.",
               .max = "100"),
    FIELD_UINT(memory_limiter_settings, spike_limit_percentage,
               "The same as spike_limit_mib, in percent; 0: a fifth of the limit.", .max = "100"),
    FIELD_DURATION(memory_limiter_settings, min_gc_interval_when_soft_limited, NO_GC,
                   .fallback = "10s", .ignored = true),
    FIELD_DURATION(memory_limiter_settings, min_gc_interval_when_hard_limited, NO_GC,
                   .ignored = true),
    FIELD_DURATION(memory_limiter_settings, max_gc_interval_when_soft_limited, NO_GC,
                   .fallback = "30s", .ignored = true),
    FIELD_DURATION(memory_limiter_settings, max_gc_interval_when_hard_limited, NO_GC,
                   .fallback = "30s", .ignored = true),
    FIELD_END,
};

static void check_settings(void *config, struct config_check *check)
{
    const struct memory_limiter_settings *settings = config;
    if (settings->check_interval <= 0)
        config_check_error(check, "check_interval", "must be greater than zero, for example 1s");
    if (settings->limit_mib == 0 && settings->limit_percentage == 0)
        config_check_error(check, "", "limit_mib or limit_percentage must be greater than zero");
    if (settings->limit_mib > 0 && settings->spike_limit_mib >= settings->limit_mib)
        config_check_error(check, "spike_limit_mib", "must be smaller than limit_mib");
    if (settings->limit_percentage > 0 &&
        settings->spike_limit_percentage >= settings->limit_percentage)
        config_check_error(check, "spike_limit_percentage",
                           "must be smaller than limit_percentage");
}

/* ---- limits ---- */

struct limits {
    size_t hard_bytes; /* limit_mib */
    size_t soft_bytes; /* limit_mib minus spike_limit_mib */
};

static size_t or_fifth(size_t spike_bytes, size_t limit_bytes)
{
    return spike_bytes > 0 ? spike_bytes : limit_bytes / 5;
}

static size_t percent_of(size_t bytes, uint64_t percentage)
{
    assert(percentage <= 100);
    return bytes / 100 * percentage + bytes % 100 * percentage / 100;
}

/* Returns the limits in bytes. memory: bytes of the cgroup or the machine. limit_mib takes
 * precedence over limit_percentage. */
static struct limits limits_of(const struct memory_limiter_settings *settings, size_t memory)
{
    size_t limit, spike;
    if (settings->limit_mib > 0) {
        limit = (size_t)settings->limit_mib << 20;
        spike = or_fifth((size_t)settings->spike_limit_mib << 20, limit);
    } else {
        limit = percent_of(memory, settings->limit_percentage);
        spike = or_fifth(percent_of(memory, settings->spike_limit_percentage), limit);
    }
    if (limit > memory)
        limit = memory;
    return (struct limits){limit, spike < limit ? limit - spike : limit / 5};
}

/* Returns the part of the limit that requests may use, in bytes. The join's index gets an eighth
 * of the limit. Small clients, and the encoded copies of exporters, get a quarter each of what
 * requests have (core/base/budget.h, core/pipeline/delivery.h). */
static size_t requests_share(struct limits limits)
{
    assert(limits.soft_bytes <= limits.hard_bytes);
    size_t index = limits.hard_bytes / 8;
    size_t share = limits.soft_bytes > index ? (limits.soft_bytes - index) / 3 * 2 : 0;
    return share > limits.soft_bytes / 4 ? share : limits.soft_bytes / 4;
}

/* The first limiter replaces the limits of the process; another one can only raise them. */
static void limit_process(struct process *process, struct limits limits, size_t requests)
{
    if (atomic_load_explicit(&process->phase, memory_order_acquire) != PROCESS_STARTING)
        return;
    bool is_first = !process->is_limited;
    if (is_first || limits.hard_bytes > process->memory_limit_bytes)
        process->memory_limit_bytes = limits.hard_bytes;
    if (is_first || requests > process->budget->limit_bytes)
        process->budget->limit_bytes = requests;
    process->is_limited = true;
}

/* All workers and jobs read the process's limit, so a reload does not change it: a lower one counts
 * for the data that passes this limiter. */
static void keep_below_process(struct memory_limiter *limiter)
{
    size_t most = limiter->component.process->budget->limit_bytes;
    if (limiter->requests_bytes > most) {
        log_warn(log_component(limiter->component.label),
                 "The memory limit of the process stays as it is until profcol is restarted");
        limiter->requests_bytes = most;
    }
}

static void memory_limiter_prepare(struct component *component)
{
    struct memory_limiter *limiter = limiter_of(component);
    struct process *process = component->process;
    struct limits limits = limits_of(component->settings, process->system_memory_bytes);
    limiter->requests_bytes = requests_share(limits);
    limit_process(process, limits, limiter->requests_bytes);
    keep_below_process(limiter);
    log_info(log_component(component->label), "Memory limiter configured",
             LOG_U64("limit_mib", limits.hard_bytes >> 20),
             LOG_U64("spike_limit_mib", (limits.hard_bytes - limits.soft_bytes) >> 20),
             LOG_U64("requests_mib", limiter->requests_bytes >> 20));
}

/* ---- nodes ---- */

static struct counter *make_counter(const struct node *node, const char *what, const char *help)
{
    struct text name = {0}, labels = {0};
    text_printf(&name, METRICS_COLLECTOR "processor_memory_limiter_%s_%s", what,
                signal_item_name(node->signal));
    metrics_label(&labels, "processor", node->component->id);
    struct counter *counter = metrics_counter(node->component->process->metrics, text_string(&name),
                                              help, text_string(&labels));
    text_deinit(&name);
    text_deinit(&labels);
    return counter;
}

static bool memory_limiter_node_start(struct node *node, struct error *err)
{
    (void)err;
    struct memory_limiter_node *limiter = node_of(node);
    limiter->accepted = make_counter(node, "accepted", "Items that passed.");
    limiter->refused =
        make_counter(node, "refused", "Items that were refused because memory was short.");
    return true;
}

/* Whether memory use is above this limiter's limit, which may be lower than the process's. */
static bool is_over_own_limit(const struct node *node)
{
    const struct memory_limiter *limiter = limiter_of(node->component);
    const struct budget *budget = node->component->process->budget;
    return limiter->requests_bytes < budget->limit_bytes &&
           budget_used(budget) > limiter->requests_bytes;
}

static void memory_limiter_consume(struct node *node, struct batch *batch)
{
    struct memory_limiter_node *limiter = node_of(node);
    uint32_t items = batch->items;
    if (!is_over_own_limit(node)) {
        counter_add(limiter->accepted, node->worker->index, items);
        node_forward(node, batch);
        return;
    }
    if (!node_refuse(node, batch, REFUSED_FAILED, &verdict_over_budget))
        counter_add(limiter->refused, node->worker->index, items);
}

const struct component_type memory_limiter_processor_type = {
    .config =
        {
            .name = "memory_limiter",
            .section = CONFIG_PROCESSORS,
            .stability = {[CONFIG_TRACES] = STABILITY_BETA,
                          [CONFIG_PROFILES] = STABILITY_ALPHA,
                          [CONFIG_METRICS] = STABILITY_ALPHA,
                          [CONFIG_LOGS] = STABILITY_ALPHA},
            .help = "Sets how much memory profcol may use for data, instead of a quarter of the "
                    "container's memory for requests. Beyond that, clients are told to try again.",
            .fields = memory_limiter_fields,
            .config_size = sizeof(struct memory_limiter_settings),
            .check = check_settings,
        },
    .component_size = sizeof(struct memory_limiter),
    .prepare = memory_limiter_prepare,
    .node_size = sizeof(struct memory_limiter_node),
    .node_start = memory_limiter_node_start,
    .consume = memory_limiter_consume,
    .passes_empty = true,
};

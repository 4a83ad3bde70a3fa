/*
 * filter_processor: drops what an OTTL condition is true for.
 *
 * It is the Collector's `filter` processor, for traces and profiles down to the events of a span
 * and the samples of a profile, and for metrics and logs down to their scopes. What is left of a
 * request goes on; of nothing, the sender is told success.
 *
 * Owner: the component owns the programs, which are read-only; each node its evaluators.
 *
 * Thread: that of each node; large batches are filtered in a job.
 */
#include "core/base/memory.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/large_batches.h"
#include "processors/filter/filter_walk.h"

/* A condition on each span or sample takes about 100 ns; the worst ones 80 ns for each byte. */
enum { LARGE_BYTES = 512 << 10 };

extern const struct component_type filter_processor_type;

struct filter_component {
    struct component component; /* first */
    struct filter_signal {
        const struct filter_plan *plan;
        struct ottl_program **programs; /* of each condition */
        struct counter **dropped;       /* by each condition */
        struct counter *filtered;       /* as the Collector counts */
    } signals[SIGNAL_COUNT];
};

struct filter_node {
    struct node node; /* first */
    struct large_batches batches;
    struct filter_walk walk;
};

static struct filter_component *component_of(struct component *component)
{
    return component_as(struct filter_component, component, &filter_processor_type);
}

static struct filter_node *node_of(struct node *node)
{
    return node_as(struct filter_node, node, &filter_processor_type);
}

/* ---- the component ---- */

static struct counter *condition_counter(struct filter_component *filter, enum signal signal,
                                         const struct filter_condition *condition)
{
    struct text labels = {0}, name = {0};
    bool is_event = condition->context == OTTL_SPAN_EVENT;
    metrics_label(&labels, "processor", filter->component.id);
    metrics_label(&labels, "condition", condition->place);
    text_printf(&name, "profcol_filter_dropped_%s",
                is_event ? "span_events" : signal_item_name(signal));
    struct counter *counter = metrics_counter(
        filter->component.process->metrics, text_string(&name),
        "Items that a condition of the processor filter has dropped.", text_string(&labels));
    text_deinit(&labels);
    text_deinit(&name);
    return counter;
}

static struct counter *signal_counter(struct filter_component *filter, enum signal signal)
{
    static const char *const names[SIGNAL_COUNT] = {
        [SIGNAL_TRACES] = METRICS_COLLECTOR "processor_filter_spans_filtered",
        [SIGNAL_PROFILES] = METRICS_COLLECTOR "processor_filter_profiles_filtered",
        [SIGNAL_METRICS] = METRICS_COLLECTOR "processor_filter_datapoints_filtered",
        [SIGNAL_LOGS] = METRICS_COLLECTOR "processor_filter_logs_filtered"};
    struct text labels = {0};
    metrics_label(&labels, "filter", filter->component.id);
    struct counter *counter =
        metrics_counter(filter->component.process->metrics, names[signal],
                        "Items that the processor filter has dropped (of profiles: samples).",
                        text_string(&labels));
    text_deinit(&labels);
    return counter;
}

static bool init_signal(struct filter_component *filter, enum signal signal, struct error *err)
{
    struct filter_signal *of = &filter->signals[signal];
    of->programs = memory_zalloc((of->plan->count + 1) * sizeof(struct ottl_program *));
    of->dropped = memory_zalloc((of->plan->count + 1) * sizeof(struct counter *));
    if (of->plan->count > 0)
        of->filtered = signal_counter(filter, signal);
    for (uint32_t i = 0; i < of->plan->count; i++) {
        of->programs[i] = filter_condition_compile(&of->plan->conditions[i], err);
        if (!of->programs[i])
            return false;
        of->dropped[i] = condition_counter(filter, signal, &of->plan->conditions[i]);
    }
    return true;
}

static void filter_deinit(struct component *component)
{
    struct filter_component *filter = component_of(component);
    for (int signal = 0; signal < SIGNAL_COUNT; signal++) {
        struct filter_signal *of = &filter->signals[signal];
        for (uint32_t i = 0; of->programs && i < of->plan->count; i++)
            ottl_program_free(of->programs[i]);
        free(of->programs);
        free(of->dropped);
    }
}

static bool filter_init(struct component *component, struct error *err)
{
    struct filter_component *filter = component_of(component);
    const struct filter_settings *settings = component->settings;
    for (int signal = 0; signal < SIGNAL_COUNT; signal++) {
        filter->signals[signal].plan = &settings->plans[signal];
        if (!init_signal(filter, (enum signal)signal, err)) {
            filter_deinit(component);
            return false;
        }
    }
    return true;
}

/* ---- nodes ---- */

static uint64_t filter_batch(struct node *node, struct batch *batch)
{
    struct filter_walk *walk = &node_of(node)->walk;
    filter_walk_batch(walk, batch);
    if (walk->changed && walk->has_groups)
        /* what was dropped must not leave in the dictionary */
        batch_prune_marked(batch, walk->has_marks ? &walk->marks : NULL);
    return 0; /* the walk says it all */
}

static void count_dropped(const struct filter_node *filter, enum signal signal)
{
    const struct filter_signal *of = &component_of(filter->node.component)->signals[signal];
    const struct filter_walk *walk = &filter->walk;
    unsigned worker = filter->node.worker->index;
    for (uint32_t i = 0; i < of->plan->count; i++)
        if (walk->dropped[i] > 0)
            counter_add(of->dropped[i], worker, walk->dropped[i]);
    if (walk->dropped_items > 0)
        counter_add(of->filtered, worker, walk->dropped_items);
}

static void forward_filtered(struct node *node, struct batch *batch, uint64_t result)
{
    const struct filter_node *filter = node_of(node);
    (void)result;
    count_dropped(filter, batch->signal);
    if (!filter->walk.has_groups) {
        batch_drop(batch, &verdict_ok);
    } else if (filter->walk.errors.failed) {
        struct verdict verdict = ottl_errors_verdict(&filter->walk.errors, batch->acknowledged);
        node_refuse(node, batch, REFUSED_FAILED, &verdict);
    } else {
        node_forward(node, batch);
    }
}

static const struct batch_work filter_work = {
    .work = filter_batch, .forward = forward_filtered, .large_bytes = LARGE_BYTES};

static void filter_consume(struct node *node, struct batch *batch)
{
    if (component_of(node->component)->signals[batch->signal].plan->count == 0)
        node_forward(node, batch);
    else
        large_batches_add(&node_of(node)->batches, batch);
}

static bool filter_node_start(struct node *node, struct error *err)
{
    struct filter_component *filter = component_of(node->component);
    const struct filter_signal *of = &filter->signals[node->signal];
    (void)err;
    filter_walk_init(&node_of(node)->walk, of->plan, filter->component.label, of->programs);
    large_batches_init(&node_of(node)->batches, node, &filter_work);
    return true;
}

static bool filter_is_idle(const struct node *node)
{
    return large_batches_is_empty(
        &node_as(const struct filter_node, node, &filter_processor_type)->batches);
}

static void filter_node_stop(struct node *node)
{
    large_batches_stop(&node_of(node)->batches);
    filter_walk_deinit(&node_of(node)->walk);
}

const struct component_type filter_processor_type = {
    .config =
        {
            .name = "filter",
            .section = CONFIG_PROCESSORS,
            .stability = {[CONFIG_TRACES] = STABILITY_ALPHA,
                          [CONFIG_PROFILES] = STABILITY_DEVELOPMENT,
                          [CONFIG_METRICS] = STABILITY_DEVELOPMENT,
                          [CONFIG_LOGS] = STABILITY_DEVELOPMENT},
            .help = "Drops spans, events of spans, profiles and samples that an OTTL condition is "
                    "true for, and resources and scopes of all signals.",
            .fields = filter_fields,
            .config_size = sizeof(struct filter_settings),
            .check = filter_check,
            .checks_despite_mistakes = true,
        },
    .component_size = sizeof(struct filter_component),
    .init = filter_init,
    .deinit = filter_deinit,
    .node_size = sizeof(struct filter_node),
    .node_start = filter_node_start,
    .consume = filter_consume,
    .is_idle = filter_is_idle,
    .node_stop = filter_node_stop,
};

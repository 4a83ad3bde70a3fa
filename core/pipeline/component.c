#include "core/pipeline/component.h"

#include "core/base/memory.h"

#include <assert.h>

/* The Collector's buckets, which are in milliseconds although the values are seconds. */
static struct histogram *make_duration(struct metrics *metrics, const char *labels)
{
    static const double bounds[] = {0,   5,   10,   25,   50,   75,   100,  250,
                                    500, 750, 1000, 2500, 5000, 7500, 10000};
    return metrics_histogram(
        metrics, METRICS_COLLECTOR "processor_internal_duration",
        "Duration of time taken to process a batch of telemetry data through the processor.",
        labels, bounds, sizeof bounds / sizeof bounds[0]);
}

/* The Collector's metrics of each processor. */
static void count_items(struct node *node)
{
    struct metrics *metrics = node->component->process->metrics;
    struct text text = {0};
    metrics_label(&text, "processor", node->component->id);
    metrics_label(&text, "otel_signal", signal_name(node->signal));
    const char *labels = text_string(&text);
    node->incoming = metrics_counter(metrics, METRICS_COLLECTOR "processor_incoming_items",
                                     "Number of items passed to the processor.", labels);
    node->outgoing = metrics_counter(metrics, METRICS_COLLECTOR "processor_outgoing_items",
                                     "Number of items emitted from the processor.", labels);
    if (metrics_are_detailed(metrics))
        node->duration = make_duration(metrics, labels);
    text_deinit(&text);
}

static struct log_origin origin_of(const struct node *node)
{
    enum config_section section = node->component->type->config.section;
    bool has_signal = section != CONFIG_RECEIVERS && section != CONFIG_EXTENSIONS;
    return (struct log_origin){.component = node->component->label,
                               .signal = has_signal ? signal_name(node->signal) : NULL,
                               .pipeline = node->pipeline};
}

struct node *component_node_new(struct component *component, struct worker *worker,
                                enum signal signal, const char *pipeline)
{
    const struct component_type *type = component->type;
    assert(type->node_size == 0 || type->node_size >= sizeof(struct node));
    struct node *node = memory_zalloc(type->node_size ? type->node_size : sizeof *node);
    node->component = component;
    node->worker = worker;
    node->signal = signal;
    node->pipeline = pipeline;
    node->origin = origin_of(node);
    node->consume = type->consume;
    node->joins_threads = type->joins_threads;
    node->reads_empty = type->reads_empty;
    node->passes_empty = type->passes_empty;
    node->holds = type->holds;
    for (int s = 0; s < SIGNAL_COUNT; s++)
        outlet_init(&node->outlets[s], node, (enum signal)s);
    if (type->config.section == CONFIG_PROCESSORS)
        count_items(node);
    return node;
}

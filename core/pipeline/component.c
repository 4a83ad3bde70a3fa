#include "core/pipeline/component.h"

#include "core/base/memory.h"

#include <assert.h>

static struct counter *make_counter(const struct node *node, const char *name, const char *help)
{
    struct text labels = {0};
    metrics_label(&labels, "processor", node->component->id);
    metrics_label(&labels, "otel_signal", signal_name(node->signal));
    struct counter *counter =
        metrics_counter(node->component->process->metrics, name, help, text_string(&labels));
    text_deinit(&labels);
    return counter;
}

/* The Collector's two counters of each processor. */
static void count_items(struct node *node)
{
    node->incoming = make_counter(node, METRICS_COLLECTOR "processor_incoming_items",
                                  "Number of items passed to the processor.");
    node->outgoing = make_counter(node, METRICS_COLLECTOR "processor_outgoing_items",
                                  "Number of items emitted from the processor.");
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
    node->consume = type->consume;
    node->holds = type->holds;
    for (int s = 0; s < SIGNAL_COUNT; s++)
        outlet_init(&node->outlets[s], node, (enum signal)s);
    if (type->config.section == CONFIG_PROCESSORS)
        count_items(node);
    return node;
}

#include "core/pipeline/component.h"

#include "core/base/memory.h"

#include <assert.h>

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
    return node;
}

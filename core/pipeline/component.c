#include "core/pipeline/component.h"

#include <assert.h>

void node_forward(struct node *node, struct batch *batch)
{
    outlet_forward(&node->outlets[batch->signal], batch);
}

void node_drained(struct node *node)
{
    assert(node->draining && !node->drained);
    node->drained = true;
}

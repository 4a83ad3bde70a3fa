#include "core/pipeline/component.h"

#include <assert.h>

static void offer(struct node *next, struct batch *batch)
{
    static const struct verdict stopped = {
        .code = GRPC_UNAVAILABLE, .retry_after_ns = -1, .text = "shutting down"};
    if (next->stopped)
        batch_drop(batch, &stopped);
    else
        next->component->type->consume(next, batch);
}

void node_forward(struct node *node, struct batch *batch)
{
    struct outlet *outlet = &node->outlets[batch->signal];
    assert(outlet->count > 0 && batch->owner == node->worker);
    struct receipt *receipt = batch->receipt;
    if (receipt && outlet->count > 1)
        receipt_add_parts(receipt, (uint32_t)outlet->count - 1);
    /* The clones first: the batch itself goes to the last, which then finds its buffers shared but
     * its tree its own. */
    for (size_t i = 0; i + 1 < outlet->count; i++) {
        struct batch *clone = batch_clone(batch);
        clone->receipt = receipt;
        offer(outlet->nodes[i], clone);
    }
    offer(outlet->nodes[outlet->count - 1], batch);
}

void node_drained(struct node *node)
{
    assert(node->draining && !node->drained);
    node->drained = true;
    node->on_drained(node);
}

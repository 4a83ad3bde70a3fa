#include "core/pipeline/threads_behind.h"

#include "core/data/sample_threads.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/node.h"

static bool node_joins(const struct node *node, enum signal signal)
{
    if (node->joins_threads && node->joins_threads(node->component))
        return true;
    return threads_behind_join(&node->outlets[signal]);
}

bool threads_behind_join(const struct outlet *outlet)
{
    for (size_t i = 0; i < outlet->count; i++)
        if (!node_joins(outlet->branches[i]->to, outlet->signal))
            return false;
    return outlet->count > 0;
}

bool threads_are_joined(const struct node *receiver)
{
    return receiver->outlets[SIGNAL_PROFILES].joins_threads;
}

void threads_behind_remove(struct batch *batch)
{
    batch->items =
        sample_threads_remove(&batch->parts[0].root, batch_dictionary(batch), &batch->arena);
    batch_prune(batch);
}

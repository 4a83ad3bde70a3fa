#include "core/pipeline/threads_behind.h"

#include "core/data/sample_threads.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/node.h"

static unsigned behind_node(const struct node *node, enum signal signal)
{
    unsigned added = node->joins_threads ? node->joins_threads(node->component) : 0;
    return added ? added : threads_behind(&node->outlets[signal]);
}

unsigned threads_behind(const struct outlet *outlet)
{
    unsigned all = 0;
    for (size_t i = 0; i < outlet->count; i++) {
        unsigned added = behind_node(outlet->branches[i]->to, outlet->signal);
        if (added == 0)
            return 0;
        all |= added;
    }
    return all;
}

unsigned threads_behind_receiver(const struct node *receiver)
{
    return receiver->outlets[SIGNAL_PROFILES].added_threads;
}

void threads_behind_remove(struct batch *batch)
{
    batch->items =
        sample_threads_remove(&batch->parts[0].root, batch_dictionary(batch), &batch->arena);
    batch_prune(batch);
}

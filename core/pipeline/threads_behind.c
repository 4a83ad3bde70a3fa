#include "core/pipeline/threads_behind.h"

#include "core/data/sample_threads.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/node.h"

static unsigned behind_outlet(const struct outlet *outlet);

static unsigned behind_node(const struct node *node)
{
    unsigned added = node->joins_threads ? node->joins_threads(node->component) : 0;
    return added ? added : behind_outlet(&node->outlets[SIGNAL_PROFILES]);
}

static unsigned behind_outlet(const struct outlet *outlet)
{
    unsigned all = 0;
    for (size_t i = 0; i < outlet->count; i++)
        all |= behind_node(outlet->branches[i]->to);
    return all;
}

void threads_look_behind(struct outlet *outlet)
{
    if (outlet->signal != SIGNAL_PROFILES)
        return;
    outlet->added_threads = 0;
    for (size_t i = 0; i < outlet->count; i++) {
        struct branch *branch = outlet->branches[i];
        branch->added_threads = behind_node(branch->to);
        outlet->added_threads |= branch->added_threads;
    }
}

unsigned threads_behind_receiver(const struct node *receiver)
{
    return receiver->outlets[SIGNAL_PROFILES].added_threads;
}

void threads_leave_at(const struct branch *branch, struct batch *batch)
{
    if (!batch->has_added_threads || branch->added_threads)
        return;
    batch->has_added_threads = false;
    if (!sample_threads_are_in(batch_dictionary(batch)))
        return;
    batch->items =
        sample_threads_remove(&batch->parts[0].root, batch_dictionary(batch), &batch->arena);
    batch_prune(batch);
}

#include "core/pipeline/threads_behind.h"

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

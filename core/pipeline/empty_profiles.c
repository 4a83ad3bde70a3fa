#include "core/pipeline/empty_profiles.h"

#include "core/pipeline/node.h"

bool node_takes_empty_profiles(const struct node *node)
{
    return node->reads_empty ||
           (node->passes_empty && empty_profiles_are_read(&node->outlets[SIGNAL_PROFILES]));
}

bool empty_profiles_are_read(const struct outlet *outlet)
{
    for (size_t i = 0; i < outlet->count; i++)
        if (node_takes_empty_profiles(outlet->branches[i]->to))
            return true;
    return false;
}

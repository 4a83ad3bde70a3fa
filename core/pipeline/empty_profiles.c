#include "core/pipeline/empty_profiles.h"

#include "core/pipeline/node.h"

/* Whether a component behind the node reads them. */
static bool are_read_behind(const struct node *node)
{
    const struct outlet *outlet = &node->outlets[SIGNAL_PROFILES];
    for (size_t i = 0; i < outlet->count; i++)
        if (node_takes_empty_profiles(outlet->branches[i]->to))
            return true;
    return false;
}

bool node_takes_empty_profiles(const struct node *node)
{
    return node->reads_empty || (node->passes_empty && are_read_behind(node));
}

bool empty_profiles_are_removed(const struct node *receiver)
{
    const struct outlet *outlet = &receiver->outlets[SIGNAL_PROFILES];
    for (size_t i = 0; i < outlet->count; i++) {
        const struct node *to = outlet->branches[i]->to;
        if (!to->reads_empty && !(to->passes_empty && empty_profiles_are_removed(to)))
            return false;
    }
    return outlet->count > 0;
}

bool profiles_are_wanted(const struct node *receiver, uint32_t samples)
{
    return samples > 0 || are_read_behind(receiver);
}

#include "core/pipeline/batch_join.h"

#include "core/base/budget.h"
#include "core/data/profiles_merge.h"
#include "core/data/signals.h"
#include "core/pipeline/batch.h"

#include <assert.h>

static struct batch *concatenate(struct batch *list)
{
    struct batch *joined = list;
    list = list->next;
    joined->next = NULL;
    while (list) {
        struct batch *next = list->next;
        list->next = NULL;
        batch_append(joined, list);
        list = next;
    }
    return joined;
}

static struct budget *common_budget(const struct batch *list)
{
    struct budget *budget = list->arena.budget;
    for (const struct batch *batch = list->next; batch; batch = batch->next)
        budget = budget_of_both(budget, batch->arena.budget);
    return budget;
}

static struct batch *join_profiles(struct batch *list)
{
    struct batch *first = list;
    struct profiles_merge *merge = profiles_merge_new(common_budget(list));
    uint64_t peer = first->peer;
    bool links_are_labels = true, has_added_threads = false;
    for (struct batch *batch = list; batch; batch = batch->next) {
        assert(batch->signal == SIGNAL_PROFILES && !batch->receipt);
        assert(batch->part_count == 1 && batch->owner == first->owner);
        peer = batch->peer == peer ? peer : 0;
        links_are_labels &= batch->links_are_labels;
        has_added_threads |= batch->has_added_threads;
        batch_flatten(batch);
        profiles_merge_add(merge, batch->parts[0].buffer);
    }
    uint32_t items = profiles_merge_items(merge);
    struct buffer *buffer = profiles_merge_finish(merge);
    profiles_merge_free(merge);
    struct batch *joined =
        batch_new(first->owner, SIGNAL_PROFILES, buffer, items, NULL, context_ref(first->context));
    joined->arrived_ns = first->arrived_ns;
    joined->peer = peer;
    joined->links_are_labels = links_are_labels;
    joined->has_added_threads = has_added_threads;
    batch_copy_way(joined, first);
    while (list) {
        struct batch *next = list->next;
        batch_free(list);
        list = next;
    }
    return joined;
}

struct batch *batch_join(struct batch *list)
{
    assert(list);
    if (!list->next)
        return list;
    return signal_concatenates(list->signal) ? concatenate(list) : join_profiles(list);
}

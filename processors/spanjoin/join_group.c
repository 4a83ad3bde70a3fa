#include "processors/spanjoin/join_group.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>

struct join_group *join_group_new(void)
{
    struct join_group *group = memory_zalloc(sizeof *group);
    atomic_init(&group->references, 1);
    return group;
}

struct join_group *join_group_ref(struct join_group *group)
{
    atomic_fetch_add_explicit(&group->references, 1, memory_order_relaxed);
    return group;
}

void join_group_unref(struct join_group *group)
{
    if (atomic_fetch_sub_explicit(&group->references, 1, memory_order_acq_rel) > 1)
        return;
    for (unsigned worker = 0; worker < WORKERS_MAX; worker++)
        for (unsigned signal = 0; signal < SIGNAL_OPENED_COUNT; signal++)
            assert(group->nodes[worker][signal].count == 0);
    free(group);
}

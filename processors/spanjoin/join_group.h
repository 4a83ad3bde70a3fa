/*
 * join_group: the joins that share an index: a component, and those that reloads have replaced by
 * it, until they have drained.
 *
 * What one of them adds to the index may be what a request of another one waits for: the component
 * that was replaced sends on its uploads, and spans that its successor holds wait for them. So a
 * request that is woken is looked for in all nodes of its worker. Ids of holds differ between
 * them.
 *
 * Owner: each join has a reference; the last one frees the group, when no node is in it any more.
 *
 * Thread: references: any. The nodes of a worker: that worker, or main while the workers wait.
 */
#ifndef PROFCOL_SPANJOIN_JOIN_GROUP_H
#define PROFCOL_SPANJOIN_JOIN_GROUP_H

#include "core/base/list.h"
#include "core/base/worker.h"
#include "core/data/otlp.h"
#include "processors/spanjoin/tenants_seen.h"

#include <stdatomic.h>

struct join_group {
    atomic_uint references;
    struct list nodes[WORKERS_MAX][SIGNAL_OPENED_COUNT]; /* of struct spanjoin_node, by worker and
                                                            signal; the oldest first */
    struct tenants_seen tenants;
};

/* Creates a group, with one reference. */
struct join_group *join_group_new(void);
/* Adds a reference, and returns the group. */
struct join_group *join_group_ref(struct join_group *group);
void join_group_unref(struct join_group *group);

#endif

/*
 * outlet: connects a node to the nodes that come next, and tracks the result of each batch at each
 * of these branches.
 *
 * A node passes each batch on once. If there are several branches, each gets a clone, and the
 * outlet tracks which of them accepted it. A branch that accepted a batch is never offered it
 * again. If a batch was acknowledged to its sender and a branch refuses it temporarily, the branch
 * hands it back (node_refuse), and the outlet keeps it for that branch alone:
 *
 * - with one branch: until the branch accepts it. Its receipt stays open, so it counts within the
 *   limits of its holder.
 * - with several branches, if none accepted it: the same, for each branch.
 * - with several branches, if one accepted it: a full branch drops it, counted and logged; during
 *   the drain the outlet waits for the branch instead. A branch that could not deliver it keeps it
 *   for five minutes, within its own limit (node.h). While a branch waits for room in its queue
 *   with block_on_overflow, the batch is not settled.
 *
 * The last rule also holds for outlets behind a branch that forward the same batch with its
 * receipt, as through a connector, whether they have one branch or several.
 *
 * A batch whose sender still waits for the answer is never kept: the sender is refused if no branch
 * accepts it. With block_on_overflow, room is reserved in all such queues before any branch gets
 * the batch. The batch waits here for the room; its sender waits at most ROOM_WAIT_NS.
 *
 * Batches enter a branch in the order of their arrival. One that could not be delivered waits apart
 * from them, so newer ones overtake it.
 *
 * Owner: the node. The outlet owns the batches that it keeps.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_OUTLET_H
#define PROFCOL_CORE_PIPELINE_OUTLET_H

#include "core/pipeline/node.h"

/* How long a sender waits for room behind block_on_overflow before it is refused. */
#define ROOM_WAIT_NS INT64_C(5000000000)
/* How long one of several branches keeps a batch that another branch accepted. */
#define BRANCH_AGE_MAX_NS UINT64_C(300000000000)

/* Why a node hands a batch back. */
enum refusal {
    REFUSED_FAILED,  /* this batch failed; another one may succeed */
    REFUSED_FULL,    /* there is no room for any batch */
    REFUSED_BLOCKED, /* the same, and the caller shall wait (block_on_overflow) */
};

/* Passes the batch to the next nodes for its signal, and takes ownership. Called once for each
 * batch, whatever happens to it there. */
void node_forward(struct node *node, struct batch *batch);
/* Passes the batch to some branches of the node's outlet for its signal, as if there were no
 * others. With block_on_overflow, room was reserved for all of them at the start of the path. */
void node_forward_to(struct node *node, struct batch *batch, struct branch *const *branches,
                     size_t count);
/* Refuses a batch that consume got. True: the batch was acknowledged to its
 * sender and may be accepted later, so the outlet before this node keeps it and offers it again.
 * False: its receipt was settled with the verdict; the node then counts it as refused.
 * In both cases the node no longer owns the batch. */
bool node_refuse(struct node *node, struct batch *batch, enum refusal refusal,
                 const struct verdict *verdict);

/* Initialises an outlet without branches. */
void outlet_init(struct outlet *outlet, struct node *from, enum signal signal);
/* Adds a branch. A node may be added twice: it then gets everything twice, as in the Collector. */
void outlet_add(struct outlet *outlet, struct node *to);
/* Starts the outlet, after all nodes behind it have started. */
void outlet_start(struct outlet *outlet);

/* Retries at once all batches that wait for a later attempt, and from now on at least every second.
 */
void outlet_drain(struct outlet *outlet);
/* Whether it keeps nothing, and every branch has settled every batch. */
bool outlet_is_idle(const struct outlet *outlet);
/* Gives up all kept batches: settles their receipts with "shutting down". Items that were
 * acknowledged and whose receipt is already settled are added to the process's lost_items. */
void outlet_stop(struct outlet *outlet);
/* Frees the branches. The outlet must be stopped. */
void outlet_deinit(struct outlet *outlet);

/* ---- for a reload (docs/architecture.md) ---- */

/* Gives the outlet other nodes that come next. Branches to nodes that stay are the same; those that
 * end are past ones, which take back what is on its way. */
void outlet_reconnect(struct outlet *outlet, struct node *const *to, size_t count);
/* Learns whether a queue behind it has block_on_overflow, and whether all profiles are joined by
 * thread. Call it when all are connected. */
void outlet_look_behind(struct outlet *outlet);
/* Whether batches that it passed on may come back to it. */
bool outlet_has_users(const struct outlet *outlet);
/* Whether a past branch has batches on their way to, or in, a node that drains. */
bool outlet_leads_to_draining(const struct outlet *outlet);
/* Frees past branches to nodes that are stopped. */
void outlet_forget_stopped(struct outlet *outlet);

#endif

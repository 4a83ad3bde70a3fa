/*
 * outlet_private: what the files of outlet share.
 *
 * outlet_branch.c offers batches to one branch and keeps what it hands back; outlet_fanout.c
 * combines the results of several branches; outlet_room.c waits for room behind block_on_overflow.
 *
 * Owner: the outlet owns what is kept, a branch's batch counts within the limits of its holder
 * unless it is charged.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_OUTLET_PRIVATE_H
#define PROFCOL_CORE_PIPELINE_OUTLET_PRIVATE_H

#include "core/base/container_of.h"
#include "core/base/metrics.h"
#include "core/base/worker.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/outlet.h"
#include "core/pipeline/queue.h"

/* What a sender is told when a queue has no room. */
extern const struct verdict outlet_no_room;

enum kept_reason { KEPT_FAILED, KEPT_FULL, KEPT_BLOCKED, KEPT_BEHIND /* not offered yet */ };

/* A batch that waits at a branch, or for room in all branches. */
struct kept {
    struct list_link link; /* of ready, later or waiting */
    struct list_link part; /* of its part's list, in a fan-out */
    struct timer timer;
    struct outlet *outlet;
    struct branch *branch; /* NULL: waits for room */
    struct batch *batch;
    enum kept_reason reason;
    struct budget *charged; /* NULL: whoever holds it bounds it */
    size_t charged_bytes;
};

static inline struct worker *outlet_worker(const struct outlet *outlet)
{
    return outlet->from->worker;
}

/* ---- outlet.c ---- */

/* Passes a batch, whose room is reserved or not needed, to all branches. */
void outlet_forward_now(struct outlet *outlet, struct batch *batch);
/* Counts items of a sender that is refused, for a line in the log every 10 s at most. */
void outlet_log_rejected(struct outlet *outlet, const struct verdict *why, uint32_t items);

/* ---- outlet_branch.c ---- */

/* Offers the batch to the branch, behind those that it keeps. */
void branch_offer_in_order(struct branch *branch, struct batch *batch);
/* For the branch's pace: offers the first one that is ready again. */
bool branch_offer_next(struct pace *pace);
/* Counts items that the branch lost, for a line in the log every 10 s at most. */
void branch_log_lost(struct branch *branch, uint64_t items);
/* Charges what a branch may keep of a batch that another one accepted; false: nothing. */
bool branch_keeps(struct kept *kept);
/* Returns the bytes that a kept batch takes. */
size_t kept_memory_of(const struct batch *batch);
/* Frees what is kept, but for the batch, which it returns. */
struct batch *kept_take(struct kept *kept);
/* The branch loses the batch: by its own policy, or because it is stopped. */
void kept_lose(struct kept *kept);

/* ---- outlet_fanout.c ---- */

/* Passes the batch to several branches. */
void fanout_forward(struct outlet *outlet, struct batch *batch);
/* Returns the list of what the branch keeps of a batch that went to several branches. NULL: the
 * outlet has one branch, or the batch was joined from several. */
struct list *fanout_kept_of(const struct branch *branch, const struct batch *batch);
/* Whether another branch accepted the batch and its sender was told, so that this branch alone
 * answers for its part. */
bool fanout_is_settled_elsewhere(const struct branch *branch, const struct batch *batch);
/* Whether another branch accepted some of the batch, so that nobody else will say that the rest is
 * lost. */
bool fanout_is_accepted_elsewhere(const struct branch *branch, const struct batch *batch);

/* ---- outlet_room.c ---- */

/* Passes the batch on once there is room for it in all queues with block_on_overflow. */
void outlet_forward_reserved(struct outlet *outlet, struct batch *batch);
/* For the outlet's pace `rooms`: passes on the first one that waits for room. */
bool outlet_forward_waiting(struct pace *pace);

#endif

/*
 * outlet_private: what the files of outlet share.
 *
 * outlet_branch.c offers batches to one branch and keeps those that it hands back; outlet_fanout.c
 * combines the results of several branches; outlet_room.c waits for room behind block_on_overflow.
 *
 * Owner: the outlet owns the kept batches. A kept batch counts within the limits of its holder
 * unless `charged` or `share` is set.
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

/* Verdict for a sender when a queue has no room. */
extern const struct verdict outlet_no_room;

enum kept_reason { KEPT_FAILED, KEPT_FULL, KEPT_BLOCKED, KEPT_BEHIND /* not offered yet */ };

/* A batch that waits at a branch, or for room in all branches. */
struct kept {
    struct list_link link; /* of ready, later or waiting */
    struct list_link part; /* of its part's list, in a fan-out */
    struct timer timer;
    struct outlet *outlet;
    struct branch *branch; /* NULL: waits for room in all branches */
    struct batch *batch;
    enum kept_reason reason;
    struct budget *charged; /* NULL: counts within its holder's limits, or `share` */
    struct share *share;    /* that it counts in; NULL: in none */
    size_t charged_bytes;   /* in either */
    size_t lent_bytes;      /* the part of them that is borrowed */
};

static inline struct worker *outlet_worker(const struct outlet *outlet)
{
    return outlet->from->worker;
}

/* ---- outlet.c ---- */

/* Passes a batch, whose room is reserved or not needed, to all branches. */
void outlet_forward_now(struct outlet *outlet, struct batch *batch);
/* Counts refused items; logs the total at most every 10 s. */
void outlet_log_rejected(struct outlet *outlet, const struct verdict *why, uint32_t items);

/* ---- outlet_branch.c ---- */

/* Offers the batch to the branch, after those that wait for the branch in order (`ready`). */
void branch_offer_in_order(struct branch *branch, struct batch *batch);
/* `next` of the branch's pace: offers the first kept batch that is ready. */
bool branch_offer_next(struct pace *pace);
/* Counts items that the branch lost; logs the total at most every 10 s. */
void branch_log_lost(struct branch *branch, uint64_t items);
/* Charges the branch for a kept batch that another branch accepted. Returns false if the branch
 * may not keep it. */
bool branch_keeps(struct kept *kept);
/* Returns the bytes that a kept batch takes. */
size_t kept_memory_of(const struct batch *batch);
/* Frees `kept` and returns its batch. */
struct batch *kept_take(struct kept *kept);
/* Drops the batch, because the branch may not keep it or is stopped, and frees `kept`. */
void kept_lose(struct kept *kept);

/* ---- outlet_fanout.c ---- */

/* Passes the batch to several branches of the outlet. */
void fanout_forward(struct outlet *outlet, struct batch *batch, struct branch *const *branches,
                    size_t count);
/* Returns the list of kept batches of the part that the batch belongs to, that of the last fan-out
 * on its way. NULL if it went through none, or if it was merged from several. */
struct list *fanout_kept_of(const struct batch *batch);
/* Whether another branch of a fan-out on the batch's way accepted it and the receipt is settled, so
 * that the branch that has it now is responsible for it alone. */
bool fanout_is_settled_elsewhere(const struct batch *batch);
/* Whether another branch accepted some of the batch. The caller must then count and log the rest
 * if it is lost. */
bool fanout_is_accepted_elsewhere(const struct batch *batch);

/* ---- outlet_room.c ---- */

/* Passes the batch on once there is room for it in all queues with block_on_overflow. */
void outlet_forward_reserved(struct outlet *outlet, struct batch *batch);
/* `next` of the outlet's pace `rooms`: passes on the first batch that waits for room. */
bool outlet_forward_waiting(struct pace *pace);

#endif

/*
 * outlet: the way on from a node, and what became of each batch at each of its branches.
 *
 * A node hands each batch on once. Where the way parts, every branch gets a clone, and the outlet
 * knows which of them took it. A branch that took a batch is never offered it again. A batch that
 * was acknowledged to its sender and that a branch refuses for now is handed back (node_refuse) and
 * kept here, for that branch alone:
 *
 * - one branch: until it is taken. Its receipt stays open, so it counts within the bounds of
 *   whoever holds it.
 * - several, none of which took it: the same; each is offered it again.
 * - several, one of which took it: a branch that is full loses it, counted and logged; at the end
 *   of the process it is waited for instead. One that could not deliver it keeps it within the
 *   branch's own bound (component.h) for five minutes.
 *   While one waits for room in its queue with block_on_overflow, the batch is not settled.
 *
 * A batch whose sender still waits for the answer is never kept: the sender is refused when no
 * branch takes it. Behind queues with block_on_overflow, room is reserved in all of them before any
 * branch gets the batch; it waits here for that, its sender at most ROOM_WAIT_NS.
 *
 * Batches enter a branch in the order in which they came; one that could not be delivered waits
 * apart from them, so that later ones overtake it.
 *
 * Owner: the node. The outlet owns the batches that it keeps.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_OUTLET_H
#define PROFCOL_CORE_PIPELINE_OUTLET_H

#include "core/base/list.h"
#include "core/base/log.h"
#include "core/base/metrics.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/offer.h"

struct node;
struct outlet;

/* How long a sender waits for room behind block_on_overflow before it is refused. */
#define ROOM_WAIT_NS INT64_C(5000000000)
/* How long a branch of several keeps what another branch took. */
#define BRANCH_AGE_MAX_NS UINT64_C(300000000000)

/* Why a node hands a batch back. */
enum refusal {
    REFUSED_FAILED,  /* it could not be delivered for now; the next one may be */
    REFUSED_FULL,    /* there is no room; the next one would be refused as well */
    REFUSED_BLOCKED, /* the same, and the queue's owner wants whoever offers to wait */
};

struct branch {
    struct outlet *outlet;
    struct node *to;
    struct offers offers;   /* of `ready` */
    struct list ready;      /* of kept: offered in this order */
    struct list later;      /* of kept: each waits for its own timer */
    struct backoff backoff; /* while it is full */
    struct verdict refusal; /* the last "try later" */
    struct counter *lost;
    struct gauge *kept;
    struct verdict loss; /* why the last one was lost */
    struct log_interval losses;
};

struct outlet {
    struct node *from;
    enum signal signal;
    struct branch **branches;
    size_t count;
    bool blocks;         /* a queue behind it has block_on_overflow */
    struct offers rooms; /* of `waiting` */
    struct list waiting; /* of kept, for room in all branches, in order */
    struct node *full;   /* where there was no room last */
    size_t fanouts;      /* batches of which a branch has not settled its part */
    struct log_interval rejections;
    bool draining;
    bool stopped;
};

void outlet_init(struct outlet *outlet, struct node *from, enum signal signal);
/* Adds a branch. A node may be added twice: it then gets everything twice, as in the Collector. */
void outlet_add(struct outlet *outlet, struct node *to);
/* When all nodes behind it are started. */
void outlet_start(struct outlet *outlet);

/* Takes over the batch, which was not offered before. */
void outlet_forward(struct outlet *outlet, struct batch *batch);
/* Tries at once what waits for a later attempt, and from now on at least every second. */
void outlet_drain(struct outlet *outlet);
/* Whether it keeps nothing and every batch was settled by every branch. */
bool outlet_is_idle(const struct outlet *outlet);
/* Gives up what is kept: receipts are settled with "shutting down"; items that were acknowledged
 * and whose receipt is settled already are added to the process's lost_items. */
void outlet_stop(struct outlet *outlet);
void outlet_deinit(struct outlet *outlet);

#endif

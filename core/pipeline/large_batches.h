/*
 * large_batches: a node's work on its batches, in order: on small ones at once, on large ones in
 * jobs.
 *
 * For a processor whose work on a large batch would block the loop (docs/architecture.md, What
 * holds a loop). docs/data.md has a worked example.
 *
 *     node_start:  large_batches_init(&shorten->batches, node, &shorten_work);
 *     consume:     large_batches_add(&shorten->batches, batch);
 *     is_idle:     return large_batches_is_empty(&shorten->batches);
 *     node_stop:   large_batches_stop(&shorten->batches);
 *
 * A small batch is worked on inside large_batches_add, without memory or a copy, if no other one is
 * before it. A large one is lent to a job (core/base/job_queue.h), and those after it wait, so that
 * they are forwarded in the order of their arrival. Meanwhile a batch counts where it counted
 * before: its receipt is open and its reservation (block_on_overflow) is kept. It is dropped if its
 * sender gives up before it is forwarded.
 *
 * Owner: a member of the node. It owns the batches that wait or are in a job.
 *
 * Thread: the node's worker, except `work`.
 */
#ifndef PROFCOL_CORE_PIPELINE_LARGE_BATCHES_H
#define PROFCOL_CORE_PIPELINE_LARGE_BATCHES_H

#include "core/base/job_queue.h"

#include <stddef.h>

struct batch;
struct node;

/* One constant for each component. */
struct batch_work {
    /* Reads or changes the batch, and returns what `forward` needs to know, such as a number to
     * count. For a large batch it runs in a job: it may use the settings, and what no other
     * function of the node uses, because a node works on one batch at a time; but no metric, no
     * worker and no receipt. Afterwards the job writes the changes out (batch_flatten), because the
     * next node would do it on the loop. */
    uint64_t (*work)(struct node *node, struct batch *batch);
    /* Takes over the batch on the worker: counts the result and forwards or drops it. NULL:
     * node_forward. */
    void (*forward)(struct node *node, struct batch *batch, uint64_t result);
    size_t large_bytes; /* from this size as received on, a batch is large */
};

struct large_batches {
    struct node *node;
    const struct batch_work *work;
    struct job_queue queue;
};

/* Initialises it in node_start. The struct was zeroed. */
void large_batches_init(struct large_batches *batches, struct node *node,
                        const struct batch_work *work);
/* Works on the batch, now or later, and forwards it. Takes it over. */
void large_batches_add(struct large_batches *batches, struct batch *batch);
/* For a `forward` that does not end in one turn of the loop: no other batch is worked on between
 * large_batches_hold and large_batches_release. */
void large_batches_hold(struct large_batches *batches);
void large_batches_release(struct large_batches *batches);
/* Whether nothing waits and no job works. */
bool large_batches_is_empty(const struct large_batches *batches);
/* Stops: waits for the job, and refuses its batch and those that wait (node_refuse, "shutting
 * down"). Items that were acknowledged and that nobody sends again count as lost. */
void large_batches_stop(struct large_batches *batches);

#endif

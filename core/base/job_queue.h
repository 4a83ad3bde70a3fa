/*
 * job_queue: work that is done in order, small pieces on the loop and large ones as jobs
 * (core/base/job.h).
 *
 * A small piece is done inside job_queue_add when nothing is before it. One that comes while a
 * large one is under way waits for it, so that results appear in the order of job_queue_add. Of
 * what has waited, 16 pieces or 4 MiB and one are done in a turn of the loop.
 *
 * Owner: the queue and its pieces are the caller's structs; a piece may be freed from `done` on.
 *
 * Thread: the worker's, except `run` of a large piece, which is what job.h says of a job's.
 */
#ifndef PROFCOL_CORE_BASE_JOB_QUEUE_H
#define PROFCOL_CORE_BASE_JOB_QUEUE_H

#include "core/base/job.h"

struct job_queue;

struct queued_job {
    /* The caller's, before job_queue_add: */
    void (*run)(struct queued_job *queued);
    /* The last call, once for each piece. did_run: false when nobody wanted the result any more
     * when its turn came, or at the stop. */
    void (*done)(struct queued_job *queued, bool did_run);
    /* Asked of a piece that has waited, when its turn comes. NULL: always. */
    bool (*is_wanted)(const struct queued_job *queued);
    size_t size_bytes; /* of what it works on */
    bool is_large;     /* takes milliseconds */
    /* The queue's: */
    struct job_queue *queue;
    struct list_link link; /* of `waiting` */
    struct job job;
};

/* All but `worker` is zero at first. */
struct job_queue {
    struct worker *worker;
    struct list waiting;      /* oldest first */
    struct queued_job *begun; /* the large one under way; NULL: none */
    bool is_held;
    struct timer turn; /* goes on with what waits */
};

void job_queue_add(struct job_queue *queue, struct queued_job *queued);
/* Whether nothing waits and nothing is under way. */
bool job_queue_is_empty(const struct job_queue *queue);
/* In `done`: begins nothing more until job_queue_release, because what came out of this piece takes
 * memory that is not free yet. */
void job_queue_hold(struct job_queue *queue);
void job_queue_release(struct job_queue *queue);
/* Gives up what waits and what is under way (`done` without a result), waiting for what has begun.
 * Nothing is added after it. A manual worker must have come to an end with large pieces. */
void job_queue_stop(struct job_queue *queue);

#endif

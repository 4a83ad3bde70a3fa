/*
 * job_queue: pieces of work that are done in order: small ones on the loop, large ones as jobs
 * (core/base/job.h).
 *
 * A small piece is done inside job_queue_add if nothing is queued before it. If a large one is in
 * progress, it waits, so that results appear in the order of job_queue_add. One turn of the loop
 * does at most 16 waiting pieces, and starts no other once they add up to 4 MiB.
 *
 * Owner: the queue and its pieces are the caller's structs; a piece may be freed in or after
 * `done`.
 *
 * Thread: the worker's, except `run` of a large piece, which follows the rules for a job's `run`
 * (job.h).
 */
#ifndef PROFCOL_CORE_BASE_JOB_QUEUE_H
#define PROFCOL_CORE_BASE_JOB_QUEUE_H

#include "core/base/job.h"

struct job_queue;

struct queued_job {
    /* Set by the caller before job_queue_add: */
    void (*run)(struct queued_job *queued);
    /* Called last, once for each piece. did_run: false if is_wanted returned false when its turn
     * came, or if the queue was stopped. */
    void (*done)(struct queued_job *queued, bool did_run);
    /* Called for a piece that has waited, when its turn comes. Returns false if nobody wants the
     * result any more. NULL: always wanted. */
    bool (*is_wanted)(const struct queued_job *queued);
    size_t size_bytes; /* of the data that it works on */
    bool is_large;     /* takes milliseconds */
    /* Set by job_queue.c: */
    struct job_queue *queue;
    struct list_link link; /* of `waiting` */
    struct job job;
};

/* The caller sets `worker`, and all other members to zero. */
struct job_queue {
    struct worker *worker;
    struct list waiting;      /* oldest first */
    struct queued_job *begun; /* the large one in progress; NULL: none */
    bool is_held;
    struct timer turn; /* continues with the waiting pieces */
};

/* Adds a piece, and does it at once if it is small and nothing is queued before it. */
void job_queue_add(struct job_queue *queue, struct queued_job *queued);
/* Whether nothing waits and no large piece is in progress. */
bool job_queue_is_empty(const struct job_queue *queue);
/* Call it in `done` while the result still occupies memory: the queue starts nothing more until
 * job_queue_release. */
void job_queue_hold(struct job_queue *queue);
/* Ends the hold, and continues with the waiting pieces. */
void job_queue_release(struct job_queue *queue);
/* Stops the queue: calls `done` with did_run false for the large piece in progress, after waiting
 * for its `run` to return, and for each waiting piece. Nothing may be added afterwards. */
void job_queue_stop(struct job_queue *queue);

#endif

/*
 * job: work that would block a worker's loop, done on a thread of libuv's pool.
 *
 * A worker has at most JOBS_AT_ONCE jobs running; further ones wait in order. So large requests
 * never take more threads than that, and name lookups, which use the same pool, always find a free
 * thread (job_pool_size). Moving to another thread and back takes about 20 us, so a job is for work
 * that may take milliseconds.
 *
 * Owner: the caller owns the struct, and may free it in or after on_done, or after job_cancel.
 * Until then nobody else touches what `run` uses.
 *
 * Thread: `run` is called on a thread of the pool. It may touch the job's own bytes, arenas and
 * builders, and budgets. It may read a component's settings, but nothing else of a node, and of an
 * exchange only its head. It must not touch a worker or a metric (which has a cell per worker).
 * Everything else is called on the worker.
 */
#ifndef PROFCOL_CORE_BASE_JOB_H
#define PROFCOL_CORE_BASE_JOB_H

#include "core/base/list.h"
#include "core/base/worker.h"

enum { JOBS_AT_ONCE = 2 }; /* of a worker */

struct job_run;

struct job {
    /* Set by the caller before job_start: */
    void (*run)(struct job *job);
    /* Called last, once, on the worker, never inside job_start. did_run: false if is_wanted
     * returned false when the job's turn came. */
    void (*on_done)(struct job *job, bool did_run);
    /* Called on the worker when the turn of a job that had to wait comes. Returns false if nobody
     * wants the result any more. NULL: always wanted. */
    bool (*is_wanted)(const struct job *job);
    /* Set by job.c: */
    struct worker *worker;
    struct list_link link; /* of worker->jobs_waiting */
    struct job_run *begun; /* NULL: the job waits, or a manual worker has run it */
    struct post post;      /* of a manual worker */
};

/* Starts the job, or queues it. A manual worker runs it at once, and calls on_done when it next
 * handles its messages. */
void job_start(struct worker *worker, struct job *job);
/* Cancels the job for the stop: on_done is not called any more. If `run` has begun, waits until it
 * has returned. */
void job_cancel(struct job *job);

/* Returns how many threads the pool needs for this number of workers. main sets UV_THREADPOOL_SIZE
 * to it before anything uses the pool. */
unsigned job_pool_size(unsigned workers);

#endif

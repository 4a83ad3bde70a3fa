/*
 * job: work that would hold a worker's loop, on a thread of libuv's pool.
 *
 * A worker runs at most JOBS_AT_ONCE of them beside its loop, the others wait in order; so nobody's
 * large requests take more threads than that, and name lookups, which use the same pool, always
 * find one (job_pool_size). A hop to another thread and back costs some 20 us, so a job is for what
 * may take milliseconds.
 *
 * Owner: the caller's struct, which it may free from on_done on, or after job_cancel. What `run`
 * uses is nobody else's until then.
 *
 * Thread: `run` on a thread of the pool: it may touch bytes, arenas and builders that are the job's
 * own, and budgets; not a worker, a node, a metric (which has a cell per worker) or an exchange
 * beyond its head. Everything else on the worker.
 */
#ifndef PROFCOL_CORE_BASE_JOB_H
#define PROFCOL_CORE_BASE_JOB_H

#include "core/base/list.h"
#include "core/base/worker.h"

enum { JOBS_AT_ONCE = 2 }; /* of a worker */

struct job_run;

struct job {
    /* The caller's, before job_start: */
    void (*run)(struct job *job);
    /* On the worker, never inside job_start: the last call. did_run: false when nobody wanted the
     * result any more when its turn came. */
    void (*on_done)(struct job *job, bool did_run);
    /* Asked when its turn comes. NULL: always. */
    bool (*is_wanted)(const struct job *job);
    /* The room's: */
    struct worker *worker;
    struct list_link link; /* of worker->jobs_waiting */
    struct job_run *begun; /* NULL: it waits, or a manual worker has run it */
    struct post post;      /* of a manual worker */
};

/* A manual worker runs it at once; on_done comes with its messages. */
void job_start(struct worker *worker, struct job *job);
/* No on_done any more. Waits until `run` has returned when it has begun: for the stop. */
void job_cancel(struct job *job);

/* How many threads the pool needs for so many workers; before anything uses it, main sets
 * UV_THREADPOOL_SIZE to that. */
unsigned job_pool_size(unsigned workers);

#endif

#include "core/base/job.h"

#include "core/base/container_of.h"
#include "core/base/memory.h"

#include <assert.h>

/* The struct that libuv uses. It may outlive a cancelled job. */
struct job_run {
    uv_work_t work;
    struct worker *worker;
    struct job *job;   /* NULL: cancelled */
    uv_sem_t returned; /* posted when `run` has returned */
};

unsigned job_pool_size(unsigned workers)
{
    enum { LOOKUPS = 2 };
    return workers * JOBS_AT_ONCE + LOOKUPS;
}

static void begin_waiting(struct worker *worker);

/* Names the thread for profilers and debuggers. libuv starts its threads itself. */
static void name_thread(void)
{
    static _Thread_local bool is_named;
    if (!is_named)
        pthread_setname_np(pthread_self(), "jobs");
    is_named = true;
}

static void on_work(uv_work_t *work)
{
    name_thread();
    struct job_run *begun = container_of(work, struct job_run, work);
    begun->job->run(begun->job);
    uv_sem_post(&begun->returned);
}

static void on_worked(uv_work_t *work, int status)
{
    (void)status;
    struct job_run *begun = container_of(work, struct job_run, work);
    struct worker *worker = begun->worker;
    struct job *job = begun->job;
    uv_sem_destroy(&begun->returned);
    free(begun);
    worker_now(worker);
    assert(worker->jobs_begun > 0);
    worker->jobs_begun--;
    if (job) {
        job->begun = NULL;
        job->on_done(job, true);
    }
    begin_waiting(worker);
}

static void begin(struct worker *worker, struct job *job)
{
    struct job_run *begun = memory_zalloc(sizeof *begun);
    begun->worker = worker;
    begun->job = job;
    job->begun = begun;
    uv_sem_init(&begun->returned, 0);
    worker->jobs_begun++;
    int rc = uv_queue_work(&worker->loop, &begun->work, on_work, on_worked);
    assert(rc == 0);
}

static void begin_waiting(struct worker *worker)
{
    while (worker->jobs_begun < JOBS_AT_ONCE && worker->jobs_waiting.count > 0) {
        struct job *job = container_of(list_pop(&worker->jobs_waiting), struct job, link);
        if (!job->is_wanted || job->is_wanted(job))
            begin(worker, job);
        else
            job->on_done(job, false);
    }
}

static void on_manual(struct worker *worker, struct post *post)
{
    (void)worker;
    struct job *job = container_of(post, struct job, post);
    job->on_done(job, true);
}

void job_start(struct worker *worker, struct job *job)
{
    assert(job->run && job->on_done && !job->begun && !job->link.list);
    job->worker = worker;
    if (worker->manual) {
        job->run(job);
        job->post.on_post = on_manual;
        worker_post(worker, &job->post);
    } else if (worker->jobs_begun < JOBS_AT_ONCE) {
        begin(worker, job);
    } else {
        list_append(&worker->jobs_waiting, &job->link);
    }
}

void job_cancel(struct job *job)
{
    assert(worker_is_current(job->worker));
    struct job_run *begun = job->begun;
    if (job->worker->manual) {
        worker_unpost(job->worker, &job->post);
        return;
    }
    if (!begun) {
        list_remove(&job->worker->jobs_waiting, &job->link);
        return;
    }
    assert(begun->job == job);
    if (uv_cancel((uv_req_t *)&begun->work) != 0)
        uv_sem_wait(&begun->returned);
    begun->job = NULL;
    job->begun = NULL;
}

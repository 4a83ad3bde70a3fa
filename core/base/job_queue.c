#include "core/base/job_queue.h"

#include "core/base/container_of.h"

#include <assert.h>

/* Limits of one turn. */
enum { PIECES_MAX = 16, BYTES_MAX = 4 << 20 };

static void go_on(struct job_queue *queue);

static void run_beside_loop(struct job *job)
{
    struct queued_job *queued = container_of(job, struct queued_job, job);
    queued->run(queued);
}

static void on_job_done(struct job *job, bool did_run)
{
    struct queued_job *queued = container_of(job, struct queued_job, job);
    struct job_queue *queue = queued->queue;
    assert(did_run && queue->begun == queued);
    queue->begun = NULL;
    queued->done(queued, true);
    go_on(queue);
}

static void begin(struct queued_job *queued)
{
    struct job_queue *queue = queued->queue;
    assert(!queue->begun && !queue->is_held);
    if (!queued->is_large) {
        queued->run(queued);
        queued->done(queued, true);
        return;
    }
    queue->begun = queued;
    queued->job = (struct job){.run = run_beside_loop, .on_done = on_job_done};
    job_start(queue->worker, &queued->job);
}

static void begin_waiting(struct queued_job *queued)
{
    if (!queued->is_wanted || queued->is_wanted(queued))
        begin(queued);
    else
        queued->done(queued, false);
}

static bool is_blocked(const struct job_queue *queue)
{
    return queue->begun || queue->is_held;
}

static void on_turn(struct timer *timer)
{
    go_on(container_of(timer, struct job_queue, turn));
}

/* Does as many waiting pieces as a turn allows. */
static void go_on(struct job_queue *queue)
{
    size_t size_bytes = 0;
    for (int n = 0; !is_blocked(queue) && queue->waiting.count > 0; n++) {
        if (n == PIECES_MAX || size_bytes >= BYTES_MAX) {
            queue->turn.on_timer = on_turn;
            worker_set_timer(queue->worker, &queue->turn, 0);
            return;
        }
        struct queued_job *queued =
            container_of(list_pop(&queue->waiting), struct queued_job, link);
        size_bytes += queued->size_bytes;
        begin_waiting(queued);
    }
}

void job_queue_add(struct job_queue *queue, struct queued_job *queued)
{
    assert(worker_is_current(queue->worker) && queued->run && queued->done);
    queued->queue = queue;
    if (is_blocked(queue) || queue->waiting.count > 0)
        list_append(&queue->waiting, &queued->link);
    else
        begin(queued);
}

bool job_queue_is_empty(const struct job_queue *queue)
{
    return !queue->begun && queue->waiting.count == 0;
}

void job_queue_hold(struct job_queue *queue)
{
    assert(!is_blocked(queue));
    queue->is_held = true;
}

void job_queue_release(struct job_queue *queue)
{
    assert(queue->is_held);
    queue->is_held = false;
    go_on(queue);
}

void job_queue_stop(struct job_queue *queue)
{
    struct queued_job *begun = queue->begun;
    if (timer_is_set(&queue->turn))
        worker_cancel_timer(queue->worker, &queue->turn);
    if (begun) {
        job_cancel(&begun->job);
        queue->begun = NULL;
        begun->done(begun, false);
    }
    while (queue->waiting.count > 0) {
        struct queued_job *queued =
            container_of(list_pop(&queue->waiting), struct queued_job, link);
        queued->done(queued, false);
    }
}

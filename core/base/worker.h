/*
 * worker: one thread with one event loop, its timers and its mailbox.
 *
 * Everything that a request touches belongs to one worker: its connection, its batch, its nodes.
 * Workers share only messages (worker_post), atomics and the sharded span index.
 *
 * Owner: main owns the workers.
 *
 * Thread: the functions are for the worker's own thread, except those that say so.
 */
#ifndef PROFCOL_CORE_BASE_WORKER_H
#define PROFCOL_CORE_BASE_WORKER_H

#include "core/base/error.h"
#include "core/base/list.h"
#include "core/base/timer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#define WORKERS_MAX 64

struct histogram;
struct worker;

/* A message: embedded in the sender's struct, sent with worker_post, run once on the receiving
 * worker. */
struct post {
    struct post *next;
    void (*on_post)(struct worker *worker, struct post *post);
};

/* Work whose duration depends on a request. It is marked so that the log can name the component
 * that blocked the loop. Pieces nest; the time of an inner piece does not count for the outer one.
 */
struct worker_piece {
    struct worker_piece *outer;
    const char *label;   /* of the component: "exporter otlp"; lives as long as the worker runs */
    uint64_t resumed_ns; /* when it became the innermost again */
    uint64_t spent_ns;   /* before resumed_ns */
};
/* Smaller work is not worth reading the clock twice. */
#define WORKER_PIECE_BYTES ((size_t)64 * 1024)

struct worker {
    unsigned index;
    uv_loop_t loop;  /* not running in a worker made for tests */
    bool manual;     /* no thread; worker_advance drives it */
    uint64_t now_ns; /* monotonic; fresh in timers, messages, and after worker_now, which the
                        callbacks of connections and batch_new call */
    uint64_t turn;   /* of the loop: counts how often it has polled, or been advanced by hand */
    struct timer_queue timers;
    uv_timer_t wake;  /* at timer_queue_next */
    uint64_t wake_ns; /* the time that `wake` is set to */
    uv_async_t mail;
    _Atomic(struct post *) inbox; /* newest first */
    uv_prepare_t prepare;
    uv_check_t check;
    struct list jobs_waiting; /* of job.h, like the next member */
    unsigned jobs_begun;
    struct histogram *lag;       /* durations of turns, in seconds; NULL: not measured */
    uint64_t woke_ms;            /* when this turn began, by the loop's clock */
    struct worker_piece *piece;  /* the innermost; NULL: none */
    struct worker_piece longest; /* of this turn; without a label: none */
    pthread_t thread;            /* for worker_join */
    pthread_t self;              /* set by the thread that runs the loop, for assertions */
    atomic_bool running;
    atomic_bool stopping;
    atomic_bool paused; /* by workers_pause */
};

/* Initialises a worker and its loop. Returns false, with err set, if libuv cannot create the loop.
 */
bool worker_init(struct worker *worker, unsigned index, struct error *err);
/* Initialises a worker without a running loop, for tests. Its time starts at now_ns and moves with
 * worker_advance. */
void worker_init_manual(struct worker *worker, unsigned index, uint64_t now_ns);
/* Closes the loop and frees its memory. The worker must not run. */
void worker_deinit(struct worker *worker);

/* Runs the loop on a new thread until worker_stop. The loop has begun when this returns. Returns
 * false, with err set, if there is no thread. */
bool worker_start(struct worker *worker, struct error *err);
/* Asks the worker to end its loop. Any thread. */
void worker_stop(struct worker *worker);
/* Waits until the worker's thread has ended. */
void worker_join(struct worker *worker);
/* Delivers the remaining messages between workers, waits for jobs and finishes closed handles,
 * until nothing is left. Call it when no worker runs any more, before the first worker_deinit: a
 * message must not reach a worker that no longer exists. */
void workers_settle(struct worker *workers, unsigned count);

/* Runs post->on_post on the worker, never inside this call. Messages from one sender keep their
 * order. Any thread. */
void worker_post(struct worker *worker, struct post *post);

/* For manual workers: takes back a message that has not been delivered yet. */
void worker_unpost(struct worker *worker, struct post *post);

/* For main, at start and stop: calls `run` on the worker and waits until it returns. Calls it
 * directly if the caller may touch the worker's data (worker_is_current). */
void worker_call(struct worker *worker, void (*run)(void *context), void *context);

/* For main: makes all workers wait, between two callbacks of their loops, until workers_resume. In
 * between, the caller may touch the data of all of them, but not call or post anything that waits
 * for them. Jobs go on. */
struct workers_pause;
struct workers_pause *workers_pause(struct worker *workers, unsigned count);
void workers_resume(struct workers_pause *pause);

/* Whether the caller may touch the worker's data: it runs on the worker, or no thread does (before
 * the start, after the end, manual, paused). */
bool worker_is_current(const struct worker *worker);

/* Reads the clock into worker->now_ns (except on a manual worker) and returns it. For I/O
 * callbacks: the loop may have slept since now_ns was set. */
uint64_t worker_now(struct worker *worker);

/* Internals of the two below, for a piece with a label. */
void worker_begin_timed_piece(struct worker *worker, struct worker_piece *piece);
void worker_end_timed_piece(struct worker *worker, struct worker_piece *piece);

/* Mark the beginning and the end of work inside one callback; the struct is on the caller's stack.
 * label NULL: the work is too small to be worth reading the clock, and nothing happens. */
static inline void worker_begin_piece(struct worker *worker, struct worker_piece *piece,
                                      const char *label)
{
    piece->label = label;
    if (label)
        worker_begin_timed_piece(worker, piece);
}

static inline void worker_end_piece(struct worker *worker, struct worker_piece *piece)
{
    if (piece->label)
        worker_end_timed_piece(worker, piece);
}

/* Sets the timer to delay_ns from now, or moves it if it is set. */
void worker_set_timer(struct worker *worker, struct timer *timer, uint64_t delay_ns);
/* Cancels the timer; does nothing if it is not set. */
void worker_cancel_timer(struct worker *worker, struct timer *timer);

/* For manual workers: sets the time, then handles messages and due timers until nothing is due. */
void worker_advance(struct worker *worker, uint64_t now_ns);

#endif

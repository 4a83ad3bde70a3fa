/*
 * worker: one thread with one event loop, its timers and its mailbox.
 *
 * Everything that a request touches belongs to one worker: its connection, its batch, its place in
 * the pipelines. Workers meet only through messages (worker_post), shared atomics and the sharded
 * span index.
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

/* A message: embedded in the sender's struct, handed over with worker_post, run once on the
 * receiving worker. */
struct post {
    struct post *next;
    void (*on_post)(struct worker *worker, struct post *post);
};

/* Work that a request can make long. Whoever does it says so, for the log to name who held the
 * loop. Pieces nest; each has the time that those inside it have not. */
struct worker_piece {
    struct worker_piece *outer;
    const char *label;   /* of the component: "exporter otlp"; lives as long as the worker runs */
    uint64_t resumed_ns; /* since when it is the innermost */
    uint64_t spent_ns;   /* before that */
};
/* Smaller ones are not worth two looks at the clock. */
#define WORKER_PIECE_BYTES ((size_t)64 * 1024)

struct worker {
    unsigned index;
    uv_loop_t loop;  /* not running in a worker made for tests */
    bool manual;     /* driven by worker_advance */
    uint64_t now_ns; /* monotonic; fresh in timers, messages and after worker_now, which batch_new
                        calls */
    uint64_t turn;   /* of the loop: counts how often it has polled, or been advanced by hand */
    struct timer_queue timers;
    uv_timer_t wake;  /* at timer_queue_next */
    uint64_t wake_ns; /* what `wake` is set to */
    uv_async_t mail;
    _Atomic(struct post *) inbox; /* newest first */
    uv_prepare_t prepare;
    uv_check_t check;
    struct list jobs_waiting; /* job.h's, as is the next */
    unsigned jobs_begun;
    struct histogram *lag;       /* how long turns take, in seconds; NULL: not measured */
    uint64_t woke_ms;            /* when this turn began, by the loop's clock */
    struct worker_piece *piece;  /* the innermost; NULL: none */
    struct worker_piece longest; /* of this turn; without a label: none */
    pthread_t thread;            /* for worker_join */
    pthread_t self;              /* set by the thread that runs the loop, for assertions */
    atomic_bool running;
    atomic_bool stopping;
};

bool worker_init(struct worker *worker, unsigned index, struct error *err);
/* Without a running loop, for tests: time starts at now_ns and moves with worker_advance. */
void worker_init_manual(struct worker *worker, unsigned index, uint64_t now_ns);
void worker_deinit(struct worker *worker);

/* Runs the loop on a new thread (it has begun when this returns) until worker_stop. */
bool worker_start(struct worker *worker, struct error *err);
void worker_stop(struct worker *worker); /* any thread */
void worker_join(struct worker *worker);
/* When none of them runs any more: delivers what they still have for each other, waits for jobs and
 * ends closed handles, until nothing is left. Before the first worker_deinit, because a message to
 * a worker that is gone would be lost, or worse. */
void workers_settle(struct worker *workers, unsigned count);

/* Any thread. Runs post->on_post on the worker, in the order of arrival from one sender. Never runs
 * inside this call. */
void worker_post(struct worker *worker, struct post *post);

/* Manual workers: takes back a message that was not delivered yet. */
void worker_unpost(struct worker *worker, struct post *post);

/* For main, at start and stop: runs it on the worker and waits until it is done; at once when the
 * caller may touch what belongs to the worker. */
void worker_call(struct worker *worker, void (*run)(void *context), void *context);

/* Whether the caller may touch what belongs to the worker: it runs on it, or nobody does (before
 * the start, after the end, manual). */
bool worker_is_current(const struct worker *worker);

/* Reads the clock into worker->now_ns (not of a manual worker) and returns it. For I/O callbacks:
 * the loop may have slept since now_ns was set. */
uint64_t worker_now(struct worker *worker);

/* Workings of the two below, for a piece with a label. */
void worker_begin_timed_piece(struct worker *worker, struct worker_piece *piece);
void worker_end_timed_piece(struct worker *worker, struct worker_piece *piece);

/* Around work inside one callback; the struct is the caller's, on its stack. label NULL: it is not
 * worth looking at the clock, and nothing happens. */
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

/* Sets the timer delay_ns from now (moves it when set). */
void worker_set_timer(struct worker *worker, struct timer *timer, uint64_t delay_ns);
void worker_cancel_timer(struct worker *worker, struct timer *timer);

/* Manual workers: sets the time, runs messages and due timers until nothing is due. */
void worker_advance(struct worker *worker, uint64_t now_ns);

#endif

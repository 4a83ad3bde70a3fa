/*
 * timer: calls that a worker has to make later, in a heap ordered by time.
 *
 * Time is an argument (timer_queue_run), so tests drive it by hand and never sleep.
 *
 * Owner: a timer lives in its user's struct and must be stopped before that is freed; the queue
 * lives in its worker.
 *
 * Thread: that of the worker.
 */
#ifndef PROFCOL_CORE_BASE_TIMER_H
#define PROFCOL_CORE_BASE_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    uint64_t deadline_ns; /* monotonic */
    uint64_t sequence;    /* equal deadlines fire in the order they were set */
    size_t position;      /* in the heap, from 1; 0: not set */
    void (*on_timer)(struct timer *timer);
};

struct timer_queue {
    struct timer **heap; /* from 1 */
    size_t count;
    size_t capacity;
    uint64_t sequence;
    uint64_t run_ns; /* while timer_queue_run calls: its now_ns; else 0 */
};

/* Frees the heap. No timer may be set. */
void timer_queue_deinit(struct timer_queue *queue);
/* Sets the timer, or moves it if it is set. Inside timer_queue_run a deadline before its now_ns
 * counts as now_ns, so that it cannot delay timers that were due already. */
void timer_queue_set(struct timer_queue *queue, struct timer *timer, uint64_t deadline_ns);
/* Cancels the timer; does nothing if it is not set. */
void timer_queue_cancel(struct timer_queue *queue, struct timer *timer);
/* Calls all timers that are due at now_ns, in order, and returns their number. A timer that is set
 * during the run is not called in the same run. */
size_t timer_queue_run(struct timer_queue *queue, uint64_t now_ns);
/* Returns the earliest deadline, UINT64_MAX if no timer is set. */
uint64_t timer_queue_next(const struct timer_queue *queue);

static inline bool timer_is_set(const struct timer *timer)
{
    return timer->position != 0;
}

#endif

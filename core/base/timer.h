/*
 * timer: functions that a worker calls later, in a heap ordered by time.
 *
 * Time is an argument (timer_queue_run), so tests drive it by hand and never sleep.
 *
 * Owner: a timer is a member of its user's struct and must be cancelled before that struct is
 * freed; the queue is a member of its worker.
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
    size_t position;      /* index in the heap, from 1; 0: not set */
    void (*on_timer)(struct timer *timer);
};

struct timer_queue {
    struct timer **heap; /* from 1 */
    size_t count;
    size_t capacity;
    uint64_t sequence;
    uint64_t run_ns; /* now_ns of the timer_queue_run in progress; 0: none */
};

/* Frees the heap. No timer may be set. */
void timer_queue_deinit(struct timer_queue *queue);
/* Sets the timer to a monotonic time, or moves it if it is set. Inside timer_queue_run, a deadline
 * before its now_ns counts as now_ns, so that the timer cannot delay others that were due
 * already. */
void timer_queue_set(struct timer_queue *queue, struct timer *timer, uint64_t deadline_ns);
/* Cancels the timer; does nothing if it is not set. */
void timer_queue_cancel(struct timer_queue *queue, struct timer *timer);
/* Calls all timers that are due at now_ns, in order, and returns their number. A timer that is set
 * during the run is not called in the same run. */
size_t timer_queue_run(struct timer_queue *queue, uint64_t now_ns);
/* The same for at most so many timers. */
size_t timer_queue_run_some(struct timer_queue *queue, uint64_t now_ns, size_t most);
/* Returns the earliest deadline; UINT64_MAX if no timer is set. */
uint64_t timer_queue_next(const struct timer_queue *queue);

/* Whether the timer is set. */
static inline bool timer_is_set(const struct timer *timer)
{
    return timer->position != 0;
}

#endif

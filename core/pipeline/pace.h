/*
 * pace: calls a function for one item after another, a bounded number of times per turn of the
 * worker's loop, and not in a pause.
 *
 * Used for whoever passes data on: a holder (offer.h) or a branch of an outlet.
 *
 * Owner: a member of the struct that has the items.
 *
 * Thread: that of the worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_PACE_H
#define PROFCOL_CORE_PIPELINE_PACE_H

#include "core/base/timer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct worker;

/* After this many items of one pace, a worker serves its connections again. Each PACE_BYTES of data
 * count as one more item. */
enum { PACE_PER_TURN = 16, PACE_BYTES = 256 * 1024 };

struct pace {
    struct worker *worker;
    /* Works on the next item that is due; false if none is. */
    bool (*next)(struct pace *pace);
    struct timer timer; /* the next turn of the loop, or the end of a pause */
    uint64_t turn;      /* of the loop, in which the last items were worked on */
    size_t in_turn;     /* how many, and what their bytes count */
    bool pumping;
};

/* Without a pause. */
void pace_init(struct pace *pace, struct worker *worker, bool (*next)(struct pace *pace));
/* Calls `next` until it returns false, a pause begins, or the limit for this turn is reached; the
 * rest follows in the next turn. Does nothing in a pause, or when called from within `next`. */
void pace_pump(struct pace *pace);
/* Calls nothing for delay_ns. Replaces an earlier pause. */
void pace_pause(struct pace *pace, int64_t delay_ns);
/* Whether a pause is in effect. */
bool pace_is_paused(const struct pace *pace);
/* Ends a pause and calls pace_pump. */
void pace_resume(struct pace *pace);
/* For use in `next`, which passes on so many bytes. */
void pace_count_bytes(struct pace *pace, size_t bytes);
/* For use in `next`, which worked on so many bytes. They count four times, because work costs more
 * than passing on. */
void pace_count_work(struct pace *pace, size_t bytes);
/* Cancels the timer. Of one that was never initialised: does nothing. */
void pace_stop(struct pace *pace);

#endif

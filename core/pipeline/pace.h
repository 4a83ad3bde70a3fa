/*
 * pace: calls a function for one item after another, a bounded number of times per turn of the
 * worker's loop, and not in a pause.
 *
 * Used by a holder (offer.h) and by a branch of an outlet to pass data on.
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
    /* Processes the next item that is due. Returns false if none is due. */
    bool (*next)(struct pace *pace);
    struct timer timer; /* for the next turn of the loop, or the end of a pause */
    uint64_t turn;      /* the turn of the loop that processed the last items */
    size_t in_turn;     /* items in that turn, and what their bytes count */
    bool pumping;
};

/* Initialises a pace without a pause. */
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
/* Call it in `next`: counts bytes that are passed on. */
void pace_count_bytes(struct pace *pace, size_t bytes);
/* Call it in `next`: counts bytes that are processed. They count four times, because processing
 * costs more than passing on. */
void pace_count_work(struct pace *pace, size_t bytes);
/* Cancels the timer. Does nothing if the pace was never initialised. */
void pace_stop(struct pace *pace);

#endif

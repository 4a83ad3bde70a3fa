/*
 * clock_offset: how far the clock of a process's samples is from that of its spans.
 *
 * Samples of a thread are taken while it runs, and mostly inside its spans. Each sample votes for
 * the offsets at which its time is inside a span of its thread. If the clocks agree, no other
 * offset has many more votes. If another one has, more than chance explains, the offset with the
 * most votes is the estimate. Estimates below 5 ms are not used: code that runs directly before a
 * span looks the same.
 *
 * Offsets of up to a quarter of a second are found. Votes fade, so that the estimate follows a
 * clock that is set.
 *
 * Owner: thread_spans.
 *
 * Thread: whoever holds its lock.
 */
#ifndef PROFCOL_CORE_DATA_CLOCK_OFFSET_H
#define PROFCOL_CORE_DATA_CLOCK_OFFSET_H

#include "core/data/thread_timeline.h"

#define CLOCK_OFFSET_MAX_NS INT64_C(250000000)

enum { CLOCK_OFFSETS = 501 }; /* one for each millisecond */

/* All-zero is new. */
struct clock_offset {
    int64_t offset_ns; /* the estimate */
    uint32_t samples;  /* that voted */
    uint32_t newer;    /* of these, since the estimate was made */
    /* Votes for an offset minus those for the one before it. */
    int32_t votes[CLOCK_OFFSETS + 1];
};

/* Lets the sample of a thread vote, if its spans before and after it are known. */
void clock_offset_vote(struct clock_offset *clock, const struct thread_timeline *timeline,
                       uint64_t time_ns);
/* Whether so many samples have voted that a few of those to come are enough. */
bool clock_offset_is_settled(const struct clock_offset *clock);
/* Returns what is added to the time of a sample. */
int64_t clock_offset_ns(struct clock_offset *clock);

#endif

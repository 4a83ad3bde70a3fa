/*
 * doubted_times: the times of a thread's samples of which it is not known whose they are.
 *
 * A span that ran at such a time may lack them (left_samples.h). Times that are near each other
 * count as one range: a sampler looks at a thread every 10 ms or less often, so what is between is
 * of the same span, or has no sample. If there are too many ranges, the older half of them becomes
 * coarser.
 *
 * Owner: the caller.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_DOUBTED_TIMES_H
#define PROFCOL_CORE_DATA_DOUBTED_TIMES_H

#include "core/data/thread_timeline.h"

enum { DOUBTED_RANGES_MAX = 256 };
#define DOUBTED_TOGETHER_NS UINT64_C(20000000)

/* All-zero is empty. */
struct doubted_times {
    struct time_range *ranges; /* in their order; they do not touch */
    uint32_t count;
    uint32_t capacity;
};

/* Whether two ranges, the first of which begins no later, count as one. */
static inline bool doubted_ranges_touch(struct time_range first, struct time_range second)
{
    return second.start_ns <= first.end_ns || second.start_ns - first.end_ns <= DOUBTED_TOGETHER_NS;
}

/* Adds a range. Cheap if it is the latest one. */
void doubted_times_add(struct doubted_times *times, struct time_range range);
/* Whether any time of the range is doubted. */
bool doubted_times_meet(const struct doubted_times *times, struct time_range range);
/* Frees the ranges; it is empty then. */
void doubted_times_deinit(struct doubted_times *times);

#endif

/*
 * clock_watch: notices that the clock of a process's samples was set.
 *
 * What is known of a clock comes from many samples (clock_offset.h, clock_search.h), and those
 * from before it was set outweigh the later ones for minutes. That the clock was set shows sooner:
 * fewer samples than before are inside spans of their threads.
 *
 * A program that works less inside spans than before looks the same. So a change is only a reason
 * to look at the clock again.
 *
 * Owner: thread_spans.
 *
 * Thread: whoever holds its lock.
 */
#ifndef PROFCOL_CORE_DATA_CLOCK_WATCH_H
#define PROFCOL_CORE_DATA_CLOCK_WATCH_H

#include "core/data/share.h"

/* All-zero is new. */
struct clock_watch {
    struct share now;    /* the latest samples noted */
    struct share before; /* those before them; older ones count less */
};

/* Notes a sample; of those that follow one another within one span, or between two, only the first.
 */
static inline void clock_watch_note(struct clock_watch *watch, bool is_inside)
{
    watch->now.known++;
    watch->now.inside += is_inside;
}

/* Call it after the samples of a request. Returns whether the clock seems to have been set. */
bool clock_watch_is_set(struct clock_watch *watch);

#endif

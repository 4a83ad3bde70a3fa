/*
 * clock: the time, in nanoseconds.
 *
 * A worker's own time is worker_now (core/base/worker.h), which a test sets.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_BASE_CLOCK_H
#define PROFCOL_CORE_BASE_CLOCK_H

#include <stdint.h>

/* Returns the monotonic time in nanoseconds. For measurements for which the time of a worker's turn
 * is too coarse. */
uint64_t clock_monotonic_ns(void);
/* Returns the time in nanoseconds since 1970, as OTLP uses it. */
uint64_t clock_wall_ns(void);
/* Sets the wall clock to a fixed time for a test; 0: back to the real time. */
void clock_fix_wall(uint64_t wall_ns);

#endif

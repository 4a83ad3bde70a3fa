/*
 * run: drives the processor spanjoin with a traffic, in one process and with simulated time.
 *
 * Owner: the caller.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_BENCH_JOINSIM_RUN_H
#define PROFCOL_BENCH_JOINSIM_RUN_H

#include "bench/joinsim/score.h"

/* Runs a schedule to its end and fills in the score, which the caller frees. The traffic must live
 * as long as the score. */
void run_schedule(const struct schedule *schedule, uint64_t seed, struct traffic *traffic,
                  struct score *score);

/* Runs a schedule, whatever comes out, and returns the CPU time of the join for both signals in
 * seconds for a million samples. Making the requests is not counted; copying what comes out is. */
double run_cost(const struct schedule *schedule, uint64_t seed);

#endif

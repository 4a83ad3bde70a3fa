/*
 * plot: runs schedules with several values of a setting and draws the results as SVG.
 *
 * Owner: none.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_BENCH_JOINSIM_PLOT_H
#define PROFCOL_BENCH_JOINSIM_PLOT_H

#include <stdbool.h>
#include <stdint.h>

/* Draws the share of samples that are joined against `samples.wait`, a line for each interval of
 * uploads. Returns false if the file cannot be written. */
bool plot_waits(const char *path, uint64_t seed);

#endif

/*
 * threads_behind: whether all profiles that leave an outlet reach a component that joins them by
 * thread.
 *
 * Readers then add the threads and times of samples, which that component removes again
 * (docs/architecture.md, "Threads of recordings").
 *
 * Owner: nothing is allocated.
 *
 * Thread: the worker of the nodes, or main while all workers wait.
 */
#ifndef PROFCOL_CORE_PIPELINE_THREADS_BEHIND_H
#define PROFCOL_CORE_PIPELINE_THREADS_BEHIND_H

#include <stdbool.h>

struct outlet;

/* Whether every path from the outlet leads through such a component. */
bool threads_behind_join(const struct outlet *outlet);

#endif

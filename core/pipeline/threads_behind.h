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

struct batch;
struct node;
struct outlet;

/* Whether every path from the outlet leads through such a component. */
bool threads_behind_join(const struct outlet *outlet);
/* The same of the profiles that a receiver forwards, as it was when nodes were last connected. */
bool threads_are_joined(const struct node *receiver);
/* Removes what a reader has added. For a receiver that no join is behind any more: a reload may
 * take it away while a job reads a request. */
void threads_behind_remove(struct batch *batch);

#endif

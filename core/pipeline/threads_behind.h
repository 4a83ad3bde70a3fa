/*
 * threads_behind: whether all profiles that leave an outlet reach a component that joins them by
 * thread or time.
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

struct batch;
struct node;
struct outlet;

/* Returns what the components that join need of samples (enum added_threads); 0 if a path from the
 * outlet leads elsewhere. */
unsigned threads_behind(const struct outlet *outlet);
/* The same for what a receiver forwards, as it was when nodes were last connected. */
unsigned threads_behind_receiver(const struct node *receiver);
/* Removes what a reader has added. For a receiver that no join is behind any more: a reload may
 * take it away while a job reads a request. */
void threads_behind_remove(struct batch *batch);

#endif

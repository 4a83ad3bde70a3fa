/*
 * threads_behind: whether profiles that leave an outlet reach a component that joins them by thread
 * or time.
 *
 * Readers then add the threads and times of samples, which that component removes again. A branch
 * behind which there is none gets the batch without them (docs/architecture.md, "Threads of
 * recordings").
 *
 * Owner: nothing is allocated.
 *
 * Thread: the worker of the nodes, or main while all workers wait.
 */
#ifndef PROFCOL_CORE_PIPELINE_THREADS_BEHIND_H
#define PROFCOL_CORE_PIPELINE_THREADS_BEHIND_H

struct batch;
struct branch;
struct node;
struct outlet;

/* Learns it for the outlet and for each of its branches. Call it for outlets in any order, when all
 * are connected. */
void threads_look_behind(struct outlet *outlet);
/* Returns what the components that join need of the samples that a receiver forwards (enum
 * added_threads), as it was when nodes were last connected. A receiver that adds them sets
 * has_added_threads of the batch. */
unsigned threads_behind_receiver(const struct node *receiver);
/* Removes what a reader has added, if no join is behind the branch. (It may have been there when a
 * job began to read the request: a reload takes it away.) */
void threads_leave_at(const struct branch *branch, struct batch *batch);

#endif

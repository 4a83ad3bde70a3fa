/*
 * reread_profiles: reads the requests of profiles that a node holds again, after a reload has added
 * policies that read samples.
 *
 * As reread_traces, in turns of the loop and large requests in jobs. A request is in no list while
 * it is read, so nothing else touches it. Requests that have left, or are about to, are not read:
 * their samples count only for the policies that there were.
 *
 * Owner: the node.
 *
 * Thread: the node's worker, but for the job.
 */
#ifndef PROFCOL_TAIL_SAMPLING_REREAD_PROFILES_H
#define PROFCOL_TAIL_SAMPLING_REREAD_PROFILES_H

#include "processors/tail_sampling/tail_sampling.h"

/* wait_again: takes back a request that was read; it is in no list. */
void reread_profiles_init(struct tail_node *node, void (*wait_again)(struct held_profile *hold));
/* Begins, or goes on, in the next turn of the loop. */
void reread_profiles_begin(struct tail_node *node);
/* A request that waits was read by rules that a reload has replaced meanwhile. */
void reread_profiles_first(struct tail_node *node, struct held_profile *hold);
/* A request that is being read waits again. */
void reread_profiles_stop(struct tail_node *node);

#endif

/*
 * held_profiles: the requests of profiles that wait for the decisions about the traces of their
 * samples.
 *
 * A request waits whole and leaves whole. It waits for traces that wait, until their decision, and
 * for traces that are not known, for `wait`. At the limit for memory, the oldest leaves early.
 *
 * Owner: the node.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_TAIL_SAMPLING_HELD_PROFILES_H
#define PROFCOL_TAIL_SAMPLING_HELD_PROFILES_H

#include "processors/tail_sampling/tail_sampling.h"

/* Returns false if the table has no room for another listener (trace_holders.h). */
bool held_profiles_init(struct tail_node *node);
/* Work on a batch as it arrives (struct batch_work): reads it, and applies the decisions if it need
 * not wait. */
uint64_t held_profiles_read(struct node *node, struct batch *batch);
void held_profiles_add(struct node *node, struct batch *batch, uint64_t is_ready);
/* Sends on everything that waits. */
void held_profiles_drain(struct tail_node *node);
bool held_profiles_are_idle(const struct tail_node *node);
/* Gives up what is left. */
void held_profiles_stop(struct tail_node *node);

#endif

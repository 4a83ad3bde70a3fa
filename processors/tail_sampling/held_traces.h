/*
 * held_traces: the traces whose spans wait at a node for the decision, and those that are sent on.
 *
 * A trace leaves when it was decided: when its time is over, or early. Its spans then wait up to
 * GATHER_NS for those of other traces, and leave in one request with them.
 *
 * Owner: the node.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_TAIL_SAMPLING_HELD_TRACES_H
#define PROFCOL_TAIL_SAMPLING_HELD_TRACES_H

#include "processors/tail_sampling/tail_sampling.h"

/* Starts; returns false if the table has no room for another holder. */
bool held_traces_init(struct tail_node *node);
/* Holds or sends on what the reader has read of the batch, and settles the batch; or refuses it. */
void held_traces_add(struct tail_node *node, struct batch *batch);
/* Decides about everything that waits, and sends it on. */
void held_traces_drain(struct tail_node *node);
bool held_traces_are_idle(const struct tail_node *node);
/* Gives up what is left. */
void held_traces_stop(struct tail_node *node);

#endif

/*
 * held_traces: how traces pass through a node: they arrive, wait for the decision
 * (waiting_traces.h), and leave if they are sampled (ready_spans.h).
 *
 * Senders choose how many traces arrive together. So a turn of the loop adds at most
 * TRACES_PER_TURN of a request, and decides about as many.
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
/* Holds or sends on what the reader has read of the batch, and settles the batch; or refuses it.
 * Until this is done, large_batches_hold is in effect. */
void held_traces_add(struct tail_node *node, struct batch *batch);
/* Decides about everything that waits, and sends it on. */
void held_traces_drain(struct tail_node *node);
bool held_traces_are_idle(const struct tail_node *node);
/* Gives up what is left. */
void held_traces_stop(struct tail_node *node);

#endif

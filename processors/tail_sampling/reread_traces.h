/*
 * reread_traces: reads the requests that a node holds again, after a reload has changed what the
 * policies look for in spans.
 *
 * It goes through the requests of the node (held_state.h) in turns of the loop, and reads large
 * ones in jobs, as when they arrived. What it finds goes to the table of traces; nothing else
 * changes. Meanwhile the node is behind (trace_holders.h).
 *
 * Owner: the node.
 *
 * Thread: the node's worker, but for the job.
 */
#ifndef PROFCOL_TAIL_SAMPLING_REREAD_TRACES_H
#define PROFCOL_TAIL_SAMPLING_REREAD_TRACES_H

#include "processors/tail_sampling/tail_sampling.h"

void reread_traces_init(struct tail_node *node);
/* A reload came while the traces of a request were added: it is read first, by a reader that then
 * becomes the node's (tail_node.reader). Until then no more of its traces are added. */
void reread_traces_first(struct tail_node *node, struct held_request *request);
/* Whether such a request is still to be read. */
bool reread_traces_has_first(const struct tail_node *node);
/* Begins, or goes on, in the next turn of the loop. */
void reread_traces_begin(struct tail_node *node);
bool reread_traces_is_idle(const struct tail_node *node);
void reread_traces_stop(struct tail_node *node);

#endif

/*
 * waiting_traces: the traces whose spans wait at a node for the decision.
 *
 * Each has a deadline. When a trace was decided, its spans go to ready_spans.h, or are freed.
 *
 * Owner: the node.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_TAIL_SAMPLING_WAITING_TRACES_H
#define PROFCOL_TAIL_SAMPLING_WAITING_TRACES_H

#include "processors/tail_sampling/tail_sampling.h"

/* Starts as a holder of the table (trace_holders.h), whose messages get the node. Returns false if
 * the table has no room for another holder. */
bool waiting_traces_init(struct tail_node *node,
                         void (*on_message)(void *node, enum holder_message message,
                                            const uint8_t *id));
/* Adds a piece, with its reference. deadline_ns: that of its trace. */
void waiting_traces_add(struct tail_node *node, const uint8_t *id, struct piece *piece,
                        uint64_t deadline_ns);
/* Asks for the decision about a trace, if it waits here. */
void waiting_traces_ask(struct tail_node *node, const uint8_t *id);
/* Begins to ask about all traces again, because their deadlines may be others. */
void waiting_traces_ask_again(struct tail_node *node);
/* Goes on with that, with so many at most. Returns whether more follow. */
bool waiting_traces_ask_more(struct tail_node *node, size_t most);
/* Asks for the decision about traces whose deadline has passed, at most so many. */
void waiting_traces_decide_due(struct tail_node *node, size_t most);
/* Whether none of the spans of the oldest trace has to be read again. One must wait. */
bool waiting_traces_oldest_is_read(const struct tail_node *node);
/* Decides about the oldest trace before its time. One must wait. */
void waiting_traces_decide_oldest(struct tail_node *node, enum tail_early early);
/* Drops the oldest trace, undecided, and returns how many spans it had. One must wait. */
uint32_t waiting_traces_drop_oldest(struct tail_node *node);
/* Returns the earliest deadline; UINT64_MAX: none waits. */
uint64_t waiting_traces_next_ns(const struct tail_node *node);
/* Drops all traces, and returns how many spans they had. */
uint64_t waiting_traces_stop(struct tail_node *node);

#endif

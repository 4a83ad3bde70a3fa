/*
 * ready_spans: the spans of sampled traces, until the next component has accepted them.
 *
 * Spans wait up to 50 ms for those of other traces, and leave in one request with them.
 *
 * Owner: the node.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_TAIL_SAMPLING_READY_SPANS_H
#define PROFCOL_TAIL_SAMPLING_READY_SPANS_H

#include "processors/tail_sampling/tail_sampling.h"

void ready_spans_init(struct tail_node *node);
/* Appends a piece, with its reference. Call ready_spans_schedule after the last one. */
void ready_spans_add(struct tail_node *node, struct piece *piece);
/* Sends what is enough for a request, and the rest in a while; in a drain at once. */
void ready_spans_schedule(struct tail_node *node);
/* Sends everything, as far as this turn of the loop allows. */
void ready_spans_send(struct tail_node *node);
/* Whether there is more to send, and the next component has accepted what was sent. */
bool ready_spans_go_on(const struct tail_node *node);
bool ready_spans_are_idle(const struct tail_node *node);
/* Gives up what is left, and returns how many spans these are. */
uint64_t ready_spans_stop(struct tail_node *node);

#endif

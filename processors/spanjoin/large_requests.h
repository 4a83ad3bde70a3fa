/*
 * large_requests: requests of a MiB and more go through the join beside the worker's loop.
 *
 * To read 20 MiB of small spans, ask the index about each, and write what they gain takes more than
 * half a second, in which other connections and SIGTERM are served. A job (core/base/job.h) does
 * what only reads the request and asks the index; whether the request waits, goes on or is refused
 * is decided on the worker, where it is told to the metrics and to whoever waits for it. A request
 * that does not wait after all may need a second job. Smaller ones overtake it.
 *
 * Its receipt stays open until then, as the room does that is reserved for it. A request whose
 * sender has given up meanwhile is dropped.
 *
 * Owner: the node has them in its list `large`.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_SPANJOIN_LARGE_REQUESTS_H
#define PROFCOL_SPANJOIN_LARGE_REQUESTS_H

#include "processors/spanjoin/spanjoin.h"

/* Takes over the batch, which is flat. */
void large_request_start(struct spanjoin_node *node, struct batch *batch);
/* At the stop, before holds_give_up: refuses them all; returns the items that nobody sends again.
 */
uint64_t large_requests_give_up(struct spanjoin_node *node);

#endif

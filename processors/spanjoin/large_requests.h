/*
 * large_requests: processes requests of 1 MiB and more with jobs.
 *
 * Reading 20 MiB of small spans, looking each up in the index, and adding attributes takes more
 * than half a second, during which the loop serves other connections and SIGTERM. A job
 * (core/base/job.h) does the steps that only read the request and use the index. The worker decides
 * whether the request waits, is sent on or is refused, updates the metrics and wakes waiting
 * requests. A request that does not wait may need a second job. Smaller requests overtake it.
 *
 * Its receipt and its reservation stay open until then. If the sender gives up meanwhile, the
 * request is dropped.
 *
 * Owner: the node, in its list `large`.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_SPANJOIN_LARGE_REQUESTS_H
#define PROFCOL_SPANJOIN_LARGE_REQUESTS_H

#include "processors/spanjoin/spanjoin.h"

/* Begins to process a batch, and takes it over. The batch must be flat. */
void large_request_start(struct spanjoin_node *node, struct batch *batch);
/* Call it at the stop, before holds_give_up: refuses all large requests. Returns the number of
 * items that nobody sends again. */
uint64_t large_requests_give_up(struct spanjoin_node *node);

#endif

/*
 * count_request: counts what a batch contains, and writes the counts as a request of metrics.
 *
 * One pass over the batch. The result has a ResourceMetrics for each resource that contains
 * something to count, as the Collector's connector: monotonic delta sums, with the earliest and
 * latest time of what was counted.
 *
 * Owner: the caller. The batch is read, not changed.
 *
 * Thread: that of the batch, which may be lent to a job.
 */
#ifndef PROFCOL_CONNECTORS_COUNT_COUNT_REQUEST_H
#define PROFCOL_CONNECTORS_COUNT_COUNT_REQUEST_H

#include "connectors/count/count_conditions.h"

struct batch;
struct wire_writer;

/* Appends the encoded request to the writer. Returns the number of its data points; 0: nothing was
 * counted, and nothing written. If a condition failed, conditions->errors.failed is set, and what
 * was written is of no use. */
uint32_t count_request(struct count_conditions *conditions, struct batch *batch,
                       struct wire_writer *out);

#endif

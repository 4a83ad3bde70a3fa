/*
 * count_metrics: writes the counts of a resource as ResourceMetrics.
 *
 * Owner: nothing is kept.
 *
 * Thread: any, one at a time for each table.
 */
#ifndef PROFCOL_CONNECTORS_COUNT_COUNT_METRICS_H
#define PROFCOL_CONNECTORS_COUNT_COUNT_METRICS_H

#include "connectors/count/count_table.h"
#include "core/data/message.h"

struct wire_writer;

/* The earliest and the latest time of what was counted; 0: none of it has a time. */
struct time_range {
    uint64_t first;
    uint64_t last;
};

/* Appends the counts of the table's current resource, if there are any. times: for each kind of
 * what is counted. resource: an iterator at the start of the Resource, whose attributes are copied.
 * Returns the number of data points. */
uint32_t count_metrics_write(const struct count_table *table, const struct time_range *times,
                             struct message_iter resource, struct wire_writer *out);

#endif

/*
 * exporter_counter: counters for exporters without a delivery (core/pipeline/delivery.h).
 *
 * Owner: the metrics of the process.
 *
 * Thread: the node's worker, in node_start.
 */
#ifndef PROFCOL_CORE_PIPELINE_EXPORTER_COUNTER_H
#define PROFCOL_CORE_PIPELINE_EXPORTER_COUNTER_H

#include "core/pipeline/component.h"

/* Returns the Collector's counter of items of the node's signal. what: "sent" or "send_failed". */
struct counter *exporter_counter(const struct node *node, const char *what, const char *help);

#endif

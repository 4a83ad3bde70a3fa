/*
 * exporter_counter: what an exporter without a delivery (core/pipeline/delivery.h) counts itself.
 *
 * Owner: the process' metrics.
 *
 * Thread: the node's worker, in node_start.
 */
#ifndef PROFCOL_CORE_PIPELINE_EXPORTER_COUNTER_H
#define PROFCOL_CORE_PIPELINE_EXPORTER_COUNTER_H

#include "core/pipeline/component.h"

/* The Collector's counter of items of the node's signal: `sent`, `send_failed`. */
struct counter *exporter_counter(const struct node *node, const char *what, const char *help);

#endif

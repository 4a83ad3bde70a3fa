/*
 * size_histogram: histograms of the sizes of requests, with the Collector's buckets.
 *
 * Owner: the metrics of the process.
 *
 * Thread: any; record on the worker whose index is given.
 */
#ifndef PROFCOL_CORE_PIPELINE_SIZE_HISTOGRAM_H
#define PROFCOL_CORE_PIPELINE_SIZE_HISTOGRAM_H

#include "core/pipeline/component.h"

/* Returns a histogram of items for each request. labels: as metrics_label writes them. */
struct histogram *size_histogram_items(struct metrics *metrics, const char *name, const char *help,
                                       const char *labels);
/* Returns a histogram of the bytes of each request, encoded as OTLP. */
struct histogram *size_histogram_bytes(struct metrics *metrics, const char *name, const char *help,
                                       const char *labels);

#endif

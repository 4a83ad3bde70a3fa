/*
 * measure_histogram: histograms of requests with the buckets of OpenTelemetry's semantic
 * conventions (durations) and of its SDKs (sizes).
 *
 * Owner: the registry.
 *
 * Thread: any; record on the worker whose index is given.
 */
#ifndef PROFCOL_CORE_NET_MEASURE_HISTOGRAM_H
#define PROFCOL_CORE_NET_MEASURE_HISTOGRAM_H

#include "core/base/metrics.h"

/* Returns a histogram of seconds. labels: as metrics_label writes them. */
struct histogram *measure_histogram_seconds(struct metrics *metrics, const char *name,
                                            const char *help, const char *labels);
/* Returns a histogram of bytes. */
struct histogram *measure_histogram_bytes(struct metrics *metrics, const char *name,
                                          const char *help, const char *labels);

#endif

/*
 * metrics_encode: writes profcol's own metrics as an OTLP request (ExportMetricsServiceRequest).
 *
 * Counters and histograms are cumulative since the start, or count since the last request
 * (core/metrics_delta.h): then a series that counted nothing since is left out, as by Go's SDK.
 * Names, units and attributes are those of core/base/metric_names.h.
 *
 * Owner: the caller owns the writer.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_METRICS_ENCODE_H
#define PROFCOL_CORE_METRICS_ENCODE_H

#include "config/field.h"
#include "core/base/metrics.h"
#include "core/data/wire_writer.h"
#include "core/metrics_delta.h"

/* resource: attributes, texts. start_ns, now_ns: since 1970; when counting began, and when it is
 * read. delta: NULL: all is cumulative. */
void metrics_encode(struct metrics *metrics, const struct config_pairs *resource, uint64_t start_ns,
                    uint64_t now_ns, struct metrics_delta *delta, struct wire_writer *out);

#endif

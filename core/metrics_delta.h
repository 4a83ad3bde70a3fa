/*
 * metrics_delta: what a periodic reader with the temporality delta or lowmemory has sent, so that
 * its next request has only what was counted since.
 *
 * https://opentelemetry.io/docs/specs/otel/metrics/sdk_exporters/otlp/ (temporality preference):
 * with delta, counters and histograms; with lowmemory, those that are counted, but not those whose
 * value is asked for. All else stays cumulative. What a request has counts as sent only after
 * metrics_delta_commit, so that the next one repeats what a failed one had.
 *
 * Owner: the caller.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_METRICS_DELTA_H
#define PROFCOL_CORE_METRICS_DELTA_H

#include "core/base/metrics.h"

struct metrics_delta;

/* keep_observed: those whose value is asked for stay cumulative, as with lowmemory. now_ns: since
 * 1970. What was counted until now counts as sent. */
struct metrics_delta *metrics_delta_new(struct metrics *metrics, bool keep_observed,
                                        uint64_t now_ns);
/* NULL is allowed. */
void metrics_delta_free(struct metrics_delta *delta);
/* Returns the time until which all was sent, since 1970: the start time of the points. */
uint64_t metrics_delta_since(const struct metrics_delta *delta);
/* Whether the series is sent as a delta. */
bool metrics_delta_is_for(const struct metrics_delta *delta, const struct metric_series *series);
/* Sets *out to what the series, of which metrics_delta_is_for is true, counted since; its buckets
 * are valid until the next call. Returns false if that is nothing, and so is not sent: an observed
 * series is always sent. */
bool metrics_delta_take(struct metrics_delta *delta, const struct metric_series *series,
                        struct metric_series *out);
/* The series that were taken last, at this time, count as sent. */
void metrics_delta_commit(struct metrics_delta *delta, uint64_t now_ns);

#endif

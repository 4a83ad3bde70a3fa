/*
 * metrics: what profcol counts about itself, printed in Prometheus' text format.
 *
 * A counter has one cell per worker on a cache line of its own: adding takes no lock and shares
 * nothing; reading sums. Series are made at start (or at the first event of their kind) and live
 * as long as the registry. Names are given in full, with one of the two prefixes below.
 *
 * Owner: the registry owns all series.
 *
 * Thread: making takes a lock, any thread; adding: the worker whose index is given; reading: any.
 */
#ifndef PROFCOL_CORE_BASE_METRICS_H
#define PROFCOL_CORE_BASE_METRICS_H

#include "core/base/text.h"

#include <stdint.h>

/* Where the Collector has the metric: "otelcol_receiver_accepted_spans". */
#define METRICS_COLLECTOR "otelcol_"
/* All others. */
#define METRICS_OWN "profcol_"

struct metrics;
struct counter;
struct gauge;
struct histogram;

struct metrics *metrics_new(unsigned workers);
void metrics_free(struct metrics *metrics);

/* labels: as printed between the braces, `receiver="otlp",transport="grpc"`, or "" (values escaped
 * by metrics_label). The same name and labels give the same series. */
struct counter *metrics_counter(struct metrics *metrics, const char *name, const char *help,
                                const char *labels);
struct gauge *metrics_gauge(struct metrics *metrics, const char *name, const char *help,
                            const char *labels);
/* A gauge whose value is asked for when it is printed; read is called on the printing thread.
 * metrics_forget removes all whose context is `context`. */
void metrics_gauge_from(struct metrics *metrics, const char *name, const char *help,
                        const char *labels, double (*read)(void *context), void *context);
void metrics_forget(struct metrics *metrics, const void *context);
/* bounds: ascending upper bounds, kept by reference (static data). */
struct histogram *metrics_histogram(struct metrics *metrics, const char *name, const char *help,
                                    const char *labels, const double *bounds, size_t bound_count);

void counter_add(struct counter *counter, unsigned worker, uint64_t n);
uint64_t counter_read(const struct counter *counter);
void gauge_set(struct gauge *gauge, int64_t value);
void gauge_add(struct gauge *gauge, int64_t delta);
int64_t gauge_read(const struct gauge *gauge);
void histogram_record(struct histogram *histogram, unsigned worker, double value);

/* Prints everything, families sorted by name, HELP and TYPE once each. with_type_suffix: counters
 * whose name does not end in _total are printed with it, as OpenMetrics has it. */
void metrics_write(struct metrics *metrics, bool with_type_suffix, struct text *out);
/* Appends key="value" to labels, with a comma when needed, escaped. */
void metrics_label(struct text *labels, const char *key, const char *value);
/* For tests: the value of a counter or gauge by name and labels; 0 when there is none. */
double metrics_value(struct metrics *metrics, const char *name, const char *labels);

#endif

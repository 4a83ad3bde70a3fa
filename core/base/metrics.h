/*
 * metrics: profcol's own metrics, printed in Prometheus' text format.
 *
 * A counter has one cell per worker, on its own cache line: adding takes no lock and shares no
 * cache line; reading sums the cells. Series are created at start (or at the first event of their
 * kind) and live as long as the registry. Callers pass complete names, with one of the two prefixes
 * below.
 *
 * Owner: the registry owns all series.
 *
 * Thread: create and read series on any thread (it takes a lock); add on the worker whose index is
 * given.
 */
#ifndef PROFCOL_CORE_BASE_METRICS_H
#define PROFCOL_CORE_BASE_METRICS_H

#include "core/base/metric_names.h"
#include "core/base/text.h"

#include <stdint.h>

/* Prefix of metrics that the Collector has, too: "otelcol_receiver_accepted_spans". */
#define METRICS_COLLECTOR "otelcol_"
/* Prefix of all others. */
#define METRICS_OWN "profcol_"

/* What metrics_write adds; a sum of these. */
enum metrics_form {
    METRICS_SUFFIXES = 1, /* unit and type at the end of names: _seconds, _bytes, _total */
    METRICS_SCOPES = 2,   /* the labels otel_scope_* */
};

struct metrics;
struct counter;
struct gauge;
struct histogram;

/* Creates a registry for this number of workers. Its level is METRICS_NORMAL. */
struct metrics *metrics_new(unsigned workers);
/* Set and return the level, on any thread: at once that of what is printed. Components that are
 * made before it becomes METRICS_DETAILED do not count what that level adds. */
void metrics_set_level(struct metrics *metrics, enum metrics_level level);
enum metrics_level metrics_get_level(const struct metrics *metrics);
/* Whether metrics of the level METRICS_DETAILED are printed. Who counts them asks first, because
 * counting costs time. */
bool metrics_are_detailed(const struct metrics *metrics);
/* Frees the registry with all its series. */
void metrics_free(struct metrics *metrics);

/* labels: as printed between the braces, `receiver="otlp",transport="grpc"`, or "" (values escaped
 * by metrics_label). Calls with the same name and labels return the same series. */
struct counter *metrics_counter(struct metrics *metrics, const char *name, const char *help,
                                const char *labels);
struct gauge *metrics_gauge(struct metrics *metrics, const char *name, const char *help,
                            const char *labels);
/* Add a gauge or counter whose value `read` returns when metrics are printed, on the printing
 * thread. metrics_forget removes all that have this `context`. If several have the same
 * labels, the newest one counts, or with metrics_gauge_sum_from their sum. */
void metrics_gauge_from(struct metrics *metrics, const char *name, const char *help,
                        const char *labels, double (*read)(void *context), void *context);
void metrics_gauge_sum_from(struct metrics *metrics, const char *name, const char *help,
                            const char *labels, double (*read)(void *context), void *context);
void metrics_counter_from(struct metrics *metrics, const char *name, const char *help,
                          const char *labels, double (*read)(void *context), void *context);
void metrics_forget(struct metrics *metrics, const void *context);
/* bounds: ascending upper bounds. The histogram keeps the pointer, so they must be static data. */
struct histogram *metrics_histogram(struct metrics *metrics, const char *name, const char *help,
                                    const char *labels, const double *bounds, size_t bound_count);

/* Adds n to the cell of this worker. */
void counter_add(struct counter *counter, unsigned worker, uint64_t n);
/* Returns the sum over all workers. */
uint64_t counter_read(const struct counter *counter);
/* Set the gauge, add to it, and return its value; on any thread. */
void gauge_set(struct gauge *gauge, int64_t value);
void gauge_add(struct gauge *gauge, int64_t delta);
int64_t gauge_read(const struct gauge *gauge);
/* Counts a value in the histogram, in the cell of this worker: once, or several times. */
void histogram_record(struct histogram *histogram, unsigned worker, double value);
void histogram_record_many(struct histogram *histogram, unsigned worker, double value,
                           uint64_t times);

/* Appends all metrics of the level, sorted by name, with HELP and TYPE once for each name. form:
 * enum metrics_form. */
void metrics_write(struct metrics *metrics, unsigned form, struct text *out);

enum metric_type { METRIC_TYPE_COUNTER, METRIC_TYPE_GAUGE, METRIC_TYPE_HISTOGRAM };

/* The present state of a series, valid during the call of metrics_visit's function. */
struct metric_series {
    const char *name;
    const char *help;
    const char *labels; /* as metrics_label writes them */
    enum metric_type type;
    size_t series;    /* of a counter or histogram: its number, counted from 0, for good */
    bool is_observed; /* its value is asked for, not counted: an asynchronous instrument */
    bool is_integer;  /* number is the value, else real */
    int64_t number;   /* of a histogram: how many values it has */
    double real;      /* of a histogram: their sum */
    double least; /* of a histogram: its values; the least is above the greatest if it is empty */
    double greatest;
    const double *bounds;
    size_t bound_count;
    const uint64_t *buckets; /* bound_count + 1 of them, the last without bound */
};
/* Calls `visit` for each series of the level, sorted by name. It may not use the registry. */
void metrics_visit(struct metrics *metrics,
                   void (*visit)(void *context, const struct metric_series *series), void *context);
/* Appends key="value" to labels, with a comma when needed, escaped. */
void metrics_label(struct text *labels, const char *key, const char *value);
/* Returns the sum of all counters or gauges of this name with this label, as metrics_label writes
 * one: `exporter="otlp"`; "": all of them. 0 if there are none. */
double metrics_sum(struct metrics *metrics, const char *name, const char *label);
/* For tests: the value of a counter or gauge by name and labels; 0 if there is none. */
double metrics_value(struct metrics *metrics, const char *name, const char *labels);

#endif

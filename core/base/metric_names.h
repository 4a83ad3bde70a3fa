/*
 * metric_names: what the Collector knows of a metric besides its name: the instrumentation scope,
 * the unit that its name leaves out, and the level at which it appears.
 *
 * Owner: nobody; constant tables.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_BASE_METRIC_NAMES_H
#define PROFCOL_CORE_BASE_METRIC_NAMES_H

/* How many metrics are printed, as in the Collector's service::telemetry::metrics::level. */
enum metrics_level { METRICS_NONE, METRICS_BASIC, METRICS_NORMAL, METRICS_DETAILED };

/* Returns the value of the label otel_scope_name; NULL if the metric has no scope (target_info). */
const char *metric_scope(const char *name);
/* Returns what a name with suffixes has at its end for the unit: "_seconds", "_bytes" or "". */
const char *metric_unit_suffix(const char *name);
/* Returns the lowest level at which the metric is printed. */
enum metrics_level metric_level(const char *name);

#endif

/*
 * metric_names: what the Collector knows of a metric besides its name for Prometheus: the
 * instrumentation scope, the unit, the level at which it appears, and how OTLP names it and its
 * labels.
 *
 * Owner: nobody; constant tables.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_BASE_METRIC_NAMES_H
#define PROFCOL_CORE_BASE_METRIC_NAMES_H

#include <stdbool.h>

/* How many metrics are printed, as in the Collector's service::telemetry::metrics::level. */
enum metrics_level { METRICS_NONE, METRICS_BASIC, METRICS_NORMAL, METRICS_DETAILED };

/* An instrumentation scope, as in the labels otel_scope_*. */
struct metric_scope {
    const char *name;
    const char *version;    /* "": none */
    const char *schema_url; /* "": none */
};
/* Returns the scope, in static memory; NULL if the metric has none (target_info). */
const struct metric_scope *metric_scope(const char *name);
/* Returns what a name with suffixes has at its end for the unit: "_seconds", "_bytes" or "". */
const char *metric_unit_suffix(const char *name);
/* Returns the unit in OTLP (UCUM): "s", "By", "{span}"; "" if it has none. */
const char *metric_unit(const char *name);
/* Returns the name in OTLP: "http.server.request.duration". Most are the same. */
const char *metric_otlp_name(const char *name);
/* Whether a gauge of Prometheus is a sum in OTLP, which may fall. */
bool metric_is_up_down(const char *name);

enum metric_label_type { METRIC_LABEL_TEXT, METRIC_LABEL_INT, METRIC_LABEL_BOOL };
/* Returns the attribute in OTLP of a label: "server.port", a METRIC_LABEL_INT. Most are texts with
 * the same name. */
const char *metric_otlp_label(const char *label, enum metric_label_type *type_out);
/* Returns the lowest level at which the metric is printed. */
enum metrics_level metric_level(const char *name);

#endif

/*
 * filter_settings: the settings of the processor filter, and the list of conditions made of them.
 *
 * Both styles of the Collector are read: `trace_conditions` and so on, as strings or as groups, and
 * the older blocks `traces`, `profiles`, `metrics`, `logs`. `check` makes one plan for each signal
 * of either.
 *
 * Owner: settings and plans live in the configuration.
 *
 * Thread: read-only after start.
 */
#ifndef PROFCOL_PROCESSORS_FILTER_FILTER_SETTINGS_H
#define PROFCOL_PROCESSORS_FILTER_FILTER_SETTINGS_H

#include "core/data/otlp.h"
#include "core/ottl/ottl.h"
#include "core/ottl/ottl_errors.h"
#include "core/pipeline/component.h"

/* One condition: what it is true for is dropped. */
struct filter_condition {
    const char *text;
    const char *place; /* in the configuration, for the metric: "trace_conditions[0]" */
    enum ottl_context context;
    enum ottl_prefix prefix;
    enum ottl_error_mode error_mode;
};

/* Conditions that are asked together, in one walk over the batch: a group, or all strings. */
struct filter_pass {
    uint32_t first;
    uint32_t count;
    unsigned depth; /* the largest of its conditions (ottl_context_depth) */
};

/* The conditions of a signal. */
struct filter_plan {
    struct filter_condition *conditions;
    uint32_t count;
    uint32_t condition_capacity;
    struct filter_pass *passes; /* in the order of the configuration */
    uint32_t pass_count;
    uint32_t pass_capacity;
};

/* The older blocks. */
struct filter_traces {
    struct config_strings resource, span, spanevent;
};
struct filter_profiles {
    struct config_strings resource, profile, profilesample;
};
struct filter_metrics {
    struct config_strings resource;
    const struct config_node *metric, *datapoint, *include, *exclude;
};
struct filter_logs {
    struct config_strings resource;
    const struct config_node *log_record, *include, *exclude;
};

struct filter_settings {
    int error_mode;
    const struct config_node *trace_conditions, *profile_conditions, *metric_conditions,
        *log_conditions;
    struct filter_traces traces;
    struct filter_profiles profiles;
    struct filter_metrics metrics;
    struct filter_logs logs;
    const struct config_node *spans; /* not OTTL */
    struct filter_plan plans[SIGNAL_COUNT];
};

extern const struct field filter_fields[];

/* `check` of the component type. */
void filter_check(void *settings, struct config_check *check);

/* Compiles a condition. Returns NULL with err set. */
struct ottl_program *filter_condition_compile(const struct filter_condition *condition,
                                              struct error *err);

#endif

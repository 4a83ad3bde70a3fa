/*
 * transform_settings: the settings of the processor transform, and the groups of statements made of
 * them.
 *
 * A list of statements is read in both styles of the Collector: strings, which form one group, or
 * groups of context, conditions, statements and error_mode.
 *
 * Owner: settings and groups live in the configuration.
 *
 * Thread: read-only after start.
 */
#ifndef PROFCOL_PROCESSORS_TRANSFORM_TRANSFORM_SETTINGS_H
#define PROFCOL_PROCESSORS_TRANSFORM_TRANSFORM_SETTINGS_H

#include "core/data/otlp.h"
#include "core/ottl/ottl.h"
#include "core/ottl/ottl_errors.h"
#include "core/pipeline/component.h"

/* Statements that are executed one after the other on each item of a context, if one of the
 * conditions matches or there is none. */
struct transform_group {
    enum ottl_context context;
    enum ottl_prefix prefix;
    enum ottl_error_mode error_mode;
    struct config_strings conditions;
    struct config_strings statements;
};

/* The groups of a signal, in their order. */
struct transform_plan {
    struct transform_group *groups;
    uint32_t count;
    uint32_t capacity;
};

struct transform_settings {
    int error_mode;
    bool flatten_data;
    const struct config_node *trace_statements, *profile_statements, *metric_statements,
        *log_statements;
    struct transform_plan plans[SIGNAL_COUNT];
};

extern const struct field transform_fields[];

/* `check` of the component type. */
void transform_check(void *settings, struct config_check *check);

/* Compile a statement or a condition of a group. Return NULL with err set. */
struct ottl_program *transform_compile_statement(const struct transform_group *group, size_t at,
                                                 struct error *err);
struct ottl_program *transform_compile_condition(const struct transform_group *group, size_t at,
                                                 struct error *err);

#endif

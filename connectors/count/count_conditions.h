/*
 * count_conditions: which items the metrics of the connector count want, by OTTL conditions.
 *
 * A metric with several conditions counts what one of them matches, in their order. As in the
 * Collector, a condition that fails refuses the whole request.
 *
 * Owner: the component owns the programs, which are read-only; each node its conditions.
 *
 * Thread: one at a time for each node: its worker, or the job that counts the batch.
 */
#ifndef PROFCOL_CONNECTORS_COUNT_COUNT_CONDITIONS_H
#define PROFCOL_CONNECTORS_COUNT_COUNT_CONDITIONS_H

#include "connectors/count/count_settings.h"
#include "core/base/verdict.h"
#include "core/ottl/ottl.h"
#include "core/ottl/ottl_errors.h"

/* The conditions of a node. */
struct count_conditions {
    const struct count_settings *settings;
    struct ottl_evaluator **evaluators; /* in the order of the settings; NULL: no conditions */
    struct ottl_item item;
    struct ottl_errors errors; /* of the batch, which is refused if there is one */
};

/* Compiles all conditions of valid settings. Returns an array of settings->condition_count, NULL if
 * that is 0. */
struct ottl_program **count_programs_new(const struct count_settings *settings);
void count_programs_free(struct ottl_program **programs, size_t count);

void count_conditions_init(struct count_conditions *conditions,
                           const struct count_settings *settings, struct ottl_program **programs);
void count_conditions_deinit(struct count_conditions *conditions);

/* Whether any metric has conditions. */
static inline bool count_conditions_exist(const struct count_conditions *conditions)
{
    return conditions->evaluators != NULL;
}

/* Begins a batch, whose items the caller then sets. */
void count_conditions_begin(struct count_conditions *conditions);
/* Whether a metric with conditions counts the item. False if one of them failed, which sets
 * `errors.failed`. */
bool count_conditions_match(struct count_conditions *conditions, const struct count_metric *metric);

#endif

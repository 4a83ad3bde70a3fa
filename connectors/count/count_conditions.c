#include "connectors/count/count_conditions.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>

/* ---- at start ---- */

static void compile_metric(const struct count_metric *metric, enum counted kind,
                           struct ottl_program **programs)
{
    struct error err;
    for (size_t i = 0; i < metric->conditions.count; i++) {
        programs[i] = count_condition_compile(kind, metric->conditions.items[i], &err);
        assert(programs[i]); /* the check of the settings has compiled it */
    }
}

struct ottl_program **count_programs_new(const struct count_settings *settings)
{
    if (settings->condition_count == 0)
        return NULL;
    struct ottl_program **programs =
        memory_array(settings->condition_count, sizeof(struct ottl_program *));
    for (int kind = COUNTED_NOTHING + 1; kind < COUNTED_KINDS; kind++) {
        const struct count_metric *metrics = count_metrics_of(settings, (enum counted)kind);
        for (size_t i = 0; i < settings->sections[kind]->count; i++)
            compile_metric(&metrics[i], (enum counted)kind, programs + metrics[i].first_condition);
    }
    return programs;
}

void count_programs_free(struct ottl_program **programs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ottl_program_free(programs[i]);
    free(programs);
}

/* ---- nodes ---- */

void count_conditions_init(struct count_conditions *conditions,
                           const struct count_settings *settings, struct ottl_program **programs)
{
    *conditions = (struct count_conditions){.settings = settings};
    if (settings->condition_count == 0)
        return;
    conditions->evaluators =
        memory_array(settings->condition_count, sizeof(struct ottl_evaluator *));
    for (size_t i = 0; i < settings->condition_count; i++)
        conditions->evaluators[i] = ottl_evaluator_new(programs[i]);
}

void count_conditions_deinit(struct count_conditions *conditions)
{
    for (size_t i = 0; conditions->evaluators && i < conditions->settings->condition_count; i++)
        ottl_evaluator_free(conditions->evaluators[i]);
    free(conditions->evaluators);
    conditions->evaluators = NULL;
}

/* ---- for each item ---- */

void count_conditions_begin(struct count_conditions *conditions)
{
    ottl_errors_begin(&conditions->errors, NULL);
    if (count_conditions_exist(conditions))
        ottl_item_begin(&conditions->item);
}

bool count_conditions_match(struct count_conditions *conditions, const struct count_metric *metric)
{
    for (size_t i = 0; i < metric->conditions.count && !conditions->errors.failed; i++) {
        struct ottl_evaluator *evaluator = conditions->evaluators[metric->first_condition + i];
        enum ottl_result result = ottl_evaluate(evaluator, &conditions->item);
        if (result == OTTL_MATCH)
            return true;
        if (result == OTTL_FAILED)
            ottl_errors_report(&conditions->errors, OTTL_PROPAGATE, OTTL_OF_CONDITION,
                               metric->conditions.items[i], ottl_evaluator_error(evaluator));
    }
    return false;
}

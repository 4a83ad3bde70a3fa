#include "processors/spanjoin/keep_spans.h"

#include "core/base/memory.h"
#include "core/data/sampling.h"

#include <assert.h>

static const struct keep_condition *condition_at(const struct keep_settings *keep, size_t i)
{
    return (const struct keep_condition *)keep->span_detail_when.items + i;
}

/* ---- programs ---- */

void keep_programs_init(struct keep_programs *programs, const struct keep_settings *keep,
                        const char *label)
{
    struct error err;
    size_t conditions = keep->reads_ottl ? keep->span_detail_when.count : 0;
    programs->label = label;
    programs->count = 0;
    atomic_init(&programs->since_ns, 0);
    programs->items = memory_array(conditions + 1, sizeof(struct ottl_program *));
    for (size_t i = 0; i < conditions; i++) {
        const char *ottl = condition_at(keep, i)->ottl;
        if (!ottl)
            continue;
        struct ottl_program *program =
            ottl_compile_condition(OTTL_SPAN, slice_of_string(ottl), OTTL_PREFIX_OPTIONAL, &err);
        assert(program);
        programs->items[programs->count++] = program;
    }
}

void keep_programs_begin(struct keep_programs *programs, uint64_t now_ns)
{
    uint64_t never = UINT64_MAX;
    atomic_compare_exchange_strong_explicit(&programs->since_ns, &never, now_ns,
                                            memory_order_relaxed, memory_order_relaxed);
}

void keep_programs_deinit(struct keep_programs *programs)
{
    for (size_t i = 0; i < programs->count; i++)
        ottl_program_free(programs->items[i]);
    free(programs->items);
}

/* ---- a request ---- */

void keep_judge_init(struct keep_judge *judge, const struct keep_settings *keep,
                     const struct keep_programs *programs)
{
    judge->keep = keep;
    judge->programs = programs;
    judge->evaluators = NULL;
    if (programs->count == 0)
        return;
    judge->evaluators = memory_array(programs->count, sizeof(struct ottl_evaluator *));
    for (size_t i = 0; i < programs->count; i++)
        judge->evaluators[i] = ottl_evaluator_new(programs->items[i]);
    ottl_item_begin(&judge->item);
    ottl_errors_begin(&judge->errors, programs->label);
}

void keep_judge_deinit(struct keep_judge *judge)
{
    for (size_t i = 0; judge->evaluators && i < judge->programs->count; i++)
        ottl_evaluator_free(judge->evaluators[i]);
    free(judge->evaluators);
}

void keep_judge_resource(struct keep_judge *judge, struct slice resource_spans)
{
    if (judge->evaluators)
        ottl_item_set_group(&judge->item, message_iter_bytes(resource_spans));
}

void keep_judge_scope(struct keep_judge *judge, struct slice scope_spans)
{
    if (judge->evaluators)
        ottl_item_set_scope_group(&judge->item, message_iter_bytes(scope_spans));
}

static bool is_true_of_fields(const struct keep_condition *condition, const struct span_view *span)
{
    switch (condition->kind) {
    case KEEP_DURATION_ABOVE:
        return span->fields.end_ns > span->fields.start_ns &&
               span->fields.end_ns - span->fields.start_ns > (uint64_t)condition->duration_above;
    case KEEP_STATUS:
        return span->fields.status == condition->status;
    case KEEP_RATIO:
        return sampling_keeps(condition->threshold,
                              sampling_trace_randomness(span->fields.trace_id));
    default:
        return false;
    }
}

static bool is_true_in_ottl(struct keep_judge *judge, const struct keep_condition *condition,
                            size_t program)
{
    assert(judge->evaluators && program < judge->programs->count);
    enum ottl_result result = ottl_evaluate(judge->evaluators[program], &judge->item);
    if (result == OTTL_FAILED)
        ottl_errors_report(&judge->errors, OTTL_IGNORE, OTTL_OF_CONDITION, condition->ottl,
                           ottl_evaluator_error(judge->evaluators[program]));
    return result == OTTL_MATCH;
}

uint8_t keep_judge_span(struct keep_judge *judge, const struct span_view *span)
{
    const struct keep_settings *keep = judge->keep;
    if (!keep->enabled)
        return 0;
    if (judge->evaluators)
        ottl_item_set_span(&judge->item, message_iter_bytes(span->raw));
    for (size_t i = 0, program = 0; i < keep->span_detail_when.count; i++) {
        const struct keep_condition *condition = condition_at(keep, i);
        if (condition->ottl ? is_true_in_ottl(judge, condition, program++)
                            : is_true_of_fields(condition, span))
            return keep_by_condition(i);
    }
    return 0;
}

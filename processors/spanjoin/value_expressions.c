#include "processors/spanjoin/value_expressions.h"

#include "core/data/span_records.h"

#include <assert.h>

void value_programs_init(struct value_programs *programs, const struct spanjoin_side *side,
                         const char *label)
{
    struct error err;
    *programs = (struct value_programs){.label = label};
    assert(side->joined_count <= JOIN_ATTRIBUTES_MAX);
    for (size_t i = 0; i < side->joined_count; i++) {
        if (side->joined[i].path != JOIN_EXPRESSION)
            continue;
        programs->of[i] =
            ottl_compile_value(OTTL_SPAN, side->joined[i].name, OTTL_PREFIX_REQUIRED, &err);
        assert(programs->of[i]);
        programs->count++;
    }
}

void value_programs_deinit(struct value_programs *programs)
{
    for (size_t i = 0; i < JOIN_ATTRIBUTES_MAX; i++)
        ottl_program_free(programs->of[i]);
}

void value_expressions_init(struct value_expressions *expressions, const struct spanjoin_side *side,
                            const struct value_programs *programs)
{
    expressions->side = side;
    expressions->programs = programs;
    if (programs->count == 0)
        return;
    for (size_t i = 0; i < JOIN_ATTRIBUTES_MAX; i++)
        expressions->evaluators[i] = programs->of[i] ? ottl_evaluator_new(programs->of[i]) : NULL;
    ottl_item_begin(&expressions->item);
    ottl_errors_begin(&expressions->errors, programs->label);
    expressions->writer = (struct wire_writer){0};
}

void value_expressions_deinit(struct value_expressions *expressions)
{
    if (!value_expressions_any(expressions))
        return;
    for (size_t i = 0; i < JOIN_ATTRIBUTES_MAX; i++)
        ottl_evaluator_free(expressions->evaluators[i]);
    wire_writer_deinit(&expressions->writer);
}

void value_expressions_resource(struct value_expressions *expressions, struct slice resource_spans)
{
    assert(value_expressions_any(expressions));
    ottl_item_set_group(&expressions->item, message_iter_bytes(resource_spans));
}

void value_expressions_scope(struct value_expressions *expressions, struct slice scope_spans)
{
    ottl_item_set_scope_group(&expressions->item, message_iter_bytes(scope_spans));
}

void value_expressions_span(struct value_expressions *expressions, struct slice span)
{
    ottl_item_set_span(&expressions->item, message_iter_bytes(span));
}

struct slice value_expressions_value(struct value_expressions *expressions, size_t i)
{
    struct ottl_evaluator *evaluator = expressions->evaluators[i];
    assert(evaluator && expressions->side->joined[i].path == JOIN_EXPRESSION);
    wire_writer_clear(&expressions->writer);
    enum ottl_result result = ottl_evaluate_value(evaluator, &expressions->item,
                                                  SPAN_INDEX_VALUES_MAX, &expressions->writer);
    if (result == OTTL_FAILED)
        ottl_errors_report(&expressions->errors, OTTL_IGNORE, OTTL_OF_VALUE,
                           (const char *)expressions->side->joined[i].name.data,
                           ottl_evaluator_error(evaluator));
    return result == OTTL_MATCH ? wire_writer_slice(&expressions->writer) : (struct slice){0};
}

/*
 * value_expressions: values of joined attributes that are computed from the span by OTTL
 * expressions: `from: 'ConvertCase(span.name, "lower")'`.
 *
 * Paths that the join knows itself (spanjoin_settings.h) are no expressions, and cost no more
 * because of them.
 *
 * Owner: the component owns the programs; whoever reads a request, its value_expressions.
 *
 * Thread: programs are read-only. Everything else belongs to the thread that reads the request.
 */
#ifndef PROFCOL_SPANJOIN_VALUE_EXPRESSIONS_H
#define PROFCOL_SPANJOIN_VALUE_EXPRESSIONS_H

#include "core/data/wire_writer.h"
#include "core/ottl/ottl.h"
#include "core/ottl/ottl_errors.h"
#include "processors/spanjoin/spanjoin_settings.h"

/* The compiled expressions of one side, by index in side->joined; NULL: not an expression. */
struct value_programs {
    struct ottl_program *of[JOIN_ATTRIBUTES_MAX];
    unsigned count;
    const char *label; /* of the component, for the log */
};

/* Compiles the expressions of a side, which were checked before. Frees them. */
void value_programs_init(struct value_programs *programs, const struct spanjoin_side *side,
                         const char *label);
void value_programs_deinit(struct value_programs *programs);

/* The expressions of one side while a request is read. */
struct value_expressions {
    const struct spanjoin_side *side;
    const struct value_programs *programs;
    struct ottl_evaluator *evaluators[JOIN_ATTRIBUTES_MAX]; /* not set without programs */
    struct ottl_item item;
    struct ottl_errors errors;
    struct wire_writer writer;
};

/* Begins a request. Without expressions nothing else needs to be called. */
void value_expressions_init(struct value_expressions *expressions, const struct spanjoin_side *side,
                            const struct value_programs *programs);
void value_expressions_deinit(struct value_expressions *expressions);
static inline bool value_expressions_any(const struct value_expressions *expressions)
{
    return expressions->programs->count > 0;
}
/* Enter an encoded ResourceSpans, a ScopeSpans in it, and a Span in that. Call them only if there
 * are expressions. */
void value_expressions_resource(struct value_expressions *expressions, struct slice resource_spans);
void value_expressions_scope(struct value_expressions *expressions, struct slice scope_spans);
void value_expressions_span(struct value_expressions *expressions, struct slice span);
/* Returns the value of side->joined[i], an expression, of the span, as the payload of an AnyValue.
 * Empty if there is none, and if the expression fails, which is logged. Valid until the next
 * call. */
struct slice value_expressions_value(struct value_expressions *expressions, size_t i);

#endif

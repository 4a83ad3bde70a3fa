/*
 * keep_spans: whether a span itself says that its samples keep their detail: all conditions of
 * `keep` but those on CPU time, which keep_samples.h adds when samples leave.
 *
 * Owner: the component owns the programs; whoever reads a request, a judge.
 *
 * Thread: programs are read-only. A judge belongs to the thread that reads the request.
 */
#ifndef PROFCOL_SPANJOIN_KEEP_SPANS_H
#define PROFCOL_SPANJOIN_KEEP_SPANS_H

#include "core/ottl/ottl.h"
#include "core/ottl/ottl_errors.h"
#include "processors/spanjoin/joined_values.h"

/* The compiled OTTL conditions of a component. */
struct keep_programs {
    struct ottl_program **items;
    size_t count;
    const char *label; /* of the component, for the log */
};

/* Compiles the conditions, which keep_check has compiled before. Frees them. */
void keep_programs_init(struct keep_programs *programs, const struct keep_settings *keep,
                        const char *label);
void keep_programs_deinit(struct keep_programs *programs);

struct keep_judge {
    const struct keep_settings *keep;
    const struct keep_programs *programs;
    struct ottl_evaluator **evaluators;
    struct ottl_item item;
    struct ottl_errors errors;
};

/* Begins a request. If `keep` is not enabled, no span is kept, and none need be judged. */
void keep_judge_init(struct keep_judge *judge, const struct keep_settings *keep,
                     const struct keep_programs *programs);
void keep_judge_deinit(struct keep_judge *judge);
/* Enter an encoded ResourceSpans, and a ScopeSpans in it. */
void keep_judge_resource(struct keep_judge *judge, struct slice resource_spans);
void keep_judge_scope(struct keep_judge *judge, struct slice scope_spans);
/* Returns whether a condition is true for a span in that scope. */
bool keep_judge_span(struct keep_judge *judge, const struct span_view *span);

#endif

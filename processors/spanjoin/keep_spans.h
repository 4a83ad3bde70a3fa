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
    const char *label;         /* of the component, for the log */
    _Atomic uint64_t since_ns; /* spans that arrived before were judged by an earlier `keep`;
                                  UINT64_MAX: all of them, until keep_programs_begin */
};

/* Compiles the conditions, which keep_check has compiled before. Frees them. */
void keep_programs_init(struct keep_programs *programs, const struct keep_settings *keep,
                        const char *label);
/* Call it when the first node of the component starts. Any thread. */
void keep_programs_begin(struct keep_programs *programs, uint64_t now_ns);
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
/* Returns the first condition that is true for a span in that scope (keep_by_condition); 0: none.
 */
uint8_t keep_judge_span(struct keep_judge *judge, const struct span_view *span);

#endif

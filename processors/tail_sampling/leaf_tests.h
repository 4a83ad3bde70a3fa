/*
 * leaf_tests: asks the policies that look at spans and resources: what they compile to, and what
 * they say about one.
 *
 * Owner: the component owns the programs, which are read-only; a node its tests.
 *
 * Thread: programs any; tests one at a time.
 */
#ifndef PROFCOL_TAIL_SAMPLING_LEAF_TESTS_H
#define PROFCOL_TAIL_SAMPLING_LEAF_TESTS_H

#include "core/ottl/ottl_errors.h"
#include "core/ottl/ottl_regex.h"
#include "processors/tail_sampling/tail_settings.h"

/* What a leaf compiles to. */
struct leaf_program {
    struct ottl_regex **regexes; /* of string_attribute */
    struct ottl_program **conditions;
    uint32_t regex_count, condition_count;
};

struct leaf_programs {
    const struct tail_plan *plan;
    struct leaf_program *of; /* by number of the leaf */
};

/* Compiles all leaves. Returns false with err set. */
bool leaf_programs_init(struct leaf_programs *programs, const struct tail_plan *plan,
                        struct error *err);
void leaf_programs_deinit(struct leaf_programs *programs);

struct leaf_tests {
    const struct leaf_programs *programs;
    struct ottl_evaluator ***evaluators; /* by number of the leaf, then of the condition */
    struct ottl_matcher *matcher;
    struct ottl_item item;
    struct ottl_errors errors;
    const char *label;
    bool has_conditions; /* on spans or their events */
};

/* label: of the component, for the log. */
void leaf_tests_init(struct leaf_tests *tests, const struct leaf_programs *programs,
                     const char *label);
void leaf_tests_deinit(struct leaf_tests *tests);
/* Begins a batch. */
void leaf_tests_begin(struct leaf_tests *tests);

/* What of a span the tests read. */
struct tested_span {
    struct slice bytes;
    struct slice trace_state;
    int status;
    uint64_t flags;
};
/* Set the bits of the policies that match. `known`: bits that are set already, which are not tested
 * again. */
void leaf_tests_resource(struct leaf_tests *tests, struct slice resource, uint64_t *bits);
void leaf_tests_span(struct leaf_tests *tests, const struct tested_span *span,
                     const uint64_t *known, uint64_t *bits);

#endif

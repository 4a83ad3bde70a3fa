/*
 * ottl_verdicts: what a condition on samples has said of each stack of a batch.
 *
 * For conditions that read nothing else of a sample (ottl_program.reach). They are evaluated once
 * for each stack, and those that read only the function of the leaf once for each name. What is
 * known of all stacks at once is not evaluated: each table of the dictionary is read in its order.
 *
 * Owner: the evaluator; the arrays are in the arena of the batch.
 *
 * Thread: that of the evaluator.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_VERDICTS_H
#define PROFCOL_CORE_OTTL_OTTL_VERDICTS_H

#include "core/ottl/ottl_program.h"

/* All zero: nothing was said. A verdict is 1 + enum ottl_result; 0: unknown. */
struct ottl_verdicts {
    uint64_t batch; /* whose stacks these are */
    uint8_t *stacks;
    uint8_t *names; /* by index in the string_table */
    uint32_t stack_count, name_count;
    bool has_misses; /* the stacks that StackContains has missed have a verdict */
};

/* Of ottl_evaluate.c. */
const struct ottl_program *ottl_evaluator_program(const struct ottl_evaluator *evaluator);
struct ottl_verdicts *ottl_evaluator_verdicts(struct ottl_evaluator *evaluator);
/* Returns what a call of StackContains has found. */
const struct ottl_stack_search *ottl_evaluator_search(const struct ottl_evaluator *evaluator,
                                                      const struct ottl_node *call);

#endif

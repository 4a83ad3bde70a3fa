/*
 * filter_walk: removes from a batch what the conditions of a filter are true for.
 *
 * From the resources down: what is dropped takes all that is in it along. Afterwards, scopes and
 * resources that are empty go, also those that came empty, as far down as the conditions look. A
 * span stays when all its events went; a profile goes with its last sample.
 *
 * Owner: the node owns the walk. It borrows the plan.
 *
 * Thread: that of the node, or the job that works on its batch.
 */
#ifndef PROFCOL_PROCESSORS_FILTER_FILTER_WALK_H
#define PROFCOL_PROCESSORS_FILTER_FILTER_WALK_H

#include "core/data/sample_marks.h"
#include "processors/filter/filter_settings.h"

struct filter_walk {
    const struct filter_plan *plan;
    const char *label;                  /* of the component, for the log */
    struct ottl_evaluator **evaluators; /* of each condition */
    /* Of the last batch: */
    uint32_t *dropped; /* items (events, for conditions on those) that each condition dropped */
    uint32_t dropped_items; /* all together, without events */
    bool changed;           /* something was removed, even if it had no items */
    bool has_groups;        /* a resource is left */
    struct ottl_errors errors;
    bool has_marks; /* each sample that is left is in these marks, which live in its arena */
    struct sample_marks marks;
    /* While it walks: */
    const struct filter_pass *pass;
    bool asks_stacks;     /* all conditions of the pass on samples read only their stacks */
    uint8_t *keeps_stack; /* by index: 1: none of them drops a sample; NULL: not known yet */
    uint32_t stack_count;
    bool keeps_all; /* none drops a sample of any stack */
    bool has_stack; /* it is at a sample that may be dropped, of this stack: */
    uint32_t stack;
    struct batch *batch;
    struct ottl_item item;
};

/* programs: of each condition. */
void filter_walk_init(struct filter_walk *walk, const struct filter_plan *plan, const char *label,
                      struct ottl_program *const *programs);
void filter_walk_deinit(struct filter_walk *walk);
/* Filters the batch. Subtracts what it removes from batch->items. */
void filter_walk_batch(struct filter_walk *walk, struct batch *batch);

#endif

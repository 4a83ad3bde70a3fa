/*
 * transform_walk: executes the groups of a transform on a batch, each on all of it.
 *
 * Owner: the node owns the walk. It borrows the plan.
 *
 * Thread: that of the node, or the job that works on its batch.
 */
#ifndef PROFCOL_PROCESSORS_TRANSFORM_TRANSFORM_WALK_H
#define PROFCOL_PROCESSORS_TRANSFORM_TRANSFORM_WALK_H

#include "processors/transform/transform_settings.h"

/* The programs of a group, or their evaluators. */
struct transform_programs {
    struct ottl_program **conditions;
    struct ottl_program **statements;
};
struct transform_evaluators {
    struct ottl_evaluator **conditions;
    struct ottl_evaluator **statements;
};

struct transform_walk {
    const struct transform_plan *plan;
    const char *label; /* of the component, for the log */
    struct transform_evaluators *evaluators;
    /* Of the last batch: */
    bool changed;
    struct ottl_errors errors;
    /* While it walks: */
    uint32_t group;
    struct batch *batch;
    struct ottl_item item;
    struct ottl_way way;
    struct ottl_cache cache;
    struct ottl_draft *draft;
};

/* programs: of each group. */
void transform_walk_init(struct transform_walk *walk, const struct transform_plan *plan,
                         const char *label, const struct transform_programs *programs);
void transform_walk_deinit(struct transform_walk *walk);
/* Executes the statements on the batch. */
void transform_walk_batch(struct transform_walk *walk, struct batch *batch);

#endif

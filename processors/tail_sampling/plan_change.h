/*
 * plan_change: what one plan has in common with another: the policies that read spans and samples
 * the same way, so that what was seen for one counts for the other.
 *
 * Owner: the caller.
 *
 * Thread: any; both plans must live.
 */
#ifndef PROFCOL_TAIL_SAMPLING_PLAN_CHANGE_H
#define PROFCOL_TAIL_SAMPLING_PLAN_CHANGE_H

#include "processors/tail_sampling/tail_settings.h"

struct plan_change {
    const struct tail_plan *before, *after;
    const struct tail_policy **same; /* by number of a leaf of `after`: of `before`, or NULL */
    bool reads_more;                 /* `after` looks for something else in spans, too */
    bool reads_more_samples;         /* the same in samples */
    bool moves_bits;                 /* the bits are not the same */
};

/* Compares the leaves of two plans. */
void plan_change_init(struct plan_change *change, const struct tail_plan *before,
                      const struct tail_plan *after);
void plan_change_deinit(struct plan_change *change);
/* Sets those bits of `after` (all zero) that are set in the bits of `before`. */
void plan_change_bits(const struct plan_change *change, const uint64_t *before, uint64_t *after);

#endif

/*
 * limit_profiles: applies the limits of the processor to a profiles batch.
 *
 * Stacks are cut first (stack_cut.h); then the small ones of each profile (small_stacks.h) become
 * one, `[other]`, and their samples are folded (core/data/fold.h). The totals of each profile stay.
 *
 * Owner: what is written lives in the batch's arena.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_STACK_LIMIT_LIMIT_PROFILES_H
#define PROFCOL_STACK_LIMIT_LIMIT_PROFILES_H

#include "core/pipeline/batch.h"

struct profile_limits {
    uint64_t max_depth;         /* frames, at least 2; 0: off */
    uint64_t max_profile_bytes; /* 0: off */
    double min_share;           /* of the total, below 1; 0: off */
};

/* Numbers of samples, as they arrived. */
struct limited_samples {
    uint64_t truncated;
    uint64_t below_share, beyond_size; /* folded */
};

/* Limits the batch, prunes its dictionary if it was changed, and sets batch->items. */
struct limited_samples limit_profiles(struct batch *batch, const struct profile_limits *limits);

#endif

/*
 * sample_functions: the functions in which the samples of a request were taken, for
 * `samples.top_functions`. The function of a sample is the innermost of its stack.
 *
 * Owner: the plan.
 *
 * Thread: that of the plan.
 */
#ifndef PROFCOL_SPANJOIN_SAMPLE_FUNCTIONS_H
#define PROFCOL_SPANJOIN_SAMPLE_FUNCTIONS_H

#include "core/data/top_functions.h"
#include "processors/spanjoin/sample_totals.h"

/* Notes the functions of the samples of a profile, which are planned, and which totals contain. */
void sample_functions_note_all(struct sample_plan *plan, const struct profile_plan *profile,
                               struct slice raw);
/* Notes the function of one sample of a key. */
void sample_functions_note(struct sample_plan *plan, uint32_t key, const struct profile_sums *sums,
                           struct slice sample);
/* Adds what was noted to the index. Call it where the totals are added. */
void sample_functions_add(const struct sample_plan *plan, struct span_index *index,
                          uint64_t now_ns);

#endif

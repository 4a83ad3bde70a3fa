/*
 * thread_pairs: which ids of the operating system and of a runtime are of one thread.
 *
 * Recordings of a runtime name both (core/data/sample_threads.h). Other profilers, which know only
 * those of the operating system, can then be joined to spans that have the runtime's
 * (core/data/thread_spans.h).
 *
 * Owner: the plan.
 *
 * Thread: that of the plan.
 */
#ifndef PROFCOL_SPANJOIN_THREAD_PAIRS_H
#define PROFCOL_SPANJOIN_THREAD_PAIRS_H

#include "processors/spanjoin/attribute_classes.h"
#include "processors/spanjoin/sample_view.h"

struct thread_spans;

/* Whether the plan notes pairs. Only the first plan of a request does. */
static inline bool thread_pairs_count(const struct sample_plan *plan)
{
    return plan->index && !plan->counts;
}
/* Whether nothing new is to be noted of a sample with these attributes, packed; traits: of all of
 * them. */
bool thread_pairs_find_new(struct sample_plan *plan, struct slice attributes);
static inline bool thread_pairs_are_noted(struct sample_plan *plan, struct slice attributes,
                                          uint8_t traits)
{
    if (!thread_pairs_count(plan))
        return true;
    bool may_be_new = plan->process == plan->pairs_process ? (traits & TRAIT_UNPAIRED) != 0
                                                           : plan->has_added_threads;
    return !may_be_new || !thread_pairs_find_new(plan, attributes);
}
/* Notes the ids of a sample's thread, once for each process and id of the runtime, in the first
 * plan of a request. */
void thread_pairs_note(struct sample_plan *plan, const struct sample_view *view);
/* Tells of the pairs of a plan. */
void thread_pairs_tell(const struct sample_plan *plan, struct thread_spans *threads);

#endif

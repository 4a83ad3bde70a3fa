/*
 * thread_samples: gives samples that name no span the Link of the span that was running on their
 * thread (docs/spanjoin.md, "By thread and time").
 *
 * It goes before the join: afterwards these samples name their span like all others, and a new plan
 * is made. A sample whose timestamps belong to several spans is split; values and timestamps stay
 * paired.
 *
 * Owner: the plan's; results as described.
 *
 * Thread: that of the batch: its worker, or a job.
 */
#ifndef PROFCOL_SPANJOIN_THREAD_SAMPLES_H
#define PROFCOL_SPANJOIN_THREAD_SAMPLES_H

#include "processors/spanjoin/sample_plan.h"

struct thread_spans;

struct thread_links {
    uint8_t *is_linked; /* for each sample of the changed request; NULL: it did not change.
                           Allocated with malloc */
    uint64_t linked;    /* samples that gained a Link */
    uint64_t ambiguous; /* samples whose span is not known for sure */
};

/* Changes the batch of the plan. Returns true if it did; then the plan is of no use any more.
 * Call thread_links_deinit in any case. */
bool thread_samples_link(struct sample_plan *plan, struct thread_spans *threads,
                         struct thread_links *links_out);
void thread_links_deinit(struct thread_links *links);

#endif

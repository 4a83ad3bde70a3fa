/*
 * child_samples: lets samples that name a local root go on to the child that was running then
 * (`attribute_children`; docs/spanjoin.md, "From the local root to its children").
 *
 * It goes after the join: the local root must have been found. A sample whose timestamps belong to
 * several spans is split, as by thread and time.
 *
 * Owner: the plan's; results as described.
 *
 * Thread: that of the batch: its worker, or a job.
 */
#ifndef PROFCOL_SPANJOIN_CHILD_SAMPLES_H
#define PROFCOL_SPANJOIN_CHILD_SAMPLES_H

#include "processors/spanjoin/thread_samples.h"

struct span_index;

/* Changes the batch of a plan whose spans are chosen. Returns true if it did: the plan then does
 * not fit the batch any more. Call thread_links_deinit in any case. */
bool child_samples_link(struct sample_plan *plan, struct span_index *index,
                        struct thread_links *links_out);
/* Decides which samples of the new plan of the batch keep their detail: also those whose local root
 * keeps its own. */
void child_samples_decide(struct sample_plan *plan, const struct sample_plan *before,
                          const struct thread_links *links);
/* Passes on to it what else the old one decided: ids that are removed from profiles and resources,
 * and the services of uploads. */
void child_samples_finish(struct sample_plan *plan, const struct sample_plan *before);

#endif

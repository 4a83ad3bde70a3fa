/*
 * thread_samples: gives samples that name no span the Link of the span that was running on their
 * thread (docs/spanjoin.md, "By thread and time").
 *
 * Owner: the plan's; results as described.
 *
 * Thread: that of the batch: its worker, or a job.
 */
#ifndef PROFCOL_SPANJOIN_THREAD_SAMPLES_H
#define PROFCOL_SPANJOIN_THREAD_SAMPLES_H

#include "processors/spanjoin/timed_links.h"

/* Does what timed_samples_link does (timed_links.h), by thread. totals: those that the plan has
 * afterwards; of all samples if it had totals before, otherwise of those whose spans it found. */
bool thread_samples_link(struct sample_plan *plan, const struct plan_totals *totals,
                         struct thread_links *links_out);

#endif

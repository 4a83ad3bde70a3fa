/*
 * sample_ids: which span each sample of a request names, and what the samples of each span sum up
 * to.
 *
 * A plan is made from the bytes of a profiles request in one pass: every distinct id becomes a
 * key, every sample refers to one (or none). The index is then asked about the keys, and
 * enrich_samples.c changes the request by the plan.
 *
 * Owner: the node that made it, until the request goes on: a plan is several times as large as
 * what it says, too much to stand in a queue with the request.
 *
 * Thread: the batch's worker.
 */
#ifndef PROFCOL_SPANJOIN_SAMPLE_IDS_H
#define PROFCOL_SPANJOIN_SAMPLE_IDS_H

#include "processors/spanjoin/sample_plan.h"

/* batch must be unchanged. index: totals are computed, except for profiles whose id came in another
 * request (a number that no other request has); NULL: no totals. sender: of this batch. */
struct sample_plan *sample_plan_new(struct batch *batch, const struct request_sender *sender,
                                    struct span_index *index, uint64_t request);
void sample_plan_free(struct sample_plan *plan);
/* After span_index_find_many on plan->finds: decides which span each key means. Keys without a
 * trace id take that of their span. */
void sample_plan_choose(struct sample_plan *plan);
/* Keys whose span did not come yet. */
uint32_t sample_plan_missing(const struct sample_plan *plan);
/* Tells the index about the profile ids, once the request is admitted. */
void sample_plan_remember_profiles(const struct sample_plan *plan);

#endif

/*
 * enrich_samples: the profiles side of the join: changes the samples of a request according to a
 * plan.
 *
 * Joined samples get their Link and the attributes of their span; promoted ones get a Link instead
 * of the attributes that named the span. No value, timestamp, order or existing index changes. A
 * profile with such samples is rewritten as a whole; the others keep their bytes.
 *
 * Owner: added data lives in the batch's arena.
 *
 * Thread: the batch's worker.
 */
#ifndef PROFCOL_SPANJOIN_ENRICH_SAMPLES_H
#define PROFCOL_SPANJOIN_ENRICH_SAMPLES_H

#include "processors/spanjoin/sample_ids.h"

/* Changes the request. Call it after sample_plan_choose. */
void sample_plan_apply(struct sample_plan *plan);

#endif

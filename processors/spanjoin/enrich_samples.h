/*
 * enrich_samples: the profiles side of the join: what a request's samples gain and lose by their
 * plan.
 *
 * Joined samples get their Link and the attributes of their span, promoted ones a Link in place of
 * the attributes that named the span. Nothing else changes: no value, timestamp, order or index
 * that was there before. A profile with such samples is written anew as a whole, the others stay
 * the bytes they are.
 *
 * Owner: what a request gains lives in the batch's arena.
 *
 * Thread: the batch's worker.
 */
#ifndef PROFCOL_SPANJOIN_ENRICH_SAMPLES_H
#define PROFCOL_SPANJOIN_ENRICH_SAMPLES_H

#include "processors/spanjoin/sample_ids.h"

/* After sample_plan_choose. */
void sample_plan_apply(struct sample_plan *plan);

#endif

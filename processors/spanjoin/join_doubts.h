/*
 * join_doubts: what the feed (join_feed.h) is told of samples of which it is not known whose they
 * are.
 *
 * Owner: the plan, in its arena.
 *
 * Thread: that of the plan.
 */
#ifndef PROFCOL_SPANJOIN_JOIN_DOUBTS_H
#define PROFCOL_SPANJOIN_JOIN_DOUBTS_H

#include "processors/spanjoin/sample_plan.h"

/* Notes them in the plan. Call it while plan->left is what thread_samples.h has left there. */
void join_doubts_note(struct sample_plan *plan);

#endif

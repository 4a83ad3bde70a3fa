/*
 * keep_samples: takes the detail from samples whose span is not worth it (`keep`).
 *
 * A sample keeps its detail if its span was judged so when it arrived (keep_spans.h), or if the
 * samples of the span have more CPU time than a condition says, those of this request included.
 * Others are folded (core/data/fold.h), dropped or passed. Threads and times that readers added for
 * the join (core/data/sample_threads.h) are removed in the same pass.
 *
 * Owner: what is written lives in the batch's arena.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_SPANJOIN_KEEP_SAMPLES_H
#define PROFCOL_SPANJOIN_KEEP_SAMPLES_H

#include "processors/spanjoin/hold_state.h"
#include "processors/spanjoin/sample_plan.h"

/* Call it once the spans of the keys are chosen: decides about each key. since_ns: as in struct
 * keep_programs. */
void keep_samples_decide(struct sample_plan *plan, uint64_t since_ns);
/* The same after samples went on to children. before: the plan of the same request before that. The
 * CPU time of a root is that of all samples that named it, and that of a child also has what went
 * on to it. */
void keep_samples_decide_moved(struct sample_plan *plan, const struct sample_plan *before);
/* Returns the first condition on CPU time that is true (keep_by_condition); 0: none. cpu_ns: of all
 * samples of the span. */
uint8_t keep_by_cpu(const struct keep_settings *keep, const struct span_facts *facts,
                    int64_t cpu_ns);
/* Sets with_detail of the finds. keep_samples_decide does so, too. Call it again when more is
 * decided, or known of the request. */
void keep_samples_note_detail(struct sample_plan *plan);
/* Whether the samples of a key lose the detail of their span, or would without dry_run. */
static inline bool keep_would_take_detail(const struct sample_plan *plan, uint32_t k)
{
    const struct keep_settings *keep = &plan->settings->keep;
    return keep->enabled && keep->otherwise != KEEP_PASS && plan->keys[k].match &&
           !plan->finds[k].kept_by;
}
/* Whether they do. */
static inline bool keep_takes_detail(const struct sample_plan *plan, uint32_t k)
{
    return !plan->settings->keep.dry_run && keep_would_take_detail(plan, k);
}
/* Whether a sample with these bits of the plan is folded, dropped or stripped as it came: what it
 * gains is only part of what it becomes. */
static inline bool keep_takes_sample(const struct sample_plan *plan, uint32_t named)
{
    if ((named & (SAMPLE_IS_PLAIN | SAMPLE_PROMOTED)) != SAMPLE_IS_PLAIN)
        return false;
    uint32_t k = (named & SAMPLE_KEY) - 1;
    const struct sample_key *key = &plan->keys[k];
    bool is_stripped = (named & SAMPLE_IS_STRIPPED) && key->match && key->trace_given;
    return is_stripped || keep_takes_detail(plan, k);
}
/* Call it after sample_plan_apply. Also removes the threads that readers added, and sets
 * batch->items. */
void keep_samples_apply(struct sample_plan *plan, struct keep_counts *counts);

#endif

/*
 * policy_decision: asks the policies about a trace, by its facts.
 *
 * Each policy is true, false or without a vote. One that drops ends the decision; otherwise a trace
 * is sampled if a policy samples it. Rates are token buckets and windows of one second for the
 * whole process.
 *
 * Owner: the caller.
 *
 * Thread: any; the states of the rates have a lock.
 */
#ifndef PROFCOL_TAIL_SAMPLING_POLICY_DECISION_H
#define PROFCOL_TAIL_SAMPLING_POLICY_DECISION_H

#include "processors/tail_sampling/plan_change.h"
#include "processors/tail_sampling/tail_metrics.h"
#include "processors/tail_sampling/trace_facts.h"

#include <pthread.h>

/* A token bucket, or what passed in a second. */
struct rate_state {
    double tokens;
    uint64_t at_ns; /* of the tokens; 0: the bucket is full */
    uint64_t second;
    int64_t spans;
};

struct rate_states {
    pthread_mutex_t lock;
    struct rate_state *states;
};

void rate_states_init(struct rate_states *rates, const struct tail_plan *plan);
void rate_states_deinit(struct rate_states *rates);
/* Makes them those of another plan, on main while no worker decides. Token buckets of equal
 * policies stay as full as they are. */
void rate_states_change(struct rate_states *rates, const struct plan_change *change);

/* What is decided about. */
struct decided_trace {
    const uint8_t *id; /* 16 bytes */
    const struct trace_facts *facts;
    const uint64_t *bits;
};

/* Decides: VOTE_SAMPLED, VOTE_NOT_SAMPLED or VOTE_DROPPED, and counts what each policy said. */
enum tail_vote policies_decide(const struct tail_settings *settings, struct rate_states *rates,
                               const struct decided_trace *trace, uint64_t now_ns,
                               const struct tail_metrics *metrics, unsigned worker);

#endif

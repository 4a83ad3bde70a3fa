/*
 * trace_sampler: which spans and traces probabilistic_sampler keeps.
 *
 * The decisions are those of the Collector's processor, bit for bit, and so is the tracestate of a
 * span that is kept.
 *
 * Owner: plain data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PROBABILISTIC_SAMPLER_TRACE_SAMPLER_H
#define PROFCOL_PROBABILISTIC_SAMPLER_TRACE_SAMPLER_H

#include "core/data/sampling_state.h"

enum sampler_mode { SAMPLER_HASH_SEED, SAMPLER_EQUALIZING, SAMPLER_PROPORTIONAL };

struct trace_sampler {
    enum sampler_mode mode;
    bool keeps_none; /* the percentage is 0, or too small for the mode */
    bool fail_closed;
    uint32_t hash_seed;
    unsigned precision; /* hex digits of a threshold */
    double ratio;
    uint64_t threshold; /* of a trace without one */
};

/* percentage: 0 and more; above 100 is 100. */
struct trace_sampler trace_sampler_init(enum sampler_mode mode, double percentage,
                                        uint32_t hash_seed, unsigned precision, bool fail_closed);

/* What a decision depends on. */
struct sampled_span {
    struct slice trace_id; /* 16 bytes, or empty */
    struct slice tracestate;
    struct slice
        priority; /* value of the attribute sampling.priority, the payload of an AnyValue */
    bool has_priority;
};

/* Where the decision came from: the label `policy` of the metrics. */
enum sampler_policy {
    POLICY_TRACE_ID_HASH,
    POLICY_TRACE_ID_W3C,
    POLICY_SAMPLING_RANDOMNESS,
    POLICY_SAMPLING_PRIORITY,
    POLICY_MISSING_RANDOMNESS,
    POLICIES,
};
extern const char *const sampler_policy_names[POLICIES];

struct sampler_decision {
    enum sampler_policy policy;
    bool is_kept;
    bool writes_state; /* the span gets the tracestate in `state` */
};

/* Decides about a span. *state: what its tracestate becomes. */
struct sampler_decision trace_sampler_decide(const struct trace_sampler *sampler,
                                             const struct sampled_span *span,
                                             struct sampling_state *state);
/* Whether a trace is kept whose spans have no tracestate and no sampling.priority. */
bool trace_sampler_keeps(const struct trace_sampler *sampler, struct slice trace_id);

#endif

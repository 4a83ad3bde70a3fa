#include "processors/probabilistic_sampler/trace_sampler.h"

#include "core/base/go_number.h"
#include "core/data/any_value.h"

#include <assert.h>

const char *const sampler_policy_names[POLICIES] = {
    [POLICY_TRACE_ID_HASH] = "trace_id_hash",
    [POLICY_TRACE_ID_W3C] = "trace_id_w3c",
    [POLICY_SAMPLING_RANDOMNESS] = "sampling_randomness",
    [POLICY_SAMPLING_PRIORITY] = "sampling_priority",
    [POLICY_MISSING_RANDOMNESS] = "missing_randomness",
};

struct trace_sampler trace_sampler_init(enum sampler_mode mode, double percentage,
                                        uint32_t hash_seed, unsigned precision, bool fail_closed)
{
    float percent = percentage < 100 ? (float)percentage : 100; /* as the Collector holds it */
    double least = 1.0 / (double)SAMPLING_LIMIT;
    struct trace_sampler sampler = {.mode = mode,
                                    .fail_closed = fail_closed,
                                    .hash_seed = hash_seed,
                                    .precision = precision,
                                    .ratio = (double)percent / 100};
    assert(percentage >= 0 && precision > 0);
    if (sampler.ratio < least)
        sampler.ratio = least;
    sampler.threshold = mode == SAMPLER_HASH_SEED ? sampling_hash_threshold(percent)
                                                  : sampling_threshold(sampler.ratio, precision);
    sampler.keeps_none =
        percent == 0 || (mode == SAMPLER_HASH_SEED && sampler.threshold == SAMPLING_NEVER);
    if (sampler.keeps_none)
        sampler.threshold = SAMPLING_NEVER;
    return sampler;
}

/* ---- randomness ---- */

struct randomness {
    uint64_t value;
    enum sampler_policy policy;
};

static const struct randomness missing = {SAMPLING_LIMIT - 1, POLICY_MISSING_RANDOMNESS};

static bool is_given(struct slice trace_id)
{
    for (size_t i = 0; i < trace_id.size; i++)
        if (trace_id.data[i] != 0)
            return true;
    return false;
}

static struct randomness randomness_of_trace(const struct trace_sampler *sampler,
                                             struct slice trace_id)
{
    if (!is_given(trace_id))
        return missing;
    if (sampler->mode == SAMPLER_HASH_SEED)
        return (struct randomness){sampling_hash_randomness(trace_id, sampler->hash_seed),
                                   POLICY_TRACE_ID_HASH};
    return (struct randomness){sampling_trace_randomness(trace_id), POLICY_TRACE_ID_W3C};
}

/* What is known of a span before the threshold is compared. */
struct reading {
    struct randomness randomness;
    bool has_state; /* its tracestate may be written */
    bool failed;
};

/* Randomness that is not used, so that nothing is missing. The tracestate may be written even if it
 * could not be read: sampling.priority keeps a span in spite of errors. */
static struct reading read_for_none(bool is_valid)
{
    return (struct reading){{SAMPLING_LIMIT - 1, POLICY_SAMPLING_PRIORITY}, true, !is_valid};
}

/* A span that has randomness or a threshold is an error: its sender should not be sampled by this
 * hash again. */
static struct reading read_for_hash(struct randomness randomness, struct sampling_state *state,
                                    bool is_valid)
{
    if (!is_valid || state->has_randomness || state->has_threshold)
        return (struct reading){randomness, false, true};
    sampling_state_set_randomness(state, randomness.value);
    return (struct reading){randomness, true, randomness.policy == POLICY_MISSING_RANDOMNESS};
}

static struct reading read_for_consistency(struct randomness randomness,
                                           struct sampling_state *state, bool is_valid)
{
    if (!is_valid)
        return (struct reading){missing, false, true};
    if (state->has_randomness)
        randomness = (struct randomness){state->randomness, POLICY_SAMPLING_RANDOMNESS};
    struct reading reading = {randomness, true, randomness.policy == POLICY_MISSING_RANDOMNESS};
    if (!reading.failed && state->has_threshold &&
        !sampling_keeps(state->threshold, randomness.value)) {
        sampling_state_clear_threshold(state); /* it should not have been kept by it */
        reading.failed = true;
    }
    return reading;
}

static struct reading read_span(const struct trace_sampler *sampler,
                                const struct sampled_span *span, struct sampling_state *state)
{
    bool is_valid = sampling_state_read(state, span->tracestate);
    if (sampler->keeps_none)
        return read_for_none(is_valid);
    struct randomness randomness = randomness_of_trace(sampler, span->trace_id);
    return sampler->mode == SAMPLER_HASH_SEED ? read_for_hash(randomness, state, is_valid)
                                              : read_for_consistency(randomness, state, is_valid);
}

/* ---- decisions ---- */

static uint64_t threshold_for(const struct trace_sampler *sampler,
                              const struct sampling_state *state)
{
    if (sampler->keeps_none || sampler->mode == SAMPLER_HASH_SEED || !state->has_threshold)
        return sampler->threshold;
    if (sampler->mode == SAMPLER_EQUALIZING)
        return state->threshold > sampler->threshold ? state->threshold : sampler->threshold;
    return sampling_threshold(sampling_probability(state->threshold) * sampler->ratio,
                              sampler->precision);
}

enum priority { PRIORITY_NONE, PRIORITY_NEVER, PRIORITY_ALWAYS };

static enum priority priority_of(double number)
{
    if (number == 0)
        return PRIORITY_NEVER;
    return number > 0 ? PRIORITY_ALWAYS : PRIORITY_NONE;
}

static enum priority read_priority(const struct sampled_span *span)
{
    double number;
    if (!span->has_priority)
        return PRIORITY_NONE;
    struct any_value value = any_value_read(span->priority);
    switch (value.kind) {
    case ANY_VALUE_INT:
        return priority_of((double)value.integer);
    case ANY_VALUE_DOUBLE:
        return priority_of(value.real);
    case ANY_VALUE_STRING:
        return go_parse_float(value.bytes, &number) ? priority_of(number) : PRIORITY_NONE;
    default:
        return PRIORITY_NONE;
    }
}

struct sampler_decision trace_sampler_decide(const struct trace_sampler *sampler,
                                             const struct sampled_span *span,
                                             struct sampling_state *state)
{
    struct reading reading = read_span(sampler, span, state);
    struct sampler_decision decision = {.policy = reading.randomness.policy};
    uint64_t threshold;
    if (reading.failed)
        threshold = sampler->fail_closed ? SAMPLING_NEVER : SAMPLING_ALWAYS;
    else
        threshold = threshold_for(sampler, state);
    enum priority priority = read_priority(span);
    if (priority != PRIORITY_NONE) {
        decision.policy = POLICY_SAMPLING_PRIORITY;
        threshold = priority == PRIORITY_NEVER ? SAMPLING_NEVER : SAMPLING_ALWAYS;
    }
    decision.is_kept = sampling_keeps(threshold, reading.randomness.value);
    decision.writes_state = decision.is_kept && reading.has_state;
    if (decision.writes_state)
        sampling_state_raise_threshold(state, threshold);
    return decision;
}

bool trace_sampler_keeps(const struct trace_sampler *sampler, struct slice trace_id)
{
    return sampling_keeps(sampler->threshold, randomness_of_trace(sampler, trace_id).value);
}

#include "processors/tail_sampling/policy_decision.h"

#include "core/base/memory.h"
#include "core/pipeline/cpu_share.h"
#include "processors/tail_sampling/tail_probability.h"

#include <assert.h>

/* What is passed down the tree of a policy. */
struct asking {
    struct rate_states *rates;
    const struct decided_trace *trace;
    uint64_t now_ns;
};

static enum tail_vote ask(const struct asking *asking, const struct tail_policy *policy);

static enum tail_vote vote(bool samples)
{
    return samples ? VOTE_SAMPLED : VOTE_NOT_SAMPLED;
}

/* ---- rates ---- */

void rate_states_init(struct rate_states *rates, const struct tail_plan *plan)
{
    pthread_mutex_init(&rates->lock, NULL);
    rates->states = memory_zalloc((plan->limit_count + 1) * sizeof *rates->states);
}

void rate_states_deinit(struct rate_states *rates)
{
    pthread_mutex_destroy(&rates->lock);
    free(rates->states);
}

void rate_states_change(struct rate_states *rates, const struct plan_change *change)
{
    const struct tail_plan *after = change->after;
    struct rate_state *states = memory_zalloc((after->limit_count + 1) * sizeof *states);
    for (uint32_t i = 0; i < after->leaf_count; i++) {
        const struct tail_policy *policy = after->leaves[i], *same = change->same[i];
        if (same && (policy->type == TAIL_RATE_LIMITING || policy->type == TAIL_BYTES_LIMITING))
            states[policy->limit] = rates->states[same->limit];
    }
    free(rates->states);
    rates->states = states;
}

/* golang.org/x/time/rate, AllowN. */
static bool take_tokens(struct rate_state *state, uint64_t now_ns, int64_t per_second,
                        int64_t burst, uint64_t wanted)
{
    double most = burst > 0 ? (double)burst : (double)per_second * 2;
    double passed_s = now_ns > state->at_ns ? (double)(now_ns - state->at_ns) / 1e9 : 0;
    double tokens = state->at_ns ? state->tokens + passed_s * (double)per_second : most;
    if (tokens > most)
        tokens = most;
    if ((double)wanted > most || (double)wanted > tokens)
        return false;
    state->tokens = tokens - (double)wanted;
    state->at_ns = now_ns;
    return true;
}

static bool is_within_rate(const struct asking *asking, const struct tail_policy *policy)
{
    const struct trace_facts *facts = asking->trace->facts;
    const struct tail_leaf *leaf = policy->leaf;
    bool of_bytes = policy->type == TAIL_BYTES_LIMITING;
    int64_t rate =
        of_bytes ? leaf->bytes_limiting.bytes_per_second : leaf->rate_limiting.spans_per_second;
    int64_t burst =
        of_bytes ? leaf->bytes_limiting.burst_capacity : leaf->rate_limiting.burst_capacity;
    pthread_mutex_lock(&asking->rates->lock);
    bool passes = take_tokens(&asking->rates->states[policy->limit], asking->now_ns, rate, burst,
                              of_bytes ? facts->bytes : facts->spans);
    pthread_mutex_unlock(&asking->rates->lock);
    return passes;
}

/* ---- composite ---- */

static int64_t *spans_of(struct rate_state *state, uint64_t second)
{
    if (state->second != second)
        *state = (struct rate_state){.second = second};
    return &state->spans;
}

/* Whether the part of a composite policy that samples the trace, and all parts together, are within
 * their rate. */
static bool is_within_share(const struct asking *asking, const struct tail_policy *policy,
                            uint32_t sub)
{
    struct rate_state *states = &asking->rates->states[policy->limit];
    uint64_t second = asking->now_ns / 1000000000u;
    int64_t spans = (int64_t)asking->trace->facts->spans;
    pthread_mutex_lock(&asking->rates->lock);
    int64_t *all = spans_of(&states[0], second), *own = spans_of(&states[1 + sub], second);
    bool passes =
        *own + spans <= policy->subs[sub].max_per_second && *all + spans <= policy->max_per_second;
    if (passes) {
        *own += spans;
        *all += spans;
    }
    pthread_mutex_unlock(&asking->rates->lock);
    return passes;
}

static enum tail_vote ask_composite(const struct asking *asking, const struct tail_policy *policy)
{
    for (uint32_t i = 0; i < policy->sub_count; i++) {
        enum tail_vote result = ask(asking, &policy->subs[i]);
        if (result == VOTE_ERROR)
            return VOTE_ERROR;
        if (result == VOTE_SAMPLED)
            return vote(is_within_share(asking, policy, i));
    }
    return VOTE_NOT_SAMPLED;
}

/* ---- leaves ---- */

static uint64_t duration_of(const struct trace_facts *facts)
{
    return facts->end_ns > facts->start_ns ? facts->end_ns - facts->start_ns : 0;
}

static bool has_latency(const struct trace_facts *facts, const struct tail_latency *latency)
{
    int64_t ms = (int64_t)(duration_of(facts) / 1000000);
    return ms > latency->threshold_ms &&
           (latency->upper_threshold_ms == 0 || ms <= latency->upper_threshold_ms);
}

static bool has_span_count(const struct trace_facts *facts, const struct tail_span_count *count)
{
    int64_t spans = (int64_t)facts->spans;
    return spans >= count->min_spans && (count->max_spans == 0 || spans <= count->max_spans);
}

static bool is_likely(const struct asking *asking, const struct tail_policy *policy)
{
    const char *salt = policy->leaf->probabilistic.hash_salt;
    if (!salt || !salt[0])
        salt = "default-hash-seed";
    return tail_hash(salt, asking->trace->id) <= policy->threshold;
}

static bool is_matched(const struct asking *asking, const struct tail_policy *policy)
{
    const struct tail_leaf *leaf = policy->leaf;
    bool matched = facts_has(asking->trace->bits, policy->bit);
    switch (policy->type) {
    case TAIL_NUMERIC_ATTRIBUTE:
        return matched != leaf->numeric_attribute.invert_match;
    case TAIL_STRING_ATTRIBUTE:
        return matched != leaf->string_attribute.invert_match;
    case TAIL_BOOLEAN_ATTRIBUTE:
        return matched != leaf->boolean_attribute.invert_match;
    default:
        return matched;
    }
}

static enum tail_vote ask_leaf(const struct asking *asking, const struct tail_policy *policy)
{
    const struct trace_facts *facts = asking->trace->facts;
    const struct tail_leaf *leaf = policy->leaf;
    switch (policy->type) {
    case TAIL_ALWAYS_SAMPLE:
        return VOTE_SAMPLED;
    case TAIL_LATENCY:
        return vote(has_latency(facts, &leaf->latency));
    case TAIL_PROBABILISTIC:
        return vote(is_likely(asking, policy));
    case TAIL_RATE_LIMITING:
    case TAIL_BYTES_LIMITING:
        return vote(is_within_rate(asking, policy));
    case TAIL_SPAN_COUNT:
        return vote(has_span_count(facts, &leaf->span_count));
    case TAIL_OTTL_CONDITION:
        if (!is_matched(asking, policy) && facts_has(asking->trace->bits, policy->bit + 1))
            return VOTE_ERROR;
        return vote(is_matched(asking, policy));
    case TAIL_CPU_ABOVE:
        return vote(facts->cpu_ns > leaf->cpu_above.threshold);
    case TAIL_CPU_SHARE_ABOVE:
        return vote(
            cpu_share_is_above(facts->cpu_ns, duration_of(facts), leaf->cpu_share_above.threshold));
    case TAIL_SAMPLES_ABOVE:
        return vote(facts->samples > 0 && (uint64_t)facts->samples > leaf->samples_above.threshold);
    default:
        return vote(is_matched(asking, policy));
    }
}

/* ---- policies ---- */

static enum tail_vote ask_all(const struct asking *asking, const struct tail_policy *policy)
{
    for (uint32_t i = 0; i < policy->sub_count; i++) {
        enum tail_vote result = ask(asking, &policy->subs[i]);
        if (result != VOTE_SAMPLED)
            return result;
    }
    return VOTE_SAMPLED;
}

/* Recursion: composite, and, not, leaf. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static enum tail_vote ask(const struct asking *asking, const struct tail_policy *policy)
{
    enum tail_vote result;
    switch (policy->type) {
    case TAIL_COMPOSITE:
        return ask_composite(asking, policy);
    case TAIL_AND:
        return ask_all(asking, policy);
    case TAIL_DROP:
        result = ask_all(asking, policy);
        return result == VOTE_SAMPLED ? VOTE_DROPPED : result;
    case TAIL_NOT:
        result = ask(asking, &policy->subs[0]);
        return result == VOTE_ERROR ? VOTE_ERROR : vote(result != VOTE_SAMPLED);
    default:
        return ask_leaf(asking, policy);
    }
}

static void count(const struct tail_policy_metrics *metrics, enum tail_vote result, uint64_t spans,
                  unsigned worker)
{
    counter_add(metrics->executions, worker, 1);
    if (result == VOTE_ERROR)
        return;
    counter_add(metrics->votes[result], worker, 1);
    counter_add(metrics->spans[result], worker, spans);
}

enum tail_vote policies_decide(const struct tail_settings *settings, struct rate_states *rates,
                               const struct decided_trace *trace, uint64_t now_ns,
                               const struct tail_metrics *metrics, unsigned worker)
{
    const struct tail_plan *plan = &settings->plan;
    struct asking asking = {rates, trace, now_ns};
    enum tail_vote decision = VOTE_NOT_SAMPLED;
    for (uint32_t i = 0; i < plan->count; i++) {
        enum tail_vote result = ask(&asking, &plan->policies[i]);
        count(&metrics->policies[i], result, trace->facts->spans, worker);
        if (result == VOTE_DROPPED)
            return VOTE_DROPPED;
        if (result == VOTE_ERROR)
            counter_add(metrics->errors, worker, 1);
        if (result == VOTE_SAMPLED)
            decision = VOTE_SAMPLED;
        if (result == VOTE_SAMPLED && settings->sample_on_first_match)
            break;
    }
    return decision;
}

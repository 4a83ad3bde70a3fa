#include "processors/probabilistic_sampler/sample_profiles.h"

struct deciding {
    const struct trace_sampler *sampler;
    const struct profile_sampling *sampling;
    uint64_t profile; /* what the randomness of its stacks begins with */
};

/* ---- stacks ---- */

/* Mixes all bits (the finalizer of splitmix64). It has no key, so that a request that is sent twice
 * gives the same samples. */
static uint64_t mix(uint64_t value)
{
    value += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

/* Profiles of one upload, such as counts and times, have the same time, and keep the same stacks.
 * Other uploads keep others, so that no stack is always missing. */
static void begin_profile(void *context, struct slice profile)
{
    struct deciding *deciding = context;
    struct wire_cursor cursor = wire_cursor(profile);
    struct wire_field field;
    uint64_t time = 0;
    while (wire_next(&cursor, &field))
        if (field.number == PROFILE_TIME_UNIX_NANO && field.type == WIRE_FIXED64)
            time = field.value;
    deciding->profile = mix(time ^ mix(deciding->sampler->hash_seed));
}

static enum fold_decision decide_about_stack(const struct deciding *deciding, uint32_t stack)
{
    if (deciding->sampling->without_trace == WITHOUT_TRACE_PASS)
        return FOLD_KEEP;
    uint64_t randomness = mix(deciding->profile ^ stack) & (SAMPLING_LIMIT - 1);
    if (!sampling_keeps(deciding->sampler->threshold, randomness))
        return FOLD_DROP;
    return deciding->sampler->threshold == SAMPLING_ALWAYS ? FOLD_KEEP : FOLD_WEIGH;
}

/* ---- samples ---- */

static enum fold_decision decide(void *context, const struct fold_sample *sample)
{
    const struct deciding *deciding = context;
    if (sample->trace_id.size == 0)
        return decide_about_stack(deciding, sample->stack);
    if (trace_sampler_keeps(deciding->sampler, sample->trace_id))
        return FOLD_KEEP;
    return deciding->sampling->otherwise == OTHERWISE_FOLD ? FOLD_FOLD : FOLD_DROP;
}

struct fold_result sample_profiles(struct batch *batch, const struct trace_sampler *sampler,
                                   const struct profile_sampling *sampling)
{
    struct deciding deciding = {.sampler = sampler, .sampling = sampling};
    struct fold_rule rule = {.decide = decide,
                             .context = &deciding,
                             .keys = sampling->fold_attributes,
                             .key_count = sampling->fold_attribute_count};
    if (sampling->without_trace == WITHOUT_TRACE_SAMPLE) {
        rule.begin_profile = begin_profile;
        if (sampler->threshold < SAMPLING_NEVER)
            rule.weight = 1 / sampling_probability(sampler->threshold);
    }
    struct fold_result result =
        profiles_fold(&batch->parts[0].root, batch_dictionary(batch), &batch->arena, &rule);
    batch->items = result.kept + result.combined;
    if (batch->items > 0 && batch_is_changed(batch))
        batch_prune(batch);
    return result;
}

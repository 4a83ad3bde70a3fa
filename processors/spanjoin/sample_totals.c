#include "processors/spanjoin/sample_totals.h"

/* Siblings are looked for this far, so that a hostile number of profiles costs no more than that.
 */
enum { SIBLING_DISTANCE = 16 };

static void read_value_type(struct sample_plan *plan, struct slice value_type,
                            struct slice *type_out, struct slice *unit_out)
{
    struct message_iter it = message_iter_bytes(value_type);
    struct message_field field;
    uint64_t type = 0, unit = 0;
    while (message_next(&it, &field)) {
        if (field.wire.type != WIRE_VARINT)
            continue;
        if (field.wire.number == VALUE_TYPE_TYPE_STRINDEX)
            type = field.wire.value;
        else if (field.wire.number == VALUE_TYPE_UNIT_STRINDEX)
            unit = field.wire.value;
    }
    *type_out = dictionary_string(plan->dictionary, (uint32_t)type);
    *unit_out = dictionary_string(plan->dictionary, (uint32_t)unit);
}

static void read_field(struct sample_plan *plan, struct profile_header *profile,
                       const struct wire_field *field)
{
    static const uint8_t zero[PROFILE_ID_SIZE];
    switch (field->number) {
    case PROFILE_SAMPLE_TYPE:
        read_value_type(plan, field->bytes, &profile->type, &profile->unit);
        break;
    case PROFILE_PERIOD_TYPE:
        read_value_type(plan, field->bytes, &profile->period_type, &profile->period_unit);
        break;
    case PROFILE_PERIOD:
        profile->period = field->value;
        break;
    case PROFILE_TIME_UNIX_NANO:
        profile->time_ns = field->value;
        break;
    case PROFILE_DURATION_NANO:
        profile->duration_ns = field->value;
        break;
    case PROFILE_PROFILE_ID:
        if (field->bytes.size == PROFILE_ID_SIZE &&
            memcmp(field->bytes.data, zero, sizeof zero) != 0)
            profile->profile_id = field->bytes;
        break;
    default:
        break;
    }
}

static bool is_type(const struct profile_header *profile, const char *type, const char *unit)
{
    return slice_is(profile->type, type) && slice_is(profile->unit, unit);
}

static bool same_upload(const struct profile_header *a, const struct profile_header *b)
{
    return a != b && a->time_ns == b->time_ns && slice_equal(a->period_type, b->period_type) &&
           slice_equal(a->period_unit, b->period_unit);
}

/* Of the profiles of one upload only one says how many samples there were. */
static bool counts_samples(const struct profile_header *profiles, size_t begin, size_t end,
                           size_t i)
{
    const struct profile_header *profile = &profiles[i];
    if (profile->period_type.size == 0)
        return true;
    bool counts = is_type(profile, "samples", "count");
    for (size_t k = begin; k < end; k++) {
        if (!same_upload(profile, &profiles[k]))
            continue;
        if (is_type(&profiles[k], "samples", "count") != counts)
            return counts;
    }
    for (size_t k = begin; k < i; k++)
        if (same_upload(profile, &profiles[k]))
            return false;
    return true;
}

static bool has_cpu_sibling(const struct profile_header *profiles, size_t begin, size_t end,
                            const struct profile_header *profile)
{
    for (size_t k = begin; k < end; k++)
        if (&profiles[k] != profile && profiles[k].time_ns == profile->time_ns &&
            is_type(&profiles[k], "cpu", "nanoseconds"))
            return true;
    return false;
}

static void find_role(const struct spanjoin_settings *settings, struct profile_header *profiles,
                      size_t count, size_t i)
{
    struct profile_header *profile = &profiles[i];
    size_t begin = i > SIBLING_DISTANCE ? i - SIBLING_DISTANCE : 0;
    size_t end = count - i > SIBLING_DISTANCE ? i + SIBLING_DISTANCE + 1 : count;
    profile->type_position = -1;
    for (unsigned t = 0; t < settings->type_count; t++)
        if (slice_equal(settings->types[t], profile->type))
            profile->type_position = (int)t;
    profile->counts_values = is_type(profile, "samples", "count");
    profile->counts_samples = counts_samples(profiles, begin, end, i);
    if (settings->cpu_type >= 0 && profile->counts_values &&
        slice_is(profile->period_type, "cpu") && slice_is(profile->period_unit, "nanoseconds") &&
        !has_cpu_sibling(profiles, begin, end, profile))
        profile->cpu_per_value = profile->period;
}

static size_t count_profiles(struct slice scope_profiles)
{
    struct message_iter it = message_iter_bytes(scope_profiles);
    struct message_field field;
    size_t count = 0;
    while (message_next(&it, &field))
        count += field.wire.number == SCOPE_PROFILES_PROFILES && field.wire.type == WIRE_BYTES;
    return count;
}

static void read_header(struct sample_plan *plan, struct profile_header *profile, struct slice raw)
{
    *profile = (struct profile_header){.raw = raw};
    struct message_iter it = message_iter_bytes(raw);
    struct message_field field;
    while (message_next(&it, &field))
        read_field(plan, profile, &field.wire);
}

struct profile_header *profile_headers_read(struct sample_plan *plan, struct slice scope_profiles,
                                            size_t *count_out)
{
    size_t count = count_profiles(scope_profiles);
    struct profile_header *profiles = arena_array(plan->arena, count + 1, sizeof *profiles);
    struct message_iter it = message_iter_bytes(scope_profiles);
    struct message_field field;
    size_t i = 0;
    while (message_next(&it, &field))
        if (field.wire.number == SCOPE_PROFILES_PROFILES && field.wire.type == WIRE_BYTES)
            read_header(plan, &profiles[i++], field.wire.bytes);
    for (i = 0; i < count; i++)
        find_role(plan->settings, profiles, count, i);
    *count_out = count;
    return profiles;
}

static void add(uint64_t *totals, int type, uint64_t count, uint64_t sum)
{
    totals[1 + 2 * type] += count;
    totals[2 + 2 * type] += sum; /* signed sums wrap like their bits */
}

void profile_header_add(const struct spanjoin_settings *settings,
                        const struct profile_header *profile, const struct sample_view *sample,
                        uint64_t *totals)
{
    uint64_t count = sample->timestamps ? sample->timestamps : 1;
    uint64_t sum = sample->values ? sample->sum : count; /* a timestamp without a value counts 1 */
    if (profile->counts_samples)
        totals[0] += profile->counts_values ? sum : count;
    if (profile->type_position >= 0)
        add(totals, profile->type_position, count, sum);
    if (profile->cpu_per_value)
        add(totals, settings->cpu_type, count, sum * profile->cpu_per_value);
}

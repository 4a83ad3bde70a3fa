#include "processors/spanjoin/sample_totals.h"

#include "core/data/span_index.h"

#include <assert.h>

_Static_assert(2 * PROFILE_UPLOAD_REACH + 1 <= PROFILE_WINDOW, "all siblings are in the ring");

/* Longer texts are compared once for each entry of the string_table. */
enum { SHORT_TEXT_MAX = 64 };

static uint32_t first_equal(struct sample_plan *plan, uint32_t index, struct slice text)
{
    if (!plan->long_texts) {
        plan->long_text_count = dictionary_count(plan->dictionary, DICTIONARY_STRING_TABLE);
        plan->long_texts =
            arena_array(&plan->arena, plan->long_text_count, sizeof *plan->long_texts);
    }
    assert(index < plan->long_text_count);
    if (plan->long_texts[index] == 0)
        plan->long_texts[index] =
            dictionary_find(plan->dictionary, DICTIONARY_STRING_TABLE, text) + 1;
    return plan->long_texts[index];
}

static struct header_text read_text(struct sample_plan *plan, uint64_t index)
{
    struct header_text text = {.text = dictionary_string(plan->dictionary, (uint32_t)index)};
    if (text.text.size > SHORT_TEXT_MAX)
        text.entry = first_equal(plan, (uint32_t)index, text.text);
    return text;
}

static bool is_equal(const struct header_text *a, const struct header_text *b)
{
    return a->entry || b->entry ? a->entry == b->entry : slice_equal(a->text, b->text);
}

static void read_value_type(struct sample_plan *plan, struct slice value_type,
                            struct header_text *type_out, struct header_text *unit_out)
{
    struct message_iter it = message_iter_bytes(value_type);
    struct message_field field = {.node = NULL};
    uint64_t type = 0, unit = 0;
    while (message_next(&it, &field)) {
        if (field.wire.type != WIRE_VARINT)
            continue;
        if (field.wire.number == VALUE_TYPE_TYPE_STRINDEX)
            type = field.wire.value;
        else if (field.wire.number == VALUE_TYPE_UNIT_STRINDEX)
            unit = field.wire.value;
    }
    *type_out = read_text(plan, type);
    *unit_out = read_text(plan, unit);
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
        profile->period = (int64_t)field->value;
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
            profile->profile_id = field->bytes.data;
        break;
    case PROFILE_ATTRIBUTE_INDICES:
        profile->has_attributes = true;
        break;
    default:
        break;
    }
}

static struct profile_measure measure_of(const struct profile_header *profile)
{
    struct profile_values values = {.type = profile->type.text,
                                    .unit = profile->unit.text,
                                    .period_type = profile->period_type.text,
                                    .period_unit = profile->period_unit.text,
                                    .period = profile->period};
    return profile_measure_of(&values);
}

static bool same_period(const struct profile_header *a, const struct profile_header *b)
{
    return is_equal(&a->period_type, &b->period_type) && is_equal(&a->period_unit, &b->period_unit);
}

static struct profile_header *header_at(struct profile_window *window, size_t i)
{
    return &window->ring[i % PROFILE_WINDOW];
}

static struct profile_role role_of(struct profile_window *window, size_t i)
{
    const struct profile_header *profile = header_at(window, i);
    struct profile_role role = {.yields_cpu = false};
    struct profile_range range = profile_upload_range(i, window->read);
    assert(window->read - range.begin <= PROFILE_WINDOW);
    for (size_t k = range.begin; k < range.end; k++) {
        const struct profile_header *other = header_at(window, k);
        if (k != i && other->time_ns == profile->time_ns)
            profile_role_compare(&role, &profile->measure, &other->measure, k < i,
                                 same_period(profile, other));
    }
    return role;
}

/* Of CPU time, the measure decides: the type `cpu` may have another unit. */
static int position_of_type(const struct spanjoin_settings *settings,
                            const struct profile_header *profile)
{
    for (unsigned t = 0; t < settings->type_count; t++)
        if ((int)t != settings->cpu_type && slice_equal(settings->types[t], profile->type.text))
            return (int)t;
    return -1;
}

unsigned profile_header_slot(const struct spanjoin_settings *settings,
                             const struct profile_header *profile)
{
    int position = position_of_type(settings, profile);
    if (position < 0 && profile->measure.cpu.rank > 0)
        position = settings->cpu_type;
    return position < 0 ? settings->type_count : (unsigned)position;
}

static void find_role(struct profile_window *window, size_t i)
{
    const struct spanjoin_settings *settings = window->plan->settings;
    struct profile_header *profile = header_at(window, i);
    assert(i < window->read);
    struct profile_role role = role_of(window, i);
    profile->sums.type_position = position_of_type(settings, profile);
    profile->sums.counts_values = profile->measure.counts > 0;
    profile->sums.counts_samples = !role.yields_samples;
    if (settings->cpu_type >= 0 && !role.yields_cpu)
        profile->sums.cpu_per_value = profile->measure.cpu.ns_per_value;
}

void profile_header_read(struct sample_plan *plan, struct profile_header *profile, struct slice raw)
{
    *profile = (struct profile_header){.raw = raw};
    struct message_iter it = message_iter_bytes(raw);
    struct message_field field = {.node = NULL};
    while (message_next(&it, &field)) {
        read_field(plan, profile, &field.wire);
        if (field.wire.number != PROFILE_SAMPLES || field.wire.type != WIRE_BYTES)
            continue;
        profile->samples++;
        it.cursor.next = wire_skip_short(it.cursor.next, it.cursor.end,
                                         PROFILE_SAMPLES << 3 | WIRE_BYTES, &profile->samples);
    }
    profile->measure = measure_of(profile);
}

void profile_window_init(struct profile_window *window, struct sample_plan *plan,
                         struct slice scope_profiles)
{
    window->plan = plan;
    window->ahead = message_iter_bytes(scope_profiles);
    window->next = 0;
    window->read = 0;
}

const struct profile_header *profile_window_next(struct profile_window *window)
{
    struct message_field field;
    while (window->read <= window->next + PROFILE_UPLOAD_REACH &&
           message_next_bytes(&window->ahead, SCOPE_PROFILES_PROFILES, &field))
        if (profile_has_samples(field.wire.bytes))
            profile_header_read(window->plan, header_at(window, window->read++), field.wire.bytes);
    if (window->next == window->read)
        return NULL;
    find_role(window, window->next);
    return header_at(window, window->next++);
}

bool profile_is_repeated(const struct sample_plan *plan, const struct profile_plan *profile,
                         struct span_index *index, uint64_t request)
{
    return profile->profile_id && span_index_see_profile(index, plan->now_ns, profile->profile_id,
                                                         &profile->source, request, false);
}

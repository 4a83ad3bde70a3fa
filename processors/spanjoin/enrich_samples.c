#include "processors/spanjoin/enrich_samples.h"

#include <assert.h>

/* --- what the keys add to the dictionary; done first, because it opens the request --- */

static void add_link(struct sample_plan *plan, uint32_t k)
{
    struct sample_key *key = &plan->keys[k];
    const struct span_key *ids = &plan->finds[k].key;
    bool gains_trace = key->match && !key->trace_given;
    if (!key->promoted && !gains_trace)
        return;
    bool has_trace = key->trace_given || key->match;
    key->link = dictionary_add_link(
        plan->dictionary, has_trace ? slice_of(ids->trace_id, TRACE_ID_SIZE) : (struct slice){0},
        slice_of(ids->span_id, SPAN_ID_SIZE));
}

static void add_attributes(struct sample_plan *plan, struct sample_key *key)
{
    const struct spanjoin_side *side = &plan->settings->samples;
    key->attributes = arena_array(&plan->arena, side->joined_count + 1, sizeof *key->attributes);
    for (size_t i = 0; i < side->joined_count; i++) {
        struct slice value = value_for_sample(side, i, key->match, &plan->arena);
        if (value.size > 0)
            key->attributes[i] = dictionary_add_attribute(plan->dictionary, side->joined[i].key,
                                                          value, (struct slice){0});
    }
}

/* --- samples --- */

static struct sample_key *key_of(const struct sample_plan *plan, uint32_t sample)
{
    uint32_t named = plan->samples[sample] & ~SAMPLE_PROMOTED;
    return named ? &plan->keys[named - 1] : NULL;
}

static bool sample_changes(const struct sample_plan *plan, uint32_t sample)
{
    const struct sample_key *key = key_of(plan, sample);
    return key && (key->match || (plan->samples[sample] & SAMPLE_PROMOTED));
}

/* The span's name that came beside its id goes when the join brings one. */
static bool brings_name(const struct sample_plan *plan, const struct sample_key *key)
{
    const struct spanjoin_side *side = &plan->settings->samples;
    for (size_t i = 0; key->match && i < side->joined_count; i++)
        if (side->joined[i].path == JOIN_SPAN_NAME && key->attributes[i])
            return true;
    return false;
}

/* The attributes that a sample leaves with; returns their number. */
static uint32_t new_attributes(struct sample_plan *plan, const struct sample_view *view,
                               const struct sample_key *key, bool promoted, uint32_t *out)
{
    size_t joined_count = plan->settings->samples.joined_count;
    bool without_name = promoted && plan->settings->adds_span_name && brings_name(plan, key);
    uint64_t taken = 0; /* joined attributes whose key is there already */
    uint32_t count = 0;
    for (uint32_t i = 0; i < view->attribute_count; i++) {
        const struct attribute_class *class = sample_plan_class(plan, view->attributes[i]);
        if (promoted && (class->role == ATTRIBUTE_SPAN_ID || class->role == ATTRIBUTE_TRACE_ID ||
                         (without_name && class->role == ATTRIBUTE_SPAN_NAME)))
            continue;
        if (class->joined < JOIN_ATTRIBUTES_MAX)
            taken |= UINT64_C(1) << class->joined;
        out[count++] = view->attributes[i];
    }
    for (size_t i = 0; key->match && i < joined_count; i++)
        if (key->attributes[i] && !(taken & UINT64_C(1) << i))
            out[count++] = key->attributes[i];
    return count;
}

static uint32_t *plan_scratch(struct sample_plan *plan, uint32_t attribute_count)
{
    size_t need = attribute_count + plan->settings->samples.joined_count + 1;
    if (plan->scratch_capacity < need) {
        plan->scratch_capacity = need * 2;
        plan->scratch = arena_array(&plan->arena, plan->scratch_capacity, sizeof *plan->scratch);
    }
    return plan->scratch;
}

/* Bytes that a changed sample may be larger than it was. */
static size_t sample_growth(const struct sample_plan *plan)
{
    return 5 * plan->settings->samples.joined_count + 24;
}

static size_t packed_size(const uint32_t *numbers, uint32_t count)
{
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++)
        size += wire_size_varint(numbers[i]);
    return size;
}

static uint8_t *write_packed(uint8_t *to, uint32_t number, const uint32_t *numbers, uint32_t count)
{
    if (count == 0)
        return to;
    to = wire_write_header(to, number, packed_size(numbers, count));
    for (uint32_t i = 0; i < count; i++)
        to = wire_write_varint(to, numbers[i]);
    return to;
}

static uint8_t *copy_field(uint8_t *to, const struct wire_field *field)
{
    size_t size = (size_t)(field->end - field->start);
    memcpy(to, field->start, size);
    return to + size;
}

static bool is_rewritten(const struct wire_field *field)
{
    return field->number == SAMPLE_ATTRIBUTE_INDICES || field->number == SAMPLE_LINK_INDEX;
}

static size_t size_of_others(struct slice sample)
{
    struct wire_cursor cursor = wire_cursor(sample);
    struct wire_field field;
    size_t size = 0;
    while (wire_next(&cursor, &field))
        if (!is_rewritten(&field))
            size += (size_t)(field.end - field.start);
    return size;
}

static uint8_t *write_sample(struct sample_plan *plan, uint32_t sample, struct slice raw,
                             uint8_t *to)
{
    const struct sample_key *key = key_of(plan, sample);
    bool promoted = plan->samples[sample] & SAMPLE_PROMOTED;
    struct sample_view view = sample_view_read(plan, raw);
    uint32_t *attributes = plan_scratch(plan, view.attribute_count);
    uint32_t count = new_attributes(plan, &view, key, promoted, attributes);
    uint32_t link = promoted || (key->match && !key->trace_given) ? key->link : view.link;

    size_t size = size_of_others(raw);
    if (count > 0)
        size += wire_size_bytes(SAMPLE_ATTRIBUTE_INDICES, packed_size(attributes, count));
    if (link > 0)
        size += wire_size_tag(SAMPLE_LINK_INDEX) + wire_size_varint(link);
    to = wire_write_header(to, PROFILE_SAMPLES, size);
    uint8_t *end = to + size;
    struct wire_cursor cursor = wire_cursor(raw);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (!is_rewritten(&field))
            to = copy_field(to, &field);
    to = write_packed(to, SAMPLE_ATTRIBUTE_INDICES, attributes, count);
    if (link > 0)
        to = wire_write_varint(wire_write_tag(to, SAMPLE_LINK_INDEX, WIRE_VARINT), link);
    assert(to == end);
    return to;
}

/* --- profiles --- */

/* Without the attributes that named the span. */
static uint8_t *write_profile_attributes(struct sample_plan *plan,
                                         const struct profile_plan *profile,
                                         const struct wire_field *field, uint8_t *to)
{
    if (!profile->span_taken && !profile->trace_taken)
        return copy_field(to, field);
    uint64_t number = field->value;
    struct wire_cursor packed = wire_cursor(field->bytes);
    uint32_t *kept = plan_scratch(plan, (uint32_t)field->bytes.size + 1);
    uint32_t count = 0;
    bool single = field->type == WIRE_VARINT;
    while (single || wire_packed_varint(&packed, &number)) {
        enum attribute_role role = sample_plan_class(plan, (uint32_t)number)->role;
        bool goes =
            role == ATTRIBUTE_TRACE_ID || (role == ATTRIBUTE_SPAN_ID && profile->span_taken);
        if (!goes)
            kept[count++] = (uint32_t)number;
        if (single)
            break;
    }
    return single && count > 0 ? copy_field(to, field)
                               : write_packed(to, PROFILE_ATTRIBUTE_INDICES, kept, count);
}

static struct slice rewrite_profile(struct sample_plan *plan, const struct profile_plan *profile,
                                    struct slice raw, uint32_t changes)
{
    size_t capacity = raw.size + changes * sample_growth(plan);
    uint8_t *data = arena_alloc(&plan->batch->arena, capacity), *to = data;
    uint32_t sample = profile->first_sample;
    struct message_iter it = message_iter_bytes(raw);
    struct message_field field;
    while (message_next(&it, &field)) {
        if (field.wire.number == PROFILE_SAMPLES && field.wire.type == WIRE_BYTES) {
            to = sample_changes(plan, sample) ? write_sample(plan, sample, field.wire.bytes, to)
                                              : copy_field(to, &field.wire);
            sample++;
        } else if (field.wire.number == PROFILE_ATTRIBUTE_INDICES) {
            to = write_profile_attributes(plan, profile, &field.wire, to);
        } else {
            to = copy_field(to, &field.wire);
        }
    }
    assert(sample == profile->first_sample + profile->sample_count);
    assert((size_t)(to - data) <= capacity);
    return slice_of(data, (size_t)(to - data));
}

/* Samples of the profile that change. */
static uint32_t count_changes(const struct sample_plan *plan, const struct profile_plan *profile)
{
    uint32_t changes = 0;
    for (uint32_t i = 0; i < profile->sample_count; i++)
        changes += sample_changes(plan, profile->first_sample + i);
    return changes;
}

static void apply_to_scope(struct sample_plan *plan, struct message *scope_profiles,
                           uint32_t *profile_position)
{
    struct message_iter it = message_iter(scope_profiles, &plan->batch->arena);
    struct message_field field;
    while (message_next(&it, &field)) {
        if (field.wire.number != SCOPE_PROFILES_PROFILES || field.wire.type != WIRE_BYTES ||
            !profile_has_samples(field.wire.bytes))
            continue;
        const struct profile_plan *profile = &plan->profiles[(*profile_position)++];
        uint32_t changes = count_changes(plan, profile);
        if (changes > 0)
            message_replace(&it, &field, rewrite_profile(plan, profile, field.wire.bytes, changes));
    }
}

/* --- resources --- */

static struct slice key_of_attribute(struct slice key_value)
{
    struct message_iter it = message_iter_bytes(key_value);
    struct message_field field;
    struct slice key = {0};
    while (message_next(&it, &field))
        if (field.wire.number == KEY_VALUE_KEY && field.wire.type == WIRE_BYTES)
            key = field.wire.bytes;
    return key;
}

static bool is_source(struct slice key, const struct config_strings *sources)
{
    for (size_t i = 0; i < sources->count; i++)
        if (slice_is(key, sources->items[i]))
            return true;
    return false;
}

static void remove_ids(struct sample_plan *plan, struct message *resource, bool span_taken)
{
    const struct spanjoin_settings *settings = plan->settings;
    struct message_iter it = message_iter(resource, &plan->batch->arena);
    struct message_field field;
    while (message_next(&it, &field)) {
        if (field.wire.number != RESOURCE_ATTRIBUTES || field.wire.type != WIRE_BYTES)
            continue;
        struct slice key = key_of_attribute(field.wire.bytes);
        if (is_source(key, &settings->trace_sources) ||
            (span_taken && is_source(key, &settings->sources)))
            message_remove(&it, &field);
    }
}

static void apply_to_resource(struct sample_plan *plan, struct message *resource_profiles,
                              const struct resource_plan *resource)
{
    uint32_t profile_position = resource->first_profile;
    struct message_iter it = message_iter(resource_profiles, &plan->batch->arena);
    struct message_field field;
    while (message_next(&it, &field)) {
        if (field.wire.type != WIRE_BYTES)
            continue;
        if (field.wire.number == RESOURCE_PROFILES_SCOPE_PROFILES)
            apply_to_scope(plan, message_open(&it, &field), &profile_position);
        else if (field.wire.number == RESOURCE_PROFILES_RESOURCE &&
                 (resource->span_taken || resource->trace_taken))
            remove_ids(plan, message_open(&it, &field), resource->span_taken);
    }
    assert(profile_position == resource->first_profile + resource->profile_count);
}

static bool resource_changes(const struct sample_plan *plan, const struct resource_plan *resource)
{
    for (uint32_t i = 0; i < resource->profile_count; i++)
        if (count_changes(plan, &plan->profiles[resource->first_profile + i]) > 0)
            return true;
    return false;
}

void sample_plan_apply(struct sample_plan *plan)
{
    for (uint32_t k = 0; k < plan->key_count; k++) {
        if (plan->keys[k].match)
            add_attributes(plan, &plan->keys[k]);
        add_link(plan, k);
    }
    uint32_t position = 0;
    struct message_iter it = message_iter(&plan->batch->parts[0].root, &plan->batch->arena);
    struct message_field field;
    while (message_next(&it, &field)) {
        if (field.wire.number != PROFILES_RESOURCE_PROFILES || field.wire.type != WIRE_BYTES ||
            !resource_has_samples(field.wire.bytes))
            continue;
        const struct resource_plan *resource = &plan->resources[position++];
        if (resource_changes(plan, resource))
            apply_to_resource(plan, message_open(&it, &field), resource);
    }
    assert(position == plan->resource_count);
}

#include "core/formats/otlp_profile.h"

#include "core/base/arena.h"
#include "core/base/saturate.h"
#include "core/data/otlp.h"

#include <assert.h>

/* A list of indices that grows in an arena. */
struct index_list {
    uint32_t *items;
    uint32_t count, capacity;
    struct arena *arena;
};

static void add_index(struct index_list *list, uint64_t index)
{
    if (list->count == OTLP_ATTRIBUTES_MAX)
        return;
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 16;
        uint32_t *grown = arena_array(list->arena, capacity, sizeof *grown);
        if (list->count > 0)
            memcpy(grown, list->items, list->count * sizeof *grown);
        list->items = grown;
        list->capacity = capacity;
    }
    assert(list->count < list->capacity && index <= UINT32_MAX); /* scanned */
    list->items[list->count++] = (uint32_t)index;
}

/* Adds the indices in a field, packed or single. */
static void add_indices(struct index_list *list, const struct wire_field *field)
{
    if (field->type == WIRE_VARINT) {
        add_index(list, field->value);
        return;
    }
    struct wire_cursor packed = wire_cursor(field->bytes);
    uint64_t index;
    while (list->count < OTLP_ATTRIBUTES_MAX && wire_packed_varint(&packed, &index))
        add_index(list, index);
}

static void read_value_type(const struct message_field *field, uint32_t *type, uint32_t *unit)
{
    struct message_iter it = message_iter_into(field, NULL);
    struct message_field part = {.node = NULL};
    while (message_next(&it, &part))
        if (part.wire.number == VALUE_TYPE_TYPE_STRINDEX)
            *type = (uint32_t)part.wire.value;
        else if (part.wire.number == VALUE_TYPE_UNIT_STRINDEX)
            *unit = (uint32_t)part.wire.value;
}

void otlp_profile_read(struct otlp_profile *profile, const struct message_field *field,
                       struct arena *arena)
{
    struct index_list attributes = {.arena = arena};
    struct message_field part = {.node = NULL};
    *profile = (struct otlp_profile){.fields = message_iter_into(field, NULL)};
    struct message_iter it = profile->fields;
    while (message_next(&it, &part))
        switch (part.wire.number) {
        case PROFILE_SAMPLE_TYPE:
            read_value_type(&part, &profile->sample_type, &profile->sample_unit);
            break;
        case PROFILE_PERIOD_TYPE:
            read_value_type(&part, &profile->period_type, &profile->period_unit);
            break;
        case PROFILE_PERIOD:
            profile->period = (int64_t)part.wire.value;
            break;
        case PROFILE_TIME_UNIX_NANO:
            profile->time_unix_nano = part.wire.value;
            break;
        case PROFILE_DURATION_NANO:
            profile->duration_nano = part.wire.value;
            break;
        case PROFILE_ATTRIBUTE_INDICES:
            add_indices(&attributes, &part.wire);
            break;
        case PROFILE_SAMPLES:
            profile->has_samples = true;
            break;
        default:
            break;
        }
    profile->attributes = attributes.items;
    profile->attribute_count = attributes.count;
}

static bool is_of_same_measurement(const struct otlp_profile *a, const struct otlp_profile *b)
{
    return a->time_unix_nano == b->time_unix_nano && a->duration_nano == b->duration_nano &&
           a->period == b->period && a->period_type == b->period_type &&
           a->period_unit == b->period_unit && a->attribute_count == b->attribute_count &&
           (a->attribute_count == 0 ||
            memcmp(a->attributes, b->attributes, a->attribute_count * sizeof *a->attributes) == 0);
}

static bool has_type(const struct otlp_profile *profiles, uint32_t count,
                     const struct otlp_profile *wanted)
{
    for (uint32_t i = 0; i < count; i++)
        if (profiles[i].sample_type == wanted->sample_type &&
            profiles[i].sample_unit == wanted->sample_unit)
            return true;
    return false;
}

uint32_t otlp_profile_siblings(const struct otlp_profile *profiles, uint32_t count)
{
    assert(count > 0);
    uint32_t siblings = 1;
    while (siblings < count && siblings < OTLP_SIBLINGS_MAX &&
           is_of_same_measurement(profiles, &profiles[siblings]) &&
           !has_type(profiles, siblings, &profiles[siblings]))
        siblings++;
    return siblings;
}

/* ---- samples ---- */

struct otlp_samples otlp_profile_samples(const struct otlp_profile *profile, struct arena *arena)
{
    return (struct otlp_samples){.fields = profile->fields, .arena = arena};
}

/* Adds values to *sum, and returns their number. */
static uint32_t add_values(const struct wire_field *field, int64_t *sum)
{
    struct wire_cursor packed;
    uint64_t value;
    uint32_t count = 0;
    if (field->type == WIRE_VARINT) {
        *sum = saturate_add(*sum, (int64_t)field->value);
        return 1;
    }
    packed = wire_cursor(field->bytes);
    for (; wire_packed_varint(&packed, &value); count++)
        *sum = saturate_add(*sum, (int64_t)value);
    assert(!packed.broken); /* scanned */
    return count;
}

static void read_sample(struct otlp_samples *samples, const struct message_field *field,
                        struct otlp_sample *sample)
{
    struct index_list attributes = {.items = samples->attributes,
                                    .capacity = samples->attribute_capacity,
                                    .arena = samples->arena};
    struct message_iter it = message_iter_into(field, NULL);
    struct message_field part = {.node = NULL};
    uint64_t timestamps = 0, values = 0;
    *sample = (struct otlp_sample){.stack = 0};
    while (message_next(&it, &part))
        switch (part.wire.number) {
        case SAMPLE_STACK_INDEX:
            sample->stack = (uint32_t)part.wire.value;
            break;
        case SAMPLE_LINK_INDEX:
            sample->link = (uint32_t)part.wire.value;
            break;
        case SAMPLE_ATTRIBUTE_INDICES:
            add_indices(&attributes, &part.wire);
            break;
        case SAMPLE_VALUES:
            values += add_values(&part.wire, &sample->value);
            break;
        case SAMPLE_TIMESTAMPS_UNIX_NANO:
            timestamps +=
                part.wire.type == WIRE_BYTES ? part.wire.bytes.size / sizeof(uint64_t) : 1;
            break;
        default:
            break;
        }
    if (values == 0)
        sample->value = (int64_t)timestamps;
    sample->attributes = samples->attributes = attributes.items;
    sample->attribute_count = attributes.count;
    samples->attribute_capacity = attributes.capacity;
}

bool otlp_samples_next(struct otlp_samples *samples, struct otlp_sample *sample)
{
    struct message_field field = {.node = NULL};
    if (!message_next_bytes(&samples->fields, PROFILE_SAMPLES, &field))
        return false;
    read_sample(samples, &field, sample);
    return true;
}

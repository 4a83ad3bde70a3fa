#include "processors/redaction/strip_attributes.h"

#include "core/data/otlp.h"

#include <assert.h>

static bool is_removed(const struct removed_entries *removed, uint64_t index)
{
    return index < removed->count && removed->is_removed[index];
}

/* Whether the field, a list of indices, has a removed one. */
static bool has_removed(const struct wire_field *field, const struct removed_entries *removed)
{
    if (field->type != WIRE_BYTES)
        return is_removed(removed, field->value);
    struct wire_cursor packed = wire_cursor(field->bytes);
    for (uint64_t index; wire_packed_varint(&packed, &index);)
        if (is_removed(removed, index))
            return true;
    return false;
}

static bool message_has_removed(struct slice payload, uint32_t number,
                                const struct removed_entries *removed)
{
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.number == number && has_removed(&field, removed))
            return true;
    return false;
}

static uint8_t *copy_field(uint8_t *to, const struct wire_field *field)
{
    size_t size = (size_t)(field->end - field->start);
    memcpy(to, field->start, size);
    return to + size;
}

/* Writes the list without the removed ones: nothing if none is left. It is at most as long. */
static uint8_t *write_list(uint8_t *to, const struct wire_field *field,
                           const struct removed_entries *removed)
{
    struct wire_cursor packed;
    size_t size = 0;
    if (field->type != WIRE_BYTES)
        return to;
    packed = wire_cursor(field->bytes);
    for (uint64_t index; wire_packed_varint(&packed, &index);)
        size += is_removed(removed, index) ? 0 : wire_size_varint(index);
    if (size == 0)
        return to;
    to = wire_write_header(to, field->number, size);
    packed = wire_cursor(field->bytes);
    for (uint64_t index; wire_packed_varint(&packed, &index);)
        if (!is_removed(removed, index))
            to = wire_write_varint(to, index);
    return to;
}

/* Writes the payload of a message whose field `number` is such a list. */
static uint8_t *write_stripped(uint8_t *to, struct slice payload, uint32_t number,
                               const struct removed_entries *removed)
{
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        to = field.number == number && has_removed(&field, removed)
                 ? write_list(to, &field, removed)
                 : copy_field(to, &field);
    return to;
}

bool strip_attributes_from_entry(int table, struct slice payload,
                                 const struct removed_entries *removed, struct arena *arena,
                                 struct slice *payload_out)
{
    uint32_t number = table == DICTIONARY_LOCATION_TABLE  ? (uint32_t)LOCATION_ATTRIBUTE_INDICES
                      : table == DICTIONARY_MAPPING_TABLE ? (uint32_t)MAPPING_ATTRIBUTE_INDICES
                                                          : 0;
    if (number == 0 || !message_has_removed(payload, number, removed))
        return false;
    uint8_t *start = arena_alloc(arena, payload.size);
    *payload_out =
        slice_of(start, (size_t)(write_stripped(start, payload, number, removed) - start));
    return true;
}

/* ---- profiles ---- */

static bool profile_has_removed(struct slice profile, const struct removed_entries *removed)
{
    struct wire_cursor cursor = wire_cursor(profile);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (field.number == PROFILE_ATTRIBUTE_INDICES && has_removed(&field, removed))
            return true;
        if (field.number == PROFILE_SAMPLES && field.type == WIRE_BYTES &&
            message_has_removed(field.bytes, SAMPLE_ATTRIBUTE_INDICES, removed))
            return true;
    }
    return false;
}

/* A shorter sample may have a shorter length, so its payload is written behind the longest header,
 * and moved to its place. */
static uint8_t *write_sample(uint8_t *to, const struct wire_field *field,
                             const struct removed_entries *removed, uint8_t *spare)
{
    size_t size =
        (size_t)(write_stripped(spare, field->bytes, SAMPLE_ATTRIBUTE_INDICES, removed) - spare);
    to = wire_write_header(to, PROFILE_SAMPLES, size);
    if (size > 0)
        memcpy(to, spare, size);
    return to + size;
}

static struct slice stripped_profile(struct slice profile, const struct removed_entries *removed,
                                     struct arena *arena, struct arena *scratch)
{
    uint8_t *start = arena_alloc(arena, profile.size), *to = start;
    uint8_t *spare = arena_alloc(scratch, profile.size);
    struct wire_cursor cursor = wire_cursor(profile);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (field.number == PROFILE_SAMPLES && field.type == WIRE_BYTES)
            to = write_sample(to, &field, removed, spare);
        else if (field.number == PROFILE_ATTRIBUTE_INDICES && has_removed(&field, removed))
            to = write_list(to, &field, removed);
        else
            to = copy_field(to, &field);
    }
    assert((size_t)(to - start) <= profile.size);
    return slice_of(start, (size_t)(to - start));
}

static struct slice plain_profile(const struct message_field *field, struct arena *scratch)
{
    if (!field->node || !field->node->changed)
        return field->wire.bytes;
    size_t size = message_measure(field->node);
    uint8_t *data = arena_alloc(scratch, size);
    message_write(field->node, data);
    return slice_of(data, size);
}

struct strip_way {
    struct message_iter groups, scopes, profiles;
    struct message_field group, scope, profile;
};

static void strip_profile(struct strip_way *way, const struct removed_entries *removed,
                          struct arena *arena, struct arena *scratch)
{
    struct slice profile = plain_profile(&way->profile, scratch);
    if (!profile_has_removed(profile, removed))
        return;
    message_iter_open(&way->scopes, &way->groups, &way->group);
    message_iter_open(&way->profiles, &way->scopes, &way->scope);
    message_replace(&way->profiles, &way->profile,
                    stripped_profile(profile, removed, arena, scratch));
}

void strip_attributes_from_profiles(struct message *root, const struct removed_entries *removed,
                                    struct arena *arena, struct arena *scratch)
{
    struct strip_way way = {.groups = message_iter(root, arena)};
    while (message_next_bytes(&way.groups, PROFILES_RESOURCE_PROFILES, &way.group)) {
        way.scopes = message_iter_into(&way.group, arena);
        while (message_next_bytes(&way.scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &way.scope)) {
            way.profiles = message_iter_into(&way.scope, arena);
            while (message_next_bytes(&way.profiles, SCOPE_PROFILES_PROFILES, &way.profile))
                strip_profile(&way, removed, arena, scratch);
        }
    }
}

#include "exporters/file/file_division.h"

#include "core/base/hash.h"
#include "core/data/any_value.h"
#include "core/data/attributes.h"
#include "core/data/otlp.h"
#include "exporters/file/file_groups.h"

#include <assert.h>
#include <string.h>

/* All signals have these numbers. */
enum { REQUEST_RESOURCES = TRACES_RESOURCE_SPANS, ITEM_RESOURCE = RESOURCE_SPANS_RESOURCE };
_Static_assert((int)REQUEST_RESOURCES == (int)PROFILES_RESOURCE_PROFILES, "one number");
_Static_assert((int)ITEM_RESOURCE == (int)RESOURCE_PROFILES_RESOURCE, "one number");

#define REPEATED_TIMES ((size_t)4)
#define REPEATED_MORE ((size_t)1 << 20)

static bool is_resource(const struct wire_field *field)
{
    return field->number == REQUEST_RESOURCES && field->type == WIRE_BYTES;
}

static size_t field_size(const struct wire_field *field)
{
    return (size_t)(field->end - field->start);
}

/* Returns the text of the attribute; empty if it cannot be part of a path. */
static struct slice find_segment(struct slice item, struct slice attribute)
{
    struct attribute found;
    struct slice resource = wire_last_bytes(item, ITEM_RESOURCE);
    if (!attributes_find(message_iter_bytes(resource), RESOURCE_ATTRIBUTES, attribute, &found))
        return SLICE("");
    struct any_value value = any_value_read(found.pair.value);
    bool is_usable = value.kind == ANY_VALUE_STRING && file_segment_is_valid(value.bytes);
    return is_usable ? value.bytes : SLICE("");
}

static uint32_t find_group(struct file_division *division, struct slice segment)
{
    uint32_t hash = (uint32_t)hash_bytes(segment), i;
    assert(segment.size > 0);
    if (division->count > 0) {
        struct index_probe probe = index_table_probe(&division->by_segment, hash);
        while (index_table_next(&division->by_segment, &probe, &i))
            if (slice_equal(division->groups[i].segment, segment))
                return i;
    }
    division->groups = arena_grow(&division->arena, division->groups, division->count,
                                  &division->capacity, sizeof *division->groups);
    index_table_reserve(&division->by_segment, 1, &division->arena);
    index_table_add_new(&division->by_segment, hash, division->count);
    division->groups[division->count] = (struct file_division_group){.segment = segment};
    return division->count++;
}

static void add_resource(struct file_division *division, const struct wire_field *field,
                         struct slice attribute)
{
    struct slice segment = find_segment(field->bytes, attribute);
    uint32_t group = segment.size > 0 ? find_group(division, segment) : UINT32_MAX;
    division->places = arena_grow(&division->arena, division->places, division->place_count,
                                  &division->place_capacity, sizeof *division->places);
    division->places[division->place_count++] = group;
    assert(group == UINT32_MAX || group < division->count);
    if (group == UINT32_MAX)
        division->left_out++;
    else
        division->groups[group].size += field_size(field);
}

bool file_division_init(struct file_division *division, const struct batch *batch,
                        const char *attribute)
{
    size_t size = 0;
    *division = (struct file_division){0};
    arena_init(&division->arena, NULL);
    for (size_t i = 0; i < batch->part_count; i++) {
        struct wire_cursor cursor = wire_cursor(buffer_slice(batch->parts[i].buffer));
        struct wire_field field;
        while (wire_next(&cursor, &field)) {
            if (is_resource(&field))
                add_resource(division, &field, slice_of_string(attribute));
            else
                division->common_size += field_size(&field);
            size += field_size(&field);
        }
        assert(!cursor.broken); /* the request was scanned */
    }
    assert(division->left_out <= division->place_count);
    if (division->count < 2 ||
        division->common_size <= (REPEATED_TIMES * size + REPEATED_MORE) / (division->count - 1))
        return true;
    file_division_deinit(division);
    return false;
}

static void append(struct buffer *to, const struct wire_field *field)
{
    assert(to->size + field_size(field) <= to->capacity);
    memcpy(to->data + to->size, field->start, field_size(field));
    to->size += field_size(field);
}

/* Copies one part of the batch to the groups. place: index of its first resource. Returns that of
 * the next part. */
static uint32_t join_part(const struct file_division *division, struct slice bytes, uint32_t place,
                          struct buffer **out)
{
    struct wire_cursor cursor = wire_cursor(bytes);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (!is_resource(&field)) {
            for (uint32_t group = 0; group < division->count; group++)
                append(out[group], &field);
            continue;
        }
        assert(place < division->place_count);
        uint32_t group = division->places[place++];
        if (group != UINT32_MAX)
            append(out[group], &field);
    }
    assert(!cursor.broken);
    return place;
}

void file_division_join(const struct file_division *division, const struct batch *batch,
                        struct buffer **out)
{
    uint32_t place = 0;
    for (uint32_t group = 0; group < division->count; group++)
        out[group] = buffer_new_charged(division->groups[group].size + division->common_size,
                                        batch->arena.budget);
    for (size_t i = 0; i < batch->part_count; i++)
        place = join_part(division, buffer_slice(batch->parts[i].buffer), place, out);
    assert(place == division->place_count);
    for (uint32_t group = 0; group < division->count; group++)
        assert(out[group]->size == division->groups[group].size + division->common_size);
}

void file_division_deinit(struct file_division *division)
{
    arena_deinit(&division->arena);
}

#include "core/data/any_value.h"

#include "core/base/arena.h"

#include <assert.h>

/* ---- reading ---- */

static bool take_varint(struct any_value *value, uint32_t kind, uint64_t number)
{
    if (kind == ANY_VALUE_INT)
        value->integer = (int64_t)number;
    else if (kind == ANY_VALUE_BOOL)
        value->truth = number != 0;
    else if (kind == ANY_VALUE_STRING_STRINDEX)
        value->reference = number;
    else
        return false;
    return true;
}

static bool take_bytes(struct any_value *value, uint32_t kind, struct slice bytes)
{
    if (kind != ANY_VALUE_STRING && kind != ANY_VALUE_ARRAY && kind != ANY_VALUE_KVLIST &&
        kind != ANY_VALUE_BYTES)
        return false;
    value->bytes = bytes;
    return true;
}

/* Reads a member. Returns false, and does not change the value, if the field is not a member. */
static bool take_member(struct any_value *value, const struct wire_field *field)
{
    if (field->type == WIRE_BYTES)
        return take_bytes(value, field->number, field->bytes);
    if (field->type == WIRE_VARINT)
        return take_varint(value, field->number, field->value);
    if (field->type != WIRE_FIXED64 || field->number != ANY_VALUE_DOUBLE)
        return false;
    memcpy(&value->real, &field->value, sizeof value->real);
    return true;
}

struct any_value any_value_read_members(struct slice payload, uint32_t last_kind)
{
    assert(last_kind == ANY_VALUE_BYTES || last_kind == ANY_VALUE_STRING_STRINDEX);
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    struct any_value value = {.kind = ANY_VALUE_EMPTY};
    while (wire_next(&cursor, &field))
        if (field.number <= last_kind && take_member(&value, &field))
            value.kind = field.number;
    assert(!cursor.broken);
    return value;
}

static bool is_list_within(struct slice list, unsigned levels)
{
    struct wire_cursor cursor = wire_cursor(list);
    struct wire_field field;
    while (wire_next_bytes(&cursor, ARRAY_VALUE_VALUES, &field))
        if (!any_value_is_within(field.bytes, levels))
            return false;
    return true;
}

static bool is_map_within(struct slice map, unsigned levels)
{
    struct wire_cursor cursor = wire_cursor(map);
    struct wire_field field;
    while (wire_next_bytes(&cursor, KEY_VALUE_LIST_VALUES, &field)) {
        struct wire_cursor pair = wire_cursor(field.bytes);
        while (wire_next_bytes(&pair, KEY_VALUE_VALUE, &field))
            if (!any_value_is_within(field.bytes, levels))
                return false;
    }
    return true;
}

bool any_value_is_within(struct slice payload, unsigned levels)
{
    enum { LIST_LEVELS = 2, MAP_LEVELS = 3, LEVEL_BYTES = 2 /* at least: a tag and a length */ };
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    if (payload.size / LEVEL_BYTES + 1 < levels)
        return true;
    while (wire_next(&cursor, &field)) {
        bool is_list = field.number == ANY_VALUE_ARRAY, is_map = field.number == ANY_VALUE_KVLIST;
        if (field.type != WIRE_BYTES || (!is_list && !is_map))
            continue;
        if (levels < MAP_LEVELS || !(is_list ? is_list_within(field.bytes, levels - LIST_LEVELS)
                                             : is_map_within(field.bytes, levels - MAP_LEVELS)))
            return false;
    }
    return true;
}

struct slice any_value_last_member(struct slice payload)
{
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    struct any_value value = {.kind = ANY_VALUE_EMPTY};
    struct slice last = {0};
    while (wire_next(&cursor, &field))
        if (field.number <= ANY_VALUE_BYTES && take_member(&value, &field))
            last = slice_of(field.start, (size_t)(field.end - field.start));
    assert(!cursor.broken);
    return last;
}

bool any_value_repeats(struct slice payload)
{
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    struct any_value value;
    unsigned members = 0;
    while (members < 2 && wire_next(&cursor, &field))
        members += field.number <= ANY_VALUE_BYTES && take_member(&value, &field);
    assert(!cursor.broken);
    return members == 2;
}

bool key_value_repeats(struct slice payload)
{
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    struct key_value pair;
    unsigned keys = 0;
    if (key_value_read_short(payload, &pair))
        return false;
    while (keys < 2 && wire_next_bytes(&cursor, KEY_VALUE_KEY, &field))
        keys++;
    assert(!cursor.broken);
    return keys == 2;
}

/* ---- writing ---- */

size_t any_value_size(const struct any_value *value)
{
    switch (value->kind) {
    case ANY_VALUE_STRING:
    case ANY_VALUE_BYTES:
    case ANY_VALUE_ARRAY:
    case ANY_VALUE_KVLIST:
        return wire_size_bytes(value->kind, value->bytes.size);
    case ANY_VALUE_BOOL:
        return wire_size_tag(ANY_VALUE_BOOL) + 1;
    case ANY_VALUE_INT:
        return wire_size_tag(ANY_VALUE_INT) + wire_size_varint((uint64_t)value->integer);
    case ANY_VALUE_DOUBLE:
        return wire_size_tag(ANY_VALUE_DOUBLE) + sizeof value->real;
    default:
        assert(value->kind == ANY_VALUE_EMPTY); /* references are never written */
        return 0;
    }
}

static uint8_t *write_varint_field(uint8_t *to, uint32_t number, uint64_t value)
{
    return wire_write_varint(wire_write_tag(to, number, WIRE_VARINT), value);
}

uint8_t *any_value_write(uint8_t *to, const struct any_value *value)
{
    uint64_t bits;
    switch (value->kind) {
    case ANY_VALUE_STRING:
    case ANY_VALUE_BYTES:
    case ANY_VALUE_ARRAY:
    case ANY_VALUE_KVLIST:
        return wire_write_bytes(to, value->kind, value->bytes);
    case ANY_VALUE_BOOL:
        return write_varint_field(to, ANY_VALUE_BOOL, value->truth);
    case ANY_VALUE_INT:
        return write_varint_field(to, ANY_VALUE_INT, (uint64_t)value->integer);
    case ANY_VALUE_DOUBLE:
        memcpy(&bits, &value->real, sizeof bits);
        return wire_write_fixed64(to, ANY_VALUE_DOUBLE, bits);
    default:
        assert(value->kind == ANY_VALUE_EMPTY);
        return to;
    }
}

struct slice any_value_encode(struct arena *arena, struct any_value value)
{
    size_t size = any_value_size(&value);
    uint8_t *payload = arena_alloc(arena, size);
    uint8_t *end = any_value_write(payload, &value);
    assert(end == payload + size);
    return slice_of(payload, size);
}

struct key_value key_value_read_any(struct slice payload)
{
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    struct key_value pair = {0};
    while (wire_next(&cursor, &field)) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == KEY_VALUE_KEY)
            pair.key = field.bytes;
        else if (field.number == KEY_VALUE_VALUE)
            pair.value = field.bytes;
    }
    return pair;
}

static size_t key_value_size(struct slice key, size_t value_size)
{
    return wire_size_bytes(KEY_VALUE_KEY, key.size) + wire_size_bytes(KEY_VALUE_VALUE, value_size);
}

static uint8_t *write_key_value(uint8_t *to, struct slice key, struct slice value)
{
    to = wire_write_bytes(to, KEY_VALUE_KEY, key);
    return wire_write_bytes(to, KEY_VALUE_VALUE, value);
}

struct slice key_value_encode(struct arena *arena, struct slice key, struct slice value)
{
    size_t size = key_value_size(key, value.size);
    uint8_t *payload = arena_alloc(arena, size);
    const uint8_t *end = write_key_value(payload, key, value);
    assert(end == payload + size);
    return slice_of(payload, size);
}

size_t key_value_field_size(uint32_t number, struct slice key, struct slice value)
{
    return wire_size_bytes(number, key_value_size(key, value.size));
}

uint8_t *key_value_field_write(uint8_t *to, uint32_t number, struct slice key, struct slice value)
{
    return write_key_value(wire_write_header(to, number, key_value_size(key, value.size)), key,
                           value);
}

struct slice key_value_encode_field(struct arena *arena, uint32_t number, struct slice key,
                                    struct slice value)
{
    size_t size = key_value_field_size(number, key, value);
    uint8_t *field = arena_alloc(arena, size);
    const uint8_t *end = key_value_field_write(field, number, key, value);
    assert(end == field + size);
    return slice_of(field, size);
}

void key_value_append(struct wire_writer *writer, uint32_t number, struct slice key,
                      struct any_value value)
{
    size_t value_size = any_value_size(&value);
    size_t size = key_value_size(key, value_size);
    uint8_t *to = wire_writer_room(writer, wire_size_bytes(number, size));
    to = wire_write_header(to, number, size);
    to = wire_write_bytes(to, KEY_VALUE_KEY, key);
    to = wire_write_header(to, KEY_VALUE_VALUE, value_size);
    wire_writer_wrote(writer, any_value_write(to, &value));
}

static uint8_t *write_index(uint8_t *to, uint32_t number, uint32_t index)
{
    return index == 0 ? to : write_varint_field(to, number, index);
}

void key_value_and_unit_append(struct wire_writer *writer, uint32_t key, struct any_value value,
                               uint32_t unit)
{
    size_t value_size = any_value_size(&value);
    uint8_t *to = wire_writer_room(writer, KEY_VALUE_AND_UNIT_ROOM + value_size);
    to = write_index(to, KEY_VALUE_AND_UNIT_KEY_STRINDEX, key);
    to = wire_write_header(to, KEY_VALUE_AND_UNIT_VALUE, value_size);
    to = any_value_write(to, &value);
    wire_writer_wrote(writer, write_index(to, KEY_VALUE_AND_UNIT_UNIT_STRINDEX, unit));
}

uint8_t *key_value_and_unit_write(uint8_t *to, const struct key_value_and_unit *entry)
{
    to = write_index(to, KEY_VALUE_AND_UNIT_KEY_STRINDEX, entry->key);
    to = wire_write_bytes(to, KEY_VALUE_AND_UNIT_VALUE, entry->value);
    return write_index(to, KEY_VALUE_AND_UNIT_UNIT_STRINDEX, entry->unit);
}

/*
 * any_value: OTLP's AnyValue, KeyValue and KeyValueAndUnit, read from and written to the wire.
 *
 * The value of an AnyValue is a oneof: the last member on the wire counts, whichever it is. Of
 * other repeated fields, too, the last occurrence counts. The bytes were scanned (scan.h). The scan
 * refuses the one case that protobuf would merge: the same message twice (`value`, `array_value`,
 * `kvlist_value`). A member with another wire type is an unknown field.
 *
 * Owner: slices point into the bytes that were read; encoded values live in the given arena.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_DATA_ANY_VALUE_H
#define PROFCOL_CORE_DATA_ANY_VALUE_H

#include "core/data/otlp.h"
#include "core/data/wire_writer.h"

struct arena;

enum { ANY_VALUE_EMPTY = 0 }; /* no member is set */

/* What an AnyValue holds. All zero: it is empty. */
struct any_value {
    uint32_t kind; /* ANY_VALUE_EMPTY, or the member: ANY_VALUE_STRING and so on */
    union {
        struct slice bytes; /* STRING, BYTES; ARRAY and KVLIST: the encoded list */
        bool truth;         /* BOOL */
        int64_t integer;    /* INT */
        double real;        /* DOUBLE */
        uint64_t reference; /* STRING_STRINDEX: only any_value_read_received returns it */
    };
};

/* ---- reading ---- */

/* Reads an AnyValue whose members have numbers up to last_kind. */
struct any_value any_value_read_members(struct slice payload, uint32_t last_kind);

/* Whether the payload is one short string and nothing else. Most values are, and so need no
 * function call. */
static inline bool any_value_is_short_string(struct slice payload)
{
    return payload.size >= 2 && payload.data[0] == (ANY_VALUE_STRING << 3 | WIRE_BYTES) &&
           payload.data[1] < 0x80 && payload.data[1] == payload.size - 2;
}

/* Reads the payload of an AnyValue. A string_value_strindex counts as absent: normalise.h has
 * replaced it with its text, and in traces it has no meaning. */
static inline struct any_value any_value_read(struct slice payload)
{
    if (any_value_is_short_string(payload))
        return (struct any_value){.kind = ANY_VALUE_STRING,
                                  .bytes = {payload.data + 2, payload.size - 2}};
    if (payload.size == 2 && payload.data[0] == (ANY_VALUE_INT << 3 | WIRE_VARINT) &&
        payload.data[1] < 0x80)
        return (struct any_value){.kind = ANY_VALUE_INT, .integer = payload.data[1]};
    return any_value_read_members(payload, ANY_VALUE_BYTES);
}

/* Reads the payload of an AnyValue before normalise.h, when STRING_STRINDEX is a member like the
 * others. */
static inline struct any_value any_value_read_received(struct slice payload)
{
    if (any_value_is_short_string(payload))
        return any_value_read(payload);
    return any_value_read_members(payload, ANY_VALUE_STRING_STRINDEX);
}

/* Whether the payload contains so many levels of messages at most: each list adds two, each map
 * three. All occurrences of a member count, as in the scan. */
bool any_value_is_within(struct slice payload, unsigned levels);

/* Returns the field of the member that counts, empty if there is none. Reading it gives the same
 * value as the whole payload, which may repeat members any number of times. */
struct slice any_value_last_member(struct slice payload);

/* Whether the payload has more than one member; only the last one counts. */
bool any_value_repeats(struct slice payload);

struct key_value {
    struct slice key;
    struct slice value; /* the payload of an AnyValue; empty when there is none */
};

/* Reads the payload of a KeyValue that is a short key and a short value, as most are. Returns false
 * if it is anything else. */
static inline bool key_value_read_short(struct slice payload, struct key_value *out)
{
    const uint8_t *at = payload.data;
    if (payload.size < 4 || payload.size >= 0x80 || at[0] != (KEY_VALUE_KEY << 3 | WIRE_BYTES) ||
        at[1] > payload.size - 4)
        return false;
    size_t value = 2 + (size_t)at[1]; /* where its field begins */
    if (at[value] != (KEY_VALUE_VALUE << 3 | WIRE_BYTES) ||
        at[value + 1] != payload.size - value - 2)
        return false;
    out->key = (struct slice){at + 2, at[1]};
    out->value = (struct slice){at + value + 2, at[value + 1]};
    return true;
}

/* Reads the payload of a KeyValue. key_value_read_any is for those that are not short. */
struct key_value key_value_read_any(struct slice payload);
static inline struct key_value key_value_read(struct slice payload)
{
    struct key_value pair;
    return key_value_read_short(payload, &pair) ? pair : key_value_read_any(payload);
}

/* Whether the payload of a KeyValue has more than one key; only the last one counts. */
bool key_value_repeats(struct slice payload);

/* Returns the key_strindex of a KeyValue before normalise.h; 0 if it has none. */
static inline uint64_t key_value_reference(struct slice payload)
{
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    uint64_t reference = 0;
    while (wire_next(&cursor, &field))
        if (field.number == KEY_VALUE_KEY_STRINDEX && field.type == WIRE_VARINT)
            reference = field.value;
    return reference;
}

struct key_value_and_unit {
    uint32_t key; /* in the string_table */
    uint32_t unit;
    struct slice value; /* the payload of an AnyValue; empty when there is none */
};

/* Reads the payload of a KeyValueAndUnit, an entry of the attribute_table. */
static inline struct key_value_and_unit key_value_and_unit_read(struct slice payload)
{
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    struct key_value_and_unit entry = {0};
    while (wire_next(&cursor, &field)) {
        if (field.type == WIRE_BYTES && field.number == KEY_VALUE_AND_UNIT_VALUE)
            entry.value = field.bytes;
        else if (field.type == WIRE_VARINT && field.number == KEY_VALUE_AND_UNIT_KEY_STRINDEX)
            entry.key = (uint32_t)field.value;
        else if (field.type == WIRE_VARINT && field.number == KEY_VALUE_AND_UNIT_UNIT_STRINDEX)
            entry.unit = (uint32_t)field.value;
    }
    return entry;
}

/* ---- writing ---- */

/* Return a value of one kind. The text of a string is borrowed. */
static inline struct any_value any_value_string(struct slice text)
{
    return (struct any_value){.kind = ANY_VALUE_STRING, .bytes = text};
}

static inline struct any_value any_value_bool(bool truth)
{
    return (struct any_value){.kind = ANY_VALUE_BOOL, .truth = truth};
}

static inline struct any_value any_value_int(int64_t integer)
{
    return (struct any_value){.kind = ANY_VALUE_INT, .integer = integer};
}

static inline struct any_value any_value_double(double real)
{
    return (struct any_value){.kind = ANY_VALUE_DOUBLE, .real = real};
}

/* any_value_size returns the size of the payload in bytes. any_value_write writes it to memory of
 * that size, and returns the address after it. */
size_t any_value_size(const struct any_value *value);
uint8_t *any_value_write(uint8_t *to, const struct any_value *value);

/* Encode into an arena: the payload of an AnyValue, the payload of a KeyValue, a KeyValue as field
 * `number`. The slice `value` is the payload of an AnyValue. */
struct slice any_value_encode(struct arena *arena, struct any_value value);
struct slice key_value_encode(struct arena *arena, struct slice key, struct slice value);
struct slice key_value_encode_field(struct arena *arena, uint32_t number, struct slice key,
                                    struct slice value);

/* The same without an arena: the size of the field in bytes; writes it to memory of that size, and
 * returns the address after it. */
size_t key_value_field_size(uint32_t number, struct slice key, struct slice value);
uint8_t *key_value_field_write(uint8_t *to, uint32_t number, struct slice key, struct slice value);

/* Append to a writer: a KeyValue as field `number`; the fields of a KeyValueAndUnit. */
void key_value_append(struct wire_writer *writer, uint32_t number, struct slice key,
                      struct any_value value);
void key_value_and_unit_append(struct wire_writer *writer, uint32_t key, struct any_value value,
                               uint32_t unit);

/* Writes the payload of a KeyValueAndUnit to memory of KEY_VALUE_AND_UNIT_ROOM bytes plus the size
 * of the value. Returns the address after it. */
#define KEY_VALUE_AND_UNIT_ROOM ((size_t)3 * WIRE_HEADER_MAX)
uint8_t *key_value_and_unit_write(uint8_t *to, const struct key_value_and_unit *entry);

#endif

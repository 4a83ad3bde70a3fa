/*
 * wire: reads and writes the protobuf encoding field by field, without a schema and without copies.
 *
 * https://protobuf.dev/programming-guides/encoding/. Reading is iterative; nothing here recurses.
 *
 * Owner: slices point into the caller's bytes.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_DATA_WIRE_H
#define PROFCOL_CORE_DATA_WIRE_H

#include "core/base/slice.h"

#include <endian.h>

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_GROUP_START = 3, /* refused everywhere: OTLP has no groups */
    WIRE_GROUP_END = 4,
    WIRE_FIXED32 = 5,
};

/* One field on the wire. Members that its type does not have are not set: check the type first,
 * unless the scan (scan.h) guarantees the type for this number. */
struct wire_field {
    uint32_t number;
    enum wire_type type;
    uint64_t value;       /* VARINT, FIXED64, FIXED32 */
    struct slice bytes;   /* BYTES: the payload */
    const uint8_t *start; /* of the tag */
    const uint8_t *end;   /* after the field */
};

/* Replaces a payload that must not be read as received, because the message was changed
 * (message.h). Reading it as a message asserts. */
extern const uint8_t wire_stale[1];

struct wire_cursor {
    const uint8_t *next;
    const uint8_t *end;
    bool broken; /* the bytes are not a protobuf message: a length past the end, a varint over 10
                    bytes, a group, field number 0 */
};

/* Returns a cursor at the beginning of the bytes. */
static inline struct wire_cursor wire_cursor(struct slice bytes)
{
    /* An empty slice may be NULL, and before C2y adding 0 to NULL is undefined. */
    return (struct wire_cursor){bytes.data, bytes.size ? bytes.data + bytes.size : bytes.data,
                                false};
}

/* Converts the value of an sint32 on the wire to its number, and back. */
static inline int32_t wire_zigzag32(uint32_t value)
{
    return (int32_t)(value >> 1 ^ (0u - (value & 1)));
}
static inline uint32_t wire_to_zigzag32(int32_t number)
{
    return (uint32_t)number << 1 ^ (number < 0 ? UINT32_MAX : 0);
}

/* Returns the little-endian number at an address. */
static inline uint64_t wire_load_fixed64(const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return le64toh(value);
}

/* wire_next for fields that are not short. */
bool wire_next_any(struct wire_cursor *cursor, struct wire_field *field);

/* Reads the next field. Returns false at the end, or if the bytes are broken. Most fields have a
 * tag of one byte, and a length of one byte or two, or a value of one byte, two or eight; they are
 * read inline. */
static inline bool wire_next(struct wire_cursor *cursor, struct wire_field *field)
{
    const uint8_t *at = cursor->next, *end;
    ptrdiff_t room = cursor->end - at - 2;
    if (cursor->broken || room < 0 || at[0] < 8 || at[0] >= 0x80)
        return __builtin_expect(room != -2, 0) && wire_next_any(cursor, field); /* -2: the end */
    enum wire_type type = (enum wire_type)(at[0] & 7);
    if (type == WIRE_BYTES && at[1] < 0x80 && at[1] <= room) {
        field->bytes = (struct slice){at + 2, at[1]};
        end = at + 2 + at[1];
    } else if (type == WIRE_VARINT && at[1] < 0x80) {
        field->value = at[1];
        end = at + 2;
    } else if (type == WIRE_VARINT && room > 0 && at[2] < 0x80) { /* a value of two bytes */
        field->value = (uint64_t)(at[1] & 0x7f) | (uint64_t)at[2] << 7;
        end = at + 3;
    } else if (type == WIRE_BYTES && room > 0 && at[1] >= 0x80 && at[2] < 0x80 &&
               (at[1] & 0x7f) + (at[2] << 7) < room) { /* a length of two bytes */
        field->bytes = (struct slice){at + 3, (size_t)((at[1] & 0x7f) + (at[2] << 7))};
        end = field->bytes.data + field->bytes.size;
    } else if (type == WIRE_FIXED64 && room >= 7) {
        field->value = wire_load_fixed64(at + 1);
        end = at + 9;
    } else {
        return wire_next_any(cursor, field);
    }
    field->number = at[0] >> 3;
    field->type = type;
    field->start = at;
    field->end = cursor->next = end;
    return true;
}

/* Returns the size of the field at `at` if its tag is one byte, and its length or value one byte or
 * eight, as in most fields; 0 if it is another one. It may extend beyond the end. */
static inline size_t wire_short_field_size(const uint8_t *at, const uint8_t *end)
{
    if (end - at < 2 || at[0] < 8 || at[0] >= 0x80)
        return 0;
    if ((at[0] & 7) == WIRE_FIXED64)
        return 1 + sizeof(uint64_t);
    if (at[1] >= 0x80)
        return 0;
    return (at[0] & 7) == WIRE_BYTES ? 2 + (size_t)at[1] : (at[0] & 7) == WIRE_VARINT ? 2 : 0;
}

/* Skips fields with this tag of one byte, and a length of one byte. Adds their number to *count,
 * and returns the address after them. */
static inline const uint8_t *wire_skip_short(const uint8_t *at, const uint8_t *end, uint8_t tag,
                                             uint32_t *count)
{
    enum { LONGEST = 2 + 0x7f };
    uint32_t skipped = 0;
    for (; end - at >= LONGEST && at[0] == tag && at[1] < 0x80; at += 2 + at[1])
        skipped++;
    for (; end - at >= 2 && at[0] == tag && at[1] < 0x80 && at[1] <= end - at - 2; at += 2 + at[1])
        skipped++;
    *count += skipped;
    return at;
}

/* Reads the next field of this number that has a payload: a string, a list or a message. Returns
 * false if there is none. */
static inline bool wire_next_bytes(struct wire_cursor *cursor, uint32_t number,
                                   struct wire_field *field)
{
    while (wire_next(cursor, field))
        if (field->number == number && field->type == WIRE_BYTES)
            return true;
    return false;
}

/* Takes the next field if it has this tag of one byte, and a length of one byte, as most messages
 * in a list do. If it returns false, the cursor has not moved: go on with wire_next. */
static inline bool wire_take_short(struct wire_cursor *cursor, uint8_t tag, struct slice *out)
{
    const uint8_t *at = cursor->next;
    ptrdiff_t room = cursor->end - at - 2;
    if (room < 0 || at[0] != tag || at[1] >= 0x80 || at[1] > room)
        return false;
    *out = (struct slice){at + 2, at[1]};
    cursor->next = at + 2 + at[1];
    return true;
}

/* Like wire_next_bytes, faster in a list of short messages; number: below 16. */
static inline bool wire_next_payload(struct wire_cursor *cursor, uint32_t number, struct slice *out)
{
    struct wire_field field;
    if (wire_take_short(cursor, (uint8_t)(number << 3 | WIRE_BYTES), out))
        return true;
    if (!wire_next_bytes(cursor, number, &field))
        return false;
    *out = field.bytes;
    return true;
}

/* Returns the payload of the last such field, which is the one that counts; empty if there is
 * none. */
static inline struct slice wire_last_bytes(struct slice message, uint32_t number)
{
    struct wire_cursor cursor = wire_cursor(message);
    struct wire_field field;
    struct slice last = {0};
    while (wire_next_bytes(&cursor, number, &field))
        last = field.bytes;
    return last;
}

/* Returns the payload of the first such field, for fields that may be there once (the scan refuses
 * messages that OTLP does not repeat, and are there twice): the fields behind it are not read. */
static inline struct slice wire_first_bytes(struct slice message, uint32_t number)
{
    struct wire_cursor cursor = wire_cursor(message);
    struct wire_field field;
    return wire_next_bytes(&cursor, number, &field) ? field.bytes : (struct slice){0};
}

/* Returns one to eight bytes as a little-endian number, and reads no others. */
static inline uint64_t wire_load_few(const uint8_t *from, size_t size)
{
    uint32_t low, high;
    if (size < sizeof low)
        return from[0] | (uint64_t)from[size / 2] << size / 2 * 8 |
               (uint64_t)from[size - 1] << (size - 1) * 8;
    memcpy(&low, from, sizeof low);
    memcpy(&high, from + size - sizeof high, sizeof high);
    return le32toh(low) | (uint64_t)le32toh(high) << (size - sizeof high) * 8;
}

/* Reads a packed list of one number of up to eight bytes. Returns false if it is anything else.
 * Most have up to four, which come together in two steps of 32 bits. */
static inline bool wire_packed_single(struct slice list, uint64_t *out)
{
    const uint64_t upper = UINT64_C(0x8080808080808080);
    if (list.size - 1 >= sizeof upper)
        return false;
    uint64_t bytes = wire_load_few(list.data, list.size);
    if ((bytes & upper) != (upper & ((UINT64_C(1) << (list.size - 1) * 8) - 1)))
        return false;
    if (list.size <= sizeof(uint32_t)) {
        uint32_t few = (uint32_t)bytes;
        few = (few & 0x007f007fu) | (few & 0x7f007f00u) >> 1;
        *out = (few & 0x3fffu) | (few & 0x3fff0000u) >> 2;
        return true;
    }
    bytes &= ~upper; /* seven bits of each byte, which come together in three steps */
    bytes = (bytes & UINT64_C(0x007f007f007f007f)) | (bytes & UINT64_C(0x7f007f007f007f00)) >> 1;
    bytes = (bytes & UINT64_C(0x00003fff00003fff)) | (bytes & UINT64_C(0x3fff00003fff0000)) >> 2;
    *out = (bytes & UINT64_C(0x0fffffff)) | (bytes & UINT64_C(0x0fffffff00000000)) >> 4;
    return true;
}

/* Read the next number of a packed (or, one at a time, unpacked) repeated varint or fixed64 field.
 * Return false at the end, or if the bytes are broken. */
bool wire_packed_varint_any(struct wire_cursor *packed, uint64_t *out);
static inline bool wire_packed_varint(struct wire_cursor *packed, uint64_t *out)
{
    const uint8_t *at = packed->next;
    if (at >= packed->end || packed->broken)
        return false;
    if (*at < 0x80) {
        *out = *at;
        packed->next = at + 1;
        return true;
    }
    if (packed->end - at < 2 || at[1] >= 0x80)
        return wire_packed_varint_any(packed, out);
    *out = (uint64_t)(at[0] & 0x7f) | (uint64_t)at[1] << 7;
    packed->next = at + 2;
    return true;
}
bool wire_packed_fixed64_any(struct wire_cursor *packed, uint64_t *out);
static inline bool wire_packed_fixed64(struct wire_cursor *packed, uint64_t *out)
{
    if (packed->end - packed->next < 8 || packed->broken)
        return packed->next < packed->end && wire_packed_fixed64_any(packed, out);
    *out = wire_load_fixed64(packed->next);
    packed->next += 8;
    return true;
}

/* The wire_write_ functions write to memory that the caller has sized with the wire_size_
 * functions, and return the address after the last byte. */
#define WIRE_HEADER_MAX 15 /* tag (5) and length (10) */
static inline size_t wire_size_varint(uint64_t value)
{
    unsigned bits = 64u - (unsigned)__builtin_clzll(value | 1);
    return (bits + 6) / 7;
}

/* Returns the size of the tag of a field. */
static inline size_t wire_size_tag(uint32_t number)
{
    return wire_size_varint((uint64_t)number << 3);
}

/* Returns the size of a BYTES field: tag, length and payload. */
static inline size_t wire_size_bytes(uint32_t number, size_t payload)
{
    return wire_size_tag(number) + wire_size_varint(payload) + payload;
}

static inline uint8_t *wire_write_varint(uint8_t *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

/* Writes the tag of a field. */
static inline uint8_t *wire_write_tag(uint8_t *to, uint32_t number, enum wire_type type)
{
    return wire_write_varint(to, (uint64_t)number << 3 | type);
}

/* Writes tag and length of a BYTES field. */
static inline uint8_t *wire_write_header(uint8_t *to, uint32_t number, size_t payload)
{
    return wire_write_varint(wire_write_tag(to, number, WIRE_BYTES), payload);
}

/* Writes bytes that are encoded already. Most are too few for a call of memcpy. The two copies of a
 * few overlap. */
static inline uint8_t *wire_write_raw(uint8_t *to, struct slice bytes)
{
    const uint8_t *from = bytes.data;
    size_t size = bytes.size;
    if (size > 16) {
        memcpy(to, from, size);
    } else if (size >= 8) {
        memcpy(to, from, 8);
        memcpy(to + size - 8, from + size - 8, 8);
    } else if (size >= 4) {
        memcpy(to, from, 4);
        memcpy(to + size - 4, from + size - 4, 4);
    } else if (size > 0) {
        to[0] = from[0];
        to[size / 2] = from[size / 2];
        to[size - 1] = from[size - 1];
    }
    return to + size;
}

/* Write a whole field, with its tag. */
uint8_t *wire_write_bytes(uint8_t *to, uint32_t number, struct slice payload);
uint8_t *wire_write_fixed64(uint8_t *to, uint32_t number, uint64_t value);

#endif

#include "core/data/wire.h"

#include <assert.h>

/* Field number 0, so that a reader finds the bytes broken. */
const uint8_t wire_stale[1] = {0};

/* Reads a varint of up to 10 bytes; drops bits past 64, as the reference parsers do. */
static bool read_varint_slow(struct wire_cursor *cursor, uint64_t *out)
{
    uint64_t value = 0;
    const uint8_t *p = cursor->next;
    for (unsigned shift = 0; shift < 70 && p < cursor->end; shift += 7) {
        uint8_t byte = *p++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            cursor->next = p;
            *out = value;
            return true;
        }
    }
    cursor->broken = true;
    return false;
}

static inline bool read_varint(struct wire_cursor *cursor, uint64_t *out)
{
    const uint8_t *p = cursor->next;
    if (p < cursor->end && p[0] < 0x80) {
        *out = p[0];
        cursor->next = p + 1;
        return true;
    }
    if (cursor->end - p >= 2 && p[1] < 0x80) {
        *out = (uint64_t)(p[0] & 0x7f) | (uint64_t)p[1] << 7;
        cursor->next = p + 2;
        return true;
    }
    return read_varint_slow(cursor, out);
}

static bool read_fixed(struct wire_cursor *cursor, size_t size, uint64_t *out)
{
    if ((size_t)(cursor->end - cursor->next) < size) {
        cursor->broken = true;
        return false;
    }
    uint64_t value = 0;
    memcpy(&value, cursor->next, size); /* 4 or 8 bytes, little-endian */
    cursor->next += size;
    *out = le64toh(value);
    return true;
}

static bool read_bytes(struct wire_cursor *cursor, struct slice *out)
{
    uint64_t size;
    if (!read_varint(cursor, &size))
        return false;
    if (size > (uint64_t)(cursor->end - cursor->next)) {
        cursor->broken = true;
        return false;
    }
    *out = slice_of(cursor->next, (size_t)size);
    cursor->next += size;
    return true;
}

bool wire_next_any(struct wire_cursor *cursor, struct wire_field *field)
{
    if (cursor->next >= cursor->end || cursor->broken)
        return false;
    field->start = cursor->next;
    uint64_t tag;
    if (!read_varint(cursor, &tag))
        return false;
    if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) {
        /* Read a changed message with message_iter_into. */
        assert(field->start != wire_stale);
        cursor->broken = true;
        return false;
    }
    field->number = (uint32_t)(tag >> 3);
    field->type = (enum wire_type)(tag & 7);
    bool ok;
    switch (field->type) {
    case WIRE_VARINT:
        ok = read_varint(cursor, &field->value);
        break;
    case WIRE_FIXED64:
        ok = read_fixed(cursor, 8, &field->value);
        break;
    case WIRE_FIXED32:
        ok = read_fixed(cursor, 4, &field->value);
        break;
    case WIRE_BYTES:
        ok = read_bytes(cursor, &field->bytes);
        break;
    case WIRE_GROUP_START:
    case WIRE_GROUP_END:
    default:
        cursor->broken = true;
        ok = false;
    }
    field->end = cursor->next;
    return ok;
}

bool wire_packed_varint_any(struct wire_cursor *packed, uint64_t *out)
{
    return packed->next < packed->end && !packed->broken && read_varint(packed, out);
}

bool wire_packed_fixed64_any(struct wire_cursor *packed, uint64_t *out)
{
    return packed->next < packed->end && !packed->broken && read_fixed(packed, 8, out);
}

uint8_t *wire_write_bytes(uint8_t *to, uint32_t number, struct slice payload)
{
    to = wire_write_header(to, number, payload.size);
    if (payload.size > 0)
        memcpy(to, payload.data, payload.size);
    return to + payload.size;
}

uint8_t *wire_write_fixed64(uint8_t *to, uint32_t number, uint64_t value)
{
    to = wire_write_tag(to, number, WIRE_FIXED64);
    value = htole64(value);
    memcpy(to, &value, sizeof value);
    return to + sizeof value;
}

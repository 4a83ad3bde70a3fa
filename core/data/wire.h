/*
 * wire: reading and writing the protobuf encoding, field by field, without a schema and without
 * copies.
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

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_GROUP_START = 3, /* refused everywhere: OTLP has no groups */
    WIRE_GROUP_END = 4,
    WIRE_FIXED32 = 5,
};

/* One field as it stands on the wire. */
struct wire_field {
    uint32_t number;
    enum wire_type type;
    uint64_t value;       /* VARINT, FIXED64, FIXED32 */
    struct slice bytes;   /* BYTES: the payload */
    const uint8_t *start; /* of the tag */
    const uint8_t *end;   /* behind the field */
};

struct wire_cursor {
    const uint8_t *next;
    const uint8_t *end;
    bool broken; /* the bytes are no protobuf message: a length past the end, a varint over 10
                    bytes, a group, field number 0 */
};

static inline struct wire_cursor wire_cursor(struct slice bytes)
{
    /* No bytes may be no address, and C before C2y does not let one add 0 to that. */
    return (struct wire_cursor){bytes.data, bytes.size ? bytes.data + bytes.size : bytes.data,
                                false};
}

/* False at the end or when broken. */
bool wire_next(struct wire_cursor *cursor, struct wire_field *field);

/* The next number of a packed (or, one at a time, unpacked) repeated varint / fixed64 field. */
bool wire_packed_varint(struct wire_cursor *packed, uint64_t *out);
bool wire_packed_fixed64(struct wire_cursor *packed, uint64_t *out);

/* Writing: to memory that the caller has sized with the wire_size_ functions; return behind what
 * was written. */
#define WIRE_HEADER_MAX 15 /* tag (5) and length (10) */
size_t wire_size_varint(uint64_t value);
size_t wire_size_tag(uint32_t number);
/* tag, length and payload of a BYTES field */
size_t wire_size_bytes(uint32_t number, size_t payload);
uint8_t *wire_write_varint(uint8_t *to, uint64_t value);
uint8_t *wire_write_tag(uint8_t *to, uint32_t number, enum wire_type type);
uint8_t *wire_write_header(uint8_t *to, uint32_t number,
                           size_t payload); /* tag and length of a BYTES field */
uint8_t *wire_write_bytes(uint8_t *to, uint32_t number, struct slice payload);
uint8_t *wire_write_fixed64(uint8_t *to, uint32_t number, uint64_t value);

#endif

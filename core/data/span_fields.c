#include "core/data/span_fields.h"

#include "core/data/message.h"
#include "core/data/otlp.h"

#include <assert.h>

static void read_status(struct span_fields *span, struct slice status)
{
    struct message_iter it = message_iter_bytes(status);
    struct message_field field;
    while (message_next(&it, &field)) {
        if (field.wire.number == STATUS_MESSAGE && field.wire.type == WIRE_BYTES)
            span->status_message = field.wire.bytes;
        else if (field.wire.number == STATUS_CODE && field.wire.type == WIRE_VARINT)
            span->status = field.wire.value < UINT8_MAX ? (uint8_t)field.wire.value : UINT8_MAX;
    }
}

static void read_bytes_field(struct span_fields *span, const struct wire_field *field)
{
    switch (field->number) {
    case SPAN_TRACE_ID:
        span->trace_id = field->bytes;
        break;
    case SPAN_SPAN_ID:
        span->span_id = field->bytes;
        break;
    case SPAN_PARENT_SPAN_ID:
        span->parent_id = field->bytes;
        break;
    case SPAN_NAME:
        span->name = field->bytes;
        break;
    case SPAN_ATTRIBUTES:
        if (span->attributes.size == 0)
            span->attributes.data = field->start;
        span->attributes.size = (size_t)(field->end - span->attributes.data);
        break;
    case SPAN_STATUS:
        read_status(span, field->bytes);
        break;
    default:
        break;
    }
}

/* Takes a short field if it is there: one with a payload; a number of 8 bytes. */
static inline const uint8_t *take_bytes(const uint8_t *at, const uint8_t *end, uint32_t number,
                                        struct slice *out)
{
    if (end - at < 2 || at[0] != (number << 3 | WIRE_BYTES) || at[1] >= 0x80 ||
        at[1] > end - at - 2)
        return at;
    *out = (struct slice){at + 2, at[1]};
    return at + 2 + at[1];
}

static inline const uint8_t *take_time(const uint8_t *at, const uint8_t *end, uint32_t number,
                                       uint64_t *out)
{
    if (end - at < 9 || at[0] != (number << 3 | WIRE_FIXED64))
        return at;
    *out = wire_load_fixed64(at + 1);
    return at + 9;
}

const uint8_t *span_fields_begin(struct span_fields *span, const uint8_t *at, const uint8_t *end)
{
    struct slice state;
    at = take_bytes(at, end, SPAN_TRACE_ID, &span->trace_id);
    at = take_bytes(at, end, SPAN_SPAN_ID, &span->span_id);
    at = take_bytes(at, end, SPAN_TRACE_STATE, &state);
    at = take_bytes(at, end, SPAN_PARENT_SPAN_ID, &span->parent_id);
    at = take_bytes(at, end, SPAN_NAME, &span->name);
    if (end - at >= 2 && at[0] == (SPAN_KIND << 3 | WIRE_VARINT) && at[1] < 0x80) {
        span->kind = at[1];
        at += 2;
    }
    at = take_time(at, end, SPAN_START_TIME_UNIX_NANO, &span->start_ns);
    return take_time(at, end, SPAN_END_TIME_UNIX_NANO, &span->end_ns);
}

void span_fields_take(struct span_fields *span, const struct wire_field *field)
{
    if (field->type == WIRE_BYTES)
        read_bytes_field(span, field);
    else if (field->number == SPAN_START_TIME_UNIX_NANO)
        span->start_ns = field->value;
    else if (field->number == SPAN_END_TIME_UNIX_NANO)
        span->end_ns = field->value;
    else if (field->number == SPAN_KIND)
        span->kind = field->value < UINT8_MAX ? (uint8_t)field->value : UINT8_MAX;
    else if (field->number == SPAN_FLAGS)
        span->flags = (uint32_t)field->value;
}

struct span_fields span_fields_read(struct slice raw)
{
    struct span_fields span = {.kind = 0};
    struct wire_cursor cursor = wire_cursor(raw);
    struct wire_field field;
    cursor.next = span_fields_begin(&span, cursor.next, cursor.end);
    while (wire_next(&cursor, &field))
        span_fields_take(&span, &field);
    assert(!cursor.broken);
    return span;
}

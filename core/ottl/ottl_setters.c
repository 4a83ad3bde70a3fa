#include "core/ottl/ottl_setters.h"

#include "core/ottl/ottl_writing.h"

#include <assert.h>
#include <stdio.h>

static bool expect(struct ottl_evaluation *evaluation, const struct ottl_value *value,
                   enum ottl_kind kind)
{
    struct ottl_value wanted = {.kind = kind};
    return value->kind == kind ||
           error_set(ottl_evaluation_error(evaluation), "expects %s but got %s",
                     ottl_type_name(&wanted), ottl_type_name(value));
}

static bool put_bytes(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                      struct slice bytes)
{
    struct message_iter *message = NULL;
    struct ottl_value old;
    if (ottl_path_read(evaluation, row, &old) && slice_equal(old.bytes, bytes))
        return true;
    if (!ottl_take_room(evaluation, bytes.size, old.bytes.size) ||
        !(message = ottl_open(evaluation, row)))
        return false;
    ottl_put_bytes(*message, row->number, bytes);
    return true;
}

static bool put_number(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                       enum wire_type type, uint64_t number)
{
    struct message_iter *message = ottl_open(evaluation, row);
    if (message)
        ottl_put_number(*message, row->number, type, number);
    return message != NULL;
}

OTTL_SETTER(ottl_set_text)
{
    return expect(evaluation, value, OTTL_STRING) &&
           put_bytes(evaluation, row, ottl_valid_text(evaluation, value->bytes));
}

OTTL_SETTER(ottl_set_bytes)
{
    return expect(evaluation, value, OTTL_BYTES) && put_bytes(evaluation, row, value->bytes);
}

OTTL_SETTER(ottl_set_count)
{
    return expect(evaluation, value, OTTL_INT) &&
           put_number(evaluation, row, WIRE_VARINT, (uint32_t)value->integer);
}

OTTL_SETTER(ottl_set_int)
{
    return expect(evaluation, value, OTTL_INT) &&
           put_number(evaluation, row, WIRE_VARINT, (uint64_t)value->integer);
}

/* An int32 is written with its sign in 64 bits. */
OTTL_SETTER(ottl_set_enum)
{
    return expect(evaluation, value, OTTL_INT) &&
           put_number(evaluation, row, WIRE_VARINT, (uint64_t)(int32_t)value->integer);
}

OTTL_SETTER(ottl_set_flags)
{
    if (!expect(evaluation, value, OTTL_INT))
        return false;
    if (value->integer < 0 || value->integer > UINT32_MAX)
        return error_set(ottl_evaluation_error(evaluation), "flags must be a uint32");
    return put_number(evaluation, row, WIRE_FIXED32, (uint64_t)value->integer);
}

OTTL_SETTER(ottl_set_ns)
{
    return expect(evaluation, value, OTTL_INT) &&
           put_number(evaluation, row, WIRE_FIXED64, (uint64_t)value->integer);
}

OTTL_SETTER(ottl_set_time)
{
    return expect(evaluation, value, OTTL_TIME) &&
           put_number(evaluation, row, WIRE_FIXED64, (uint64_t)value->integer);
}

/* ---- ids ---- */

/* An id of zeros is an absent one. */
static bool put_id(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                   struct slice id)
{
    static const uint8_t zeros[TRACE_ID_SIZE];
    assert(id.size <= sizeof zeros);
    bool is_absent = slice_equal(id, slice_of(zeros, id.size));
    struct message_iter *message = ottl_open(evaluation, row);
    if (message)
        ottl_put_bytes(*message, row->number, is_absent ? (struct slice){0} : id);
    return message != NULL;
}

OTTL_SETTER(ottl_set_trace_id)
{
    return expect(evaluation, value, OTTL_TRACE_ID) && put_id(evaluation, row, value->bytes);
}

OTTL_SETTER(ottl_set_span_id)
{
    return expect(evaluation, value, OTTL_SPAN_ID) && put_id(evaluation, row, value->bytes);
}

OTTL_SETTER(ottl_set_id_text)
{
    uint8_t id[TRACE_ID_SIZE];
    bool is_trace = row->number == SPAN_TRACE_ID;
    size_t size = is_trace ? TRACE_ID_SIZE : SPAN_ID_SIZE;
    if (!expect(evaluation, value, OTTL_STRING))
        return false;
    int byte = value->bytes.size == 2 * size ? 0 : -1;
    for (size_t i = 0; i < size && byte >= 0; i++) {
        byte = text_hex_byte(value->bytes.data + 2 * i);
        id[i] = (uint8_t)byte;
    }
    if (byte < 0)
        return error_set(ottl_evaluation_error(evaluation), "%s ids must be %zu hex characters",
                         is_trace ? "trace" : "span", 2 * size);
    return put_id(evaluation, row, slice_of(id, size));
}

/* ---- kinds of spans ---- */

static bool put_kind(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                     const struct ottl_value *value, const char *const *names)
{
    if (!expect(evaluation, value, OTTL_STRING))
        return false;
    for (uint64_t kind = 0; kind < 6; kind++)
        if (slice_is(value->bytes, names[kind]))
            return put_number(evaluation, row, WIRE_VARINT, kind);
    return error_set(ottl_evaluation_error(evaluation), "unknown span kind, '%.*s'",
                     (int)text_utf8_cut(value->bytes, 100), (const char *)value->bytes.data);
}

OTTL_SETTER(ottl_set_kind_text)
{
    static const char *const names[] = {"Unspecified", "Internal", "Server",
                                        "Client",      "Producer", "Consumer"};
    return put_kind(evaluation, row, value, names);
}

OTTL_SETTER(ottl_set_kind_symbol)
{
    static const char *const names[] = {"SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL",
                                        "SPAN_KIND_SERVER",      "SPAN_KIND_CLIENT",
                                        "SPAN_KIND_PRODUCER",    "SPAN_KIND_CONSUMER"};
    return put_kind(evaluation, row, value, names);
}

/* ---- messages ---- */

/* The only status there is is the span's own. */
OTTL_SETTER(ottl_set_status)
{
    (void)row;
    return expect(evaluation, value, OTTL_STATUS);
}

OTTL_SETTER(ottl_set_status_code)
{
    if (!expect(evaluation, value, OTTL_INT))
        return false;
    struct message_iter *span = ottl_open(evaluation, row);
    if (span)
        ottl_put_number(ottl_open_inner(*span, SPAN_STATUS), row->number, WIRE_VARINT,
                        (uint64_t)(int32_t)value->integer);
    return span != NULL;
}

OTTL_SETTER(ottl_set_status_message)
{
    struct message_iter *span = NULL;
    if (!expect(evaluation, value, OTTL_STRING))
        return false;
    struct slice message = ottl_valid_text(evaluation, value->bytes);
    if (!ottl_take_room(evaluation, message.size, 0) || !(span = ottl_open(evaluation, row)))
        return false;
    ottl_put_bytes(ottl_open_inner(*span, SPAN_STATUS), row->number, message);
    return true;
}

/* The only events and links there are are the span's own. */
OTTL_SETTER(ottl_set_messages)
{
    return expect(evaluation, value, OTTL_MESSAGES) &&
           (value->number == row->number ||
            error_set(ottl_evaluation_error(evaluation), "events are no links"));
}

/* ---- paths that cannot be set ---- */

OTTL_SETTER(ottl_set_never)
{
    (void)value;
    return error_set(ottl_evaluation_error(evaluation), "%s.%s cannot be set",
                     ottl_context_names[row->context], row->name);
}

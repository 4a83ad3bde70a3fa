#include "core/data/json_schema.h"
#include "core/data/scan.h"
#include "core/data/wire.h"
#include "google/protobuf/duration.pb-c.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The occurrences of a field in its message. */
struct occurrence {
    const uint8_t *first; /* NULL: there are none */
    const uint8_t *end;   /* after the last one */
};

static void print_message(const ProtobufCMessageDescriptor *descriptor, struct slice bytes,
                          struct text *out, unsigned depth);

/* ---- scalars ---- */

static void print_u64(struct text *out, uint64_t value, bool negative, bool quoted)
{
    char digits[24];
    char *to = digits + sizeof digits;
    if (quoted)
        *--to = '"';
    to = text_write_u64(to, value);
    if (negative)
        *--to = '-';
    if (quoted)
        *--to = '"';
    text_append_slice(out, slice_of(to, (size_t)(digits + sizeof digits - to)));
}

static void print_i64(struct text *out, int64_t value, bool quoted)
{
    print_u64(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0, quoted);
}

void json_print_double(struct text *out, double value)
{
    char text[32];
    if (isnan(value) || isinf(value)) {
        text_append(out, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    text_append(out, text);
}

static void print_base64(struct text *out, struct slice bytes)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t left = bytes.size - i;
        uint32_t bits = (uint32_t)bytes.data[i] << 16 |
                        (uint32_t)(left > 1 ? bytes.data[i + 1] : 0) << 8 |
                        (left > 2 ? bytes.data[i + 2] : 0);
        char quad[] = "====";
        quad[0] = alphabet[bits >> 18];
        quad[1] = alphabet[bits >> 12 & 63];
        if (left > 1)
            quad[2] = alphabet[bits >> 6 & 63];
        if (left > 2)
            quad[3] = alphabet[bits & 63];
        text_append_slice(out, slice_of(quad, 4));
    }
}

static void print_bytes(const ProtobufCFieldDescriptor *field, struct slice bytes, struct text *out)
{
    text_append_char(out, '"');
    if (field->type == PROTOBUF_C_TYPE_STRING)
        text_append_json(out, bytes);
    else if (json_schema_id_size(field) > 0)
        text_append_hex(out, bytes);
    else
        print_base64(out, bytes);
    text_append_char(out, '"');
}

static void print_number(const ProtobufCFieldDescriptor *field, uint64_t value, struct text *out)
{
    double number;
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL:
        text_append(out, value ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_ENUM:
        print_i64(out, (int32_t)(uint32_t)value, false);
        break;
    case PROTOBUF_C_TYPE_SINT32:
        print_i64(out, wire_zigzag32((uint32_t)value), false);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        print_u64(out, (uint32_t)value, false, false);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        print_i64(out, (int64_t)value, true);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        print_u64(out, value, false, true);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        memcpy(&number, &value, sizeof number);
        json_print_double(out, number);
        break;
    default:
        assert(false && "OTLP has no fields of this type");
    }
}

static bool is_packable(const ProtobufCFieldDescriptor *field)
{
    return field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_BYTES &&
           field->type != PROTOBUF_C_TYPE_MESSAGE;
}

static bool is_fixed64(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_FIXED64 || field->type == PROTOBUF_C_TYPE_SFIXED64 ||
           field->type == PROTOBUF_C_TYPE_DOUBLE;
}

/* ---- google.protobuf.Any: ours contain only RetryInfo ---- */

/* Prints a google.protobuf.Duration (seconds = 1, nanos = 2), such as "1.500s". */
static void print_duration(struct text *out, struct slice duration)
{
    struct wire_cursor cursor = wire_cursor(duration);
    struct wire_field field;
    int64_t seconds = 0, nanos = 0;
    while (wire_next(&cursor, &field)) {
        if (field.number == 1 && field.type == WIRE_VARINT)
            seconds = (int64_t)field.value;
        else if (field.number == 2 && field.type == WIRE_VARINT)
            nanos = (int64_t)field.value;
    }
    if (nanos > 0 && nanos < 1000000000)
        text_printf(out, "\"%" PRId64 ".%09us\"", seconds, (unsigned)nanos);
    else
        text_printf(out, "\"%" PRId64 "s\"", seconds);
}

static void print_any(struct slice bytes, struct text *out)
{
    static const char retry_info[] = "type.googleapis.com/google.rpc.RetryInfo";
    struct slice type = wire_last_bytes(bytes, 1), value = wire_last_bytes(bytes, 2);
    text_append(out, "{\"@type\":\"");
    text_append_json(out, type);
    text_append_char(out, '"');
    if (slice_is(type, retry_info)) {
        text_append(out, ",\"retryDelay\":");
        print_duration(out, wire_last_bytes(value, 1));
    } else {
        text_append(out, ",\"value\":\"");
        print_base64(out, value);
        text_append_char(out, '"');
    }
    text_append_char(out, '}');
}

/* ---- fields ---- */

static void print_submessage(const ProtobufCFieldDescriptor *field, struct slice bytes,
                             struct text *out, unsigned depth)
{
    if (json_schema_is_any(field->descriptor))
        print_any(bytes, out);
    else
        print_message(field->descriptor, bytes, out, depth + 1);
}

static void print_element(const ProtobufCFieldDescriptor *field, const struct wire_field *wire,
                          struct text *out, unsigned depth)
{
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        print_submessage(field, wire->bytes, out, depth);
    else if (!is_packable(field))
        print_bytes(field, wire->bytes, out);
    else
        print_number(field, wire->value, out);
}

static void print_packed(const ProtobufCFieldDescriptor *field, struct slice packed,
                         struct text *out, bool *any)
{
    struct wire_cursor cursor = wire_cursor(packed);
    uint64_t value;
    while (is_fixed64(field) ? wire_packed_fixed64(&cursor, &value)
                             : wire_packed_varint(&cursor, &value)) {
        if (*any)
            text_append_char(out, ',');
        *any = true;
        print_number(field, value, out);
    }
}

static void print_list(const ProtobufCFieldDescriptor *field, const struct occurrence *where,
                       struct text *out, unsigned depth)
{
    struct wire_cursor cursor =
        wire_cursor(slice_of(where->first, (size_t)(where->end - where->first)));
    struct wire_field wire;
    bool any = false;
    text_append_char(out, '[');
    while (wire_next(&cursor, &wire)) {
        if (wire.number != field->id)
            continue;
        if (wire.type == WIRE_BYTES && is_packable(field)) {
            print_packed(field, wire.bytes, out, &any);
            continue;
        }
        if (any)
            text_append_char(out, ',');
        any = true;
        print_element(field, &wire, out, depth);
    }
    assert(!cursor.broken);
    text_append_char(out, ']');
}

/* Returns the last occurrence of a singular field, which counts for numbers and strings. The scan
 * refuses repeated singular messages. */
static struct wire_field last_of(const ProtobufCFieldDescriptor *field,
                                 const struct occurrence *where)
{
    struct wire_cursor cursor =
        wire_cursor(slice_of(where->first, (size_t)(where->end - where->first)));
    struct wire_field wire, last = {0};
    while (wire_next(&cursor, &wire))
        if (wire.number == field->id)
            last = wire;
    assert(last.start); /* find_fields has found one */
    return last;
}

static bool is_default(const ProtobufCFieldDescriptor *field, const struct wire_field *wire)
{
    if (json_schema_has_presence(field))
        return false;
    return is_packable(field) ? wire->value == 0 : wire->bytes.size == 0;
}

static void print_name(const ProtobufCFieldDescriptor *field, struct text *out, bool *any)
{
    char name[JSON_NAME_MAX + 4] = ",\"";
    size_t size = 2 + json_schema_name(field, name + 2);
    assert(size + 2 <= sizeof name);
    name[size] = '"';
    name[size + 1] = ':';
    text_append_slice(out, *any ? slice_of(name, size + 2) : slice_of(name + 1, size + 1));
    *any = true;
}

static void print_field(const ProtobufCFieldDescriptor *field, const struct occurrence *where,
                        struct text *out, bool *any, unsigned depth)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        print_name(field, out, any);
        print_list(field, where, out, depth);
        return;
    }
    struct wire_field wire = last_of(field, where);
    if (is_default(field, &wire))
        return;
    print_name(field, out, any);
    print_element(field, &wire, out, depth);
}

/* ---- messages ---- */

static int field_index(const ProtobufCMessageDescriptor *descriptor, uint32_t number)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(descriptor, number);
    return field ? (int)(field - descriptor->fields) : -1;
}

static bool fits(const ProtobufCFieldDescriptor *field, const struct wire_field *wire)
{
    if (!is_packable(field))
        return wire->type == WIRE_BYTES;
    if (wire->type == WIRE_BYTES)
        return field->label == PROTOBUF_C_LABEL_REPEATED;
    if (field->type == PROTOBUF_C_TYPE_FIXED32)
        return wire->type == WIRE_FIXED32;
    return wire->type == (is_fixed64(field) ? WIRE_FIXED64 : WIRE_VARINT);
}

/* Removes all members of a oneof but the last, which counts. */
static void forget_excluded(const ProtobufCMessageDescriptor *descriptor, int index,
                            struct occurrence *where)
{
    const ProtobufCFieldDescriptor *field = &descriptor->fields[index];
    if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
        return;
    for (unsigned i = 0; i < descriptor->n_fields; i++)
        if ((int)i != index && (descriptor->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
            descriptor->fields[i].quantifier_offset == field->quantifier_offset)
            where[i] = (struct occurrence){0};
}

static void find_fields(const ProtobufCMessageDescriptor *descriptor, struct slice bytes,
                        struct occurrence *where)
{
    struct wire_cursor cursor = wire_cursor(bytes);
    struct wire_field wire;
    while (wire_next(&cursor, &wire)) {
        int index = field_index(descriptor, wire.number);
        if (index < 0 || !fits(&descriptor->fields[index], &wire))
            continue;
        forget_excluded(descriptor, index, where);
        if (!where[index].first)
            where[index].first = wire.start;
        where[index].end = wire.end;
    }
    assert(!cursor.broken);
}

static void print_message(const ProtobufCMessageDescriptor *descriptor, struct slice bytes,
                          struct text *out, unsigned depth)
{
    struct occurrence where[JSON_FIELDS_MAX] = {{0}};
    bool any = false;
    assert(descriptor->n_fields <= JSON_FIELDS_MAX && depth <= SCAN_DEPTH_MAX);
    find_fields(descriptor, bytes, where);
    text_append_char(out, '{');
    for (unsigned i = 0; i < descriptor->n_fields; i++)
        if (where[i].first)
            print_field(&descriptor->fields[i], &where[i], out, &any, depth);
    text_append_char(out, '}');
}

void json_from_protobuf(enum json_message message, struct slice protobuf, struct text *out)
{
    print_message(json_schema_message(message), protobuf, out, 1);
}

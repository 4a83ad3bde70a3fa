#include "core/base/budget.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/data/json_reader.h"
#include "core/data/json_schema.h"
#include "core/data/scan.h"
#include "core/data/wire.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/*
 * In protobuf, a length precedes its payload, but is known only after it. So payloads are written
 * without their lengths, and the position of each missing length is noted. A final pass copies
 * everything and inserts the lengths.
 */
struct missing_length {
    size_t position; /* in the bytes without lengths */
    size_t length;   /* of the payload, including the lengths inside it */
};

struct transcoder {
    struct json_reader in;
    struct buffer *out;     /* the output without lengths */
    struct buffer *lengths; /* array of struct missing_length, in the order of positions */
    size_t extra;           /* bytes of the encoded lengths known so far */
    bool over_budget;
    struct error *err;
};

/* The current position, for errors; one per message or list element, on the stack. */
struct place {
    const struct place *parent;
    const ProtobufCFieldDescriptor *field; /* NULL: the request */
    bool in_list;
    size_t index;
};

static void print_place(const struct place *place, struct text *out)
{
    if (!place->field)
        return;
    char name[JSON_NAME_MAX];
    print_place(place->parent, out);
    json_schema_name(place->field, name);
    text_printf(out, "%s%s", out->size > 0 ? "." : "", name);
    if (place->in_list)
        text_printf(out, "[%zu]", place->index);
}

/* Prints both ends of a path that is too long. */
static void print_short_place(const struct place *place, struct text *out)
{
    static const size_t ends = 200;
    print_place(place, out);
    if (out->size <= 2 * ends)
        return;
    struct text whole = *out;
    *out = (struct text){0};
    text_printf(out, "%.*s...%s", (int)ends, whole.data, whole.data + whole.size - ends);
    text_deinit(&whole);
}

__attribute__((format(printf, 3, 4))) static bool
fail(struct transcoder *t, const struct place *place, const char *format, ...)
{
    struct text text = {0};
    va_list args;
    print_short_place(place, &text);
    if (text.size > 0)
        text_append(&text, ": ");
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    error_set(t->err, "%s", text_string(&text));
    text_deinit(&text);
    return false;
}

static bool fail_json(struct transcoder *t, const struct place *place)
{
    return fail(t, place, "invalid JSON at byte %zu: %s", (size_t)(t->in.next - t->in.start),
                t->in.problem);
}

/* ---- output ---- */

/* Returns memory for `size` more bytes; NULL if the budget has no room. The caller adds the number
 * of bytes it wrote to out->size. */
static uint8_t *room(struct transcoder *t, size_t size)
{
    if (!buffer_reserve(t->out, size, SIZE_MAX / 2)) {
        error_set(t->err, "not enough memory for a request of this size at the moment");
        t->over_budget = true;
        return NULL;
    }
    return t->out->data + t->out->size;
}

static void wrote(struct transcoder *t, const uint8_t *end)
{
    t->out->size = (size_t)(end - t->out->data);
}

static bool write_tag(struct transcoder *t, uint32_t number, enum wire_type type)
{
    uint8_t *to = room(t, WIRE_HEADER_MAX);
    if (to)
        wrote(t, wire_write_tag(to, number, type));
    return to;
}

static bool write_bytes(struct transcoder *t, uint32_t number, struct slice bytes)
{
    uint8_t *to = room(t, WIRE_HEADER_MAX + bytes.size);
    if (to)
        wrote(t, wire_write_bytes(to, number, bytes));
    return to;
}

/* A payload whose size is not known yet. */
struct open_length {
    size_t note; /* index in t->lengths */
    size_t start;
    size_t extra;
};

static bool open_length(struct transcoder *t, uint32_t number, struct open_length *open)
{
    if (!write_tag(t, number, WIRE_BYTES))
        return false;
    struct missing_length note = {.position = t->out->size};
    *open = (struct open_length){t->lengths->size / sizeof note, t->out->size, t->extra};
    if (buffer_append(t->lengths, &note, sizeof note, SIZE_MAX / 2))
        return true;
    error_set(t->err, "not enough memory for a request of this size at the moment");
    t->over_budget = true;
    return false;
}

static void close_length(struct transcoder *t, const struct open_length *open)
{
    size_t length = t->out->size - open->start + (t->extra - open->extra);
    ((struct missing_length *)(void *)t->lengths->data)[open->note].length = length;
    t->extra += wire_size_varint(length);
}

/* Returns the final request: the output with the lengths inserted. */
static struct buffer *put_lengths_in(struct transcoder *t, struct budget *budget)
{
    struct buffer *result = buffer_new(t->out->size + t->extra, budget);
    if (!result) {
        error_set(t->err, "not enough memory for a request of this size at the moment");
        t->over_budget = true;
        return NULL;
    }
    const struct missing_length *notes =
        (const struct missing_length *)(const void *)t->lengths->data;
    size_t count = t->lengths->size / sizeof *notes;
    size_t done = 0;
    uint8_t *to = result->data;
    for (size_t i = 0; i < count; i++) {
        size_t run = notes[i].position - done;
        memcpy(to, t->out->data + done, run);
        to = wire_write_varint(to + run, notes[i].length);
        done = notes[i].position;
    }
    if (t->out->size > done)
        memcpy(to, t->out->data + done, t->out->size - done);
    result->size = t->out->size + t->extra;
    assert((size_t)(to - result->data) + t->out->size - done == result->size);
    return result;
}

/* ---- numbers ---- */

/* Takes the text of a number, which may be in quotes. */
static bool take_number_text(struct transcoder *t, const struct place *place, struct slice *out)
{
    bool has_escapes;
    switch (json_peek(&t->in)) {
    case JSON_NUMBER:
        return json_take_number(&t->in, out) || fail_json(t, place);
    case JSON_STRING:
        return json_take_string(&t->in, out, &has_escapes) || fail_json(t, place);
    default:
        return fail(t, place, "not a number");
    }
}

/* Parses an integer: 5, -5, 5.0; not 5.5 or 5e3. */
static bool parse_integer(struct slice text, bool *negative_out, uint64_t *magnitude_out)
{
    const uint8_t *p = text.data, *end = text.data + text.size;
    uint64_t value = 0;
    *negative_out = p < end && *p == '-';
    p += *negative_out ? 1 : 0;
    const uint8_t *digits = p;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return false;
    if (p == digits)
        return false;
    if (p + 1 < end && *p == '.')
        for (p++; p < end && *p == '0';)
            p++;
    *magnitude_out = value;
    return p == end;
}

static bool read_integer(struct transcoder *t, const struct place *place, int64_t min, uint64_t max,
                         uint64_t *out)
{
    struct slice text = {0};
    bool negative;
    uint64_t magnitude;
    if (!take_number_text(t, place, &text))
        return false;
    if (!json_is_number(text))
        return fail(t, place, "not a number");
    if (!parse_integer(text, &negative, &magnitude))
        return fail(t, place, "not an integer of at most 64 bits");
    uint64_t lowest = min < 0 ? (uint64_t) - (min + 1) + 1 : 0;
    if (magnitude > (negative ? lowest : max))
        return fail(t, place, "out of range");
    *out = negative ? 0 - magnitude : magnitude;
    return true;
}

static bool parse_double(struct slice text, double *out)
{
    char small[64];
    char *copy = small;
    assert(text.size > 0); /* json_is_number */
    if (text.size < sizeof small) {
        memcpy(small, text.data, text.size);
        small[text.size] = '\0';
    } else {
        copy = memory_strndup(text.data, text.size);
    }
    *out = strtod(copy, NULL);
    if (copy != small)
        free(copy);
    return !isinf(*out);
}

static bool read_double(struct transcoder *t, const struct place *place, double *out)
{
    struct slice text = {0};
    if (!take_number_text(t, place, &text))
        return false;
    if (slice_is(text, "NaN"))
        *out = (double)NAN;
    else if (slice_is(text, "Infinity"))
        *out = (double)INFINITY;
    else if (slice_is(text, "-Infinity"))
        *out = -(double)INFINITY;
    else if (!json_is_number(text))
        return fail(t, place, "not a number");
    else if (!parse_double(text, out))
        return fail(t, place, "out of range");
    return true;
}

static bool read_bool(struct transcoder *t, const struct place *place, uint64_t *out)
{
    enum json_kind kind = json_peek(&t->in);
    if (kind != JSON_TRUE && kind != JSON_FALSE)
        return fail(t, place, "neither true nor false");
    json_take_literal(&t->in, kind);
    *out = kind == JSON_TRUE;
    return true;
}

/* Reads an enum: a number, or, as in the Collector, a name. */
static bool read_enum(struct transcoder *t, const struct place *place, uint64_t *out)
{
    const ProtobufCEnumDescriptor *descriptor = place->field->descriptor;
    struct json_reader before = t->in;
    struct slice text = {0};
    char name[JSON_NAME_MAX];
    if (!take_number_text(t, place, &text))
        return false;
    if (json_is_number(text)) {
        t->in = before;
        return read_integer(t, place, INT32_MIN, INT32_MAX, out);
    }
    const ProtobufCEnumValue *value = NULL;
    if (text.size > 0 && text.size < sizeof name) {
        memcpy(name, text.data, text.size);
        name[text.size] = '\0';
        value = protobuf_c_enum_descriptor_get_value_by_name(descriptor, name);
    }
    if (!value)
        return fail(t, place, "neither a number nor the name of a %s", descriptor->short_name);
    *out = (uint64_t)value->value;
    return true;
}

/* Reads a scalar as its value on the wire. */
static bool read_scalar(struct transcoder *t, const struct place *place, uint64_t *out)
{
    double number = 0;
    switch (place->field->type) {
    case PROTOBUF_C_TYPE_BOOL:
        return read_bool(t, place, out);
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(t, place, out);
    case PROTOBUF_C_TYPE_INT32:
        return read_integer(t, place, INT32_MIN, INT32_MAX, out);
    case PROTOBUF_C_TYPE_SINT32:
        if (!read_integer(t, place, INT32_MIN, INT32_MAX, out))
            return false;
        *out = wire_to_zigzag32((int32_t)*out);
        return true;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return read_integer(t, place, INT64_MIN, INT64_MAX, out);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return read_integer(t, place, 0, UINT32_MAX, out);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return read_integer(t, place, 0, UINT64_MAX, out);
    case PROTOBUF_C_TYPE_DOUBLE:
        if (!read_double(t, place, &number))
            return false;
        memcpy(out, &number, sizeof number);
        return true;
    default:
        break;
    }
    assert(false && "OTLP has no fields of this type");
    return false;
}

static enum wire_type wire_type_of(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_FIXED32:
        return WIRE_FIXED32;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return WIRE_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_BYTES;
    default:
        return WIRE_VARINT;
    }
}

static bool write_number(struct transcoder *t, enum wire_type type, uint64_t value)
{
    uint8_t *to = room(t, WIRE_HEADER_MAX);
    if (!to)
        return false;
    if (type == WIRE_VARINT) {
        wrote(t, wire_write_varint(to, value));
        return true;
    }
    unsigned size = type == WIRE_FIXED64 ? 8 : 4;
    for (unsigned i = 0; i < size; i++)
        *to++ = (uint8_t)(value >> (8 * i));
    wrote(t, to);
    return true;
}

static bool write_number_field(struct transcoder *t, uint32_t number, enum wire_type type,
                               uint64_t value)
{
    return write_tag(t, number, type) && write_number(t, type, value);
}

/* ---- strings and bytes ---- */

static bool take_string(struct transcoder *t, const struct place *place, struct slice *raw,
                        bool *has_escapes)
{
    if (json_peek(&t->in) != JSON_STRING)
        return fail(t, place, "not a string");
    return json_take_string(&t->in, raw, has_escapes) || fail_json(t, place);
}

static bool is_default_size(const struct place *place, size_t size)
{
    return size == 0 && !place->in_list && !json_schema_has_presence(place->field);
}

static bool read_string(struct transcoder *t, const struct place *place)
{
    struct slice raw;
    struct open_length open;
    bool has_escapes;
    if (!take_string(t, place, &raw, &has_escapes))
        return false;
    if (is_default_size(place, raw.size))
        return true;
    if (!has_escapes)
        return write_bytes(t, place->field->id, raw);
    uint8_t *to;
    if (!open_length(t, place->field->id, &open) || !(to = room(t, raw.size)))
        return false;
    t->out->size += json_unescape(raw, to);
    close_length(t, &open);
    return true;
}

static bool read_id(struct transcoder *t, const struct place *place, size_t size)
{
    struct slice hex;
    bool has_escapes;
    uint8_t id[TRACE_ID_SIZE];
    assert(size <= sizeof id);
    if (!take_string(t, place, &hex, &has_escapes))
        return false;
    if (is_default_size(place, hex.size))
        return true;
    if (hex.size != size * 2)
        return fail(t, place, "has %zu hex digits, must have %zu", hex.size, size * 2);
    for (size_t i = 0; i < size; i++) {
        int byte = text_hex_byte(hex.data + 2 * i);
        if (byte < 0)
            return fail(t, place, "not a hex digit at position %zu",
                        text_hex_digit(hex.data[2 * i]) < 0 ? 2 * i : 2 * i + 1);
        id[i] = (uint8_t)byte;
    }
    return write_bytes(t, place->field->id, slice_of(id, size));
}

static bool read_base64(struct transcoder *t, const struct place *place)
{
    struct slice raw;
    struct open_length open;
    bool has_escapes;
    if (!take_string(t, place, &raw, &has_escapes))
        return false;
    if (is_default_size(place, raw.size))
        return true;
    uint8_t *to;
    if (!open_length(t, place->field->id, &open) || !(to = room(t, raw.size)))
        return false;
    size_t size = json_unescape(raw, to); /* some encoders write \/ */
    if (!text_decode_base64(slice_of(to, size), to, &size))
        return fail(t, place, "not base64");
    t->out->size += size;
    close_length(t, &open);
    return true;
}

/* ---- messages ---- */

static bool read_message(struct transcoder *t, const ProtobufCMessageDescriptor *descriptor,
                         const struct place *place, unsigned depth);

static bool read_submessage(struct transcoder *t, const struct place *place, unsigned depth)
{
    struct open_length open;
    if (!open_length(t, place->field->id, &open) ||
        !read_message(t, place->field->descriptor, place, depth + 1))
        return false;
    close_length(t, &open);
    return true;
}

static bool read_single(struct transcoder *t, const struct place *place, unsigned depth)
{
    uint64_t value;
    switch (place->field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return read_submessage(t, place, depth);
    case PROTOBUF_C_TYPE_STRING:
        return read_string(t, place);
    case PROTOBUF_C_TYPE_BYTES: {
        size_t id_size = json_schema_id_size(place->field);
        return id_size ? read_id(t, place, id_size) : read_base64(t, place);
    }
    default:
        if (!read_scalar(t, place, &value))
            return false;
        if (value == 0 && !json_schema_has_presence(place->field))
            return true;
        return write_number_field(t, place->field->id, wire_type_of(place->field), value);
    }
}

static bool read_packed(struct transcoder *t, struct place *place)
{
    struct open_length open;
    bool first = true;
    size_t before = t->out->size, notes = t->lengths->size;
    uint64_t value;
    if (!open_length(t, place->field->id, &open))
        return false;
    for (; json_next_element(&t->in, &first); place->index++)
        if (!read_scalar(t, place, &value) || !write_number(t, wire_type_of(place->field), value))
            return false;
    if (t->in.problem)
        return fail_json(t, place);
    if (place->index > 0) {
        close_length(t, &open);
    } else { /* an empty list is an absent field */
        t->out->size = before;
        t->lengths->size = notes;
    }
    return true;
}

static bool read_list(struct transcoder *t, struct place *place, unsigned depth)
{
    bool first = true;
    if (json_peek(&t->in) != JSON_LIST)
        return fail(t, place, "not a list");
    place->in_list = true;
    if (wire_type_of(place->field) != WIRE_BYTES)
        return read_packed(t, place);
    for (; json_next_element(&t->in, &first); place->index++)
        if (!read_single(t, place, depth))
            return false;
    return !t->in.problem || fail_json(t, place);
}

static bool same_oneof(const ProtobufCFieldDescriptor *a, const ProtobufCFieldDescriptor *b)
{
    return (a->flags & b->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
           a->quantifier_offset == b->quantifier_offset;
}

/* Notes that a field occurred. `seen` has a bit per field of the message. */
static bool note_field(struct transcoder *t, const ProtobufCMessageDescriptor *descriptor,
                       const struct place *place, uint32_t *seen)
{
    const ProtobufCFieldDescriptor *field = place->field;
    assert(field - descriptor->fields < JSON_FIELDS_MAX);
    uint32_t bit = 1u << (unsigned)(field - descriptor->fields);
    if (*seen & bit)
        return fail(t, place, "given twice");
    if (*seen && (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
        for (unsigned i = 0; i < descriptor->n_fields; i++)
            if ((*seen & 1u << i) && same_oneof(&descriptor->fields[i], field))
                return fail(t, place, "cannot be combined with the value that is already set");
    *seen |= bit;
    return true;
}

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *descriptor,
                                                  struct slice raw_key, bool has_escapes,
                                                  unsigned first)
{
    uint8_t key[JSON_NAME_MAX * 6];
    if (!has_escapes)
        return json_schema_field(descriptor, raw_key, first);
    if (raw_key.size > sizeof key)
        return NULL;
    return json_schema_field(descriptor, slice_of(key, json_unescape(raw_key, key)), first);
}

static bool read_member(struct transcoder *t, const ProtobufCMessageDescriptor *descriptor,
                        struct place *place, unsigned depth, uint32_t *seen)
{
    const ProtobufCFieldDescriptor *field = place->field;
    if (json_peek(&t->in) == JSON_NULL) { /* null means absent */
        json_take_literal(&t->in, JSON_NULL);
        return true;
    }
    if (!note_field(t, descriptor, place, seen))
        return false;
    /* The content of an Any depends on its type. OTLP has it only in details of errors, which are
     * not read. */
    if (field->type == PROTOBUF_C_TYPE_MESSAGE && json_schema_is_any(field->descriptor))
        return json_skip(&t->in, SCAN_DEPTH_MAX - depth) || fail_json(t, place);
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return read_list(t, place, depth);
    return read_single(t, place, depth);
}

static bool read_message(struct transcoder *t, const ProtobufCMessageDescriptor *descriptor,
                         const struct place *place, unsigned depth)
{
    bool first = true, has_escapes;
    uint32_t seen = 0;
    unsigned next = 0; /* most encoders write fields in order */
    struct slice key;
    enum json_kind kind = json_peek(&t->in);
    assert(descriptor->n_fields <= JSON_FIELDS_MAX);
    if (depth > SCAN_DEPTH_MAX)
        return fail(t, place, "nested more than %d messages deep", SCAN_DEPTH_MAX);
    if (kind == JSON_NULL) { /* null in a list, or as the whole request */
        json_take_literal(&t->in, kind);
        return true;
    }
    if (kind != JSON_OBJECT)
        return fail(t, place, t->in.next == t->in.end ? "unexpected end" : "not an object");
    while (json_next_member(&t->in, &first, &key, &has_escapes)) {
        struct place inside = {.parent = place,
                               .field = find_field(descriptor, key, has_escapes, next)};
        if (inside.field) {
            next = (unsigned)(inside.field - descriptor->fields) + 1;
            if (!read_member(t, descriptor, &inside, depth, &seen))
                return false;
        } else if (!json_skip(&t->in, SCAN_DEPTH_MAX - depth)) {
            return fail_json(t, place);
        }
    }
    return !t->in.problem || fail_json(t, place);
}

struct buffer *json_to_protobuf(enum json_message message, struct slice json, struct budget *budget,
                                bool *over_budget_out, struct error *err)
{
    struct transcoder t = {.in = json_reader(json), .err = err};
    struct place request = {0};
    struct buffer *result = NULL;
    t.out = buffer_new_charged(0, budget);
    t.lengths = buffer_new_charged(0, budget);
    /* Text after the value is ignored, as in the Collector. */
    if (read_message(&t, json_schema_message(message), &request, 1))
        result = put_lengths_in(&t, budget);
    buffer_unref(t.out);
    buffer_unref(t.lengths);
    assert(!result || !t.over_budget);
    *over_budget_out = t.over_budget;
    return result;
}

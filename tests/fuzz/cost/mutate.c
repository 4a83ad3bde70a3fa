#include "tests/fuzz/cost/mutate.h"

#include <assert.h>
#include <string.h>

static size_t below(struct mutation *m, size_t end)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return end > 0 ? (size_t)(m->random >> 11) % end : 0;
}

static bool one_in(struct mutation *m, size_t n)
{
    return below(m, n) == 0;
}

static struct slice part(struct slice of, size_t from, size_t to)
{
    return slice_of(of.data + from, to - from);
}

/* Returns how often a piece of this size is added: a few times, or as often as there is room. */
static size_t times(struct mutation *m, size_t size)
{
    size_t most = size > 0 ? m->room / size : 0;
    size_t n = one_in(m, 8) ? most : (size_t)1 << below(m, 13);
    n = n < most ? n : most;
    m->room -= n * size;
    return n;
}

static void put_times(struct wire_writer *out, struct slice bytes, size_t n)
{
    while (n-- > 0)
        wire_writer_raw(out, bytes);
}

static void put_varint(struct wire_writer *out, uint64_t value)
{
    uint8_t bytes[10];
    wire_writer_raw(out, slice_of(bytes, (size_t)(wire_write_varint(bytes, value) - bytes)));
}

static void put_mutated(struct mutation *m, struct slice in, struct wire_writer *out)
{
    size_t most = in.size + (m->room < 64 ? m->room : 64);
    uint8_t *copy = wire_writer_room(out, most + 1);
    if (in.size > 0)
        memcpy(copy, in.data, in.size);
    wire_writer_wrote(out, copy + m->mutate(copy, in.size, most ? most : 1));
}

/* ---- bytes ---- */

/* Returns the end of a piece that begins at `from`: a separator, or any position. */
static size_t end_of_piece(struct mutation *m, struct slice in, size_t from)
{
    static const char separators[] = "\n;,}]- ";
    size_t left = in.size - from;
    const uint8_t *end = NULL;
    if (one_in(m, 2))
        end = memchr(in.data + from, separators[below(m, sizeof separators - 1)], left);
    if (end)
        return (size_t)(end - in.data) + 1;
    size_t most = (size_t)1 << below(m, 10);
    return from + 1 + below(m, most < left ? most : left);
}

static void repeat_piece(struct mutation *m, struct slice in, struct wire_writer *out)
{
    size_t from = below(m, in.size), to = end_of_piece(m, in, from);
    wire_writer_raw(out, part(in, 0, to));
    put_times(out, part(in, from, to), times(m, to - from));
    wire_writer_raw(out, part(in, to, in.size));
}

/* Repeats a piece, and changes a byte before it that may be its count. */
static void repeat_counted_piece(struct mutation *m, struct slice in, struct wire_writer *out)
{
    size_t from = 1 + below(m, in.size - 1), to = end_of_piece(m, in, from);
    size_t back = 1 + below(m, from < 8 ? from : 8), count = from - back;
    size_t n = times(m, to - from);
    wire_writer_raw(out, part(in, 0, count));
    put_varint(out, (in.data[count] & 0x7f) + n);
    wire_writer_raw(out, part(in, count + 1, to));
    put_times(out, part(in, from, to), n);
    wire_writer_raw(out, part(in, to, in.size));
}

static void copy_piece(struct mutation *m, struct slice in, struct wire_writer *out)
{
    size_t from = below(m, in.size), to = end_of_piece(m, in, from), at = below(m, in.size);
    wire_writer_raw(out, part(in, 0, at));
    put_times(out, part(in, from, to), times(m, to - from));
    wire_writer_raw(out, part(in, at, in.size));
}

static void fill_piece(struct mutation *m, struct slice in, struct wire_writer *out)
{
    size_t from = below(m, in.size), to = end_of_piece(m, in, from);
    wire_writer_raw(out, part(in, 0, from));
    put_times(out, part(in, from, from + 1), to - from);
    wire_writer_raw(out, part(in, to, in.size));
}

static void mutate_bytes(struct mutation *m, struct slice in, struct wire_writer *out)
{
    static void (*const ways[])(struct mutation *, struct slice, struct wire_writer *) = {
        put_mutated, put_mutated, repeat_piece, repeat_counted_piece, copy_piece, fill_piece};
    if (in.size < 2)
        put_mutated(m, in, out);
    else
        ways[below(m, sizeof ways / sizeof *ways)](m, in, out);
}

/* ---- protobuf ---- */

static size_t count_fields(struct slice message)
{
    struct wire_cursor cursor = wire_cursor(message);
    struct wire_field field;
    size_t count = 0;
    while (wire_next(&cursor, &field))
        count++;
    return cursor.broken ? 0 : count;
}

static void put_varint_field(struct wire_writer *out, uint32_t number, uint64_t value)
{
    put_varint(out, (uint64_t)number << 3 | WIRE_VARINT);
    put_varint(out, value);
}

/* Returns a number that may be an index, a count or anything else. */
static uint64_t any_number(struct mutation *m)
{
    return one_in(m, 4) ? m->random : below(m, (size_t)1 << below(m, 16));
}

static void repeat_field(struct mutation *m, const struct wire_field *field,
                         struct wire_writer *out)
{
    struct slice whole = slice_of(field->start, (size_t)(field->end - field->start));
    put_times(out, whole, 1 + times(m, whole.size));
}

/* Writes a payload with all bytes equal, or with more bytes, or mutated by libFuzzer. */
static void put_payload(struct mutation *m, struct slice in, struct wire_writer *out)
{
    size_t way = below(m, 4);
    if (in.size == 0 || way == 0) {
        put_mutated(m, in, out);
    } else if (way == 1) {
        put_times(out, part(in, in.size - 1, in.size), in.size);
    } else if (way == 2) {
        wire_writer_raw(out, in);
        put_times(out, in, times(m, in.size));
    } else {
        wire_writer_raw(out, in);
        put_times(out, part(in, in.size - 1, in.size), times(m, 1));
    }
}

enum { DEPTH_MAX = 12 };

static void mutate_field(struct mutation *m, const struct wire_field *field,
                         struct wire_writer *out);

/* Mutates one field of the message or of a nested one. */
static void mutate_message(struct mutation *m, struct slice in, struct wire_writer *out)
{
    size_t count = count_fields(in), chosen = below(m, count);
    struct wire_cursor cursor = wire_cursor(in);
    struct wire_field field = {.start = in.data, .end = in.data};
    assert(count > 0);
    for (size_t i = 0; i <= chosen; i++)
        wire_next(&cursor, &field);
    wire_writer_raw(out, slice_of(in.data, (size_t)(field.start - in.data)));
    mutate_field(m, &field, out);
    wire_writer_raw(out, slice_of(field.end, (size_t)(in.data + in.size - field.end)));
}

static void mutate_field(struct mutation *m, const struct wire_field *field,
                         struct wire_writer *out)
{
    if (one_in(m, 24))
        return; /* the field is removed */
    if (one_in(m, 4)) {
        repeat_field(m, field, out);
    } else if (field->type == WIRE_BYTES) {
        size_t begun = wire_writer_begin(out, field->number);
        if (count_fields(field->bytes) > 0 && !one_in(m, 8))
            mutate_message(m, field->bytes, out);
        else
            put_payload(m, field->bytes, out);
        wire_writer_end(out, begun);
    } else if (field->type == WIRE_VARINT) {
        put_varint_field(out, field->number, any_number(m));
    } else {
        repeat_field(m, field, out);
    }
}

static void mutate_protobuf(struct mutation *m, struct slice in, struct wire_writer *out)
{
    if (count_fields(in) == 0 || one_in(m, 8))
        mutate_bytes(m, in, out);
    else
        mutate_message(m, in, out);
}

/* ---- JFR ---- */

enum { JFR_HEADER = 68, JFR_CONSTANTS_AT = 16, JFR_METADATA_AT = 24, JFR_SIZE_BYTES = 4 };

/* Returns the size of the record that begins at `at` with its size; 0 if it is not a record. */
static size_t record_size(struct slice in, size_t at, size_t *head_out)
{
    size_t size = 0, i = 0;
    for (; i < 5 && at + i < in.size; i++) {
        size |= (size_t)(in.data[at + i] & 0x7f) << (7 * i);
        if (in.data[at + i] < 0x80)
            break;
    }
    *head_out = i + 1;
    return size > i + 1 && size <= in.size - at ? size : 0;
}

/* Returns the beginning of one of the records. */
static size_t choose_record(struct mutation *m, struct slice in)
{
    size_t chosen = JFR_HEADER, seen = 0, head, size;
    for (size_t at = JFR_HEADER; at < in.size; at += size) {
        size = record_size(in, at, &head);
        if (size == 0)
            break;
        if (one_in(m, ++seen))
            chosen = at;
    }
    return chosen;
}

/* Corrects a place in the header if it is after `at`, and so has moved. */
static void move_place(uint8_t *header, size_t field, size_t at, size_t more)
{
    uint64_t place = 0;
    for (size_t i = 0; i < 8; i++)
        place = place << 8 | header[field + i];
    place += place > at ? more : 0;
    for (size_t i = 0; i < 8; i++)
        header[field + i] = (uint8_t)(place >> (56 - 8 * i));
}

static void put_record(struct mutation *m, struct slice record, size_t head,
                       struct wire_writer *out)
{
    size_t begun = out->size;
    wire_writer_raw(out, SLICE("\x80\x80\x80\x00"));
    mutate_bytes(m, part(record, head, record.size), out);
    size_t size = out->size - begun;
    for (size_t i = 0; i < JFR_SIZE_BYTES; i++)
        out->data[begun + i] = (uint8_t)(size >> (7 * i) | (i + 1 < JFR_SIZE_BYTES ? 0x80 : 0));
}

static void mutate_jfr(struct mutation *m, struct slice in, struct wire_writer *out)
{
    size_t head, at = in.size > JFR_HEADER ? choose_record(m, in) : 0;
    size_t size = at > 0 ? record_size(in, at, &head) : 0;
    if (size == 0 || one_in(m, 8)) {
        mutate_bytes(m, in, out);
        return;
    }
    struct slice record = part(in, at, at + size);
    size_t begun = out->size, before = out->size + at;
    wire_writer_raw(out, part(in, 0, at));
    if (one_in(m, 3))
        put_times(out, record, 1 + times(m, size));
    else
        put_record(m, record, head, out);
    size_t more = out->size - before - size; /* wraps if it is negative */
    wire_writer_raw(out, part(in, at + size, in.size));
    move_place(out->data + begun, JFR_CONSTANTS_AT, at, more);
    move_place(out->data + begun, JFR_METADATA_AT, at, more);
}

void mutate_request(struct mutation *mutation, enum cost_format format, struct slice request,
                    struct wire_writer *out)
{
    if (format == COST_PROTOBUF)
        mutate_protobuf(mutation, request, out);
    else if (format == COST_JFR)
        mutate_jfr(mutation, request, out);
    else
        mutate_bytes(mutation, request, out);
}

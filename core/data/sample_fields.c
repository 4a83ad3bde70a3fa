#include "core/data/sample_fields.h"

#include "core/base/arena.h"
#include "core/base/saturate.h"

#include <assert.h>

/* ---- usual samples ---- */

/* Returns the address after the varint at `at`, which is before the end; `end` at most. */
static inline const uint8_t *take_varint(const uint8_t *at, const uint8_t *end, uint64_t *out)
{
    uint64_t value = *at & 0x7f;
    if (*at++ >= 0x80 && at < end) {
        value |= (uint64_t)(*at & 0x7f) << 7;
        for (unsigned shift = 14; *at++ >= 0x80 && at < end && shift < 64; shift += 7)
            value |= (uint64_t)(*at & 0x7f) << shift;
    }
    *out = value;
    return at;
}

uint64_t sample_sum_any(struct slice values, uint64_t *count)
{
    struct wire_cursor list = wire_cursor(values);
    uint64_t number, sum = 0;
    for (const uint8_t *at = list.next; at < list.end; ++*count) {
        at = take_varint(at, list.end, &number);
        sum = saturate_sum(sum, number);
    }
    return sum;
}

bool sample_single_value_any(struct slice values, uint64_t *value_out)
{
    if (values.size == 0) /* there may be no address */
        return false;
    const uint8_t *end = values.data + values.size;
    return take_varint(values.data, end, value_out) == end;
}

/* ---- any samples ---- */

static struct slice whole_field(const struct wire_field *field)
{
    return slice_of(field->start, (size_t)(field->end - field->start));
}

static size_t packed_size(const struct wire_field *field)
{
    if (field->type == WIRE_BYTES)
        return field->bytes.size;
    return field->type == WIRE_VARINT ? wire_size_varint(field->value) : sizeof(uint64_t);
}

static uint8_t *copy_slice(uint8_t *to, struct slice bytes)
{
    if (bytes.size > 0)
        memcpy(to, bytes.data, bytes.size);
    return to + bytes.size;
}

static uint8_t *copy_packed(uint8_t *to, const struct wire_field *field)
{
    if (field->type == WIRE_BYTES)
        return copy_slice(to, field->bytes);
    if (field->type == WIRE_VARINT)
        return wire_write_varint(to, field->value);
    return copy_slice(to, slice_of(field->end - sizeof(uint64_t), sizeof(uint64_t)));
}

struct slice sample_list(struct slice sample, uint32_t number, struct arena *arena)
{
    struct wire_cursor cursor = wire_cursor(sample);
    struct wire_field field;
    struct slice only = {0};
    size_t size = 0, fields = 0;
    bool is_packed = true;
    while (wire_next(&cursor, &field)) {
        if (field.number != number)
            continue;
        fields++;
        size += packed_size(&field);
        is_packed &= field.type == WIRE_BYTES;
        only = field.type == WIRE_BYTES ? field.bytes : only;
    }
    if (size == 0 || (fields == 1 && is_packed))
        return only;
    uint8_t *list = arena_alloc(arena, size), *to = list;
    cursor = wire_cursor(sample);
    while (wire_next(&cursor, &field))
        if (field.number == number)
            to = copy_packed(to, &field);
    assert(to == list + size);
    return slice_of(list, size);
}

static bool is_other(const struct wire_field *field)
{
    return field->number == 0 || field->number > SAMPLE_TIMESTAMPS_UNIX_NANO;
}

struct slice sample_other_fields(struct slice sample, struct arena *arena)
{
    struct wire_cursor cursor = wire_cursor(sample);
    struct wire_field field;
    size_t size = 0;
    while (wire_next(&cursor, &field))
        size += is_other(&field) ? whole_field(&field).size : 0;
    if (size == 0)
        return (struct slice){0};
    uint8_t *others = arena_alloc(arena, size), *to = others;
    cursor = wire_cursor(sample);
    while (wire_next(&cursor, &field))
        if (is_other(&field))
            to = copy_slice(to, whole_field(&field));
    return slice_of(others, size);
}

struct sample_head sample_head(struct slice sample)
{
    struct wire_cursor cursor = wire_cursor(sample);
    struct wire_field field;
    struct sample_head head = {0};
    while (wire_next(&cursor, &field))
        if (field.number == SAMPLE_STACK_INDEX && field.type == WIRE_VARINT)
            head.stack = (uint32_t)field.value;
        else if (field.number == SAMPLE_LINK_INDEX && field.type == WIRE_VARINT)
            head.link = (uint32_t)field.value;
    assert(!cursor.broken); /* scanned */
    return head;
}

/* Takes a number. Returns false if it is none. */
static bool note_number(uint32_t *number, const struct wire_field *field)
{
    if (field->type != WIRE_VARINT)
        return false;
    *number = (uint32_t)field->value;
    return true;
}

/* Takes a packed list. Returns false if it is not all of its number. */
static bool note_list(struct slice *list, const struct wire_field *field)
{
    bool is_first = field->type == WIRE_BYTES && list->size == 0;
    *list = is_first ? field->bytes : *list;
    return is_first;
}

/* Reads a sample whose repeated numbers are packed in one field each, in any order. Returns false
 * for others. */
static bool read_packed(struct slice sample, struct sample_layout *out)
{
    struct wire_cursor cursor = wire_cursor(sample);
    struct wire_field field;
    bool is_usual = true;
    while (is_usual && wire_next(&cursor, &field)) {
        switch (field.number) {
        case SAMPLE_STACK_INDEX:
            is_usual = note_number(&out->stack, &field);
            break;
        case SAMPLE_LINK_INDEX:
            is_usual = note_number(&out->link, &field);
            break;
        case SAMPLE_ATTRIBUTE_INDICES:
            is_usual = note_list(&out->attributes, &field);
            break;
        case SAMPLE_VALUES:
            is_usual = note_list(&out->values, &field);
            break;
        case SAMPLE_TIMESTAMPS_UNIX_NANO:
            is_usual = note_list(&out->timestamps, &field);
            break;
        default:
            is_usual = false;
            break;
        }
    }
    return is_usual;
}

void sample_fields_read_any(struct slice sample, struct arena *arena, struct sample_fields *out)
{
    out->layout = (struct sample_layout){.stack = 0};
    if (read_packed(sample, &out->layout))
        return;
    struct sample_head head = sample_head(sample);
    out->layout = (struct sample_layout){
        .stack = head.stack,
        .link = head.link,
        .attributes = sample_list(sample, SAMPLE_ATTRIBUTE_INDICES, arena),
        .values = sample_list(sample, SAMPLE_VALUES, arena),
        .timestamps = sample_list(sample, SAMPLE_TIMESTAMPS_UNIX_NANO, arena),
    };
    out->others = sample_other_fields(sample, arena);
}

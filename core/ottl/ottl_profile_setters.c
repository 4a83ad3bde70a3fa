#include "core/ottl/ottl_profile_setters.h"

#include "core/ottl/ottl_writing.h"

#include <assert.h>
#include <inttypes.h>

static bool expect(struct ottl_evaluation *evaluation, const struct ottl_value *value,
                   enum ottl_kind kind)
{
    struct ottl_value wanted = {.kind = kind};
    return value->kind == kind ||
           error_set(ottl_evaluation_error(evaluation), "expects %s but got %s",
                     ottl_type_name(&wanted), ottl_type_name(value));
}

static struct dictionary *dictionary_of(struct ottl_evaluation *evaluation)
{
    assert(ottl_evaluation_target(evaluation)->tables);
    return ottl_evaluation_target(evaluation)->tables->dictionary;
}

OTTL_SETTER(ottl_set_duration)
{
    if (!expect(evaluation, value, OTTL_INT))
        return false;
    if (value->integer < 0)
        return error_set(ottl_evaluation_error(evaluation), "%s must be non-negative", row->name);
    ottl_put_number(*ottl_open(evaluation, row), row->number, WIRE_VARINT,
                    (uint64_t)value->integer);
    return true;
}

/* ---- value types ---- */

/* Sets one of the two texts of a ValueType, by its index. */
static void put_index(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                      uint32_t member, uint64_t index)
{
    struct message_iter *profile = ottl_open(evaluation, row);
    ottl_put_number(ottl_open_inner(*profile, row->number), member, WIRE_VARINT, index);
}

static bool put_text(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                     uint32_t member, const struct ottl_value *value)
{
    if (!expect(evaluation, value, OTTL_STRING))
        return false;
    struct slice text = ottl_valid_text(evaluation, value->bytes);
    if (!ottl_take_room(evaluation, text.size, 0))
        return false;
    put_index(evaluation, row, member,
              dictionary_add(dictionary_of(evaluation), DICTIONARY_STRING_TABLE, text));
    return true;
}

OTTL_SETTER(ottl_set_type)
{
    return put_text(evaluation, row, VALUE_TYPE_TYPE_STRINDEX, value);
}

OTTL_SETTER(ottl_set_unit)
{
    return put_text(evaluation, row, VALUE_TYPE_UNIT_STRINDEX, value);
}

/* Reads the two indices of a ValueType. */
static void read_value_type(struct message_iter profile, uint32_t number, uint64_t indices[2])
{
    struct message_field field, inner;
    indices[0] = indices[1] = 0;
    while (message_next_bytes(&profile, number, &field)) {
        struct message_iter value_type = message_iter_into(&field, profile.arena);
        while (message_next(&value_type, &inner))
            if (inner.wire.type == WIRE_VARINT && inner.wire.number == VALUE_TYPE_TYPE_STRINDEX)
                indices[0] = inner.wire.value;
            else if (inner.wire.type == WIRE_VARINT &&
                     inner.wire.number == VALUE_TYPE_UNIT_STRINDEX)
                indices[1] = inner.wire.value;
    }
}

OTTL_SETTER(ottl_set_value_type)
{
    uint64_t indices[2];
    bool is_one = value->kind == OTTL_OPAQUE &&
                  (value->number == PROFILE_SAMPLE_TYPE || value->number == PROFILE_PERIOD_TYPE);
    if (!is_one)
        return error_set(ottl_evaluation_error(evaluation), "expects a ValueType but got %s",
                         ottl_type_name(value));
    read_value_type(*value->message, value->number, indices);
    put_index(evaluation, row, VALUE_TYPE_TYPE_STRINDEX, indices[0]);
    put_index(evaluation, row, VALUE_TYPE_UNIT_STRINDEX, indices[1]);
    return true;
}

/* ---- ids ---- */

static bool put_profile_id(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                           struct slice id)
{
    static const uint8_t zeros[PROFILE_ID_SIZE];
    if (id.size == 0 || slice_equal(id, slice_of(zeros, sizeof zeros)))
        return error_set(ottl_evaluation_error(evaluation), "profile ids must not be empty");
    assert(id.size == PROFILE_ID_SIZE);
    ottl_put_bytes(*ottl_open(evaluation, row), row->number, id);
    return true;
}

OTTL_SETTER(ottl_set_profile_id)
{
    return expect(evaluation, value, OTTL_PROFILE_ID) &&
           put_profile_id(evaluation, row, value->bytes);
}

OTTL_SETTER(ottl_set_profile_id_text)
{
    uint8_t id[PROFILE_ID_SIZE];
    if (!expect(evaluation, value, OTTL_STRING))
        return false;
    int byte = value->bytes.size == 2 * sizeof id ? 0 : -1;
    for (size_t i = 0; i < sizeof id && byte >= 0; i++) {
        byte = text_hex_byte(value->bytes.data + 2 * i);
        id[i] = (uint8_t)byte;
    }
    return byte < 0 ? error_set(ottl_evaluation_error(evaluation),
                                "profile ids must be %zu hex characters", 2 * sizeof id)
                    : put_profile_id(evaluation, row, slice_of(id, sizeof id));
}

/* ---- indices ---- */

static bool check_index(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                        int table, int64_t index)
{
    uint32_t count = dictionary_count(dictionary_of(evaluation), table);
    return (index >= 0 && index < count) ||
           error_set(ottl_evaluation_error(evaluation),
                     "%s: there is no entry %" PRId64 " in a table of %u", row->name, index, count);
}

OTTL_SETTER(ottl_set_link_index)
{
    if (!expect(evaluation, value, OTTL_INT) ||
        (value->integer != 0 &&
         !check_index(evaluation, row, DICTIONARY_LINK_TABLE, value->integer)))
        return false;
    ottl_put_number(*ottl_open(evaluation, row), row->number, WIRE_VARINT,
                    (uint64_t)value->integer);
    return true;
}

/* ---- lists of numbers ---- */

/* Removes a repeated field, and writes the one in the evaluation's writer. Its items may have been
 * read from the field, so this comes last. */
static bool put_list(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                     const struct wire_writer *writer)
{
    struct message_field field;
    if (!ottl_take_room(evaluation, writer->size, 0))
        return false;
    struct message_iter *message = ottl_open(evaluation, row);
    struct message_iter at = *message;
    while (message_next(&at, &field))
        if (field.wire.number == row->number)
            message_remove(&at, &field);
    message_append(message->message, message->arena,
                   arena_copy(message->arena, wire_writer_slice(writer)));
    return true;
}

static void write_varint(struct wire_writer *writer, uint64_t number)
{
    uint8_t *to = wire_writer_room(writer, WIRE_HEADER_MAX);
    wire_writer_wrote(writer, wire_write_varint(to, number));
}

static void write_fixed64(struct wire_writer *writer, uint64_t number)
{
    uint8_t *to = wire_writer_room(writer, 8);
    for (unsigned i = 0; i < 8; i++)
        *to++ = (uint8_t)(number >> (8 * i));
    wire_writer_wrote(writer, to);
}

static bool is_number(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                      const struct ottl_value *value)
{
    bool is_time = value->kind == OTTL_TIME && row->number == SAMPLE_TIMESTAMPS_UNIX_NANO;
    return is_time || expect(evaluation, value, OTTL_INT);
}

/* Writes the numbers of a list as a packed field. */
static bool write_numbers(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                          const struct ottl_value *list,
                          void (*write)(struct wire_writer *writer, uint64_t number),
                          struct wire_writer **out)
{
    struct ottl_entry item;
    if (!expect(evaluation, list, OTTL_LIST))
        return false;
    struct ottl_cursor cursor = ottl_cursor(list);
    *out = ottl_evaluation_writer(evaluation);
    size_t begun = wire_writer_begin(*out, row->number);
    while (ottl_cursor_next(&cursor, &item)) {
        if (!is_number(evaluation, row, &item.value))
            return false;
        write(*out, (uint64_t)item.value.integer);
    }
    wire_writer_end(*out, begun);
    return true;
}

OTTL_SETTER(ottl_set_attribute_indices)
{
    struct wire_writer *writer;
    struct ottl_entry item;
    if (!write_numbers(evaluation, row, value, write_varint, &writer))
        return false;
    for (struct ottl_cursor cursor = ottl_cursor(value); ottl_cursor_next(&cursor, &item);)
        if (!check_index(evaluation, row, DICTIONARY_ATTRIBUTE_TABLE, item.value.integer))
            return false;
    return put_list(evaluation, row, writer);
}

static uint32_t count_numbers(struct ottl_evaluation *evaluation, uint32_t number)
{
    struct ottl_numbers numbers = {.message = ottl_evaluation_target(evaluation)->sample,
                                   .number = number,
                                   .is_fixed = number == SAMPLE_TIMESTAMPS_UNIX_NANO};
    uint64_t ignored;
    uint32_t count = 0;
    while (ottl_numbers_next(&numbers, &ignored))
        count++;
    return count;
}

/* A sample has values, timestamps, or as many of both. other: the number of the other field. */
static bool check_lengths(struct ottl_evaluation *evaluation, const struct ottl_value *list,
                          uint32_t other)
{
    uint32_t count = ottl_value_count(list), others = count_numbers(evaluation, other);
    return (count + others > 0 && (count == 0 || others == 0 || count == others)) ||
           error_set(ottl_evaluation_error(evaluation),
                     "a sample has as many timestamps as values, or only one of them; not %u and "
                     "%u",
                     count, others);
}

OTTL_SETTER(ottl_set_values)
{
    struct wire_writer *writer;
    return write_numbers(evaluation, row, value, write_varint, &writer) &&
           check_lengths(evaluation, value, SAMPLE_TIMESTAMPS_UNIX_NANO) &&
           put_list(evaluation, row, writer);
}

OTTL_SETTER(ottl_set_timestamps)
{
    struct wire_writer *writer;
    return write_numbers(evaluation, row, value, write_fixed64, &writer) &&
           check_lengths(evaluation, value, SAMPLE_VALUES) && put_list(evaluation, row, writer);
}

#include "core/data/equal_entries.h"

#include "core/base/arena.h"
#include "core/base/hash.h"
#include "core/data/function_fields.h"
#include "core/data/reference_rules.h"
#include "core/data/zero_entry.h"

void equal_entries_init(struct equal_entries *equals, struct dictionary *dictionary,
                        struct arena *arena)
{
    *equals = (struct equal_entries){.dictionary = dictionary, .arena = arena};
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++) {
        equals->tables[table].count = dictionary_count(dictionary, table);
        equals->tables[table].content.budget = arena->budget;
    }
}

void equal_entries_deinit(struct equal_entries *equals)
{
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        wire_out_deinit(&equals->tables[table].content);
}

/* ---- the content of an entry ---- */

/* What an entry says, in one form: with the first equal ones of the entries to which it refers. A
 * table refers only to others, so that finding one of those leaves the content as it is. */

static void put_index(struct equal_entries *equals, int table, uint64_t index, struct wire_out *out)
{
    uint8_t *to = wire_out_room(out, WIRE_HEADER_MAX);
    uint32_t first = equal_entries_first(equals, table, (uint32_t)index);
    out->size += (size_t)(wire_write_varint(to, first) - to);
}

static void put_indices(struct equal_entries *equals, int table, const struct wire_field *field,
                        struct wire_out *out)
{
    if (field->type == WIRE_VARINT) {
        put_index(equals, table, field->value, out);
        return;
    }
    assert(field->type == WIRE_BYTES); /* scanned */
    struct wire_cursor packed = wire_cursor(field->bytes);
    for (uint64_t index; wire_packed_varint(&packed, &index);)
        put_index(equals, table, index, out);
}

/* Writes a list of indices packed, also if it is in several fields that follow each other. */
static void put_list(struct equal_entries *equals, int table, const struct wire_field *field,
                     struct wire_cursor *cursor, struct wire_out *out)
{
    struct wire_field next = *field;
    struct wire_out_field list = wire_out_open(out, field->number, field->bytes.size);
    struct wire_cursor ahead = *cursor;
    do {
        *cursor = ahead;
        put_indices(equals, table, &next, out);
    } while (wire_next(&ahead, &next) && next.number == field->number);
    if (out->size > list.payload)
        wire_out_close(out, list, field->number);
    else
        out->size = list.start;
}

/* Leaves a 0 out, unless it takes the place of another value. */
static void put_number(struct wire_out *out, const struct wire_field *field, uint64_t value,
                       uint32_t *seen)
{
    uint32_t bit = field->number < REFERENCE_RULES ? 1u << field->number : 0;
    if (value != 0 || bit == 0 || *seen & bit)
        wire_out_varint(out, field->number, value);
    *seen |= bit;
}

static void put_message(struct equal_entries *equals, const struct reference_rule *rules,
                        struct slice message, struct wire_out *out);

/* Writes a field that refers to others. The scan has checked its wire type. */
static void put_reference(struct equal_entries *equals, const struct reference_rule *rule,
                          const struct wire_field *field, struct wire_cursor *cursor,
                          uint32_t *seen, struct wire_out *out)
{
    if (rule->table == 0) {
        assert(field->type == WIRE_BYTES);
        struct wire_out_field opened = wire_out_open(out, field->number, field->bytes.size);
        put_message(equals, rule->rules, field->bytes, out);
        wire_out_close(out, opened, field->number);
    } else if (reference_is_repeated(rule->table)) {
        put_list(equals, rule->table, field, cursor, out);
    } else {
        assert(field->type == WIRE_VARINT);
        uint32_t index = (uint32_t)field->value;
        put_number(out, field, equal_entries_first(equals, rule->table, index), seen);
    }
}

static void put_message(struct equal_entries *equals, const struct reference_rule *rules,
                        struct slice message, struct wire_out *out)
{
    struct wire_cursor cursor = wire_cursor(message);
    struct wire_field field;
    uint32_t seen = 0; /* numbers, as bits */
    while (wire_next(&cursor, &field))
        if (field.number < REFERENCE_RULES && rules[field.number].tables != 0)
            put_reference(equals, &rules[field.number], &field, &cursor, &seen, out);
        else if (field.type == WIRE_VARINT)
            put_number(out, &field, field.value, &seen);
        else
            wire_out_put(out, slice_of(field.start, (size_t)(field.end - field.start)));
    assert(!cursor.broken); /* scanned */
}

/* ---- usual entries ---- */

/* Of a usual entry the content is as it was received, if what it refers to is the first of its
 * kind. Each function returns false if the entry is unusual or refers to something else. */

static inline bool is_first(struct equal_entries *equals, int table, uint32_t index)
{
    return equal_entries_first(equals, table, index) == index;
}

static bool is_usual_stack(const struct equal_entries *equals, struct slice stack)
{
    struct wire_cursor cursor = wire_cursor(stack);
    struct wire_field list;
    return equals->tables[DICTIONARY_LOCATION_TABLE].is_unique && wire_next(&cursor, &list) &&
           list.number == STACK_LOCATION_INDICES && list.type == WIRE_BYTES &&
           list.bytes.size > 0 && cursor.next == cursor.end;
}

static bool is_usual_line(struct equal_entries *equals, const uint8_t *at, const uint8_t *end)
{
    uint32_t function = 0;
    at = usual_index(at, end, LINE_FUNCTION_INDEX, &function);
    at = usual_number(at, end, LINE_LINE);
    at = usual_number(at, end, LINE_COLUMN);
    return at == end && is_first(equals, DICTIONARY_FUNCTION_TABLE, function);
}

static bool is_usual_location(struct equal_entries *equals, struct slice location)
{
    const uint8_t *at = location.data, *end = at + location.size, *after;
    uint32_t mapping = 0;
    struct slice line;
    at = usual_index(at, end, LOCATION_MAPPING_INDEX, &mapping);
    at = usual_number(at, end, LOCATION_ADDRESS);
    for (; (after = usual_bytes(at, end, LOCATION_LINES, &line)) != at; at = after)
        if (!is_usual_line(equals, line.data, after))
            return false;
    return at == end && is_first(equals, DICTIONARY_MAPPING_TABLE, mapping);
}

static bool is_usual_function(struct equal_entries *equals, struct slice function)
{
    struct function_names names = {0};
    return function_names_read_usual(function, &names) &&
           is_first(equals, DICTIONARY_STRING_TABLE, names.name) &&
           is_first(equals, DICTIONARY_STRING_TABLE, names.system_name) &&
           is_first(equals, DICTIONARY_STRING_TABLE, names.file);
}

/* Without a byte that is 0, it has no field that might as well be left out. */
static bool has_no_zero(struct slice payload)
{
    return payload.size > 0 && !memchr(payload.data, 0, payload.size);
}

static bool is_usual(struct equal_entries *equals, int table, struct slice payload)
{
    switch (table) {
    case DICTIONARY_STACK_TABLE:
        return is_usual_stack(equals, payload);
    case DICTIONARY_LOCATION_TABLE:
        return has_no_zero(payload) && is_usual_location(equals, payload);
    case DICTIONARY_FUNCTION_TABLE:
        return has_no_zero(payload) && is_usual_function(equals, payload);
    default:
        return entry_tables[table] == 0; /* it refers to nothing */
    }
}

/* ---- finding ---- */

/* Returns the content of an entry; if it is not as received, it is overwritten by that of the next
 * entry of the table. */
static struct slice content_of(struct equal_entries *equals, int table, struct slice payload)
{
    struct wire_out *out = &equals->tables[table].content;
    if (is_usual(equals, table, payload))
        return payload;
    out->size = 0;
    put_message(equals, entry_references[table], payload, out);
    struct slice content = slice_of(out->data, out->size);
    return slice_equal(content, payload) ? payload : content;
}

/* Returns the content of an entry that is the first. */
static struct slice known_content(struct equal_entries *equals, int number, uint32_t index)
{
    const struct equal_table *table = &equals->tables[number];
    if (table->contents && table->contents[index].size > 0)
        return table->contents[index];
    return dictionary_entry(equals->dictionary, number, index);
}

static void remember_content(struct equal_entries *equals, struct equal_table *table,
                             uint32_t index, struct slice content)
{
    assert(content.size > 0); /* else it is the zero value */
    if (!table->contents)
        table->contents = arena_array(equals->arena, table->count, sizeof *table->contents);
    table->contents[index] = arena_copy(equals->arena, content);
}

static uint32_t first_like(struct equal_entries *equals, int number, uint32_t index)
{
    struct equal_table *table = &equals->tables[number];
    struct slice payload = dictionary_entry(equals->dictionary, number, index);
    struct slice content = content_of(equals, number, payload);
    if (index_table_is_full(&table->by_content))
        index_table_reserve(&table->by_content, 1, equals->arena);
    struct index_probe probe = index_table_probe(&table->by_content, (uint32_t)hash_bytes(content));
    for (uint32_t i; index_table_next(&table->by_content, &probe, &i);)
        if (slice_equal(known_content(equals, number, i), content))
            return i;
    if (zero_entry_may_be(number, content) && zero_entry_is(number, content))
        return 0;
    index_table_add(&table->by_content, &probe, index);
    if (content.data != payload.data)
        remember_content(equals, table, index, content);
    return index;
}

static void open_table(struct equal_entries *equals, int number)
{
    struct equal_table *table = &equals->tables[number];
    if (!table->first)
        table->first = arena_array(equals->arena, table->count, sizeof *table->first);
}

/* Reads all locations, before the first stack is compared. Most entries below them are asked for
 * then. */
static void read_locations(struct equal_entries *equals)
{
    static const int below[] = {DICTIONARY_LOCATION_TABLE, DICTIONARY_FUNCTION_TABLE,
                                DICTIONARY_STRING_TABLE};
    struct equal_table *locations = &equals->tables[DICTIONARY_LOCATION_TABLE];
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        struct equal_table *table = &equals->tables[below[i]];
        open_table(equals, below[i]);
        index_table_reserve(&table->by_content, table->count - table->by_content.count,
                            equals->arena);
    }
    locations->is_unique = true;
    for (uint32_t i = 1; i < locations->count; i++)
        locations->is_unique &= is_first(equals, DICTIONARY_LOCATION_TABLE, i);
}

uint32_t equal_entries_find(struct equal_entries *equals, int number, uint32_t index)
{
    struct equal_table *table = &equals->tables[number];
    assert(index > 0 && index < table->count);
    if (!table->first) {
        open_table(equals, number);
        if (number == DICTIONARY_STACK_TABLE)
            read_locations(equals);
    }
    uint32_t first = first_like(equals, number, index);
    assert(first < table->count);
    table->first[index] = 1 + first;
    return first;
}

#include "processors/redaction/dictionary_tables.h"

#include "core/base/arena.h"

#include <assert.h>

static void find_ranges(struct dictionary_tables *tables)
{
    struct wire_cursor cursor = wire_cursor(tables->bytes);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (field.type != WIRE_BYTES || field.number >= DICTIONARY_TABLE_COUNT)
            continue;
        struct table_range *range = &tables->ranges[field.number];
        if (range->count++ == 0)
            range->start = field.start;
        range->count += wire_skip_run(&cursor, &field);
        range->end = cursor.next;
    }
    assert(!cursor.broken); /* scanned */
}

static void read_strings(struct dictionary_tables *tables, struct arena *arena)
{
    struct wire_cursor cursor = dictionary_tables_entries(tables, DICTIONARY_STRING_TABLE);
    uint32_t count = tables->ranges[DICTIONARY_STRING_TABLE].count, i = 0;
    tables->strings = arena_alloc(arena, count * sizeof *tables->strings);
    tables->string_count = count;
    while (i < count &&
           dictionary_next_entry(&cursor, DICTIONARY_STRING_TABLE, &tables->strings[i]))
        i++;
    assert(i == count);
    tables->ranges[DICTIONARY_STRING_TABLE].end = cursor.next;
}

void dictionary_tables_read(struct dictionary_tables *tables, struct slice dictionary,
                            struct arena *arena)
{
    *tables = (struct dictionary_tables){.bytes = dictionary};
    find_ranges(tables);
    read_strings(tables, arena);
}

void dictionary_tables_read_received(struct dictionary_tables *tables, struct slice dictionary,
                                     const struct dictionary_layout *layout, const uint8_t *request,
                                     struct arena *arena)
{
    assert(layout->are_known);
    *tables = (struct dictionary_tables){.bytes = dictionary};
    for (int number = 1; number < DICTIONARY_TABLE_COUNT; number++)
        if (layout->counts[number] > 0)
            tables->ranges[number] = (struct table_range){.start = request + layout->starts[number],
                                                          .end = dictionary.data + dictionary.size,
                                                          .count = layout->counts[number]};
    read_strings(tables, arena);
}

struct slice dictionary_tables_string(const struct dictionary_tables *tables, uint64_t index)
{
    assert(index < tables->string_count || index == 0); /* scanned */
    return index < tables->string_count ? tables->strings[index] : (struct slice){0};
}

struct slice dictionary_tables_string_field(const struct dictionary_tables *tables, uint32_t index)
{
    struct wire_cursor cursor = dictionary_tables_entries(tables, DICTIONARY_STRING_TABLE);
    struct wire_field field;
    assert(index < tables->string_count);
    if (index > 0)
        cursor.next = tables->strings[index - 1].data + tables->strings[index - 1].size;
    bool exists = wire_next_bytes(&cursor, DICTIONARY_STRING_TABLE, &field);
    assert(exists && field.bytes.data == tables->strings[index].data);
    return slice_of(field.start, (size_t)(field.end - field.start));
}

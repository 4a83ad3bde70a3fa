#include "processors/redaction/dictionary_tables.h"

#include "core/base/arena.h"

#include <assert.h>

/* Reads a field with this tag of one byte and a length of one or two bytes, as most entries have.
 * Returns false at any other one. */
static inline bool next_short_entry(const uint8_t **at, const uint8_t *end, uint8_t tag,
                                    struct slice *payload_out)
{
    const uint8_t *from = *at;
    if (end - from <= 2 || *from != tag)
        return false;
    size_t size = from[1];
    from += 2;
    if (size >= 0x80) {
        if (*from >= 0x80)
            return false;
        size = (size & 0x7f) | (size_t)*from++ << 7;
    }
    if (size > (size_t)(end - from))
        return false;
    *payload_out = slice_of(from, size);
    *at = from + size;
    return true;
}

static void find_ranges(struct dictionary_tables *tables)
{
    struct wire_cursor cursor = wire_cursor(tables->bytes);
    struct wire_field field;
    struct slice payload;
    while (wire_next(&cursor, &field)) {
        if (field.type != WIRE_BYTES || field.number >= DICTIONARY_TABLE_COUNT)
            continue;
        struct table_range *range = &tables->ranges[field.number];
        uint32_t count = range->count + 1;
        if (range->count == 0)
            range->start = field.start;
        while (next_short_entry(&cursor.next, cursor.end, *field.start, &payload))
            count++;
        range->count = count;
        range->end = cursor.next;
    }
    assert(!cursor.broken); /* scanned */
}

static void read_strings(struct dictionary_tables *tables, struct arena *arena)
{
    const uint8_t tag = DICTIONARY_STRING_TABLE << 3 | WIRE_BYTES;
    struct wire_cursor cursor = dictionary_tables_entries(tables, DICTIONARY_STRING_TABLE);
    struct wire_field field;
    uint32_t count = tables->ranges[DICTIONARY_STRING_TABLE].count;
    tables->strings = arena_alloc(arena, count * sizeof *tables->strings);
    tables->string_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct dictionary_string *string = &tables->strings[i];
        string->start = cursor.next;
        if (next_short_entry(&cursor.next, cursor.end, tag, &string->text))
            continue;
        bool exists = wire_next_bytes(&cursor, DICTIONARY_STRING_TABLE, &field);
        assert(exists);
        *string = (struct dictionary_string){field.bytes, field.start};
    }
}

void dictionary_tables_read(struct dictionary_tables *tables, struct slice dictionary,
                            struct arena *arena)
{
    *tables = (struct dictionary_tables){.bytes = dictionary};
    find_ranges(tables);
    read_strings(tables, arena);
}

struct slice dictionary_tables_string(const struct dictionary_tables *tables, uint64_t index)
{
    assert(index < tables->string_count || index == 0); /* scanned */
    return index < tables->string_count ? tables->strings[index].text : (struct slice){0};
}

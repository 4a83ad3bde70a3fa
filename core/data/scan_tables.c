#include "core/data/scan_tables.h"

#include "core/data/wire.h"
#include "core/data/zero_entry.h"

/* Counts the entries of a dictionary. Returns false if it is not protobuf. */
static bool count_dictionary(struct slice dictionary, struct scan_tables *tables)
{
    struct wire_cursor cursor = wire_cursor(dictionary);
    struct wire_field field;

    while (wire_next(&cursor, &field)) {
        if (field.type != WIRE_BYTES || field.number >= DICTIONARY_TABLE_COUNT)
            continue;
        if (tables->sizes[field.number]++ == 0 && !zero_entry_is((int)field.number, field.bytes))
            tables->nonzero_starts |= 1u << field.number;
    }
    return !cursor.broken;
}

void scan_tables_count(struct slice request, struct scan_tables *tables)
{
    struct wire_cursor cursor = wire_cursor(request);
    struct wire_field field;
    bool is_whole = true;

    *tables = (struct scan_tables){0};
    while (is_whole && wire_next_bytes(&cursor, PROFILES_DICTIONARY, &field)) {
        tables->dictionaries++;
        is_whole = count_dictionary(field.bytes, tables);
    }
    if (!is_whole || cursor.broken)
        for (unsigned table = 1; table < DICTIONARY_TABLE_COUNT; table++)
            tables->sizes[table] = UINT32_MAX;
}

#include "core/data/scan_tables.h"

#include "core/data/scan.h"
#include "core/data/wire.h"

/* A list that holds something is not the zero value, whatever it holds. */
static bool is_list(unsigned table, uint32_t number)
{
    switch (table) {
    case DICTIONARY_MAPPING_TABLE:
        return number == MAPPING_ATTRIBUTE_INDICES;
    case DICTIONARY_LOCATION_TABLE:
        return number == LOCATION_LINES || number == LOCATION_ATTRIBUTE_INDICES;
    case DICTIONARY_STACK_TABLE:
        return number == STACK_LOCATION_INDICES;
    default:
        return false;
    }
}

static bool is_zero_field(unsigned table, const struct wire_field *field)
{
    if (field->type != WIRE_BYTES)
        return field->value == 0 && !is_list(table, field->number);
    if (table == DICTIONARY_LINK_TABLE) { /* the proto prefers zero bytes to empty ids */
        for (size_t i = 0; i < field->bytes.size; i++)
            if (field->bytes.data[i] != 0)
                return false;
        return true;
    }
    return field->bytes.size == 0 &&
           !(table == DICTIONARY_LOCATION_TABLE && field->number == LOCATION_LINES);
}

bool scan_is_zero_entry(int table, struct slice entry)
{
    enum { KNOWN_NUMBERS = 5 }; /* no entry has a field beyond */
    struct wire_cursor cursor = wire_cursor(entry);
    struct wire_field field;
    uint32_t nonzero = 0; /* bit per field number; 0 for unknown fields */

    if (table == DICTIONARY_STRING_TABLE)
        return entry.size == 0;
    while (wire_next(&cursor, &field)) {
        uint32_t bit = field.number <= KNOWN_NUMBERS ? 1u << field.number : 1;

        if (!is_zero_field((unsigned)table, &field))
            nonzero |= bit;
        else if (bit != 1 && !is_list((unsigned)table, field.number))
            nonzero &= ~bit; /* given again: the last one counts */
    }
    return nonzero == 0;
}

/* False when it is no protobuf. */
static bool count_dictionary(struct slice dictionary, struct scan_tables *tables)
{
    struct wire_cursor cursor = wire_cursor(dictionary);
    struct wire_field field;

    while (wire_next(&cursor, &field)) {
        if (field.type != WIRE_BYTES || field.number >= DICTIONARY_TABLE_COUNT)
            continue;
        if (tables->sizes[field.number]++ == 0 &&
            !scan_is_zero_entry((int)field.number, field.bytes))
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

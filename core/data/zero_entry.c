#include "core/data/zero_entry.h"

#include <assert.h>

/* Whether the field is a list: a list that is not empty is not the zero value, whatever it
 * contains. */
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

bool zero_entry_is(int table, struct slice entry)
{
    enum { KNOWN_NUMBERS = 5 }; /* no entry has a higher field number */
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
            nonzero &= ~bit; /* repeated: the last occurrence counts */
    }
    return nonzero == 0;
}

#define EMPTY(table) [table] = {(table) << 3 | WIRE_BYTES, 0}

struct slice zero_entry_payload(int table)
{
    static const uint8_t empty[DICTIONARY_TABLE_COUNT][ZERO_ENTRY_HEADER] = {
        EMPTY(DICTIONARY_MAPPING_TABLE),   EMPTY(DICTIONARY_LOCATION_TABLE),
        EMPTY(DICTIONARY_FUNCTION_TABLE),  EMPTY(DICTIONARY_STRING_TABLE),
        EMPTY(DICTIONARY_ATTRIBUTE_TABLE), EMPTY(DICTIONARY_STACK_TABLE),
    };
    /* The proto prefers a link of zero bytes to one of empty ids. */
    static const uint8_t link[ZERO_ENTRY_HEADER + 2 + TRACE_ID_SIZE + 2 + SPAN_ID_SIZE] = {
        [0] = DICTIONARY_LINK_TABLE << 3 | WIRE_BYTES,
        [1] = sizeof link - ZERO_ENTRY_HEADER,
        [ZERO_ENTRY_HEADER] = LINK_TRACE_ID << 3 | WIRE_BYTES,
        [ZERO_ENTRY_HEADER + 1] = TRACE_ID_SIZE,
        [ZERO_ENTRY_HEADER + 2 + TRACE_ID_SIZE] = LINK_SPAN_ID << 3 | WIRE_BYTES,
        [ZERO_ENTRY_HEADER + 3 + TRACE_ID_SIZE] = SPAN_ID_SIZE,
    };
    assert(table > 0 && table < DICTIONARY_TABLE_COUNT);
    if (table == DICTIONARY_LINK_TABLE)
        return slice_of(link + ZERO_ENTRY_HEADER, sizeof link - ZERO_ENTRY_HEADER);
    return slice_of(empty[table] + ZERO_ENTRY_HEADER, 0);
}

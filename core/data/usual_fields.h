/*
 * usual_fields: reads short messages that have each field once at most, in the order of the
 * numbers, as nearly all samples and entries of dictionaries have.
 *
 * Each function takes one field, and returns the address after it. If the next field is another
 * one, or longer than most, it returns the address that it was given. So whoever has taken all
 * fields that there may be is at the end of the message; if not, the message is unusual, and is
 * read in another way.
 *
 *     at = usual_index(at, end, LINE_FUNCTION_INDEX, &function);
 *     at = usual_number(at, end, LINE_LINE);
 *     at = usual_number(at, end, LINE_COLUMN);
 *     return at == end;
 *
 * Owner: plain data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_USUAL_FIELDS_H
#define PROFCOL_CORE_DATA_USUAL_FIELDS_H

#include "core/data/wire.h"

/* An index of up to three bytes. */
static inline const uint8_t *usual_index(const uint8_t *at, const uint8_t *end, uint32_t number,
                                         uint32_t *out)
{
    ptrdiff_t room = end - at;
    if (room < 2 || at[0] != (number << 3 | WIRE_VARINT))
        return at;
    if (at[1] < 0x80) {
        *out = at[1];
        return at + 2;
    }
    if (room >= 3 && at[2] < 0x80) {
        *out = (at[1] & 0x7fu) | (uint32_t)at[2] << 7;
        return at + 3;
    }
    if (room < 4 || at[3] >= 0x80)
        return at;
    *out = (at[1] & 0x7fu) | (at[2] & 0x7fu) << 7 | (uint32_t)at[3] << 14;
    return at + 4;
}

/* A number that is not needed. */
static inline const uint8_t *usual_number(const uint8_t *at, const uint8_t *end, uint32_t number)
{
    ptrdiff_t room = end - at;
    if (room < 2 || at[0] != (number << 3 | WIRE_VARINT))
        return at;
    if (at[1] < 0x80)
        return at + 2;
    if (room < 9) /* most numbers at the end of a message have two bytes */
        return room >= 3 && at[2] < 0x80 ? at + 3 : at;
    uint64_t ends = ~wire_load_fixed64(at + 1) & UINT64_C(0x8080808080808080);
    return ends != 0 ? at + 2 + __builtin_ctzll(ends) / 8 : at;
}

/* A list or message of up to 127 bytes. */
static inline const uint8_t *usual_bytes(const uint8_t *at, const uint8_t *end, uint32_t number,
                                         struct slice *out)
{
    ptrdiff_t room = end - at;
    if (room < 2 || at[0] != (number << 3 | WIRE_BYTES) || at[1] >= 0x80 || at[1] > room - 2)
        return at;
    *out = (struct slice){at + 2, at[1]};
    return at + 2 + at[1];
}

#endif

/*
 * zero_entry: the entry at index 0 of a table of the profiles dictionary, which means "not set"
 * (profiles.proto, ProfilesDictionary).
 *
 * Owner: plain data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_ZERO_ENTRY_H
#define PROFCOL_CORE_DATA_ZERO_ENTRY_H

#include "core/data/otlp.h"
#include "core/data/wire.h"

/* Whether an entry of a table (DICTIONARY_) has only default values, explicit or absent. A link
 * whose ids are all zero is one, too. */
bool zero_entry_is(int table, struct slice entry);

/* Returns false only if the entry is certainly not the zero value. This is a fast check that
 * suffices for most entries. (It takes an entry whose field is first nonzero and then zero for
 * another value; that is correct and costs only an index.) */
static inline bool zero_entry_may_be(int table, struct slice entry)
{
    if (entry.size < 2 || table == DICTIONARY_LINK_TABLE || entry.data[0] >= 0x80)
        return true;
    uint8_t type = entry.data[0] & 7;
    return (type != WIRE_VARINT && type != WIRE_BYTES) || (entry.data[1] & 0x7f) == 0;
}

/* A zero entry is written as a field of ProfilesDictionary: a header of ZERO_ENTRY_HEADER bytes,
 * then the payload that zero_entry_payload returns. */
enum { ZERO_ENTRY_HEADER = 2 };
struct slice zero_entry_payload(int table);

#endif

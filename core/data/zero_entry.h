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

#include "core/base/slice.h"

#include <stdbool.h>

/* Whether an entry of a table (DICTIONARY_) has only default values, explicit or absent. A link
 * whose ids are all zero is one, too. */
bool zero_entry_is(int table, struct slice entry);

/* A zero entry is written as a field of ProfilesDictionary: a header of ZERO_ENTRY_HEADER bytes,
 * then the payload that zero_entry_payload returns. */
enum { ZERO_ENTRY_HEADER = 2 };
struct slice zero_entry_payload(int table);

#endif

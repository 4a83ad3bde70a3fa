/*
 * zero_entry: the entry at index 0 of a table of the profiles dictionary, which stands for "not
 * set" (profiles.proto, ProfilesDictionary).
 *
 * Owner: plain data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_ZERO_ENTRY_H
#define PROFCOL_CORE_DATA_ZERO_ENTRY_H

#include "core/base/slice.h"

#include <stdbool.h>

/* Whether an entry of a table (DICTIONARY_) has only defaults, written out or not. A link of zero
 * bytes is one too. */
bool zero_entry_is(int table, struct slice entry);

/* How it is written: as a field of ProfilesDictionary with a header of ZERO_ENTRY_HEADER bytes, in
 * front of what zero_entry_payload returns. */
enum { ZERO_ENTRY_HEADER = 2 };
struct slice zero_entry_payload(int table);

#endif

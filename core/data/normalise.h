/*
 * normalise: brings an odd but legal profiles request into the one form that the rest of profcol reads.
 *
 * Lifts samples of the v1.9 layout, inlines reference attributes (key_strindex, string_value_strindex), merges repeated dictionary
 * fields, puts the zero value in front of tables that lack it (and shifts indices). Only requests that need it are rewritten; unknown fields survive.
 * Owner: the caller gets a new buffer. Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_NORMALISE_H
#define PROFCOL_CORE_DATA_NORMALISE_H

#include "core/base/buffer.h"
#include "core/data/scan.h"

bool normalise_needed(const struct scan_result *scan);
/* request was scanned with this result. NULL when the budget says no. The result needs no normalising and passes scan_profiles. */
struct buffer *normalise_profiles(struct slice request, const struct scan_result *scan, struct budget *budget);

#endif

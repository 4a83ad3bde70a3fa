/*
 * normalise: brings an odd but legal profiles request into the one form that the rest of profcol
 * reads.
 *
 * Lifts samples of the v1.9 layout, puts the text in the place of reference attributes
 * (key_strindex, string_value_strindex; also those inside lists and in the attribute_table),
 * merges repeated dictionary fields into the first, and starts every table with its zero value.
 * Unknown fields survive.
 *
 * A table that does not start with its zero value gets one in front, and what points into it moves
 * by one. There, index 0 of its sender is its first entry wherever an index must be one:
 * stack_index, location_indices, attribute_indices, function_index, the key of an attribute, the
 * type of a sample_type, the name of a function; and "not set" elsewhere (link_index,
 * mapping_index, unit, filename, system_name), since left out and 0 look the same. An entry or a
 * sample_type of which nothing is set stays so.
 *
 * Owner: the caller gets a new buffer.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_NORMALISE_H
#define PROFCOL_CORE_DATA_NORMALISE_H

#include "core/base/buffer.h"
#include "core/data/scan.h"

/* Texts that are put in the place of references may make a request larger, up to this:
 * four times its size, and NORMALISE_SPARE_BYTES. */
#define NORMALISE_GROWTH 4
#define NORMALISE_SPARE_BYTES ((size_t)1 << 20)

/* Whether the request has to be normalised. */
bool normalise_needed(const struct scan_result *scan);
/* request was scanned with this result. NULL when the budget says no, or the result would be too
 * large, which is_too_large_out says. The result needs no normalising and passes scan_profiles
 * (with a few elements more: the zero entries). */
struct buffer *normalise_profiles(struct slice request, const struct scan_result *scan,
                                  struct budget *budget, bool *is_too_large_out);

#endif

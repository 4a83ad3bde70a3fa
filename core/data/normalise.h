/*
 * normalise: rewrites an unusual but legal profiles request into the one form that the rest of
 * profcol reads.
 *
 * It converts samples of the v1.9 layout, replaces references in attributes with their text
 * (key_strindex, string_value_strindex; also inside lists and in the attribute_table), merges
 * repeated dictionary fields into the first, and starts every table with its zero value. Unknown
 * fields are kept.
 *
 * A table that does not start with its zero value gets one in front, and indices into it grow by
 * one. For such a table, a sender's index 0 means its first entry where the field must refer to
 * one: stack_index, location_indices, attribute_indices, function_index, the key of an attribute,
 * the type of a sample_type, the name of a function. Elsewhere (link_index, mapping_index, unit,
 * filename, system_name) it means "not set", because 0 and an absent field look the same. An entry
 * or sample_type with no field set stays empty.
 *
 * Owner: the result is a new buffer, which belongs to the caller.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_NORMALISE_H
#define PROFCOL_CORE_DATA_NORMALISE_H

#include "core/base/buffer.h"
#include "core/data/scan.h"

/* Texts that replace references may make a request larger, up to NORMALISE_GROWTH times its size
 * plus NORMALISE_SPARE_BYTES. */
#define NORMALISE_GROWTH 4
#define NORMALISE_SPARE_BYTES ((size_t)1 << 20)

/* Whether the request has to be normalised. */
bool normalise_needed(const struct scan_result *scan);
/* Returns the normalised request. `scan` is the result of its scan. Returns NULL if the budget has
 * no room, or if the result would be too large; *is_too_large_out tells which. The new request
 * needs no normalising and passes scan_profiles (with a few more elements: the zero entries). */
struct buffer *normalise_profiles(struct slice request, const struct scan_result *scan,
                                  struct budget *budget, bool *is_too_large_out);

#endif

/*
 * ottl_profile_setters: the writers of the fields of profiles and samples, one for each kind of
 * field.
 *
 * What is written keeps the invariants of OTLP: indices are in their tables, and a sample has as
 * many timestamps as values unless it has none of one of them.
 *
 * Owner: what is written is copied to the batch's arena, texts to its dictionary.
 *
 * Thread: that of the evaluator, while it executes a statement.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_PROFILE_SETTERS_H
#define PROFCOL_CORE_OTTL_OTTL_PROFILE_SETTERS_H

#include "core/ottl/ottl_setters.h"

/* Each returns false with the error set if the value has another type, or is not valid. */
OTTL_SETTER(ottl_set_duration); /* nanoseconds, not negative */
OTTL_SETTER(ottl_set_type);     /* a text of a ValueType */
OTTL_SETTER(ottl_set_unit);
OTTL_SETTER(ottl_set_value_type); /* another ValueType of the profile */
OTTL_SETTER(ottl_set_profile_id); /* not of zeros */
OTTL_SETTER(ottl_set_profile_id_text);
OTTL_SETTER(ottl_set_attribute_indices);
OTTL_SETTER(ottl_set_link_index);
OTTL_SETTER(ottl_set_values);     /* a list of integers */
OTTL_SETTER(ottl_set_timestamps); /* a list of integers, or of times */

#endif

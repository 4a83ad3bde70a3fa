/*
 * ottl_encode: writes an OTTL value as the AnyValue of OTLP.
 *
 * Owner: bytes are copied into the writer.
 *
 * Thread: any, for values of one thread.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_ENCODE_H
#define PROFCOL_CORE_OTTL_OTTL_ENCODE_H

#include "core/data/wire_writer.h"
#include "core/ottl/ottl_value.h"

/* Appends the payload of an AnyValue, nothing for nil. What is no UTF-8 in a text becomes U+FFFD.
 * Stops after `limit` bytes. Returns false with err set for a value that has no place there (a
 * time, an id), or that is too large, or has a key that is no UTF-8. */
bool ottl_encode(const struct ottl_value *value, size_t limit, struct wire_writer *out,
                 struct error *err);
/* Whether the data has such values: not a time, a duration, an id. */
bool ottl_is_data(const struct ottl_value *value);
/* Whether a key of a map can be sent: as it is, because two keys must not become the same. Returns
 * false with err set if it is no UTF-8. */
bool ottl_check_key(struct slice key, struct error *err);
/* The error of a statement that would write more than the batch may gain. Returns false. */
bool ottl_refuse_growth(struct error *err);
/* Sets the error of a value that is nested too deep, and returns false. */
bool ottl_refuse_depth(struct error *err);

#endif

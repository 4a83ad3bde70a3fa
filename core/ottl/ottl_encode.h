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

/* Appends the payload of an AnyValue, nothing for nil. Stops after `limit` bytes. Returns false
 * with err set for a value that has no place there (a time, an id), or that is too large. */
bool ottl_encode(const struct ottl_value *value, size_t limit, struct wire_writer *out,
                 struct error *err);
/* Whether the data has such values: not a time, a duration, an id. */
bool ottl_is_data(const struct ottl_value *value);
/* The error of a statement that would write more than the batch may gain. Returns false. */
bool ottl_refuse_growth(struct error *err);
/* Sets the error of a value that is nested too deep, and returns false. */
bool ottl_refuse_depth(struct error *err);

#endif

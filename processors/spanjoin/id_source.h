/*
 * id_source: reads the id of a span or trace from the value of an attribute.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_SPANJOIN_ID_SOURCE_H
#define PROFCOL_SPANJOIN_ID_SOURCE_H

#include "processors/spanjoin/spanjoin_settings.h"

/* Reads an id of `size` bytes from an encoded AnyValue, in the form that the source specifies.
 * Returns false if the value is not an id. */
bool id_source_read(const struct id_source *source, struct slice any, uint8_t *id, size_t size);

#endif

/*
 * id_text: span and trace ids as people and profilers write them.
 *
 * Each function returns false, and leaves the id undefined, if the text is not an id. All zeros are
 * not an id.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_ID_TEXT_H
#define PROFCOL_CORE_DATA_ID_TEXT_H

#include "core/base/slice.h"

/* Reads hex digits of either case, exactly two for each byte. */
bool id_from_hex(struct slice text, uint8_t *id, size_t id_size);
/* Reads a span id from an unsigned decimal number, as Datadog writes it. */
bool id_from_decimal(struct slice text, uint8_t *span_id);
/* Writes a span id from a number, most significant byte first. */
bool id_from_number(uint64_t number, uint8_t *span_id);

#endif

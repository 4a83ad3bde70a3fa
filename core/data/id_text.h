/*
 * id_text: span and trace ids as people and profilers write them.
 *
 * Each returns false, with the id in an undefined state, for what is no id; all zeros are none.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_ID_TEXT_H
#define PROFCOL_CORE_DATA_ID_TEXT_H

#include "core/base/slice.h"

/* Exactly two digits a byte, of either case. */
bool id_from_hex(struct slice text, uint8_t *id, size_t id_size);
/* A span id; Datadog's way. */
bool id_from_decimal(struct slice text, uint8_t *span_id);
/* Writes a span id from a number, most significant byte first. */
bool id_from_number(uint64_t number, uint8_t *span_id);

#endif

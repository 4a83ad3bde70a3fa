/*
 * index_list: looks at packed lists of indices, such as the locations of a stack, many at a time.
 *
 * Each function has an array with a byte for each entry of the table that the indices lead to.
 *
 * Owner: the bytes are the caller's.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_INDEX_LIST_H
#define PROFCOL_CORE_DATA_INDEX_LIST_H

#include "core/data/wire.h"

/* The list was scanned, so that each index is less than the count of bytes, which is not 0. They
 * assert it. */

/* Sets the byte of each index to 1. */
void index_list_mark(struct slice list, uint8_t *bytes, uint32_t count);
/* Returns the bitwise or of the bytes of all indices. */
uint8_t index_list_or(struct slice list, const uint8_t *bytes, uint32_t count);

#endif

/*
 * index_list: reads packed lists of indices, such as the locations of a stack, many at a time.
 *
 * Owner: the bytes are the caller's.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_INDEX_LIST_H
#define PROFCOL_CORE_DATA_INDEX_LIST_H

#include "core/data/wire.h"

enum { INDEX_LIST_ROOM = 80 };

/* Reads the next indices of a scanned list to `out`, which has INDEX_LIST_ROOM elements; those
 * after the result may be written over. Returns their number; 0 at the end. */
uint32_t index_list_read(struct wire_cursor *packed, uint32_t *out);

#endif

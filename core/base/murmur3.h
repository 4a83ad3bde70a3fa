/*
 * murmur3: MurmurHash3 with seed 0, for users who ask for it by name. Not for hash tables: see
 * core/base/hash.h.
 *
 * Owner: plain data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_BASE_MURMUR3_H
#define PROFCOL_CORE_BASE_MURMUR3_H

#include "core/base/slice.h"

/* Returns MurmurHash3_x86_32 of the bytes. */
uint32_t murmur3_32(struct slice bytes);
/* Writes MurmurHash3_x64_128 of the bytes: its two halves, each with its lowest byte first. */
void murmur3_128(struct slice bytes, uint8_t out[16]);

#endif

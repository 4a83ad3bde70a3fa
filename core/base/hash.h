/*
 * hash: keyed hashing, because ids and strings are chosen by whoever sends them.
 *
 * The key is drawn once per process from the kernel and never printed; order by hash must never
 * reach an output.
 *
 * Owner: the key is the process'; nothing else is kept.
 *
 * Thread: hash_init once at start, then any.
 */
#ifndef PROFCOL_CORE_BASE_HASH_H
#define PROFCOL_CORE_BASE_HASH_H

#include "core/base/slice.h"

/* Draws the key. A test may give its own through hash_init_with. */
void hash_init(void);
void hash_init_with(uint64_t key);
uint64_t hash_bytes(struct slice bytes);
uint64_t hash_u64(uint64_t value);
uint64_t random_u64(void);

#endif

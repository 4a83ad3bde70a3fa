/*
 * hash: keyed hashing, because clients choose ids and strings.
 *
 * The key is random, chosen once per process and never printed. The order of a hash table must
 * never be visible in an output.
 *
 * Owner: the key belongs to the process; nothing else is kept.
 *
 * Thread: hash_init once at start, then any.
 */
#ifndef PROFCOL_CORE_BASE_HASH_H
#define PROFCOL_CORE_BASE_HASH_H

#include "core/base/slice.h"

/* Chooses the key; aborts if the kernel provides no random numbers. A test may set a key with
 * hash_init_with. */
void hash_init(void);
void hash_init_with(uint64_t key);
/* Returns the keyed hash of the bytes, or of the number. */
uint64_t hash_bytes(struct slice bytes);
uint64_t hash_u64(uint64_t value);
/* Write XXH3 without a key, the highest byte first, for users who ask for it by name. */
void hash_xxh3(struct slice bytes, uint8_t out[8]);
void hash_xxh3_128(struct slice bytes, uint8_t out[16]);
/* Returns a random number from the kernel; aborts if there is none. */
uint64_t random_u64(void);

#endif

/*
 * waiting_keys: the keys of a request for which it waits in the index.
 *
 * Owner: the owner of the struct, which frees it with waiting_keys_deinit.
 *
 * Thread: that of the owner.
 */
#ifndef PROFCOL_SPANJOIN_WAITING_KEYS_H
#define PROFCOL_SPANJOIN_WAITING_KEYS_H

#include <stdint.h>

/* The keys that have a waiter in the index, and the place of each waiter. All-zero is empty. */
struct waiting_keys {
    struct waiting_key {
        uint32_t key; /* the number of the key in the request */
        uint32_t place;
    } * items;
    uint32_t count;
    uint32_t next; /* index of the next item that waiting_keys_place reads */
};
/* Adds a key. Call it in ascending order of the keys. */
void waiting_keys_add(struct waiting_keys *keys, uint32_t key, uint32_t place);
/* Returns the place of the waiter of this key; 0 if it has none. Call it in ascending order of the
 * keys. */
uint32_t waiting_keys_place(struct waiting_keys *keys, uint32_t key);
/* Frees the memory. */
void waiting_keys_deinit(struct waiting_keys *keys);

#endif

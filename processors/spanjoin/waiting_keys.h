/*
 * waiting_keys: the keys of a request that wait for something to come.
 *
 * Owner: whoever has the struct; waiting_keys_deinit frees it.
 *
 * Thread: that of the owner.
 */
#ifndef PROFCOL_SPANJOIN_WAITING_KEYS_H
#define PROFCOL_SPANJOIN_WAITING_KEYS_H

#include <stdint.h>

/* Which keys of a request the index knows a waiter for, and where it stands. All-zero is empty. */
struct waiting_keys {
    struct waiting_key {
        uint32_t key; /* the number of the key in the request */
        uint32_t place;
    } * items;
    uint32_t count;
    uint32_t next; /* of waiting_keys_place */
};
/* In the order of the keys. */
void waiting_keys_add(struct waiting_keys *keys, uint32_t key, uint32_t place);
/* The place of this key, 0: it does not wait. Asked for in the order of the keys. */
uint32_t waiting_keys_place(struct waiting_keys *keys, uint32_t key);
void waiting_keys_deinit(struct waiting_keys *keys);

#endif

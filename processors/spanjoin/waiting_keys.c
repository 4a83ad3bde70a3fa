#include "processors/spanjoin/waiting_keys.h"

#include "core/base/memory.h"

#include <assert.h>

void waiting_keys_add(struct waiting_keys *keys, uint32_t key, uint32_t place)
{
    assert(keys->count == 0 || keys->items[keys->count - 1].key < key);
    if ((keys->count & (keys->count - 1)) == 0) /* the array is full at 0, 1, 2, 4, ... */
        keys->items =
            memory_grow(keys->items, keys->count ? keys->count * 2 : 1, sizeof *keys->items);
    keys->items[keys->count++] = (struct waiting_key){key, place};
}

uint32_t waiting_keys_place(struct waiting_keys *keys, uint32_t key)
{
    if (keys->next == keys->count || keys->items[keys->next].key != key)
        return 0;
    return keys->items[keys->next++].place;
}

void waiting_keys_deinit(struct waiting_keys *keys)
{
    free(keys->items);
    *keys = (struct waiting_keys){0};
}

#include "processors/tail_sampling/trace_ids.h"

#include "core/base/hash.h"
#include "core/base/memory.h"

#include <assert.h>

enum { CAPACITY_MIN = 64 };

uint64_t trace_id_hash(const uint8_t *id)
{
    return hash_bytes(slice_of(id, TRACE_ID_SIZE));
}

struct trace_id *trace_ids_find(const struct trace_ids *ids, const uint8_t *id, uint32_t hash)
{
    if (!ids->by_hash.slots)
        return NULL;
    struct index_probe probe = index_table_probe(&ids->by_hash, hash);
    for (uint32_t number; index_table_next(&ids->by_hash, &probe, &number);)
        if (memcmp(ids->items[number]->bytes, id, TRACE_ID_SIZE) == 0)
            return ids->items[number];
    return NULL;
}

static uint32_t take_number(struct trace_ids *ids)
{
    if (ids->free_count > 0)
        return ids->free_numbers[--ids->free_count];
    if (ids->item_count == ids->item_capacity) {
        ids->item_capacity = ids->item_capacity ? ids->item_capacity * 2 : CAPACITY_MIN;
        ids->items = memory_grow(ids->items, ids->item_capacity, sizeof(struct trace_id *));
        ids->free_numbers =
            memory_grow(ids->free_numbers, ids->item_capacity, sizeof *ids->free_numbers);
    }
    return ids->item_count++;
}

void trace_ids_add(struct trace_ids *ids, struct trace_id *item, const uint8_t *id, uint32_t hash)
{
    size_t bytes = index_table_growth(&ids->by_hash, 1);
    memcpy(item->bytes, id, TRACE_ID_SIZE);
    item->hash = hash;
    item->number = take_number(ids);
    ids->items[item->number] = item;
    if (bytes > 0)
        free(index_table_move(&ids->by_hash, memory_zalloc(bytes), bytes));
    index_table_add_new(&ids->by_hash, hash, item->number);
}

void trace_ids_remove(struct trace_ids *ids, const struct trace_id *item)
{
    assert(item->number < ids->item_count && ids->items[item->number] == item);
    index_table_remove(&ids->by_hash, item->hash, item->number);
    ids->items[item->number] = NULL;
    ids->free_numbers[ids->free_count++] = item->number;
}

void trace_ids_deinit(struct trace_ids *ids)
{
    free(ids->items);
    free(ids->free_numbers);
    free(ids->by_hash.slots);
    *ids = (struct trace_ids){0};
}

#include "core/data/owned_table.h"

#include "core/base/container_of.h"
#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>

void owned_table_init(struct owned_table *table, uint64_t max_weight,
                      void (*free_item)(struct owned_item *item))
{
    assert(max_weight > 0 && table->count == 0);
    table->max_weight = max_weight;
    table->free_item = free_item;
}

void owned_table_deinit(struct owned_table *table)
{
    owned_table_sweep(table, UINT64_MAX, 0);
    assert(table->count == 0 && table->weight == 0);
    free(table->by_hash.slots);
    free(table->items);
    free(table->free_numbers);
}

struct owned_item *owned_table_find(const struct owned_table *table, uint64_t hash)
{
    if (!table->by_hash.slots)
        return NULL;
    struct index_probe probe = index_table_probe(&table->by_hash, (uint32_t)hash);
    for (uint32_t number; index_table_next(&table->by_hash, &probe, &number);)
        if (table->items[number]->hash == hash)
            return table->items[number];
    return NULL;
}

static uint32_t take_number(struct owned_table *table)
{
    if (table->free_count > 0)
        return table->free_numbers[--table->free_count];
    if (table->used == table->capacity) {
        table->capacity = table->capacity ? table->capacity * 2 : 64;
        table->items = memory_grow(table->items, table->capacity, sizeof(struct owned_item *));
        table->free_numbers =
            memory_grow(table->free_numbers, table->capacity, sizeof *table->free_numbers);
    }
    return table->used++;
}

void owned_table_add(struct owned_table *table, struct owned_item *item, uint64_t hash,
                     uint16_t owner)
{
    assert(owner < SPAN_SOURCES_MAX && item->weight == 0);
    index_table_grow(&table->by_hash, 1);
    item->number = take_number(table);
    item->hash = hash;
    item->owner = owner;
    table->items[item->number] = item;
    index_table_add_new(&table->by_hash, (uint32_t)hash, item->number);
    list_append(&table->recent[owner], &item->link);
    table->count++;
}

void owned_table_touch(struct owned_table *table, struct owned_item *item, uint64_t now_ns)
{
    struct list *recent = &table->recent[item->owner];
    item->touched_ns = now_ns;
    list_remove(recent, &item->link);
    list_append(recent, &item->link);
}

void owned_table_remove(struct owned_table *table, struct owned_item *item)
{
    assert(table->items[item->number] == item && table->owned[item->owner] >= item->weight);
    table->owned[item->owner] -= item->weight;
    table->weight -= item->weight;
    table->count--;
    list_remove(&table->recent[item->owner], &item->link);
    index_table_remove(&table->by_hash, (uint32_t)item->hash, item->number);
    table->items[item->number] = NULL;
    table->free_numbers[table->free_count++] = item->number;
    table->free_item(item);
}

static struct owned_item *oldest(const struct list *recent)
{
    return recent->first ? container_of(recent->first, struct owned_item, link) : NULL;
}

static struct list *list_of_most(struct owned_table *table)
{
    unsigned most = 0;
    for (unsigned owner = 1; owner < SPAN_SOURCES_MAX; owner++)
        if (table->owned[owner] > table->owned[most])
            most = owner;
    return &table->recent[most];
}

/* Several items leave at once, because finding their owner takes a pass over all owners. The item
 * that stays is the newest of its owner; it may alone be larger than the room. */
static void make_room(struct owned_table *table, const struct owned_item *stays)
{
    enum { TOGETHER = 16 };
    while (table->weight > table->max_weight) {
        struct list *recent = list_of_most(table);
        if (oldest(recent) == stays)
            return;
        for (int i = 0; i < TOGETHER && oldest(recent) && oldest(recent) != stays; i++)
            owned_table_remove(table, oldest(recent));
    }
}

void owned_table_grow(struct owned_table *table, struct owned_item *item, uint64_t more)
{
    assert(table->recent[item->owner].last == &item->link);
    item->weight += more;
    table->owned[item->owner] += more;
    table->weight += more;
    make_room(table, item);
}

void owned_table_sweep(struct owned_table *table, uint64_t now_ns, uint64_t window_ns)
{
    uint64_t since_ns = now_ns > window_ns ? now_ns - window_ns : 0;
    for (unsigned owner = 0; owner < SPAN_SOURCES_MAX; owner++) {
        const struct list *recent = &table->recent[owner];
        while (oldest(recent) && oldest(recent)->touched_ns < since_ns)
            owned_table_remove(table, oldest(recent));
    }
}

size_t owned_table_memory(const struct owned_table *table)
{
    size_t slots = table->by_hash.slots ? (size_t)table->by_hash.mask + 1 : 0;
    return table->capacity * (sizeof(struct owned_item *) + sizeof *table->free_numbers) +
           slots * sizeof(struct index_slot);
}

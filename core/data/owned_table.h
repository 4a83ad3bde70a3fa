/*
 * owned_table: items by a hash, which share a limited room: the owner with the most of it gives up
 * its oldest items.
 *
 * An item has a struct owned_item as a member. Its weight counts against the room: a
 * number of spans, or of bytes. Items are old if they have not been touched for a long time.
 *
 *     struct owned_item *item = owned_table_find(&table, hash);
 *     if (!item)
 *         owned_table_add(&table, item = new_item(), hash, owner);
 *     owned_table_touch(&table, item, now_ns);
 *     owned_table_grow(&table, item, 1);
 *
 * Owner: whoever initialised the table owns the items; free_item frees one that leaves.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_OWNED_TABLE_H
#define PROFCOL_CORE_DATA_OWNED_TABLE_H

#include "core/base/index_table.h"
#include "core/base/list.h"
#include "core/data/span_sources.h"

struct owned_item {
    struct list_link link; /* of `recent` */
    uint64_t hash;         /* keyed, so that it is the item's identity */
    uint64_t touched_ns;   /* monotonic */
    uint64_t weight;
    uint32_t number;
    uint16_t owner;
};

struct owned_table {
    uint64_t max_weight;
    uint64_t weight; /* of all items */
    uint64_t count;  /* of items */
    void (*free_item)(struct owned_item *item);
    struct owned_item **items; /* by number; NULL: it is free */
    uint32_t *free_numbers;    /* below `used` */
    uint32_t free_count;
    uint32_t used;
    uint32_t capacity;
    struct index_table by_hash;
    uint64_t owned[SPAN_SOURCES_MAX];     /* weight by owner */
    struct list recent[SPAN_SOURCES_MAX]; /* items by owner, the oldest first */
};

/* Initialises an all-zero table. */
void owned_table_init(struct owned_table *table, uint64_t max_weight,
                      void (*free_item)(struct owned_item *item));
/* Frees all items and the memory of the table. */
void owned_table_deinit(struct owned_table *table);

/* Returns the item with this hash; NULL if there is none. */
struct owned_item *owned_table_find(const struct owned_table *table, uint64_t hash);
/* Adds a zeroed item, without weight. No other one has its hash. */
void owned_table_add(struct owned_table *table, struct owned_item *item, uint64_t hash,
                     uint16_t owner);
/* Makes an item the newest of its owner. */
void owned_table_touch(struct owned_table *table, struct owned_item *item, uint64_t now_ns);
/* Adds to the weight of an item, which was touched last of its owner's, and stays. Others may
 * leave. Even if all others have left, it may be too large; the caller limits the weight of one. */
void owned_table_grow(struct owned_table *table, struct owned_item *item, uint64_t more);
/* Removes and frees an item. */
void owned_table_remove(struct owned_table *table, struct owned_item *item);
/* Removes the items that were not touched for window_ns. */
void owned_table_sweep(struct owned_table *table, uint64_t now_ns, uint64_t window_ns);
/* Returns the memory of the table in bytes, without the items. */
size_t owned_table_memory(const struct owned_table *table);

#endif

/*
 * index_table: finds the numbers of items by a hash of what they are.
 *
 *     index_table_reserve(&table, 1, arena);
 *     struct index_probe probe = index_table_probe(&table, hash);
 *     for (uint32_t number; index_table_next(&table, &probe, &number);)
 *         if (is_equal(&items[number], wanted))
 *             return number;
 *     items[count] = *wanted;
 *     index_table_add(&table, &probe, count++);
 *
 * Open addressing with linear probing; at most half of the slots are taken. The items stay where
 * the caller has them and are named by a number below INDEX_TABLE_MAX. A slot keeps the item's
 * hash, so that growth and most probes do not look at items. Use core/base/hash.h: senders choose
 * what is hashed.
 *
 * Owner: the slots are the caller's memory. All-zero is an empty table without slots.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_BASE_INDEX_TABLE_H
#define PROFCOL_CORE_BASE_INDEX_TABLE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

#define INDEX_TABLE_MAX (UINT32_C(1) << 30) /* items */

struct index_slot {
    uint32_t hash;
    uint32_t number_plus_one; /* 0: free */
};

struct index_table {
    struct index_slot *slots;
    uint32_t mask;  /* the number of slots, a power of two, less one */
    uint32_t count; /* of items */
};

/* Bytes of the slots of a table of so many items. */
size_t index_table_bytes(uint32_t count);
/* Bytes that the slots need for `more` items more; 0: there is room. */
size_t index_table_growth(const struct index_table *table, uint32_t more);
/* Moves the items to zeroed memory of index_table_growth bytes, and returns the old slots, which
 * the caller frees. Existing probes become invalid. */
struct index_slot *index_table_move(struct index_table *table, void *slots, size_t bytes);
/* Makes room for `more` items, with memory from the arena. Existing probes become invalid. */
void index_table_reserve(struct index_table *table, uint32_t more, struct arena *arena);
/* The same with memory of its own: the owner frees `slots`. */
void index_table_grow(struct index_table *table, uint32_t more);
/* Returns the memory of the slots in bytes. */
size_t index_table_memory(const struct index_table *table);
/* Removes an item, which must be in the table, with this hash. If it was added with several, it
 * stays there with the others. Existing probes become invalid. */
void index_table_remove(struct index_table *table, uint32_t hash, uint32_t number);

/* Whether it has no room for one item more. */
static inline bool index_table_is_full(const struct index_table *table)
{
    return table->count >= (table->mask + 1) / 2; /* also without slots */
}

struct index_probe {
    uint32_t hash;
    uint32_t at;
};

/* Begins a search for items of this hash. The table has slots. */
static inline struct index_probe index_table_probe(const struct index_table *table, uint32_t hash)
{
    assert(table->slots);
    return (struct index_probe){hash, hash & table->mask};
}

/* Finds the next item with this hash. Returns false if there is none; the probe is then at the slot
 * where the item would be added. */
static inline bool index_table_next(const struct index_table *table, struct index_probe *probe,
                                    uint32_t *number_out)
{
    for (;;) {
        const struct index_slot *slot = &table->slots[probe->at];
        if (slot->number_plus_one == 0)
            return false;
        probe->at = (probe->at + 1) & table->mask;
        if (slot->hash == probe->hash) {
            *number_out = slot->number_plus_one - 1;
            return true;
        }
    }
}

/* Adds an item where index_table_next returned false. There is room for it. */
static inline void index_table_add(struct index_table *table, const struct index_probe *probe,
                                   uint32_t number)
{
    struct index_slot *slot = &table->slots[probe->at];
    assert(slot->number_plus_one == 0 && number < INDEX_TABLE_MAX);
    assert(!index_table_is_full(table));
    *slot = (struct index_slot){probe->hash, number + 1};
    table->count++;
}

/* Adds an item known not to be in the table. */
static inline void index_table_add_new(struct index_table *table, uint32_t hash, uint32_t number)
{
    struct index_probe probe = index_table_probe(table, hash);
    while (table->slots[probe.at].number_plus_one != 0)
        probe.at = (probe.at + 1) & table->mask;
    index_table_add(table, &probe, number);
}

/* Fetches the slot of a hash into the cache, for a probe that comes soon. */
static inline void index_table_prefetch(const struct index_table *table, uint32_t hash)
{
    __builtin_prefetch(&table->slots[hash & table->mask]);
}

/* The number in the slot of a hash, whatever its hash is, or 0: to fetch the item that a probe will
 * most likely look at. */
static inline uint32_t index_table_peek(const struct index_table *table, uint32_t hash)
{
    uint32_t number_plus_one = table->slots[hash & table->mask].number_plus_one;
    return number_plus_one - (number_plus_one != 0);
}

#endif

#include "core/base/index_table.h"

#include "core/base/arena.h"
#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>

enum { SLOTS_MIN = 16 };

static uint32_t slots_for(uint32_t count)
{
    uint32_t slots = SLOTS_MIN;
    assert(count <= INDEX_TABLE_MAX);
    while (slots / 2 < count)
        slots *= 2;
    return slots;
}

size_t index_table_bytes(uint32_t count)
{
    return slots_for(count) * sizeof(struct index_slot);
}

size_t index_table_growth(const struct index_table *table, uint32_t more)
{
    assert(more <= INDEX_TABLE_MAX - table->count);
    uint32_t count = table->count + more;
    return table->slots && count <= (table->mask + 1) / 2 ? 0 : index_table_bytes(count);
}

/* Returns how many items it copied. */
static uint32_t copy_items(const struct index_table *table, struct index_slot *larger,
                           uint32_t mask)
{
    uint32_t count = 0;
    const struct index_slot *end = table->slots ? table->slots + table->mask + 1 : NULL;
    for (const struct index_slot *slot = table->slots; slot < end; slot++) {
        if (slot->number_plus_one == 0)
            continue;
        uint32_t at = slot->hash & mask;
        while (larger[at].number_plus_one != 0)
            at = (at + 1) & mask;
        larger[at] = *slot;
        count++;
    }
    return count;
}

struct index_slot *index_table_move(struct index_table *table, void *slots, size_t bytes)
{
    uint32_t mask = (uint32_t)(bytes / sizeof(struct index_slot)) - 1;
    assert((mask & (mask + 1)) == 0 && mask >= SLOTS_MIN - 1 && table->count <= mask / 2);
    uint32_t count = copy_items(table, slots, mask);
    assert(count == table->count);
    struct index_slot *old = table->slots;
    *table = (struct index_table){.slots = slots, .mask = mask, .count = count};
    return old;
}

void index_table_reserve(struct index_table *table, uint32_t more, struct arena *arena)
{
    size_t bytes = index_table_growth(table, more);
    if (bytes > 0)
        index_table_move(table, arena_zalloc(arena, bytes), bytes);
}

/* Returns the slot of an item. The item may also be there with other hashes. */
static uint32_t slot_of(const struct index_table *table, uint32_t hash, uint32_t number)
{
    uint32_t at = hash & table->mask;
    while (table->slots[at].number_plus_one != number + 1 || table->slots[at].hash != hash) {
        assert(table->slots[at].number_plus_one != 0);
        at = (at + 1) & table->mask;
    }
    return at;
}

/* Later slots move up if their own probes would otherwise end at the free slot. */
void index_table_grow(struct index_table *table, uint32_t more)
{
    size_t bytes = index_table_growth(table, more);
    if (bytes > 0)
        free(index_table_move(table, memory_zalloc(bytes), bytes));
}

size_t index_table_memory(const struct index_table *table)
{
    return table->slots ? ((size_t)table->mask + 1) * sizeof *table->slots : 0;
}

void index_table_remove(struct index_table *table, uint32_t hash, uint32_t number)
{
    uint32_t mask = table->mask, hole = slot_of(table, hash, number);
    for (uint32_t at = (hole + 1) & mask; table->slots[at].number_plus_one != 0;
         at = (at + 1) & mask) {
        uint32_t home = table->slots[at].hash & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->slots[hole] = table->slots[at];
            hole = at;
        }
    }
    table->slots[hole] = (struct index_slot){0};
    assert(table->count > 0);
    table->count--;
}

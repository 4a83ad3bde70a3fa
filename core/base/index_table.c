#include "core/base/index_table.h"

#include "core/base/arena.h"

#include <assert.h>

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

struct index_slot *index_table_move(struct index_table *table, void *slots, size_t bytes)
{
    struct index_table larger = {.slots = slots,
                                 .mask = (uint32_t)(bytes / sizeof(struct index_slot)) - 1};
    assert((larger.mask & (larger.mask + 1)) == 0 && larger.mask >= SLOTS_MIN - 1);
    for (uint32_t i = 0; table->slots && i <= table->mask; i++)
        if (table->slots[i].number_plus_one != 0)
            index_table_add_new(&larger, table->slots[i].hash, table->slots[i].number_plus_one - 1);
    assert(larger.count == table->count);
    struct index_slot *old = table->slots;
    *table = larger;
    return old;
}

void index_table_reserve(struct index_table *table, uint32_t more, struct arena *arena)
{
    size_t bytes = index_table_growth(table, more);
    if (bytes > 0)
        index_table_move(table, arena_zalloc(arena, bytes), bytes);
}

/* Returns the slot of an item. */
static uint32_t slot_of(const struct index_table *table, uint32_t hash, uint32_t number)
{
    uint32_t at = hash & table->mask;
    while (table->slots[at].number_plus_one != number + 1) {
        assert(table->slots[at].number_plus_one != 0);
        at = (at + 1) & table->mask;
    }
    return at;
}

/* Later slots move up if their own probes would otherwise end at the free slot. */
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

#include "extensions/explore/store_table.h"

#include <string.h>

enum { CAPACITY_MIN = 16 };

void store_table_init(struct store_table *table, size_t record_size, uint32_t limit)
{
    *table = (struct store_table){.record_size = record_size, .limit = limit};
    assert(limit > 0 && limit <= INDEX_TABLE_MAX);
}

void store_table_deinit(struct store_table *table)
{
    free(table->records);
    free(table->index.slots);
    table->records = NULL;
    table->index = (struct index_table){0};
    table->count = table->capacity = 0;
}

static void grow_records(struct store_table *table)
{
    uint32_t capacity = table->capacity ? table->capacity + table->capacity / 2 : CAPACITY_MIN;
    if (capacity > table->limit)
        capacity = table->limit;
    table->records = memory_grow(table->records, capacity, table->record_size);
    table->capacity = capacity;
}

uint32_t store_table_append(struct store_table *table)
{
    if (table->count == table->limit)
        return STORE_NONE;
    if (table->count == table->capacity)
        grow_records(table);
    assert(table->count < table->capacity);
    memset(table->records + (size_t)table->count * table->record_size, 0, table->record_size);
    return table->count++;
}

void store_table_grow_index(struct store_table *table)
{
    size_t bytes = index_table_growth(&table->index, 1);
    assert(bytes > 0);
    free(index_table_move(&table->index, memory_zalloc(bytes), bytes));
}

void store_table_index(struct store_table *table, uint64_t hash, uint32_t number)
{
    if (index_table_is_full(&table->index))
        store_table_grow_index(table);
    index_table_add_new(&table->index, (uint32_t)hash, number);
}

void store_table_clear_index(struct store_table *table)
{
    free(table->index.slots);
    table->index = (struct index_table){0};
}

void store_table_trim(struct store_table *table)
{
    uint32_t capacity = table->count > CAPACITY_MIN ? table->count : CAPACITY_MIN;
    if (capacity >= table->capacity)
        return;
    table->records = memory_grow(table->records, capacity, table->record_size);
    table->capacity = capacity;
}

size_t store_table_bytes(const struct store_table *table)
{
    size_t slots = table->index.slots ? (size_t)table->index.mask + 1 : 0;
    return table->capacity * table->record_size + slots * sizeof(struct index_slot);
}

/*
 * store_table: an array of records that are found by a hash, with a limit: what the store of
 * explore is made of.
 *
 * Both the records and their index grow up to the limit and no further, so that the tables together
 * stay within the store's budget.
 *
 * Owner: the store. All-zero with a limit and a record size is empty.
 *
 * Thread: that of the store.
 */
#ifndef PROFCOL_EXPLORE_STORE_TABLE_H
#define PROFCOL_EXPLORE_STORE_TABLE_H

#include "core/base/index_table.h"
#include "core/base/memory.h"

#define STORE_NONE UINT32_MAX

struct store_table {
    uint8_t *records;
    size_t record_size;
    uint32_t count;
    uint32_t capacity;
    uint32_t limit;
    uint32_t reserve;         /* records that are kept for what has no room; not filled by others */
    struct index_table index; /* of the records that were added with a hash */
};

static inline void *store_table_at(const struct store_table *table, uint32_t number)
{
    assert(number < table->count);
    return table->records + (size_t)number * table->record_size;
}

void store_table_init(struct store_table *table, size_t record_size, uint32_t limit);
void store_table_deinit(struct store_table *table);
/* Appends a zeroed record without a hash. Returns its number; STORE_NONE: the table is full. */
uint32_t store_table_append(struct store_table *table);
/* Adds a number to the index. */
void store_table_index(struct store_table *table, uint64_t hash, uint32_t number);
/* Empties the index, for adding all records again. */
void store_table_clear_index(struct store_table *table);
/* Frees memory that count does not need. */
void store_table_trim(struct store_table *table);
/* Internal to the next one. */
void store_table_grow_index(struct store_table *table);
/* Begins a search; see index_table. The index exists afterwards. */
static inline struct index_probe store_table_probe(struct store_table *table, uint64_t hash)
{
    if (index_table_is_full(&table->index))
        store_table_grow_index(table);
    return index_table_probe(&table->index, (uint32_t)hash);
}
/* Returns the memory in bytes. */
size_t store_table_bytes(const struct store_table *table);
/* Returns how many records there are at this part (in 1/8) of what others may fill. */
static inline uint32_t store_table_part(const struct store_table *table, uint32_t eighths)
{
    assert(table->reserve < table->limit);
    return (uint32_t)((uint64_t)(table->limit - table->reserve) * eighths / 8);
}
/* Whether more than that is used. */
static inline bool store_table_is_above(const struct store_table *table, uint32_t eighths)
{
    return table->count > store_table_part(table, eighths);
}

#endif

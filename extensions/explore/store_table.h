/*
 * store_table: an array of records that are found by a hash: what the store of explore is made of.
 *
 * The tables of a store share a pool of memory: each takes what it needs, as long as there is any,
 * so that no part of the budget is unused while another part is full. What a table must have in any
 * case, its reserve, it has from the start.
 *
 * Records of the same hash bucket are chained, with their hashes. So the index needs 12 to 16 bytes
 * a record, and a table grows in small steps up to the last byte of the pool.
 *
 * Owner: the store.
 *
 * Thread: that of the store.
 */
#ifndef PROFCOL_EXPLORE_STORE_TABLE_H
#define PROFCOL_EXPLORE_STORE_TABLE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_NONE UINT32_MAX
enum { STORE_RECORDS_MAX = 1 << 30 /* of a table */ };

struct store_pool {
    size_t limit; /* bytes */
    size_t used;
};

static inline size_t store_pool_left(const struct store_pool *pool)
{
    return pool->limit > pool->used ? pool->limit - pool->used : 0;
}
/* Whether more than this part is used. */
static inline bool store_pool_is_above(const struct store_pool *pool, unsigned percent)
{
    return pool->used > pool->limit / 100 * percent;
}
/* Takes memory; returns false if there is too little. */
bool store_pool_take(struct store_pool *pool, size_t bytes);
void store_pool_give(struct store_pool *pool, size_t bytes);

struct store_link {
    uint32_t hash;
    uint32_t next; /* of the same bucket; number + 1, 0: the last */
};

struct store_table {
    struct store_pool *pool;
    uint8_t *records;
    struct store_link *links; /* NULL: the table has no index */
    uint32_t *heads;          /* of the buckets; number + 1, 0: empty */
    uint32_t head_count;      /* a power of two */
    uint32_t indexed;         /* records in the index */
    size_t record_size;
    uint32_t count;
    uint32_t capacity;
    uint32_t max;
    uint32_t reserve; /* records that are kept for what has no room; not filled by others */
    uint32_t target;  /* how many store_reduce leaves, at most */
};

static inline void *store_table_at(const struct store_table *table, uint32_t number)
{
    assert(number < table->count);
    return table->records + (size_t)number * table->record_size;
}

/* max: records, at least the reserve and some more. The pool has room for those. */
void store_table_init(struct store_table *table, struct store_pool *pool, size_t record_size,
                      uint32_t reserve, uint32_t max, bool has_index);
void store_table_deinit(struct store_table *table);
/* Makes room for so many records in all. Returns false if the pool has too little. */
bool store_table_ensure(struct store_table *table, uint32_t count);
/* Appends a zeroed record, which is not in the index. Returns its number; STORE_NONE: there is no
 * room, besides the `kept` records that must stay free. */
uint32_t store_table_append(struct store_table *table, uint32_t kept);
/* Adds a record to the index, or takes it out. */
void store_table_index(struct store_table *table, uint64_t hash, uint32_t number);
void store_table_unindex(struct store_table *table, uint32_t number);
/* Empties the index, for adding all records again. */
void store_table_clear_index(struct store_table *table);
/* Gives back the memory that count does not need. */
void store_table_trim(struct store_table *table);
/* Returns the memory in bytes. */
size_t store_table_bytes(const struct store_table *table);

struct store_probe {
    uint32_t hash;
    uint32_t at; /* number + 1 */
};

/* Begins a search for the records of a hash. */
static inline struct store_probe store_table_probe(const struct store_table *table, uint64_t hash)
{
    return (struct store_probe){(uint32_t)hash, table->heads[hash & (table->head_count - 1)]};
}

/* Finds the next record with the hash, the newest first. */
static inline bool store_table_next(const struct store_table *table, struct store_probe *probe,
                                    uint32_t *number_out)
{
    while (probe->at != 0) {
        uint32_t number = probe->at - 1;
        const struct store_link *link = &table->links[number];
        assert(number < table->count);
        probe->at = link->next;
        if (link->hash == probe->hash) {
            *number_out = number;
            return true;
        }
    }
    return false;
}

/* Returns how many records more it has than store_reduce leaves. */
static inline uint32_t store_table_excess(const struct store_table *table)
{
    return table->count > table->target ? table->count - table->target : 0;
}

#endif

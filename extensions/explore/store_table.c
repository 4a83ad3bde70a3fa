#include "extensions/explore/store_table.h"

#include "core/base/memory.h"

#include <string.h>

enum { STEP_MIN = 16 /* records, and buckets */ };

/* ---- the pool ---- */

bool store_pool_take(struct store_pool *pool, size_t bytes)
{
    if (bytes > store_pool_left(pool))
        return false;
    pool->used += bytes;
    return true;
}

void store_pool_give(struct store_pool *pool, size_t bytes)
{
    assert(pool->used >= bytes);
    pool->used -= bytes;
}

/* ---- records ---- */

static size_t bytes_of_record(const struct store_table *table)
{
    return table->record_size + (table->links ? sizeof *table->links : 0);
}

/* The pool has given, or gets, the memory. */
static void set_capacity(struct store_table *table, uint32_t capacity)
{
    assert(capacity >= table->count && capacity <= table->max);
    table->records = memory_grow(table->records, capacity, table->record_size);
    if (table->links)
        table->links = memory_grow(table->links, capacity, sizeof *table->links);
    table->capacity = capacity;
}

void store_table_init(struct store_table *table, struct store_pool *pool, size_t record_size,
                      uint32_t reserve, uint32_t max, bool has_index)
{
    uint32_t capacity = reserve + STEP_MIN;
    *table = (struct store_table){
        .pool = pool, .record_size = record_size, .max = max, .reserve = reserve};
    assert(max >= capacity && max <= STORE_RECORDS_MAX);
    if (has_index) {
        table->links = memory_array(capacity, sizeof *table->links);
        table->heads = memory_zalloc(STEP_MIN * sizeof *table->heads);
        table->head_count = STEP_MIN;
    }
    set_capacity(table, capacity);
    bool has_room = store_pool_take(pool, store_table_bytes(table));
    assert(has_room);
    (void)has_room;
}

void store_table_deinit(struct store_table *table)
{
    free(table->records);
    free(table->links);
    free(table->heads);
    *table = (struct store_table){.records = NULL};
}

/* Takes a step, smaller ones as the pool gets empty. */
static bool grow(struct store_table *table)
{
    size_t left = store_pool_left(table->pool) / bytes_of_record(table);
    uint32_t step = table->capacity / 16 + STEP_MIN;
    if (step > table->max - table->capacity)
        step = table->max - table->capacity;
    if (step > left)
        step = (uint32_t)left;
    if (step == 0 || !store_pool_take(table->pool, step * bytes_of_record(table)))
        return false;
    set_capacity(table, table->capacity + step);
    return true;
}

bool store_table_ensure(struct store_table *table, uint32_t count)
{
    while (table->capacity < count)
        if (!grow(table))
            return false;
    return true;
}

uint32_t store_table_append(struct store_table *table, uint32_t kept)
{
    if (table->capacity - table->count <= kept &&
        (!grow(table) || table->capacity - table->count <= kept))
        return STORE_NONE;
    assert(table->count < table->capacity);
    memset(table->records + (size_t)table->count * table->record_size, 0, table->record_size);
    return table->count++;
}

void store_table_trim(struct store_table *table)
{
    uint32_t capacity = table->count + table->reserve + STEP_MIN;
    if (capacity >= table->capacity)
        return;
    store_pool_give(table->pool, (table->capacity - capacity) * bytes_of_record(table));
    set_capacity(table, capacity);
}

size_t store_table_bytes(const struct store_table *table)
{
    return table->capacity * bytes_of_record(table) + table->head_count * sizeof *table->heads;
}

/* ---- the index ---- */

static void link_record(struct store_table *table, uint32_t number)
{
    struct store_link *link = &table->links[number];
    uint32_t *head = &table->heads[link->hash & (table->head_count - 1)];
    link->next = *head;
    *head = number + 1;
}

static void double_heads(struct store_table *table)
{
    uint32_t *heads = table->heads, count = table->head_count;
    table->head_count = 2 * count;
    table->heads = memory_zalloc(table->head_count * sizeof *table->heads);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t at = heads[i], next; at; at = next) {
            next = table->links[at - 1].next;
            link_record(table, at - 1);
        }
    free(heads);
}

void store_table_index(struct store_table *table, uint64_t hash, uint32_t number)
{
    assert(number < table->count);
    /* Without memory for more buckets, the chains become longer. */
    if (table->indexed >= table->head_count &&
        store_pool_take(table->pool, table->head_count * sizeof *table->heads))
        double_heads(table);
    table->links[number].hash = (uint32_t)hash;
    link_record(table, number);
    table->indexed++;
}

void store_table_unindex(struct store_table *table, uint32_t number)
{
    assert(number < table->count && table->indexed > 0);
    uint32_t *at = &table->heads[table->links[number].hash & (table->head_count - 1)];
    while (*at != number + 1) {
        assert(*at != 0);
        at = &table->links[*at - 1].next;
    }
    *at = table->links[number].next;
    table->indexed--;
}

void store_table_clear_index(struct store_table *table)
{
    uint32_t count = table->head_count;
    while (count / 2 >= STEP_MIN && count / 2 >= table->count)
        count /= 2;
    store_pool_give(table->pool, (table->head_count - count) * sizeof *table->heads);
    free(table->heads);
    table->heads = memory_zalloc(count * sizeof *table->heads);
    table->head_count = count;
    table->indexed = 0;
}

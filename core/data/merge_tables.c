#include "core/data/merge_tables.h"

#include "core/base/hash.h"
#include "core/data/wire.h"
#include "core/data/zero_entry.h"

#include <assert.h>

enum { CAPACITY_MIN = 32 };

void merge_tables_init(struct merge_tables *tables, struct budget *budget)
{
    *tables = (struct merge_tables){0};
    arena_init(&tables->arena, budget);
}

void merge_tables_deinit(struct merge_tables *tables)
{
    struct budget *budget = tables->arena.budget;
    arena_deinit(&tables->arena);
    merge_tables_init(tables, budget);
}

/* ---- growing ---- */

static void grow_entries(struct merge_table *table, struct arena *arena, uint32_t capacity)
{
    assert(capacity > table->count);
    struct merge_entry *entries =
        arena_alloc(arena, (size_t)capacity * sizeof *entries); /* written before they are read */
    if (table->count > 0)
        memcpy(entries, table->entries, table->count * sizeof *entries);
    table->entries = entries;
    table->capacity = capacity;
}

static void grow(struct merge_table *table, struct arena *arena, uint32_t count)
{
    uint32_t capacity = table->capacity ? table->capacity * 2 : CAPACITY_MIN;
    if (count > table->capacity)
        grow_entries(table, arena, capacity > count ? capacity : count);
    index_table_reserve(&table->by_content, count - table->by_content.count, arena);
}

static inline void make_room(struct merge_table *table, struct arena *arena, uint32_t more)
{
    uint32_t count = table->count + more;
    if (count > table->capacity || count > (table->by_content.mask + 1) / 2)
        grow(table, arena, count);
}

void merge_tables_expect(struct merge_tables *tables, int table, uint32_t count)
{
    make_room(&tables->tables[table], &tables->arena, count);
}

/* ---- interning ---- */

static struct merge_entry zero_entry(int table)
{
    return (struct merge_entry){zero_entry_payload(table), ZERO_ENTRY_HEADER};
}

static void append(struct merge_tables *tables, struct merge_table *table,
                   const struct merge_entry *entry)
{
    assert(table->count < table->capacity && entry->header_size > 0);
    table->entries[table->count++] = *entry;
    tables->size += entry->header_size + entry->payload.size;
}

static struct merge_entry copy_entry(struct arena *arena, int table, struct slice payload)
{
    uint8_t *copy = arena_alloc(arena, payload.size + WIRE_HEADER_MAX);
    uint8_t *to = wire_write_header(copy, (uint32_t)table, payload.size);
    memcpy(to, payload.data, payload.size);
    return (struct merge_entry){slice_of(to, payload.size), (size_t)(to - copy)};
}

static uint32_t intern(struct merge_tables *tables, int number, const struct merge_entry *entry,
                       uint32_t hash)
{
    struct merge_table *table = &tables->tables[number];
    struct slice payload = entry->payload;
    struct index_probe probe = index_table_probe(&table->by_content, hash);
    for (uint32_t index; index_table_next(&table->by_content, &probe, &index);)
        if (slice_equal(table->entries[index].payload, payload))
            return index;
    if (zero_entry_may_be(number, payload) && zero_entry_is(number, payload))
        return 0;
    struct merge_entry new = table->count == 0 ? zero_entry(number) : (struct merge_entry){0};
    if (table->count == 0)
        append(tables, table, &new);
    new = entry->header_size ? *entry : copy_entry(&tables->arena, number, payload);
    assert(table->count > 0); /* index 0 is the zero value */
    index_table_add(&table->by_content, &probe, table->count);
    append(tables, table, &new);
    return table->count - 1;
}

/* Prefetches the memory that interning will read, so that cache misses overlap. */
static void prefetch(const struct merge_table *table, const uint32_t *hashes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        __builtin_prefetch(&table->entries[index_table_peek(&table->by_content, hashes[i])]);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = index_table_peek(&table->by_content, hashes[i]);
        if (index != 0)
            __builtin_prefetch(table->entries[index].payload.data);
    }
}

void merge_tables_intern(struct merge_tables *tables, int number, const struct merge_entry *entries,
                         uint32_t count, uint32_t *indices_out)
{
    struct merge_table *table = &tables->tables[number];
    uint32_t hashes[MERGE_BLOCK];
    assert(count <= MERGE_BLOCK);
    assert(number > 0 && number < DICTIONARY_TABLE_COUNT);
    make_room(table, &tables->arena, count + 1); /* the zero value may not be added yet */
    for (uint32_t i = 0; i < count; i++) {
        hashes[i] = (uint32_t)hash_bytes(entries[i].payload);
        index_table_prefetch(&table->by_content, hashes[i]);
    }
    if (count > 1)
        prefetch(table, hashes, count);
    for (uint32_t i = 0; i < count; i++)
        indices_out[i] =
            entries[i].payload.size ? intern(tables, number, &entries[i], hashes[i]) : 0;
}

/* ---- writing ---- */

void merge_tables_complete(struct merge_tables *tables)
{
    for (int number = 1; number < DICTIONARY_TABLE_COUNT; number++) {
        struct merge_table *table = &tables->tables[number];
        struct merge_entry zero = zero_entry(number);
        if (table->count > 0)
            continue;
        make_room(table, &tables->arena, 1);
        append(tables, table, &zero);
    }
}

static uint8_t *write_run(uint8_t *to, struct slice run)
{
    if (run.size > 0)
        memcpy(to, run.data, run.size);
    return to + run.size;
}

static uint8_t *write_table(const struct merge_table *table, uint8_t *to)
{
    struct slice run = {0};
    for (uint32_t i = 0; i < table->count; i++) {
        const struct merge_entry *entry = &table->entries[i];
        const uint8_t *start = entry->payload.data - entry->header_size;
        if (run.size == 0 || run.data + run.size != start) {
            to = write_run(to, run);
            run = slice_of(start, 0);
        }
        run.size += entry->header_size + entry->payload.size;
    }
    return write_run(to, run);
}

uint8_t *merge_tables_write(const struct merge_tables *tables, uint8_t *to)
{
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        to = write_table(&tables->tables[table], to);
    return to;
}

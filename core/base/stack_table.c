#include "core/base/stack_table.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

enum { FIRST = 8 };

/* Not of the allocator: the sampler of allocations uses such tables. */
struct stack_table *stack_table_new(uint32_t capacity)
{
    assert(capacity > FIRST && capacity % 8 == 0);
    struct stack_table *table = mmap(NULL, sizeof *table + capacity, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED)
        return NULL;
    table->capacity = capacity;
    table->used = FIRST;
    return table;
}

void stack_table_free(struct stack_table *table)
{
    if (table)
        munmap(table, sizeof *table + table->capacity);
}

struct stack_table *stack_table_copy(const struct stack_table *table)
{
    struct stack_table *copy = stack_table_new(table->capacity);
    if (copy)
        memcpy(copy, table, sizeof *table + table->used);
    return copy;
}

void stack_table_clear(struct stack_table *table)
{
    uint32_t capacity = table->capacity;
    madvise(table, sizeof *table + capacity, MADV_DONTNEED); /* zeroes it */
    table->capacity = capacity;
    table->used = FIRST;
}

static uint64_t hash_of(const uint64_t *addresses, size_t depth)
{
    uint64_t hash = depth;
    for (size_t i = 0; i < depth; i++)
        hash = (hash ^ addresses[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static size_t entry_bytes(size_t depth)
{
    return sizeof(struct stack_entry) + depth * sizeof(uint64_t);
}

uint32_t stack_table_offset(const struct stack_table *table, const struct stack_entry *entry)
{
    return (uint32_t)((const unsigned char *)entry - table->room);
}

struct stack_entry *stack_table_at(struct stack_table *table, uint32_t offset)
{
    assert(offset >= FIRST && offset < table->used);
    return (struct stack_entry *)(void *)(table->room + offset);
}

static bool is_stack(const struct stack_entry *entry, uint64_t hash, const uint64_t *addresses,
                     size_t depth)
{
    return entry->hash == hash && entry->depth == depth &&
           memcmp(entry->addresses, addresses, depth * sizeof *addresses) == 0;
}

static struct stack_entry *find(struct stack_table *table, uint64_t hash, const uint64_t *addresses,
                                size_t depth)
{
    for (uint32_t at = table->heads[hash % STACK_TABLE_BUCKETS]; at != 0;
         at = stack_table_at(table, at)->next)
        if (is_stack(stack_table_at(table, at), hash, addresses, depth))
            return stack_table_at(table, at);
    return NULL;
}

struct stack_entry *stack_table_add(struct stack_table *table, const uint64_t *addresses,
                                    size_t depth)
{
    uint64_t hash = hash_of(addresses, depth);
    uint32_t *head = &table->heads[hash % STACK_TABLE_BUCKETS];
    struct stack_entry *known = find(table, hash, addresses, depth);
    if (known)
        return known;
    if (table->capacity - table->used < entry_bytes(depth)) {
        table->lost++;
        return NULL;
    }
    uint32_t offset = table->used;
    table->used += (uint32_t)entry_bytes(depth);
    struct stack_entry *entry = stack_table_at(table, offset);
    entry->hash = hash;
    entry->next = *head;
    entry->depth = (uint32_t)depth;
    memcpy(entry->addresses, addresses, depth * sizeof *addresses);
    *head = offset;
    return entry;
}

void stack_table_subtract(struct stack_table *table, const struct stack_table *earlier)
{
    const struct stack_entry *old = stack_table_first(earlier);
    for (; old; old = stack_table_next(earlier, old)) {
        struct stack_entry *entry = find(table, old->hash, old->addresses, old->depth);
        for (size_t i = 0; entry && i < STACK_VALUES; i++)
            entry->values[i] -= old->values[i];
    }
    assert(table->lost >= earlier->lost);
    table->lost -= earlier->lost;
}

static const struct stack_entry *entry_or_end(const struct stack_table *table, size_t offset)
{
    return offset < table->used ? (const struct stack_entry *)(const void *)(table->room + offset)
                                : NULL;
}

const struct stack_entry *stack_table_first(const struct stack_table *table)
{
    return entry_or_end(table, FIRST);
}

const struct stack_entry *stack_table_next(const struct stack_table *table,
                                           const struct stack_entry *entry)
{
    return entry_or_end(table, stack_table_offset(table, entry) + entry_bytes(entry->depth));
}

#include "core/data/span_sets.h"

#include "core/base/container_of.h"
#include "core/base/hash.h"
#include "core/base/index_table.h"
#include "core/base/list.h"
#include "core/base/memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
    ALLOCATION_OVERHEAD = 16, /* of malloc */
    EVICT_AT_ONCE = 16,
    PART_BYTES_MIN = 65536,
};

struct span_set {
    struct list_link link; /* of its owner, the least recently used first */
    uint64_t hash;
    uint64_t used_ns;   /* by a span, last */
    uint64_t period_ns; /* the beginning of the period of spans[0], which is a window long */
    uint32_t spans[2];  /* that used it in this period and in the one before */
    uint32_t number;
    uint16_t owner;
    uint16_t size;
    uint8_t kind;
    uint8_t status;
    uint8_t values[];
};

struct set_owner {
    struct list sets;
    size_t bytes;
};

struct set_part {
    pthread_mutex_t lock;
    struct index_table table; /* numbers of sets by hash */
    struct span_set **sets;   /* by number; NULL: free */
    uint32_t *free_numbers;
    uint32_t free_count;
    uint32_t size;            /* of both */
    uint32_t used;            /* numbers below this one were given out */
    struct set_owner *owners; /* SPAN_SOURCES_MAX, by number; NULL: no set has been stored */
    size_t bytes;
} __attribute__((aligned(64)));

struct span_sets {
    unsigned part_count;
    size_t part_bytes_max;
    _Atomic uint64_t evicted;
    struct set_part parts[];
};

static size_t bytes_of(size_t values_size)
{
    return sizeof(struct span_set) + values_size + ALLOCATION_OVERHEAD;
}

struct span_sets *span_sets_new(size_t max_bytes, unsigned parts)
{
    assert(parts > 0 && (parts & (parts - 1)) == 0);
    size_t size = sizeof(struct span_sets) + parts * sizeof(struct set_part);
    struct span_sets *sets = aligned_alloc(64, (size + 63) & ~(size_t)63);
    assert(sets);
    memset(sets, 0, size);
    sets->part_count = parts;
    sets->part_bytes_max = max_bytes / parts > PART_BYTES_MIN ? max_bytes / parts : PART_BYTES_MIN;
    for (unsigned i = 0; i < parts; i++)
        pthread_mutex_init(&sets->parts[i].lock, NULL);
    return sets;
}

void span_sets_free(struct span_sets *sets)
{
    for (unsigned i = 0; i < sets->part_count; i++) {
        struct set_part *part = &sets->parts[i];
        for (uint32_t number = 0; number < part->used; number++)
            free(part->sets[number]);
        free(part->sets);
        free(part->free_numbers);
        free(part->table.slots);
        free(part->owners);
        pthread_mutex_destroy(&part->lock);
    }
    free(sets);
}

static struct set_part *part_of(struct span_sets *sets, uint64_t hash)
{
    return &sets->parts[hash >> 32 & (sets->part_count - 1)];
}

/* ---- sets of a part, which is locked ---- */

static struct span_set *find(const struct set_part *part, uint64_t hash)
{
    if (!part->table.slots)
        return NULL;
    struct index_probe probe = index_table_probe(&part->table, (uint32_t)hash);
    for (uint32_t number; index_table_next(&part->table, &probe, &number);)
        if (part->sets[number]->hash == hash)
            return part->sets[number];
    return NULL;
}

static void reserve_slot(struct set_part *part)
{
    index_table_grow(&part->table, 1);
}

static uint32_t take_number(struct set_part *part)
{
    if (part->free_count > 0)
        return part->free_numbers[--part->free_count];
    if (part->used == part->size) {
        part->size = part->size ? part->size * 2 : 16;
        part->sets = memory_grow(part->sets, part->size, sizeof(struct span_set *));
        part->free_numbers =
            memory_grow(part->free_numbers, part->size, sizeof *part->free_numbers);
    }
    return part->used++;
}

static void drop(struct set_part *part, struct span_set *set)
{
    struct set_owner *owner = &part->owners[set->owner];
    size_t bytes = bytes_of(set->size);
    assert(owner->bytes >= bytes && part->bytes >= bytes);
    list_remove(&owner->sets, &set->link);
    owner->bytes -= bytes;
    part->bytes -= bytes;
    index_table_remove(&part->table, (uint32_t)set->hash, set->number);
    part->sets[set->number] = NULL;
    part->free_numbers[part->free_count++] = set->number;
    free(set);
}

static struct span_set *least_used(const struct set_owner *owner)
{
    struct list_link *first = owner->sets.first;
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a freed set has left the list */
    return first ? container_of(first, struct span_set, link) : NULL;
}

/* Whether a span that uses the set may still be found. */
static bool is_needed(const struct span_set *set, uint64_t now_ns, uint64_t window_ns)
{
    uint64_t linger_ns = window_ns + window_ns / 4; /* at least as long as the index's entries */
    return now_ns <= set->used_ns || now_ns - set->used_ns <= linger_ns;
}

/* Returns the owner with the most bytes; among equal ones, the newcomer. */
static struct set_owner *heaviest(struct set_part *part, uint16_t newcomer)
{
    struct set_owner *most = &part->owners[newcomer];
    for (uint32_t i = 0; i < SPAN_SOURCES_MAX; i++)
        most = part->owners[i].bytes > most->bytes ? &part->owners[i] : most;
    return most;
}

static void evict(const struct span_sets_writer *writer, struct set_part *part, uint16_t newcomer)
{
    struct set_owner *owner = heaviest(part, newcomer);
    uint64_t lost = 0;
    for (unsigned i = 0; i < EVICT_AT_ONCE; i++) {
        struct span_set *set = least_used(owner);
        if (!set)
            break;
        if (is_needed(set, writer->now_ns, writer->window_ns))
            lost += (uint64_t)set->spans[0] + set->spans[1];
        drop(part, set);
    }
    atomic_fetch_add_explicit(&writer->sets->evicted, lost, memory_order_relaxed);
}

static void make_room(const struct span_sets_writer *writer, struct set_part *part,
                      uint16_t newcomer, size_t bytes)
{
    while (part->bytes > 0 && part->bytes + bytes > writer->sets->part_bytes_max)
        evict(writer, part, newcomer);
}

/* Returns how much of what was used last is remembered for so many spans, minus 1. */
static unsigned recent_mask(size_t count)
{
    unsigned size = 1;
    while (size < SPAN_SETS_RECENT && size < count)
        size *= 2;
    return size - 1;
}

/* ---- storing ---- */

static uint64_t hash_of(struct span_sets_writer *writer, uint16_t owner,
                        const struct span_facts *facts)
{
    uint64_t rest =
        (uint64_t)owner << 48 | (uint64_t)facts->kind << 40 | (uint64_t)facts->status << 32;
    struct slice values = facts->values;
    struct span_set_hash *known =
        &writer->hashed[(uintptr_t)values.data / 16 % SPAN_SETS_HASHED]; /* addresses in an arena */
    if (known->hash != 0 && known->values.data == values.data &&
        known->values.size == values.size && known->rest == rest)
        return known->hash;
    uint64_t hash = hash_bytes(values) ^ rest;
    *known = (struct span_set_hash){values, rest, hash ? hash : 1};
    return known->hash;
}

/* Notes spans that use the set. */
static void use(const struct span_sets_writer *writer, struct set_part *part, struct span_set *set,
                uint32_t spans)
{
    uint64_t now_ns = writer->now_ns, period_ns = now_ns - set->period_ns;
    struct list *list = &part->owners[set->owner].sets;
    if (list->last != &set->link) {
        list_remove(list, &set->link);
        list_append(list, &set->link);
    }
    if (now_ns > set->used_ns)
        set->used_ns = now_ns;
    if (now_ns > set->period_ns && period_ns >= writer->window_ns) {
        set->spans[1] = period_ns < 2 * writer->window_ns ? set->spans[0] : 0;
        set->spans[0] = 0;
        set->period_ns = now_ns;
    }
    set->spans[0] += spans < UINT32_MAX - set->spans[0] ? spans : 0;
}

static void add(const struct span_sets_writer *writer, struct set_part *part, uint64_t hash,
                uint16_t owner_number, const struct span_facts *facts)
{
    size_t bytes = bytes_of(facts->values.size);
    assert(owner_number < SPAN_SOURCES_MAX);
    if (!part->owners)
        part->owners = memory_zalloc(SPAN_SOURCES_MAX * sizeof *part->owners);
    make_room(writer, part, owner_number, bytes);
    reserve_slot(part);
    struct span_set *set = memory_alloc(sizeof *set + facts->values.size);
    *set = (struct span_set){.hash = hash,
                             .used_ns = writer->now_ns,
                             .period_ns = writer->now_ns,
                             .spans = {1, 0},
                             .number = take_number(part),
                             .owner = owner_number,
                             .size = (uint16_t)facts->values.size,
                             .kind = facts->kind,
                             .status = facts->status};
    if (set->size > 0)
        memcpy(set->values, facts->values.data, set->size);
    part->sets[set->number] = set;
    index_table_add_new(&part->table, (uint32_t)hash, set->number);
    struct set_owner *owner = &part->owners[owner_number];
    list_append(&owner->sets, &set->link);
    owner->bytes += bytes;
    part->bytes += bytes;
}

void span_sets_begin(struct span_sets_writer *writer, struct span_sets *sets, size_t count,
                     uint64_t now_ns, uint64_t window_ns)
{
    writer->sets = sets;
    writer->now_ns = now_ns;
    writer->window_ns = window_ns;
    writer->recent_mask = recent_mask(count);
    memset(writer->recent, 0, (writer->recent_mask + 1) * sizeof *writer->recent);
    memset(writer->hashed, 0, sizeof writer->hashed);
}

/* Notes the spans after the first that used a set. */
static void note_more(const struct span_sets_writer *writer, const struct span_set_use *recent)
{
    if (recent->more == 0)
        return;
    struct set_part *part = part_of(writer->sets, recent->hash);
    pthread_mutex_lock(&part->lock);
    struct span_set *set = find(part, recent->hash);
    if (set)
        use(writer, part, set, recent->more);
    pthread_mutex_unlock(&part->lock);
}

uint64_t span_sets_store(struct span_sets_writer *writer, uint16_t owner,
                         const struct span_facts *facts)
{
    assert(facts->values.size <= SPAN_INDEX_VALUES_MAX);
    uint64_t hash = hash_of(writer, owner, facts);
    struct span_set_use *recent = &writer->recent[hash & writer->recent_mask];
    if (recent->hash == hash) {
        recent->more++;
        return hash;
    }
    note_more(writer, recent);
    *recent = (struct span_set_use){.hash = hash};
    struct set_part *part = part_of(writer->sets, hash);
    pthread_mutex_lock(&part->lock);
    struct span_set *set = find(part, hash);
    if (set)
        use(writer, part, set, 1);
    else
        add(writer, part, hash, owner, facts);
    pthread_mutex_unlock(&part->lock);
    return hash;
}

void span_sets_finish(struct span_sets_writer *writer)
{
    for (unsigned i = 0; i <= writer->recent_mask; i++)
        note_more(writer, &writer->recent[i]);
}

/* ---- reading ---- */

void span_sets_open(struct span_sets_reader *reader, struct span_sets *sets, size_t count,
                    struct arena *arena)
{
    reader->sets = sets;
    reader->arena = arena;
    reader->recent_mask = recent_mask(count);
    memset(reader->recent, 0, (reader->recent_mask + 1) * sizeof *reader->recent);
}

static struct span_set_copy copy_of(struct span_sets_reader *reader, uint64_t hash)
{
    struct span_set_copy copy = {.hash = 0};
    struct set_part *part = part_of(reader->sets, hash);
    pthread_mutex_lock(&part->lock);
    const struct span_set *set = find(part, hash);
    if (set)
        copy = (struct span_set_copy){
            .hash = hash,
            .values = arena_copy(reader->arena, slice_of(set->values, set->size)),
            .kind = set->kind,
            .status = set->status};
    pthread_mutex_unlock(&part->lock);
    return copy;
}

bool span_sets_read(struct span_sets_reader *reader, uint64_t hash, struct span_facts *facts)
{
    struct span_set_copy *recent = &reader->recent[hash & reader->recent_mask];
    if (recent->hash != hash)
        *recent = copy_of(reader, hash);
    if (recent->hash != hash)
        return false;
    facts->values = recent->values;
    facts->kind = recent->kind;
    facts->status = recent->status;
    return true;
}

/* ---- housekeeping ---- */

void span_sets_sweep(struct span_sets *sets, uint64_t now_ns, uint64_t window_ns)
{
    for (unsigned i = 0; i < sets->part_count; i++) {
        struct set_part *part = &sets->parts[i];
        pthread_mutex_lock(&part->lock);
        for (uint32_t k = 0; part->owners && k < SPAN_SOURCES_MAX; k++)
            for (struct span_set *set;
                 (set = least_used(&part->owners[k])) && !is_needed(set, now_ns, window_ns);)
                drop(part, set);
        pthread_mutex_unlock(&part->lock);
    }
}

uint64_t span_sets_take_evicted(struct span_sets *sets)
{
    if (atomic_load_explicit(&sets->evicted, memory_order_relaxed) == 0)
        return 0;
    return atomic_exchange_explicit(&sets->evicted, 0, memory_order_relaxed);
}

size_t span_sets_memory(struct span_sets *sets)
{
    size_t size = sizeof *sets + sets->part_count * sizeof *sets->parts;
    for (unsigned i = 0; i < sets->part_count; i++) {
        struct set_part *part = &sets->parts[i];
        pthread_mutex_lock(&part->lock);
        size += part->bytes + (part->owners ? SPAN_SOURCES_MAX * sizeof *part->owners : 0) +
                part->size * (sizeof(struct span_set *) + sizeof(uint32_t)) +
                index_table_memory(&part->table);
        pthread_mutex_unlock(&part->lock);
    }
    return size;
}

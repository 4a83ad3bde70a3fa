#include "core/data/span_shard.h"

#include "core/base/hash.h"
#include "core/base/memory.h"

#include <assert.h>

enum {
    CHUNK_ENTRIES = SPAN_PAGE_SIZE / sizeof(struct span_entry),
    PACK_AT_ONCE = 16,
    BLOCK_PAGES_MIN = 8, /* so that a small shard may have some pages with holes */
};

struct span_chunk {
    struct span_entry entries[CHUNK_ENTRIES];
};

struct span_block_page {
    struct span_block_page *next;
    struct span_block_page *previous;
    uint32_t blocks; /* in use */
    uint32_t stored; /* in all */
    uint32_t used;   /* bytes, this header included */
};

_Static_assert(sizeof(struct span_entry) == 64, "a look-up waits for one line");
_Static_assert((CHUNK_ENTRIES & (CHUNK_ENTRIES - 1)) == 0, "numbers of entries may wrap");
_Static_assert(SPAN_SHARD_BLOCK_MAX + sizeof(struct span_block_page) < SPAN_PAGE_SIZE,
               "a block fits");

void span_shard_init(struct span_shard *shard, struct span_pages *memory, size_t totals_size,
                     size_t blocks_max_bytes)
{
    assert(totals_size % sizeof(uint64_t) == 0 && totals_size <= SPAN_SHARD_BLOCK_MAX);
    memset(shard, 0, sizeof *shard);
    pthread_mutexattr_t spins; /* it is held for a microsecond, less than going to sleep takes */
    pthread_mutexattr_init(&spins);
    pthread_mutexattr_settype(&spins, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&shard->lock, &spins);
    pthread_mutexattr_destroy(&spins);
    shard->table.pages = memory;
    shard->chunks_size = 4;
    shard->chunks = memory_zalloc(shard->chunks_size * sizeof(struct span_chunk *));
    shard->memory = memory;
    shard->block_pages_max = blocks_max_bytes / SPAN_PAGE_SIZE;
    if (shard->block_pages_max < BLOCK_PAGES_MIN)
        shard->block_pages_max = BLOCK_PAGES_MIN;
    shard->totals_size = totals_size;
}

static void give_back(struct span_shard *shard, void *page)
{
    if (page)
        span_pages_give_back(shard->memory, page);
}

void span_shard_deinit(struct span_shard *shard)
{
    for (uint32_t i = 0; i < shard->chunks_size; i++)
        give_back(shard, shard->chunks[i]);
    free(shard->chunks);
    while (shard->blocks) {
        struct span_block_page *page = shard->blocks;
        shard->blocks = page->next;
        give_back(shard, page);
    }
    free(shard->waiters);
    span_table_deinit(&shard->table);
    pthread_mutex_destroy(&shard->lock);
}

/* The block of an entry leads to its page. */
static struct span_block_page *page_of(const uint8_t *block)
{
    return (struct span_block_page *)((uintptr_t)block & ~(uintptr_t)(SPAN_PAGE_SIZE - 1));
}

/* --- entries by number --- */

static struct span_chunk **chunk_at(const struct span_shard *shard, uint32_t number)
{
    return &shard->chunks[(number / CHUNK_ENTRIES) & (shard->chunks_size - 1)];
}

static struct span_entry *entry_at(const struct span_shard *shard, uint32_t number)
{
    assert(number - shard->first < shard->next - shard->first);
    return &(*chunk_at(shard, number))->entries[number % CHUNK_ENTRIES];
}

static void grow_chunks(struct span_shard *shard)
{
    uint32_t size = shard->chunks_size * 2;
    struct span_chunk **chunks = memory_zalloc(size * sizeof(struct span_chunk *));
    uint32_t begin = shard->first / CHUNK_ENTRIES;
    for (uint32_t i = 0; i < shard->chunks_size; i++)
        chunks[(begin + i) & (size - 1)] = shard->chunks[(begin + i) & (shard->chunks_size - 1)];
    free(shard->chunks);
    shard->chunks = chunks;
    shard->chunks_size = size;
}

/* Where an entry is going to be. */
static struct span_entry *place_at(struct span_shard *shard, uint32_t number)
{
    struct span_chunk **chunk = chunk_at(shard, number);
    if (!*chunk) {
        *chunk = span_pages_take(shard->memory);
        shard->chunk_count++;
    }
    return &(*chunk)->entries[number % CHUNK_ENTRIES];
}

static void give_back_chunk(struct span_shard *shard, uint32_t number)
{
    struct span_chunk **chunk = chunk_at(shard, number);
    if (!*chunk)
        return;
    give_back(shard, *chunk);
    *chunk = NULL;
    shard->chunk_count--;
}

static struct span_entry *append_entry(struct span_shard *shard, uint32_t *number_out)
{
    uint32_t number = shard->next;
    uint32_t used = number / CHUNK_ENTRIES - shard->first / CHUNK_ENTRIES;
    if (number % CHUNK_ENTRIES == 0 && (used & (UINT32_MAX / CHUNK_ENTRIES)) >= shard->chunks_size)
        grow_chunks(shard);
    struct span_entry *entry = place_at(shard, number);
    shard->next++;
    *number_out = number;
    memset(entry, 0, sizeof *entry);
    return entry;
}

/* What packing left behind has no entries, and mostly no chunks. */
static void skip_packed(struct span_shard *shard)
{
    if (shard->packs_to / CHUNK_ENTRIES != shard->packs_from / CHUNK_ENTRIES)
        give_back_chunk(shard, shard->packs_to);
    shard->first = shard->packs_to = shard->packs_from;
}

/* Dead entries at the front go, and with them the chunks that they filled. */
static void trim_front(struct span_shard *shard)
{
    while (shard->first != shard->next) {
        if (shard->packs && shard->first == shard->packs_to)
            skip_packed(shard);
        if (shard->first == shard->next ||
            !(entry_at(shard, shard->first)->flags & SPAN_ENTRY_DEAD))
            return;
        shard->first++;
        if (shard->first % CHUNK_ENTRIES == 0)
            give_back_chunk(shard, shard->first - 1);
    }
}

static struct span_slot *slot_of(struct span_shard *shard, const struct span_entry *entry);

/* Numbers wrap. */
static bool is_before(uint32_t number, uint32_t other)
{
    return (int32_t)(number - other) < 0;
}

static void pack_one(struct span_shard *shard)
{
    uint32_t from = shard->packs_from++;
    struct span_entry *entry = entry_at(shard, from);
    if (!(entry->flags & SPAN_ENTRY_DEAD)) {
        uint32_t to = shard->packs_to++;
        if (to != from) {
            slot_of(shard, entry)->number = to;
            *place_at(shard, to) = *entry;
            entry->flags = SPAN_ENTRY_DEAD;
        }
    }
    uint32_t chunk = from - from % CHUNK_ENTRIES;
    bool leaves = shard->packs_from % CHUNK_ENTRIES == 0 || shard->packs_from == shard->next;
    if (leaves && !is_before(chunk, shard->packs_to))
        give_back_chunk(shard, chunk);
}

/* Each touch leaves a dead entry behind, and a live one at the front keeps all of them: when they
 * are the most, the live ones move together, in their order. */
void span_shard_tidy(struct span_shard *shard)
{
    if (!shard->packs) {
        if (shard->next - shard->first <= ((uint64_t)shard->table.live + CHUNK_ENTRIES) * 2)
            return;
        shard->packs = true;
        shard->packs_from = shard->packs_to = shard->first;
    }
    if (is_before(shard->packs_from, shard->first)) /* the front went past it */
        shard->packs_from = shard->packs_to = shard->first;
    for (int i = 0; i < PACK_AT_ONCE && shard->packs_from != shard->next; i++)
        pack_one(shard);
    if (shard->packs_from == shard->next) {
        shard->next = shard->packs_to;
        shard->packs = false;
    }
}

struct span_entry *span_shard_oldest(struct span_shard *shard)
{
    trim_front(shard);
    return shard->first == shard->next ? NULL : entry_at(shard, shard->first);
}

/* --- the table --- */

static uint32_t tag_of(const struct span_entry *entry)
{
    return span_table_tag(hash_u64(entry->span_id));
}

/* Where the table says that entry is. */
static struct span_slot *slot_of(struct span_shard *shard, const struct span_entry *entry)
{
    struct span_probe probe = span_table_probe(&shard->table, tag_of(entry));
    struct span_slot *slot = span_probe_next(&probe);
    while (slot && entry_at(shard, slot->number) != entry)
        slot = span_probe_next(&probe);
    assert(slot);
    return slot;
}

/* Frees what the entry refers to; its slot is the caller's. */
static void bury(struct span_shard *shard, struct span_entry *entry);
static bool has_few_left(const struct span_block_page *page);
static void move_block(struct span_shard *shard, struct span_entry *entry);

static void note_evicted(struct span_shard *shard, enum span_eviction reason)
{
    shard->evicted[reason]++;
    shard->evicted_any = true;
}

/* The oldest entry among those that a probe for tag passes has to go. */
static void evict_crowded(struct span_shard *shard, uint32_t tag)
{
    struct span_probe probe = span_table_probe(&shard->table, tag);
    struct span_slot *oldest = span_probe_any(&probe);
    assert(oldest);
    for (struct span_slot *slot = oldest; slot; slot = span_probe_any(&probe))
        if (slot->number - shard->first < oldest->number - shard->first)
            oldest = slot;
    struct span_entry *entry = entry_at(shard, oldest->number);
    span_table_remove(&shard->table, oldest);
    bury(shard, entry);
    note_evicted(shard, SPAN_EVICTED_CROWDED);
}

unsigned span_shard_matches(struct span_shard *shard, uint32_t tag, uint64_t span_id,
                            uint8_t profile_flag, struct span_found *out)
{
    struct span_probe probe = span_table_probe(&shard->table, tag);
    unsigned count = 0;
    for (struct span_slot *slot; (slot = span_probe_next(&probe));) {
        struct span_entry *entry = entry_at(shard, slot->number);
        if (entry->span_id == span_id && (entry->flags & SPAN_ENTRY_PROFILE) == profile_flag) {
            assert(count < SPAN_SHARD_SAME_ID);
            out[count++] = (struct span_found){entry, slot->number};
        }
    }
    return count;
}

struct span_entry *span_shard_numbered(struct span_shard *shard, uint32_t number)
{
    bool is_used = number - shard->first < shard->next - shard->first;
    if (shard->packs && number - shard->packs_to < shard->packs_from - shard->packs_to)
        is_used = false; /* nor has it memory */
    struct span_entry *entry = is_used ? entry_at(shard, number) : NULL;
    return entry && !(entry->flags & SPAN_ENTRY_DEAD) ? entry : NULL;
}

void span_shard_prefetch_slot(const struct span_shard *shard, uint32_t tag)
{
    span_table_prefetch(&shard->table, tag);
}

static const struct span_entry *first_entry(const struct span_shard *shard, uint32_t tag)
{
    struct span_probe probe = span_table_probe(&shard->table, tag);
    const struct span_slot *slot = span_probe_next(&probe);
    return slot ? entry_at(shard, slot->number) : NULL;
}

void span_shard_prefetch_entry(const struct span_shard *shard, uint32_t tag)
{
    __builtin_prefetch(first_entry(shard, tag));
}

void span_shard_prefetch_block(const struct span_shard *shard, uint32_t tag)
{
    const struct span_entry *entry = first_entry(shard, tag);
    if (!entry || !entry->block)
        return;
    __builtin_prefetch(entry->block);
    __builtin_prefetch(entry->block + 64); /* most do not fit into what is left of a line */
}

/* Samples name ids that they got from elsewhere: what only they know goes before a span. */
static bool leaves_before(const struct span_shard *shard, const struct span_found *a,
                          const struct span_found *b)
{
    if ((a->entry->flags ^ b->entry->flags) & SPAN_ENTRY_HAS_SPAN)
        return !(a->entry->flags & SPAN_ENTRY_HAS_SPAN);
    return a->number - shard->first < b->number - shard->first;
}

static void evict_same_id(struct span_shard *shard, uint32_t tag, uint64_t span_id,
                          uint8_t profile_flag)
{
    struct span_found same[SPAN_SHARD_SAME_ID];
    if (span_shard_matches(shard, tag, span_id, profile_flag, same) < SPAN_SHARD_SAME_ID)
        return; /* one of them was the oldest of all and has left */
    const struct span_found *leaves = &same[0];
    for (unsigned i = 1; i < SPAN_SHARD_SAME_ID; i++)
        if (leaves_before(shard, &same[i], leaves))
            leaves = &same[i];
    span_shard_remove(shard, leaves->entry);
    note_evicted(shard, SPAN_EVICTED_SAME_ID);
}

struct span_entry *span_shard_insert(struct span_shard *shard, uint32_t tag, uint64_t span_id,
                                     uint8_t profile_flag, unsigned same_id)
{
    if (same_id == SPAN_SHARD_SAME_ID)
        evict_same_id(shard, tag, span_id, profile_flag);
    uint32_t number;
    struct span_entry *entry = append_entry(shard, &number);
    entry->span_id = span_id;
    entry->flags = profile_flag;
    shard->live_profiles += profile_flag != 0;
    while (!span_table_insert(&shard->table, tag, number)) /* what moved up may fill the hole */
        evict_crowded(shard, tag);
    return entry;
}

struct span_entry *span_shard_touch(struct span_shard *shard, struct span_entry *entry)
{
    struct span_slot *slot = slot_of(shard, entry);
    if (slot->number == shard->next - 1)
        return entry;
    struct span_entry *moved = append_entry(shard, &slot->number);
    *moved = *entry;
    entry->flags = SPAN_ENTRY_DEAD;
    if (moved->block && has_few_left(page_of(moved->block)))
        move_block(shard, moved);
    return moved;
}

void span_shard_remove(struct span_shard *shard, struct span_entry *entry)
{
    span_table_remove(&shard->table, slot_of(shard, entry));
    bury(shard, entry);
    trim_front(shard);
}

/* A full index gives up one entry for each that comes: this one is next. */
static void prefetch_oldest(struct span_shard *shard)
{
    if (shard->first == shard->next)
        return;
    const struct span_entry *entry = entry_at(shard, shard->first);
    span_table_prefetch(&shard->table, tag_of(entry));
    if (entry->block)
        __builtin_prefetch(page_of(entry->block));
}

bool span_shard_evict(struct span_shard *shard, const struct span_entry *keep,
                      enum span_eviction reason)
{
    struct span_entry *oldest = span_shard_oldest(shard);
    if (!oldest || oldest == keep)
        return false;
    uint64_t last = oldest->samples_last_ns > oldest->span_arrived_ns ? oldest->samples_last_ns
                                                                      : oldest->span_arrived_ns;
    if (last >= shard->live_since_ns)
        note_evicted(shard, reason);
    span_shard_remove(shard, oldest);
    prefetch_oldest(shard);
    return true;
}

/* --- pages --- */

static void new_page(struct span_shard *shard, const struct span_entry *keep)
{
    while (shard->block_pages >= shard->block_pages_max &&
           span_shard_evict(shard, keep, SPAN_EVICTED_MEMORY)) {
    }
    if (shard->blocks && shard->blocks->blocks == 0)
        return; /* that emptied the current one, which starts again */
    struct span_block_page *page = span_pages_take(shard->memory);
    *page = (struct span_block_page){.next = shard->blocks, .used = sizeof *page};
    if (shard->blocks)
        shard->blocks->previous = page;
    shard->blocks = page;
    shard->block_pages++;
}

static void release_block(struct span_shard *shard, uint8_t *block)
{
    if (!block)
        return;
    struct span_block_page *page = page_of(block);
    assert(page->blocks > 0);
    if (--page->blocks > 0)
        return;
    if (page == shard->blocks) { /* the current one starts again */
        page->used = sizeof *page;
        page->stored = 0;
        return;
    }
    page->previous->next = page->next;
    if (page->next)
        page->next->previous = page->previous;
    shard->block_pages--;
    give_back(shard, page);
}

static uint8_t *new_block(struct span_shard *shard, size_t size, const struct span_entry *keep)
{
    size = (size + 7) & ~(size_t)7;
    if (!shard->blocks || shard->blocks->used + size > SPAN_PAGE_SIZE)
        new_page(shard, keep);
    struct span_block_page *page = shard->blocks;
    uint8_t *block = (uint8_t *)page + page->used;
    page->used += (uint32_t)size;
    page->blocks++;
    page->stored++;
    return block;
}

/* What comes again and again must not keep a page each. */
static bool has_few_left(const struct span_block_page *page)
{
    return page->blocks < page->stored / 2;
}

static void move_block(struct span_shard *shard, struct span_entry *entry)
{
    const struct span_stored_facts *facts = span_entry_facts(shard, entry);
    size_t size = shard->totals_size + (facts ? sizeof *facts + facts->values_size : 0);
    uint8_t *old = entry->block;
    uint8_t *block = new_block(shard, size, entry);
    memcpy(block, old, size);
    entry->block = block;
    release_block(shard, old);
}

const struct span_stored_facts *span_entry_facts(const struct span_shard *shard,
                                                 const struct span_entry *entry)
{
    if (!(entry->flags & SPAN_ENTRY_HAS_SPAN))
        return NULL;
    return (const struct span_stored_facts *)(const void *)(entry->block + shard->totals_size);
}

void span_shard_store(struct span_shard *shard, struct span_entry *entry, const uint64_t *totals,
                      const struct span_stored_facts *facts, const uint8_t *values)
{
    size_t head = shard->totals_size;
    size_t size = head + sizeof *facts + facts->values_size;
    assert(size <= SPAN_SHARD_BLOCK_MAX);
    uint8_t *block = new_block(shard, size, entry);
    if (totals)
        memcpy(block, totals, head);
    memcpy(block + head, facts, sizeof *facts);
    if (facts->values_size > 0)
        memcpy(block + head + sizeof *facts, values, facts->values_size);
    release_block(shard, entry->block);
    entry->block = block;
    entry->flags = (uint8_t)((entry->flags & ~SPAN_ENTRY_HAS_TOTALS) | SPAN_ENTRY_HAS_SPAN |
                             (totals ? SPAN_ENTRY_HAS_TOTALS : 0));
}

uint64_t *span_shard_open_totals(struct span_shard *shard, struct span_entry *entry)
{
    if (!entry->block)
        entry->block = new_block(shard, shard->totals_size, entry);
    if (!(entry->flags & SPAN_ENTRY_HAS_TOTALS))
        memset(entry->block, 0, shard->totals_size);
    entry->flags |= SPAN_ENTRY_HAS_TOTALS;
    return span_entry_totals(entry);
}

/* --- waiters --- */

static uint32_t new_waiter(struct span_shard *shard)
{
    if (shard->waiters_free) {
        uint32_t index = shard->waiters_free;
        shard->waiters_free = shard->waiters[index].next;
        return index;
    }
    if (shard->waiters_used + 1 >= shard->waiters_size) {
        shard->waiters_size = shard->waiters_size ? shard->waiters_size * 2 : 16;
        shard->waiters = memory_grow(shard->waiters, shard->waiters_size, sizeof *shard->waiters);
    }
    return ++shard->waiters_used;
}

static void free_waiter(struct span_shard *shard, struct span_entry *entry, uint32_t place)
{
    struct span_waiter_node *waiter = &shard->waiters[place];
    if (waiter->previous)
        shard->waiters[waiter->previous].next = waiter->next;
    else
        entry->waiters = waiter->next;
    if (waiter->next)
        shard->waiters[waiter->next].previous = waiter->previous;
    *waiter = (struct span_waiter_node){.next = shard->waiters_free};
    shard->waiters_free = place;
}

uint32_t span_shard_add_waiter(struct span_shard *shard, struct span_entry *entry, uint32_t worker,
                               uint64_t hold, uint32_t waits_for)
{
    uint32_t place = new_waiter(shard), next = entry->waiters;
    shard->waiters[place] = (struct span_waiter_node){
        .hold = hold, .worker = worker, .waits_for = waits_for, .next = next};
    if (next)
        shard->waiters[next].previous = place;
    entry->waiters = place;
    return place;
}

bool span_shard_take_waiter(struct span_shard *shard, struct span_entry *entry, uint32_t waits_for,
                            uint32_t *worker_out, uint64_t *hold_out)
{
    uint32_t place = entry->waiters;
    if (!place || shard->waiters[place].waits_for != waits_for)
        return false;
    *worker_out = shard->waiters[place].worker;
    *hold_out = shard->waiters[place].hold;
    free_waiter(shard, entry, place);
    return true;
}

void span_shard_drop_waiter(struct span_shard *shard, struct span_entry *entry, uint32_t place,
                            uint32_t worker, uint64_t hold, uint32_t waits_for)
{
    if (place == 0 || place > shard->waiters_used)
        return;
    const struct span_waiter_node *waiter = &shard->waiters[place];
    bool is_first_elsewhere = !waiter->previous && entry->waiters != place;
    if (waiter->hold == hold && waiter->worker == worker && waiter->waits_for == waits_for &&
        !is_first_elsewhere)
        free_waiter(shard, entry, place);
}

static void bury(struct span_shard *shard, struct span_entry *entry)
{
    while (entry->waiters)
        free_waiter(shard, entry, entry->waiters);
    release_block(shard, entry->block);
    shard->live_profiles -= (entry->flags & SPAN_ENTRY_PROFILE) != 0;
    entry->block = NULL;
    entry->flags = SPAN_ENTRY_DEAD;
}

size_t span_shard_memory(const struct span_shard *shard)
{
    return span_table_memory(&shard->table) +
           ((size_t)shard->chunk_count + shard->block_pages) * SPAN_PAGE_SIZE +
           shard->waiters_size * sizeof(struct span_waiter_node);
}

#include "core/data/span_shard.h"

#include "core/base/hash.h"
#include "core/base/memory.h"

#include <assert.h>

enum {
    CHUNK_ENTRIES = SPAN_PAGE_SIZE / sizeof(struct span_entry),
    PACK_AT_ONCE = 16,
    BLOCK_PAGES_MIN = 8, /* so that a small shard may have some pages that are partly free */
    EVICT_AT_ONCE = 16,  /* entries evicted for each look-up of the largest source */
    EVICT_PART = 256,    /* but at most this part of all entries */
    /* Bytes of blocks from which a source has pages of its own. A partly filled page is then small
     * in comparison. */
    OWN_PAGES_BYTES = 2 * SPAN_PAGE_SIZE,
};

struct span_chunk {
    struct span_entry entries[CHUNK_ENTRIES];
};

/* A page of blocks, in the list of a source. */
struct span_block_page {
    struct span_block_page *older;
    struct span_block_page *newer;
    uint32_t blocks; /* blocks in use */
    uint32_t stored; /* blocks stored, including released ones */
    uint32_t used;   /* bytes, this header included */
    uint32_t group;  /* number of the source */
};

/* Follows the totals in the block of a span. */
struct span_times {
    uint64_t start_ns;
    uint64_t end_ns;
};

_Static_assert(sizeof(struct span_entry) == 64, "a look-up waits for one line");
_Static_assert((CHUNK_ENTRIES & (CHUNK_ENTRIES - 1)) == 0, "numbers of entries may wrap");
_Static_assert(SPAN_SHARD_BLOCK_MAX + sizeof(struct span_block_page) < SPAN_PAGE_SIZE &&
                   SPAN_SHARD_BLOCK_MAX <= UINT16_MAX,
               "a block fits");

void span_shard_init(struct span_shard *shard, struct span_pages *memory, size_t totals_size,
                     size_t blocks_max_bytes)
{
    assert(totals_size % sizeof(uint64_t) == 0 && totals_size <= SPAN_SHARD_BLOCK_MAX);
    memset(shard, 0, sizeof *shard);
    pthread_mutexattr_t spins; /* the lock is held for a microsecond, less than sleeping takes */
    pthread_mutexattr_init(&spins);
    pthread_mutexattr_settype(&spins, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&shard->lock, &spins);
    pthread_mutexattr_destroy(&spins);
    shard->table.pages = memory;
    shard->chunks_size = 4;
    shard->chunks = memory_zalloc(shard->chunks_size * sizeof(struct span_chunk *));
    shard->newer = memory_zalloc(shard->chunks_size * sizeof(uint32_t *));
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

static void free_pages(struct span_shard *shard)
{
    for (uint32_t i = 0; i < shard->shares.size; i++)
        for (struct span_block_page *page = shard->shares.of[i].newest_page, *older; page;
             page = older) {
            older = page->older;
            give_back(shard, page);
        }
}

void span_shard_deinit(struct span_shard *shard)
{
    for (uint32_t i = 0; i < shard->chunks_size; i++) {
        give_back(shard, shard->chunks[i]);
        free(shard->newer[i]);
    }
    free(shard->chunks);
    free(shard->newer);
    free_pages(shard);
    span_shares_deinit(&shard->shares);
    free(shard->waiters);
    span_table_deinit(&shard->table);
    pthread_mutex_destroy(&shard->lock);
}

/* Returns the page of a block. */
static struct span_block_page *page_of(const struct span_block *block)
{
    return (struct span_block_page *)((uintptr_t)block & ~(uintptr_t)(SPAN_PAGE_SIZE - 1));
}

static size_t block_size(const struct span_shard *shard, const struct span_block *block)
{
    size_t size = sizeof *block + shard->totals_size;
    if (block->values_size == SPAN_BLOCK_NO_SPAN)
        return size;
    size_t values = (block->values_size + sizeof(uint64_t) - 1) & ~(sizeof(uint64_t) - 1);
    return size + sizeof(struct span_times) + values;
}

/* ---- entries by number ---- */

static struct span_chunk **chunk_at(const struct span_shard *shard, uint32_t number)
{
    return &shard->chunks[(number / CHUNK_ENTRIES) & (shard->chunks_size - 1)];
}

static struct span_entry *entry_at(const struct span_shard *shard, uint32_t number)
{
    assert(number - shard->first < shard->next - shard->first);
    return &(*chunk_at(shard, number))->entries[number % CHUNK_ENTRIES];
}

/* Returns the address of the number of the next entry of the same source. */
static uint32_t *newer_at(const struct span_shard *shard, uint32_t number)
{
    uint32_t chunk = (number / CHUNK_ENTRIES) & (shard->chunks_size - 1);
    return &shard->newer[chunk][number % CHUNK_ENTRIES];
}

static void grow_chunks(struct span_shard *shard)
{
    uint32_t size = shard->chunks_size * 2;
    struct span_chunk **chunks = memory_zalloc(size * sizeof(struct span_chunk *));
    uint32_t **newer = memory_zalloc(size * sizeof(uint32_t *));
    uint32_t begin = shard->first / CHUNK_ENTRIES;
    for (uint32_t i = 0; i < shard->chunks_size; i++) {
        uint32_t from = (begin + i) & (shard->chunks_size - 1), to = (begin + i) & (size - 1);
        chunks[to] = shard->chunks[from];
        newer[to] = shard->newer[from];
    }
    free(shard->chunks);
    free(shard->newer);
    shard->chunks = chunks;
    shard->newer = newer;
    shard->chunks_size = size;
}

static __attribute__((noinline)) void new_chunk(struct span_shard *shard, struct span_chunk **chunk)
{
    *chunk = span_pages_take(shard->memory);
    shard->newer[chunk - shard->chunks] = memory_alloc(CHUNK_ENTRIES * sizeof(uint32_t));
    shard->chunk_count++;
}

/* Returns the memory for an entry with this number. */
static struct span_entry *place_at(struct span_shard *shard, uint32_t number)
{
    struct span_chunk **chunk = chunk_at(shard, number);
    if (!*chunk)
        new_chunk(shard, chunk);
    return &(*chunk)->entries[number % CHUNK_ENTRIES];
}

static void give_back_chunk(struct span_shard *shard, uint32_t number)
{
    struct span_chunk **chunk = chunk_at(shard, number);
    if (!*chunk)
        return;
    assert(shard->chunk_count > 0);
    give_back(shard, *chunk);
    *chunk = NULL;
    free(shard->newer[chunk - shard->chunks]);
    shard->newer[chunk - shard->chunks] = NULL;
    shard->chunk_count--;
}

/* Compares entry numbers, which wrap. */
static bool is_before(uint32_t number, uint32_t other)
{
    return (int32_t)(number - other) < 0;
}

/* ---- the entries of a source ---- */

static struct span_share *share_of(const struct span_shard *shard, const struct span_entry *entry)
{
    return &shard->shares.of[entry->source];
}

static void list_append(struct span_shard *shard, struct span_share *share, uint32_t number)
{
    if (share->count++ == 0) {
        share->oldest = number;
        share->packed = number - 1;
    } else {
        *newer_at(shard, share->newest) = number;
    }
    share->newest = number;
}

/* Removes the first entry from the list, which is dead. */
static void list_drop_oldest(struct span_shard *shard, struct span_share *share)
{
    assert(share->count > 0 && share->oldest != share->newest);
    share->oldest = *newer_at(shard, share->oldest);
}

static uint32_t *link_behind_packed(struct span_shard *shard, struct span_share *share)
{
    return is_before(share->packed, share->oldest) ? &share->oldest
                                                   : newer_at(shard, share->packed);
}

/* Updates the list when packing changes the number of an entry. */
static void list_move(struct span_shard *shard, struct span_share *share, uint32_t from,
                      uint32_t to)
{
    uint32_t *link = link_behind_packed(shard, share);
    assert(share->count > 0 && *link == from);
    *newer_at(shard, to) = *newer_at(shard, from);
    *link = to;
    if (share->newest == from)
        share->newest = to;
    share->packed = to;
}

/* Removes a dead entry from the list when packing skips it. It may have been removed already. */
static void list_skip(struct span_shard *shard, struct span_share *share, uint32_t number)
{
    if (share->count == 0)
        return;
    uint32_t *link = link_behind_packed(shard, share);
    if (*link != number)
        return;
    if (share->newest == number) {
        assert(link != &share->oldest); /* a live entry is before it */
        share->newest = share->packed;
    } else {
        *link = *newer_at(shard, number);
    }
}

static void set_flags(struct span_entry *entry, uint32_t flags)
{
    entry->flags = flags & (uint32_t)SPAN_ENTRY_FLAGS;
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

/* Skips the numbers that packing has freed, most of which have no chunks any more. */
static void skip_packed(struct span_shard *shard)
{
    if (shard->packs_to / CHUNK_ENTRIES != shard->packs_from / CHUNK_ENTRIES)
        give_back_chunk(shard, shard->packs_to);
    shard->first = shard->packs_to = shard->packs_from;
}

static void drop_first(struct span_shard *shard)
{
    struct span_share *share = share_of(shard, entry_at(shard, shard->first));
    if (share->count > 0 && share->oldest == shard->first)
        list_drop_oldest(shard, share);
    shard->first++;
    if (shard->first % CHUNK_ENTRIES == 0)
        give_back_chunk(shard, shard->first - 1);
}

/* Removes dead entries at the front, and frees their chunks. */
static void trim_front(struct span_shard *shard)
{
    while (shard->first != shard->next) {
        if (shard->packs && shard->first == shard->packs_to)
            skip_packed(shard);
        if (shard->first == shard->next ||
            !(entry_at(shard, shard->first)->flags & SPAN_ENTRY_DEAD))
            return;
        drop_first(shard);
    }
}

static struct span_slot *slot_of(struct span_shard *shard, const struct span_entry *entry);

static void renumber(struct span_shard *shard, struct span_entry *entry, uint32_t from, uint32_t to)
{
    slot_of(shard, entry)->number = to;
    if (entry->block)
        entry->block->number = to;
    *place_at(shard, to) = *entry;
    list_move(shard, share_of(shard, entry), from, to);
    entry->flags = SPAN_ENTRY_DEAD;
}

static void pack_one(struct span_shard *shard)
{
    assert(shard->packs && !is_before(shard->packs_from, shard->packs_to));
    uint32_t from = shard->packs_from++;
    struct span_entry *entry = entry_at(shard, from);
    if (entry->flags & SPAN_ENTRY_DEAD)
        list_skip(shard, share_of(shard, entry), from);
    else if (shard->packs_to++ == from)
        share_of(shard, entry)->packed = from;
    else
        renumber(shard, entry, from, shard->packs_to - 1);
    uint32_t chunk = from - from % CHUNK_ENTRIES;
    bool leaves = shard->packs_from % CHUNK_ENTRIES == 0 || shard->packs_from == shard->next;
    if (leaves && !is_before(chunk, shard->packs_to))
        give_back_chunk(shard, chunk);
}

static void start_packing(struct span_shard *shard)
{
    shard->packs = true;
    shard->packs_from = shard->packs_to = shard->first;
    for (uint32_t i = 0; i < shard->shares.size; i++)
        shard->shares.of[i].packed = shard->shares.of[i].oldest - 1;
}

/* Each touch leaves a dead entry, and a live entry at the front keeps all dead ones after it. When
 * most are dead, the live ones are moved together, in their order. */
void span_shard_tidy(struct span_shard *shard)
{
    if (!shard->packs) {
        if (shard->next - shard->first <= ((uint64_t)shard->table.live + CHUNK_ENTRIES) * 2)
            return;
        start_packing(shard);
    }
    if (is_before(shard->packs_from, shard->first)) /* the front has passed it */
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

/* ---- the table ---- */

static uint32_t tag_of(const struct span_entry *entry)
{
    return span_table_tag(hash_u64(entry->span_id));
}

/* Returns the slot of an entry in the table. */
static struct span_slot *slot_of(struct span_shard *shard, const struct span_entry *entry)
{
    struct span_probe probe = span_table_probe(&shard->table, tag_of(entry));
    struct span_slot *slot = span_probe_next(&probe);
    while (slot && entry_at(shard, slot->number) != entry)
        slot = span_probe_next(&probe);
    assert(slot);
    return slot;
}

/* Marks an entry as dead and frees its block and waiters. The caller removes its slot. */
static void bury(struct span_shard *shard, struct span_entry *entry);
static bool has_few_left(const struct span_block_page *page);
static void move_block(struct span_shard *shard, struct span_entry *entry);

static void note_evicted(struct span_shard *shard, enum span_eviction reason)
{
    shard->evicted[reason]++;
    shard->evicted_any = true;
}

void span_shard_note_conflict(struct span_shard *shard)
{
    note_evicted(shard, SPAN_NOT_KEPT_CONFLICT);
}

/* Evicts the oldest entry among those that a probe for the tag visits. */
static __attribute__((noinline)) void evict_crowded(struct span_shard *shard, uint32_t tag)
{
    struct span_probe probe = span_table_probe(&shard->table, tag);
    struct span_slot *oldest = span_probe_any(&probe);
    assert(oldest);
    for (struct span_slot *slot = oldest; slot; slot = span_probe_any(&probe))
        if (slot->number - shard->first < oldest->number - shard->first)
            oldest = slot;
    uint32_t number = oldest->number;
    span_table_remove(&shard->table, oldest);
    bury(shard, entry_at(shard, number));
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
        is_used = false; /* its memory may be freed, too */
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
    __builtin_prefetch((const uint8_t *)entry->block +
                       64); /* most blocks extend into the next cache line */
}

/* Whether an entry is evicted before another. Entries without a span are evicted first, because
 * samples can name any ids. */
static bool leaves_before(const struct span_shard *shard, const struct span_found *a,
                          const struct span_found *b)
{
    if ((a->entry->flags ^ b->entry->flags) & SPAN_ENTRY_HAS_SPAN)
        return !(a->entry->flags & SPAN_ENTRY_HAS_SPAN);
    return a->number - shard->first < b->number - shard->first;
}

/* Returns how many entries with one span id an owner and a source have, including the new one. */
static unsigned crowding(const struct span_shard *shard, const struct span_found *same,
                         const struct span_entry *entry, const struct span_source *newcomer)
{
    uint16_t owner = shard->shares.of[entry->source].owner;
    bool is_owner = owner == newcomer->owner, is_source = entry->source == newcomer->number;
    unsigned of_owner = is_owner, of_source = is_source;
    for (unsigned i = 0; i < SPAN_SHARD_SAME_ID; i++) {
        of_owner += shard->shares.of[same[i].entry->source].owner == owner;
        of_source += same[i].entry->source == entry->source;
    }
    return of_owner << 16 | (unsigned)is_owner << 12 | of_source << 4 | is_source;
}

static __attribute__((noinline)) void evict_same_id(struct span_shard *shard, uint32_t tag,
                                                    uint64_t span_id, uint8_t profile_flag,
                                                    const struct span_source *newcomer)
{
    struct span_found same[SPAN_SHARD_SAME_ID];
    if (span_shard_matches(shard, tag, span_id, profile_flag, same) < SPAN_SHARD_SAME_ID)
        return; /* one of them was the oldest of all and was evicted */
    const struct span_found *leaves = &same[0];
    unsigned most = crowding(shard, same, same[0].entry, newcomer);
    for (unsigned i = 1; i < SPAN_SHARD_SAME_ID; i++) {
        unsigned crowds = crowding(shard, same, same[i].entry, newcomer);
        if (crowds < most || (crowds == most && !leaves_before(shard, &same[i], leaves)))
            continue;
        most = crowds;
        leaves = &same[i];
    }
    span_shard_remove(shard, leaves->entry);
    note_evicted(shard, SPAN_EVICTED_SAME_ID);
}

struct span_entry *span_shard_insert(struct span_shard *shard, uint32_t tag, uint64_t span_id,
                                     uint8_t profile_flag, const struct span_source *source,
                                     unsigned same_id)
{
    assert(same_id <= SPAN_SHARD_SAME_ID && source->number < SPAN_SOURCES_MAX);
    if (same_id == SPAN_SHARD_SAME_ID)
        evict_same_id(shard, tag, span_id, profile_flag, source);
    uint32_t number;
    struct span_entry *entry = append_entry(shard, &number);
    entry->span_id = span_id;
    set_flags(entry, profile_flag);
    entry->source = source->number & (SPAN_SOURCES_MAX - 1U);
    list_append(shard, span_shares_open(&shard->shares, source), number);
    shard->live_profiles += profile_flag != 0;
    while (!span_table_insert(&shard->table, tag,
                              number)) /* an entry that moved up may fill the free slot */
        evict_crowded(shard, tag);
    return entry;
}

/* Moves an entry to the end. Its old place is dead, and still in the list of its source. */
static struct span_entry *move_to_end(struct span_shard *shard, struct span_entry *entry,
                                      struct span_slot *slot, uint32_t *number_out)
{
    assert(!(entry->flags & SPAN_ENTRY_DEAD));
    struct span_entry *moved = append_entry(shard, &slot->number);
    *moved = *entry;
    share_of(shard, entry)->count--;
    entry->flags = SPAN_ENTRY_DEAD;
    if (moved->block)
        moved->block->number = slot->number;
    *number_out = slot->number;
    return moved;
}

struct span_entry *span_shard_touch(struct span_shard *shard, struct span_entry *entry)
{
    struct span_slot *slot = slot_of(shard, entry);
    uint32_t number = slot->number;
    if (number == shard->next - 1)
        return entry;
    struct span_entry *moved = move_to_end(shard, entry, slot, &number);
    list_append(shard, share_of(shard, moved), number);
    if (moved->block && has_few_left(page_of(moved->block)))
        move_block(shard, moved);
    return moved;
}

struct span_entry *span_shard_hand_over(struct span_shard *shard, struct span_entry *entry,
                                        const struct span_source *source)
{
    if (entry->source == source->number)
        return span_shard_touch(shard, entry);
    uint32_t number;
    struct span_entry *moved = move_to_end(shard, entry, slot_of(shard, entry), &number);
    size_t size = moved->block ? block_size(shard, moved->block) : 0;
    assert(share_of(shard, moved)->bytes >= size);
    share_of(shard, moved)->bytes -= size;
    moved->source = source->number & (SPAN_SOURCES_MAX - 1U);
    struct span_share *share = span_shares_open(&shard->shares, source);
    list_append(shard, share, number);
    share->bytes += size;
    return moved;
}

/* The caller calls trim_front. */
static void take_out(struct span_shard *shard, struct span_entry *entry)
{
    span_table_remove(&shard->table, slot_of(shard, entry));
    bury(shard, entry);
}

void span_shard_remove(struct span_shard *shard, struct span_entry *entry)
{
    take_out(shard, entry);
    trim_front(shard);
}

/* ---- eviction ---- */

/* The caller calls trim_front. */
static void evict(struct span_shard *shard, struct span_entry *entry, enum span_eviction reason)
{
    uint64_t last = entry->samples_last_ns > entry->span_arrived_ns ? entry->samples_last_ns
                                                                    : entry->span_arrived_ns;
    if (last >= shard->live_since_ns)
        note_evicted(shard, reason);
    take_out(shard, entry);
}

/* Finds the oldest entries of a source, and prefetches the memory needed to remove them. */
static unsigned find_oldest(struct span_shard *shard, struct span_share *share, unsigned most,
                            struct span_entry **oldest_out)
{
    assert(share->count > 0 && most > 0);
    unsigned count = 0;
    for (uint32_t number = share->oldest;; number = *newer_at(shard, number)) {
        struct span_entry *entry = entry_at(shard, number);
        if (!(entry->flags & SPAN_ENTRY_DEAD)) {
            span_table_prefetch(&shard->table, tag_of(entry));
            __builtin_prefetch(entry->block);
            oldest_out[count++] = entry;
        } else if (number == share->oldest) {
            list_drop_oldest(shard, share);
        }
        if (count == most || number == share->newest)
            return count;
    }
}

void span_shard_evict(struct span_shard *shard, const struct span_source *newcomer)
{
    uint16_t number;
    if (!span_shares_heaviest(&shard->shares, SPAN_LOAD_ENTRIES, newcomer->number, &number))
        return;
    struct span_entry *oldest[EVICT_AT_ONCE];
    unsigned most = shard->table.live / EVICT_PART;
    most = most < 1 ? 1 : most < EVICT_AT_ONCE ? most : EVICT_AT_ONCE;
    unsigned count = find_oldest(shard, &shard->shares.of[number], most, oldest);
    for (unsigned i = 0; i < count; i++)
        evict(shard, oldest[i],
              number == newcomer->number ? SPAN_EVICTED_FULL : SPAN_EVICTED_SHARE);
    trim_front(shard);
}

/* ---- pages ---- */

/* Returns the group of pages that a source uses: its own, that of its owner, or 0 for all small
 * owners. */
static uint16_t choose_group(const struct span_shard *shard, uint16_t source)
{
    const struct span_share *share = &shard->shares.of[source];
    if (share->bytes >= OWN_PAGES_BYTES)
        return source;
    bool owner_is_small = span_shares_owner_bytes(&shard->shares, share->owner) < OWN_PAGES_BYTES;
    return owner_is_small ? 0 : share->owner;
}

static void take_page_out(struct span_shard *shard, struct span_block_page *page)
{
    struct span_share *group = &shard->shares.of[page->group];
    *(page->newer ? &page->newer->older : &group->newest_page) = page->older;
    *(page->older ? &page->older->newer : &group->oldest_page) = page->newer;
    assert(group->pages > 0 && shard->block_pages > 0);
    group->pages--;
    shard->block_pages--;
    give_back(shard, page);
}

/* Evicts all entries with blocks in a page, and so frees the page. */
static void evict_page(struct span_shard *shard, struct span_block_page *page)
{
    uint32_t left = page->blocks, at = sizeof *page;
    assert(left > 0);
    while (left > 0) {
        assert(at < page->used);
        struct span_block *block = (struct span_block *)(void *)((uint8_t *)page + at);
        at += (uint32_t)block_size(shard, block);
        struct span_entry *entry = span_shard_numbered(shard, block->number);
        if (!entry || entry->block != block)
            continue; /* it was evicted already */
        left--;
        evict(shard, entry, SPAN_EVICTED_MEMORY);
    }
    trim_front(shard);
}

static struct span_block_page *new_page(struct span_shard *shard, uint16_t number)
{
    uint16_t most;
    while (shard->block_pages >= shard->block_pages_max &&
           span_shares_heaviest(&shard->shares, SPAN_LOAD_PAGES, number, &most))
        evict_page(shard, shard->shares.of[most].oldest_page);
    struct span_share *group = &shard->shares.of[number];
    struct span_block_page *page = span_pages_take(shard->memory);
    *page = (struct span_block_page){
        .older = group->newest_page, .used = sizeof *page, .group = number};
    *(page->older ? &page->older->newer : &group->oldest_page) = page;
    group->newest_page = page;
    group->pages++;
    shard->block_pages++;
    return page;
}

static bool has_room(const struct span_block_page *page, size_t size)
{
    return page && page->used + size <= SPAN_PAGE_SIZE;
}

/* Returns a new page for a group. */
static __attribute__((noinline)) struct span_block_page *next_page(struct span_shard *shard,
                                                                   uint16_t source, size_t size)
{
    uint16_t group = choose_group(shard, source);
    shard->shares.of[source].group = group;
    struct span_block_page *page = shard->shares.of[group].newest_page;
    return has_room(page, size) ? page : new_page(shard, group);
}

/* Releases the block of an entry. */
static void release_block(struct span_shard *shard, struct span_entry *entry)
{
    struct span_block *block = entry->block;
    if (!block)
        return;
    assert(share_of(shard, entry)->bytes >= block_size(shard, block));
    share_of(shard, entry)->bytes -= block_size(shard, block);
    entry->block = NULL;
    struct span_block_page *page = page_of(block);
    assert(page->blocks > 0);
    if (--page->blocks == 0)
        take_page_out(shard, page);
}

static struct span_block *take_room(struct span_shard *shard, const struct span_entry *entry,
                                    size_t size)
{
    struct span_share *share = share_of(shard, entry);
    struct span_block_page *page = shard->shares.of[share->group].newest_page;
    if (!has_room(page, size))
        page = next_page(shard, (uint16_t)entry->source, size);
    struct span_block *block = (struct span_block *)(void *)((uint8_t *)page + page->used);
    page->used += (uint32_t)size;
    assert(page->used <= SPAN_PAGE_SIZE);
    page->blocks++;
    page->stored++;
    share->bytes += size;
    return block;
}

/* Allocates a block for the newest entry, which has none. */
static void new_block(struct span_shard *shard, struct span_entry *entry, uint16_t values_size)
{
    struct span_block head = {.number = shard->next - 1, .values_size = values_size};
    size_t size = block_size(shard, &head);
    assert(!entry->block && size <= SPAN_SHARD_BLOCK_MAX);
    entry->block = take_room(shard, entry, size);
    *entry->block = head;
}

/* Whether few blocks of a page are in use. Entries that are touched regularly must not keep a page
 * each. */
static bool has_few_left(const struct span_block_page *page)
{
    return page->blocks < page->stored / 2;
}

/* Moves a block to the present page of its source, unless that would need an eviction. */
static void move_block(struct span_shard *shard, struct span_entry *entry)
{
    const struct span_block *old = entry->block;
    size_t size = block_size(shard, old);
    const struct span_block_page *to = shard->shares.of[share_of(shard, entry)->group].newest_page;
    if (to == page_of(old) || (!has_room(to, size) && shard->block_pages >= shard->block_pages_max))
        return;
    struct span_block *block = take_room(shard, entry, size);
    memcpy(block, old, size);
    release_block(shard, entry);
    entry->block = block;
}

static struct span_times *times_of(const struct span_shard *shard, const struct span_block *block)
{
    return (struct span_times *)(void *)((uint8_t *)(uintptr_t)(block + 1) + shard->totals_size);
}

struct span_stored_facts span_entry_facts(const struct span_shard *shard,
                                          const struct span_entry *entry)
{
    assert(entry->flags & SPAN_ENTRY_HAS_SPAN);
    const struct span_times *times = times_of(shard, entry->block);
    return (struct span_stored_facts){.start_ns = times->start_ns,
                                      .end_ns = times->end_ns,
                                      .values = (const uint8_t *)(times + 1),
                                      .values_size = entry->block->values_size,
                                      .kind = entry->block->kind,
                                      .status = entry->block->status};
}

/* Whether the entry can keep its block, whose content is replaced. */
static bool keeps_block(const struct span_shard *shard, const struct span_entry *entry,
                        uint32_t values_size)
{
    return entry->block && entry->block->values_size == values_size &&
           page_of(entry->block)->group == share_of(shard, entry)->group;
}

void span_shard_store(struct span_shard *shard, struct span_entry *entry, const uint64_t *totals,
                      const struct span_stored_facts *facts)
{
    assert(facts->values_size < SPAN_BLOCK_NO_SPAN);
    if (!keeps_block(shard, entry, facts->values_size)) {
        release_block(shard, entry);
        new_block(shard, entry, (uint16_t)facts->values_size);
    }
    entry->block->kind = facts->kind;
    entry->block->status = facts->status;
    if (totals)
        memcpy(entry->block + 1, totals, shard->totals_size);
    struct span_times *times = times_of(shard, entry->block);
    *times = (struct span_times){facts->start_ns, facts->end_ns};
    if (facts->values_size > 0)
        memcpy(times + 1, facts->values, facts->values_size);
    uint32_t has_totals = totals ? SPAN_ENTRY_HAS_TOTALS : 0;
    uint32_t others = entry->flags & ~(uint32_t)SPAN_ENTRY_HAS_TOTALS;
    set_flags(entry, others | SPAN_ENTRY_HAS_SPAN | has_totals);
}

uint64_t *span_shard_open_totals(struct span_shard *shard, struct span_entry *entry)
{
    if (!entry->block)
        new_block(shard, entry, SPAN_BLOCK_NO_SPAN);
    if (!(entry->flags & SPAN_ENTRY_HAS_TOTALS))
        memset(entry->block + 1, 0, shard->totals_size);
    entry->flags |= SPAN_ENTRY_HAS_TOTALS;
    return span_entry_totals(entry);
}

/* ---- waiters ---- */

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
    assert(place > 0 && place <= shard->waiters_used && shard->waiters_used < shard->waiters_size);
    struct span_waiter_node *waiter = &shard->waiters[place];
    if (waiter->previous)
        shard->waiters[waiter->previous].next = waiter->next;
    else
        entry->waiters = waiter->next & SPAN_WAITERS_MAX;
    if (waiter->next)
        shard->waiters[waiter->next].previous = waiter->previous;
    *waiter = (struct span_waiter_node){.next = shard->waiters_free};
    shard->waiters_free = place;
}

uint32_t span_shard_add_waiter(struct span_shard *shard, struct span_entry *entry, uint32_t worker,
                               uint64_t hold, uint32_t waits_for)
{
    uint32_t place = new_waiter(shard), next = entry->waiters;
    assert(place <= SPAN_WAITERS_MAX);
    shard->waiters[place] = (struct span_waiter_node){
        .hold = hold, .worker = worker, .waits_for = waits_for, .next = next};
    if (next)
        shard->waiters[next].previous = place;
    entry->waiters = place & SPAN_WAITERS_MAX;
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
    assert(!(entry->flags & SPAN_ENTRY_DEAD));
    while (entry->waiters)
        free_waiter(shard, entry, entry->waiters);
    release_block(shard, entry);
    share_of(shard, entry)->count--;
    assert(!(entry->flags & SPAN_ENTRY_PROFILE) || shard->live_profiles > 0);
    shard->live_profiles -= (entry->flags & SPAN_ENTRY_PROFILE) != 0;
    entry->flags = SPAN_ENTRY_DEAD;
}

size_t span_shard_memory(const struct span_shard *shard)
{
    return span_table_memory(&shard->table) +
           ((size_t)shard->chunk_count + shard->block_pages) * SPAN_PAGE_SIZE +
           (size_t)shard->chunk_count * CHUNK_ENTRIES * sizeof(uint32_t) +
           span_shares_memory(&shard->shares) +
           shard->waiters_size * sizeof(struct span_waiter_node);
}

#include "core/data/span_shard.h"

#include "core/base/hash.h"
#include "core/base/memory.h"

#include <assert.h>

enum {
    CHUNK_ENTRIES = SPAN_CHUNK_ENTRIES,
    PACK_AT_ONCE = 16,
    WRITE_AHEAD = 8,    /* entries: their memory is prefetched */
    TAKE_AHEAD = 8,     /* records of samples: their memory is loaded */
    EVICT_AT_ONCE = 16, /* entries evicted for each look-up of the largest source */
    EVICT_PART = 256,   /* but at most this part of all entries */
    SPARE_AT_ONCE = 16, /* entries that stay because they were used lately */
};

_Static_assert(sizeof(struct span_entry) == 64, "a look-up waits for one line");
_Static_assert((CHUNK_ENTRIES & (CHUNK_ENTRIES - 1)) == 0, "numbers of entries may wrap");
void span_shard_init(struct span_shard *shard, struct span_pages *memory, size_t totals_size,
                     uint64_t likely_entries)
{
    assert(totals_size % sizeof(uint64_t) == 0 && totals_size < SPAN_PAGE_SIZE / 2);
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
    shard->totals_size = totals_size;
    shard->lost_room = likely_entries;
    shard->samples_per_page =
        (uint32_t)(SPAN_PAGE_SIZE / (sizeof(struct span_samples) + totals_size));
}

static void give_back(struct span_shard *shard, void *page)
{
    if (page)
        span_pages_give_back(shard->memory, page);
}

static void free_sample_pages(struct span_shard *shard)
{
    for (uint32_t i = 0; i < shard->sample_pages_count; i++)
        give_back(shard, shard->sample_pages[i]);
    free(shard->sample_pages);
    free(shard->samples_free);
    shard->sample_pages = NULL;
    shard->samples_free = NULL;
    shard->sample_pages_count = shard->samples_used = 0;
    shard->samples_free_count = shard->samples_free_size = 0;
}

void span_shard_deinit(struct span_shard *shard)
{
    for (uint32_t i = 0; i < shard->chunks_size; i++) {
        give_back(shard, shard->chunks[i]);
        free(shard->newer[i]);
    }
    free(shard->chunks);
    free(shard->newer);
    free_sample_pages(shard);
    span_shares_deinit(&shard->shares);
    lost_ids_deinit(&shard->lost);
    free(shard->waiters);
    span_table_deinit(&shard->table);
    pthread_mutex_destroy(&shard->lock);
}

/* ---- entries by number ---- */

static struct span_chunk **chunk_at(const struct span_shard *shard, uint32_t number)
{
    return &shard->chunks[(number / CHUNK_ENTRIES) & (shard->chunks_size - 1)];
}

/* Returns the address of the number of the next entry of the same source. */
static uint32_t *newer_at(const struct span_shard *shard, uint32_t number)
{
    uint32_t chunk = (number / CHUNK_ENTRIES) & (shard->chunks_size - 1);
    return &shard->newer[chunk][number % CHUNK_ENTRIES];
}

static __attribute__((noinline)) void grow_chunks(struct span_shard *shard)
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

static inline void list_append(struct span_shard *shard, struct span_share *share, uint32_t number)
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

/* Returns the place of a new entry, not zeroed. */
static inline struct span_entry *append_entry(struct span_shard *shard, uint32_t *number_out)
{
    uint32_t number = shard->next;
    uint32_t used = number / CHUNK_ENTRIES - shard->first / CHUNK_ENTRIES;
    if (number % CHUNK_ENTRIES == 0 && (used & (UINT32_MAX / CHUNK_ENTRIES)) >= shard->chunks_size)
        grow_chunks(shard);
    struct span_entry *entry = place_at(shard, number);
    if (number % CHUNK_ENTRIES + WRITE_AHEAD < CHUNK_ENTRIES)
        prefetch_to_write(entry + WRITE_AHEAD);
    shard->next++;
    *number_out = number;
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
    struct span_share *share = share_of(shard, span_shard_entry(shard, shard->first));
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
            !(span_shard_entry(shard, shard->first)->flags & SPAN_ENTRY_DEAD))
            return;
        drop_first(shard);
    }
}

static uint32_t tag_of(const struct span_entry *entry);
static uint32_t *number_of(const struct span_shard *shard, const struct span_entry *entry,
                           uint32_t tag);

static void renumber(struct span_shard *shard, struct span_entry *entry, uint32_t from, uint32_t to)
{
    *number_of(shard, entry, tag_of(entry)) = to;
    *place_at(shard, to) = *entry;
    list_move(shard, share_of(shard, entry), from, to);
    entry->flags = SPAN_ENTRY_DEAD;
}

static void pack_one(struct span_shard *shard)
{
    assert(shard->packs && !is_before(shard->packs_from, shard->packs_to));
    uint32_t from = shard->packs_from++;
    struct span_entry *entry = span_shard_entry(shard, from);
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
void span_shard_pack(struct span_shard *shard)
{
    if (!shard->packs)
        start_packing(shard);
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
    return shard->first == shard->next ? NULL : span_shard_entry(shard, shard->first);
}

/* ---- the table ---- */

static uint32_t tag_of(const struct span_entry *entry)
{
    return span_table_tag(hash_u64(entry->span_id));
}

/* Returns the address of an entry's number in the table. tag: of the entry. */
static uint32_t *number_of(const struct span_shard *shard, const struct span_entry *entry,
                           uint32_t tag)
{
    struct span_probe probe = span_table_probe(&shard->table, tag);
    uint32_t *number = span_probe_next(&probe);
    while (number && span_shard_entry(shard, *number) != entry)
        number = span_probe_next(&probe);
    assert(number);
    return number;
}

/* Marks an entry as dead and frees its record and waiters. The caller removes its slot. */
static void bury(struct span_shard *shard, struct span_entry *entry);

static void note_evicted(struct span_shard *shard, enum span_eviction reason)
{
    shard->evicted[reason]++;
    shard->evicted_any = true;
}

/* Call it before an entry is removed to make room. */
static void note_lost(struct span_shard *shard, const struct span_entry *entry, uint32_t tag)
{
    unsigned awaits_span = entry->flags & (SPAN_ENTRY_HAS_TOTALS | SPAN_ENTRY_HAS_SPAN);
    if (awaits_span == SPAN_ENTRY_HAS_TOTALS &&
        span_shard_last_arrival(shard, entry) >= shard->live_since_ns)
        lost_ids_add(&shard->lost, tag, shard->lost_room, shard->now_ns, shard->window_ns);
}

void span_shard_note_conflict(struct span_shard *shard)
{
    note_evicted(shard, SPAN_NOT_KEPT_CONFLICT);
}

/* Evicts the oldest entry among those that a probe for the tag visits. */
static __attribute__((noinline)) void evict_crowded(struct span_shard *shard, uint32_t tag)
{
    struct span_probe probe = span_table_probe(&shard->table, tag);
    assert(probe.line); /* all lines of the probe are full */
    uint32_t *oldest = &probe.line->numbers[0];
    do {
        for (unsigned slot = 0; slot < SPAN_LINE_SLOTS; slot++)
            if (probe.line->numbers[slot] - shard->first < *oldest - shard->first)
                oldest = &probe.line->numbers[slot];
    } while (span_probe_behind(&probe));
    struct span_entry *entry = span_shard_entry(shard, *oldest);
    note_lost(shard, entry, tag_of(entry));
    span_table_remove(&shard->table, tag_of(entry), *oldest);
    bury(shard, entry);
    note_evicted(shard, SPAN_EVICTED_CROWDED);
}

unsigned span_shard_matches(const struct span_shard *shard, uint32_t tag, uint64_t span_id,
                            uint8_t profile_flag, struct span_found *out)
{
    struct span_probe probe = span_table_probe(&shard->table, tag);
    unsigned count = 0;
    for (const uint32_t *number; (number = span_probe_next(&probe));) {
        struct span_entry *entry = span_shard_entry(shard, *number);
        if (entry->span_id == span_id && (entry->flags & SPAN_ENTRY_PROFILE) == profile_flag) {
            assert(count < SPAN_SHARD_SAME_ID);
            out[count++] = (struct span_found){entry, *number};
        }
    }
    return count;
}

struct span_entry *span_shard_numbered(struct span_shard *shard, uint32_t number)
{
    bool is_used = number - shard->first < shard->next - shard->first;
    if (shard->packs && number - shard->packs_to < shard->packs_from - shard->packs_to)
        is_used = false; /* its memory may be freed, too */
    struct span_entry *entry = is_used ? span_shard_entry(shard, number) : NULL;
    return entry && !(entry->flags & SPAN_ENTRY_DEAD) ? entry : NULL;
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
    note_lost(shard, leaves->entry, tag);
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
    *entry = (struct span_entry){.span_id = span_id,
                                 .flags = profile_flag & (SPAN_ENTRY_FLAGS + 0U),
                                 .source = source->number & (SPAN_SOURCES_MAX - 1U)};
    list_append(shard, span_shares_open(&shard->shares, source), number);
    shard->live_profiles += profile_flag != 0;
    while (!span_table_insert(&shard->table, tag,
                              number)) /* an entry that moved up may fill the free slot */
        evict_crowded(shard, tag);
    return entry;
}

/* Moves an entry to the end. Its old place is dead, and still in the list of its source. number:
 * its number in the table, which changes. */
static struct span_entry *move_to_end(struct span_shard *shard, struct span_entry *entry,
                                      uint32_t *number)
{
    assert(!(entry->flags & SPAN_ENTRY_DEAD));
    struct span_entry *moved = append_entry(shard, number);
    *moved = *entry;
    share_of(shard, entry)->count--;
    entry->flags = SPAN_ENTRY_DEAD;
    return moved;
}

struct span_entry *span_shard_touch(struct span_shard *shard, struct span_entry *entry)
{
    uint32_t *number = number_of(shard, entry, tag_of(entry));
    if (*number == shard->next - 1)
        return entry;
    struct span_entry *moved = move_to_end(shard, entry, number);
    list_append(shard, share_of(shard, moved), *number);
    return moved;
}

struct span_entry *span_shard_hand_over(struct span_shard *shard, struct span_entry *entry,
                                        const struct span_source *source)
{
    if (entry->source == source->number)
        return span_shard_touch(shard, entry);
    uint32_t *number = number_of(shard, entry, tag_of(entry));
    struct span_entry *moved = move_to_end(shard, entry, number);
    moved->source = source->number & (SPAN_SOURCES_MAX - 1U);
    list_append(shard, span_shares_open(&shard->shares, source), *number);
    return moved;
}

void span_shard_remove(struct span_shard *shard, struct span_entry *entry)
{
    uint32_t tag = tag_of(entry);
    span_table_remove(&shard->table, tag, *number_of(shard, entry, tag));
    bury(shard, entry);
    trim_front(shard);
}

/* ---- eviction ---- */

/* An entry that may leave. */
struct oldest {
    struct span_entry *entry;
    uint32_t number;
    uint32_t tag;
};

/* The caller calls trim_front. */
static void evict(struct span_shard *shard, const struct oldest *oldest, enum span_eviction reason)
{
    if (span_shard_last_arrival(shard, oldest->entry) >= shard->live_since_ns)
        note_evicted(shard, reason);
    note_lost(shard, oldest->entry, oldest->tag);
    span_table_remove(&shard->table, oldest->tag, oldest->number);
    bury(shard, oldest->entry);
}

/* Finds the oldest entries of a source, and fetches the memory needed to remove them. */
static unsigned find_oldest(struct span_shard *shard, struct span_share *share, unsigned most,
                            struct oldest *oldest_out)
{
    assert(share->count > 0 && most > 0);
    unsigned count = 0;
    for (uint32_t number = share->oldest;; number = *newer_at(shard, number)) {
        struct span_entry *entry = span_shard_entry(shard, number);
        if (!(entry->flags & SPAN_ENTRY_DEAD)) {
            oldest_out[count] = (struct oldest){entry, number, tag_of(entry)};
            span_table_prefetch(&shard->table, oldest_out[count++].tag);
            prefetch(span_shard_samples(shard, entry));
        } else if (number == share->oldest) {
            list_drop_oldest(shard, share);
        }
        if (count == most || number == share->newest)
            return count;
    }
}

/* Whether samples of an entry arrived in the second half of the time since it did. */
static bool was_used_lately(const struct span_shard *shard, const struct span_entry *entry)
{
    const struct span_samples *samples = span_shard_samples(shard, entry);
    uint64_t newest_ns = span_shard_entry(shard, shard->next - 1)->arrived_ns;
    return samples && samples->last_ns > entry->arrived_ns && newest_ns > entry->arrived_ns &&
           samples->last_ns - entry->arrived_ns > (newest_ns - entry->arrived_ns) / 2;
}

static void evict_some(struct span_shard *shard, struct span_share *share, unsigned left,
                       enum span_eviction reason)
{
    struct oldest oldest[EVICT_AT_ONCE];
    unsigned spared = 0;
    while (left > 0 && share->count > 0) {
        unsigned count = find_oldest(shard, share, left, oldest);
        for (unsigned i = 0; i < count; i++) {
            if (spared < SPARE_AT_ONCE && was_used_lately(shard, oldest[i].entry)) {
                span_shard_touch(shard, oldest[i].entry);
                spared++;
            } else {
                evict(shard, &oldest[i], reason);
                left--;
            }
        }
    }
}

/* Fetches memory that the next evictions of the source need: of the entries that leave next, which
 * the call before has fetched, what find_oldest fetches; then the entries behind them. */
static void fetch_next(const struct span_shard *shard, const struct span_share *share,
                       unsigned count)
{
    uint32_t number = share->oldest;
    for (unsigned i = 0; share->count > 0 && i < 2 * count; i++) {
        const struct span_entry *entry = span_shard_entry(shard, number);
        if (i >= count) {
            prefetch(entry);
        } else if (!(entry->flags & SPAN_ENTRY_DEAD)) {
            span_table_prefetch(&shard->table, tag_of(entry));
            prefetch(span_shard_samples(shard, entry));
        }
        if (number == share->newest)
            return;
        number = *newer_at(shard, number);
    }
}

void span_shard_evict(struct span_shard *shard, const struct span_source *newcomer)
{
    uint16_t number;
    if (!span_shares_heaviest(&shard->shares, newcomer->number, &number))
        return;
    struct span_share *share = &shard->shares.of[number];
    unsigned most = shard->table.live / EVICT_PART;
    most = most < 1 ? 1 : most < EVICT_AT_ONCE ? most : EVICT_AT_ONCE;
    evict_some(shard, share, most,
               number == newcomer->number ? SPAN_EVICTED_FULL : SPAN_EVICTED_SHARE);
    trim_front(shard);
    fetch_next(shard, share, most);
}

/* ---- records of samples ---- */

static struct span_samples *record_at(const struct span_shard *shard, uint32_t number)
{
    const struct span_entry holder = {.samples = number & (SPAN_ENTRY_SAMPLES_MAX + 0U)};
    return span_shard_samples(shard, &holder);
}

/* Takes the record that was freed last, and fetches the one that will be taken some records later.
 */
static uint32_t take_free(struct span_shard *shard)
{
    uint32_t count = --shard->samples_free_count;
    if (count > TAKE_AHEAD)
        prefetch(record_at(shard, shard->samples_free[count - TAKE_AHEAD]));
    return shard->samples_free[count];
}

static uint32_t new_samples(struct span_shard *shard)
{
    shard->samples_live++;
    if (shard->samples_free_count > 0)
        return take_free(shard);
    if (shard->samples_used == shard->sample_pages_count * shard->samples_per_page) {
        shard->sample_pages =
            memory_grow(shard->sample_pages, shard->sample_pages_count + 1, sizeof(uint8_t *));
        shard->sample_pages[shard->sample_pages_count++] = span_pages_take(shard->memory);
    }
    return ++shard->samples_used;
}

static void free_record(struct span_shard *shard, uint32_t number)
{
    if (shard->samples_free_count == shard->samples_free_size) {
        shard->samples_free_size = shard->samples_free_size ? shard->samples_free_size * 2 : 64;
        shard->samples_free =
            memory_grow(shard->samples_free, shard->samples_free_size, sizeof(uint32_t));
    }
    shard->samples_free[shard->samples_free_count++] = number;
}

struct span_samples *span_shard_open_samples(struct span_shard *shard, struct span_entry *entry)
{
    if (entry->samples)
        return span_shard_samples(shard, entry);
    uint32_t number = new_samples(shard);
    assert(number <= SPAN_ENTRY_SAMPLES_MAX);
    entry->samples = number & (SPAN_ENTRY_SAMPLES_MAX + 0U);
    struct span_samples *samples = span_shard_samples(shard, entry);
    *samples = (struct span_samples){.first_ns = 0};
    return samples;
}

static void release_samples(struct span_shard *shard, struct span_entry *entry)
{
    struct span_samples *samples = span_shard_samples(shard, entry);
    if (!samples)
        return;
    assert(samples->waiters == 0 && shard->samples_live > 0);
    free_record(shard, entry->samples);
    entry->samples = 0;
    if (--shard->samples_live == 0)
        free_sample_pages(shard);
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

static void free_waiter(struct span_shard *shard, struct span_samples *samples, uint32_t place)
{
    assert(place > 0 && place <= shard->waiters_used && shard->waiters_used < shard->waiters_size);
    struct span_waiter_node *waiter = &shard->waiters[place];
    if (waiter->previous)
        shard->waiters[waiter->previous].next = waiter->next;
    else
        samples->waiters = waiter->next;
    if (waiter->next)
        shard->waiters[waiter->next].previous = waiter->previous;
    *waiter = (struct span_waiter_node){.next = shard->waiters_free};
    shard->waiters_free = place;
}

uint32_t span_shard_add_waiter(struct span_shard *shard, struct span_entry *entry, uint32_t worker,
                               uint64_t hold)
{
    struct span_samples *samples = span_shard_open_samples(shard, entry);
    uint32_t place = new_waiter(shard), next = samples->waiters;
    shard->waiters[place] = (struct span_waiter_node){.hold = hold, .worker = worker, .next = next};
    if (next)
        shard->waiters[next].previous = place;
    samples->waiters = place;
    return place;
}

bool span_shard_take_waiter(struct span_shard *shard, struct span_entry *entry,
                            uint32_t *worker_out, uint64_t *hold_out)
{
    struct span_samples *samples = span_shard_samples(shard, entry);
    uint32_t place = samples ? samples->waiters : 0;
    if (!place)
        return false;
    *worker_out = shard->waiters[place].worker;
    *hold_out = shard->waiters[place].hold;
    free_waiter(shard, samples, place);
    return true;
}

void span_shard_drop_waiter(struct span_shard *shard, struct span_entry *entry, uint32_t place,
                            uint32_t worker, uint64_t hold)
{
    struct span_samples *samples = span_shard_samples(shard, entry);
    if (!samples || place == 0 || place > shard->waiters_used)
        return;
    const struct span_waiter_node *waiter = &shard->waiters[place];
    bool is_first_elsewhere = !waiter->previous && samples->waiters != place;
    if (waiter->hold == hold && waiter->worker == worker && !is_first_elsewhere)
        free_waiter(shard, samples, place);
}

static void bury(struct span_shard *shard, struct span_entry *entry)
{
    assert(!(entry->flags & SPAN_ENTRY_DEAD));
    struct span_samples *samples = span_shard_samples(shard, entry);
    while (samples && samples->waiters)
        free_waiter(shard, samples, samples->waiters);
    release_samples(shard, entry);
    share_of(shard, entry)->count--;
    assert(!(entry->flags & SPAN_ENTRY_PROFILE) || shard->live_profiles > 0);
    shard->live_profiles -= (entry->flags & SPAN_ENTRY_PROFILE) != 0;
    entry->flags = SPAN_ENTRY_DEAD;
}

size_t span_shard_memory(const struct span_shard *shard)
{
    return span_table_memory(&shard->table) +
           ((size_t)shard->chunk_count + shard->sample_pages_count) * SPAN_PAGE_SIZE +
           (size_t)shard->chunk_count * CHUNK_ENTRIES * sizeof(uint32_t) +
           span_shares_memory(&shard->shares) + lost_ids_memory(&shard->lost) +
           shard->samples_free_size * sizeof(uint32_t) +
           shard->waiters_size * sizeof(struct span_waiter_node);
}

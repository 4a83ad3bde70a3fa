/*
 * span_shard: one part of the span index: stores entries, totals of their samples, and waiters.
 *
 * Entries are stored in chunks in the order of their arrival, so that the oldest is always first:
 * expiry removes from the front. A table (span_table.h) finds them by id. An entry has the ids and
 * times of a span and the hash of its set (span_sets.h). Only entries that samples or waiters were
 * seen for have a record of them as well. span_entries.c decides what entries contain.
 *
 * Sources share the room (span_shares.h). When the index is full, the oldest entries of the source
 * with the most entries are evicted.
 *
 * Owner: a span_index.
 *
 * Thread: whoever holds the shard's lock.
 */
#ifndef PROFCOL_CORE_DATA_SPAN_SHARD_H
#define PROFCOL_CORE_DATA_SPAN_SHARD_H

#include "core/base/slice.h"
#include "core/data/lost_ids.h"
#include "core/data/otlp.h"
#include "core/data/span_shares.h"
#include "core/data/span_table.h"

#include <assert.h>
#include <pthread.h>

enum {
    SPAN_SHARD_SAME_ID = 8, /* entries kept with equal span ids and different trace ids */
};

enum span_eviction {
    SPAN_EVICTED_FULL,
    SPAN_EVICTED_MEMORY,
    SPAN_EVICTED_SAME_ID,
    SPAN_EVICTED_CROWDED,
    SPAN_EVICTED_SHARE,     /* to make room for another source */
    SPAN_NOT_KEPT_CONFLICT, /* a span that arrived again with other content; the first content stays
                             */
    SPAN_EVICTION_COUNT
};

enum {
    SPAN_ENTRY_DEAD = 1,        /* moved or removed; skipped at the front */
    SPAN_ENTRY_HAS_SPAN = 2,    /* the span has arrived */
    SPAN_ENTRY_HAS_TOTALS = 4,  /* samples have arrived; their record has totals */
    SPAN_ENTRY_PROFILE = 8,     /* not a span but a profile id that was seen */
    SPAN_ENTRY_LACKS = 16,      /* samples of the span, which has arrived, are lost */
    SPAN_ENTRY_HAS_DETAIL = 32, /* span_put.has_detail */
    SPAN_ENTRY_FLAGS = 63,
    SPAN_ENTRY_SAMPLES_MAX = (1 << 26) - 1, /* more than a shard has spans */
};

/* One cache line. */
struct span_entry {
    uint64_t span_id;
    uint8_t trace_id[TRACE_ID_SIZE]; /* all zero: not known yet */
    uint64_t arrived_ns;             /* the span; before that, the entry */
    union {
        uint64_t start_ns; /* of the span, since 1970 */
        uint64_t request;  /* of a profile id: the request that contained it */
    };
    uint64_t end_ns;
    uint64_t set;          /* hash of its set */
    uint32_t samples : 26; /* number of their record in the shard, from 1; 0: none */
    uint32_t awaits : 1;  /* samples that arrived before the span wait, without its detail so far */
    uint32_t kept_by : 5; /* span_facts.kept_by */
    uint32_t flags : 6;
    uint32_t source : 10;
    uint32_t instance : 16; /* of the span */
};

/* Together 32. More samples than they can say are not counted. */
enum { SPAN_LEFT_BITS = 20, SPAN_PASSED_BITS = 12 };

/* What is known of the samples of an entry, and who waits for it. What an eviction reads is in the
 * first 16 bytes, which are always in one cache line. */
struct span_samples {
    uint64_t last_ns;                   /* arrival of the last of the totals */
    uint32_t waiters;                   /* first one, in the shard's pool, from 1; 0: none */
    uint32_t left : SPAN_LEFT_BITS;     /* samples that were sent on without the span; once it has
                                           arrived, without its detail or its Link */
    uint32_t passed : SPAN_PASSED_BITS; /* the same of those that lost nothing (span_find.passes) */
    uint64_t first_ns;                  /* arrival of the first of the totals */
    uint64_t totals[];                  /* if the entry has SPAN_ENTRY_HAS_TOTALS */
};

struct span_waiter_node {
    uint64_t hold;
    uint32_t worker;
    uint32_t previous;
    uint32_t next; /* from 1, like all three; 0: none */
};

enum { SPAN_CHUNK_ENTRIES = SPAN_PAGE_SIZE / sizeof(struct span_entry) };

struct span_chunk {
    struct span_entry entries[SPAN_CHUNK_ENTRIES];
};

struct span_shard {
    pthread_mutex_t lock;
    struct span_table table; /* all entries that are not dead */
    uint32_t live_profiles;  /* entries that are profile ids and not dead */

    struct span_chunk **chunks; /* a ring, by entry number */
    uint32_t **newer;     /* for each entry of a chunk: number of the next one of its source */
    uint32_t chunks_size; /* a power of two */
    uint32_t first;       /* number of the oldest entry; numbers wrap */
    uint32_t next;        /* number of the next new entry */
    uint32_t chunk_count;
    bool packs;          /* live entries are being moved together (span_shard_tidy) */
    uint32_t packs_from; /* number of the next entry to move */
    uint32_t packs_to;   /* the number that it gets; all from here to packs_from are dead */

    struct span_shares shares; /* counts of the entries that are not dead */

    struct span_pages *memory; /* the source of chunks and of pages of records */
    size_t totals_size;        /* bytes of totals in each record */
    uint8_t **sample_pages;
    uint32_t sample_pages_count;
    uint32_t samples_per_page;
    uint32_t samples_used;  /* records that were given out, from 1 */
    uint32_t *samples_free; /* numbers of the free ones, the last freed last */
    uint32_t samples_free_count;
    uint32_t samples_free_size;
    uint32_t samples_live;

    struct span_waiter_node *waiters; /* from 1 */
    uint32_t waiters_size;
    uint32_t waiters_used;
    uint32_t waiters_free;

    bool evicted_any;
    size_t evicted[SPAN_EVICTION_COUNT];
    uint64_t now_ns;        /* of the last arrival */
    uint64_t window_ns;     /* likewise */
    uint64_t live_since_ns; /* evicting an entry that arrived before is not counted as a loss */
    struct lost_ids lost;   /* of entries with totals that were evicted before their span arrived */
    uint64_t lost_room;     /* number of entries that it is meant for */
} __attribute__((aligned(64)));

/* Initialises a shard. likely_entries: when the index is full. */
void span_shard_init(struct span_shard *shard, struct span_pages *memory, size_t totals_size,
                     uint64_t likely_entries);
/* Frees the memory of a shard. */
void span_shard_deinit(struct span_shard *shard);

/* The pointer is valid until an entry is inserted or touched, or this one is removed. */
struct span_found {
    struct span_entry *entry;
    uint32_t number;
};
/* Returns the entry with a number of the table. */
static inline struct span_entry *span_shard_entry(const struct span_shard *shard, uint32_t number)
{
    assert(number - shard->first < shard->next - shard->first);
    uint32_t chunk = (number / SPAN_CHUNK_ENTRIES) & (shard->chunks_size - 1);
    return &shard->chunks[chunk]->entries[number % SPAN_CHUNK_ENTRIES];
}
/* Returns the record of an entry's samples; NULL if it has none. */
static inline struct span_samples *span_shard_samples(const struct span_shard *shard,
                                                      const struct span_entry *entry)
{
    if (entry->samples == 0)
        return NULL;
    uint32_t number = entry->samples - 1;
    size_t size = sizeof(struct span_samples) + shard->totals_size;
    uint8_t *page = shard->sample_pages[number / shard->samples_per_page];
    return (struct span_samples *)(void *)(page + number % shard->samples_per_page * size);
}
/* Prefetch for many keys at once: the first entry with this tag, after span_table_prefetch for all
 * of them; then the record of that entry. */
static inline const struct span_entry *span_shard_prefetch_entry(const struct span_shard *shard,
                                                                 uint32_t tag)
{
    struct span_probe probe = span_table_probe(&shard->table, tag);
    const uint32_t *number = span_probe_next(&probe);
    const struct span_entry *entry = number ? span_shard_entry(shard, *number) : NULL;
    prefetch(entry);
    return entry;
}
static inline void span_shard_prefetch_samples(const struct span_shard *shard, uint32_t tag)
{
    const struct span_entry *entry = span_shard_prefetch_entry(shard, tag);
    if (entry)
        prefetch(span_shard_samples(shard, entry));
}

/* Finds an entry with this span id, and returns how many there are: 0, 1, or 2 for more.
 * profile_flag: SPAN_ENTRY_PROFILE finds profile ids only, 0 spans only. */
static inline unsigned span_shard_match(const struct span_shard *shard, uint32_t tag,
                                        uint64_t span_id, uint8_t profile_flag,
                                        struct span_found *out)
{
    struct span_probe probe = span_table_probe(&shard->table, tag);
    unsigned count = 0;
    for (const uint32_t *number; count < 2 && (number = span_probe_next(&probe));) {
        struct span_entry *entry = span_shard_entry(shard, *number);
        if (entry->span_id != span_id || (entry->flags & SPAN_ENTRY_PROFILE) != profile_flag)
            continue;
        out->entry = entry;
        out->number = *number;
        count++;
    }
    return count;
}
/* Finds all of them, at most SPAN_SHARD_SAME_ID, and returns their number. */
unsigned span_shard_matches(const struct span_shard *shard, uint32_t tag, uint64_t span_id,
                            uint8_t profile_flag, struct span_found *out);
/* Returns the entry that has this number now; NULL if there is none. It may be another entry than
 * before, so compare its ids. */
struct span_entry *span_shard_numbered(struct span_shard *shard, uint32_t number);

/* Adds a new, zeroed entry at the end; may evict others to make room. same_id: the number of
 * entries that span_shard_matches found. */
struct span_entry *span_shard_insert(struct span_shard *shard, uint32_t tag, uint64_t span_id,
                                     uint8_t profile_flag, const struct span_source *source,
                                     unsigned same_id);
/* Internals of span_shard_tidy. */
void span_shard_pack(struct span_shard *shard);
/* Call it first for each key. Removes a few of the dead entries that touched entries leave behind,
 * so that their number stays bounded. Moves entries. */
static inline void span_shard_tidy(struct span_shard *shard)
{
    uint64_t live = (uint64_t)shard->table.live + SPAN_CHUNK_ENTRIES;
    if (shard->packs || shard->next - shard->first > live * 2)
        span_shard_pack(shard);
}
/* Moves an entry to the end, as if it had just arrived, and returns its new address. */
struct span_entry *span_shard_touch(struct span_shard *shard, struct span_entry *entry);
/* Like span_shard_touch, and makes it an entry of this source. */
struct span_entry *span_shard_hand_over(struct span_shard *shard, struct span_entry *entry,
                                        const struct span_source *source);
/* Removes an entry. */
void span_shard_remove(struct span_shard *shard, struct span_entry *entry);
/* Returns the oldest entry; NULL if there is none. */
struct span_entry *span_shard_oldest(struct span_shard *shard);
/* Makes room for an entry of the source `newcomer`: evicts the oldest entries, 16 at most, of the
 * source that is furthest above its share. */
void span_shard_evict(struct span_shard *shard, const struct span_source *newcomer);

/* Whether totals of a span were evicted, although it has not arrived yet. */
static inline bool span_shard_lost_totals(struct span_shard *shard, uint32_t tag)
{
    return lost_ids_has(&shard->lost, tag, shard->now_ns, shard->window_ns);
}

/* Counts a SPAN_NOT_KEPT_CONFLICT. */
void span_shard_note_conflict(struct span_shard *shard);

/* Returns when an entry was used last: its span or samples arrived. */
static inline uint64_t span_shard_last_arrival(const struct span_shard *shard,
                                               const struct span_entry *entry)
{
    const struct span_samples *samples = span_shard_samples(shard, entry);
    return samples && samples->last_ns > entry->arrived_ns ? samples->last_ns : entry->arrived_ns;
}
/* Returns the record; creates one without totals if there is none. The addresses of records stay.
 */
struct span_samples *span_shard_open_samples(struct span_shard *shard, struct span_entry *entry);

/* Adds a waiter, and returns its place in the pool, never 0. */
uint32_t span_shard_add_waiter(struct span_shard *shard, struct span_entry *entry, uint32_t worker,
                               uint64_t hold);
/* Removes one waiter; returns false if there is none. */
bool span_shard_take_waiter(struct span_shard *shard, struct span_entry *entry,
                            uint32_t *worker_out, uint64_t *hold_out);
/* Removes the waiter at this place if it is still there, in constant time. */
void span_shard_drop_waiter(struct span_shard *shard, struct span_entry *entry, uint32_t place,
                            uint32_t worker, uint64_t hold);

/* Returns the memory of the shard in bytes. */
size_t span_shard_memory(const struct span_shard *shard);

#endif

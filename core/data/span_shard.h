/*
 * span_shard: one part of the span index: stores entries, their values and totals, and their
 * waiters.
 *
 * Entries are stored in chunks in the order of their arrival, so that the oldest is always first:
 * expiry removes from the front. A table (span_table.h) finds them by id. Facts of spans and totals
 * are stored in pages; a page is returned when its last entry is removed. span_entries.c decides
 * what entries contain.
 *
 * Sources share the room (span_shares.h). When the index is full, the oldest entries of the source
 * with the most entries are evicted. When pages run out, the oldest page of the source with the
 * most pages is evicted, with all its entries. Therefore a source that stores much has pages of its
 * own; small sources share those of their owner, and small owners share pages, too.
 *
 * Owner: a span_index.
 *
 * Thread: whoever holds the shard's lock.
 */
#ifndef PROFCOL_CORE_DATA_SPAN_SHARD_H
#define PROFCOL_CORE_DATA_SPAN_SHARD_H

#include "core/base/slice.h"
#include "core/data/otlp.h"
#include "core/data/span_shares.h"
#include "core/data/span_table.h"

#include <pthread.h>

enum {
    SPAN_SHARD_SAME_ID = 8,      /* entries kept with equal span ids and different trace ids */
    SPAN_SHARD_BLOCK_MAX = 4608, /* bytes of values and totals of one entry */
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
    SPAN_ENTRY_DEAD = 1,       /* moved or removed; skipped at the front */
    SPAN_ENTRY_HAS_SPAN = 2,   /* the span has arrived; the block ends with its facts */
    SPAN_ENTRY_HAS_TOTALS = 4, /* samples have arrived; the block begins with their totals */
    SPAN_ENTRY_PROFILE = 8,    /* not a span but a profile id that was seen */
    SPAN_ENTRY_FLAGS = 15,
};

/* One cache line. */
struct span_entry {
    uint64_t span_id;
    uint8_t trace_id[TRACE_ID_SIZE]; /* all zero: not known yet */
    uint64_t span_arrived_ns;
    union {
        uint64_t samples_first_ns;
        uint64_t request; /* of a profile id: the request that contained it */
    };
    uint64_t samples_last_ns;
    struct span_block *block; /* in a page; NULL: nothing is stored */
    uint32_t waiters : 28;    /* first one, in the shard's pool, from 1; 0: none */
    uint32_t flags : 4;
    uint32_t samples_left : 22; /* that were sent on without the span */
    uint32_t source : 10;
};

enum {
    SPAN_SAMPLES_LEFT_MAX = (1 << 22) - 1,
    SPAN_WAITERS_MAX = (1 << 28) - 1,
    SPAN_BLOCK_NO_SPAN = UINT16_MAX,
};

/* The header of a block. Room for totals follows, then the times of the span and its values. */
struct span_block {
    uint32_t number;      /* of its entry */
    uint16_t values_size; /* SPAN_BLOCK_NO_SPAN: the block has only totals */
    uint8_t kind;
    uint8_t status;
};

/* The facts of a span, as stored. */
struct span_stored_facts {
    uint64_t start_ns;
    uint64_t end_ns;
    const uint8_t *values;
    uint32_t values_size;
    uint8_t kind;
    uint8_t status;
};

struct span_waiter_node {
    uint64_t hold;
    uint32_t worker;
    uint32_t waits_for; /* enum span_waits_for */
    uint32_t previous;
    uint32_t next; /* from 1, like all three; 0: none */
};

struct span_chunk;

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

    struct span_pages *memory; /* the source of chunks and of pages for blocks */
    size_t block_pages;
    size_t block_pages_max;
    size_t totals_size; /* bytes of totals in each block */

    struct span_waiter_node *waiters; /* from 1 */
    uint32_t waiters_size;
    uint32_t waiters_used;
    uint32_t waiters_free;

    bool evicted_any;
    size_t evicted[SPAN_EVICTION_COUNT];
    uint64_t live_since_ns; /* evicting an entry that arrived before is not counted as a loss */
} __attribute__((aligned(64)));

/* Initialises a shard. blocks_max_bytes: memory for blocks, beyond which entries are evicted. */
void span_shard_init(struct span_shard *shard, struct span_pages *memory, size_t totals_size,
                     size_t blocks_max_bytes);
/* Frees the memory of a shard. */
void span_shard_deinit(struct span_shard *shard);

/* Prefetch for many keys at once, each function for all keys before the next: the slot in the
 * table, the first entry with this tag, the block of that entry. */
void span_shard_prefetch_slot(const struct span_shard *shard, uint32_t tag);
void span_shard_prefetch_entry(const struct span_shard *shard, uint32_t tag);
void span_shard_prefetch_block(const struct span_shard *shard, uint32_t tag);

/* The pointer is valid until an entry is inserted, touched or stored to, or this one is removed. */
struct span_found {
    struct span_entry *entry;
    uint32_t number;
};
/* Finds the entries with this span id, at most SPAN_SHARD_SAME_ID, and returns their number.
 * profile_flag: SPAN_ENTRY_PROFILE finds profile ids only, 0 spans only. */
unsigned span_shard_matches(struct span_shard *shard, uint32_t tag, uint64_t span_id,
                            uint8_t profile_flag, struct span_found *out);
/* Returns the entry that has this number now; NULL if there is none. It may be another entry than
 * before, so compare its ids. */
struct span_entry *span_shard_numbered(struct span_shard *shard, uint32_t number);

/* Adds a new, zeroed entry at the end; may evict others to make room. same_id: the number of
 * entries that span_shard_matches found. */
struct span_entry *span_shard_insert(struct span_shard *shard, uint32_t tag, uint64_t span_id,
                                     uint8_t profile_flag, const struct span_source *source,
                                     unsigned same_id);
/* Call it first for each key. Removes a few of the dead entries that touched entries leave behind,
 * so that their number stays bounded. Moves entries. */
void span_shard_tidy(struct span_shard *shard);
/* Moves an entry to the end, as if it had just arrived, and returns its new address. Its block
 * stays where it is, unless few blocks are left in that page. */
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

/* Counts a SPAN_NOT_KEPT_CONFLICT. */
void span_shard_note_conflict(struct span_shard *shard);

/* Stores totals (NULL: none) and facts with their values, which must not point into the entry's own
 * block. The entry must be the newest one. May evict other entries. */
void span_shard_store(struct span_shard *shard, struct span_entry *entry, const uint64_t *totals,
                      const struct span_stored_facts *facts);
/* Returns the totals of the entry, to be added to; creates zeroed ones if it has none. The entry
 * must be the newest one. May evict other entries. */
uint64_t *span_shard_open_totals(struct span_shard *shard, struct span_entry *entry);
static inline uint64_t *span_entry_totals(const struct span_entry *entry)
{
    return entry->flags & SPAN_ENTRY_HAS_TOTALS ? (uint64_t *)(void *)(entry->block + 1) : NULL;
}
/* Returns the facts of an entry with SPAN_ENTRY_HAS_SPAN; the values point into its block. */
struct span_stored_facts span_entry_facts(const struct span_shard *shard,
                                          const struct span_entry *entry);

/* Adds a waiter, and returns its place in the pool, never 0. */
uint32_t span_shard_add_waiter(struct span_shard *shard, struct span_entry *entry, uint32_t worker,
                               uint64_t hold, uint32_t waits_for);
/* Removes one waiter that waits for this; returns false if there is none. All waiters of an entry
 * wait for the same thing: for the span before it has arrived, for samples afterwards. */
bool span_shard_take_waiter(struct span_shard *shard, struct span_entry *entry, uint32_t waits_for,
                            uint32_t *worker_out, uint64_t *hold_out);
/* Removes the waiter at this place if it is still there, in constant time. */
void span_shard_drop_waiter(struct span_shard *shard, struct span_entry *entry, uint32_t place,
                            uint32_t worker, uint64_t hold, uint32_t waits_for);

/* Returns the memory of the shard in bytes. */
size_t span_shard_memory(const struct span_shard *shard);

#endif

/*
 * span_shard: one part of the span index: where its entries, their strings and who waits for them
 * are stored.
 *
 * Entries stand in chunks in the order of their arrival, so that the oldest is always the first
 * one: expiry takes from the front. A table (span_table.h) leads from ids to them. What spans said
 * and totals stand in pages that are given back when their last entry is gone. What an entry means
 * is span_entries.c's business.
 *
 * Room is shared by source (span_shares.h). When the index is full, the oldest entries of the
 * source with the most of them leave; when pages are short, the oldest page of the source with the
 * most pages, with all that is in it. So that a page is one source's, a source with much to store
 * has pages of its own; what is small shares those of its owner, or of all small owners.
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
    SPAN_SHARD_SAME_ID = 8,      /* entries with equal span ids and different trace ids */
    SPAN_SHARD_BLOCK_MAX = 4608, /* bytes of strings and totals of one entry */
};

enum span_eviction {
    SPAN_EVICTED_FULL,
    SPAN_EVICTED_MEMORY,
    SPAN_EVICTED_SAME_ID,
    SPAN_EVICTED_CROWDED,
    SPAN_EVICTED_SHARE,     /* to make room for another source */
    SPAN_NOT_KEPT_CONFLICT, /* came again with other content: what came first stays */
    SPAN_EVICTION_COUNT
};

enum {
    SPAN_ENTRY_DEAD = 1,       /* moved or removed; passed over at the front */
    SPAN_ENTRY_HAS_SPAN = 2,   /* the span came; the block ends with its facts */
    SPAN_ENTRY_HAS_TOTALS = 4, /* samples came; their totals are in the room for them */
    SPAN_ENTRY_PROFILE = 8,    /* no span at all: a profile id that was seen */
    SPAN_ENTRY_FLAGS = 15,
};

/* A line of the cache. */
struct span_entry {
    uint64_t span_id;
    uint8_t trace_id[TRACE_ID_SIZE]; /* all zero: not known yet */
    uint64_t span_arrived_ns;
    union {
        uint64_t samples_first_ns;
        uint64_t request; /* of a profile id: which one it came in */
    };
    uint64_t samples_last_ns;
    struct span_block *block; /* in a page; NULL: nothing is stored */
    uint32_t waiters : 28;    /* in the shard's pool, from 1; 0: none */
    uint32_t flags : 4;
    uint32_t samples_left : 22; /* that went on without the span */
    uint32_t source : 10;
};

enum {
    SPAN_SAMPLES_LEFT_MAX = (1 << 22) - 1,
    SPAN_WAITERS_MAX = (1 << 28) - 1,
    SPAN_BLOCK_NO_SPAN = UINT16_MAX,
};

/* Room for totals follows, then the times of the span and its values. */
struct span_block {
    uint32_t number;      /* of its entry */
    uint16_t values_size; /* SPAN_BLOCK_NO_SPAN: there are only totals */
    uint8_t kind;
    uint8_t status;
};

/* What a span said of itself. */
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
    struct span_table table; /* all that are not dead */
    uint32_t live_profiles;  /* those of them that are profile ids */

    struct span_chunk **chunks; /* a ring, by entry number */
    uint32_t **newer;           /* for each entry of a chunk: the next one of its source */
    uint32_t chunks_size;       /* a power of two */
    uint32_t first;             /* number of the oldest entry; numbers wrap */
    uint32_t next;              /* number of the entry that comes next */
    uint32_t chunk_count;
    bool packs;          /* live entries are moving together; span_shard_tidy */
    uint32_t packs_from; /* the next one to be looked at */
    uint32_t packs_to;   /* its place; from here to packs_from all are dead */

    struct span_shares shares; /* of those that are not dead */

    struct span_pages *memory; /* where chunks and blocks' pages come from */
    size_t block_pages;
    size_t block_pages_max;
    size_t totals_size; /* bytes, of each block */

    struct span_waiter_node *waiters; /* from 1 */
    uint32_t waiters_size;
    uint32_t waiters_used;
    uint32_t waiters_free;

    bool evicted_any;
    size_t evicted[SPAN_EVICTION_COUNT];
    uint64_t live_since_ns; /* what came before is no loss any more when it has to go */
} __attribute__((aligned(64)));

/* blocks_max_bytes: over it entries leave. */
void span_shard_init(struct span_shard *shard, struct span_pages *memory, size_t totals_size,
                     size_t blocks_max_bytes);
void span_shard_deinit(struct span_shard *shard);

/* In a first round: has the place in the table on its way to the cache; then the first entry with
 * this tag; then what it refers to. */
void span_shard_prefetch_slot(const struct span_shard *shard, uint32_t tag);
void span_shard_prefetch_entry(const struct span_shard *shard, uint32_t tag);
void span_shard_prefetch_block(const struct span_shard *shard, uint32_t tag);

/* The pointer is good until an entry is inserted, touched or stored to, or this one removed. */
struct span_found {
    struct span_entry *entry;
    uint32_t number;
};
/* Entries with this span id (profile ids and spans apart), at most SPAN_SHARD_SAME_ID. */
unsigned span_shard_matches(struct span_shard *shard, uint32_t tag, uint64_t span_id,
                            uint8_t profile_flag, struct span_found *out);
/* What has this number now, for who compares its ids; NULL: nothing. */
struct span_entry *span_shard_numbered(struct span_shard *shard, uint32_t number);

/* A new, zeroed entry at the end. Entries that stand in its way are evicted. same_id: how many
 * span_shard_matches found. */
struct span_entry *span_shard_insert(struct span_shard *shard, uint32_t tag, uint64_t span_id,
                                     uint8_t profile_flag, const struct span_source *source,
                                     unsigned same_id);
/* Before anything else, with each key: bounds what touched entries leave behind, a few at a time.
 * Entries move. */
void span_shard_tidy(struct span_shard *shard);
/* Moves an entry to the end, as if it had just arrived. Its block stays where it is, unless that
 * page has few left. */
struct span_entry *span_shard_touch(struct span_shard *shard, struct span_entry *entry);
/* The same, and from now on it is an entry of this source. */
struct span_entry *span_shard_hand_over(struct span_shard *shard, struct span_entry *entry,
                                        const struct span_source *source);
void span_shard_remove(struct span_shard *shard, struct span_entry *entry);
/* The oldest entry; NULL when there is none. */
struct span_entry *span_shard_oldest(struct span_shard *shard);
/* Makes room for an entry of the newcomer: takes out the oldest ones, 16 at most, of the source
 * that is the furthest above its share. */
void span_shard_evict(struct span_shard *shard, const struct span_source *newcomer);

void span_shard_note_conflict(struct span_shard *shard);

/* Stores totals (NULL: none) and facts with their values, which must not be the entry's own. The
 * entry must be the newest one. Others may leave. */
void span_shard_store(struct span_shard *shard, struct span_entry *entry, const uint64_t *totals,
                      const struct span_stored_facts *facts);
/* The same of totals that are to be added to: zeroed when there are none. */
uint64_t *span_shard_open_totals(struct span_shard *shard, struct span_entry *entry);
static inline uint64_t *span_entry_totals(const struct span_entry *entry)
{
    return entry->flags & SPAN_ENTRY_HAS_TOTALS ? (uint64_t *)(void *)(entry->block + 1) : NULL;
}
/* Of a span that came; values are borrowed. */
struct span_stored_facts span_entry_facts(const struct span_shard *shard,
                                          const struct span_entry *entry);

/* Returns where the waiter stands, never 0. */
uint32_t span_shard_add_waiter(struct span_shard *shard, struct span_entry *entry, uint32_t worker,
                               uint64_t hold, uint32_t waits_for);
/* Takes one waiter for this out; false when there is none (left). All waiters of an entry wait for
 * the same: for the span before it came, for samples afterwards. */
bool span_shard_take_waiter(struct span_shard *shard, struct span_entry *entry, uint32_t waits_for,
                            uint32_t *worker_out, uint64_t *hold_out);
/* Takes out the waiter that stands there, in constant time, if it still does. */
void span_shard_drop_waiter(struct span_shard *shard, struct span_entry *entry, uint32_t place,
                            uint32_t worker, uint64_t hold, uint32_t waits_for);

/* Bytes of everything. */
size_t span_shard_memory(const struct span_shard *shard);

#endif

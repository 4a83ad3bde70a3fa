/*
 * span_entries: changes the entries of a shard when a span, samples or a profile id arrive.
 *
 * It has the rules for a match: equal span ids, and equal trace ids if both sides have one.
 * span_shard.h stores the entries; span_index.h calls these functions for many keys at once.
 *
 * Owner: the index.
 *
 * Thread: whoever holds the shard's lock.
 */
#ifndef PROFCOL_CORE_DATA_SPAN_ENTRIES_H
#define PROFCOL_CORE_DATA_SPAN_ENTRIES_H

#include "core/data/span_records.h"
#include "core/data/span_sets.h"
#include "core/data/span_shard.h"

#include <stdatomic.h>

/* State of the index that all shards share. */
struct span_index_common {
    unsigned totals_count;
    unsigned sum_place; /* among the totals, of the sum that matches tell; 0: none */
    uint64_t max_spans;
    _Atomic uint64_t window_ns; /* changes only when a configuration is reloaded */
    /* All workers write these members, so they are not in the cache line of those that workers only
     * read. */
    _Atomic uint64_t entries __attribute__((aligned(64))); /* including profile ids */
    _Atomic uint64_t profiles;
    _Atomic uint64_t evicted[SPAN_EVICTION_COUNT];
};

static inline uint64_t span_window_ns(const struct span_index_common *common)
{
    return atomic_load_explicit(&common->window_ns, memory_order_relaxed);
}

/* An operation on one key, whose shard is locked. */
struct span_operation {
    struct span_index_common *common;
    struct span_shard *shard;
    bool arrives;         /* expired entries are removed to make room for it */
    uint32_t live_before; /* entries of the shard when it was locked, which `entries` includes */
    uint32_t tag;
    uint64_t now_ns;
    const struct span_waiter *waiter;
    struct arena *arena;
    struct span_sets_reader *sets; /* this and the next two: for span_entries_find */
    struct span_match *spare;
    unsigned spare_count;
    struct span_wakeups *wakeups;
    bool has_woken; /* for span_entries_put */
};

struct profile_sight {
    struct span_key key; /* trace id: the profile id; span id: its first half */
    struct span_source source;
    uint64_t request;
    bool remember;
    bool seen;
};

/* Returns the bytes of a span id as a number, for comparisons. */
static inline uint64_t span_id_number(const uint8_t *span_id)
{
    uint64_t number;
    memcpy(&number, span_id, sizeof number);
    return number;
}

/* Returns the span id as stored. Equal span ids of different tenants give different numbers. */
static inline uint64_t stored_span_id(const struct span_key *key, const struct span_source *source)
{
    return span_id_number(key->span_id) ^ source->scope;
}

/* Do the work of span_index_put_many and span_index_collect_many for one key. item: a struct
 * span_put. */
void span_entries_put(struct span_operation *op, void *item);
void span_entries_collect(struct span_operation *op, void *item);
/* Do the work of span_index_find_many, span_index_add_many and span_index_leave_many for one key.
 * item: a struct span_find. */
void span_entries_find(struct span_operation *op, void *item);
void span_entries_add(struct span_operation *op, void *item);
void span_entries_leave(struct span_operation *op, void *item);
/* Does the work of span_index_see_profile. item: a struct profile_sight. */
void span_entries_see_profile(struct span_operation *op, void *item);

/* Removes at most this many expired entries. An entry stays for a quarter of the window after its
 * end, so that "expired" can be distinguished from "not found". */
void span_entries_purge(const struct span_index_common *common, struct span_shard *shard,
                        uint64_t now_ns, unsigned most);

#endif

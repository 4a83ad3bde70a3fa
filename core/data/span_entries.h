/*
 * span_entries: what one key means to the span index: what a span, samples or a profile id that
 * come change in the entries of a shard.
 *
 * The rules of a match are here (equal span ids, equal trace ids where both sides have one), in
 * span_shard.h is how entries are stored, in span_index.h how many keys at once get here.
 *
 * Owner: the index.
 *
 * Thread: whoever holds the shard's lock.
 */
#ifndef PROFCOL_CORE_DATA_SPAN_ENTRIES_H
#define PROFCOL_CORE_DATA_SPAN_ENTRIES_H

#include "core/data/span_records.h"
#include "core/data/span_shard.h"

#include <stdatomic.h>

/* Of the index, for all shards. */
struct span_index_common {
    unsigned totals_count;
    uint64_t max_spans;
    uint64_t window_ns;
    /* Written by every worker: not beside what all of them only read. */
    _Atomic uint64_t entries __attribute__((aligned(64))); /* profile ids included */
    _Atomic uint64_t profiles;
    _Atomic uint64_t evicted[SPAN_EVICTION_COUNT];
};

/* One key; its shard is locked. */
struct span_operation {
    struct span_index_common *common;
    struct span_shard *shard;
    bool arrives;         /* what is over its window makes room for it */
    uint32_t live_before; /* entries of the shard when it was locked: `entries` counts these */
    uint32_t tag;
    uint64_t now_ns;
    const struct span_waiter *waiter;
    struct arena *arena;
    struct span_wakeups *wakeups;
};

struct profile_sight {
    struct span_key key; /* the id as a trace id, its first half as a span id */
    struct span_source source;
    uint64_t request;
    bool remember;
    bool seen;
};

static inline uint64_t span_id_number(const uint8_t *span_id)
{
    uint64_t number;
    memcpy(&number, span_id, sizeof number);
    return number;
}

/* Of each tenant they are different numbers. */
static inline uint64_t stored_span_id(const struct span_key *key, const struct span_source *source)
{
    return span_id_number(key->span_id) ^ source->scope;
}

/* item: a struct span_put. */
void span_entries_put(struct span_operation *op, void *item);
void span_entries_collect(struct span_operation *op, void *item);
/* item: a struct span_find. */
void span_entries_find(struct span_operation *op, void *item);
void span_entries_add(struct span_operation *op, void *item);
void span_entries_leave(struct span_operation *op, void *item);
/* item: a struct profile_sight. */
void span_entries_see_profile(struct span_operation *op, void *item);

/* Takes out at most this many entries whose window is over, and a quarter more, so that "expired"
 * can be told from "not found". */
void span_entries_purge(const struct span_index_common *common, struct span_shard *shard,
                        uint64_t now_ns, unsigned most);

#endif

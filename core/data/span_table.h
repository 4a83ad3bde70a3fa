/*
 * span_table: from the hash of an id to numbers of entries; the index of one shard.
 *
 * Extendible hashing: slots stand in segments of one page, open-addressed from the beginning of a
 * line of the cache, with bounded probing and without tombstones. A segment that gets too full is
 * split in two by one more bit of the hash, so that growing takes some microseconds however large
 * the table is. What has equal hashes is the caller's to tell apart.
 *
 * Owner: a span_shard.
 *
 * Thread: whoever holds the shard's lock.
 */
#ifndef PROFCOL_CORE_DATA_SPAN_TABLE_H
#define PROFCOL_CORE_DATA_SPAN_TABLE_H

#include "core/data/span_pages.h"

#include <stdbool.h>
#include <stdint.h>

enum { SPAN_TABLE_PROBES = 64 }; /* no slot is further from where its hash belongs */

struct span_slot {
    uint32_t tag; /* of the hash; 0: empty */
    uint32_t number;
};

struct span_segment;

/* All-zero but for `pages` is empty. */
struct span_table {
    struct span_pages *pages;
    struct span_segment **segments; /* 1 << depth; one may stand there several times */
    uint32_t depth;
    uint32_t segment_count; /* different ones */
    uint32_t live;
};

void span_table_deinit(struct span_table *table);

/* The part of a hash that stands in the table; another part chooses the shard. */
static inline uint32_t span_table_tag(uint64_t hash)
{
    uint32_t tag = (uint32_t)hash;
    return tag ? tag : 1;
}

void span_table_prefetch(const struct span_table *table, uint32_t tag);

/* The slots that a tag may be in, up to the first empty one. */
struct span_probe {
    struct span_segment *segment; /* NULL: the table is empty */
    uint32_t tag;
    uint32_t at;
    uint32_t left;
};
struct span_probe span_table_probe(const struct span_table *table, uint32_t tag);
/* The next one, whichever tag it has; NULL: there are no more. */
struct span_slot *span_probe_any(struct span_probe *probe);
/* The next one with the tag. */
struct span_slot *span_probe_next(struct span_probe *probe);

/* False when no slot near enough is empty: one that a probe passes has to be removed first. */
bool span_table_insert(struct span_table *table, uint32_t tag, uint32_t number);
/* Other slots move: what a probe found before is void. */
void span_table_remove(struct span_table *table, struct span_slot *slot);

size_t span_table_memory(const struct span_table *table);

#endif

/*
 * span_table: finds the numbers of entries by the hash of an id; the index of one shard.
 *
 * It uses extendible hashing. A segment is one page of slots with open addressing; probing starts
 * at the beginning of a cache line, is bounded, and needs no tombstones. A segment that gets too
 * full is split in two by one more bit of the hash, so growing takes some microseconds however
 * large the table is. The caller distinguishes entries with equal hashes.
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

enum { SPAN_TABLE_PROBES = 64 }; /* the greatest distance of a slot from the start of its probes */

struct span_slot {
    uint32_t tag; /* part of the hash; 0: empty */
    uint32_t number;
};

struct span_segment;

/* Empty if all members but `pages` are zero. */
struct span_table {
    struct span_pages *pages;
    struct span_segment **segments; /* 1 << depth pointers; several may point to the same segment */
    uint32_t depth;
    uint32_t segment_count; /* distinct segments */
    uint32_t live;
};

/* Gives back all pages. */
void span_table_deinit(struct span_table *table);

/* Returns the part of a hash that the table stores; another part chooses the shard. */
static inline uint32_t span_table_tag(uint64_t hash)
{
    uint32_t tag = (uint32_t)hash;
    return tag ? tag : 1;
}

/* Prefetches the line where probing for a tag starts. */
void span_table_prefetch(const struct span_table *table, uint32_t tag);

/* A probe visits the slots that a tag may be in, up to the first empty one. */
struct span_probe {
    struct span_segment *segment; /* NULL: the table is empty */
    uint32_t tag;
    uint32_t at;
    uint32_t left;
};
/* Begins a probe for a tag. */
struct span_probe span_table_probe(const struct span_table *table, uint32_t tag);
/* Returns the next slot, whatever its tag; NULL if there are no more. */
struct span_slot *span_probe_any(struct span_probe *probe);
/* Returns the next slot with the tag; NULL if there are no more. */
struct span_slot *span_probe_next(struct span_probe *probe);

/* Adds an entry. Returns false if no slot that a probe visits is empty; the caller then removes one
 * of them first. */
bool span_table_insert(struct span_table *table, uint32_t tag, uint32_t number);
/* Removes a slot. Other slots move, so probes and slots found before become invalid. */
void span_table_remove(struct span_table *table, struct span_slot *slot);

/* Returns the memory in bytes. */
size_t span_table_memory(const struct span_table *table);

#endif

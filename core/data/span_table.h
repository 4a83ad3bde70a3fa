/*
 * span_table: finds the numbers of entries by the hash of an id; the index of one shard.
 *
 * It uses extendible hashing. A segment is one page of lines; a line is one cache line of tags and
 * numbers, which are compared at once. A probe begins at the home line of a tag and ends at the
 * first line with room; it is bounded, and needs no tombstones. A segment that gets too full is
 * split in two by one more bit of the hash, so growing takes some microseconds however large the
 * table is. What is counted for a segment is not in its page: the first lines of all pages would
 * share a few sets of the caches. The caller distinguishes entries with equal hashes.
 *
 * Owner: a span_shard.
 *
 * Thread: whoever holds the shard's lock.
 */
#ifndef PROFCOL_CORE_DATA_SPAN_TABLE_H
#define PROFCOL_CORE_DATA_SPAN_TABLE_H

#include "core/base/prefetch.h"
#include "core/data/span_pages.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { SPAN_TABLE_PROBES = 64 }; /* slots that a probe visits at most */

/* Internals, here for the functions below. */
enum {
    SPAN_LINE_SLOTS = 8,
    SPAN_LINE_FULL = (1 << SPAN_LINE_SLOTS) - 1,
    SPAN_TABLE_LINES = SPAN_PAGE_SIZE / 64,
    SPAN_TABLE_HOME_BITS = 16, /* bits of a tag that choose the line; the upper ones the segment */
};

struct span_line {
    uint32_t tags[SPAN_LINE_SLOTS]; /* part of the hash; 0: empty */
    uint32_t numbers[SPAN_LINE_SLOTS];
} __attribute__((aligned(64)));

struct span_segment {
    uint32_t live;
    uint32_t depth; /* number of bits that all its tags have in common */
};

/* The segment of the tags with some upper bits. */
struct span_segment_place {
    struct span_line *lines; /* its page */
    struct span_segment *segment;
};

/* Empty if all members but `pages` are zero. */
struct span_table {
    struct span_pages *pages;
    struct span_segment_place *places; /* 1 << depth; several may have the same segment */
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

/* More internals: a bit for each slot of a line with this tag or number; where the segment of a tag
 * is; its first line; the next line. */
static inline unsigned span_slots_match(const uint32_t slots[SPAN_LINE_SLOTS], uint32_t value)
{
#ifdef __SSE2__
    __m128i wanted = _mm_set1_epi32((int)value);
    const __m128i *parts = (const __m128i *)(const void *)slots;
    __m128i low = _mm_cmpeq_epi32(_mm_load_si128(parts), wanted);
    __m128i high = _mm_cmpeq_epi32(_mm_load_si128(parts + 1), wanted);
    return (unsigned)_mm_movemask_ps(_mm_castsi128_ps(low)) |
           (unsigned)_mm_movemask_ps(_mm_castsi128_ps(high)) << 4;
#else
    unsigned found = 0;
    for (unsigned i = 0; i < SPAN_LINE_SLOTS; i++)
        found |= (unsigned)(slots[i] == value) << i;
    return found;
#endif
}
static inline unsigned span_line_match(const struct span_line *line, uint32_t tag)
{
    return span_slots_match(line->tags, tag);
}
static inline struct span_segment_place *span_table_place(const struct span_table *table,
                                                          uint32_t tag)
{
    return &table->places[tag >> SPAN_TABLE_HOME_BITS & ((1U << table->depth) - 1)];
}
static inline uint32_t span_table_home(uint32_t tag)
{
    uint32_t part = tag & ((1U << SPAN_TABLE_HOME_BITS) - 1);
    return part * SPAN_TABLE_LINES >> SPAN_TABLE_HOME_BITS;
}
static inline uint32_t span_table_behind(uint32_t line)
{
    return (line + 1) % SPAN_TABLE_LINES;
}

/* Fetches the line where probing for a tag starts. */
static inline void span_table_prefetch(const struct span_table *table, uint32_t tag)
{
    if (table->places)
        prefetch(&span_table_place(table, tag)->lines[span_table_home(tag)]);
}

/* A probe visits the slots that a tag may be in. */
struct span_probe {
    struct span_line *line; /* the present one; NULL: the table is empty */
    struct span_line *lines;
    uint32_t tag;
    uint32_t at;    /* index of the line */
    uint32_t left;  /* lines after this one */
    unsigned found; /* slots of this line with the tag that were not returned yet */
};
/* Begins a probe for a tag. */
static inline struct span_probe span_table_probe(const struct span_table *table, uint32_t tag)
{
    struct span_probe probe = {.tag = tag, .left = SPAN_TABLE_PROBES / SPAN_LINE_SLOTS - 1};
    if (!table->places)
        return probe;
    probe.lines = span_table_place(table, tag)->lines;
    probe.at = span_table_home(tag);
    probe.line = &probe.lines[probe.at];
    probe.found = span_line_match(probe.line, tag);
    return probe;
}
/* Goes to the next line. Returns false if the probe ends: at a line with room, or far from home. */
static inline bool span_probe_behind(struct span_probe *probe)
{
    if (!probe->line || probe->left == 0 || span_line_match(probe->line, 0) != 0)
        return false;
    probe->at = span_table_behind(probe->at);
    probe->left--;
    probe->line = &probe->lines[probe->at];
    probe->found = span_line_match(probe->line, probe->tag);
    return true;
}
/* Returns the address of the number of the next entry with the tag; NULL if there are no more. */
static inline uint32_t *span_probe_next(struct span_probe *probe)
{
    while (probe->found == 0)
        if (!span_probe_behind(probe))
            return NULL;
    unsigned slot = (unsigned)__builtin_ctz(probe->found);
    probe->found &= probe->found - 1;
    return &probe->line->numbers[slot];
}

/* Adds an entry. Returns false if no slot that a probe visits is empty; the caller then removes one
 * of them first. */
bool span_table_insert(struct span_table *table, uint32_t tag, uint32_t number);
/* Removes an entry, which has to be there. Other entries move, so probes and addresses found before
 * become invalid. */
void span_table_remove(struct span_table *table, uint32_t tag, uint32_t number);

/* Returns the memory in bytes. */
size_t span_table_memory(const struct span_table *table);

#endif

/*
 * span_shares: counts how much of a shard each source uses, and finds the source that uses most.
 *
 * The entries of a source form a list in the order of their arrival. Adding and removing entries
 * only changes counts; the largest source is looked up when room is short. Because all owners have
 * equal shares, the source furthest above its share is the largest source of the largest owner.
 *
 * Owner: a span_shard.
 *
 * Thread: whoever holds the shard's lock.
 */
#ifndef PROFCOL_CORE_DATA_SPAN_SHARES_H
#define PROFCOL_CORE_DATA_SPAN_SHARES_H

#include "core/data/span_sources.h"

#include <stdbool.h>
#include <stddef.h>

struct span_share {
    uint32_t count;  /* entries that are not dead */
    uint32_t oldest; /* number of the first entry in the list; no list without entries */
    uint32_t newest; /* number of the last entry; dead entries are removed from the list later */
    uint32_t packed; /* number of the last entry that packing has moved; before `oldest`: none */
    uint16_t owner;
    bool has_scope; /* the owner is a tenant */
};

/* All-zero is empty. */
struct span_shares {
    struct span_share *of; /* by number of the source or owner */
    uint32_t size;
};

/* Frees the memory. */
void span_shares_deinit(struct span_shares *shares);

/* Internals of span_shares_open: initialises the share of a source without entries. */
void span_shares_begin(struct span_shares *shares, const struct span_source *source);

/* Returns the share in which an entry of the source will be counted. */
static inline struct span_share *span_shares_open(struct span_shares *shares,
                                                  const struct span_source *source)
{
    if (source->number >= shares->size || shares->of[source->number].count == 0)
        span_shares_begin(shares, source);
    return &shares->of[source->number];
}

/* Finds the largest source of the largest owner; among equal ones, prefers `newcomer`. Returns
 * false if no source has anything. */
bool span_shares_heaviest(const struct span_shares *shares, uint16_t newcomer,
                          uint16_t *number_out);

/* Returns the memory in bytes. */
size_t span_shares_memory(const struct span_shares *shares);

#endif

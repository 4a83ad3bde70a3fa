/*
 * span_shares: what each source has of a shard, and who has the most.
 *
 * The entries of a source are a list in the order of their arrival. Coming and going only counts;
 * who has the most is looked up when room is short. With equal shares that is who is the furthest
 * above its share: the owner with the most, and of its sources the one with the most.
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

struct span_block_page;

struct span_share {
    uint32_t count;  /* entries that are not dead */
    uint32_t oldest; /* number of the first entry in the list; without entries there is no list */
    uint32_t newest; /* and of the last; dead ones leave the list later */
    uint32_t packed; /* the last one of the list that packing has moved; before `oldest`: none */
    uint16_t owner;
    bool has_scope; /* the owner is a tenant */
    uint32_t pages; /* with blocks of the source; of an owner, of its small sources, too */
    uint16_t group; /* number of the source in whose pages it stores now */
    size_t bytes;   /* of its blocks */
    struct span_block_page *newest_page;
    struct span_block_page *oldest_page;
} __attribute__((aligned(16))); /* 64 bytes, quick to find by number */

/* All-zero is empty. */
struct span_shares {
    struct span_share *of; /* by number of the source, and of the owner */
    uint32_t size;
};

void span_shares_deinit(struct span_shares *shares);

/* Workings: the source has no entries yet. */
void span_shares_begin(struct span_shares *shares, const struct span_source *source);

/* Where an entry of the source is going to be counted. */
static inline struct span_share *span_shares_open(struct span_shares *shares,
                                                  const struct span_source *source)
{
    if (source->number >= shares->size || shares->of[source->number].count == 0)
        span_shares_begin(shares, source);
    return &shares->of[source->number];
}

enum span_load { SPAN_LOAD_ENTRIES, SPAN_LOAD_PAGES };
/* The source with the most of the owner with the most; of equals the newcomer. False: nobody has
 * any. */
bool span_shares_heaviest(const struct span_shares *shares, enum span_load load, uint16_t newcomer,
                          uint16_t *number_out);

/* Of the blocks of all sources of an owner. */
size_t span_shares_owner_bytes(const struct span_shares *shares, uint16_t owner);

size_t span_shares_memory(const struct span_shares *shares);

#endif

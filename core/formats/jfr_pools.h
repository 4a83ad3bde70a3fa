/*
 * jfr_pools: finds and reads the constants of a chunk: stack traces, methods, classes, symbols.
 *
 * They are in checkpoint events, which are read from the last one backwards: each contains its
 * distance to the previous one. Constants are not decoded at first, only their ids and places are
 * stored; a constant that no event refers to is never decoded. A few bytes can refer to one large
 * constant many times, so the bytes decoded count as the builder's work.
 *
 * Owner: the caller initialises it with jfr_pools_read, and frees it with jfr_pools_deinit, also if
 * jfr_pools_read failed. Chunk and metadata must outlive it.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_JFR_POOLS_H
#define PROFCOL_CORE_FORMATS_JFR_POOLS_H

#include "core/formats/jfr_metadata.h"

enum jfr_pool {
    JFR_POOL_STACK_TRACE,
    JFR_POOL_METHOD,
    JFR_POOL_CLASS,
    JFR_POOL_SYMBOL,
    JFR_POOL_THREAD_STATE,
    JFR_POOL_STRING,
    JFR_POOL_THREAD,
    JFR_POOL_COUNT,
};

struct jfr_pools {
    const struct jfr_chunk *chunk;
    struct jfr_metadata *metadata;
    const struct jfr_class *classes[JFR_POOL_COUNT]; /* NULL: not described */
    struct id_map maps[JFR_POOL_COUNT];
};

/* Finds all constants of a chunk; threads only if they are wanted. Returns false, with err set, if
 * it is invalid. */
bool jfr_pools_read(struct jfr_pools *pools, const struct jfr_chunk *chunk,
                    struct jfr_metadata *metadata, bool with_threads, struct budget *budget,
                    struct error *err);
/* Frees the maps. */
void jfr_pools_deinit(struct jfr_pools *pools);

/* Returns the entry of a constant; NULL if there is none. `built` is free for the caller. */
struct id_entry *jfr_pools_find(const struct jfr_pools *pools, enum jfr_pool pool, uint64_t id);
/* Decodes a constant. */
void jfr_pools_constant(struct jfr_pools *pools, enum jfr_pool pool, const struct id_entry *entry,
                        struct jfr_record *record);
/* Returns the constant that the text at a place refers to; NULL if it is not a reference, or if
 * place is 0. */
struct id_entry *jfr_pools_reference(struct jfr_pools *pools, uint64_t place);
/* Returns the text at a place. A reference to the string pool is followed. Place 0: no text. */
struct jfr_text jfr_pools_text(struct jfr_pools *pools, uint64_t place);

#endif

/*
 * jfr_pools: the constants of a chunk: stack traces, methods, classes, symbols.
 *
 * They are in checkpoint events, which are read from the last one backwards: each contains its
 * distance to the previous one. Constants are not decoded at first, only their ids and places are
 * stored; a constant that no event refers to is never decoded. A few bytes can refer to one large
 * constant many times, so the bytes decoded count as the builder's work.
 *
 * Owner: the caller initialises with jfr_pools_read, also when that fails, and frees with
 * jfr_pools_deinit; chunk and metadata have to live as long.
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
    JFR_POOL_COUNT,
};

struct jfr_pools {
    const struct jfr_chunk *chunk;
    struct jfr_metadata *metadata;
    const struct jfr_class *classes[JFR_POOL_COUNT]; /* NULL: not described */
    struct id_map maps[JFR_POOL_COUNT];
};

bool jfr_pools_read(struct jfr_pools *pools, const struct jfr_chunk *chunk,
                    struct jfr_metadata *metadata, struct budget *budget, struct error *err);
void jfr_pools_deinit(struct jfr_pools *pools);

/* NULL: there is none. `built` of the entry is the caller's. */
struct id_entry *jfr_pools_find(const struct jfr_pools *pools, enum jfr_pool pool, uint64_t id);
void jfr_pools_constant(struct jfr_pools *pools, enum jfr_pool pool, const struct id_entry *entry,
                        struct jfr_record *record);
/* The constant that the text at a place refers to; NULL: it is none that refers to one, or place
 * is 0. */
struct id_entry *jfr_pools_reference(struct jfr_pools *pools, uint64_t place);
/* The text at a place, through the string pool where it refers to that; place 0: no text. */
struct jfr_text jfr_pools_text(struct jfr_pools *pools, uint64_t place);

#endif

/*
 * jfr_stacks: converts the stacks of a recording to those of a profile.
 *
 * A stack is converted when an event first refers to it. Frames are named package/Class.method,
 * with stable names (jfr_names.h) and their line. A frame without a method is left out, as in
 * Pyroscope's server; no stack is truncated. A symbol is decoded once, but names of methods repeat
 * symbols, so these bytes count as the builder's work.
 *
 * Owner: the caller sets `builder` and all other members to zero, calls jfr_stacks_begin_chunk for
 * each chunk, and frees it with jfr_stacks_deinit.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_JFR_STACKS_H
#define PROFCOL_CORE_FORMATS_JFR_STACKS_H

#include "core/formats/jfr_pools.h"
#include "core/formats/profiles_builder.h"

struct jfr_stacks {
    struct profiles_builder *builder;
    const struct jfr_chunk *chunk;
    struct jfr_pools *pools;
    struct slice *texts; /* names in the chunk; `built` of symbols, classes and strings: 1 + index
                            in this array */
    uint32_t text_count, text_capacity;
    struct wire_writer text; /* of the current symbol */
    struct wire_writer name; /* of the current method */
    uint32_t mapping;        /* of all locations; 0: not made yet */
    uint32_t *locations;     /* of the current stack */
    size_t location_capacity;
};

/* Begins a chunk, whose pools must outlive the use of this chunk. */
void jfr_stacks_begin_chunk(struct jfr_stacks *stacks, const struct jfr_chunk *chunk,
                            struct jfr_pools *pools);

/* Converts the stack with this id, once. *found_out: whether it exists. Returns false, with err
 * set, on an error. */
bool jfr_stacks_build(struct jfr_stacks *stacks, uint64_t id, uint32_t *stack_out, bool *found_out,
                      struct error *err);
/* Frees the memory of the struct. */
void jfr_stacks_deinit(struct jfr_stacks *stacks);

#endif

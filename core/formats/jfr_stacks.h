/*
 * jfr_stacks: the stacks of a recording as those of a profile.
 *
 * Made when an event first refers to them. Frames are called package/Class.method, with names
 * settled (jfr_names.h) and with their line. A frame without a method is left out, as Pyroscope's
 * server does; no stack is cut.
 *
 * Owner: the caller initialises (all-zero but for builder is valid), sets chunk and pools for each
 * chunk, and frees with jfr_stacks_deinit.
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
    struct wire_writer name; /* of the method at hand */
    uint32_t *locations;     /* of the stack at hand */
    size_t location_capacity;
    uint64_t name_bytes; /* looked at so far */
};

/* found_out: whether there is such a stack. False: error. */
bool jfr_stacks_build(struct jfr_stacks *stacks, uint64_t id, uint32_t *stack_out, bool *found_out,
                      struct error *err);
void jfr_stacks_deinit(struct jfr_stacks *stacks);

#endif

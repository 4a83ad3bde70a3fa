/*
 * stack_cut: cuts the stacks of a request that are too deep.
 *
 * A cut stack keeps the frames next to its leaf, which are where the time goes. What is cut off at
 * the root becomes one frame, `[truncated]`. A location whose inlined functions do not fit is cut
 * off as a whole, except for the leaf's, which always stays as it is. Stacks that are equal
 * after the cut are one entry.
 *
 * Owner: the dictionary gains entries; the rest lives in the arena that was given to it.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_STACK_LIMIT_STACK_CUT_H
#define PROFCOL_STACK_LIMIT_STACK_CUT_H

#include "core/data/dictionary.h"

struct stack_cut {
    uint32_t *becomes;    /* for each stack of the request: the one that takes its place */
    uint32_t stack_count; /* of the request */
    bool any;             /* at least one is another one */
};

/* Adds a cut stack to the dictionary for each one that has more than max_depth frames, which is at
 * least 2 and includes the marker. 0: none. */
struct stack_cut stack_cut_all(struct dictionary *dictionary, uint64_t max_depth,
                               struct arena *arena);

/* Returns the stack that takes the place of one of the request. */
static inline uint32_t stack_cut_of(const struct stack_cut *cut, uint32_t stack)
{
    return stack < cut->stack_count ? cut->becomes[stack] : stack;
}

/* Adds a location with one function, and returns its index. */
uint32_t stack_cut_add_marker(struct dictionary *dictionary, struct slice name);
/* Adds a stack of one location, and returns its index. */
uint32_t stack_cut_add_stack(struct dictionary *dictionary, uint32_t location);

#endif

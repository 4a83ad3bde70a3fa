/*
 * store_stacks: turns texts and stacks of a profiles request into those of the store.
 *
 * Each string, location and stack of the dictionary is read once, however often it is referred to.
 *
 * Owner: the caller, for one request; the lists live in the arena.
 *
 * Thread: that of the store.
 */
#ifndef PROFCOL_EXPLORE_STORE_STACKS_H
#define PROFCOL_EXPLORE_STORE_STACKS_H

#include "core/data/dictionary.h"
#include "extensions/explore/store_names.h"

enum { STORE_DEPTH_MAX = 512 /* frames of a stack, from the root on */ };

struct store_location {
    uint32_t first, count; /* in `frames`, outermost first; count + 1, 0: not read yet */
};

struct indices {
    uint32_t *items;
    uint32_t count, capacity;
};

struct store_stacks {
    struct store_names *names;
    struct dictionary *dictionary;
    struct arena *arena;
    uint64_t frames_left;
    uint32_t *texts; /* by index in the string_table: number + 1; 0: not read yet */
    uint32_t *nodes; /* likewise, by index in the stack_table */
    struct store_location *locations;
    struct indices frames;
    struct indices stack; /* the locations of the stack being read */
};

/* The request is scanned and normalised. */
void store_stacks_init(struct store_stacks *stacks, struct store_names *names,
                       struct dictionary *dictionary, struct arena *arena);
/* Returns the text of a string, or the node of a stack, by its index in the request. */
uint32_t store_stacks_text(struct store_stacks *stacks, uint32_t index);
uint32_t store_stacks_node(struct store_stacks *stacks, uint32_t index);

#endif

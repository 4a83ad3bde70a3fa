/*
 * small_stacks: which stacks of a profile are too small to be kept apart.
 *
 * Stacks below a share of the profile's total are, equal ones together, and if the profile is
 * larger than a limit, as many of the smallest as make it fit. The profile's size is that of its
 * bytes and of the dictionary entries that it refers to.
 *
 * Owner: the memory is that of the arena.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_STACK_LIMIT_SMALL_STACKS_H
#define PROFCOL_STACK_LIMIT_SMALL_STACKS_H

#include "core/data/equal_entries.h"
#include "processors/stack_limit/profile_size.h"
#include "processors/stack_limit/stack_cut.h"

enum stack_fate { STACK_STAYS, STACK_BELOW_SHARE, STACK_BEYOND_SIZE };

struct small_stacks {
    const struct stack_cut *cut;
    struct profile_size *size;
    struct equal_entries *equals; /* of the stacks after the cut; NULL without min_share */
    double min_share;             /* 0: off */
    uint64_t max_bytes;           /* UINT64_MAX: off */
    struct arena *arena;
    struct small_stack *stacks; /* by their index, after the cut */
    uint32_t stack_count;
    uint32_t profile; /* number of the current one */
    bool any;         /* a stack of it does not stay */
    double *sums;     /* by the first of equal stacks: their weight; 0 between profiles */
    uint32_t *list;   /* the current profile's stacks */
    uint32_t list_count, list_capacity;
    double total;
    uint64_t base; /* bytes that stay, whatever is folded */
};

/* cut and size must exist as long as the result. size: NULL if there is no limit. Afterwards set
 * max_bytes, or call small_stacks_set_share. */
struct small_stacks small_stacks_init(const struct stack_cut *cut, struct dictionary *dictionary,
                                      struct profile_size *size, struct arena *arena);
/* equals must exist as long as the stacks, and know the dictionary after the cut. */
void small_stacks_set_share(struct small_stacks *small, double min_share,
                            struct equal_entries *equals);
/* Decides about the stacks of a profile, given as its bytes. */
void small_stacks_decide(struct small_stacks *small, struct slice profile);
/* Returns what was decided about a stack of it, which was cut. */
enum stack_fate small_stacks_fate(const struct small_stacks *small, uint32_t stack);

#endif

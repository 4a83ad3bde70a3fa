/*
 * largest: which items of a list are left, if there is no room for all: those of the largest
 * weights.
 *
 *     struct largest left = largest_of(weights, costs, count, room);
 *     for each item: if (largest_takes(&left, weight, cost)) ...
 *
 * Owner: the caller.
 *
 * Thread: any.
 */
#ifndef PROFCOL_EXPLORE_LARGEST_H
#define PROFCOL_EXPLORE_LARGEST_H

#include <stdbool.h>
#include <stdint.h>

struct largest {
    uint64_t least; /* what is larger is left */
    uint64_t room;  /* for items of this weight, the first ones */
};

/* costs: what each item takes of the room; NULL: 1. All items together take more than the room. */
struct largest largest_of(const uint64_t *weights, const uint32_t *costs, uint32_t count,
                          uint64_t room);

/* Whether an item is left. Call it once for each, in their order. */
static inline bool largest_takes(struct largest *largest, uint64_t weight, uint32_t cost)
{
    if (weight != largest->least)
        return weight > largest->least;
    if (cost > largest->room)
        return false;
    largest->room -= cost;
    return true;
}

#endif

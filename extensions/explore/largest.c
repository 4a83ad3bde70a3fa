#include "extensions/explore/largest.h"

#include <assert.h>
#include <stddef.h>

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

/* Returns the place of the highest digit of any weight. */
static int highest_digit(const uint64_t *weights, uint32_t count)
{
    uint64_t all = 1;
    for (uint32_t i = 0; i < count; i++)
        all |= weights[i];
    return (63 - __builtin_clzll(all)) / DIGIT_BITS * DIGIT_BITS;
}

/* Weights are read digit by digit. */
struct largest largest_of(const uint64_t *weights, const uint32_t *costs, uint32_t count,
                          uint64_t room)
{
    uint64_t prefix = 0, mask = 0;
    for (int shift = highest_digit(weights, count); shift >= 0; shift -= DIGIT_BITS) {
        uint64_t taken[DIGITS] = {0};
        for (uint32_t i = 0; i < count; i++)
            if ((weights[i] & mask) == prefix)
                taken[weights[i] >> shift & (DIGITS - 1)] += costs ? costs[i] : 1;
        unsigned digit = DIGITS - 1;
        for (; room >= taken[digit]; digit--) {
            assert(digit > 0);
            room -= taken[digit];
        }
        prefix |= (uint64_t)digit << shift;
        mask |= (uint64_t)(DIGITS - 1) << shift;
    }
    return (struct largest){prefix, room};
}

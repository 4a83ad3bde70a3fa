/*
 * saturate: sums and products that stop at INT64_MIN and INT64_MAX instead of overflowing.
 *
 * Values of profiles come from outside, and signed overflow is undefined in C.
 *
 * Owner: plain values.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_BASE_SATURATE_H
#define PROFCOL_CORE_BASE_SATURATE_H

#include <stdint.h>

static inline int64_t saturate_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b > 0 ? INT64_MAX : INT64_MIN;
    return sum;
}

/* The same for signed numbers in unsigned members, as values of profiles are. */
static inline uint64_t saturate_sum(uint64_t a, uint64_t b)
{
    return (uint64_t)saturate_add((int64_t)a, (int64_t)b);
}

static inline int64_t saturate_multiply(int64_t a, int64_t b)
{
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return (a > 0) == (b > 0) ? INT64_MAX : INT64_MIN;
    return product;
}

#endif

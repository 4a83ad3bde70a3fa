#include "processors/tail_sampling/tail_probability.h"

#include "core/data/otlp.h"

#include <math.h>

uint64_t tail_probability_threshold(double percentage)
{
    /* The Collector multiplies 2^64-1 by the double, and rounds the product to 64 bits: half to
     * even. */
    double ratio = percentage / 100;
    int exponent;
    if (!(ratio > 0))
        return 0;
    if (ratio >= 1)
        return UINT64_MAX;
    uint64_t mantissa = (uint64_t)ldexp(frexp(ratio, &exponent), 53);
    unsigned __int128 product = (unsigned __int128)mantissa * UINT64_MAX;
    unsigned bits = 128;
    while (!(product >> (bits - 1)))
        bits--;
    unsigned cut = bits - 64;
    uint64_t kept = (uint64_t)(product >> cut);
    unsigned __int128 rest = product & (((unsigned __int128)1 << cut) - 1);
    unsigned __int128 half = (unsigned __int128)1 << (cut - 1);
    unsigned __int128 rounded = kept;
    if (rest > half || (rest == half && (kept & 1)))
        rounded++;
    int shift = exponent - 53 + (int)cut; /* the value is rounded * 2^shift */
    if (shift >= 0)
        return (uint64_t)(rounded << shift);
    return shift <= -128 ? 0 : (uint64_t)(rounded >> -shift);
}

uint64_t tail_hash(const char *salt, const uint8_t *id)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *salt; salt++)
        hash = (hash ^ (uint8_t)*salt) * UINT64_C(1099511628211);
    for (int i = 0; i < TRACE_ID_SIZE; i++)
        hash = (hash ^ id[i]) * UINT64_C(1099511628211);
    return hash;
}

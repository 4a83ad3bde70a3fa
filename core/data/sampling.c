#include "core/data/sampling.h"

#include "core/base/text.h"

#include <assert.h>
#include <math.h>

enum { HEX_BITS = 4 };

/* ---- thresholds ---- */

/* Returns by how many digits a value of this size, which begins with zeros, needs more. */
static unsigned leading_digits(double value)
{
    int exponent;
    frexp(value, &exponent);
    return exponent < 0 ? (unsigned)-exponent / HEX_BITS : 0;
}

uint64_t sampling_threshold(double probability, unsigned precision)
{
    if (!(probability >= 1.0 / (double)SAMPLING_LIMIT && probability <= 1))
        return SAMPLING_NEVER;
    if (probability == 1)
        return SAMPLING_ALWAYS;
    unsigned zeros = leading_digits(probability), nines = leading_digits(1 - probability);
    unsigned digits = precision + (zeros > nines ? zeros : nines);
    uint64_t threshold = SAMPLING_LIMIT - (uint64_t)round(probability * (double)SAMPLING_LIMIT);
    if (digits >= SAMPLING_DIGITS)
        return threshold;
    unsigned shift = HEX_BITS * (SAMPLING_DIGITS - digits);
    threshold += UINT64_C(1) << (shift - 1);
    return threshold >> shift << shift;
}

double sampling_probability(uint64_t threshold)
{
    assert(threshold <= SAMPLING_LIMIT);
    return (double)(SAMPLING_LIMIT - threshold) / (double)SAMPLING_LIMIT;
}

/* ---- randomness ---- */

uint64_t sampling_trace_randomness(struct slice trace_id)
{
    assert(trace_id.size == 16);
    uint64_t randomness = 0;
    for (size_t i = 9; i < 16; i++)
        randomness = randomness << 8 | trace_id.data[i];
    return randomness;
}

/* FNV-1a of 32 bits. */
static uint32_t hash_on(uint32_t hash, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT32_C(16777619);
    return hash;
}

enum { BUCKET_BITS = 14, BUCKETS = 1 << BUCKET_BITS, BUCKET_SHIFT = 42 };

uint64_t sampling_hash_randomness(struct slice trace_id, uint32_t seed)
{
    const uint8_t seed_bytes[] = {(uint8_t)seed, (uint8_t)(seed >> 8), (uint8_t)(seed >> 16),
                                  (uint8_t)(seed >> 24)};
    uint32_t hash = hash_on(UINT32_C(2166136261), seed_bytes, sizeof seed_bytes);
    hash = hash_on(hash, trace_id.data, trace_id.size);
    uint64_t bucket = hash & (BUCKETS - 1);
    uint64_t unused = hash >> (32 - BUCKET_BITS);
    uint64_t mixed = unused ^ unused << 10;
    return (BUCKETS - 1 - bucket) << BUCKET_SHIFT | mixed << BUCKET_BITS | bucket;
}

uint64_t sampling_hash_threshold(float percentage)
{
    uint32_t kept = (uint32_t)(percentage * (float)(BUCKETS / 100.0)); /* in 32 bits, truncated */
    assert(kept <= BUCKETS);
    return kept == 0 ? SAMPLING_NEVER : (uint64_t)(BUCKETS - kept) << BUCKET_SHIFT;
}

/* ---- text ---- */

uint8_t *sampling_write_randomness(uint8_t *to, uint64_t randomness)
{
    for (int digit = SAMPLING_DIGITS - 1; digit >= 0; digit--)
        *to++ = (uint8_t) "0123456789abcdef"[randomness >> (HEX_BITS * digit) & 15];
    return to;
}

uint8_t *sampling_write_threshold(uint8_t *to, uint64_t threshold)
{
    assert(threshold < SAMPLING_LIMIT);
    uint8_t *end = sampling_write_randomness(to, threshold);
    while (end > to + 1 && end[-1] == '0')
        end--;
    return end;
}

static bool read_hex(struct slice text, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < text.size; i++) {
        int digit = text_hex_digit(text.data[i]);
        if (digit < 0)
            return false;
        *out = *out << HEX_BITS | (uint64_t)digit;
    }
    return true;
}

bool sampling_read_threshold(struct slice text, uint64_t *out)
{
    if (text.size == 0 || text.size > SAMPLING_DIGITS || !read_hex(text, out))
        return false;
    *out <<= HEX_BITS * (SAMPLING_DIGITS - text.size);
    return true;
}

bool sampling_read_randomness(struct slice text, uint64_t *out)
{
    return text.size == SAMPLING_DIGITS && read_hex(text, out);
}

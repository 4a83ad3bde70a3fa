#include "core/base/murmur3.h"

static uint32_t rotate32(uint32_t x, unsigned by)
{
    return x << by | x >> (32 - by);
}

static uint64_t rotate64(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

/* Reads up to 8 bytes, the lowest first. */
static uint64_t load(const uint8_t *from, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size && i < 8; i++)
        value |= (uint64_t)from[i] << (8 * i);
    return value;
}

/* ---- 32 bits ---- */

static uint32_t scramble32(uint32_t k)
{
    return rotate32(k * UINT32_C(0xcc9e2d51), 15) * UINT32_C(0x1b873593);
}

static uint32_t finish32(uint32_t h)
{
    h = (h ^ h >> 16) * UINT32_C(0x85ebca6b);
    h = (h ^ h >> 13) * UINT32_C(0xc2b2ae35);
    return h ^ h >> 16;
}

uint32_t murmur3_32(struct slice bytes)
{
    uint32_t h = 0;
    size_t at = 0;
    for (; at + 4 <= bytes.size; at += 4) {
        h ^= scramble32((uint32_t)load(bytes.data + at, 4));
        h = rotate32(h, 13) * 5 + UINT32_C(0xe6546b64);
    }
    if (at < bytes.size)
        h ^= scramble32((uint32_t)load(bytes.data + at, bytes.size - at));
    return finish32(h ^ (uint32_t)bytes.size);
}

/* ---- 128 bits ---- */

static const uint64_t c1 = UINT64_C(0x87c37b91114253d5), c2 = UINT64_C(0x4cf5ad432745937f);

static uint64_t scramble_low(uint64_t k)
{
    return rotate64(k * c1, 31) * c2;
}

static uint64_t scramble_high(uint64_t k)
{
    return rotate64(k * c2, 33) * c1;
}

static uint64_t finish64(uint64_t h)
{
    h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ h >> 33;
}

static void store(uint64_t value, uint8_t *to)
{
    for (unsigned i = 0; i < 8; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

void murmur3_128(struct slice bytes, uint8_t out[16])
{
    uint64_t low = 0, high = 0;
    size_t at = 0;
    for (; at + 16 <= bytes.size; at += 16) {
        low ^= scramble_low(load(bytes.data + at, 8));
        low = (rotate64(low, 27) + high) * 5 + 0x52dce729;
        high ^= scramble_high(load(bytes.data + at + 8, 8));
        high = (rotate64(high, 31) + low) * 5 + 0x38495ab5;
    }
    size_t rest = bytes.size - at;
    if (rest > 8)
        high ^= scramble_high(load(bytes.data + at + 8, rest - 8));
    if (rest > 0)
        low ^= scramble_low(load(bytes.data + at, rest));
    low ^= bytes.size;
    high ^= bytes.size;
    low += high;
    high += low;
    low = finish64(low);
    high = finish64(high);
    low += high;
    high += low;
    store(low, out);
    store(high, out + 8);
}

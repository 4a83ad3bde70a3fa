#include "core/base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static uint64_t key;

uint64_t random_u64(void)
{
    uint64_t value;
    if (getrandom(&value, sizeof value, 0) != sizeof value) {
        fprintf(stderr, "profcol: the kernel provides no random numbers\n");
        abort();
    }
    return value;
}

void hash_init(void)
{
    key = random_u64();
}

void hash_init_with(uint64_t given)
{
    key = given;
}

uint64_t hash_bytes(struct slice bytes)
{
    return XXH3_64bits_withSeed(bytes.data, bytes.size, key);
}

uint64_t hash_u64(uint64_t value)
{
    return XXH3_64bits_withSeed(&value, sizeof value, key);
}

void hash_xxh3(struct slice bytes, uint8_t out[8])
{
    XXH64_canonical_t canonical;
    XXH64_canonicalFromHash(&canonical, XXH3_64bits(bytes.data, bytes.size));
    memcpy(out, canonical.digest, sizeof canonical.digest);
}

void hash_xxh3_128(struct slice bytes, uint8_t out[16])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data, bytes.size));
    memcpy(out, canonical.digest, sizeof canonical.digest);
}

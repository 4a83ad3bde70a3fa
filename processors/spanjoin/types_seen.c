#include "processors/spanjoin/types_seen.h"

#include <assert.h>

#define ANY_PROFILE (1U << 31)

void types_seen_note(struct types_seen *types, uint32_t bits)
{
    assert(!(bits & ANY_PROFILE));
    bits |= ANY_PROFILE;
    if ((atomic_load_explicit(&types->seen, memory_order_relaxed) & bits) != bits)
        atomic_fetch_or_explicit(&types->seen, bits, memory_order_relaxed);
}

uint32_t types_seen_missing(struct types_seen *types, uint32_t awaited, uint64_t now_ns)
{
    uint32_t seen = atomic_load_explicit(&types->seen, memory_order_relaxed);
    if (!seen || types->is_told)
        return 0;
    if (types->since_ns == 0)
        types->since_ns = now_ns;
    types->is_told = now_ns - types->since_ns >= TYPES_SEEN_AFTER_NS;
    return types->is_told ? awaited & ~seen : 0;
}

#include "processors/spanjoin/request_content.h"

#include "core/base/hash.h"

#include <string.h>

/* Of large requests, a part of the bytes is enough: those that are not the same ones differ nearly
 * everywhere. */
enum { CONTENT_WHOLE = 16384, CONTENT_STEP = 512, CONTENT_READ = 64 };

static uint64_t hash_content(struct slice bytes)
{
    if (bytes.size <= CONTENT_WHOLE)
        return hash_bytes(bytes);
    uint64_t hash = hash_bytes(slice_of(bytes.data + bytes.size - CONTENT_READ, CONTENT_READ));
    for (size_t at = 0; at + CONTENT_READ <= bytes.size; at += CONTENT_STEP)
        hash = hash_u64(hash ^ hash_bytes(slice_of(bytes.data + at, CONTENT_READ)));
    return hash;
}

const uint8_t *request_content(struct sample_plan *plan, uint64_t time_ns)
{
    struct slice bytes = plan->batch->parts[0].root.raw;
    if (plan->content.is_known)
        return plan->content.bytes;
    uint64_t parts[2] = {hash_content(bytes), hash_u64(time_ns) ^ bytes.size};
    _Static_assert(sizeof parts == PROFILE_ID_SIZE, "they are an id");
    memcpy(plan->content.bytes, parts, sizeof parts);
    plan->content.is_known = true;
    return plan->content.bytes;
}

#include "core/pipeline/received_profiles.h"

#include "core/data/scan.h"

#include <assert.h>

enum {
    BUILT_PER_BODY = 8, /* limit on tables and samples, in multiples of the largest body */
    BUILT_MIN_BYTES = 4 * 1024 * 1024,
};

enum compression received_profiles_compression(struct slice bytes)
{
    bool is_gzip = bytes.size >= 2 && bytes.data[0] == 0x1f && bytes.data[1] == 0x8b;
    return is_gzip ? COMPRESSION_GZIP : COMPRESSION_NONE;
}

struct verdict received_profiles_not_plain(enum decompress_result result, size_t max_size,
                                           const char *text)
{
    if (result == DECOMPRESS_OVER_BUDGET)
        return verdict_over_budget;
    if (result == DECOMPRESS_TOO_LARGE)
        return verdict_of(GRPC_RESOURCE_EXHAUSTED,
                          "the decompressed profile has more than %zu bytes", max_size);
    return verdict_of(result == DECOMPRESS_TOO_DENSE ? GRPC_RESOURCE_EXHAUSTED
                                                     : GRPC_INVALID_ARGUMENT,
                      "%s", text);
}

struct profiles_builder *received_profiles_builder(size_t max_size, struct budget *budget)
{
    return profiles_builder_new(budget, BUILT_MIN_BYTES + BUILT_PER_BODY * max_size);
}

struct buffer *received_profiles_finish(struct profiles_builder *builder, uint32_t *samples_out,
                                        struct verdict *why)
{
    struct buffer *request = profiles_builder_finish(builder, samples_out);
    if (!request) {
        assert(profiles_builder_state(builder) != PROFILES_BUILDER_FINE);
        *why = profiles_builder_state(builder) == PROFILES_BUILDER_OVER_BUDGET
                   ? verdict_over_budget
                   : verdict_of(GRPC_RESOURCE_EXHAUSTED, "the profile unfolds to too much");
    } else if (*samples_out > scan_limits_default.items_max) {
        *why = verdict_of(GRPC_RESOURCE_EXHAUSTED, "%u samples, at most %u are allowed",
                          *samples_out, scan_limits_default.items_max);
        buffer_unref(request);
        request = NULL;
    }
    return request;
}

/*
 * profiles_merge: whatever is merged or cut says the same as before, sample by sample, as
 * protobuf-c reads it. The first byte says how large the parts are; a request follows.
 */
#include "core/data/profiles_merge.h"

#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/data/normalise.h"

/* Fuzz targets are not linked with the helpers of unit tests.
 * NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "tests/unit/canonical_profiles.c"

static struct budget budget;

/* As a receiver would hand it on; NULL: refused. */
static struct buffer *take_in(struct slice request, uint32_t *items_out)
{
    struct scan_result scan;
    struct error err;
    if (!scan_profiles(request, &scan_limits_default, &scan, &err))
        return NULL;
    struct buffer *buffer;
    if (normalise_needed(&scan)) {
        buffer = normalise_profiles(request, &scan, NULL);
    } else {
        buffer = buffer_new_charged(request.size, NULL);
        buffer_append(buffer, request.data, request.size, SIZE_MAX / 2);
    }
    if (!buffer || !scan_profiles(buffer_slice(buffer), &scan_limits_default, &scan, &err)) {
        buffer_unref(buffer);
        return NULL;
    }
    *items_out = scan.items;
    return buffer;
}

/* Takes the result, which must be sound and in the one form. */
static void append_result(struct profiles_merge *merge, uint32_t items,
                          enum canonical_detail detail, struct text *out)
{
    struct scan_result scan;
    struct error err;
    assert(profiles_merge_items(merge) == items);
    struct buffer *result = profiles_merge_finish(merge);
    bool sound = scan_profiles(buffer_slice(result), &scan_limits_default, &scan, &err);
    assert(sound && scan.items == items && !normalise_needed(&scan));
    canonical_profiles(buffer_slice(result), detail, out);
    buffer_unref(result);
}

static void check_equal(struct text *got, struct text *expected)
{
    assert(strcmp(text_string(got), text_string(expected)) == 0);
    text_deinit(got);
    text_deinit(expected);
}

static void check_twice(struct profiles_merge *merge, struct buffer *request, uint32_t items)
{
    struct text got = {0}, expected = {0};
    profiles_merge_add(merge, request);
    profiles_merge_add(merge, request);
    append_result(merge, 2 * items, CANONICAL_PROFILES, &got);
    canonical_profiles(buffer_slice(request), CANONICAL_PROFILES, &expected);
    canonical_profiles(buffer_slice(request), CANONICAL_PROFILES, &expected);
    check_equal(&got, &expected);
}

static void check_parts(struct profiles_merge *merge, struct buffer *request, uint32_t items,
                        uint32_t size)
{
    struct text got = {0}, expected = {0};
    struct profiles_source *source = profiles_source_new(merge, request);
    assert(profiles_source_items(source) == items);
    for (uint32_t first = 0; first < items; first += size) {
        uint32_t count = items - first < size ? items - first : size;
        profiles_source_add(source, first, count);
        append_result(merge, count, CANONICAL_SAMPLES, &got);
    }
    profiles_source_free(source);
    canonical_profiles(buffer_slice(request), CANONICAL_SAMPLES, &expected);
    check_equal(&got, &expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    uint32_t items;
    if (!ready) {
        hash_init_with(7);
        scan_init();
        ready = true;
    }
    struct buffer *request = size > 0 ? take_in(slice_of(data + 1, size - 1), &items) : NULL;
    if (!request)
        return 0;
    struct profiles_merge *merge = profiles_merge_new(&budget);
    check_twice(merge, request, items);
    check_parts(merge, request, items, data[0] + 1u);
    profiles_merge_free(merge);
    buffer_unref(request);
    assert(budget_used(&budget) == 0);
    return 0;
}

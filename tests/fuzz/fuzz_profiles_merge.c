/*
 * profiles_merge: merged or split requests must have the same content, sample by sample, as read by
 * protobuf-c. The first byte is the size of the parts; a request follows, and perhaps another one
 * after twelve bytes 0xff (more than any number has).
 */
#include "core/data/profiles_merge.h"

#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/data/normalise.h"

/* Fuzz targets are not linked with the helpers of unit tests.
 * NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "tests/unit/canonical_profiles.c"

static struct budget budget;

/* Reads a request like a receiver; returns NULL if it is refused. */
static struct buffer *take_in(struct slice request, uint32_t *items_out)
{
    struct scan_result scan;
    struct error err;
    if (!scan_profiles(request, &scan_limits_default, &scan, &err))
        return NULL;
    struct buffer *buffer;
    if (normalise_needed(&scan)) {
        buffer = normalise_profiles(request, &scan, NULL, &(bool){false});
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

/* Appends the content of the result, which must pass the scan and be normalised. */
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

/* Checks several merges in a row, because each uses the previous request. */
static void check_whole(struct profiles_merge *merge, struct buffer *const *requests,
                        const uint32_t *items)
{
    static const size_t order[] = {0, 1, 0, 0, 1, 1};
    struct text got = {0}, expected = {0};
    uint32_t sum = 0;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        profiles_merge_add(merge, requests[order[i]]);
        sum += items[order[i]];
        canonical_profiles(buffer_slice(requests[order[i]]), CANONICAL_PROFILES, &expected);
    }
    append_result(merge, sum, CANONICAL_PROFILES, &got);
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
enum { MARK_SIZE = 12 };

/* Returns the beginning of the second request; the end if there is none. */
static const uint8_t *find_second(struct slice input)
{
    static const uint8_t mark[MARK_SIZE] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                            0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    const uint8_t *end = input.data + input.size;
    for (const uint8_t *at = input.data; end - at >= MARK_SIZE; at++)
        if (memcmp(at, mark, sizeof mark) == 0)
            return at + MARK_SIZE;
    return end;
}

static void check(struct buffer *const *requests, const uint32_t *items, uint32_t part_size)
{
    struct profiles_merge *merge = profiles_merge_new(&budget);
    check_whole(merge, requests, items);
    check_parts(merge, requests[0], items[0], part_size);
    profiles_merge_free(merge);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    uint32_t items[2];
    if (!ready) {
        hash_init_with(7);
        scan_init();
        ready = true;
    }
    if (size == 0)
        return 0;
    struct slice first = slice_of(data + 1, size - 1);
    const uint8_t *begin = find_second(first);
    struct slice second = slice_of(begin, (size_t)(data + size - begin));
    if (second.size > 0)
        first.size -= second.size + MARK_SIZE;
    struct buffer *requests[2] = {take_in(first, &items[0])};
    if (requests[0] && second.size > 0)
        requests[1] = take_in(second, &items[1]);
    if (requests[0] && second.size == 0) {
        requests[1] = buffer_ref(requests[0]);
        items[1] = items[0];
    }
    if (requests[0] && requests[1])
        check(requests, items, data[0] + 1u);
    buffer_unref(requests[0]);
    buffer_unref(requests[1]);
    assert(budget_used(&budget) == 0);
    return 0;
}

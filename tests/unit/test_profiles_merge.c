#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/data/json.h"
#include "core/data/normalise.h"
#include "core/data/profiles_merge.h"
#include "core/data/scan.h"
#include "core/data/wire.h"
#include "core/data/zero_entry.h"
#include "tests/unit/canonical_profiles.h"
#include "tests/unit/captures.h"

#include <assert.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct budget budget;

static struct buffer *encode(const char *json)
{
    struct error err = {0};
    bool over_budget;
    struct buffer *buffer =
        json_to_protobuf(JSON_PROFILES_REQUEST, slice_of_string(json), NULL, &over_budget, &err);
    if (!buffer)
        fail_msg("%s: %s", json, err.text);
    return buffer;
}

static char *decode(struct buffer *request)
{
    struct text out = {0};
    json_from_protobuf(JSON_PROFILES_REQUEST, buffer_slice(request), &out);
    buffer_unref(request);
    return out.data;
}

static struct buffer *copy_bytes(struct slice bytes)
{
    struct buffer *buffer = buffer_new_charged(bytes.size, NULL);
    buffer_append(buffer, bytes.data, bytes.size, SIZE_MAX / 2);
    return buffer;
}

/* Adds a request; the merge keeps its own reference. */
static void add_bytes(struct profiles_merge *merge, struct slice bytes)
{
    struct buffer *request = copy_bytes(bytes);
    profiles_merge_add(merge, request);
    buffer_unref(request);
}

/* Scans and normalises a request like a receiver. */
static struct buffer *normalised(struct slice request, struct scan_result *scan)
{
    struct error err = {0};
    if (!scan_profiles(request, &scan_limits_default, scan, &err))
        fail_msg("%s", err.text);
    struct buffer *buffer =
        normalise_needed(scan) ? normalise_profiles(request, scan, NULL, &(bool){false}) : NULL;
    return buffer ? buffer : copy_bytes(request);
}

static char *canonical(struct slice request, enum canonical_detail detail)
{
    struct text out = {0};
    canonical_profiles(request, detail, &out);
    text_append(&out, "");
    return out.data;
}

/* Checks that a result passes the scan, is normalised, and has this many samples. */
static void check_result(struct slice request, uint32_t items)
{
    struct scan_result scan;
    struct error err = {0};
    if (!scan_profiles(request, &scan_limits_default, &scan, &err))
        fail_msg("%s", err.text);
    assert_false(normalise_needed(&scan));
    assert_int_equal(scan.items, items);
}

#define SAMPLES(samples) "{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[" samples "]}]}]}"

#define MAIN_LINK                                                                                  \
    "{\"traceId\":\"000102030405060708090a0b0c0d0e0f\",\"spanId\":\"0001020304050607\"}"
#define ZERO_LINK                                                                                  \
    "{\"traceId\":\"00000000000000000000000000000000\",\"spanId\":\"0000000000000000\"}"

/* One sample in main; an unused string and function, and more stacks than samples. */
static const char *const with_unused = "{\"resourceProfiles\":[" SAMPLES(
    "{\"stackIndex\":1,\"values\":[\"1\"]}") "],\"dictionary\":{\"mappingTable\":[{}],"
                                             "\"locationTable\":[{},{\"address\":\"7\",\"lines\":[{"
                                             "\"functionIndex\":2}]}],"
                                             "\"functionTable\":[{},{\"nameStrindex\":1},{"
                                             "\"nameStrindex\":2}],\"linkTable\":[{}],"
                                             "\"stringTable\":[\"\",\"unused\",\"main\"],"
                                             "\"attributeTable\":[{}],"
                                             "\"stackTable\":[{},{\"locationIndices\":[1]},{"
                                             "\"locationIndices\":[1,1]}]}}";
/* The same location after a zero one, in another stack; an unused empty stack. */
static const char *const with_zeros =
    "{\"resourceProfiles\":[" SAMPLES("{\"stackIndex\":2,\"linkIndex\":1,\"values\":[\"2\"]},{"
                                      "\"values\":[\"3\"]}") "],\"dictionary\":{\"mappingTable\":[{"
                                                             "}],"
                                                             "\"locationTable\":[{},{},{"
                                                             "\"address\":\"7\",\"lines\":[{"
                                                             "\"functionIndex\":1}]}],"
                                                             "\"functionTable\":[{},{"
                                                             "\"nameStrindex\":1}],\"linkTable\":[{"
                                                             "}," MAIN_LINK "],"
                                                             "\"stringTable\":[\"\",\"main\"],"
                                                             "\"attributeTable\":[{}],"
                                                             "\"stackTable\":[{},{"
                                                             "\"locationIndices\":[0]},{"
                                                             "\"locationIndices\":[2]}]}}";

/* Returns the JSON of the merge of two whole requests. */
static char *merge_json(const char *first, const char *second, uint32_t items)
{
    struct profiles_merge *merge = profiles_merge_new(&budget);
    struct buffer *a = encode(first), *b = encode(second);
    profiles_merge_add(merge, a);
    profiles_merge_add(merge, b);
    buffer_unref(a);
    buffer_unref(b);
    assert_int_equal(profiles_merge_items(merge), items);
    struct buffer *result = profiles_merge_finish(merge);
    check_result(buffer_slice(result), items);
    /* The merge is empty and can be used again. */
    assert_int_equal(profiles_merge_items(merge), 0);
    struct buffer *nothing = profiles_merge_finish(merge);
    assert_int_equal(nothing->size, 0);
    buffer_unref(nothing);
    profiles_merge_free(merge);
    char *json = decode(result);
    assert_int_equal(budget_used(&budget), 0);
    return json;
}

#define MERGED(profiles, rest)                                                                     \
    "{\"resourceProfiles\":[" profiles "],\"dictionary\":{\"mappingTable\":[{}]," rest "}}"
#define MAIN_TABLES                                                                                \
    "\"functionTable\":[{},{\"nameStrindex\":1}],\"linkTable\":[" ZERO_LINK "," MAIN_LINK "],"     \
    "\"stringTable\":[\"\",\"main\"],\"attributeTable\":[{}],"

static void interns_and_drops(void **state)
{
    (void)state;
    char *json = merge_json(with_unused, with_zeros, 3);
    assert_string_equal(
        json,
        MERGED(SAMPLES("{\"stackIndex\":1,\"values\":[\"1\"]}") "," SAMPLES(
                   "{\"stackIndex\":1,\"linkIndex\":1,\"values\":[\"2\"]},{\"values\":[\"3\"]}"),
               "\"locationTable\":[{},{\"address\":\"7\",\"lines\":[{\"functionIndex\":1}]}]"
               "," MAIN_TABLES
               "\"stackTable\":[{},{\"locationIndices\":[1]},{\"locationIndices\":[0]}]"));
    free(json);
}

/* All entries of a request without surplus stacks and links, in their order. */
static void keeps_order(void **state)
{
    (void)state;
    char *json = merge_json(with_zeros, with_unused, 3);
    assert_string_equal(
        json, MERGED(SAMPLES("{\"stackIndex\":2,\"linkIndex\":1,\"values\":[\"2\"]},{\"values\":["
                             "\"3\"]}") "," SAMPLES("{\"stackIndex\":2,\"values\":[\"1\"]}"),
                     "\"locationTable\":[{},{\"address\":\"7\",\"lines\":[{\"functionIndex\":1}]}]"
                     "," MAIN_TABLES
                     "\"stackTable\":[{},{\"locationIndices\":[0]},{\"locationIndices\":[1]}]"));
    free(json);
}

static void keeps_unknown_fields(void **state)
{
    (void)state;
    /* Field 2000 (varint 1) in the request, group, scope, profile, sample, dictionary and a
     * string-less location. */
    static const uint8_t request[] = {
        0x80, 0x7d, 0x01,                   /* the request */
        0x0a, 0x13, 0x80, 0x7d, 0x01,       /* a group */
        0x12, 0x0e, 0x80, 0x7d, 0x01,       /* a scope */
        0x12, 0x09, 0x80, 0x7d, 0x01,       /* a profile */
        0x12, 0x04, 0x22, 0x02, 0x05, 0x06, /* a sample: values 5, 6 */
        0x12, 0x03, 0x80, 0x7d, 0x01,       /* the dictionary */
    };
    struct profiles_merge *merge = profiles_merge_new(&budget);
    add_bytes(merge, slice_of(request, sizeof request));
    struct buffer *result = profiles_merge_finish(merge);
    unsigned unknown = 0;
    for (size_t i = 0; i + 3 <= result->size; i++)
        unknown += memcmp(result->data + i, request, 3) == 0;
    assert_int_equal(unknown, 5);
    check_result(buffer_slice(result), 1);
    buffer_unref(result);
    profiles_merge_free(merge);
}

/* ---- cutting ---- */

#define PROFILE(id, samples)                                                                       \
    "{\"samples\":[" samples "],\"timeUnixNano\":\"" id                                            \
    "\",\"profileId\":\"0000000000000000000000000000000" id "\"}"

static const char cut_request[] =
    "{\"resourceProfiles\":[{\"schemaUrl\":\"A\",\"scopeProfiles\":[{\"profiles\":"
    "[" PROFILE(
        "1",
        "{\"values\":[\"1\"]},{\"values\":[\"2\"]},{\"values\":[\"3\"]"
        "}") "," PROFILE("2", "") "]},{\"schemaUrl\":\"none\"}]},"
                                  "{\"schemaUrl\":\"B\",\"scopeProfiles\":[{\"profiles\":[" PROFILE(
                                      "3", "{\"values\":[\"4\"]}") "," PROFILE("4", "") "]}]}]}";

static const struct cut {
    uint32_t first;
    uint32_t count;
    const char *parts[6]; /* expected in this order */
    const char *missing;
} cuts[] = {
    {0, 2, {"\"A\"", "\"profileId\":\"00000000000000000000000000000001\"", NULL}, "\"B\""},
    {0, 3, {"\"A\"", "\"timeUnixNano\":\"1\"", NULL}, "\"timeUnixNano\":\"2\""},
    {2, 1, {"[\"3\"]", "\"timeUnixNano\":\"1\"", NULL}, "profileId"},
    {2,
     2,
     {"[\"3\"]", "\"timeUnixNano\":\"2\"", "\"timeUnixNano\":\"3\"", "\"timeUnixNano\":\"4\"",
      NULL},
     "[\"2\"]"},
    {3,
     1,
     {"\"timeUnixNano\":\"2\"", "[\"4\"]", "\"timeUnixNano\":\"4\"", NULL},
     "\"timeUnixNano\":\"1\""},
};

static void cuts_ranges(void **state)
{
    (void)state;
    struct buffer *request = encode(cut_request);
    struct profiles_merge *merge = profiles_merge_new(&budget);
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        struct profiles_source *source = profiles_source_new(merge, request);
        profiles_source_add(source, cuts[i].first, cuts[i].count);
        profiles_source_free(source);
        assert_int_equal(profiles_merge_items(merge), cuts[i].count);
        struct buffer *part = profiles_merge_finish(merge);
        check_result(buffer_slice(part), cuts[i].count);
        char *json = decode(part);
        for (size_t j = 0; cuts[i].parts[j]; j++)
            if (!strstr(json, cuts[i].parts[j]))
                fail_msg("no %s in %s", cuts[i].parts[j], json);
        if (strstr(json, cuts[i].missing))
            fail_msg("%s in %s", cuts[i].missing, json);
        free(json);
    }
    profiles_merge_free(merge);
    buffer_unref(request);
    assert_int_equal(budget_used(&budget), 0);
}

/* ---- recorded requests ---- */

/* Every entry of a table must be referred to, and no two may be equal. */
static int compare_slices(const void *a, const void *b)
{
    const struct slice *left = a, *right = b;
    size_t size = left->size < right->size ? left->size : right->size;
    int order = size ? memcmp(left->data, right->data, size) : 0;
    return order ? order : (left->size > right->size) - (left->size < right->size);
}

static struct slice dictionary_of(struct slice request)
{
    struct wire_cursor cursor = wire_cursor(request);
    struct wire_field field;
    if (wire_next_bytes(&cursor, PROFILES_DICTIONARY, &field))
        return field.bytes;
    return (struct slice){0};
}

static void check_unique(struct slice request)
{
    for (uint32_t table = 1; table < DICTIONARY_TABLE_COUNT; table++) {
        struct wire_cursor cursor = wire_cursor(dictionary_of(request));
        struct wire_field field;
        struct slice *entries = NULL;
        size_t count = 0;
        while (wire_next_bytes(&cursor, table, &field)) {
            entries = memory_grow(entries, count + 1, sizeof *entries);
            entries[count++] = field.bytes;
        }
        if (!entries)
            fail_msg("table %u has no entries", table);
        assert(entries);
        assert_true(zero_entry_is((int)table, entries[0]));
        qsort(entries, count, sizeof *entries, compare_slices);
        for (size_t i = 1; i < count; i++)
            assert_false(slice_equal(entries[i - 1], entries[i]));
        free(entries);
    }
}

struct gathered {
    struct profiles_merge *merge;
    struct text expected;
    uint32_t items;
};

/* Checks that parts of `size` samples together have the same content as the whole. */
static void check_parts(const struct capture *capture, struct buffer *request, uint32_t items,
                        uint32_t size)
{
    struct profiles_merge *merge = profiles_merge_new(&budget);
    struct profiles_source *source = profiles_source_new(merge, request);
    struct text got = {0};
    assert_int_equal(profiles_source_items(source), items);
    for (uint32_t first = 0; first < items; first += size) {
        uint32_t count = items - first < size ? items - first : size;
        profiles_source_add(source, first, count);
        assert_int_equal(profiles_merge_items(merge), count);
        size_t about = profiles_merge_size(merge);
        struct buffer *part = profiles_merge_finish(merge);
        assert_true(part->size >= about / 2 && part->size <= about + 200);
        check_result(buffer_slice(part), count);
        canonical_profiles(buffer_slice(part), CANONICAL_SAMPLES, &got);
        buffer_unref(part);
    }
    char *expected = canonical(buffer_slice(request), CANONICAL_SAMPLES);
    if (strcmp(text_string(&got), expected) != 0)
        fail_msg("%s: in parts of %u it says something else", capture->name, size);
    free(expected);
    text_deinit(&got);
    profiles_source_free(source);
    profiles_merge_free(merge);
}

static void gather(const struct capture *capture, void *context)
{
    struct gathered *gathered = context;
    struct scan_result scan;
    if (capture->signal != SIGNAL_PROFILES || capture->json)
        return;
    struct buffer *request = normalised(capture->body, &scan);
    canonical_profiles(buffer_slice(request), CANONICAL_PROFILES, &gathered->expected);
    profiles_merge_add(gathered->merge, request);
    gathered->items += scan.items;
    check_parts(capture, request, scan.items, scan.items / 3 + 1);
    if (scan.items < 200)
        check_parts(capture, request, scan.items, 7);
    buffer_unref(request);
}

static void keeps_what_recorded_requests_say(void **state)
{
    (void)state;
    struct gathered gathered = {.merge = profiles_merge_new(&budget)};
    captures_each(gather, &gathered);
    assert_true(gathered.items > 10000);
    assert_int_equal(profiles_merge_items(gathered.merge), gathered.items);
    struct buffer *merged = profiles_merge_finish(gathered.merge);
    profiles_merge_free(gathered.merge);
    check_result(buffer_slice(merged), gathered.items);
    check_unique(buffer_slice(merged));
    char *got = canonical(buffer_slice(merged), CANONICAL_PROFILES);
    assert_true(strcmp(got, text_string(&gathered.expected)) == 0);
    free(got);
    /* Merging a merged request changes only the order of entries: nothing more is dropped. */
    struct profiles_merge *again = profiles_merge_new(&budget);
    profiles_merge_add(again, merged);
    struct buffer *same = profiles_merge_finish(again);
    assert_int_equal(same->size, merged->size);
    buffer_unref(same);
    buffer_unref(merged);
    profiles_merge_free(again);
    text_deinit(&gathered.expected);
    assert_int_equal(budget_used(&budget), 0);
}

/* ---- cost ---- */

/* One profile of many samples with a stack each, split into very many parts: the cost of a part is
 * proportional to its size. */
static void cuts_large_requests_in_linear_time(void **state)
{
    (void)state;
    enum { SAMPLES = 40000 };
    struct text json = {0};
    text_append(&json, "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[");
    for (int i = 1; i <= SAMPLES; i++)
        text_printf(&json, "%s{\"stackIndex\":%d,\"values\":[1]}", i > 1 ? "," : "", i);
    text_append(&json, "]}]}]}],\"dictionary\":{\"mappingTable\":[{}],\"functionTable\":[{}],"
                       "\"linkTable\":[{}],\"stringTable\":[\"\"],"
                       "\"attributeTable\":[{}],\"locationTable\":[{}");
    for (int i = 1; i <= SAMPLES; i++)
        text_printf(&json, ",{\"address\":%d}", i);
    text_append(&json, "],\"stackTable\":[{}");
    for (int i = 1; i <= SAMPLES; i++)
        text_printf(&json, ",{\"locationIndices\":[%d]}", i);
    text_append(&json, "]}}");
    struct buffer *request = encode(text_string(&json));
    struct profiles_merge *merge = profiles_merge_new(&budget);
    struct profiles_source *source = profiles_source_new(merge, request);
    for (uint32_t first = 0; first < SAMPLES;
         first += 5) { /* 8,000 parts, each with cost proportional to its size */
        profiles_source_add(source, first, 5);
        buffer_unref(profiles_merge_finish(merge));
    }
    profiles_source_free(source);
    profiles_merge_free(merge);
    buffer_unref(request);
    text_deinit(&json);
    assert_int_equal(budget_used(&budget), 0);
}

int main(void)
{
    hash_init();
    scan_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interns_and_drops),
        cmocka_unit_test(keeps_order),
        cmocka_unit_test(keeps_unknown_fields),
        cmocka_unit_test(cuts_ranges),
        cmocka_unit_test(keeps_what_recorded_requests_say),
        cmocka_unit_test(cuts_large_requests_in_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "core/base/arena.h"
#include "core/base/hash.h"
#include "core/data/describe.h"
#include "core/data/scan.h"
#include "core/data/wire_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct text describe(const struct wire_writer *request, bool is_traces)
{
    struct text out = {0};
    struct arena arena = {0};
    struct message root;
    message_init(&root, wire_writer_slice(request));
    if (is_traces)
        describe_traces(&root, DESCRIBE_DETAILED, 0, &out);
    else
        describe_profiles(&root, dictionary_new(&root, &arena), DESCRIBE_DETAILED, &out);
    arena_deinit(&arena);
    return out;
}

/* Two strings, two functions, two locations of a line each, and a stack of `frames` of them in
 * turns; a link and an attribute. */
static void put_dictionary(struct wire_writer *out, uint32_t frames)
{
    static const uint8_t functions[] = {0x1a, 0, 0x1a, 2, 0x08, 1, 0x1a, 2, 0x08, 2};
    static const uint8_t locations[] = {0x12, 0,    0x12, 4,    0x1a, 2,    0x08,
                                        1,    0x12, 4,    0x1a, 2,    0x08, 2};
    static const uint8_t link[] = {0x22, 0, 0x22, 10, 0x12, 8, 1, 2, 3, 4, 5, 6, 7, 8};
    static const uint8_t attribute[] = {0x32, 0, 0x32, 6, 0x08, 1, 0x12, 2, 0x18, 5};
    static const uint8_t no_stack[] = {0x3a, 0};
    size_t dictionary = wire_writer_begin(out, PROFILES_DICTIONARY);
    wire_writer_raw(out, slice_of(locations, sizeof locations));
    wire_writer_raw(out, slice_of(functions, sizeof functions));
    wire_writer_raw(out, slice_of(link, sizeof link));
    wire_writer_bytes(out, DICTIONARY_STRING_TABLE, SLICE(""));
    wire_writer_bytes(out, DICTIONARY_STRING_TABLE, SLICE("leaf"));
    wire_writer_bytes(out, DICTIONARY_STRING_TABLE, SLICE("root"));
    wire_writer_raw(out, slice_of(attribute, sizeof attribute));
    wire_writer_raw(out, slice_of(no_stack, sizeof no_stack));
    size_t stack = wire_writer_begin(out, DICTIONARY_STACK_TABLE);
    for (uint32_t i = 0; i < frames; i++)
        wire_writer_varint(out, STACK_LOCATION_INDICES, 1 + i % 2);
    wire_writer_end(out, stack);
    wire_writer_end(out, dictionary);
}

static void put_samples(struct wire_writer *out, uint32_t count)
{
    static const uint8_t sample[] = {0x12, 7, 0x08, 1, 0x12, 1, 1, 0x20, 1};
    size_t group = wire_writer_begin(out, PROFILES_RESOURCE_PROFILES);
    size_t scope = wire_writer_begin(out, RESOURCE_PROFILES_SCOPE_PROFILES);
    size_t profile = wire_writer_begin(out, SCOPE_PROFILES_PROFILES);
    for (uint32_t i = 0; i < count; i++)
        wire_writer_raw(out, slice_of(sample, sizeof sample));
    wire_writer_end(out, profile);
    wire_writer_end(out, scope);
    wire_writer_end(out, group);
}

/* How often `part` stands in the text. */
static uint32_t count_of(const struct text *text, const char *part)
{
    uint32_t count = 0;
    for (const char *at = text_string(text); (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

static void repeated_entries_are_shown_each_time(void **state)
{
    (void)state;
    struct wire_writer request = {0};
    put_samples(&request, 3);
    put_dictionary(&request, 4);
    struct text shown = describe(&request, false);
    assert_int_equal(count_of(&shown, "Sample #"), 3);
    assert_int_equal(count_of(&shown, "        Stack (leaf first):\n"
                                      "             leaf\n             root\n"
                                      "             leaf\n             root\n"),
                     3);
    assert_int_equal(count_of(&shown, "left out"), 0);
    text_deinit(&shown);
    wire_writer_deinit(&request);
}

/* Of profiles, because their text may be a thousand times as long. */
static void a_text_ends_and_says_what_is_missing(void **state)
{
    (void)state;
    enum { FRAMES = 2000, SAMPLES = 5000 };
    struct wire_writer request = {0};
    put_samples(&request, SAMPLES);
    put_dictionary(&request, FRAMES);
    struct text shown = describe(&request, false);
    size_t most = DESCRIBE_TIMES * request.size + DESCRIBE_MORE_BYTES;
    const char *last = strstr(text_string(&shown), "\n... ");
    unsigned missing = 0, total = 0;
    assert_in_range(shown.size, most, most + 100);
    assert_non_null(last);
    assert_int_equal(
        sscanf(last, "\n... %u of %u samples are cut off or left out\n", &missing, &total), 2);
    assert_int_equal(total, SAMPLES);
    assert_int_equal(missing + count_of(&shown, "Sample #"), SAMPLES + 1); /* one is cut off */
    assert_int_equal(shown.limit, 0);
    text_deinit(&shown);
    wire_writer_deinit(&request);
}

static void spans_are_counted_too(void **state)
{
    (void)state;
    enum { SPANS = 20000 };
    struct wire_writer request = {0};
    size_t group = wire_writer_begin(&request, TRACES_RESOURCE_SPANS);
    size_t scope = wire_writer_begin(&request, RESOURCE_SPANS_SCOPE_SPANS);
    for (int i = 0; i < SPANS; i++)
        wire_writer_bytes(&request, SCOPE_SPANS_SPANS, (struct slice){0});
    wire_writer_end(&request, scope);
    wire_writer_end(&request, group);
    struct text shown = describe(&request, true);
    const char *last = strstr(text_string(&shown), "\n... ");
    unsigned missing = 0, total = 0;
    assert_non_null(last);
    assert_int_equal(
        sscanf(last, "\n... %u of %u spans are cut off or left out\n", &missing, &total), 2);
    assert_int_equal(total, SPANS);
    assert_in_range(missing, 1, SPANS - 1);
    text_deinit(&shown);
    wire_writer_deinit(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repeated_entries_are_shown_each_time),
        cmocka_unit_test(a_text_ends_and_says_what_is_missing),
        cmocka_unit_test(spans_are_counted_too),
    };
    hash_init();
    scan_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

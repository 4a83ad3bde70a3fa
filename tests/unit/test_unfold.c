#include "core/data/scan_schema.h"
#include "core/data/unfold.h"
#include "core/data/wire_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Checks a request that `write` makes with `times` repetitions. expected: the error; NULL: none. */
static void check(enum scan_flavour flavour, void (*write)(struct wire_writer *out, size_t times),
                  size_t times, size_t memory_bytes, const char *expected)
{
    struct wire_writer request = {0};
    struct scan_result scan;
    struct error err = {0};
    write(&request, times);
    struct slice bytes = wire_writer_slice(&request);
    bool is_traces = flavour == SCAN_TRACES;
    assert_true(
        (is_traces ? scan_traces : scan_profiles)(bytes, &scan_limits_default, &scan, &err));
    bool passed = (is_traces ? unfold_traces : unfold_profiles)(bytes, &scan, memory_bytes, &err);
    assert_int_equal(passed, expected == NULL);
    if (expected)
        assert_string_equal(err.text, expected);
    wire_writer_deinit(&request);
}

/* Writes one resource of 1,000 bytes with `times` scopes, for both signals. */
static void write_scopes(struct wire_writer *out, size_t times)
{
    static const uint8_t text[1000 - 3];
    size_t group = wire_writer_begin(out, TRACES_RESOURCE_SPANS);
    size_t resource = wire_writer_begin(out, RESOURCE_SPANS_RESOURCE);
    wire_writer_bytes(out, 15, slice_of(text, sizeof text)); /* an unknown field */
    wire_writer_end(out, resource);
    for (size_t i = 0; i < times; i++)
        wire_writer_bytes(out, RESOURCE_SPANS_SCOPE_SPANS, (struct slice){0});
    wire_writer_end(out, group);
}

static void write_profiles(struct wire_writer *out, size_t times)
{
    size_t group = wire_writer_begin(out, PROFILES_RESOURCE_PROFILES);
    size_t scope = wire_writer_begin(out, RESOURCE_PROFILES_SCOPE_PROFILES);
    for (size_t i = 0; i < times; i++)
        wire_writer_bytes(out, SCOPE_PROFILES_PROFILES, (struct slice){0});
    wire_writer_end(out, scope);
    wire_writer_end(out, group);
}

/* The same, and a resource of 26 MB. */
static void write_profiles_of_a_large_request(struct wire_writer *out, size_t times)
{
    static uint8_t text[26000000];
    size_t group = wire_writer_begin(out, PROFILES_RESOURCE_PROFILES);
    wire_writer_bytes(out, 15, slice_of(text, sizeof text)); /* an unknown field */
    wire_writer_end(out, group);
    write_profiles(out, times);
}

/* Writes a stack of 1,000 frames, and `times` samples with it. */
static void write_samples(struct wire_writer *out, size_t times)
{
    static const uint8_t frames[1000],
        value[] = {SAMPLE_STACK_INDEX << 3, 1, SAMPLE_VALUES << 3, 1};
    size_t group = wire_writer_begin(out, PROFILES_RESOURCE_PROFILES);
    size_t scope = wire_writer_begin(out, RESOURCE_PROFILES_SCOPE_PROFILES);
    size_t profile = wire_writer_begin(out, SCOPE_PROFILES_PROFILES);
    for (size_t i = 0; i < times; i++)
        wire_writer_bytes(out, PROFILE_SAMPLES, slice_of(value, sizeof value));
    wire_writer_end(out, profile);
    wire_writer_end(out, scope);
    wire_writer_end(out, group);
    size_t dictionary = wire_writer_begin(out, PROFILES_DICTIONARY);
    wire_writer_bytes(out, DICTIONARY_STACK_TABLE, (struct slice){0});
    size_t stack = wire_writer_begin(out, DICTIONARY_STACK_TABLE);
    wire_writer_bytes(out, STACK_LOCATION_INDICES, slice_of(frames, sizeof frames));
    wire_writer_end(out, stack);
    wire_writer_end(out, dictionary);
}

static void test_scopes(void **state)
{
    (void)state;
    check(SCAN_TRACES, write_scopes, 100000, 0, NULL);
    check(SCAN_TRACES, write_scopes, 100001, 0,
          "the request holds 100001 scope_spans, more than 100000");
    check(SCAN_PROFILES, write_scopes, 8000, 0, NULL);
    check(SCAN_PROFILES, write_scopes, 10000, 0,
          "the request holds 10000000 bytes of labels over all scopes, more than 9060832");
}

static void test_profiles(void **state)
{
    (void)state;
    check(SCAN_PROFILES, write_profiles, 8256, 0, NULL); /* 16,520 bytes */
    check(SCAN_PROFILES, write_profiles, 8257, 0,
          "the request holds 8257 profiles, more than 8256");
    check(SCAN_PROFILES, write_profiles_of_a_large_request, 100000, 0, NULL);
    check(SCAN_PROFILES, write_profiles_of_a_large_request, 100001, 0,
          "the request holds 100001 profiles, more than 100000");
}

static void test_frames(void **state)
{
    (void)state;
    check(SCAN_PROFILES, write_samples, 8000, 0, NULL);
    check(SCAN_PROFILES, write_samples, 20000, 0,
          "the request holds 20000000 frames over all samples, more than 12261344");
}

static void test_memory(void **state)
{
    (void)state;
    check(SCAN_PROFILES, write_profiles, 1000, (size_t)64 * 1100, NULL);
    check(SCAN_PROFILES, write_profiles, 1000, (size_t)64 * 1000,
          "the request holds 1002 messages and strings, for which there is not enough memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_profiles),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_memory),
    };
    scan_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "core/base/hash.h"
#include "core/data/scan.h"
#include "core/data/wire.h"
#include "core/formats/pprof.h"
#include "core/formats/profiles_builder.h"
#include "tests/unit/pprof_fixture.h"
#include "tests/unit/wire_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct pprof_options no_options;

/* ---- recordings ---- */

static char *sorted_lines(const char *text)
{
    char *copy = strdup(text), *lines[64];
    size_t count = 0;
    for (char *line = strtok(copy, "\n"); line; line = strtok(NULL, "\n")) {
        size_t at = count++;
        assert_true(count < 64);
        for (; at > 0 && strcmp(lines[at - 1], line) > 0; at--)
            lines[at] = lines[at - 1];
        lines[at] = line;
    }
    struct text sorted = {0};
    for (size_t i = 0; i < count; i++)
        text_printf(&sorted, "%s\n", lines[i]);
    free(copy);
    return sorted.data;
}

static struct text all_reports;

static void report_one(const char *name)
{
    struct buffer *pprof = pprof_load(name);
    struct error err;
    struct buffer *request = pprof_to_otlp(buffer_slice(pprof), &no_options, &err);
    assert_non_null(request);
    pprof_report(buffer_slice(request), name, &all_reports);
    buffer_unref(request);
    buffer_unref(pprof);
}

static void test_recordings_say_what_the_oracle_reads(void **state)
{
    (void)state;
    struct buffer *expected = pprof_load("expected.txt");
    pprof_each(report_one);
    struct text wanted = {0};
    text_append_slice(&wanted, buffer_slice(expected));
    char *a = sorted_lines(text_string(&wanted)), *b = sorted_lines(text_string(&all_reports));
    if (strcmp(a, b) != 0) {
        fprintf(stderr, "expected\n%sgot\n%s", a, b);
        fail();
    }
    free(a);
    free(b);
    text_deinit(&wanted);
    text_deinit(&all_reports);
    buffer_unref(expected);
}

/* Whether only optional fields of the header, and their strings, are missing. */
static bool is_header_rest(struct slice rest)
{
    struct wire_cursor cursor = wire_cursor(rest);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.number < PPROF_STRING_TABLE)
            return false;
    return !cursor.broken;
}

static void cut_one(const char *name)
{
    struct buffer *pprof = pprof_load(name);
    struct slice whole = buffer_slice(pprof);
    struct error err;
    struct text wanted = {0};
    struct buffer *request = pprof_to_otlp(whole, &no_options, &err);
    pprof_report(buffer_slice(request), name, &wanted);
    buffer_unref(request);
    for (size_t size = 0; size < whole.size; size++) {
        err.text[0] = '\0';
        request = pprof_to_otlp(slice_of(whole.data, size), &no_options, &err);
        if (!request) {
            assert_true(err.text[0] != '\0');
            continue;
        }
        struct text got = {0};
        pprof_report(buffer_slice(request), name, &got);
        if (!is_header_rest(slice_of(whole.data + size, whole.size - size)) ||
            strcmp(text_string(&got), text_string(&wanted)) != 0)
            fail_msg("%s cut at %zu of %zu is taken for a whole profile", name, size, whole.size);
        text_deinit(&got);
        buffer_unref(request);
    }
    text_deinit(&wanted);
    buffer_unref(pprof);
}

static void test_no_prefix_of_a_recording_is_half_a_profile(void **state)
{
    (void)state;
    pprof_each(cut_one);
}

/* ---- small pprofs ---- */

/* One sample of two values and a stack of two, everything set; its strings:
 * 0 "", 1 cpu, 2 nanoseconds, 3 samples, 4 count, 5 main, 6 main.c, 7 leaf, 8 app, 9 key, 10 value,
 * 11 bytes */
#define STRINGS                                                                                    \
    "6\"\" 6\"cpu\" 6\"nanoseconds\" 6\"samples\" 6\"count\" 6\"main\" 6\"main.c\" 6\"leaf\" "     \
    "6\"app\" 6\"key\" 6\"value\" 6\"bytes\" "
#define TYPES "1{1=3 2=4} 1{1=1 2=2} "
#define MAPPING "3{1=1 2=4096 3=8192 4=1 5=8 6=11 7=1 10=1} "
#define FUNCTIONS "5{1=1 2=5 3=5 4=6 5=10} 5{1=2 2=7} "
#define LOCATIONS "4{1=1 2=1 3=5000 4{1=1 2=12 3=2}} 4{1=2 4{1=2} 4{1=1} 5=1} "
#define SAMPLE "2{1=2 1=1 2[7 70] 3{1=9 2=10} 3{1=8 3=5 4=11}} "

static void check(const char *notation, const struct pprof_options *options, const char *expected)
{
    struct text pprof = wire_text(notation);
    struct text got = {0};
    struct error err = {.text = "accepted, without samples"};
    struct buffer *request = pprof_to_otlp(wire_text_slice(&pprof), options, &err);
    if (request)
        pprof_describe(buffer_slice(request), &got);
    else
        text_append(&got, err.text);
    if (strcmp(text_string(&got), expected) != 0)
        fail_msg("%s:\n  expected %s\n  got      %s", notation, expected, text_string(&got));
    buffer_unref(request);
    text_deinit(&got);
    text_deinit(&pprof);
}

#define FRAMES                                                                                     \
    "{0 0 0  @0 [leaf   0 0 0] [main main main.c 10 0 0] folded}"                                  \
    "{4096 8192 1 app build=bytes has_functions has_inline_frames @5000 [main main main.c 10 12 "  \
    "2]}"

static const char whole_text[] = "cpu/nanoseconds 5+6 every 100 cpu/nanoseconds\n"
                                 "70 " FRAMES " app=5 bytes key=value /\n"
                                 "samples/count 5+6 every 100 cpu/nanoseconds\n"
                                 "7 " FRAMES " app=5 bytes key=value /\n";

#define HEADER "9=5 10=6 11{1=1 2=2} 12=100 "

static void test_everything_in_any_order(void **state)
{
    (void)state;
    check(TYPES SAMPLE MAPPING LOCATIONS FUNCTIONS STRINGS HEADER, &no_options, whole_text);
    check(STRINGS FUNCTIONS LOCATIONS MAPPING SAMPLE HEADER TYPES, &no_options, whole_text);
    check(HEADER "5{1=2 2=7} 5{1=1 2=5 3=5 4=6 5=10} 4{1=2 4{1=2} 4{1=1} 5=1} " STRINGS SAMPLE
                 "4{1=1 2=1 3=5000 4{1=1 2=12 3=2}} " TYPES MAPPING,
          &no_options, whole_text);
    /* packed or not, mixed, single values; unknown fields; the last occurrence counts */
    check(TYPES "2{1[2 1] 2=7 2=70 3{1=9 2=3 2=10} 3{1=8 3=5 4=11} 99\"x\" 7#3} 99{} 98=1 " MAPPING
              LOCATIONS FUNCTIONS STRINGS "9=4 " HEADER "11{1=1}",
          &no_options, whole_text);
}

static void test_sparse_ids(void **state)
{
    (void)state;
    check(TYPES "2{1=18446744073709551615 1[9000000000] 2[7 70] 3{1=9 2=10} 3{1=8 3=5 4=11}}"
                "3{1=77777777 2=4096 3=8192 4=1 5=8 6=11 7=1 10=1}"
                "4{1=9000000000 2=77777777 3=5000 4{1=12345678901 2=12 3=2}}"
                "4{1=18446744073709551615 4{1=100} 4{1=12345678901} 5=1}"
                "5{1=12345678901 2=5 3=5 4=6 5=10} 5{1=100 2=7} " STRINGS HEADER,
          &no_options, whole_text);
}

static void test_what_the_upload_adds(void **state)
{
    (void)state;
    struct pprof_options options = {.time_unix_nano = 50,
                                    .duration_nano = 60,
                                    .metric_name = SLICE("process_cpu"),
                                    .upload = {.has_trace = true, .trace_id = {1}}};
    check("1{1=1 2=2} 2{2=3} 6\"\" 6\"cpu\" 6\"nanoseconds\" 9=-1", &options,
          "cpu/nanoseconds 50+60 __name__=process_cpu\n"
          "3  01000000000000000000000000000000/\n");
    check(
        "1{1=1 2=2} 2{2=3} 6\"\" 6\"cpu\" 6\"nanoseconds\" 9=7 10=8 13=1 13[2 1] 7=1 8=2 14=1 15=2",
        &options,
        "cpu/nanoseconds 7+8 __name__=process_cpu pprof.profile.drop_frames=cpu "
        "pprof.profile.keep_frames=nanoseconds pprof.profile.doc_url=nanoseconds "
        "pprof.profile.default_sample_type=cpu pprof.profile.comment.0=cpu "
        "pprof.profile.comment.1=nanoseconds pprof.profile.comment.2=cpu\n"
        "3  01000000000000000000000000000000/\n");
}

static void test_zero_values_are_left_out(void **state)
{
    (void)state;
    check("1{1=1} 1{1=2} 1{1=3} 2{2[1 0 0]} 2{2[0 0 0]} 2{2[2 0 -3]} 6\"\" 6\"a\" 6\"b\" 6\"c\"",
          &no_options, "c/ 0+0\n-3  /\nb/ 0+0\na/ 0+0\n1  /\n2  /\n");
    /* a request without any samples has its profiles, which say that there were none */
    check("1{1=1} 2{2=0} 6\"\" 6\"a\"", &no_options, "a/ 0+0\n");
    check("1{1=1} 6\"\" 6\"a\"", &no_options, "a/ 0+0\n");
    /* the last type becomes the first one, and the first one the last */
    check("1{1=1} 1{1=2} 1{1=3} 1{1=4} 2{2[1 2 3 4]} 6\"\" 6\"a\" 6\"b\" 6\"c\" 6\"d\"",
          &no_options, "d/ 0+0\n4  /\nb/ 0+0\n2  /\nc/ 0+0\n3  /\na/ 0+0\n1  /\n");
}

static void test_labels(void **state)
{
    static const struct {
        const char *labels, *strings, *expected;
    } cases[] = {
        {"3{1=2 2=3}", "6\"span_id\" 6\"00000000000000ab\"", "1  /00000000000000ab\n"},
        {"3{1=2 2=3}", "6\"profile_id\" 6\"00000000000000AB\"", "1  /00000000000000ab\n"},
        {"3{1=2 2=3}", "6\"span.id\" 6\"00000000000000ab\"", "1  /00000000000000ab\n"},
        {"3{1=2 2=3}", "6\"otel.span_id\" 6\"00000000000000ab\"", "1  /00000000000000ab\n"},
        {"3{1=2 2=3}", "6\"span id\" 6\"258\"", "1  /0000000000000102\n"},
        {"3{1=2 3=-1}", "6\"local root span id\"", "1  /ffffffffffffffff\n"},
        {"3{1=2 2=3}", "6\"trace_id\" 6\"0102030405060708090a0b0c0d0e0f10\"",
         "1  0102030405060708090a0b0c0d0e0f10/\n"},
        {"3{1=2 2=3}", "6\"otel.traceid\" 6\"0102030405060708090a0b0c0d0e0f10\"",
         "1  0102030405060708090a0b0c0d0e0f10/\n"},
        /* the first spelling takes precedence, whatever the order; all are removed */
        {"3{1=2 2=3} 3{1=4 2=5}", "6\"span id\" 6\"1\" 6\"span_id\" 6\"00000000000000ab\"",
         "1  /00000000000000ab\n"},
        {"3{1=4 2=5} 3{1=2 2=3}", "6\"span id\" 6\"1\" 6\"span_id\" 6\"00000000000000ab\"",
         "1  /00000000000000ab\n"},
        /* no ids */
        {"3{1=2 2=3}", "6\"span_id\" 6\"0000000000000000\"", "1  span_id=0000000000000000 /\n"},
        {"3{1=2 2=3}", "6\"span_id\" 6\"ab\"", "1  span_id=ab /\n"},
        {"3{1=2 3=7}", "6\"span_id\"", "1  span_id=7  /\n"},
        {"3{1=2 2=3}", "6\"span id\" 6\"18446744073709551616\"",
         "1  span id=18446744073709551616 /\n"},
        {"3{1=2 2=3}", "6\"Span_id\" 6\"00000000000000ab\"", "1  Span_id=00000000000000ab /\n"},
        /* 0 with a unit is a number; an empty label is ignored; a label needs a name */
        {"3{1=2 4=3} 3{1=3}", "6\"n\" 6\"bytes\"", "1  n=0 bytes /\n"},
        {"3{2=2} 3{3=5} 3{1=2 3=-5}", "6\"x\"", "1  x=-5  /\n"},
        /* one value for each name */
        {"3{1=2 2=3} 3{1=2 2=1} 3{1=4 3=1}", "6\"k\" 6\"v\" 6\"k\"", "1  k=v /\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char notation[512], expected[512];
        snprintf(notation, sizeof notation, "1{1=1} 2{2=1 %s} 6\"\" 6\"t\" %s", cases[i].labels,
                 cases[i].strings);
        snprintf(expected, sizeof expected, "t/ 0+0\n%s", cases[i].expected);
        check(notation, &no_options, expected);
    }
    struct pprof_options options = {
        .upload = {.has_span = true, .span_id = {9}, .has_trace = true, .trace_id = {8}}};
    check("1{1=1} 2{2=1 3{1=2 2=3}} 2{2=2} 6\"\" 6\"t\" 6\"span_id\" 6\"00000000000000ab\"",
          &options,
          "t/ 0+0\n1  08000000000000000000000000000000/00000000000000ab\n"
          "2  08000000000000000000000000000000/0900000000000000\n");
}

static void test_what_is_refused(void **state)
{
    static const char end[] = "1{1=1} 6\"\" 6\"a\"";
    static const struct {
        const char *pprof, *error;
    } cases[] = {
        {"", "string_table: is empty, must start with \"\""},
        {"6\"\"", "sample_type: there is none"},
        {"1{1=1} 6\"a\" 6\"b\"", "string_table[0]: is not empty"},
        {"1{1=1} 6\"\" 6x61ff", "string_table[1]: is not valid UTF-8"},
        {"1{1=2} 6\"\" 6\"a\"", "sample_type[0].type: 2 is outside the string_table, which has 2"},
        {"1{1=1} 1{1=1 2=-1} 6\"\" 6\"a\"",
         "sample_type[1].unit: 18446744073709551615 is outside the string_table, which has 2"},
        {"11{2=7}", "period_type[0].unit: 7 is outside the string_table, which has 2"},
        {"7=2", "drop_frames: 2 is outside the string_table, which has 2"},
        {"8=2", "keep_frames: 2 is outside the string_table, which has 2"},
        {"14=2", "default_sample_type: 2 is outside the string_table, which has 2"},
        {"15=2", "doc_url: 2 is outside the string_table, which has 2"},
        {"13[1 2]", "comment: 2 is outside the string_table, which has 2"},
        {"1001*13=1", "comment: there are more than 1000"},
        {"64*1{}", "sample_type: there are more than 64"},
        {"3{}", "mapping[0].id: is 0"},
        {"3{1=1} 3{1=1}", "mapping[1].id: 1 appears twice"},
        {"3{1=1 5=2}", "mapping[0].filename: 2 is outside the string_table, which has 2"},
        {"3{1=1 6=2}", "mapping[0].build_id: 2 is outside the string_table, which has 2"},
        {"3{1\"x\"}", "mapping[0].id: has the wrong wire type: 2"},
        {"5{2=1}", "function[0].id: is 0"},
        {"5{1=9999999999} 5{1=9999999999}", "function[1].id: 9999999999 appears twice"},
        {"5{1=1 2=2}", "function[0].name: 2 is outside the string_table, which has 2"},
        {"5{1=1 3=2}", "function[0].system_name: 2 is outside the string_table, which has 2"},
        {"5{1=1 4=2}", "function[0].filename: 2 is outside the string_table, which has 2"},
        {"4{3=1}", "location[0].id: is 0"},
        {"4{1=1} 4{1=1}", "location[1].id: 1 appears twice"},
        {"4{1=1 2=1}", "location[0].mapping_id: 1 is not in the profile"},
        {"4{1=1 4{}}", "location[0].line[0].function_id: 0 is not in the profile"},
        {"4{1=1 4{1=3}}", "location[0].line[0].function_id: 3 is not in the profile"},
        {"5{1=1} 4{1=1 1001*4{1=1}}", "location[0].line: there are more than 1000"},
        {"4{1=1 4=1}", "location[0].line: has the wrong wire type: 0"},
        {"2{2=1} 2{1=1 2=1}", "sample[1].location_id: 1 is not in the profile"},
        {"2{1[0] 2=1}", "sample[0].location_id: 0 is not in the profile"},
        {"2{}", "sample[0].value: has 0, must have 1 like sample_type"},
        {"2{2[1 2]}", "sample[0].value: has 2, must have 1 like sample_type"},
        {"2{2=1 3{1=2}}", "sample[0].label[0].key: 2 is outside the string_table, which has 2"},
        {"2{2=1 3{} 3{2=2}}", "sample[0].label[1].str: 2 is outside the string_table, which has 2"},
        {"2{2=1 3{4=2}}",
         "sample[0].label[0].num_unit: 2 is outside the string_table, which has 2"},
        {"2{2=1 3{1=1 2=1 3=1}}", "sample[0].label[0]: has both str and num"},
        {"2{2=1 101*3{1=1 2=1}}", "sample[0].label: there are more than 100"},
        {"4{1=1} 2{2=1 65537*1=1}", "sample[0].location_id: there are more than 65536"},
        {"2{1x80 2=1}", "sample[0].location_id: is cut"},
        {"2{2x80}", "sample[0].value: is cut"},
        {"2{!12}", "sample[0]: is truncated, or not protobuf"},
        {"2=1", "sample: has the wrong wire type: 0"},
        {"6=1", "string_table: has the wrong wire type: 0"},
        {"9\"x\"", "time_nanos: has the wrong wire type: 2"},
        {"3\"\" !0b", "is truncated, or not protobuf"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char notation[512];
        bool own = i < 6; /* these contain all that they need */
        snprintf(notation, sizeof notation, "%s %s", cases[i].pprof, own ? "" : end);
        check(notation, &no_options, cases[i].error);
    }
}

/* ---- bounds of the builder ---- */

static void test_a_full_builder_is_no_error_of_the_pprof(void **state)
{
    (void)state;
    struct buffer *pprof = pprof_load("go-cpu.pb.gz");
    for (size_t max = 1000; max < 2000000; max = max * 5 / 4) {
        struct profiles_builder *builder = profiles_builder_new(NULL, max);
        struct built_resource resource = {.attribute_count = 0};
        struct error err;
        uint32_t samples;
        profiles_builder_resource(builder, &resource);
        assert_true(pprof_read(builder, buffer_slice(pprof), &no_options, &err));
        struct buffer *request = profiles_builder_finish(builder, &samples);
        assert_true((request != NULL) ==
                    (profiles_builder_state(builder) == PROFILES_BUILDER_FINE));
        if (request)
            assert_int_equal(samples, 2 * 518);
        assert_true((max > 1000000) <= (request != NULL));
        buffer_unref(request);
        profiles_builder_free(builder);
    }
    buffer_unref(pprof);
}

/* ---- names ---- */

static void check_name(const char *notation, const char *display_name, const char *expected)
{
    struct text pprof = wire_text(notation);
    struct sample_type_name types[4];
    size_t count = pprof_sample_types(wire_text_slice(&pprof), types, 4);
    for (size_t i = 0; display_name && i < count; i++)
        types[i].display_name = slice_of_string(display_name);
    struct slice name = profile_name(types, count);
    if (!slice_is(name, expected))
        fail_msg("%s: expected %s, got %.*s", notation, expected, SLICE_ARG(name));
    text_deinit(&pprof);
}

static void test_names(void **state)
{
    (void)state;
    check_name("6\"\" 6\"samples\" 6\"count\" 1{1=1 2=2}", NULL, "process_cpu");
    check_name("6\"\" 6\"samples\" 6\"wall\" 1{1=1 2=2} 1{1=2}", NULL, "wall");
    check_name("6\"\" 6\"itimer_cpu\" 6\"x\" 1{1=2} 1{1=1}", NULL, "process_cpu");
    check_name("6\"\" 6\"alloc_space\" 1{1=1}", NULL, "memory");
    check_name("6\"\" 6\"inuse_objects\" 1{1=1}", NULL, "memory");
    check_name("6\"\" 6\"objects\" 6\"space\" 1{1=2} 1{1=1}", NULL, "memory");
    check_name("6\"\" 6\"contentions\" 6\"delay\" 1{1=1} 1{1=2}", NULL, "mutex");
    check_name("6\"\" 6\"contentions\" 6\"delay\" 1{1=1} 1{1=2}", "block_count", "block");
    check_name("6\"\" 6\"goroutine\" 1{1=1}", "goroutines", "goroutines");
    check_name("6\"\" 6\"goroutine\" 1{1=1}", NULL, "goroutines");
    check_name("6\"\" 6\"lock\" 6\"exceptions\" 1{1=1} 1{1=2}", NULL, "exceptions");
    check_name("6\"\" 6\"lock\" 1{1=1}", "my_lock", "my_lock");
    check_name("6\"\" 6\"lock\"", NULL, "");
    check_name("6\"\" 1{1=1}", NULL, ""); /* there is no such string */
}

static void test_sample_types(void **state)
{
    (void)state;
    struct sample_type_name types[2];
    struct text pprof = wire_text("1{1=2 2=1} 1{1=1 2=2} 1{1=3} 6\"\" 6\"a\" 6\"b\" 6\"c\"");
    assert_int_equal(pprof_sample_types(wire_text_slice(&pprof), types, 2), 2);
    assert_true(slice_is(types[0].type, "b") && slice_is(types[0].unit, "a"));
    assert_true(slice_is(types[1].type, "a") && slice_is(types[1].unit, "b"));
    assert_int_equal(types[0].display_name.size, 0);
    assert_int_equal(pprof_sample_types(SLICE("\x0b"), types, 2), 0);
    text_deinit(&pprof);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recordings_say_what_the_oracle_reads),
        cmocka_unit_test(test_no_prefix_of_a_recording_is_half_a_profile),
        cmocka_unit_test(test_everything_in_any_order),
        cmocka_unit_test(test_sparse_ids),
        cmocka_unit_test(test_what_the_upload_adds),
        cmocka_unit_test(test_zero_values_are_left_out),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_a_full_builder_is_no_error_of_the_pprof),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_sample_types),
    };
    hash_init();
    scan_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

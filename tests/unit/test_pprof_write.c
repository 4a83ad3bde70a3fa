/* With two arguments, an input file and an output file, the program converts a pprof to OTLP and
 * back, for `go tool pprof -diff_base`. */
#include "core/base/arena.h"
#include "core/base/hash.h"
#include "core/data/scan.h"
#include "tests/unit/pprof_fixture.h"
#include "tests/unit/wire_text.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct pprof_options no_options;
static const struct pprof_limits no_limits;

static void keep_only(struct slice pprof, void *context)
{
    struct buffer **kept = context;
    assert_null(*kept);
    *kept = buffer_new_charged(pprof.size, NULL);
    assert_true(buffer_append(*kept, pprof.data, pprof.size, SIZE_MAX));
}

/* Converts siblings without limits to one pprof. */
static struct buffer *to_one_pprof(struct slice request)
{
    struct buffer *pprof = NULL;
    pprof_from_otlp(request, NULL, &no_limits, keep_only, &pprof);
    assert_non_null(pprof);
    return pprof;
}

static struct buffer *read_pprof(struct slice pprof)
{
    struct error err;
    struct buffer *request = pprof_to_otlp(pprof, &no_options, &err);
    if (!request)
        fail_msg("%s", err.text);
    return request;
}

/* ---- there and back ---- */

static void go_there_and_back(const char *name)
{
    struct buffer *pprof = pprof_load(name);
    struct buffer *request = read_pprof(buffer_slice(pprof));
    struct buffer *back = to_one_pprof(buffer_slice(request));
    struct buffer *again = read_pprof(buffer_slice(back));
    struct text a = {0}, b = {0};
    pprof_describe_sums(buffer_slice(request), true, &a);
    pprof_describe_sums(buffer_slice(again), true, &b);
    if (strcmp(text_string(&a), text_string(&b)) != 0) {
        fprintf(stderr, "%s:\nwas\n%s\nis\n%s\n", name, text_string(&a), text_string(&b));
        fail();
    }
    text_deinit(&a);
    text_deinit(&b);
    buffer_unref(again);
    buffer_unref(back);
    buffer_unref(request);
    buffer_unref(pprof);
}

static void test_recordings_come_back(void **state)
{
    (void)state;
    pprof_each(go_there_and_back);
}

/* ---- requests of others ---- */

/* Strings: 0 "", 1 cpu, 2 nanoseconds, 3 f, 4 k, 5 bytes, 6 app, 7 main.c, 8 g.
 * Attributes: 1 k="v", 2 k=5 bytes, 3 k=true, 4 k=1.5, 5 k=[], 6 k="", 7 k=0, 8 span_id="x".
 * Links: 1 both, 2 a trace. Stacks: 1 f, 2 f at an address, g in it. */
#define DICTIONARY                                                                                 \
    "2{1{} 1{1=4096 2=8192 4=6} 1{1=1 5[9 10 11]} 2{} 2{3{1=1}} 2{1=1 2=4100 3{1=2 2=7} 3{1=1}} "  \
    "2{1=2 2=9 4[12]}"                                                                             \
    "3{} 3{1=3} 3{1=8 3=7} 4{1x00000000000000000000000000000000 2x0000000000000000} "              \
    "4{1x01000000000000000000000000000000 2x0200000000000000} "                                    \
    "4{1x03000000000000000000000000000000} "                                                       \
    "5\"\" 5\"cpu\" 5\"nanoseconds\" 5\"f\" 5\"k\" 5\"bytes\" 5\"app\" 5\"main.c\" 5\"g\" "        \
    "5\"span_id\" 5\"pprof.mapping.has_functions\" 5\"process.executable.build_id.gnu\" "          \
    "5\"process.executable.build_id.go\" 5\"pprof.location.is_folded\" "                           \
    "6{} 6{1=4 2{1\"v\"}} 6{1=4 2{3=5} 3=5} 6{1=4 2{2=1}} 6{1=4 2{4#0}} 6{1=4 2{5{}}} "            \
    "6{1=4 2{1\"\"}} 6{1=4 2{3=0}} 6{1=9 2{1\"x\"}} 6{1=10 2{2=0}} 6{1=11 2{1\"ab\"}} "            \
    "6{1=12 2{1\"c\"}} 6{1=13 2{2=1}} 6{1=4 2{1\"first\" 3=5 9\"new\"} 3=5} "                      \
    "7{} 7{1[1]} 7{1=2 1[1]} 7{1[3]}} "
#define PROFILE(fields) "1{2{2{" fields "}}}" DICTIONARY
#define CPU "1{1=1 2=2} "

static void describe_again(struct slice pprof, void *context)
{
    struct buffer *request = read_pprof(pprof);
    struct text *out = context;
    if (out->size > 0)
        text_append(out, "--\n");
    pprof_describe(buffer_slice(request), out);
    buffer_unref(request);
}

static void check_parts(const char *notation, const struct pprof_labels *labels,
                        const struct pprof_limits *limits, const char *expected)
{
    struct text request = wire_text(notation), got = {0};
    struct scan_result scan;
    struct error err;
    if (!scan_profiles(wire_text_slice(&request), &scan_limits_default, &scan, &err))
        fail_msg("%s: %s", notation, err.text);
    pprof_from_otlp(wire_text_slice(&request), labels, limits, describe_again, &got);
    if (strcmp(text_string(&got), expected) != 0)
        fail_msg("%s:\n  expected %s\n  got      %s", notation, expected, text_string(&got));
    text_deinit(&got);
    text_deinit(&request);
}

static void check(const char *notation, const char *expected)
{
    check_parts(notation, NULL, &no_limits, expected);
}

static void test_shapes_of_values(void **state)
{
    (void)state;
    check(PROFILE(CPU "2{4[7]}"), "cpu/nanoseconds 0+0\n7  /\n");
    check(PROFILE(CPU "2{5[#1 2 3]}"), "cpu/nanoseconds 0+0\n3  /\n");
    check(PROFILE(CPU "2{5#1 5#2}"), "cpu/nanoseconds 0+0\n2  /\n");
    check(PROFILE(CPU "2{4[7 8] 5[#1 2]}"), "cpu/nanoseconds 0+0\n15  /\n");
    check(PROFILE(CPU "2{4=7 4=8 5[#1 2]}"), "cpu/nanoseconds 0+0\n15  /\n");
    check(PROFILE(CPU "2{4[9223372036854775807 1] 5[#1 2]} 2{4[5]}"),
          "cpu/nanoseconds 0+0\n9223372036854775807  /\n");
    check(PROFILE(CPU "2{4[5]} 2{4[-5]} 2{1=1 4[0]}"), "");
    check(PROFILE(CPU), "");
}

static void test_equal_samples_are_summed(void **state)
{
    (void)state;
    check(PROFILE(CPU "2{1=1 2[1 8] 3=2 4[1]} 2{1=1 2[8 1] 3=2 4[10]} 2{1=1 2[1] 3=2 4[100]} "
                      "2{1=1 2[1 8] 4[1000]} 2{2[1 8] 3=2 4[10000]}"),
          "cpu/nanoseconds 0+0\n"
          "10000  k=v span_id=x 03000000000000000000000000000000/\n"
          "100 {0 0 0  @0 [f   0 0 0]} k=v 03000000000000000000000000000000/\n"
          "1000 {0 0 0  @0 [f   0 0 0]} k=v span_id=x /\n"
          "11 {0 0 0  @0 [f   0 0 0]} k=v span_id=x 03000000000000000000000000000000/\n");
}

static void test_labels_and_links(void **state)
{
    (void)state;
    check(PROFILE(CPU "2{2[2] 4[1]} 2{2[3] 4[2]} 2{2[4] 4[4]} 2{2[5] 4[8]} 2{2[6] 4[16]} "
                      "2{2[7] 4[32]} 2{2[0] 4[64]} 2{3=2 4[128]} 2{2[8] 4[3]}"),
          "cpu/nanoseconds 0+0\n124  /\n128  03000000000000000000000000000000/\n"
          "1  k=5 bytes /\n2  k=true /\n3  span_id=x /\n");
    /* the last member of a value, followed by an unknown field */
    check(PROFILE(CPU "2{2[13] 4[1]}"), "cpu/nanoseconds 0+0\n1  k=5 bytes /\n");
    /* the link takes precedence */
    check(PROFILE(CPU "2{2[8] 3=1 4[1]}"),
          "cpu/nanoseconds 0+0\n1  01000000000000000000000000000000/0200000000000000\n");
    check(PROFILE(CPU "2{2[8] 3=2 4[1]}"),
          "cpu/nanoseconds 0+0\n1  span_id=x 03000000000000000000000000000000/\n");
}

static void test_tables(void **state)
{
    (void)state;
    /* flags from the locations, or from attributes */
    check(PROFILE(CPU "2{1=2 4[1]}"),
          "cpu/nanoseconds 0+0\n1 {4096 8192 0 app has_functions has_filenames has_line_numbers "
          "has_inline_frames @4100 [g  main.c 0 7 0] [f   0 0 0]}{0 0 0  @0 [f   0 0 0]} /\n");
    check(PROFILE(CPU "2{1=3 4[1]}"), "cpu/nanoseconds 0+0\n1 {1 0 0  build=ab @9 folded} /\n");
}

static void test_siblings_are_one_pprof(void **state)
{
    (void)state;
#define OTHER "1{1=3 2=5} "
    check("1{2{2{" CPU "2{1=1 4[1]} 2{4[2]}} 2{" OTHER "2{4[20]} 2{2[1] 4[3]}}"
          "2{1{1=6} 2{4[9]}}}}" DICTIONARY,
          "cpu/nanoseconds 0+0\n2  /\n1 {0 0 0  @0 [f   0 0 0]} /\n"
          "f/bytes 0+0\n20  /\n3  k=v /\n"
          "app/ 0+0\n9  /\n");
    struct text request = wire_text("1{2{2{" CPU "2{1=1 4[1]} 2{4[2]}} 2{" OTHER
                                    "2{4[20]} 2{2[1] 4[3]}} 2{1{1=6} 2{4[9]}}}}" DICTIONARY);
    struct buffer *pprof = to_one_pprof(wire_text_slice(&request));
    struct sample_type_name types[4];
    assert_int_equal(pprof_sample_types(buffer_slice(pprof), types, 4), 3);
    assert_true(slice_is(types[0].type, "app") && slice_is(types[1].type, "f"));
    assert_true(slice_is(types[2].type, "cpu") && slice_is(types[2].unit, "nanoseconds"));
    buffer_unref(pprof);
    text_deinit(&request);
    /* other times, periods, attributes, or the same type again: not siblings */
    static const char *const different[] = {"3#1 ", "4=1 ", "5{1=1} ", "5{2=1} ", "6=1 ", "11[1] "};
    for (size_t i = 0; i < sizeof different / sizeof different[0]; i++) {
        char notation[2048];
        snprintf(notation, sizeof notation,
                 "1{2{2{" CPU "2{4[1]}} 2{" OTHER "%s 2{4[2]}}}}" DICTIONARY, different[i]);
        struct text parts = wire_text(notation), got = {0};
        pprof_from_otlp(wire_text_slice(&parts), NULL, &no_limits, describe_again, &got);
        assert_non_null(strstr(text_string(&got), "--\nf/bytes"));
        text_deinit(&got);
        text_deinit(&parts);
    }
    check("1{2{2{" CPU "2{4[1]}} 2{" CPU "2{4[2]}}}}" DICTIONARY,
          "cpu/nanoseconds 0+0\n1  /\n--\ncpu/nanoseconds 0+0\n2  /\n");
}

/* ---- as an exporter uses it ---- */

static bool keep_sizes(void *context, struct pprof_label *label)
{
    unsigned *asked = context;
    ++*asked;
    assert_true(slice_is(label->name, "k"));
    label->name = SLICE("size");
    label->unit = SLICE("kilobytes");
    return label->number == 5;
}

static void test_labels_are_renamed_and_left_out(void **state)
{
    (void)state;
    unsigned asked = 0;
    const struct pprof_labels labels = {keep_sizes, &asked};
    check_parts(PROFILE(CPU "2{2[1 2] 4[1]} 2{2[2 3] 4[2]} 2{2[1] 4[3]} 2{4[4]}"), &labels,
                &no_limits, "cpu/nanoseconds 0+0\n7  /\n3  size=5 kilobytes /\n");
    assert_int_equal(asked, 3);
}

static void test_other_units(void **state)
{
    (void)state;
    struct text request = wire_text(PROFILE("1{1=4 2=5} 6=50 2{5[#1 2 3]}"));
    struct arena arena = {0};
    struct message root;
    message_init(&root, wire_text_slice(&request));
    struct dictionary *dictionary = dictionary_new(&root, &arena);
    struct pprof_writer *writer = pprof_writer_new(dictionary, &arena, NULL);
    struct otlp_sample sample = {.stack = 1};
    struct pprof_header header = {.period_type = SLICE("cpu"), .period = 50};
    struct slice pprof;
    struct text got = {0};
    for (int round = 0; round < 2; round++) { /* a new begin forgets the previous data */
        pprof_writer_begin(writer, &header);
        uint32_t type = pprof_writer_sample_type(writer, SLICE("cpu"), SLICE("ns"));
        pprof_writer_add(writer, type, &sample, 150);
        pprof_writer_add(writer, type, &sample, INT64_MAX);
        assert_true(pprof_writer_next(writer, &no_limits, &pprof));
        describe_again(pprof, &got);
        assert_false(pprof_writer_next(writer, &no_limits, &pprof));
    }
    assert_string_equal(text_string(&got), "cpu/ns 0+0 every 50 cpu/\n"
                                           "9223372036854775807 {0 0 0  @0 [f   0 0 0]} /\n--\n"
                                           "cpu/ns 0+0 every 50 cpu/\n"
                                           "9223372036854775807 {0 0 0  @0 [f   0 0 0]} /\n");
    text_deinit(&got);
    pprof_writer_free(writer);
    arena_deinit(&arena);
    text_deinit(&request);
}

struct parts {
    struct text lines; /* of all parts */
    struct pprof_limits limits;
    unsigned count;
    uint32_t samples;
    int64_t sum;
};

static void count_part(struct slice pprof, void *context)
{
    struct parts *parts = context;
    struct wire_cursor cursor = wire_cursor(pprof);
    struct wire_field field;
    uint32_t samples = 0;
    while (wire_next(&cursor, &field))
        samples += field.number == 2;
    if (parts->limits.samples_max > 0)
        assert_in_range(samples, 1, parts->limits.samples_max);
    if (parts->limits.size_max > 0)
        assert_true(samples == 1 || pprof.size <= parts->limits.size_max);
    struct buffer *request = read_pprof(pprof);
    struct text report = {0};
    pprof_report(buffer_slice(request), "", &report);
    int64_t sum = 0;
    sscanf(text_string(&report), " cpu nanoseconds %*u %" SCNd64, &sum);
    parts->sum += sum;
    parts->samples += samples;
    parts->count++;
    text_deinit(&report);
    buffer_unref(request);
}

static void test_parts_stay_within_limits(void **state)
{
    (void)state;
    struct buffer *pprof = pprof_load("go-cpu.pb.gz");
    struct buffer *request = read_pprof(buffer_slice(pprof));
    static const struct {
        struct pprof_limits limits;
        unsigned least, most;
    } cases[] = {{{.samples_max = 0, .size_max = 0}, 1, 1},
                 {{.samples_max = 100, .size_max = 0}, 3, 6},
                 {{.samples_max = 1, .size_max = 0}, 200, 518},
                 {{.samples_max = 0, .size_max = 20000}, 2, 6},
                 {{.samples_max = 0, .size_max = 4000}, 9, 60},
                 {{.samples_max = 0, .size_max = 1}, 200, 518},
                 {{.samples_max = 50, .size_max = 10000}, 4, 12}};
    uint32_t all = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct parts parts = {.limits = cases[i].limits};
        pprof_from_otlp(buffer_slice(request), NULL, &parts.limits, count_part, &parts);
        assert_in_range(parts.count, cases[i].least, cases[i].most);
        assert_int_equal(parts.sum, 5350000000);
        all = all ? all : parts.samples;
        assert_int_equal(parts.samples, all);
    }
    buffer_unref(request);
    buffer_unref(pprof);
}

static void test_long_stacks_keep_their_root(void **state)
{
    (void)state;
    static const struct pprof_limits one = {.frames_max = 1}, two = {.frames_max = 2};
    check_parts(PROFILE(CPU "2{1=2 4[1]} 2{1=1 4[2]}"), NULL, &one,
                "cpu/nanoseconds 0+0\n1 {0 0 0  @0 [f   0 0 0]} /\n2 {0 0 0  @0 [f   0 0 0]} /\n");
    check_parts(PROFILE(CPU "2{1=2 4[1]}"), NULL, &two,
                "cpu/nanoseconds 0+0\n1 {4096 8192 0 app has_functions has_filenames "
                "has_line_numbers has_inline_frames @4100 [g  main.c 0 7 0] [f   0 0 0]}"
                "{0 0 0  @0 [f   0 0 0]} /\n");
}

/* A part has only the entries that it needs, even after a sample was removed from it. */
static void refer_to_all(struct slice pprof, void *context)
{
    (void)context;
    struct buffer *request = read_pprof(pprof);
    struct buffer *again = to_one_pprof(buffer_slice(request));
    assert_int_equal(again->size, pprof.size);
    buffer_unref(again);
    buffer_unref(request);
}

static void test_parts_have_no_orphans(void **state)
{
    (void)state;
    struct buffer *pprof = pprof_load("node-wall.pb.gz");
    struct buffer *request = read_pprof(buffer_slice(pprof));
    for (size_t size = 1000; size < 60000; size = size * 3 / 2) {
        const struct pprof_limits limits = {.size_max = size};
        pprof_from_otlp(buffer_slice(request), NULL, &limits, refer_to_all, NULL);
    }
    buffer_unref(request);
    buffer_unref(pprof);
}

static void test_every_cut_is_noticed(void **state)
{
    (void)state;
    struct buffer *pprof = pprof_load("go-heap.pb.gz");
    struct buffer *request = read_pprof(buffer_slice(pprof));
    struct buffer *back = to_one_pprof(buffer_slice(request));
    for (size_t size = 0; size < back->size; size++) {
        struct error err;
        assert_null(pprof_to_otlp(slice_of(back->data, size), &no_options, &err));
    }
    buffer_unref(back);
    buffer_unref(request);
    buffer_unref(pprof);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recordings_come_back),
        cmocka_unit_test(test_shapes_of_values),
        cmocka_unit_test(test_equal_samples_are_summed),
        cmocka_unit_test(test_labels_and_links),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_siblings_are_one_pprof),
        cmocka_unit_test(test_labels_are_renamed_and_left_out),
        cmocka_unit_test(test_other_units),
        cmocka_unit_test(test_parts_stay_within_limits),
        cmocka_unit_test(test_long_stacks_keep_their_root),
        cmocka_unit_test(test_parts_have_no_orphans),
        cmocka_unit_test(test_every_cut_is_noticed),
    };
    hash_init();
    scan_init();
    if (argc != 3)
        return cmocka_run_group_tests(tests, NULL, NULL);
    struct buffer *request = read_pprof(buffer_slice(pprof_load(argv[1])));
    struct buffer *back = to_one_pprof(buffer_slice(request));
    FILE *file = fopen(argv[2], "wb");
    return !(file && fwrite(back->data, back->size, 1, file) == 1 && fclose(file) == 0);
}

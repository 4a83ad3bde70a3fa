#include "core/data/normalise.h"

#include "core/base/budget.h"
#include "wire_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct scan_result scan(struct slice request, const char *what)
{
    struct scan_result result;
    struct error err;

    if (!scan_profiles(request, &scan_limits_default, &result, &err))
        fail_msg("%s: %s", what, err.text);
    return result;
}

static void check_bytes(struct slice bytes, const char *expected, const char *request)
{
    struct text wanted = wire_text(expected);

    if (!slice_equal(bytes, wire_text_slice(&wanted))) {
        struct text hex = {0};

        text_append_hex(&hex, bytes);
        text_append(&hex, "\n  not ");
        text_append_hex(&hex, wire_text_slice(&wanted));
        fail_msg("%s became\n      %s", request, text_string(&hex));
    }
    text_deinit(&wanted);
}

struct normalise_case {
    const char *request;
    const char *expected; /* NULL: needs no normalising */
};

static void check_cases(const struct normalise_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct text request = wire_text(cases[i].request);
        struct scan_result before = scan(wire_text_slice(&request), cases[i].request);
        struct scan_result after;
        struct buffer *result;

        assert_int_equal(normalise_needed(&before), cases[i].expected != NULL);
        if (cases[i].expected) {
            result = normalise_profiles(wire_text_slice(&request), &before, NULL, &(bool){false});
            assert_non_null(result);
            check_bytes(buffer_slice(result), cases[i].expected, cases[i].request);
            after = scan(buffer_slice(result), cases[i].expected);
            assert_false(normalise_needed(&after));
            assert_int_equal(after.items, before.items);
            assert_int_equal(after.profiles, before.profiles);
            assert_int_equal(after.groups, before.groups);
            buffer_unref(result);
        }
        text_deinit(&request);
    }
}

#define CHECK(cases) check_cases(cases, sizeof(cases) / sizeof((cases)[0]))

#define SAMPLE(fields) "1{2{2{2{" fields "}}}}"
#define ZERO_LINK "4{1x00000000000000000000000000000000 2x0000000000000000}"
/* Zero values in every table */
#define ZEROES "1{} 2{} 3{} " ZERO_LINK " 5\"\" 6{} 7{}"

static const struct normalise_case layout_cases[] = {
    {"2{" ZEROES "}" SAMPLE("4[1]"), NULL},
    {"2{" ZEROES "}" SAMPLE("2[500]"), "2{" ZEROES "}" SAMPLE("4[500]")},
    {"2{" ZEROES " 6{1=0 2{2=1}} 4{} 7{}}" SAMPLE("1=1 2[500 600] 3[1] 4=1 5[#1 2] 9\"new\""),
     "2{" ZEROES " 6{1=0 2{2=1}} 4{} 7{}}" SAMPLE("1=1 4[500 600] 2[1] 3=1 5[#1 2] 9\"new\"")},
    {"2{" ZEROES "}" SAMPLE("2=500 2[1] 3=0"), "2{" ZEROES "}" SAMPLE("4=500 4[1] 2=0")},
    /* Everything around the samples is kept: a padded tag, unknown fields, other messages */
    {"2{" ZEROES "} 77=1 1{2{!9a010162 2{1{1=0} 2{2[1] 9#1} 88%1}}}",
     "2{" ZEROES "} 77=1 1{2{!9a010162 2{1{1=0} 2{4[1] 9#1} 88%1}}}"},
};

static const struct normalise_case reference_cases[] = {
    {"2{" ZEROES " 5\"a\" 5\"b\"} 1{1{1{3=1 2{8=2}}}}",
     "2{" ZEROES " 5\"a\" 5\"b\"} 1{1{1{1\"a\" 2{1\"b\"}}}}"},
    /* Some are references, some are not; 0 is not a key, but a value; nested lists and maps */
    {"2{" ZEROES " 5\"a\"} 1{1{1{1\"k\" 3=0 2{1\"v\"}} 1{3=1 2{8=0}} 1{1\"k\" 2{2=1}}}}",
     "2{" ZEROES " 5\"a\"} 1{1{1{1\"k\" 2{1\"v\"}} 1{1\"a\" 2{1\"\"}} 1{1\"k\" 2{2=1}}}}"},
    {"2{" ZEROES
     " 5\"a\"} 1{2{1{1\"n\" 3{1\"k\" 2{5{1{8=1} 1{6{1{3=1 2{3=5}} 1{3=1 2{8=1}}}}}}}}}}",
     "2{" ZEROES " 5\"a\"} 1{2{1{1\"n\" 3{1\"k\" 2{5{1{1\"a\"} 1{6{1{1\"a\" 2{3=5}} 1{1\"a\" "
     "2{1\"a\"}}}}}}}}}}"},
    /* In the attribute_table as well */
    {"2{" ZEROES " 5\"a\" 6{1=1 2{8=1} 3=1}}", "2{" ZEROES " 5\"a\" 6{1=1 2{1\"a\"} 3=1}}"},
    /* The last one counts */
    {"2{" ZEROES " 5\"a\" 5\"b\"} 1{1{1{3=1 3=2 2{8=1 1\"x\"}}}}",
     "2{" ZEROES " 5\"a\" 5\"b\"} 1{1{1{1\"b\" 2{1\"x\"}}}}"},
    {"2{" ZEROES " 5\"a\"} 1{1{1{2{1\"x\" 2=1 8=1}}}}", "2{" ZEROES " 5\"a\"} 1{1{1{2{1\"a\"}}}}"},
    /* An empty key beside the reference; unknown fields */
    {"2{" ZEROES " 5\"a\"} 1{1{1{1\"\" 3=1 77=1 2{8=1 88\"u\"}} 99=9}}",
     "2{" ZEROES " 5\"a\"} 1{1{1{1\"a\" 77=1 2{1\"a\" 88\"u\"}} 99=9}}"},
    /* Without a table, the reference can only mean the empty string. The table is then added. */
    {"1{1{1{1\"k\" 2{8=0}}}}", "1{1{1{1\"k\" 2{1\"\"}}}} 2{" ZEROES "}"},
    /* A text longer than a length of one byte */
    {"1{1{1{3=1}}} 2{" ZEROES " 5\"0123456789012345678901234567890123456789012345678901234567890123"
     "456789012345678901234567890"
     "12345678901234567890123456789012345678901234567890\"}",
     "1{1{1{"
     "1\"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234"
     "56789012345678901234567890123456789012345678901234567890\"}}} 2{" ZEROES
     " 5\"01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678"
     "90"
     "12345678901234567890123456789012345678901234567890\"}"},
};

static const struct normalise_case dictionary_cases[] = {
    {"2{" ZEROES " 5\"a\" 7{}}" SAMPLE("1=3 4[1]") "3=1 2{5\"b\" 99=1 7{} 7{}} 2{}",
     "2{" ZEROES " 5\"a\" 7{} 5\"b\" 99=1 7{} 7{}}" SAMPLE("1=3 4[1]") "3=1"},
    {"2{} 2{" ZEROES "}", "2{" ZEROES "}"},
    /* Empty tables that are referred to */
    {SAMPLE("4[1]"), SAMPLE("4[1]") "2{" ZEROES "}"},
    {"2{7{} 5\"\"}" SAMPLE("3=0 4[1]"),
     "2{1{} 2{} 3{} " ZERO_LINK " 6{} 7{} 5\"\"}" SAMPLE("3=0 4[1]")},
};

static const struct normalise_case zero_entry_cases[] = {
    /* The type of a sample, the key of an attribute and the name of a function must refer to a
     * string, */
    {"2{5\"a\" 5\"b\" 6{2{2=1}} 6{1=1 3=1 2{2=1}} 3{2=1} 3{1=1 4=7}} 1{2{2{1{2=1} 5{1=1}}}}",
     /* and other fields need not: there, 0 means none. */
     "2{1{} 2{} 3{} " ZERO_LINK " 5\"\" 6{} 7{} 5\"a\" 5\"b\" 6{2{2=1} 1=1} 6{1=2 3=2 2{2=1}}"
     " 3{2=2 1=1} 3{1=2 4=7}} 1{2{2{1{2=2 1=1} 5{1=2}}}}"},
    /* Messages with no field set stay empty. */
    {"2{5\"a\" 6{2{}} 3{} 1{} 2{} 4{} 7{}} 1{2{2{1{} 5{}}}}",
     "2{5\"\" 5\"a\" 6{2{}} 3{} 1{} 2{} 4{} 7{}} 1{2{2{1{} 5{}}}}"},
    {"2{1{4=0 1=5} 1{4=1} 5\"a\" 5\"b\"}",
     "2{1{} 2{} 3{} " ZERO_LINK " 5\"\" 6{} 7{} 1{4=0 1=5} 1{4=2} 5\"a\" 5\"b\"}"},
    /* Stacks and locations */
    {"2{1{} 3{} 4{} 5\"\" 6{} 2{2=1} 2{2=2} 7{1[0 1]} 7{1=0 1=1} 7{}}" SAMPLE("4[1]")
         SAMPLE("1=0 4[1]") SAMPLE("1=2 4[1]"),
     "2{2{} 7{} 1{} 3{} 4{} 5\"\" 6{} 2{2=1} 2{2=2} 7{1[1 2]} 7{1=1 1=2} 7{}}" SAMPLE("4[1] 1=1")
         SAMPLE("1=1 4[1]") SAMPLE("1=3 4[1]")},
    /* Lines must refer to a function; locations need not refer to a mapping. */
    {"2{5\"\" 4{} 6{} 7{} 1{1=1} 1{1=2} 3{4=1} 2{} 2{2=9 3{} 3{1=0 2=4}} 2{1=1}}",
     "2{1{} 3{} 5\"\" 4{} 6{} 7{} 1{1=1} 1{1=2} 3{4=1} 2{} 2{2=9 3{1=1} 3{1=1 2=4}} 2{1=2}}"},
    /* Lists must refer to attributes; samples need not refer to a link. */
    {"2{1{} 3{} 5\"\" 7{} 2{} 6{2{2=1}} 4{2x0001020304050607} 2{4[0]} 1{5=0}}" SAMPLE(
         "2[0] 2=0 4[1]") SAMPLE("3=0 4[1]") "1{2{2{11[0 0]}}}",
     "2{" ZERO_LINK
     " 6{} 1{} 3{} 5\"\" 7{} 2{} 6{2{2=1}} 4{2x0001020304050607} 2{4[1]} 1{5=1}}" SAMPLE(
         "2[1] 2=1 4[1]") SAMPLE("3=0 4[1]") "1{2{2{11[1 1]}}}"},
    /* With 1.9 samples and references at once */
    {"2{5\"a\" 7{1[0]} 2{2=1}}" SAMPLE("2[9] 4=0") "1{1{1{1\"k\" 2{8=0}}}}",
     "2{1{} 2{} 3{} " ZERO_LINK
     " 5\"\" 6{} 7{} 5\"a\" 7{1[1]} 2{2=1}}" SAMPLE("4[9] 3=0 1=1") "1{1{1{1\"k\" 2{1\"a\"}}}}"},
    /* An index that grows to two bytes makes the lists around it longer. */
    {"2{7{1[0]} 127*7{} 5\"\" 2{2=1} 1{} }" SAMPLE("1=127 4[1]"),
     "2{2{} 3{} " ZERO_LINK " 6{} 7{} 7{1[1]} 127*7{} 5\"\" 2{2=1} 1{} }" SAMPLE("1=128 4[1]")},
};

static void test_layout(void **state)
{
    (void)state;
    CHECK(layout_cases);
}

static void test_references(void **state)
{
    (void)state;
    CHECK(reference_cases);
}

static void test_dictionaries(void **state)
{
    (void)state;
    CHECK(dictionary_cases);
}

static void test_zero_entries(void **state)
{
    (void)state;
    CHECK(zero_entry_cases);
}

/* A text of 60 kB with 10,000 attributes that refer to it would unfold to 600 MB. */
static void test_growth(void **state)
{
    struct text notation = {0};
    struct text request;
    struct budget budget = {.limit_bytes = 1024};
    struct scan_result result;

    (void)state;
    text_append(&notation, "2{5\"\" 5\"");
    for (int i = 0; i < 60000; i++)
        text_append_char(&notation, 'a');
    text_append(&notation, "\"} 1{1{10000*1{3=1}}}");
    request = wire_text(text_string(&notation));
    result = scan(wire_text_slice(&request), "growth");
    bool is_too_large;
    assert_null(normalise_profiles(wire_text_slice(&request), &result, NULL, &is_too_large));
    assert_true(is_too_large);
    assert_null(normalise_profiles(wire_text_slice(&request), &result, &budget, &is_too_large));
    assert_false(is_too_large);
    assert_int_equal(budget_used(&budget), 0);
    text_deinit(&notation);
    text_deinit(&request);
}

static void test_budget(void **state)
{
    struct text request = wire_text("2{5\"\" 5\"a\"} 1{1{1{3=1}}}");
    struct scan_result result = scan(wire_text_slice(&request), "budget");
    struct budget budget = {.limit_bytes = 4096};
    struct buffer *buffer =
        normalise_profiles(wire_text_slice(&request), &result, &budget, &(bool){false});

    (void)state;
    assert_non_null(buffer);
    assert_int_equal(budget_used(&budget), buffer->capacity);
    buffer_unref(buffer);
    assert_int_equal(budget_used(&budget), 0);
    text_deinit(&request);
}

static int init(void **state)
{
    (void)state;
    scan_init();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),       cmocka_unit_test(test_references),
        cmocka_unit_test(test_dictionaries), cmocka_unit_test(test_zero_entries),
        cmocka_unit_test(test_growth),       cmocka_unit_test(test_budget),
    };

    return cmocka_run_group_tests(tests, init, NULL);
}

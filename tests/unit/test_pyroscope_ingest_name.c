#include "receivers/pyroscope/ingest_name.h"

#include "core/base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void describe(const char *text, struct text *out)
{
    struct ingest_name name;
    struct error err;
    if (!ingest_name_parse(slice_of_string(text), &name, &err)) {
        text_printf(out, "error: %s", err.text);
        return;
    }
    text_append_slice(out, name.application);
    for (size_t i = 0; i < name.label_count; i++)
        text_printf(out, "|%.*s=%.*s", SLICE_ARG(name.labels[i].name),
                    SLICE_ARG(name.labels[i].value));
}

static void names_are_read_as_pyroscope_reads_them(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"app", "app"},
        {"my.app-1/x_y.cpu", "my.app-1/x_y.cpu"},
        {"app{}", "app"},
        {"app{a=b}", "app|a=b"},
        {"app{a=b,c.d=e f+g/h=i}", "app|a=b|c.d=e f+g/h=i"},
        {" app { a = b , c= } ", "app|a=b|c="},
        {"app{a=b,}", "app|a=b"},
        {"app{a=b{c}", "app|a=b{c"},
        {"app{__session_id__=1,a=2}", "app|__session_id__=1|a=2"},
        {"app{a=1,b=2,a=3}", "app|a=3|b=2"},
        {"{__name__=app,a=b}", "app|a=b"},
        {"", "error: the application name is missing"},
        {"{a=b}", "error: the application name is missing"},
        {"app{", "error: a label without a value: \"\""},
        {"app{a", "error: a label without a value: \"a\""},
        {"app{a=b", "error: the brace is not closed"},
        {"app{a}", "error: a label without a value: \"a\""},
        {"app{a=b,c}", "error: a label without a value: \"c\""},
        {"app{=b}", "error: \"\" is not a valid label name: letters, digits, \"_\" and \".\""},
        {"app{a-b=c}",
         "error: \"a-b\" is not a valid label name: letters, digits, \"_\" and \".\""},
        {"app{a=b}c", "error: there is text after the brace: \"c\""},
        {"my app", "error: \"my app\" is not a valid application name: letters, digits, \"_\", "
                   "\".\", \"-\" and \"/\""},
        {"\xc3\xa4pp", "error: \"\xc3\xa4pp\" is not a valid application name: letters, digits, "
                       "\"_\", \".\", \"-\" and \"/\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text out = {0};
        describe(cases[i].text, &out);
        assert_string_equal(text_string(&out), cases[i].expected);
        text_deinit(&out);
    }
}

static void labels_are_bounded(void **state)
{
    (void)state;
    struct text name = {0}, out = {0};
    text_append(&name, "app{");
    for (int i = 0; i < SERIES_LABELS_MAX; i++)
        text_printf(&name, "l%d=v,", i);
    size_t size = name.size;
    text_append_char(&name, '}');
    describe(text_string(&name), &out);
    assert_memory_equal(out.data, "app|l0=v|l1=v", 13);
    text_clear(&out);
    name.size = size;
    text_append(&name, "more=v}");
    describe(text_string(&name), &out);
    assert_string_equal(text_string(&out), "error: more than 100 labels");
    text_deinit(&name);
    text_deinit(&out);
}

static void times_are_told_by_their_digits(void **state)
{
    (void)state;
    const uint64_t now = UINT64_C(1795252368890735722), hour = UINT64_C(3600000000000);
    const struct {
        const char *text;
        uint64_t expected; /* 0: refused */
    } cases[] = {
        {"1795252350000000000", UINT64_C(1795252350000000000)},
        {"1795252350000000", UINT64_C(1795252350000000000)},
        {"1795252350000", UINT64_C(1795252350000000000)},
        {"1795252350", UINT64_C(1795252350000000000)},
        {"17952523500", UINT64_C(17952523500) * 1000000000},
        {"20261121", UINT64_C(1795219200000000000)},
        {"20240229", UINT64_C(1709164800000000000)},
        {"19700102", UINT64_C(86400000000000)},
        {"1", UINT64_C(1000000000)},
        {"now", now},
        {"now-1h", now - hour},
        {"now-90s", now - hour / 40},
        {"now-2min", now - hour / 30},
        {"now-1d", now - hour * 24},
        {"now-1w", now - hour * 24 * 7},
        {"", 0},
        {"-1", 0},
        {"1.5", 0},
        {"20261321", 0},
        {"20260132", 0},
        {"19691231", 0},
        {"179525235000000", 0}, /* 15 digits are seconds, but too many */
        {"99999999999999999999", 0},
        {"now+1h", 0},
        {"now-1", 0},
        {"now-h", 0},
        {"now-1fortnight", 0},
        {"now-9999999999999999999y", 0},
        {"yesterday", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t time_ns = 0, expected = cases[i].expected;
        bool fine = ingest_time_parse(slice_of_string(cases[i].text), now, &time_ns);
        if (fine != (expected > 0) || (fine && time_ns != expected))
            fail_msg("%s: %d %llu", cases[i].text, fine, (unsigned long long)time_ns);
    }
    uint64_t time_ns;
    assert_true(ingest_time_parse(SLICE("now-60y"), now, &time_ns));
    assert_int_equal(time_ns, 0);
}

static void describe_query(const char *text, struct text *out)
{
    struct arena arena = {0};
    struct ingest_query query;
    struct error err;
    if (ingest_query_parse(slice_of_string(text), 7, &arena, &query, &err))
        text_printf(out, "%.*s %zu %.*s %.*s %u %llu-%llu", SLICE_ARG(query.name.application),
                    query.name.label_count, SLICE_ARG(query.format), SLICE_ARG(query.spy_name),
                    query.sample_rate_hz, (unsigned long long)query.from_ns,
                    (unsigned long long)query.until_ns);
    else
        text_printf(out, "error: %s", err.text);
    arena_deinit(&arena);
}

static void queries_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"name=a", "a 0   0 7-7"},
        {"name=a%7Bb%3Dc%2Cd%3de+f%7d&from=1&until=2&format=pprof&spyName=gospy&sampleRate=100",
         "a 2 pprof gospy 100 1000000000-2000000000"},
        {"name=a&name=b&format=&&x&units=&from=", "a 0   0 7-7"},
        {"name=a&sampleRate=often", "a 0   0 7-7"},
        {"name=a&sampleRate=4294967296", "a 0   0 7-7"},
        {"", "error: name: the application name is missing"},
        {"names=a", "error: name: the application name is missing"},
        {"name=a%", "error: name: broken percent-encoding"},
        {"name=a%2", "error: name: broken percent-encoding"},
        {"name=a%g0", "error: name: broken percent-encoding"},
        {"name=a{b}", "error: name: a label without a value: \"b\""},
        {"name=a&from=soon", "error: from: \"soon\" is not a time"},
        {"name=a&until=1.5", "error: until: \"1.5\" is not a time"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text out = {0};
        describe_query(cases[i].text, &out);
        assert_string_equal(text_string(&out), cases[i].expected);
        text_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read_as_pyroscope_reads_them),
        cmocka_unit_test(labels_are_bounded),
        cmocka_unit_test(times_are_told_by_their_digits),
        cmocka_unit_test(queries_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

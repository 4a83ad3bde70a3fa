/* Tests labels from the names of files (receivers/pprof/path_pattern.h). */
#include "receivers/pprof/path_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct path_pattern *pattern_of(const char *text)
{
    struct error err;
    struct path_pattern *pattern = path_pattern_new(text, &err);
    if (!pattern)
        fail_msg("%s", err.text);
    return pattern;
}

static void test_groups_become_labels(void **state)
{
    (void)state;
    struct series_label labels[SERIES_LABELS_MAX];
    size_t count;
    struct path_pattern *pattern = pattern_of("/(?<service>[^/]+)/(?<zone>[^/]*)/cpu");
    assert_true(path_pattern_match(pattern, "/data/shop/eu/cpu.pprof", labels, &count));
    assert_int_equal(count, 2);
    assert_true(slice_is(labels[0].name, "service_name"));
    assert_true(slice_is(labels[0].value, "shop"));
    assert_true(slice_is(labels[1].value, "eu"));
    assert_false(path_pattern_match(pattern, "/data/shop/eu/heap.pprof", labels, &count));
    assert_int_equal(count, 0);
    path_pattern_free(pattern);
}

/* The name needs more than the stack of compiled code. */
static void test_a_long_name(void **state)
{
    (void)state;
    enum { LENGTH = 2000 };
    char path[LENGTH + 1];
    memset(path, 'a', LENGTH);
    path[LENGTH] = '\0';
    struct series_label labels[SERIES_LABELS_MAX];
    size_t count;
    struct path_pattern *pattern = pattern_of("^(?<all>(?:(a)|b)*)$");
    assert_true(path_pattern_match(pattern, path, labels, &count));
    assert_int_equal(count, 1);
    assert_int_equal(labels[0].value.size, LENGTH);
    path_pattern_free(pattern);
}

static void test_a_name_that_would_take_for_ever(void **state)
{
    (void)state;
    struct series_label labels[SERIES_LABELS_MAX];
    size_t count;
    struct path_pattern *pattern = pattern_of("^(a+)+$");
    assert_false(path_pattern_match(pattern, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
                                    labels, &count));
    path_pattern_free(pattern);
}

static void test_a_mistake_is_named(void **state)
{
    (void)state;
    struct error err;
    assert_null(path_pattern_new("a(b", &err));
    assert_string_equal(err.text,
                        "not a regular expression, at character 4: missing closing parenthesis");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_become_labels),
        cmocka_unit_test(test_a_long_name),
        cmocka_unit_test(test_a_name_that_would_take_for_ever),
        cmocka_unit_test(test_a_mistake_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

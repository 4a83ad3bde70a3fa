#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/data/any_value.h"
#include "processors/resource_detection/env_detector.h"
#include "tests/unit/expect_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* {text, attributes found, or NULL; part of the error} */
static const struct {
    const char *text, *wanted, *problem;
} cases[] = {
    {"", "", NULL},
    {"a=b", "a=b;", NULL},
    {" example.org/test-1 =  test $ %3A \\\" ,  Abc=Def  ",
     "example.org/test-1=test $ : \\\";Abc=Def;", NULL},
    {"a=", "a=;", NULL},
    {"a=b=c", "a=b=c;", NULL},
    {"a=x+y%20z%2B", "a=x y z+;", NULL},
    {"a=1,b=2,a=3", "b=2;a=3;", NULL},
    {"a=1,", "a=1;", NULL},
    {"a=1,,b=2", NULL, "want key=value of ASCII: \"\""},
    {"a=1,b", NULL, "want key=value of ASCII: \"b\""},
    {"=1", NULL, "want key=value of ASCII: \"=1\""},
    {"a=%3-", NULL, "invalid percent-encoding in the value of \"a\""},
    {"a=%3", NULL, "invalid percent-encoding in the value of \"a\""},
    {"a=%", NULL, "invalid percent-encoding in the value of \"a\""},
    {"a=\xc3\xbc", NULL, "want key=value of ASCII"},
    {"a=%C3%BC", "a=\xc3\xbc;", NULL},
    {"a=%C3,b=1", "b=1;", NULL}, /* not UTF-8: left out */
};

static void print(const struct detected *found, struct text *out)
{
    for (uint32_t i = 0; i < found->count; i++)
        text_printf(out, "%.*s=%.*s;", SLICE_ARG(found->items[i].key),
                    SLICE_ARG(any_value_read(found->items[i].value).bytes));
}

static void attributes_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct detected *found = detected_new();
        struct text got = {0};
        struct error err = {0};
        bool fine = env_read_attributes(slice_of_string(cases[i].text), found, &err);
        assert_int_equal(fine, cases[i].wanted != NULL);
        print(found, &got);
        if (fine)
            expect_text_of(cases[i].text, text_string(&got), cases[i].wanted);
        else if (!strstr(err.text, cases[i].problem))
            fail_msg("%s: %s", cases[i].text, err.text);
        text_deinit(&got);
        detected_unref(found);
    }
}

/* ---- limits of what is found ---- */

static void long_parts_are_refused(void **state)
{
    (void)state;
    struct text text = {0};
    struct detected *found = detected_new();
    struct error err;
    text_append(&text, "a=");
    for (int i = 0; i < 256; i++)
        text_append_char(&text, 'x');
    assert_true(env_read_attributes(slice_of_string(text_string(&text)), found, &err));
    text_append_char(&text, 'x');
    assert_false(env_read_attributes(slice_of_string(text_string(&text)), found, &err));
    detected_unref(found);
    text_deinit(&text);
}

static void number_and_size_are_limited(void **state)
{
    (void)state;
    static char large[DETECTED_VALUE_MAX + 1];
    struct detected *found = detected_new();
    memset(large, 'x', sizeof large);
    detected_add_text(found, SLICE("large"), slice_of(large, sizeof large));
    assert_int_equal(found->count, 0);
    assert_int_equal(found->left_out, 1);
    for (int i = 0; i < DETECTED_MAX + 10; i++) {
        char key[16];
        int size = snprintf(key, sizeof key, "key%d", i);
        detected_add_text(found, slice_of(key, (size_t)size), SLICE("v"));
    }
    assert_int_equal(found->count, DETECTED_MAX);
    assert_int_equal(found->left_out, 11);
    detected_unref(found);
    found = detected_new();
    static const char keys[] = "abcdefghijklmnopqrstuvwxyz";
    for (size_t i = 0; keys[i]; i++)
        detected_add_text(found, slice_of(&keys[i], 1), slice_of(large, 4000));
    assert_in_range(found->bytes, DETECTED_BYTES_MAX - 4100, DETECTED_BYTES_MAX);
    detected_encode(found);
    assert_in_range(found->fields.size, found->bytes, found->bytes + 16 * (size_t)found->count);
    detected_unref(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_are_read),
        cmocka_unit_test(long_parts_are_refused),
        cmocka_unit_test(number_and_size_are_limited),
    };
    hash_init_with(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

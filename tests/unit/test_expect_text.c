#include "tests/unit/expect_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void the_first_difference_is_marked(void **state)
{
    (void)state;
    static const struct {
        const char *got;
        const char *want;
        const char *shown;
    } cases[] = {
        {"", "", ""},
        {"abc", "abc", ""},
        {"abc", "abd", "want abd\n got abc\n       ^ byte 2\n"},
        {"ab", "abc", "want abc\n got ab\n       ^ byte 2\n"},
        {"a\nb", "a\nc", "want a c\n got a b\n       ^ byte 2\n"},
        {"0123456789012345678901234567890123456789012345678901234567890123456789x"
         "0123456789012345678901234567890123456789",
         "0123456789012345678901234567890123456789012345678901234567890123456789y",
         "want ...012345678901234567890123456789012345678901234567890123456789y\n"
         " got ...012345678901234567890123456789012345678901234567890123456789x"
         "012345678901234567890123456789012345678...\n"
         "                                                                    ^ byte 70\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text shown = {0};
        describe_difference(cases[i].got, cases[i].want, &shown);
        assert_string_equal(text_string(&shown), cases[i].shown);
        text_deinit(&shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_difference_is_marked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "core/base/go_number.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void reads_what_go_reads(void **unused)
{
    static const struct {
        const char *text;
        double expected;
    } cases[] = {
        {"0", 0},      {"-1.5", -1.5},       {"+1e3", 1000},           {".5", 0.5},
        {"5.", 5},     {"1_0.5_0e0_1", 105}, {"0x1p-2", .25},          {"0X_1_0p1", 32.0},
        {"1e-999", 0}, {"inf", INFINITY},    {"-Infinity", -INFINITY},
    };
    (void)unused;
    double number;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!go_parse_float(slice_of_string(cases[i].text), &number))
            fail_msg("%s is refused", cases[i].text);
        assert_true(number == cases[i].expected);
    }
    assert_true(go_parse_float(SLICE("NaN"), &number) && isnan(number));
}

static void refuses_what_go_refuses(void **unused)
{
    static const char *const texts[] = {
        "",   " 1",   "1 ",   "x",        "1e",     "0x1",    "nan(1)", "1e999", "1__0",   "_1",
        "1_", "1_.5", "1_e3", "0x1__0p1", "0x1_p1", "0x1p1_", "_0x1p1", "--1",   "0_x1p1", "+"};
    (void)unused;
    double number;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (go_parse_float(slice_of_string(texts[i]), &number))
            fail_msg("%s is read", texts[i]);
    assert_false(go_parse_float(slice_of("1\0", 2), &number));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_go_reads),
        cmocka_unit_test(refuses_what_go_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

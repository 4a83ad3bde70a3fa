/* Tests of core/base/clock.h. */

#include "core/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void the_wall_clock_can_be_fixed(void **state)
{
    (void)state;
    clock_fix_wall(1234567890123456789);
    assert_int_equal(clock_wall_ns(), 1234567890123456789);
    clock_fix_wall(0);
    assert_true(clock_wall_ns() > 1500000000000000000 && clock_wall_ns() != 1234567890123456789);
}

static void the_monotonic_clock_does_not_go_back(void **state)
{
    (void)state;
    uint64_t before_ns = clock_monotonic_ns();
    for (int i = 0; i < 1000; i++) {
        uint64_t now_ns = clock_monotonic_ns();
        assert_true(now_ns >= before_ns);
        before_ns = now_ns;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_wall_clock_can_be_fixed),
        cmocka_unit_test(the_monotonic_clock_does_not_go_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "core/pipeline/cpu_share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_is_above(void **state)
{
    static const struct {
        int64_t cpu_ns;
        uint64_t duration_ns;
        double share;
        bool is_above;
    } cases[] = {
        {80, 100, 0.8, false},
        {81, 100, 0.8, true},
        {401, 100, 4, true}, /* several processors */
        {1, 0, 0.8, true},   /* no duration */
        {0, 0, 0.8, false},
        {0, 100, 0, false},
        {1, 100, 0, true},
        {INT64_MAX, UINT64_MAX, 0.4, true},
        {INT64_MAX, UINT64_MAX, 0.6, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(cpu_share_is_above(cases[i].cpu_ns, cases[i].duration_ns, cases[i].share),
                         cases[i].is_above);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_above),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

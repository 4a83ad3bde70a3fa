/* Requests of one signal only name a tenant. */
#include "processors/spanjoin/tenants_seen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static bool differ(struct tenants_seen *tenants)
{
    enum signal with;
    return tenants_seen_differ(tenants, &with);
}

static void told_once_when_it_lasts(void **state)
{
    struct tenants_seen tenants = {.turns = 0};
    enum signal with;
    (void)state;
    assert_false(differ(&tenants));
    tenants_seen_note(&tenants, SIGNAL_TRACES, true);
    assert_false(differ(&tenants));
    assert_false(differ(&tenants));
    tenants_seen_note(&tenants, SIGNAL_PROFILES, false);
    assert_false(differ(&tenants));
    assert_true(tenants_seen_differ(&tenants, &with));
    assert_int_equal(with, SIGNAL_TRACES);
    assert_false(differ(&tenants));
}

static void not_told_if_some_can_meet(void **state)
{
    (void)state;
    for (unsigned seen = 0; seen < 16; seen++) {
        struct tenants_seen tenants = {.turns = 0};
        for (unsigned bit = 0; bit < 4; bit++)
            if (seen >> bit & 1)
                tenants_seen_note(&tenants, bit < 2 ? SIGNAL_TRACES : SIGNAL_PROFILES, bit % 2);
        differ(&tenants);
        assert_int_equal(differ(&tenants), seen == 6 || seen == 9);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(told_once_when_it_lasts),
        cmocka_unit_test(not_told_if_some_can_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* How far the clock of a profiler is ahead (core/data/upload_lead.h). */
#include "core/data/upload_lead.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { FORM = 1, OTHER_FORM };
#define WINDOW UINT64_C(100)

static void test_the_largest_one_counts(void **state)
{
    (void)state;
    struct upload_lead lead = {.since_ns = 0};
    assert_int_equal(upload_lead_largest(&lead, FORM, 7, WINDOW), 0);
    upload_lead_note(&lead, FORM, 3, 10, WINDOW);
    upload_lead_note(&lead, FORM, 5, 20, WINDOW);
    upload_lead_note(&lead, FORM, 4, 30, WINDOW);
    assert_int_equal(upload_lead_largest(&lead, FORM, 30, WINDOW), 5);
    assert_int_equal(upload_lead_largest(&lead, OTHER_FORM, 30, WINDOW), 0);
    upload_lead_note(&lead, OTHER_FORM, 2, 40, WINDOW);
    assert_int_equal(upload_lead_largest(&lead, OTHER_FORM, 40, WINDOW), 2);
    assert_int_equal(upload_lead_largest(&lead, FORM, 40, WINDOW), 0);
}

static void test_it_is_forgotten(void **state)
{
    (void)state;
    struct upload_lead lead = {.since_ns = 0};
    upload_lead_note(&lead, FORM, 5, 10, WINDOW);
    for (uint64_t now = 20; now <= 400; now += 10) {
        uint64_t largest = upload_lead_largest(&lead, FORM, now, WINDOW);
        assert_in_range(largest, now <= 10 + WINDOW ? 5 : 2, now <= 20 + 2 * WINDOW ? 5 : 3);
        upload_lead_note(&lead, FORM, 2 + now % 20 / 10, now, WINDOW);
    }
    assert_int_equal(upload_lead_largest(&lead, FORM, 401, WINDOW), 3);
    assert_int_equal(upload_lead_largest(&lead, FORM, 1000, WINDOW), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_largest_one_counts),
        cmocka_unit_test(test_it_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

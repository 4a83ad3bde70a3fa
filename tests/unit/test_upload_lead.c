/* How far the clock of a profiler is ahead (core/data/upload_lead.h). */
#include "core/data/upload_lead.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { FORM = 1, OTHER_FORM };
#define WINDOW UINT64_C(100)

static void note(struct upload_leads *leads, uint32_t form, uint64_t ns, uint64_t now_ns)
{
    upload_lead_note(leads, form, (struct upload_ahead){ns, 0}, now_ns, WINDOW);
}

static uint64_t largest_of(const struct upload_leads *leads, uint32_t form, uint64_t now_ns)
{
    return upload_lead_largest(leads, form, now_ns, WINDOW).ns;
}

static void test_the_largest_one_counts(void **state)
{
    (void)state;
    struct upload_leads leads = {.of = {{.since_ns = 0}}};
    assert_int_equal(largest_of(&leads, FORM, 7), 0);
    note(&leads, FORM, 3, 10);
    note(&leads, FORM, 5, 20);
    note(&leads, FORM, 4, 30);
    assert_int_equal(largest_of(&leads, FORM, 30), 5);
    assert_int_equal(largest_of(&leads, OTHER_FORM, 30), 0);
}

static void test_each_form_has_its_own(void **state)
{
    (void)state;
    struct upload_leads leads = {.of = {{.since_ns = 0}}};
    for (uint64_t now = 10; now <= 400; now += 10) {
        note(&leads, FORM, 5, now);
        note(&leads, OTHER_FORM, 2, now + 5);
        assert_int_equal(largest_of(&leads, FORM, now + 5), 5);
        assert_int_equal(largest_of(&leads, OTHER_FORM, now + 5), 2);
    }
}

/* The number of forms is the senders' choice. */
static void test_of_many_forms_the_oldest_is_forgotten(void **state)
{
    (void)state;
    struct upload_leads leads = {.of = {{.since_ns = 0}}};
    for (uint32_t form = 0; form <= UPLOAD_FORMS_MAX; form++)
        note(&leads, form, 5 + form, 10 + form);
    assert_int_equal(largest_of(&leads, 0, 20), 0);
    for (uint32_t form = 1; form <= UPLOAD_FORMS_MAX; form++)
        assert_int_equal(largest_of(&leads, form, 20), 5 + form);
}

static void test_it_is_forgotten(void **state)
{
    (void)state;
    struct upload_leads leads = {.of = {{.since_ns = 0}}};
    note(&leads, FORM, 5, 10);
    for (uint64_t now = 20; now <= 400; now += 10) {
        uint64_t largest = largest_of(&leads, FORM, now);
        assert_in_range(largest, now <= 10 + WINDOW ? 5 : 2, now <= 20 + 2 * WINDOW ? 5 : 3);
        note(&leads, FORM, 2 + now % 20 / 10, now);
    }
    assert_int_equal(largest_of(&leads, FORM, 401), 3);
    assert_int_equal(largest_of(&leads, FORM, 1000), 0);
}

/* A sender of ends stays one as long. */
static void test_a_sender_of_ends(void **state)
{
    (void)state;
    struct upload_leads leads = {.of = {{.since_ns = 0}}};
    upload_lead_note(&leads, FORM, (struct upload_ahead){0, 30}, 10, WINDOW);
    note(&leads, FORM, 3, 20);
    assert_int_equal(upload_lead_largest(&leads, FORM, 10 + 2 * WINDOW, WINDOW).ends_ns, 30);
    assert_true(upload_sends_end(upload_lead_largest(&leads, FORM, 20, WINDOW), 59));
    assert_false(upload_sends_end(upload_lead_largest(&leads, FORM, 20, WINDOW), 60));
    assert_int_equal(largest_of(&leads, FORM, 20), 3);
    assert_int_equal(upload_lead_largest(&leads, FORM, 20 + 2 * WINDOW, WINDOW).ends_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_largest_one_counts),
        cmocka_unit_test(test_each_form_has_its_own),
        cmocka_unit_test(test_of_many_forms_the_oldest_is_forgotten),
        cmocka_unit_test(test_it_is_forgotten),
        cmocka_unit_test(test_a_sender_of_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

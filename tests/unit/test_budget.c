#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/budget.h"

/* Reserves bytes one by one, until the account is refused. Returns their number. */
static size_t take_all(struct budget *account)
{
    size_t taken = 0;
    while (budget_reserve(account, 1))
        taken++;
    return taken;
}

static void one_hog_leaves_a_fifth(void **state)
{
    (void)state;
    struct budget all = {.limit_bytes = 1000};
    struct budget hog = {.parent = &all}, good = {.parent = &all};
    assert_int_equal(take_all(&hog), 800); /* 800 <= 4 * 200 */
    assert_int_equal(budget_used(&all), 800);
    assert_false(budget_has_room(&hog, 1));
    assert_true(budget_has_room(&good, 160));
    assert_false(budget_has_room(&good, 161));
    assert_true(budget_reserve(&good, 160)); /* 160 <= 4 * 40 */
    assert_false(budget_reserve(&hog, 1));
}

/* Hogs take as much as they get, in equal steps. */
static void equal_hogs_leave_room_for_others(void **state)
{
    (void)state;
    static const struct {
        unsigned hogs;
        size_t expected;
    } cases[] = {{1, 16000}, {3, 12500}, {9, 6200}, {30, 2000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct budget all = {.limit_bytes = 100000};
        struct budget hogs[30], good = {.parent = &all};
        for (unsigned j = 0; j < cases[i].hogs; j++)
            hogs[j] = (struct budget){.parent = &all};
        for (bool more = true; more;) {
            more = false;
            for (unsigned j = 0; j < cases[i].hogs; j++)
                more = budget_reserve(&hogs[j], 10) || more;
        }
        assert_in_range(take_all(&good), cases[i].expected, cases[i].expected * 11 / 10);
        assert_true(budget_used(&all) <= 125000);
    }
}

/* Each hog takes all it gets before the next one comes, which leaves the least. */
static void hogs_one_after_another_leave_room(void **state)
{
    (void)state;
    static const size_t expected[] = {16000, 12500, 8250, 4125};
    struct budget all = {.limit_bytes = 100000};
    struct budget hogs[4];
    struct budget good = {.parent = &all};
    for (size_t i = 0; i < sizeof hogs / sizeof *hogs; i++) {
        hogs[i] = (struct budget){.parent = &all};
        take_all(&hogs[i]);
        assert_int_equal(take_all(&good), expected[i]);
        budget_release(&good, expected[i]);
    }
}

/* What was seen when a fourth client was refused, scaled to 100,000: one hog held 78,200, and two
 * that came later held 13,400 and 14,200 of what was left. */
static void later_hogs_leave_the_spare(void **state)
{
    (void)state;
    struct budget all = {.limit_bytes = 100000};
    struct budget first = {.parent = &all}, second = {.parent = &all}, third = {.parent = &all};
    struct budget good = {.parent = &all};
    assert_true(budget_reserve(&first, 78200));
    assert_true(budget_reserve(&second, 13400)); /* 13,400 <= 4 * 8,400 */
    assert_false(budget_reserve(&third, 14200));
    assert_int_equal(take_all(&third), 12500);
    assert_int_equal(take_all(&good), 10450);
}

/* Arenas of admitted requests fill the rest, and a little more. */
static void charges_leave_room_for_small_accounts(void **state)
{
    (void)state;
    struct budget all = {.limit_bytes = 1000};
    struct budget hog = {.parent = &all}, good = {.parent = &all};
    take_all(&hog);
    budget_charge(&hog, 250);
    assert_int_equal(take_all(&good), 100);
    assert_false(budget_has_room(&good, 1));
    assert_int_equal(take_all(&hog), 0);
    assert_false(budget_reserve(&all, 1)); /* without an account there is no spare room */
    budget_release(&hog, 1050);
    assert_true(budget_reserve(&all, 900));
}

static void two_hogs_get_the_same(void **state)
{
    (void)state;
    struct budget all = {.limit_bytes = 900};
    struct budget one = {.parent = &all}, other = {.parent = &all};
    bool more = true;
    while (more) {
        bool one_more = budget_reserve(&one, 1);
        more = budget_reserve(&other, 1) || one_more;
    }
    assert_int_equal(budget_used(&one), 400); /* 400 <= 4 * 100 */
    assert_int_equal(budget_used(&other), 400);
}

/* A hog that came first gets no more before it has released memory. The good client does not
 * have to wait for that. */
static void who_holds_most_is_refused_first(void **state)
{
    (void)state;
    struct budget all = {.limit_bytes = 1000};
    struct budget hog = {.parent = &all}, good = {.parent = &all};
    take_all(&hog);
    for (int i = 0; i < 1000; i++) {
        assert_true(budget_reserve(&good, 100));
        assert_false(budget_reserve(&hog, 1));
        budget_release(&good, 100);
    }
    assert_true(budget_reserve(&good, 100)); /* 100 are free: the hog may hold 400 */
    budget_release(&hog, 300);
    assert_int_equal(budget_used(&hog), 500);
    assert_true(budget_reserve(&hog, 220)); /* 720 <= 4 * 180 */
    assert_false(budget_reserve(&hog, 1));
}

static void everything_comes_back(void **state)
{
    (void)state;
    struct budget all = {.limit_bytes = 1000};
    struct budget one = {.parent = &all}, other = {.parent = &all};
    assert_true(budget_reserve(&one, 500));
    budget_charge(&one, 750); /* without a reservation */
    assert_int_equal(budget_used(&all), 1250);
    assert_false(budget_reserve(&other, 1)); /* all is full, and so is the spare room */
    assert_false(budget_has_room(&one, 0));
    assert_true(budget_reserve(&other, 0));
    assert_false(budget_reserve(&all, 1));
    budget_release(&one, 1250);
    assert_int_equal(budget_used(&one), 0);
    assert_int_equal(budget_used(&other), 0);
    assert_int_equal(budget_used(&all), 0);
    assert_int_equal(take_all(&other), 800);
}

static void what_belongs_to_nobody_counts_for_all(void **state)
{
    (void)state;
    struct budget all = {.limit_bytes = 1000};
    struct budget one = {.parent = &all}, other = {.parent = &all};
    budget_charge(&all, 500);
    assert_int_equal(take_all(&one), 400);
    assert_ptr_equal(budget_of_both(&one, &one), &one);
    assert_ptr_equal(budget_of_both(&one, &other), &all);
    assert_ptr_equal(budget_of_both(&one, &all), &all);
    assert_ptr_equal(budget_of_both(&all, &one), &all);
    assert_null(budget_of_both(NULL, NULL));
}

static void limits_do_not_overflow(void **state)
{
    (void)state;
    struct budget all = {.limit_bytes = SIZE_MAX};
    struct budget account = {.parent = &all};
    assert_true(budget_reserve(&account, SIZE_MAX / 2));
    assert_false(budget_reserve(&account, SIZE_MAX));
    assert_int_equal(budget_limit(&account), SIZE_MAX);
    struct budget endless = {0}, free_account = {.parent = &endless};
    assert_true(budget_reserve(&free_account, 1 << 30));
    assert_true(budget_has_room(&free_account, 1 << 30));
    assert_int_equal(budget_limit(&free_account), 0);
    assert_int_equal(budget_limit(NULL), 0);
    assert_true(budget_has_room(NULL, 1));
}

static void alone_it_may_be_too_large(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 100};
    assert_false(budget_reserve(&budget, 101));
    assert_true(budget_reserve_alone(&budget, 101));
    assert_false(budget_reserve_alone(&budget, 1));
    assert_false(budget_reserve(&budget, 1));
    budget_release(&budget, 101);
    assert_true(budget_reserve(&budget, 1));
    assert_false(budget_reserve_alone(&budget, 101));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_hog_leaves_a_fifth),
        cmocka_unit_test(two_hogs_get_the_same),
        cmocka_unit_test(who_holds_most_is_refused_first),
        cmocka_unit_test(everything_comes_back),
        cmocka_unit_test(what_belongs_to_nobody_counts_for_all),
        cmocka_unit_test(equal_hogs_leave_room_for_others),
        cmocka_unit_test(hogs_one_after_another_leave_room),
        cmocka_unit_test(later_hogs_leave_the_spare),
        cmocka_unit_test(charges_leave_room_for_small_accounts),
        cmocka_unit_test(limits_do_not_overflow),
        cmocka_unit_test(alone_it_may_be_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

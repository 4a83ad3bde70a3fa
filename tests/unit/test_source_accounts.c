#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/hash.h"
#include "core/base/source_accounts.h"

static struct budget all;
static struct source_accounts accounts;

static int set_up(void **state)
{
    (void)state;
    all = (struct budget){.limit_bytes = 1 << 20};
    source_accounts_init(&accounts, &all);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    source_accounts_deinit(&accounts);
    return budget_used(&all) == 0 ? 0 : -1;
}

static void a_source_has_one_account(void **state)
{
    (void)state;
    struct budget *one = source_accounts_enter(&accounts, 1);
    struct budget *other = source_accounts_enter(&accounts, 2);
    assert_ptr_equal(one->parent, &all);
    assert_ptr_not_equal(one, other);
    assert_ptr_equal(source_accounts_enter(&accounts, 1), one);
    budget_charge(one, 300);
    budget_charge(other, 200);
    assert_int_equal(source_accounts_most_used(&accounts), 300);
    source_accounts_leave(&accounts, one);
    source_accounts_leave(&accounts, one);
    /* Bytes that a source still holds count when it comes back. */
    assert_ptr_equal(source_accounts_enter(&accounts, 1), one);
    source_accounts_leave(&accounts, one);
    source_accounts_leave(&accounts, other);
    budget_release(one, 300);
    budget_release(other, 200);
}

/* An account is reused only when its source has no connection and holds nothing. */
static void an_account_is_taken_over_when_it_is_free(void **state)
{
    (void)state;
    enum { SOURCES = 400 };
    static struct budget *held[SOURCES];
    for (unsigned i = 0; i < SOURCES; i++) {
        held[i] = source_accounts_enter(&accounts, i);
        if (i % 2) {
            budget_charge(held[i], 1);
            source_accounts_leave(&accounts, held[i]);
        }
        for (unsigned before = 0; before < i; before++)
            assert_ptr_not_equal(held[i], held[before]);
    }
    for (unsigned i = 0; i < SOURCES; i++)
        if (i % 2)
            budget_release(held[i], 1);
        else
            source_accounts_leave(&accounts, held[i]);
    for (unsigned i = 0; i < 100 * SOURCE_ACCOUNTS; i++)
        source_accounts_leave(&accounts, source_accounts_enter(&accounts, SOURCES + i));
}

/* With more sources than accounts, sources share. A source that returns gets one of the accounts
 * near its hash slot. */
static void too_many_sources_share(void **state)
{
    (void)state;
    enum { SOURCES = 4 * SOURCE_ACCOUNTS };
    static struct budget *held[SOURCES];
    unsigned connections = 0;
    for (unsigned i = 0; i < SOURCES; i++)
        held[i] = source_accounts_enter(&accounts, i);
    for (unsigned i = 0; i < SOURCE_ACCOUNTS; i++)
        connections += accounts.items[i].connections;
    assert_int_equal(connections, SOURCES);
    for (unsigned i = 0; i < SOURCES; i++)
        source_accounts_leave(&accounts, held[i]);
    for (unsigned i = 0; i < SOURCE_ACCOUNTS; i++)
        assert_int_equal(accounts.items[i].connections, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_source_has_one_account, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_account_is_taken_over_when_it_is_free, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(too_many_sources_share, set_up, tear_down),
    };
    hash_init_with(11); /* hash slots are the same in every run */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

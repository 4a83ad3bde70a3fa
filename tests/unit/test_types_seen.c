/* Sample types that the settings name, and that no profile is of. */
#include "processors/spanjoin/types_seen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

enum { FIRST = 1, SECOND_TYPE = 2 };

/* Returns what is missing after so many turns, all of which but the last one tell nothing. */
static uint32_t missing_after(struct types_seen *types, unsigned turns, uint32_t awaited)
{
    for (unsigned i = 1; i < turns; i++)
        assert_int_equal(types_seen_missing(types, awaited), 0);
    return types_seen_missing(types, awaited);
}

static void types_that_do_not_come_are_told_once(void **state)
{
    struct types_seen types = {.turns = 0};
    (void)state;
    types_seen_note(&types, 0);
    types_seen_note(&types, FIRST);
    assert_int_equal(missing_after(&types, TYPES_SEEN_TURNS, FIRST | SECOND_TYPE), SECOND_TYPE);
    assert_int_equal(missing_after(&types, 2 * TYPES_SEEN_TURNS, FIRST | SECOND_TYPE), 0);
}

static void nothing_is_told_of_types_that_come(void **state)
{
    struct types_seen types = {.turns = 0};
    (void)state;
    types_seen_note(&types, 0);
    assert_int_equal(missing_after(&types, TYPES_SEEN_TURNS - 1, FIRST), 0);
    types_seen_note(&types, FIRST);
    assert_int_equal(missing_after(&types, TYPES_SEEN_TURNS, FIRST), 0);
}

/* Without a profiler nothing is known. */
static void time_begins_with_the_first_profile(void **state)
{
    struct types_seen types = {.turns = 0};
    (void)state;
    assert_int_equal(missing_after(&types, 3 * TYPES_SEEN_TURNS, FIRST), 0);
    types_seen_note(&types, 0);
    assert_int_equal(missing_after(&types, TYPES_SEEN_TURNS, FIRST), FIRST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_that_do_not_come_are_told_once),
        cmocka_unit_test(nothing_is_told_of_types_that_come),
        cmocka_unit_test(time_begins_with_the_first_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

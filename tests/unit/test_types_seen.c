/* Sample types that the settings name, and that no profile is of. */
#include "processors/spanjoin/types_seen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

enum { FIRST = 1, SECOND_TYPE = 2 };

#define SECOND_NS UINT64_C(1000000000)

/* Asks from one time to another, in seconds, as often as a short window does. Returns what is
 * missing at the end; before, nothing is. */
static uint32_t missing_at(struct types_seen *types, uint64_t from_s, uint64_t to_s,
                           uint32_t awaited)
{
    for (uint64_t now_s = from_s; now_s < to_s; now_s++)
        assert_int_equal(types_seen_missing(types, awaited, now_s * SECOND_NS), 0);
    return types_seen_missing(types, awaited, to_s * SECOND_NS);
}

static void types_that_do_not_come_are_told_once(void **state)
{
    struct types_seen types = {.since_ns = 0};
    (void)state;
    types_seen_note(&types, 0);
    types_seen_note(&types, FIRST);
    assert_int_equal(missing_at(&types, 10, 190, FIRST | SECOND_TYPE), SECOND_TYPE);
    assert_int_equal(missing_at(&types, 191, 600, FIRST | SECOND_TYPE), 0);
}

static void nothing_is_told_of_types_that_come(void **state)
{
    struct types_seen types = {.since_ns = 0};
    (void)state;
    types_seen_note(&types, 0);
    assert_int_equal(missing_at(&types, 10, 189, FIRST), 0);
    types_seen_note(&types, FIRST);
    assert_int_equal(missing_at(&types, 190, 600, FIRST), 0);
}

/* Without a profiler nothing is known. */
static void time_begins_with_the_first_profile(void **state)
{
    struct types_seen types = {.since_ns = 0};
    (void)state;
    assert_int_equal(missing_at(&types, 10, 600, FIRST), 0);
    types_seen_note(&types, 0);
    assert_int_equal(missing_at(&types, 601, 781, FIRST), FIRST);
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

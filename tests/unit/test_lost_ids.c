/* Ids whose totals were evicted (core/data/lost_ids.h). */
#include "core/data/lost_ids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { ROOM = 1000 };
#define WINDOW UINT64_C(100)

static uint32_t hash_of(uint32_t i)
{
    return i * 2654435761u ^ i >> 7;
}

static unsigned count_known(struct lost_ids *lost, uint32_t from, uint32_t to, uint64_t now_ns)
{
    unsigned count = 0;
    for (uint32_t i = from; i < to; i++)
        count += lost_ids_has(lost, hash_of(i), now_ns, WINDOW);
    return count;
}

static void test_none_is_missing_and_few_are_added(void **state)
{
    (void)state;
    struct lost_ids lost = {.size = 0};
    assert_int_equal(count_known(&lost, 0, 10, 1), 0);
    for (uint32_t i = 0; i < ROOM; i++)
        lost_ids_add(&lost, hash_of(i), ROOM, i / 20, WINDOW);
    assert_int_equal(count_known(&lost, 0, ROOM, 50), ROOM);
    assert_in_range(count_known(&lost, ROOM, 11 * ROOM, 50), 0, 10 * ROOM * 3 / 100);
    assert_in_range(lost_ids_memory(&lost), ROOM * 2, ROOM * 5);
    lost_ids_deinit(&lost);
}

static void test_they_are_forgotten(void **state)
{
    (void)state;
    for (uint64_t noted = 0; noted < 2 * WINDOW; noted += 10) {
        struct lost_ids lost = {.size = 0};
        lost_ids_add(&lost, 1, ROOM, 0, WINDOW);
        lost_ids_add(&lost, hash_of(7), ROOM, noted, WINDOW);
        for (uint64_t age = 0; age <= WINDOW; age += 10)
            assert_true(lost_ids_has(&lost, hash_of(7), noted + age, WINDOW));
        assert_false(lost_ids_has(&lost, hash_of(7), noted + 4 * WINDOW, WINDOW));
        assert_int_equal(lost_ids_memory(&lost), 0);
        lost_ids_deinit(&lost);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none_is_missing_and_few_are_added),
        cmocka_unit_test(test_they_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

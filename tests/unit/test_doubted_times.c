/* Times of a thread's samples whose span is not known, as ranges. */
#include "core/data/doubted_times.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

static void add(struct doubted_times *times, uint64_t from_ms, uint64_t to_ms)
{
    doubted_times_add(times, (struct time_range){from_ms * MS, to_ms * MS});
    for (uint32_t i = 0; i < times->count; i++) {
        assert_true(times->ranges[i].start_ns <= times->ranges[i].end_ns);
        assert_true(i == 0 || !doubted_ranges_touch(times->ranges[i - 1], times->ranges[i]));
    }
}

static bool meet(const struct doubted_times *times, uint64_t from_ms, uint64_t to_ms)
{
    return doubted_times_meet(times, (struct time_range){from_ms * MS, to_ms * MS});
}

static void ranges_are_met(void **state)
{
    (void)state;
    struct doubted_times times = {.count = 0};
    assert_false(meet(&times, 0, 1000));
    add(&times, 1000, 1000);
    add(&times, 500, 600);
    assert_int_equal(times.count, 2);
    assert_true(meet(&times, 400, 500));
    assert_true(meet(&times, 550, 560));
    assert_true(meet(&times, 600, 700));
    assert_false(meet(&times, 601, 999));
    assert_true(meet(&times, 601, 1000));
    assert_false(meet(&times, 1001, 5000));
    assert_false(meet(&times, 0, 499));
    doubted_times_deinit(&times);
    assert_false(meet(&times, 400, 2000));
}

static void what_is_near_is_one_range(void **state)
{
    (void)state;
    struct doubted_times times = {.count = 0};
    for (uint64_t ms = 1000; ms <= 2000; ms += 10)
        add(&times, ms, ms);
    assert_int_equal(times.count, 1);
    add(&times, 2100, 2200);
    add(&times, 2300, 2400);
    assert_int_equal(times.count, 3);
    add(&times, 1990, 2290); /* all of them touch it */
    assert_int_equal(times.count, 1);
    assert_int_equal(times.ranges[0].start_ns, 1000 * MS);
    assert_int_equal(times.ranges[0].end_ns, 2400 * MS);
    add(&times, 100, 5000);
    assert_int_equal(times.count, 1);
    doubted_times_deinit(&times);
}

/* In any order, and more than there is room for: no time is forgotten, and the latest ones stay
 * exact. */
static void many_become_coarser(void **state)
{
    (void)state;
    for (int order = 0; order < 3; order++) {
        struct doubted_times times = {.count = 0};
        const uint64_t count = UINT64_C(10) * DOUBTED_RANGES_MAX;
        for (uint64_t i = 0; i < count; i++) {
            uint64_t n = order == 0 ? i : order == 1 ? count - 1 - i : i * 7 % count;
            add(&times, n * 100, n * 100 + 10);
            assert_true(times.count <= DOUBTED_RANGES_MAX);
        }
        for (uint64_t i = 0; i < count; i++)
            assert_true(meet(&times, i * 100, i * 100));
        assert_false(meet(&times, count * 100, UINT64_MAX / MS));
        for (uint64_t i = count - 100; order == 0 && i < count; i++)
            assert_false(meet(&times, i * 100 + 11, i * 100 + 99));
        doubted_times_deinit(&times);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_met),
        cmocka_unit_test(what_is_near_is_one_range),
        cmocka_unit_test(many_become_coarser),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

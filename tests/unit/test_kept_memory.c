#include "core/kept_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MIB ((size_t)1024 * 1024)

static void large_pieces_stand_by_themselves(void **state)
{
    (void)state;
    static const struct {
        size_t limit_bytes;
        size_t expected;
    } cases[] = {
        {16 * MIB, MIB / 16},  {64 * MIB, MIB / 16},   {512 * MIB, MIB / 2},
        {4096 * MIB, 4 * MIB}, {65536 * MIB, 4 * MIB},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(kept_memory_large_bytes(cases[i].limit_bytes), cases[i].expected);
}

static void nothing_is_kept_near_the_limit(void **state)
{
    (void)state;
    assert_false(kept_memory_is_short(40 * MIB, 64 * MIB));
    assert_true(kept_memory_is_short(40 * MIB + 1, 64 * MIB));
    assert_false(kept_memory_is_short(0, 64 * MIB)); /* free memory is unknown */
    assert_true(kept_memory_is_short(SIZE_MAX / 4 * 3, SIZE_MAX));
}

static void the_next_look_comes_sooner_while_busy(void **state)
{
    (void)state;
    struct kept_memory kept;
    kept_memory_init(&kept, 64 * MIB);
    uint64_t idle_ns = kept_memory_look(&kept), busy_ns;
    volatile unsigned work = 0;
    do
        for (unsigned i = 0; i < 1000000; i++)
            work += i;
    while ((busy_ns = kept_memory_look(&kept)) == idle_ns);
    assert_true(busy_ns < idle_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_pieces_stand_by_themselves),
        cmocka_unit_test(nothing_is_kept_near_the_limit),
        cmocka_unit_test(the_next_look_comes_sooner_while_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "core/base/arena.h"
#include "core/base/budget.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void allocations_are_aligned_and_apart(void **state)
{
    (void)state;
    struct arena arena = {0};
    uint8_t *pieces[300];
    for (size_t i = 0; i < 300; i++) {
        pieces[i] = arena_alloc(&arena, i);
        assert_int_equal((uintptr_t)pieces[i] % alignof(max_align_t), 0);
        memset(pieces[i], (int)i, i);
    }
    for (size_t i = 0; i < 300; i++)
        for (size_t at = 0; at < i; at++)
            assert_int_equal(pieces[i][at], (uint8_t)i);
    arena_deinit(&arena);
}

static void large_allocations_get_room(void **state)
{
    (void)state;
    struct arena arena = {0};
    static const size_t sizes[] = {4095, 4096, 4097, 262144, 5000000, 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint8_t *memory = arena_alloc(&arena, sizes[i]);
        memory[0] = memory[sizes[i] - 1] = 1;
        assert_true(arena.reserved_bytes >= sizes[i]);
    }
    arena_deinit(&arena);
    assert_int_equal(arena.reserved_bytes, 0);
}

static void blocks_double_up_to_a_limit(void **state)
{
    (void)state;
    struct arena arena = {0};
    size_t blocks = 0, before = 0;
    for (size_t i = 0; i < 1024 * 1024 / 64; i++) {
        arena_alloc(&arena, 64);
        blocks += arena.reserved_bytes != before;
        before = arena.reserved_bytes;
    }
    assert_true(blocks < 12);
    assert_true(arena.reserved_bytes < 2 * 1024 * 1024);
    arena_deinit(&arena);
}

static void the_budget_is_charged_and_given_back(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 100}; /* charged without a reservation */
    struct arena arena;
    arena_init(&arena, &budget);
    assert_int_equal(budget_used(&budget), 0);
    arena_alloc(&arena, 10000);
    assert_true(budget_used(&budget) >= 10000);
    assert_int_equal(budget_used(&budget), arena.reserved_bytes);
    arena_deinit(&arena);
    assert_int_equal(budget_used(&budget), 0);
    arena_alloc(&arena, 1); /* it can be used again, on the same budget */
    assert_int_equal(budget_used(&budget), arena.reserved_bytes);
    arena_deinit(&arena);
    assert_int_equal(budget_used(&budget), 0);
}

static void zeroed_memory_is_zero(void **state)
{
    (void)state;
    struct arena arena = {0};
    for (int round = 0; round < 100; round++) {
        memset(arena_alloc(&arena, 100), 0xff, 100);
        uint8_t *zeroed = arena_zalloc(&arena, 100);
        uint32_t *array = arena_array(&arena, 25, sizeof *array);
        for (size_t i = 0; i < 100; i++)
            assert_int_equal(zeroed[i], 0);
        for (size_t i = 0; i < 25; i++)
            assert_int_equal(array[i], 0);
    }
    arena_deinit(&arena);
}

static void strings_are_copied(void **state)
{
    (void)state;
    struct arena arena = {0};
    char source[] = "text";
    char *copy = arena_strdup(&arena, source);
    source[0] = 'T';
    assert_string_equal(copy, "text");
    assert_string_equal(arena_string(&arena, SLICE("ab\0c")), "ab");
    assert_string_equal(arena_string(&arena, (struct slice){0}), "");
    assert_int_equal(arena_copy(&arena, (struct slice){0}).size, 0);
    struct slice bytes = arena_copy(&arena, SLICE("a\0b"));
    assert_true(slice_equal(bytes, SLICE("a\0b")));
    assert_string_equal(arena_printf(&arena, "%s-%d", "x", 42), "x-42");
    char *padded = arena_printf(&arena, "%9000d", 7);
    assert_int_equal(strlen(padded), 9000);
    assert_int_equal(padded[8999], '7');
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_aligned_and_apart),
        cmocka_unit_test(large_allocations_get_room),
        cmocka_unit_test(blocks_double_up_to_a_limit),
        cmocka_unit_test(the_budget_is_charged_and_given_back),
        cmocka_unit_test(zeroed_memory_is_zero),
        cmocka_unit_test(strings_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

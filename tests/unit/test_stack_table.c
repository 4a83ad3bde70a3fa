#include "core/base/stack_table.h"
#include "core/base/stack_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void equal_stacks_share_an_entry(void **state)
{
    (void)state;
    const uint64_t one[] = {1, 2, 3}, other[] = {1, 2, 4};
    struct stack_table *table = stack_table_new(4096);
    struct stack_entry *first = stack_table_add(table, one, 3);
    first->values[0] += 5;
    assert_ptr_equal(stack_table_add(table, one, 3), first);
    assert_ptr_not_equal(stack_table_add(table, other, 3), first);
    assert_ptr_not_equal(stack_table_add(table, one, 2), first);
    assert_ptr_equal(stack_table_at(table, stack_table_offset(table, first)), first);

    struct stack_table *copy = stack_table_copy(table);
    stack_table_clear(table);
    assert_null(stack_table_first(table));
    const struct stack_entry *entry = stack_table_first(copy);
    assert_true(entry->values[0] == 5);
    assert_memory_equal(entry->addresses, one, sizeof one);
    entry = stack_table_next(copy, stack_table_next(copy, entry));
    assert_int_equal(entry->depth, 2);
    assert_null(stack_table_next(copy, entry));
    stack_table_free(copy);
    stack_table_free(table);
}

static void full_table_keeps_what_it_has(void **state)
{
    (void)state;
    struct stack_table *table = stack_table_new(1024);
    uint64_t addresses[STACK_FRAMES_MAX] = {0};
    size_t kept = 0, entries = 0;
    for (; addresses[0] < 100; addresses[0]++)
        kept += stack_table_add(table, addresses, 8) != NULL;
    assert_in_range(kept, 1, 99);
    assert_int_equal(table->lost, 100 - kept);
    addresses[0] = 0;
    assert_non_null(stack_table_add(table, addresses, 8));
    const struct stack_entry *entry = stack_table_first(table);
    for (; entry; entry = stack_table_next(table, entry))
        entries++;
    assert_int_equal(entries, kept);
    stack_table_free(table);
}

static void what_an_earlier_copy_has_is_subtracted(void **state)
{
    (void)state;
    const uint64_t one[] = {1, 2}, other[] = {3, 4};
    struct stack_table *table = stack_table_new(4096);
    stack_table_add(table, one, 2)->values[0] = 5;
    stack_table_add(table, one, 2)->values[3] = 7;
    table->lost = 1;
    struct stack_table *earlier = stack_table_copy(table);
    stack_table_add(table, one, 2)->values[0] = 6;
    stack_table_add(table, one, 2)->values[3] = 4;
    stack_table_add(table, other, 2)->values[0] = 2;
    table->lost = 3;
    stack_table_subtract(table, earlier);
    assert_true(stack_table_add(table, one, 2)->values[0] == 1);
    assert_true(stack_table_add(table, one, 2)->values[3] == -3);
    assert_true(stack_table_add(table, other, 2)->values[0] == 2);
    assert_int_equal(table->lost, 2);
    stack_table_free(earlier);
    stack_table_free(table);
}

/* ---- stack_walk ---- */

static __attribute__((noinline)) size_t walk_below(int calls, uint64_t *addresses)
{
    const struct stack_registers here = stack_registers_of_caller();
    size_t depth = calls > 0 ? walk_below(calls - 1, addresses) : stack_walk(&here, addresses);
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return depth;
}

static void each_caller_is_a_frame(void **state)
{
    (void)state;
    uint64_t addresses[STACK_FRAMES_MAX];
    size_t shallow = walk_below(0, addresses);
    size_t deep = walk_below(10, addresses);
    assert_true(shallow >= 2);
    assert_int_equal(deep, shallow + 10);
    assert_int_equal(addresses[1], addresses[5]); /* the recursive call */
    assert_int_equal(walk_below(200, addresses), STACK_FRAMES_MAX);
}

static void wrong_frame_pointers_end_the_walk(void **state)
{
    (void)state;
    uint64_t addresses[STACK_FRAMES_MAX], stack[8] = {0};
    uint64_t sp = (uint64_t)(uintptr_t)stack;
    stack[0] = sp; /* a frame that is its own caller */
    stack[1] = 0x123456;
    const struct {
        uint64_t fp;
        size_t depth;
    } cases[] = {
        {0, 1},                                                       /* before the stack */
        {sp + 4, 1},                                                  /* not aligned */
        {UINT64_MAX, 1}, {UINT64_MAX - 7, 1}, {UINT64_C(1) << 47, 1}, /* not mapped */
        {sp, 2},         {sp + 32, 1},                                /* no return address */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct stack_registers registers = {.pc = 77, .sp = sp, .fp = cases[i].fp};
        assert_int_equal(stack_walk(&registers, addresses), cases[i].depth);
        assert_int_equal(addresses[0], 77);
    }
    assert_int_equal(addresses[1], 0x123455);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_stacks_share_an_entry),
        cmocka_unit_test(full_table_keeps_what_it_has),
        cmocka_unit_test(what_an_earlier_copy_has_is_subtracted),
        cmocka_unit_test(each_caller_is_a_frame),
        cmocka_unit_test(wrong_frame_pointers_end_the_walk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

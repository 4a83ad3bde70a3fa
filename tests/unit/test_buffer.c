#include "core/base/budget.h"
#include "core/base/buffer.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void a_budget_refuses(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 1000};
    assert_null(buffer_new(1001, &budget));
    struct buffer *a = buffer_new(600, &budget);
    assert_null(buffer_new(401, &budget));
    assert_int_equal(budget_used(&budget), 600);
    struct buffer *b = buffer_new(400, &budget);
    assert_non_null(b);
    assert_false(budget_reserve(&budget, 1));
    buffer_unref(a);
    buffer_unref(b);
    assert_int_equal(budget_used(&budget), 0);
}

static void budgets_do_not_overflow(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = SIZE_MAX - 1};
    assert_true(budget_reserve(&budget, 10));
    assert_false(budget_reserve(&budget, SIZE_MAX - 5));
    assert_false(budget_reserve(&budget, SIZE_MAX));
    assert_int_equal(budget_used(&budget), 10);
    budget_release(&budget, 10);
    struct budget unlimited = {0};
    assert_true(budget_reserve(&unlimited, SIZE_MAX / 2));
    assert_true(budget_reserve(NULL, SIZE_MAX));
}

static void charging_does_not_ask(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 10};
    struct buffer *buffer = buffer_new_charged(100, &budget);
    assert_int_equal(budget_used(&budget), 100);
    assert_false(budget_reserve(&budget, 1)); /* already above the limit */
    buffer_unref(buffer);
    assert_int_equal(budget_used(&budget), 0);
}

static void growth_is_charged(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 100000};
    struct buffer *buffer = buffer_new(0, &budget);
    uint8_t chunk[100];
    for (int i = 0; i < 500; i++) {
        memset(chunk, i, sizeof chunk);
        assert_true(buffer_append(buffer, chunk, sizeof chunk, SIZE_MAX));
        assert_int_equal(budget_used(&budget), buffer->capacity);
    }
    assert_int_equal(buffer->size, 50000);
    for (size_t i = 0; i < buffer->size; i++)
        assert_int_equal(buffer->data[i], (uint8_t)(i / 100));
    buffer_unref(buffer);
    assert_int_equal(budget_used(&budget), 0);
}

/* Doubling the capacity would exceed the budget; the bytes themselves do not. */
static void the_last_bytes_of_a_budget_can_be_used(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 1500};
    struct buffer *buffer = buffer_new(1000, &budget);
    buffer->size = 1000;
    assert_true(buffer_reserve(buffer, 400, SIZE_MAX));
    assert_int_equal(buffer->capacity, 1400);
    buffer->size = 1400;
    assert_false(buffer_reserve(buffer, 101, SIZE_MAX));
    assert_int_equal(buffer->capacity, 1400);
    assert_int_equal(budget_used(&budget), 1400);
    assert_true(buffer_reserve(buffer, 100, SIZE_MAX));
    buffer_unref(buffer);
    assert_int_equal(budget_used(&budget), 0);
}

static void the_maximum_is_a_maximum(void **state)
{
    (void)state;
    static const struct {
        size_t capacity, size, more, max;
        bool expected;
    } cases[] = {
        {0, 0, 0, 0, true},
        {0, 0, 1, 0, false},
        {0, 0, 10, 10, true},
        {0, 0, 11, 10, false},
        {10, 10, 0, 10, true},
        {10, 10, 1, 10, false},
        {10, 4, 6, 10, true},
        {10, 4, 7, 10, false},
        {4096, 0, 100, 50, false}, /* there is memory, but the limit is lower */
        {4096, 40, 11, 50, false},
        {4096, 40, 10, 50, true},
        {10, 10, SIZE_MAX, SIZE_MAX, false},
        {10, 10, SIZE_MAX - 9, SIZE_MAX, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buffer *buffer = buffer_new(cases[i].capacity, NULL);
        buffer->size = cases[i].size;
        assert_int_equal(buffer_reserve(buffer, cases[i].more, cases[i].max), cases[i].expected);
        assert_int_equal(buffer->size, cases[i].size);
        assert_true(buffer->capacity <= cases[i].max || buffer->capacity == cases[i].capacity);
        buffer_unref(buffer);
    }
}

static void trimming_gives_back(void **state)
{
    (void)state;
    static const struct {
        size_t capacity, size, expected;
    } cases[] = {{800, 699, 699}, {800, 700, 800}, {800, 800, 800},
                 {800, 1, 1},     {800, 0, 800},   {0, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct budget budget = {0};
        struct buffer *buffer = buffer_new(cases[i].capacity, &budget);
        if (cases[i].capacity > 0)
            memset(buffer->data, 'x', cases[i].capacity);
        buffer->size = cases[i].size;
        buffer_trim(buffer);
        assert_int_equal(buffer->capacity, cases[i].expected);
        assert_int_equal(budget_used(&budget), cases[i].expected);
        for (size_t at = 0; at < buffer->size; at++)
            assert_int_equal(buffer->data[at], 'x');
        buffer_unref(buffer);
        assert_int_equal(budget_used(&budget), 0);
    }
}

static void *take_and_drop(void *context)
{
    for (int i = 0; i < 20000; i++)
        buffer_unref(buffer_ref(context));
    buffer_unref(context);
    return NULL;
}

static void references_are_counted_across_threads(void **state)
{
    (void)state;
    struct budget budget = {0};
    struct buffer *buffer = buffer_new(64, &budget);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, take_and_drop, buffer_ref(buffer));
    buffer_unref(buffer);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(budget_used(&budget), 0); /* the last reference freed it, once */
    buffer_unref(NULL);
}

static void *reserve_and_release(void *context)
{
    struct budget *budget = context;
    size_t *most = calloc(1, sizeof *most);
    for (int i = 0; i < 20000; i++) {
        if (!budget_reserve(budget, 300))
            continue;
        size_t used = budget_used(budget);
        *most = used > *most ? used : *most;
        budget_release(budget, 300);
    }
    return most;
}

static void a_budget_holds_against_threads(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 1000};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, reserve_and_release, &budget);
    for (int i = 0; i < 4; i++) {
        void *most;
        pthread_join(threads[i], &most);
        assert_in_range(*(size_t *)most, 300, 900);
        free(most);
    }
    assert_int_equal(budget_used(&budget), 0);
}

static void memory_is_adopted(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 100};
    char *memory = calloc(1, 1000);
    struct buffer *buffer = buffer_adopt(memory, 900, 1000, &budget);
    assert_ptr_equal(buffer->data, memory);
    assert_int_equal(buffer->size, 900);
    assert_int_equal(budget_used(&budget), 1000); /* without a reservation */
    buffer_unref(buffer);
    buffer = buffer_adopt(calloc(1, 1000), 10, 1000, &budget);
    assert_int_equal(budget_used(&budget), 10); /* the rest was released */
    buffer_unref(buffer);
    buffer = buffer_adopt(NULL, 0, 0, &budget);
    assert_int_equal(buffer->size, 0);
    buffer_unref(buffer);
    assert_int_equal(budget_used(&budget), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_budget_refuses),
        cmocka_unit_test(budgets_do_not_overflow),
        cmocka_unit_test(charging_does_not_ask),
        cmocka_unit_test(growth_is_charged),
        cmocka_unit_test(the_last_bytes_of_a_budget_can_be_used),
        cmocka_unit_test(the_maximum_is_a_maximum),
        cmocka_unit_test(trimming_gives_back),
        cmocka_unit_test(memory_is_adopted),
        cmocka_unit_test(references_are_counted_across_threads),
        cmocka_unit_test(a_budget_holds_against_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

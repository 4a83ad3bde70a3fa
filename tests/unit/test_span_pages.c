#include "core/data/span_pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 1000 }; /* eight extents */

static int by_address(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return (x > y) - (x < y);
}

static void test_pages_are_apart(void **state)
{
    (void)state;
    struct span_pages *pages = span_pages_new();
    static uintptr_t taken[MANY];
    for (int i = 0; i < MANY; i++) {
        void *page = span_pages_take(pages);
        memset(page, i, SPAN_PAGE_SIZE);
        taken[i] = (uintptr_t)page;
    }
    for (int i = 0; i < MANY; i++) {
        const uint8_t *page = (const uint8_t *)taken[i];
        assert_int_equal(page[0], (uint8_t)i);
        assert_int_equal(page[SPAN_PAGE_SIZE - 1], (uint8_t)i);
    }
    qsort(taken, MANY, sizeof taken[0], by_address);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(taken[i] % SPAN_PAGE_SIZE, 0);
        assert_true(i == 0 || taken[i] - taken[i - 1] >= SPAN_PAGE_SIZE);
    }
    for (int i = 0; i < MANY; i++)
        span_pages_give_back(pages, (void *)taken[i]);
    span_pages_free(pages);
}

static void test_pages_come_and_go(void **state)
{
    (void)state;
    struct span_pages *pages = span_pages_new();
    static void *taken[MANY];
    for (int i = 0; i < MANY; i++)
        taken[i] = span_pages_take(pages);
    /* 1,000 pages are in 8 extents of 127. Frees and takes two random pages in each round. */
    for (int round = 0; round < 20 * MANY; round++) {
        int i = rand() % MANY, j = (i + 1 + rand() % (MANY - 1)) % MANY;
        span_pages_give_back(pages, taken[i]);
        span_pages_give_back(pages, taken[j]);
        taken[i] = span_pages_take(pages);
        taken[j] = span_pages_take(pages);
        assert_ptr_not_equal(taken[i], taken[j]);
    }
    qsort(taken, MANY, sizeof taken[0], by_address);
    for (int i = 1; i < MANY; i++)
        assert_ptr_not_equal(taken[i], taken[i - 1]);
    for (int i = 0; i < MANY; i++)
        span_pages_give_back(pages, taken[i]);
    span_pages_free(pages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages_are_apart),
        cmocka_unit_test(test_pages_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

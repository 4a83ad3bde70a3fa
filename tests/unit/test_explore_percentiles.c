/* Percentiles of durations beside those of the sorted list. */
#include "extensions/explore/percentiles.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PARTS = 5 };
static const double parts[PARTS] = {0.01, 0.5, 0.95, 0.99, 1};

static void test_buckets_are_parts_of_larger_ones(void **state)
{
    (void)state;
    for (unsigned fine = 0; fine < STORE_BUCKETS * FINE_PARTS; fine++) {
        uint64_t lower = fine_bucket_lower(fine), end = fine_bucket_lower(fine + 1);
        assert_true(lower < end);
        assert_int_equal(fine_bucket_of(lower), fine);
        assert_int_equal(fine_bucket_of(end - 1), fine);
        assert_int_equal(store_bucket_of(lower), fine / FINE_PARTS);
        if (lower >= 4096)
            assert_true((double)(end - lower) / (double)lower < 0.0626);
    }
    assert_int_equal(fine_bucket_of(UINT64_MAX), STORE_BUCKETS * FINE_PARTS - 1);
}

/* ---- beside the definition ---- */

enum { DURATIONS = 2000, OPERATIONS = 3 };

static int compare(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return one < other ? -1 : one > other;
}

static void expect_near(const struct fine_counts *counts, const uint64_t *sorted, size_t size)
{
    uint64_t got[PARTS];
    fine_counts_percentiles(counts, parts, PARTS, sorted[size - 1], got);
    for (size_t i = 0; i < PARTS; i++) {
        double wanted = (double)sorted[(size_t)ceil(parts[i] * (double)size) - 1];
        if (fabs((double)got[i] - wanted) > 0.07 * wanted)
            fail_msg("%g of %zu: %g, not %g", parts[i], size, (double)got[i], wanted);
        assert_true(got[i] <= sorted[size - 1]);
    }
}

/* The counts of one operation stand between those of others, unsorted. */
static void check(uint64_t *durations, size_t size)
{
    static struct fine_count counts[3 * DURATIONS];
    struct arena arena;
    uint32_t count = 0;
    arena_init(&arena, NULL);
    for (size_t i = 0; i < size; i++) {
        counts[count++] = (struct fine_count){1, fine_bucket_of(durations[i]), 1};
        counts[count++] = (struct fine_count){(uint32_t)(2 * (i % 2)), (uint32_t)i % 99, 1 + i};
    }
    qsort(durations, size, sizeof *durations, compare);
    const struct fine_counts *groups = fine_counts_group(&arena, counts, count, OPERATIONS);
    assert_int_equal(groups[1].spans, size);
    expect_near(&groups[1], durations, size);
    arena_deinit(&arena);
}

static void test_random_durations(void **state)
{
    (void)state;
    static uint64_t durations[DURATIONS];
    srand(17);
    for (int round = 0; round < 60; round++) {
        size_t size = 1 + (size_t)rand() % (round % 3 ? 20 : DURATIONS);
        double middle = pow(10, 4 + rand() % 7), spread = 0.1 * (rand() % 20);
        for (size_t i = 0; i < size; i++)
            durations[i] = (uint64_t)(middle * exp(spread * ((double)rand() / RAND_MAX - 0.5)));
        check(durations, size);
    }
}

static void test_a_single_duration_is_exact(void **state)
{
    (void)state;
    static const uint64_t durations[] = {671000000, 0, 1, UINT64_C(2) * 86400 * 1000000000};
    const struct fine_counts none = {NULL, 0, 0};
    uint64_t got[PARTS];
    for (size_t d = 0; d < sizeof durations / sizeof *durations; d++) {
        struct fine_count count = {0, fine_bucket_of(durations[d]), 1};
        const struct fine_counts one = {&count, 1, 1};
        fine_counts_percentiles(&one, parts, PARTS, durations[d], got);
        for (size_t i = 0; i < PARTS; i++)
            assert_int_equal(got[i], durations[d]);
    }
    fine_counts_percentiles(&none, parts, PARTS, 0, got);
    for (size_t i = 0; i < PARTS; i++)
        assert_int_equal(got[i], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets_are_parts_of_larger_ones),
        cmocka_unit_test(test_random_durations),
        cmocka_unit_test(test_a_single_duration_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "core/base/heap_sampler.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

/* Keeps the compiler from leaving out an allocation whose block nobody uses. */
static void use(const void *block)
{
    __asm__ volatile("" ::"r"(block) : "memory");
}

static __attribute__((noinline)) void *allocate(size_t size)
{
    void *block = malloc(size);
    use(block);
    return block;
}

struct sums {
    double values[STACK_VALUES];
};

static struct sums sum(void)
{
    struct sums sums = {{0}};
    struct stack_table *copy = heap_sampler_copy();
    const struct stack_entry *entry = stack_table_first(copy);
    for (; entry; entry = stack_table_next(copy, entry))
        for (int i = 0; i < STACK_VALUES; i++)
            sums.values[i] += entry->values[i];
    stack_table_free(copy);
    return sums;
}

static void start(void)
{
    struct error err;
    assert_true(heap_sampler_start(&err));
}

static void assert_near(double value, double wanted)
{
    if (value < 0.8 * wanted || value > 1.2 * wanted)
        fail_msg("%g, not about %g", value, wanted);
}

#define MIB ((size_t)1024 * 1024)

/* 256 MiB in blocks of `size`, half of which are freed. */
static void check_estimate(size_t size)
{
    size_t count = 256 * MIB / size;
    void **blocks = malloc(count * sizeof *blocks);
    start();
    for (size_t i = 0; i < count; i++)
        blocks[i] = allocate(size);
    for (size_t i = 0; i < count; i += 2)
        free(blocks[i]);
    struct sums sums = sum();
    assert_near(sums.values[HEAP_ALLOCATED_BYTES], 256.0 * (double)MIB);
    assert_near(sums.values[HEAP_ALLOCATED_OBJECTS], (double)count);
    assert_near(sums.values[HEAP_BYTES_IN_USE], 128.0 * (double)MIB);
    assert_near(sums.values[HEAP_OBJECTS_IN_USE], (double)count / 2);
    for (size_t i = 1; i < count; i += 2)
        free(blocks[i]);
    sums = sum();
    assert_true(sums.values[HEAP_BYTES_IN_USE] < 4.0 * (double)MIB);
    heap_sampler_stop();
    free(blocks);
}

static void samples_stand_for_all_allocations(void **state)
{
    (void)state;
    check_estimate(1000);
    check_estimate(MIB / 10);
    check_estimate(MIB);
}

static void every_function_of_the_allocator_counts(void **state)
{
    (void)state;
    void *block = NULL;
    start();
    block = realloc(block, 8 * MIB);
    assert_near(sum().values[HEAP_BYTES_IN_USE], 8.0 * (double)MIB);
    block = realloc(block, 16 * MIB);
    assert_near(sum().values[HEAP_BYTES_IN_USE], 16.0 * (double)MIB);
    assert_near(sum().values[HEAP_ALLOCATED_BYTES], 24.0 * (double)MIB);
    void *zeroed = calloc(8, MIB), *aligned = aligned_alloc(64, 8 * MIB), *other = NULL;
    assert_int_equal(posix_memalign(&other, 64, 8 * MIB), 0);
    use(zeroed);
    use(aligned);
    assert_near(sum().values[HEAP_BYTES_IN_USE], 40.0 * (double)MIB);
    free(zeroed);
    free(aligned);
    free(other);
    free(block);
    assert_near(1 + sum().values[HEAP_BYTES_IN_USE], 1);
    heap_sampler_stop();
}

static void libraries_count(void **state)
{
    (void)state;
    z_stream stream = {0};
    start();
    double before = sum().values[HEAP_ALLOCATED_BYTES];
    for (int i = 0; i < 200; i++) { /* 268 KiB each */
        assert_int_equal(deflateInit(&stream, 6), Z_OK);
        deflateEnd(&stream);
    }
    assert_true(sum().values[HEAP_ALLOCATED_BYTES] > before + 20.0 * (double)MIB);
    assert_true(sum().values[HEAP_BYTES_IN_USE] < 4.0 * (double)MIB);
    heap_sampler_stop();
}

static void blocks_may_outlive_the_sampling_and_come_from_before(void **state)
{
    (void)state;
    void *before = allocate(8 * MIB);
    start();
    void *during = allocate(8 * MIB);
    free(before);
    heap_sampler_stop();
    free(during);
    start();
    start(); /* two users */
    heap_sampler_stop();
    during = allocate(8 * MIB);
    assert_near(sum().values[HEAP_BYTES_IN_USE], 8.0 * (double)MIB);
    free(during);
    heap_sampler_stop();
}

static void *work(void *nothing)
{
    (void)nothing;
    for (int i = 0; i < 20000; i++) {
        void *block = allocate(4000);
        block = realloc(block, 5000);
        free(block);
    }
    return NULL;
}

/* Threads allocate while the sampling begins and ends; what they free is not in use. */
static void threads_go_on(void **state)
{
    (void)state;
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 5; i++) {
        start();
        sum();
        heap_sampler_stop();
    }
    start();
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_true(sum().values[HEAP_BYTES_IN_USE] < 4.0 * (double)MIB);
    heap_sampler_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_stand_for_all_allocations),
        cmocka_unit_test(every_function_of_the_allocator_counts),
        cmocka_unit_test(libraries_count),
        cmocka_unit_test(blocks_may_outlive_the_sampling_and_come_from_before),
        cmocka_unit_test(threads_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

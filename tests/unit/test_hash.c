#include "core/base/hash.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { KEYS = 16 };

static void the_key_decides(void **state)
{
    (void)state;
    uint8_t bytes[300];
    memset(bytes, 'x', sizeof bytes);
    static const size_t sizes[] = {0, 1, 8, 16, 17, 128, 129, 240, 241, 300};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t seen[KEYS];
        for (uint64_t key = 0; key < KEYS; key++) {
            hash_init_with(key * 0x9e3779b97f4a7c15u + 1);
            seen[key] = hash_bytes(slice_of(bytes, sizes[i]));
            assert_true(seen[key] == hash_bytes(slice_of(bytes, sizes[i])));
            for (uint64_t other = 0; other < key; other++)
                assert_true(seen[key] != seen[other]);
        }
    }
}

static void the_key_decides_over_numbers(void **state)
{
    (void)state;
    hash_init_with(1);
    uint64_t one = hash_u64(42);
    hash_init_with(2);
    uint64_t two = hash_u64(42);
    assert_true(one != two);
    assert_true(two != hash_u64(43));
    hash_init_with(1);
    assert_true(one == hash_u64(42));
}

static void the_kernels_key_differs_each_time(void **state)
{
    (void)state;
    hash_init();
    uint64_t one = hash_bytes(SLICE("text"));
    hash_init();
    assert_true(one != hash_bytes(SLICE("text")));
    assert_true(random_u64() != random_u64());
}

static void empty_is_fine_whatever_it_points_to(void **state)
{
    (void)state;
    hash_init_with(5);
    assert_true(hash_bytes((struct slice){0}) == hash_bytes(SLICE("")));
}

/* Hashes of similar inputs must differ in their low bits, which tables use as an index. */
static void low_bits_are_spread(void **state)
{
    (void)state;
    hash_init_with(7);
    unsigned used[256] = {0};
    for (uint64_t i = 0; i < 256 * 64; i++)
        used[hash_u64(i << 32) & 255]++;
    for (size_t i = 0; i < 256; i++)
        assert_in_range(used[i], 16, 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_key_decides),
        cmocka_unit_test(the_key_decides_over_numbers),
        cmocka_unit_test(the_kernels_key_differs_each_time),
        cmocka_unit_test(empty_is_fine_whatever_it_points_to),
        cmocka_unit_test(low_bits_are_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/hash.h"
#include "core/net/peer_counts.h"

static void test_limit(void **state)
{
    (void)state;
    struct peer_counts *counts = peer_counts_new(3);
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 20000; i++)
            assert_int_equal(peer_counts_add(counts, 1 + i % 5000), i < 15000);
        for (uint64_t i = 0; i < 15000; i++)
            peer_counts_remove(counts, 1 + i % 5000);
    }
    for (int i = 0; i < 10; i++)
        assert_true(peer_counts_add(counts, 0));
    peer_counts_remove(counts, 0);
    peer_counts_free(counts);
    peer_counts_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit),
    };
    hash_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

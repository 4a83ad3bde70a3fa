#include "core/data/thread_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { THREADS = 300, NAMES = 7, CHANGES = 20000, MOST = 2 };
#define SECOND_NS UINT64_C(1000000000)

/* Names that the threads should have, by thread; 0: none. */
static void check(struct thread_names *names, const uint64_t *expected)
{
    uint32_t counts[NAMES + 1] = {0};
    for (uint32_t i = 0; i < THREADS; i++) {
        const struct thread_name *name = thread_names_of(names, i);
        assert_int_equal(name ? name->hash : 0, expected[i]);
        counts[expected[i]]++;
    }
    for (uint64_t hash = 1; hash <= NAMES; hash++) {
        const struct thread_name *name = thread_names_find(names, hash);
        assert_int_equal(name ? name->threads : 0, counts[hash]);
        uint32_t count = 0;
        for (uint32_t i = name ? name->first : 0; i != 0; i = names->threads[i - 1].next) {
            assert_int_equal(expected[i - 1], hash);
            count++;
        }
        assert_int_equal(count, counts[hash]);
    }
}

static void test_threads_change_their_names(void **state)
{
    (void)state;
    struct thread_names names = {.items = NULL};
    uint64_t expected[THREADS] = {0};
    uint32_t seed = 7;
    for (uint32_t i = 0; i < CHANGES; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t thread = (seed >> 8) % THREADS;
        uint64_t hash = (seed >> 20) % (NAMES + 1);
        if (hash != 0 && thread_names_find(&names, hash))
            thread_names_match(&names, thread_names_find(&names, hash), MOST);
        expected[thread] = hash;
        thread_names_set(&names, thread, hash);
        if (i % 500 == 0)
            check(&names, expected);
        assert_true(names.matches <= MOST);
    }
    check(&names, expected);
    for (uint32_t i = 0; i < THREADS; i++)
        thread_names_set(&names, i, 0);
    assert_int_equal(names.matches, 0);
    thread_names_deinit(&names);
}

static void test_a_match_has_the_threads_of_its_name(void **state)
{
    (void)state;
    struct thread_names names = {.items = NULL};
    for (uint32_t i = 0; i < 3; i++)
        thread_names_set(&names, i, 5);
    struct thread_match *match = thread_names_match(&names, thread_names_find(&names, 5), 1);
    assert_non_null(match);
    thread_names_set(&names, 3, 5);
    thread_names_set(&names, 1, 6);
    unsigned places = 0;
    for (int i = 0; i < MATCH_THREADS_MAX; i++) {
        assert_int_not_equal(match->threads[i], 1 + 1);
        places += match->threads[i] != 0;
    }
    assert_int_equal(places, 3);
    assert_null(thread_names_match(&names, thread_names_find(&names, 6), 1));
    thread_names_sweep(&names, 1 * SECOND_NS, 10 * SECOND_NS);
    thread_names_sweep(&names, 11 * SECOND_NS, 10 * SECOND_NS);
    assert_int_equal(names.matches, 1);
    thread_names_sweep(&names, 12 * SECOND_NS, 10 * SECOND_NS);
    assert_int_equal(names.matches, 0);
    assert_non_null(thread_names_match(&names, thread_names_find(&names, 6), 1));
    for (uint32_t i = 0; i < 4; i++)
        thread_names_set(&names, i, 0);
    thread_names_deinit(&names);
}

static void test_samples_tell_whether_threads_share_a_name(void **state)
{
    (void)state;
    struct thread_name name = {.threads = 1};
    assert_true(thread_name_note(&name, 901, 10 * SECOND_NS));
    assert_true(thread_name_note(&name, 901, 11 * SECOND_NS));
    assert_true(thread_name_note(&name, 902, 16 * SECOND_NS));
    assert_false(thread_name_note(&name, 901, 12 * SECOND_NS));
    assert_false(thread_name_note(&name, 901, 60 * SECOND_NS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_change_their_names),
        cmocka_unit_test(test_a_match_has_the_threads_of_its_name),
        cmocka_unit_test(test_samples_tell_whether_threads_share_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

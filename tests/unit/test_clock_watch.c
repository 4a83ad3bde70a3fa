/* That the clock of samples was set is noticed (core/data/clock_watch.h). */
#include "core/data/clock_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { REQUEST = 100, REQUESTS = 200 };

static uint64_t seed = 1;

/* Notes the samples of a request, of which so many percent are inside spans. */
static bool note_request(struct clock_watch *watch, uint64_t percent)
{
    for (int i = 0; i < REQUEST; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        clock_watch_note(watch, (seed >> 33) % 100 < percent);
    }
    return clock_watch_is_set(watch);
}

static void test_nothing_changes(void **state)
{
    (void)state;
    for (uint64_t percent = 0; percent <= 100; percent += 10) {
        struct clock_watch watch = {.now = {0, 0}};
        for (int i = 0; i < REQUESTS; i++)
            assert_false(note_request(&watch, percent));
    }
}

static void test_fewer_are_inside(void **state)
{
    (void)state;
    struct clock_watch watch = {.now = {0, 0}};
    for (int i = 0; i < REQUESTS; i++)
        assert_false(note_request(&watch, 95));
    assert_true(note_request(&watch, 60));
    /* Once: what is usual is learnt anew. */
    for (int i = 0; i < REQUESTS; i++)
        assert_false(note_request(&watch, 60));
    for (int i = 0; i < REQUESTS; i++)
        assert_false(note_request(&watch, 95)); /* more are inside */
}

static void test_few_samples_say_nothing(void **state)
{
    (void)state;
    struct clock_watch watch = {.now = {0, 0}};
    for (int i = 0; i < REQUESTS; i++)
        assert_false(note_request(&watch, 100));
    for (int i = 0; i < 10; i++) {
        clock_watch_note(&watch, false);
        assert_false(clock_watch_is_set(&watch));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_changes),
        cmocka_unit_test(test_fewer_are_inside),
        cmocka_unit_test(test_few_samples_say_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "core/pipeline/backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void the_pause_doubles_up_to_the_longest(void **state)
{
    (void)state;
    static const int64_t pauses[] = {100, 200, 400, 800, 1000, 1000};
    struct backoff backoff = {0};
    for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++)
        assert_int_equal(backoff_next(&backoff, 100, 1000, 0), pauses[i]);
    backoff_reset(&backoff);
    assert_int_equal(backoff_next(&backoff, 100, 1000, 0), 100);
}

static void it_is_never_shorter_than_asked(void **state)
{
    (void)state;
    struct backoff backoff = {0};
    assert_int_equal(backoff_next(&backoff, 100, 1000, 5000), 5000);
    assert_int_equal(backoff_next(&backoff, 100, 1000, 150), 200);
}

static void what_a_backend_asks_for_has_a_limit(void **state)
{
    (void)state;
    struct verdict verdict = {.code = GRPC_UNAVAILABLE, .retry_after_ns = -1};
    assert_int_equal(retry_after_of(&verdict), 0);
    verdict.retry_after_ns = 7;
    assert_int_equal(retry_after_of(&verdict), 7);
    verdict.retry_after_ns = RETRY_AFTER_MAX_NS + 1;
    assert_int_equal(retry_after_of(&verdict), RETRY_AFTER_MAX_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pause_doubles_up_to_the_longest),
        cmocka_unit_test(it_is_never_shorter_than_asked),
        cmocka_unit_test(what_a_backend_asks_for_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

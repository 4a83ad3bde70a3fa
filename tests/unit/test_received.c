/* Tests the Retry-After that core/pipeline/received.h sends to clients. */

#include "core/pipeline/received.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void check(int64_t retry_after_ns, int status, const char *expected)
{
    struct verdict verdict = {.retry_after_ns = retry_after_ns};
    struct http_header header;
    char seconds[24];
    size_t count = received_retry_after(&verdict, status, &header, seconds);
    assert_int_equal(count, expected != NULL);
    if (expected)
        assert_true(slice_is(header.value, expected));
}

static void tells_whole_seconds(void **state)
{
    (void)state;
    check(-1, 503, NULL);
    check(5000000000, 500, NULL);
    check(0, 429, "1");
    check(1, 503, "1");
    check(1000000000, 503, "1");
    check(1000000001, 503, "2");
    check(INT64_MAX, 429, "9223372037");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tells_whole_seconds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

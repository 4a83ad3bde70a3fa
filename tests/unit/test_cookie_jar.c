#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/net/cookie_jar.h"

#include <stdio.h>
#include <string.h>

#define NOW_NS UINT64_C(1600000000000000000) /* 13 September 2020 */

static void check(const char *const *set, const char *path, bool is_tls, const char *expected)
{
    struct cookie_jar jar = {0};
    struct text out = {0};
    for (; *set; set++)
        cookie_jar_store(&jar, slice_of_string(*set), "api.example.com", "/v1/traces?a=b/c",
                         NOW_NS);
    cookie_jar_print(&jar, path, is_tls, NOW_NS + 1, &out);
    assert_string_equal(text_string(&out), expected);
    text_deinit(&out);
    cookie_jar_deinit(&jar);
}

#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})

static void what_is_sent(void **state)
{
    (void)state;
    check(SET("a=1", "b=2"), "/v1/traces", false, "a=1; b=2");
    check(SET("a=1", "a=2; Path=/v1"), "/v1/traces", false, "a=2");
    check(SET("a=1; path=/"), "/other", false, "a=1");
    check(SET("a=1"), "/other", false, "");
    check(SET("a=1; Path=/v1/tr"), "/v1/traces", false, "");
    check(SET("a=1; Path=/v1/traces"), "/v1/traces?x", false, "a=1");
    check(SET("a=1; secure"), "/v1/traces", false, "");
    check(SET("a=1; secure"), "/v1/traces", true, "a=1");
    check(SET(" a = x y ; HttpOnly; SameSite=Lax"), "/v1/x", false, "a=x y");
    check(SET("a="), "/v1/x", false, "a=");
}

static void what_is_not_kept(void **state)
{
    (void)state;
    check(SET("a", "=b", "", ";", "a b=c", "a=\x01", "a,b=c"), "/v1/x", true, "");
    check(SET("a=1; Domain=other.com"), "/v1/x", true, "");
    check(SET("a=1; Domain=xample.com"), "/v1/x", true, "");
    check(SET("a=1; Domain=.Example.com"), "/v1/x", true, "a=1");
    check(SET("a=1; Max-Age=0"), "/v1/x", true, "");
    check(SET("a=1", "a=; Max-Age=-1"), "/v1/x", true, "");
    check(SET("a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT"), "/v1/x", true, "a=1");
    check(SET("a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT"), "/v1/x", true, "");
    check(SET("a=1; Expires=Sun, 06 Nov 2044 08:49:37 GMT"), "/v1/x", true, "a=1");
    check(SET("a=1; Expires=Sun, 06-Nov-1994 08:49:37 GMT"), "/v1/x", true, "");
    check(SET("a=1; Expires=never; Max-Age=soon"), "/v1/x", true, "a=1");
}

static void cookies_expire(void **state)
{
    (void)state;
    struct cookie_jar jar = {0};
    struct text out = {0};
    cookie_jar_store(&jar, SLICE("a=1; max-age=10"), "h", "/", NOW_NS);
    cookie_jar_store(&jar, SLICE("b=1; max-age=99999999999999"), "h", "/", NOW_NS);
    cookie_jar_print(&jar, "/", false, NOW_NS + UINT64_C(10000000000), &out);
    assert_string_equal(text_string(&out), "b=1");
    text_deinit(&out);
    cookie_jar_deinit(&jar);
}

/* The last ones are kept, and no more is sent than a header may hold. */
static void ten_thousand_cookies(void **state)
{
    (void)state;
    struct cookie_jar jar = {0};
    struct text out = {0};
    char cookie[1200];
    for (int i = 0; i < 10000; i++) {
        snprintf(cookie, sizeof cookie, "c%d=%01000d", i, i);
        cookie_jar_store(&jar, slice_of_string(cookie), "h", "/", NOW_NS);
    }
    assert_int_equal(jar.count, COOKIES_MAX);
    assert_string_equal(jar.items[0].name, "c9950");
    cookie_jar_print(&jar, "/", false, NOW_NS, &out);
    assert_in_range(out.size, 7000, COOKIE_HEADER_MAX);
    char *huge = calloc(1, COOKIE_BYTES_MAX + 10);
    memset(huge, 'x', COOKIE_BYTES_MAX + 9);
    huge[1] = '=';
    cookie_jar_store(&jar, slice_of_string(huge), "h", "/", NOW_NS);
    assert_string_not_equal(jar.items[jar.count - 1].name, "x");
    free(huge);
    text_deinit(&out);
    cookie_jar_deinit(&jar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent),
        cmocka_unit_test(what_is_not_kept),
        cmocka_unit_test(cookies_expire),
        cmocka_unit_test(ten_thousand_cookies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/net/http_path.h"

#include <string.h>

/* The locations are those of net/http 1.26; NULL: no redirect. */
static const struct {
    const char *path, *query, *location;
} cases[] = {
    {"//v1/traces", "", "/v1/traces"},
    {"/v1//traces", "", "/v1/traces"},
    {"/v1/./traces", "", "/v1/traces"},
    {"/x/../v1/traces", "a=b", "/v1/traces?a=b"},
    {"/v1/traces//", "", "/v1/traces/"},
    {"/v1/traces/.", "", "/v1/traces"},
    {"/..", "", "/"},
    {"/../../a", "", "/a"},
    {"/a/b/../..", "", "/"},
    {"//", "", "/"},
    {"//nothing", "", "/nothing"},
    {"/a//b/", "q", "/a/b/?q"},
    {"/v1%2ftraces//", "", "/v1%2ftraces/"},
    {"/v1/traces", "", NULL},
    {"/v1/traces/", "", NULL},
    {"/", "", NULL},
    {"", "", NULL},
    {"*", "", NULL},
    {"v1//traces", "", NULL},
    {"/...", "", NULL},
    {"/a..b/.c", "", NULL},
    {"/%2Fv1/traces", "", NULL},
    /* Not to another host. */
    {"//example.com/", "", "/example.com/"},
    {"/\\example.com//", "", NULL},
    {"//a b", "", NULL},
    {"//a", "x\r\nSet-Cookie: a", NULL},
    {"//\xff", "", NULL},
};

static void redirects_as_go_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[HTTP_PATH_MAX_BYTES];
        struct slice location = {NULL, 0};
        bool is = http_path_redirect(slice_of_string(cases[i].path),
                                     slice_of_string(cases[i].query), out, &location);
        if (is != (cases[i].location != NULL) || (is && !slice_is(location, cases[i].location)))
            fail_msg("%s: got %.*s", cases[i].path, (int)location.size,
                     (const char *)location.data);
    }
}

static void does_not_redirect_a_long_path(void **state)
{
    (void)state;
    char path[HTTP_PATH_MAX_BYTES + 2], out[HTTP_PATH_MAX_BYTES];
    struct slice location;
    memset(path, 'a', sizeof path);
    path[0] = path[1] = '/';
    assert_true(http_path_redirect(slice_of(path, HTTP_PATH_MAX_BYTES - 1), slice_of("", 0), out,
                                   &location));
    assert_int_equal(location.size, HTTP_PATH_MAX_BYTES - 2);
    assert_false(
        http_path_redirect(slice_of(path, HTTP_PATH_MAX_BYTES), slice_of("", 0), out, &location));
    assert_false(http_path_redirect(slice_of(path, HTTP_PATH_MAX_BYTES - 1), slice_of("q", 1), out,
                                    &location));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redirects_as_go_does),
        cmocka_unit_test(does_not_redirect_a_long_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/arena.h"
#include "core/pipeline/endpoint.h"

#include <string.h>

static void check(const char *text, bool is_url, const char *expected)
{
    struct arena arena;
    struct endpoint place;
    struct error err = {0};
    arena_init(&arena, NULL);
    bool ok = is_url ? endpoint_parse_url(&arena, text, &place, &err)
                     : endpoint_parse_grpc(&arena, text, &place, &err);
    if (ok != !expected || (expected && strcmp(err.text, expected) != 0))
        fail_msg("%s: %s", text, ok ? "accepted" : err.text);
    if (strstr(err.text, "secret"))
        fail_msg("%s: %s", text, err.text);
    arena_deinit(&arena);
}

/* {text, expected error; NULL: none} */
static void test_errors_keep_secrets(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } urls[] = {
        {"http://a:1/x?token=secret", NULL},
        {"https://a", NULL},
        {"ftp://user:secret@a/x?token=secret",
         "\"ftp://[REDACTED]@a/x[REDACTED]\": a URL must start with http:// or https://"},
        {"user:secret@a:1", "\"[REDACTED]@a:1\": a URL must start with http:// or https://"},
        {"user:se?cret@a:1/?secret",
         "\"[REDACTED]@a:1/[REDACTED]\": a URL must start with http:// or https://"},
        {"user:secret@http://a:1",
         "\"[REDACTED]@http://a:1\": a URL must start with http:// or https://"},
        {"a:1/#secret", "\"a:1/[REDACTED]\": a URL must start with http:// or https://"},
        {"http://user:secret@a:1",
         "a user name and password in the URL are not supported; use headers"},
        {"http://a:1/ ?token=secret", "\"http://a:1/ [REDACTED]\": the path of the URL has a "
                                      "character that must be encoded"},
        {"http://a:1/x#secret", "\"http://a:1/x[REDACTED]\": the path of the URL has a character "
                                "that must be encoded"},
        {"http://?token=secret", "\"http://[REDACTED]\": the host is missing"},
    };
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++)
        check(urls[i].text, true, urls[i].error);
    check("https://a:4317/", false, NULL);
    check("dns:///a:4317", false, NULL);
    check("unix:///run/a@b", false, NULL);
    check("user:secret@a:4317", false,
          "\"[REDACTED]@a:4317\": write host:port; put credentials into headers");
    check("ftp://user:secret@a:4317?secret", false,
          "\"ftp://[REDACTED]@a:4317[REDACTED]\": write host:port; put credentials into headers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_keep_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

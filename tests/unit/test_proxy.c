#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/net/proxy.h"

#include <string.h>

static void urls_of_proxies(void **state)
{
    static const struct {
        const char *url, *host;
        uint16_t port;
        const char *authorization, *error;
    } cases[] = {
        {"http://proxy:3128", "proxy", 3128, NULL, NULL},
        {"HTTP://proxy/", "proxy", 80, NULL, NULL},
        {"proxy:8080", "proxy", 8080, NULL, NULL},
        {"http://[::1]:3128", "::1", 3128, NULL, NULL},
        {"http://[fe80::2]", "fe80::2", 80, NULL, NULL},
        {"http://user:secret@proxy:3128", "proxy", 3128, "Basic dXNlcjpzZWNyZXQ=", NULL},
        {"http://us%65r:s%3Acret@proxy", "proxy", 80, "Basic dXNlcjpzOmNyZXQ=", NULL},
        {"http://user@proxy", "proxy", 80, "Basic dXNlcjo=", NULL},
        {"https://user:secret@proxy", NULL, 0, NULL,
         "only proxies with http:// are supported (the connection to the proxy itself is in "
         "cleartext)"},
        {"socks5://proxy:1080", NULL, 0, NULL,
         "only proxies with http:// are supported (the connection to the proxy itself is in "
         "cleartext)"},
        {"http://:3128", NULL, 0, NULL, "the host of the proxy is missing"},
        {"http://user:secret@", NULL, 0, NULL, "the host of the proxy is missing"},
        {"", NULL, 0, NULL, "the host of the proxy is missing"},
        {"[]", NULL, 0, NULL, "the host of the proxy is missing"},
        {"http://proxy:0", NULL, 0, NULL, "the port of the proxy must not be 0"},
        {"http://user:%4@proxy", NULL, 0, NULL,
         "the user and password of the proxy are not valid in a URL"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena;
        struct proxy proxy;
        struct error err = {0};
        arena_init(&arena, NULL);
        bool ok = proxy_parse(&arena, cases[i].url, &proxy, &err);
        if (ok != !cases[i].error || (!ok && strcmp(err.text, cases[i].error) != 0))
            fail_msg("%s: %s", cases[i].url, ok ? "accepted" : err.text);
        if (ok) {
            assert_string_equal(proxy.host, cases[i].host);
            assert_int_equal(proxy.port, cases[i].port);
            assert_int_equal(!proxy.authorization, !cases[i].authorization);
            if (proxy.authorization)
                assert_string_equal(proxy.authorization, cases[i].authorization);
        }
        arena_deinit(&arena);
    }
}

/* As Go's httpproxy answers. */
static void what_no_proxy_excludes(void **state)
{
    static const struct {
        const char *list, *host;
        uint16_t port;
        bool is_excluded;
    } cases[] = {
        {"", "localhost", 80, true},
        {"", "127.0.0.9", 80, true},
        {"", "::1", 80, true},
        {"", "example.com", 80, false},
        {"*", "example.com", 80, true},
        {"a.org, *", "example.com", 80, true},
        {"example.com", "example.com", 80, true},
        {"EXAMPLE.com", "www.Example.COM", 80, true},
        {"example.com", "badexample.com", 80, false},
        {".example.com", "example.com", 80, false},
        {".example.com", "www.example.com", 80, true},
        {"*.example.com", "www.example.com", 80, true},
        {"*.example.com", "example.com", 80, false},
        {"example.com:443", "example.com", 80, false},
        {"example.com:80", "example.com", 80, true},
        {"10.0.0.0/8", "10.1.2.3", 80, true},
        {"10.0.0.0/8", "11.1.2.3", 80, false},
        {"10.0.0.0/8", "10.example.com", 80, false},
        {"10.64.0.0/10", "10.127.0.1", 80, true},
        {"10.64.0.0/10", "10.128.0.1", 80, false},
        {"10.1.2.3", "10.1.2.3", 80, true},
        {"10.1.2.3:81", "10.1.2.3", 80, false},
        {"10.1.2.3:81,10.1.2.3:80", "10.1.2.3", 80, true},
        {"fd00::/8", "fd12::1", 80, true},
        {"[fd12::1]:80", "fd12::1", 80, true},
        {"fd12::1", "fd12::1", 80, true},
        {"fd12::1", "fd12::2", 80, false},
        {" , ,:80,", "example.com", 80, false},
        {"10.0.0.0/33", "10.1.2.3", 80, false},
        {".", "example.com", 80, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (proxy_is_excluded(cases[i].list, cases[i].host, cases[i].port) != cases[i].is_excluded)
            fail_msg("%s: %s", cases[i].list, cases[i].host);
}

static struct proxy from_environment(bool is_https, const char *host, struct arena *arena)
{
    struct proxy proxy;
    struct error err;
    assert_true(proxy_from_environment(arena, is_https, host, 443, &proxy, &err));
    return proxy;
}

static void the_environment(void **state)
{
    (void)state;
    struct arena arena;
    struct proxy proxy;
    struct error err;
    arena_init(&arena, NULL);
    setenv("HTTPS_PROXY", "http://secure:1", 1);
    setenv("http_proxy", "plain:2", 1);
    setenv("NO_PROXY", "intern", 1);
    assert_string_equal(from_environment(true, "a", &arena).host, "secure");
    assert_string_equal(from_environment(false, "a", &arena).host, "plain");
    assert_null(from_environment(true, "a.intern", &arena).host);
    setenv("HTTPS_PROXY", "socks5://user:secret@s", 1);
    assert_false(proxy_from_environment(&arena, true, "a", 443, &proxy, &err));
    assert_string_equal(err.text,
                        "the environment's HTTPS_PROXY: only proxies with http:// are supported "
                        "(the connection to the proxy itself is in cleartext)");
    unsetenv("HTTPS_PROXY");
    unsetenv("http_proxy");
    assert_null(from_environment(true, "a", &arena).host);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_of_proxies),
        cmocka_unit_test(what_no_proxy_excludes),
        cmocka_unit_test(the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

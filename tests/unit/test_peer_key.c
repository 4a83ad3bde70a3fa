#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/net/peer_key.h"

#include <arpa/inet.h>
#include <stdbool.h>

static struct sockaddr_storage address_of(const char *text)
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&storage;
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        storage.ss_family = AF_INET;
        v4->sin_port = 4317; /* the port does not matter */
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
        storage.ss_family = AF_INET6;
        v6->sin6_port = 4318;
    }
    return storage;
}

static uint64_t key_of(const char *text)
{
    struct sockaddr_storage storage = address_of(text);
    return peer_key((const struct sockaddr *)&storage);
}

/* {first, second, whether they count as one client} */
static void test_who_is_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second;
        bool same;
    } cases[] = {
        {"10.0.0.1", "10.0.0.1", true},
        {"10.0.0.1", "10.0.0.2", false},
        {"10.0.0.1", "::ffff:10.0.0.1", true},
        {"::ffff:10.0.0.1", "::ffff:10.0.0.2", false},
        {"2001:db8::1", "2001:db8::2:3", true},
        {"2001:db8::1", "2001:db8:0:1::1", false},
        {"2001:db8::1", "2001:db9::1", false},
        {"::1", "127.0.0.1", false},
        {"0.0.0.0", "::", false},
        {"255.255.255.255", "ffff:ffff::", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if ((key_of(cases[i].first) == key_of(cases[i].second)) != cases[i].same)
            fail_msg("%s, %s", cases[i].first, cases[i].second);
}

static void test_print(void **state)
{
    (void)state;
    static const struct {
        const char *address, *printed;
    } cases[] = {
        {"10.0.0.1", "10.0.0.1"},
        {"::ffff:10.0.0.1", "10.0.0.1"},
        {"2001:db8::1", "2001:db8::1"},
        {"::1", "::1"},
    };
    char out[INET6_ADDRSTRLEN];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sockaddr_storage storage = address_of(cases[i].address);
        peer_print((const struct sockaddr *)&storage, out);
        assert_string_equal(out, cases[i].printed);
    }
    struct sockaddr nobody = {.sa_family = AF_UNIX};
    peer_print(&nobody, out);
    assert_string_equal(out, "");
}

static void test_no_address(void **state)
{
    (void)state;
    struct sockaddr nobody = {.sa_family = AF_UNIX};
    assert_int_equal(peer_key(&nobody), 0);
    assert_int_equal(peer_key(NULL), 0);
    assert_true(key_of("0.0.0.0") != 0);
    assert_true(key_of("::") != 0);
    assert_true(key_of("::1") != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_the_same),
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_no_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

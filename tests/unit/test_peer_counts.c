#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/hash.h"
#include "core/net/peer_counts.h"

#include <arpa/inet.h>
#include <stdio.h>

static struct sockaddr_storage address_of(const char *text)
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&storage;
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        storage.ss_family = AF_INET;
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
        storage.ss_family = AF_INET6;
    }
    return storage;
}

static bool add(struct peer_counts *counts, const char *text)
{
    struct sockaddr_storage address = address_of(text);
    return peer_counts_add(counts, (struct sockaddr *)&address);
}

static void drop(struct peer_counts *counts, const char *text)
{
    struct sockaddr_storage address = address_of(text);
    peer_counts_remove(counts, (struct sockaddr *)&address);
}

/* {first, second, whether both are the same peer} */
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
        {"::1", "127.0.0.1", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct peer_counts *counts = peer_counts_new(1);
        assert_true(add(counts, cases[i].first));
        if (add(counts, cases[i].second) == cases[i].same)
            fail_msg("%s, %s", cases[i].first, cases[i].second);
        drop(counts, cases[i].first);
        if (cases[i].same)
            assert_true(add(counts, cases[i].second));
        peer_counts_free(counts);
    }
}

static void test_limit(void **state)
{
    (void)state;
    struct peer_counts *counts = peer_counts_new(3);
    char text[32];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20000; i++) {
            snprintf(text, sizeof(text), "10.0.%d.%d", i % 5000 / 250, i % 250);
            assert_int_equal(add(counts, text), i < 15000);
        }
        for (int i = 0; i < 15000; i++) {
            snprintf(text, sizeof(text), "10.0.%d.%d", i % 5000 / 250, i % 250);
            drop(counts, text);
        }
    }
    struct sockaddr nobody = {.sa_family = AF_UNIX};
    for (int i = 0; i < 10; i++)
        assert_true(peer_counts_add(counts, &nobody));
    peer_counts_remove(counts, &nobody);
    peer_counts_free(counts);
    peer_counts_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_the_same),
        cmocka_unit_test(test_limit),
    };
    hash_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

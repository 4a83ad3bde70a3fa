#include "core/pipeline/auth.h"
#include "core/pipeline/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void parameters_of_a_query(void **state)
{
    (void)state;
    static const struct {
        const char *query, *value; /* NULL: none */
    } cases[] = {
        {"", NULL},
        {"&&=&", NULL},
        {"token", ""},
        {"tokens=a", NULL},
        {"Token=a", NULL},
        {"token=", ""},
        {"token=a", "a"},
        {"a=b&token=c=d&token=e", "c=d"},
        {"t%6fken=a%20b+c%2B", "a b c+"},
        {"token=%", NULL},
        {"token=%4", NULL},
        {"token=%4g", NULL},
        {"token=%g4", NULL},
        {"token=%&token=b", "b"},
        {"token=%41%4a%Aa", "AJ\xaa"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char room[AUTH_PARAM_MAX];
        struct slice value = auth_query_get(slice_of_string(cases[i].query), "token", room);
        if (cases[i].value ? !value.data || !slice_is(value, cases[i].value) : value.data != NULL)
            fail_msg("%s: %.*s", cases[i].query, SLICE_ARG(value));
    }
}

static void headers_are_set_and_removed(void **state)
{
    (void)state;
    const struct http_header base[] = {
        {SLICE("a"), SLICE("1")}, {SLICE("b"), SLICE("2")}, {SLICE("a"), SLICE("3")}};
    struct auth_headers headers = {0};
    struct verdict why;
    for (int attempt = 0; attempt < 2; attempt++) {
        auth_headers_copy(&headers, base, 3);
        assert_true(slice_is(auth_headers_get(&headers, "a"), "1"));
        assert_true(auth_headers_set(&headers, "a", "4", &why));
        assert_int_equal(headers.count, 2);
        assert_true(slice_is(auth_headers_get(&headers, "a"), "4"));
        auth_headers_remove(&headers, "b");
        assert_null(auth_headers_get(&headers, "b").data);
        for (char name[2] = "c"; name[0] < 'k'; name[0]++)
            assert_true(auth_headers_set(&headers, "c", name, &why));
        assert_int_equal(headers.count, 2);
        assert_true(slice_is(auth_headers_get(&headers, "c"), "j"));
    }
    auth_headers_deinit(&headers);
}

static void values_that_no_header_has(void **state)
{
    (void)state;
    static const char *const values[] = {"a\r\nb: c", "a\nb", "\x7f", " a", "a ", "\t", "\x01"};
    struct auth_headers headers = {0};
    auth_headers_copy(&headers, NULL, 0);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct verdict why;
        assert_false(auth_headers_set(&headers, "a", values[i], &why));
        assert_int_equal(why.code, GRPC_INVALID_ARGUMENT);
        assert_int_equal(headers.count, 0);
    }
    struct verdict why;
    assert_true(auth_headers_set(&headers, "a", "a\tb\xc3\xa4", &why));
    auth_headers_deinit(&headers);
}

static void names_that_are_not_set(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "",     "a b",     "a:",           "Content-Length", "TE",
        "Host", "Upgrade", "gRPC-Timeout", "content-type",   "\xff"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_false(auth_header_is_allowed(refused[i]));
    assert_true(auth_header_is_allowed("Authorization"));
    assert_true(auth_header_is_allowed("x-scope-orgid"));
}

static void identities_are_shared(void **state)
{
    (void)state;
    const struct identity_attribute attributes[] = {{"username", "me"}, {"raw", "bWU6"}};
    struct identity *identity = identity_new(attributes, 2);
    assert_ptr_equal(identity_ref(identity), identity);
    identity_unref(identity);
    assert_string_equal(identity_get(identity, "username"), "me");
    assert_string_equal(identity_get(identity, "raw"), "bWU6");
    assert_null(identity_get(identity, "subject"));
    assert_null(identity_get(NULL, "username"));
    identity_unref(identity);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_of_a_query),     cmocka_unit_test(headers_are_set_and_removed),
        cmocka_unit_test(values_that_no_header_has), cmocka_unit_test(names_that_are_not_set),
        cmocka_unit_test(identities_are_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

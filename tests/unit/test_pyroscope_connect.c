#include "receivers/pyroscope/connect_error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* https://connectrpc.com/docs/protocol, "Error codes". */
static void codes_have_connects_names_and_statuses(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *name;
        int status;
    } cases[] = {
        {1, "canceled", 499},
        {2, "unknown", 500},
        {3, "invalid_argument", 400},
        {4, "deadline_exceeded", 504},
        {5, "not_found", 404},
        {6, "already_exists", 409},
        {7, "permission_denied", 403},
        {8, "resource_exhausted", 429},
        {9, "failed_precondition", 400},
        {10, "aborted", 409},
        {11, "out_of_range", 400},
        {12, "unimplemented", 501},
        {13, "internal", 500},
        {14, "unavailable", 503},
        {15, "data_loss", 500},
        {16, "unauthenticated", 401},
        {17, "unknown", 500},
        {-1, "unknown", 500},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(connect_code_name((enum grpc_code)cases[i].code), cases[i].name);
        assert_int_equal(connect_http_status((enum grpc_code)cases[i].code), cases[i].status);
    }
}

/* Whether clients that look only at the status would retry. */
static bool looks_temporary(const struct verdict *verdict)
{
    int status = connect_http_status(verdict->code);
    return status == 429 || status >= 500;
}

static void what_is_refused_for_good_never_looks_temporary(void **state)
{
    (void)state;
    for (int code = -1; code <= 17; code++)
        for (int64_t retry_after_ns = -1; retry_after_ns <= 0; retry_after_ns++) {
            struct verdict verdict =
                verdict_try_later((enum grpc_code)code, retry_after_ns, "text");
            struct verdict said = connect_verdict(&verdict);
            if (code == GRPC_OK)
                assert_int_equal(said.code, GRPC_OK);
            else
                assert_int_equal(looks_temporary(&said), verdict_is_retryable(&verdict));
            assert_int_equal(said.retry_after_ns, retry_after_ns);
            assert_string_equal(said.text, "text");
        }
}

static void what_says_enough_is_passed_on(void **state)
{
    (void)state;
    static const int kept[] = {GRPC_INVALID_ARGUMENT,    GRPC_NOT_FOUND,
                               GRPC_PERMISSION_DENIED,   GRPC_UNAUTHENTICATED,
                               GRPC_FAILED_PRECONDITION, GRPC_UNAVAILABLE};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        struct verdict verdict = verdict_of((enum grpc_code)kept[i], "text");
        assert_int_equal(connect_verdict(&verdict).code, kept[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_connects_names_and_statuses),
        cmocka_unit_test(what_is_refused_for_good_never_looks_temporary),
        cmocka_unit_test(what_says_enough_is_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

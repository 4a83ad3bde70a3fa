#include "core/base/text.h"
#include "core/base/verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Answers of the Collector's OTLP receiver, and retries of its OTLP exporters. */
static const struct {
    enum grpc_code code;
    const char *name;
    int http;
    bool retryable;            /* without a delay */
    bool retryable_with_delay; /* with RetryInfo or Retry-After */
} codes[] = {
    {GRPC_OK, "OK", 200, false, false},
    {GRPC_CANCELLED, "CANCELLED", 503, true, true},
    {GRPC_UNKNOWN, "UNKNOWN", 500, false, false},
    {GRPC_INVALID_ARGUMENT, "INVALID_ARGUMENT", 400, false, false},
    {GRPC_DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", 503, true, true},
    {GRPC_NOT_FOUND, "NOT_FOUND", 500, false, false},
    {GRPC_ALREADY_EXISTS, "ALREADY_EXISTS", 500, false, false},
    {GRPC_PERMISSION_DENIED, "PERMISSION_DENIED", 403, false, false},
    {GRPC_RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED", 429, false, true},
    {GRPC_FAILED_PRECONDITION, "FAILED_PRECONDITION", 500, false, false},
    {GRPC_ABORTED, "ABORTED", 503, true, true},
    {GRPC_OUT_OF_RANGE, "OUT_OF_RANGE", 503, true, true},
    {GRPC_UNIMPLEMENTED, "UNIMPLEMENTED", 404, false, false},
    {GRPC_INTERNAL, "INTERNAL", 500, false, false},
    {GRPC_UNAVAILABLE, "UNAVAILABLE", 503, true, true},
    {GRPC_DATA_LOSS, "DATA_LOSS", 503, true, true},
    {GRPC_UNAUTHENTICATED, "UNAUTHENTICATED", 401, false, false},
    {(enum grpc_code)17, "UNKNOWN", 500, false, false},
    {(enum grpc_code) - 1, "UNKNOWN", 500, false, false},
};

static void codes_have_gos_names_too(void **state)
{
    (void)state;
    assert_string_equal(grpc_code_go_name(GRPC_OK), "OK");
    assert_string_equal(grpc_code_go_name(GRPC_CANCELLED), "Canceled");
    assert_string_equal(grpc_code_go_name(GRPC_UNAUTHENTICATED), "Unauthenticated");
    assert_string_equal(grpc_code_go_name((enum grpc_code)17), "Unknown");
}

static void every_code_has_its_http_status(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        struct verdict verdict = verdict_of(codes[i].code, "%s", "why");
        bool is_too_much = codes[i].code == GRPC_RESOURCE_EXHAUSTED;
        assert_int_equal(verdict_http_status(&verdict), is_too_much ? 413 : codes[i].http);
        assert_string_equal(grpc_code_name(codes[i].code), codes[i].name);
        assert_int_equal(verdict_is_ok(&verdict), codes[i].http == 200);
        assert_string_equal(verdict.text, "why");
        verdict = verdict_try_later(codes[i].code, 0, "later");
        assert_int_equal(verdict_http_status(&verdict), codes[i].http);
    }
}

static void otlp_says_what_is_retried(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        struct verdict plain = verdict_of(codes[i].code, "why");
        struct verdict later = verdict_try_later(codes[i].code, 5, "later");
        assert_int_equal(verdict_is_retryable(&plain), codes[i].retryable);
        assert_int_equal(verdict_is_retryable(&later), codes[i].retryable_with_delay);
        assert_int_equal(plain.retry_after_ns, -1);
        assert_int_equal(later.retry_after_ns, 5);
    }
}

static const struct {
    int status;
    enum grpc_code code;
    bool retryable;
} statuses[] = {
    {200, GRPC_OK, false},
    {202, GRPC_OK, false},
    {299, GRPC_OK, false},
    {301, GRPC_UNKNOWN, false},
    {400, GRPC_INVALID_ARGUMENT, false},
    {401, GRPC_UNAUTHENTICATED, false},
    {403, GRPC_PERMISSION_DENIED, false},
    {404, GRPC_UNIMPLEMENTED, false},
    {408, GRPC_UNKNOWN, false},
    {413, GRPC_UNKNOWN, false},
    {429, GRPC_RESOURCE_EXHAUSTED, true},
    {500, GRPC_UNKNOWN, false},
    {501, GRPC_UNKNOWN, false},
    {502, GRPC_UNAVAILABLE, true},
    {503, GRPC_UNAVAILABLE, true},
    {504, GRPC_UNAVAILABLE, true},
    {0, GRPC_UNKNOWN, false},
    {100, GRPC_UNKNOWN, false},
};

static void every_http_status_has_its_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        struct verdict verdict = verdict_from_http(statuses[i].status, -1);
        assert_int_equal(verdict.code, statuses[i].code);
        assert_int_equal(verdict_is_retryable(&verdict), statuses[i].retryable);
        /* Retry-After does not make a permanent refusal retryable. */
        verdict = verdict_from_http(statuses[i].status, 3000);
        assert_int_equal(verdict.code, statuses[i].code);
        assert_int_equal(verdict_is_retryable(&verdict), statuses[i].retryable);
        if (statuses[i].retryable)
            assert_int_equal(verdict.retry_after_ns, 3000);
    }
    struct verdict verdict = verdict_from_http(503, -1);
    assert_string_equal(verdict.text, "HTTP status 503");
    assert_int_equal(verdict.retry_after_ns, -1);
}

static bool is_utf8(const char *text)
{
    size_t size = strlen(text);
    for (size_t at = 0, length; at < size; at += length)
        if ((length = text_utf8_length((const uint8_t *)text + at, size - at)) == 0)
            return false;
    return true;
}

/* The text becomes a string of google.rpc.Status. Clients refuse one that is not UTF-8. */
static void the_text_is_always_utf8(void **state)
{
    (void)state;
    struct verdict verdict =
        verdict_of(GRPC_INTERNAL, "odd \xff\xc3 ( \xc3\xa4 %s", "\xed\xa0\x80.");
    assert_string_equal(verdict.text, "odd ?? ( \xc3\xa4 ???.");
    char wide[600];
    for (size_t i = 0; i < 100; i++)
        snprintf(wide + i * 4, sizeof wide - i * 4, "%s", "\xf0\x9f\x98\x80");
    for (int shift = 0; shift < 4; shift++) {
        verdict = verdict_of(GRPC_INTERNAL, "%.*s%s", shift, "abc", wide);
        assert_in_range(strlen(verdict.text), sizeof verdict.text - 4, sizeof verdict.text - 1);
        assert_true(is_utf8(verdict.text));
        assert_null(strchr(verdict.text, '?')); /* cut between characters */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_http_status),
        cmocka_unit_test(codes_have_gos_names_too),
        cmocka_unit_test(otlp_says_what_is_retried),
        cmocka_unit_test(every_http_status_has_its_code),
        cmocka_unit_test(the_text_is_always_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

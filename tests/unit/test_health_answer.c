#include "core/base/text.h"
#include "core/net/own_host.h"
#include "core/net/url_query.h"
#include "extensions/health_check/health_answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define SECOND_NS UINT64_C(1000000000)
#define NOW_NS (UINT64_C(1795000000) * SECOND_NS)

static const struct component_health_settings unset = {0};
static const struct component_health_settings shown = {.enabled = true};
static const struct component_health_settings permanent = {.enabled = true,
                                                           .include_permanent_errors = true};
static const struct component_health_settings recoverable = {
    .enabled = true, .include_recoverable_errors = true, .recovery_duration = 60 * SECOND_NS};

/* The Collector's table, and what component_health makes of it. */
static void statuses_are_the_collectors(void **state)
{
    (void)state;
    static const struct {
        enum status_kind status;
        int plain, permanent, recoverable;
    } cases[] = {
        {STATUS_NONE, 503, 503, 503},
        {STATUS_STARTING, 503, 503, 503},
        {STATUS_OK, 200, 200, 200},
        {STATUS_RECOVERABLE_ERROR, 200, 200, 500},
        {STATUS_PERMANENT_ERROR, 200, 500, 200},
        {STATUS_FATAL_ERROR, 500, 500, 500},
        {STATUS_STOPPING, 503, 503, 503},
        {STATUS_STOPPED, 503, 503, 503},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct health health = {
            .status = cases[i].status, .since_ns = NOW_NS - 60 * SECOND_NS, .error = ""};
        assert_int_equal(health_http_status(&health, &unset, NOW_NS), cases[i].plain);
        assert_int_equal(health_http_status(&health, &shown, NOW_NS), cases[i].plain);
        assert_int_equal(health_http_status(&health, &permanent, NOW_NS), cases[i].permanent);
        assert_int_equal(health_http_status(&health, &recoverable, NOW_NS), cases[i].recoverable);
    }
}

/* A refused reload: with the old configuration all goes on. */
static void an_error_that_is_only_shown_is_healthy(void **state)
{
    (void)state;
    const struct health health = {.status = STATUS_RECOVERABLE_ERROR,
                                  .since_ns = NOW_NS - 60 * SECOND_NS,
                                  .error = "x",
                                  .is_only_shown = true};
    assert_int_equal(health_http_status(&health, &recoverable, NOW_NS), 200);
    struct text json = {0};
    health_print_json(&health, &recoverable, NOW_NS, NOW_NS, false, &json);
    assert_non_null(
        strstr(text_string(&json),
               "\"healthy\":true,\"status\":\"StatusRecoverableError\",\"error\":\"x\""));
    text_deinit(&json);
}

static void a_recoverable_error_may_last_a_while(void **state)
{
    (void)state;
    const struct health health = {
        .status = STATUS_RECOVERABLE_ERROR, .since_ns = NOW_NS - 60 * SECOND_NS + 1, .error = "x"};
    uint8_t response[HEALTH_GRPC_RESPONSE_MAX];
    assert_int_equal(health_http_status(&health, &recoverable, NOW_NS), 200);
    assert_int_equal(health_http_status(&health, &recoverable, NOW_NS + 1), 500);
    assert_int_equal(health_grpc_write_response(&health, &recoverable, NOW_NS, response), 2);
    assert_memory_equal(response, "\x08\x01", 2);
    health_grpc_write_response(&health, &recoverable, NOW_NS + 1, response);
    assert_memory_equal(response, "\x08\x02", 2);
}

static void json_has_the_collectors_members(void **state)
{
    (void)state;
    struct health exporter = {.name = "exporter:a\"<b>",
                              .status = STATUS_RECOVERABLE_ERROR,
                              .since_ns = NOW_NS + 1,
                              .error = "it said \"no\""};
    struct health whole = {.name = "",
                           .status = STATUS_RECOVERABLE_ERROR,
                           .since_ns = NOW_NS + 1,
                           .error = "it said \"no\"",
                           .children = &exporter,
                           .child_count = 1};
    struct text out = {0};
    health_print_json(&whole, &unset, NOW_NS, NOW_NS + 2, false, &out);
    assert_string_equal(text_string(&out),
                        "{\"start_time\":\"2026-11-18T11:06:40.000000000Z\",\"healthy\":true,"
                        "\"status\":\"StatusRecoverableError\",\"error\":\"it said \\\"no\\\"\","
                        "\"status_time\":\"2026-11-18T11:06:40.000000001Z\"}");
    text_clear(&out);
    health_print_json(&whole, &unset, NOW_NS, NOW_NS + 2, true, &out);
    assert_non_null(strstr(text_string(&out),
                           ",\"components\":{\"exporter:a\\\"<b>\":{\"healthy\":true,\"status\":"));
    text_deinit(&out);
}

static void requests_are_read(void **state)
{
    (void)state;
    static const struct {
        struct slice bytes;
        const char *service; /* NULL: not a request */
    } cases[] = {
        {SLICE(""), ""},
        {SLICE("\x0a\x06traces"), "traces"},
        {SLICE("\x0a\x01x\x12\x01y\x0a\x01z"), "z"},
        {SLICE("\x0a\x07traces"), NULL},
        {SLICE("\x08\x01"), NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct slice service;
        assert_int_equal(health_grpc_read_service(cases[i].bytes, &service),
                         cases[i].service != NULL);
        if (cases[i].service)
            assert_true(slice_is(service, cases[i].service));
    }
}

static void queries_are_decoded(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        bool found;
        const char *value;
    } cases[] = {
        {"", false, ""},
        {"a", true, ""},
        {"a=", true, ""},
        {"b=1&a=x", true, "x"},
        {"a=1&a=2", true, "1"},
        {"aa=1", false, ""},
        {"a=x%2Fy+z%", true, "x/y z%"},
        {"a=%zz%4", true, "%zz%4"},
        {"a=b=c", true, "b=c"},
        {"&&a=1", true, "1"},
        {"a=1234567", true, "1234567"},
        {"a=12345678", false, ""},
        {"a=x%00y", false, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char value[8];
        assert_int_equal(url_query_get(slice_of_string(cases[i].query), "a", value, sizeof value),
                         cases[i].found);
        assert_string_equal(value, cases[i].value);
    }
}

static void hosts_are_compared(void **state)
{
    (void)state;
    static const struct {
        const char *own, *authority;
        bool is_own;
    } cases[] = {
        {"localhost", "localhost:1", true},
        {"localhost", "127.0.0.1:1", true},
        {"localhost", "[::1]:1", true},
        {"localhost", "evil.example", false},
        {"localhost", "", true},
        {"me.example", "ME.example:1", true},
        {"me.example", "evil.example:1", false},
        {"0.0.0.0", "evil.example", true},
        {"", "evil.example", true},
        {"::", "evil.example", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(own_host_is(cases[i].own, slice_of_string(cases[i].authority)),
                         cases[i].is_own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_are_the_collectors),
        cmocka_unit_test(an_error_that_is_only_shown_is_healthy),
        cmocka_unit_test(a_recoverable_error_may_last_a_while),
        cmocka_unit_test(json_has_the_collectors_members),
        cmocka_unit_test(requests_are_read),
        cmocka_unit_test(queries_are_decoded),
        cmocka_unit_test(hosts_are_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

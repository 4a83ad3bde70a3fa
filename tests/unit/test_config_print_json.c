#include "config/config.h"
#include "core/components.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char yaml[] =
    "receivers: {otlp: {protocols: {grpc: {endpoint: '127.0.0.1:1'}}}}\n"
    "processors: {resource: {attributes: [{key: 'a$$b', value: '$$1.50', action: upsert}, {key: "
    "n, value: 007, action: insert}]}}\n"
    "exporters: {otlp_http: {endpoint: 'http://x:1', headers: {token: hidden}, retry_on_failure: "
    "{multiplier: 1.5, max_interval: 30s}}}\n"
    "service: {pipelines: {traces: {receivers: [otlp], processors: [resource], exporters: "
    "[otlp_http]}}}\n";

static json_t *print(const char *text)
{
    struct text report = {0}, out = {0};
    struct config *config =
        config_load_text(component_types, "test", slice_of_string(text), &report);
    if (!config)
        fail_msg("%s", text_string(&report));
    assert_true(config_print_json(config, &out));
    json_error_t error;
    json_t *json = json_loads(text_string(&out), JSON_REJECT_DUPLICATES, &error);
    if (!json)
        fail_msg("%s:\n%s", error.text, text_string(&out));
    assert_null(strstr(text_string(&out), "hidden"));
    text_deinit(&report);
    text_deinit(&out);
    config_free(config);
    return json;
}

static json_t *at(json_t *json, const char *const *path)
{
    for (; *path; path++) {
        json = json_is_array(json) ? json_array_get(json, (size_t)(**path - '0'))
                                   : json_object_get(json, *path);
        if (!json)
            fail_msg("there is no %s", *path);
    }
    return json;
}

#define AT(json, ...) at(json, (const char *const[]){__VA_ARGS__, NULL})

static void values_keep_their_kind(void **state)
{
    (void)state;
    json_t *json = print(yaml);
    json_t *exporter = AT(json, "exporters", "otlp_http");
    assert_string_equal(json_string_value(AT(exporter, "headers", "token")), "[REDACTED]");
    assert_true(json_is_true(AT(exporter, "retry_on_failure", "enabled")));
    assert_int_equal(json_integer_value(AT(exporter, "sending_queue", "queue_size")), 1000);
    assert_true(json_is_real(AT(exporter, "retry_on_failure", "multiplier")));
    assert_string_equal(json_string_value(AT(exporter, "retry_on_failure", "max_interval")), "30s");
    json_t *first = AT(json, "processors", "resource", "attributes", "0");
    assert_string_equal(json_string_value(AT(first, "value")), "$1.50");
    assert_string_equal(json_string_value(AT(first, "key")), "a$b");
    assert_true(json_is_array(AT(json, "service", "pipelines", "traces", "receivers")));
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_keep_their_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

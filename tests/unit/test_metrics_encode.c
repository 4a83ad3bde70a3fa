#include "core/metrics_encode.h"

#include "core/data/json.h"
#include "tests/unit/expect_text.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const double bounds[] = {0.5, 2};

static double read_seconds(void *context)
{
    (void)context;
    return 1.25;
}

static double read_bytes(void *context)
{
    (void)context;
    return 4096;
}

/* Returns the request as JSON, which only a valid message has. */
static void expect_request(struct metrics *metrics, struct metrics_delta *delta,
                           const char *expected)
{
    struct config_pair attribute = {"service.name", "profcol"};
    const struct config_pairs resource = {&attribute, 1};
    struct wire_writer writer = {0};
    struct text json = {0};
    metrics_encode(metrics, &resource, 5, 7, delta, &writer);
    json_from_protobuf(JSON_METRICS_REQUEST, wire_writer_slice(&writer), &json);
    expect_text(text_string(&json), expected);
    text_deinit(&json);
    wire_writer_deinit(&writer);
}

static void expect_json(struct metrics *metrics, const char *expected)
{
    expect_request(metrics, NULL, expected);
}

#define RESOURCE                                                                                   \
    "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"   \
    "\"stringValue\":\"profcol\"}}]}"
#define SCHEMA ",\"schemaUrl\":\"https://opentelemetry.io/schemas/1.40.0\"}]}"
#define TIMES "\"startTimeUnixNano\":\"5\",\"timeUnixNano\":\"7\""

static void counters_are_sums_with_typed_attributes(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(2);
    struct text labels = {0};
    metrics_label(&labels, "exporter", "a\"\\\n,b=\"");
    metrics_label(&labels, "server_port", "4317");
    metrics_label(&labels, "error_permanent", "true");
    struct counter *counter = metrics_counter(metrics, "otelcol_exporter_send_failed_spans",
                                              "Failed.", text_string(&labels));
    counter_add(counter, 0, 2);
    counter_add(counter, 1, 3);
    metrics_counter(metrics, "otelcol_exporter_send_failed_spans", "Failed.", "exporter=\"c\"");
    expect_json(metrics, RESOURCE
                ",\"scopeMetrics\":[{\"scope\":{\"name\":\"go.opentelemetry.io/collector/exporter/"
                "exporterhelper\"},\"metrics\":[{\"name\":\"otelcol_exporter_send_failed_spans\","
                "\"description\":\"Failed.\",\"unit\":\"{span}\",\"sum\":{\"dataPoints\":["
                "{" TIMES ",\"asInt\":\"5\",\"attributes\":["
                "{\"key\":\"exporter\",\"value\":{\"stringValue\":\"a\\\"\\\\\\n,b=\\\"\"}},"
                "{\"key\":\"server.port\",\"value\":{\"intValue\":\"4317\"}},"
                "{\"key\":\"error.permanent\",\"value\":{\"boolValue\":true}}]},"
                "{" TIMES ",\"asInt\":\"0\",\"attributes\":["
                "{\"key\":\"exporter\",\"value\":{\"stringValue\":\"c\"}}]}],"
                "\"aggregationTemporality\":2,\"isMonotonic\":true}}]}]" SCHEMA);
    text_deinit(&labels);
    metrics_free(metrics);
}

static void histograms_have_explicit_buckets(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(2);
    metrics_set_level(metrics, METRICS_DETAILED);
    struct histogram *histogram = metrics_histogram(metrics, "http_client_request_duration", "D.",
                                                    "http_response_status_code=\"200\"", bounds, 2);
    histogram_record(histogram, 0, 0.25);
    histogram_record(histogram, 1, 0.5);
    histogram_record(histogram, 1, 3);
    expect_json(
        metrics, RESOURCE
        ",\"scopeMetrics\":[{\"scope\":{\"name\":\"go.opentelemetry.io/contrib/"
        "instrumentation/net/http/otelhttp\",\"version\":\"0.69.0\"},\"metrics\":[{\"name\":"
        "\"http.client.request.duration\",\"description\":\"D.\",\"unit\":\"s\","
        "\"histogram\":{\"dataPoints\":[{" TIMES
        ",\"count\":\"3\",\"sum\":3.75,\"bucketCounts\":[\"2\",\"0\",\"1\"],"
        "\"explicitBounds\":[0.5,2],\"attributes\":[{\"key\":"
        "\"http.response.status_code\",\"value\":{\"intValue\":\"200\"}}],\"min\":0.25,\"max\":3}],"
        "\"aggregationTemporality\":2}}]}]" SCHEMA);
    metrics_free(metrics);
}

static void gauges_and_sums_that_may_fall(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(1);
    gauge_set(metrics_gauge(metrics, "otelcol_exporter_in_flight_requests", "F.", ""), -1);
    gauge_set(metrics_gauge(metrics, "otelcol_exporter_queue_size", "Q.", ""), 9);
    expect_json(metrics, RESOURCE
                ",\"scopeMetrics\":[{\"scope\":{\"name\":\"go.opentelemetry.io/collector/exporter/"
                "exporterhelper\"},\"metrics\":[{\"name\":\"otelcol_exporter_in_flight_requests\","
                "\"description\":\"F.\",\"unit\":\"{request}\",\"sum\":{\"dataPoints\":[{" TIMES
                ",\"asInt\":\"-1\"}],\"aggregationTemporality\":2}},"
                "{\"name\":\"otelcol_exporter_queue_size\",\"description\":\"Q.\",\"unit\":"
                "\"{batch}\",\"gauge\":{\"dataPoints\":[{" TIMES ",\"asInt\":\"9\"}]}}]}]" SCHEMA);
    metrics_free(metrics);
}

static void seconds_have_fractions_and_target_info_is_the_resource(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(1);
    metrics_counter_from(metrics, "otelcol_process_uptime", "U.", "", read_seconds, NULL);
    metrics_gauge_from(metrics, "profcol_budget_used_bytes", "B.", "", read_bytes, NULL);
    gauge_set(metrics_gauge(metrics, "target_info", "T.", ""), 1);
    metrics_histogram(metrics, "http_server_request_duration", "not at this level", "", bounds, 2);
    expect_json(metrics, RESOURCE
                ",\"scopeMetrics\":[{\"scope\":{\"name\":\"go.opentelemetry.io/collector/service\"}"
                ",\"metrics\":[{\"name\":\"otelcol_process_uptime\",\"description\":\"U.\",\"unit\""
                ":\"s\",\"sum\":{\"dataPoints\":[{" TIMES
                ",\"asDouble\":1.25}],\"aggregationTemporality\":2,\"isMonotonic\":true}}]},"
                "{\"scope\":{\"name\":\"profcol\"},\"metrics\":[{\"name\":"
                "\"profcol_budget_used_bytes\",\"description\":\"B.\",\"unit\":\"By\",\"gauge\":{"
                "\"dataPoints\":[{" TIMES ",\"asInt\":\"4096\"}]}}]}]" SCHEMA);
    metrics_free(metrics);
}

static void scope_of_rpc_has_version_and_schema(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(1);
    metrics_set_level(metrics, METRICS_DETAILED);
    metrics_histogram(metrics, "rpc_server_call_duration", "D.", "", bounds, 0);
    expect_json(metrics,
                RESOURCE ",\"scopeMetrics\":[{\"scope\":{\"name\":\"go.opentelemetry.io/contrib/"
                         "instrumentation/google.golang.org/grpc/otelgrpc\",\"version\":\"0.69.0\"}"
                         ",\"metrics\":[{\"name\":\"rpc.server.call.duration\",\"description\":"
                         "\"D.\",\"unit\":\"s\",\"histogram\":{\"dataPoints\":[{" TIMES
                         ",\"sum\":0,\"bucketCounts\":[\"0\"]}],\"aggregationTemporality\":2}}],"
                         "\"schemaUrl\":\"https://opentelemetry.io/schemas/1.41.0\"}]" SCHEMA);
    metrics_free(metrics);
}

/* ---- deltas ---- */

#define EXPORTER_SCOPE                                                                             \
    ",\"scopeMetrics\":[{\"scope\":{\"name\":\"go.opentelemetry.io/collector/exporter/"            \
    "exporterhelper\"},\"metrics\":["
#define SUM(name) "{\"name\":\"" name "\",\"description\":\"S.\",\"unit\":\"{span}\",\"sum\":{"
#define SINCE(time) "\"startTimeUnixNano\":\"" time "\",\"timeUnixNano\":\"7\""
#define DELTA "\"aggregationTemporality\":1"
#define CUMULATIVE "\"aggregationTemporality\":2"

static void deltas_count_from_the_last_commit(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(1);
    struct counter *counter =
        metrics_counter(metrics, "otelcol_exporter_sent_spans", "S.", "a=\"1\"");
    metrics_counter(metrics, "otelcol_exporter_sent_spans", "S.", "a=\"2\"");
    counter_add(counter, 0, 10);
    struct metrics_delta *delta = metrics_delta_new(metrics, false, 6);
    counter_add(counter, 0, 2);
    const char *const expected =
        RESOURCE EXPORTER_SCOPE SUM("otelcol_exporter_sent_spans") "\"dataPoints\":[{" SINCE(
            "6") ",\"asInt\":\"2\",\"attributes\":[{\"key\":\"a\",\"value\":{"
                 "\"stringValue\":\"1\"}}]}]," DELTA ",\"isMonotonic\":true}}]}]" SCHEMA;
    expect_request(metrics, delta, expected);
    expect_request(metrics, delta, expected); /* the first one failed */
    metrics_delta_commit(delta, 7);
    assert_true(metrics_delta_since(delta) == 7);
    expect_request(metrics, delta, RESOURCE SCHEMA); /* nothing was counted */
    metrics_delta_free(delta);
    metrics_free(metrics);
}

static void delta_histograms_have_no_range(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(1);
    metrics_set_level(metrics, METRICS_DETAILED);
    struct histogram *histogram =
        metrics_histogram(metrics, "otelcol_exporter_queue_batch_send_size", "H.", "", bounds, 2);
    histogram_record(histogram, 0, 0.25);
    histogram_record(histogram, 0, 9);
    struct metrics_delta *delta = metrics_delta_new(metrics, true, 5);
    histogram_record(histogram, 0, 1);
    histogram_record(histogram, 0, 9.5);
    expect_request(metrics, delta,
                   RESOURCE EXPORTER_SCOPE
                   "{\"name\":\"otelcol_exporter_queue_batch_send_size\",\"description\":\"H.\","
                   "\"unit\":\"{unit}\",\"histogram\":{\"dataPoints\":[{" TIMES
                   ",\"count\":\"2\",\"sum\":10.5,\"bucketCounts\":[\"0\",\"1\",\"1\"],"
                   "\"explicitBounds\":[0.5,2]}]," DELTA "}}]}]" SCHEMA);
    metrics_delta_free(delta);
    metrics_free(metrics);
}

static void gauges_and_sums_that_may_fall_stay_cumulative(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(1);
    gauge_set(metrics_gauge(metrics, "otelcol_exporter_in_flight_requests", "F.", ""), 3);
    gauge_set(metrics_gauge(metrics, "otelcol_exporter_queue_size", "Q.", ""), 9);
    struct metrics_delta *delta = metrics_delta_new(metrics, false, 6);
    expect_request(metrics, delta,
                   RESOURCE EXPORTER_SCOPE
                   "{\"name\":\"otelcol_exporter_in_flight_requests\","
                   "\"description\":\"F.\",\"unit\":\"{request}\",\"sum\":{"
                   "\"dataPoints\":[{" TIMES ",\"asInt\":\"3\"}]," CUMULATIVE "}},"
                   "{\"name\":\"otelcol_exporter_queue_size\",\"description\":\"Q.\","
                   "\"unit\":\"{batch}\",\"gauge\":{\"dataPoints\":[{" TIMES
                   ",\"asInt\":\"9\"}]}}]}]" SCHEMA);
    metrics_delta_free(delta);
    metrics_free(metrics);
}

static double uptime;

static double read_uptime(void *context)
{
    (void)context;
    return uptime;
}

#define UPTIME                                                                                     \
    ",\"scopeMetrics\":[{\"scope\":{\"name\":\"go.opentelemetry.io/collector/service\"},"          \
    "\"metrics\":[{\"name\":\"otelcol_process_uptime\",\"description\":\"U.\",\"unit\":\"s\","     \
    "\"sum\":{\"dataPoints\":[{"

/* InstrumentKindObservableCounter in otelconf's deltaTemporality and lowMemory */
static void only_lowmemory_keeps_what_is_observed(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(1);
    metrics_counter_from(metrics, "otelcol_process_uptime", "U.", "", read_uptime, NULL);
    uptime = 1;
    struct metrics_delta *delta = metrics_delta_new(metrics, false, 6);
    struct metrics_delta *lowmemory = metrics_delta_new(metrics, true, 6);
    uptime = 1.5;
    expect_request(metrics, delta,
                   RESOURCE UPTIME SINCE("6") ",\"asDouble\":0.5}]," DELTA
                                              ",\"isMonotonic\":true}}]}]" SCHEMA);
    metrics_delta_commit(delta, 7);
    expect_request(metrics, delta,
                   RESOURCE UPTIME SINCE("7") ",\"asDouble\":0}]," DELTA
                                              ",\"isMonotonic\":true}}]}]" SCHEMA);
    expect_request(metrics, lowmemory,
                   RESOURCE UPTIME TIMES ",\"asDouble\":1.5}]," CUMULATIVE
                                         ",\"isMonotonic\":true}}]}]" SCHEMA);
    metrics_delta_free(delta);
    metrics_delta_free(lowmemory);
    metrics_free(metrics);
}

static void nothing_to_write(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(1);
    expect_json(metrics, RESOURCE SCHEMA);
    metrics_free(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_are_sums_with_typed_attributes),
        cmocka_unit_test(histograms_have_explicit_buckets),
        cmocka_unit_test(gauges_and_sums_that_may_fall),
        cmocka_unit_test(seconds_have_fractions_and_target_info_is_the_resource),
        cmocka_unit_test(scope_of_rpc_has_version_and_schema),
        cmocka_unit_test(deltas_count_from_the_last_commit),
        cmocka_unit_test(delta_histograms_have_no_range),
        cmocka_unit_test(gauges_and_sums_that_may_fall_stay_cumulative),
        cmocka_unit_test(only_lowmemory_keeps_what_is_observed),
        cmocka_unit_test(nothing_to_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The payloads of the signals that profcol relays: metrics and logs. */
#include "bench/payload_fields.h"

#include <stdio.h>
#include <string.h>

enum { METRICS_IN_SCOPE = 6, POINTS_IN_METRIC = 6, BUCKETS = 15, ATTRIBUTES_MAX = 8 };
enum { CUMULATIVE = 2, NO_IDS = 0, SEVERITY_INFO = 9 };

/* ---- metrics ---- */

static const struct metric {
    const char *name, *description, *unit;
    uint32_t data; /* METRIC_SUM */
    bool is_double;
    unsigned attributes;
} metrics[METRICS_IN_SCOPE] = {
    {"http.server.request.duration", "Duration of HTTP server requests.", "s", METRIC_HISTOGRAM,
     true, 6},
    {"jvm.memory.used", "Measure of memory used.", "By", METRIC_SUM, false, 4},
    {"jvm.cpu.recent_utilization", "Recent CPU utilization for the process.", "1", METRIC_GAUGE,
     true, 4},
    {"http.client.request.duration", "Duration of HTTP client requests.", "s", METRIC_HISTOGRAM,
     true, 8},
    {"kafka.consumer.records_consumed_total", "The total number of records consumed", "1",
     METRIC_SUM, false, 5},
    {"kafka.consumer.fetch_latency_avg", "The average time taken for a fetch request", "ms",
     METRIC_GAUGE, true, 7},
};

static void put_point_attributes(struct text *point, uint32_t number, unsigned count,
                                 uint64_t *random)
{
    static const char *const routes[] = {"/api/v1/orders/{order_id}", "/api/v1/products/search",
                                         "/internal/inventory/reserve"};
    const struct {
        const char *key, *string;
        uint64_t integer;
    } attributes[ATTRIBUTES_MAX] = {
        {"http.request.method", "GET", 0},
        {"http.response.status_code", NULL, 200 + pick(random, 4)},
        {"http.route", routes[pick(random, 3)], 0},
        {"url.scheme", "http", 0},
        {"network.protocol.version", "1.1", 0},
        {"server.address", "orders.shop.svc", 0},
        {"server.port", NULL, 8080},
        {"error.type", "java.net.SocketTimeoutException", 0},
    };
    for (unsigned i = 0; i < count; i++)
        put_attribute(point, number, attributes[i].key, attributes[i].string,
                      attributes[i].integer);
}

static void put_number_point(struct text *data, const struct metric *metric, uint64_t *random)
{
    struct text point = {0};
    put_fixed64(&point, NUMBER_POINT_START_TIME_UNIX_NANO, PAYLOAD_START_NS);
    put_fixed64(&point, NUMBER_POINT_TIME_UNIX_NANO, PAYLOAD_START_NS + UINT64_C(60000000000));
    if (metric->is_double)
        put_double(&point, NUMBER_POINT_AS_DOUBLE, pick(random, 1000) / 1000.0);
    else
        put_fixed64(&point, NUMBER_POINT_AS_INT, pick(random, 1000000000));
    put_point_attributes(&point, NUMBER_POINT_ATTRIBUTES, metric->attributes, random);
    put_message(data, METRIC_DATA_DATA_POINTS, &point);
    text_deinit(&point);
}

static void put_buckets(struct text *point, uint64_t *random)
{
    static const double bounds[BUCKETS - 1] = {0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25,
                                               0.5,   0.75, 1,     2.5,  5,     7.5, 10};
    uint64_t counts[BUCKETS];
    for (unsigned i = 0; i < BUCKETS; i++)
        counts[i] = pick(random, 1000);
    put_bytes(point, HISTOGRAM_POINT_BUCKET_COUNTS, slice_of((uint8_t *)counts, sizeof counts));
    put_bytes(point, HISTOGRAM_POINT_EXPLICIT_BOUNDS,
              slice_of((const uint8_t *)bounds, sizeof bounds));
}

/* Fields in the order of Java's SDK. */
static void put_histogram_point(struct text *data, const struct metric *metric, uint64_t *random)
{
    struct text point = {0};
    put_fixed64(&point, HISTOGRAM_POINT_START_TIME_UNIX_NANO, PAYLOAD_START_NS);
    put_fixed64(&point, HISTOGRAM_POINT_TIME_UNIX_NANO, PAYLOAD_START_NS + UINT64_C(60000000000));
    put_fixed64(&point, HISTOGRAM_POINT_COUNT, 1 + pick(random, 100000));
    put_double(&point, HISTOGRAM_POINT_SUM, pick(random, 1000000) / 1000.0);
    put_double(&point, HISTOGRAM_POINT_MIN, 0.001);
    put_double(&point, HISTOGRAM_POINT_MAX, 12.5);
    put_buckets(&point, random);
    put_point_attributes(&point, HISTOGRAM_POINT_ATTRIBUTES, metric->attributes, random);
    put_message(data, METRIC_DATA_DATA_POINTS, &point);
    text_deinit(&point);
}

static void put_metric(struct text *scope, const struct metric *metric, uint32_t points,
                       uint64_t *random)
{
    struct text out = {0}, data = {0};
    put_string(&out, METRIC_NAME, metric->name);
    put_string(&out, METRIC_DESCRIPTION, metric->description);
    put_string(&out, METRIC_UNIT, metric->unit);
    for (uint32_t i = 0; i < points; i++)
        if (metric->data == METRIC_HISTOGRAM)
            put_histogram_point(&data, metric, random);
        else
            put_number_point(&data, metric, random);
    if (metric->data != METRIC_GAUGE)
        put_varint(&data, METRIC_DATA_AGGREGATION_TEMPORALITY, CUMULATIVE);
    if (metric->data == METRIC_SUM)
        put_varint(&data, SUM_IS_MONOTONIC, 1);
    put_message(&out, metric->data, &data);
    put_message(scope, SCOPE_ITEMS, &out);
    text_deinit(&out);
    text_deinit(&data);
}

struct payload payload_metrics(uint32_t points)
{
    struct text out = {0}, group = {0}, scope = {0};
    uint64_t random = 3;
    put_resource(&group, GROUP_RESOURCE);
    for (uint32_t left = points; left > 0;) {
        put_scope(&scope, SCOPE_SPANS_SCOPE);
        for (unsigned i = 0; i < METRICS_IN_SCOPE && left > 0; i++) {
            uint32_t count = left < POINTS_IN_METRIC ? left : POINTS_IN_METRIC;
            put_metric(&scope, &metrics[i], count, &random);
            left -= count;
        }
        put_message(&group, GROUP_SCOPES, &scope);
    }
    put_message(&out, REQUEST_GROUPS, &group);
    text_deinit(&group);
    text_deinit(&scope);
    return payload_finish(&out, SIGNAL_METRICS, points, NO_IDS, NULL);
}

/* ---- logs ---- */

static void put_log_body(struct text *record, uint64_t *random)
{
    struct text body = {0};
    char line[100];
    snprintf(line, sizeof line,
             "Order %08u of customer %06u was paid by card, %u items, answered in %u ms",
             pick(random, 100000000), pick(random, 1000000), 1 + pick(random, 20),
             pick(random, 1000));
    put_string(&body, ANY_VALUE_STRING, line);
    put_message(record, LOG_RECORD_BODY, &body);
    text_deinit(&body);
}

static void put_log_attributes(struct text *record, uint64_t *random)
{
    char thread[32];
    snprintf(thread, sizeof thread, "http-nio-8080-exec-%u", 1 + pick(random, 64));
    put_attribute(record, LOG_RECORD_ATTRIBUTES, "thread.name", thread, 0);
    put_attribute(record, LOG_RECORD_ATTRIBUTES, "thread.id", NULL, 20 + pick(random, 64));
    put_attribute(record, LOG_RECORD_ATTRIBUTES, "code.function.name", "PaymentService.pay", 0);
    put_attribute(record, LOG_RECORD_ATTRIBUTES, "code.line.number", NULL, 10 + pick(random, 900));
    put_attribute(record, LOG_RECORD_ATTRIBUTES, "order.currency", "EUR", 0);
}

/* Fields in the order of Java's SDK. */
static void put_log_record(struct text *scope, uint32_t i, uint64_t *random)
{
    struct text record = {0};
    uint8_t trace_id[TRACE_ID_SIZE], span_id[SPAN_ID_SIZE];
    uint64_t time = PAYLOAD_START_NS + pick(random, 1000000000);
    payload_ids(0, i, trace_id, span_id);
    put_fixed64(&record, LOG_RECORD_TIME_UNIX_NANO, time);
    put_fixed64(&record, LOG_RECORD_OBSERVED_TIME_UNIX_NANO, time + 1000);
    put_varint(&record, LOG_RECORD_SEVERITY_NUMBER, SEVERITY_INFO);
    put_string(&record, LOG_RECORD_SEVERITY_TEXT, "INFO");
    put_log_body(&record, random);
    put_log_attributes(&record, random);
    put_bytes(&record, LOG_RECORD_TRACE_ID, slice_of(trace_id, sizeof trace_id));
    put_bytes(&record, LOG_RECORD_SPAN_ID, slice_of(span_id, sizeof span_id));
    put_message(scope, SCOPE_ITEMS, &record);
    text_deinit(&record);
}

struct payload payload_logs(uint32_t records)
{
    struct text out = {0}, group = {0}, scope = {0};
    uint64_t random = 4;
    put_resource(&group, GROUP_RESOURCE);
    put_scope(&scope, SCOPE_SPANS_SCOPE);
    for (uint32_t i = 0; i < records; i++)
        put_log_record(&scope, i, &random);
    put_message(&group, GROUP_SCOPES, &scope);
    put_message(&out, REQUEST_GROUPS, &group);
    text_deinit(&group);
    text_deinit(&scope);
    static const uint32_t way[] = {REQUEST_GROUPS, GROUP_SCOPES, SCOPE_ITEMS, LOG_RECORD_TRACE_ID,
                                   0};
    return payload_finish(&out, SIGNAL_LOGS, records, records, way);
}

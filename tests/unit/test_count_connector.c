#include "core/base/clock.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type count_connector_type;

#define NOW_NS 1700000000000000000u
#define NOW "1700000000000000000"

static struct node *place(struct fixture *f, const char *settings, enum signal signal)
{
    struct text yaml = {0};
    text_printf(&yaml, "connectors: {count: %s}", settings);
    fixture_init(f, 1);
    clock_fix_wall(NOW_NS);
    struct fixture_place *made = fixture_place(f, &count_connector_type, "count",
                                               text_string(&yaml), signal_name(signal), signal);
    text_deinit(&yaml);
    return made->nodes[0];
}

static void end(struct fixture *f)
{
    fixture_deinit(f);
    clock_fix_wall(0);
}

/* ---- what is counted ---- */

#define SCOPE                                                                                      \
    "\"scope\":{\"name\":\"github.com/open-telemetry/opentelemetry-collector-contrib/connector/"   \
    "countconnector\"}"
#define TEXT_ATTRIBUTE(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define METRIC(name, points)                                                                       \
    "{\"name\":\"" name "\",\"sum\":{\"dataPoints\":[" points                                      \
    "],\"aggregationTemporality\":1,\"isMonotonic\":true}}"
#define DESCRIBED(name, description, points)                                                       \
    "{\"name\":\"" name "\",\"description\":\"" description "\",\"sum\":{\"dataPoints\":[" points  \
    "],\"aggregationTemporality\":1,\"isMonotonic\":true}}"
#define POINT(first, last, count)                                                                  \
    "{\"startTimeUnixNano\":\"" first "\",\"timeUnixNano\":\"" last "\",\"asInt\":\"" count "\"}"
#define POINT_OF(first, last, count, attributes)                                                   \
    "{\"startTimeUnixNano\":\"" first "\",\"timeUnixNano\":\"" last "\",\"asInt\":\"" count        \
    "\",\"attributes\":[" attributes "]}"
#define GROUP(resource, metrics)                                                                   \
    "{\"resource\":{" resource "},\"scopeMetrics\":[{" SCOPE ",\"metrics\":[" metrics "]}]}"
#define SERVICE(name) "\"attributes\":[" TEXT_ATTRIBUTE("service.name", name) "]"

static const struct {
    enum signal signal;
    const char *settings;
    const char *request;
    const char *counts; /* the groups; NULL: nothing is emitted */
    uint32_t points;
} cases[] = {
    /* spans and events, each with the range of its times */
    {SIGNAL_TRACES, "{}",
     "{\"resourceSpans\":[{\"resource\":{" SERVICE(
         "a") "},\"scopeSpans\":[{\"spans\":["
              "{\"startTimeUnixNano\":\"5\",\"endTimeUnixNano\":\"9\",\"events\":[{"
              "\"timeUnixNano\":\"7\"},"
              "{\"timeUnixNano\":\"6\"}]},{\"startTimeUnixNano\":\"4\"}]},{\"spans\":[{}]}]},"
              "{\"resource\":{" SERVICE(
                  "empty") "}},"
                           "{\"scopeSpans\":[{\"spans\":[{\"events\":[{}]}]}]}]}",
     GROUP(
         SERVICE("a"),
         DESCRIBED(
             "trace.span.count", "The number of spans observed.",
             POINT(
                 "4", "9",
                 "3")) "," DESCRIBED("trace.span.event.count",
                                     "The number of span events observed.",
                                     POINT(
                                         "6", "7",
                                         "2"))) "," GROUP("",
                                                          DESCRIBED(
                                                              "trace.span.count",
                                                              "The number of spans observed.",
                                                              POINT(
                                                                  NOW, NOW,
                                                                  "1")) "," DESCRIBED("trace.span."
                                                                                      "event.count",
                                                                                      "The number "
                                                                                      "of span "
                                                                                      "events "
                                                                                      "observed.",
                                                                                      POINT(NOW,
                                                                                            NOW,
                                                                                            "1"))),
     4},
    /* nothing to count */
    {SIGNAL_TRACES, "{}", "{\"resourceSpans\":[{\"resource\":{" SERVICE("a") "}}]}", NULL, 0},
    /* the item, then the scope, then the resource, then the default */
    {SIGNAL_TRACES,
     "{spans: {n: {attributes: [{key: k, default_value: d}]}}, spanevents: {e: {attributes: "
     "[{key: none}]}}}",
     "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" TEXT_ATTRIBUTE(
         "k", "r") "]},"
                   "\"scopeSpans\":[{\"scope\":{\"attributes\":[" TEXT_ATTRIBUTE(
                       "k",
                       "s") "]},\"spans\":["
                            "{\"attributes\":[" TEXT_ATTRIBUTE("k", "i") "," TEXT_ATTRIBUTE(
                                "k",
                                "not this") "]},{}]},"
                                            "{\"spans\":[{},{\"events\":[{}]},{\"attributes\":"
                                            "[" TEXT_ATTRIBUTE(
                                                "k",
                                                "s") "]}]}]},"
                                                     "{\"scopeSpans\":[{\"spans\":[{},{}]}]}]}",
     GROUP("\"attributes\":[" TEXT_ATTRIBUTE("k", "r") "]",
           METRIC("n",
                  POINT_OF(NOW, NOW, "1", TEXT_ATTRIBUTE("k", "i")) "," POINT_OF(
                      NOW, NOW, "2",
                      TEXT_ATTRIBUTE(
                          "k",
                          "s")) "," POINT_OF(NOW, NOW, "2",
                                             TEXT_ATTRIBUTE(
                                                 "k",
                                                 "r")))) "," GROUP("",
                                                                   METRIC("n",
                                                                          POINT_OF(NOW, NOW, "2",
                                                                                   TEXT_ATTRIBUTE(
                                                                                       "k", "d")))),
     4},
    /* an item that lacks an attribute does not count; values of several types; a default that an
     * item has as well */
    {SIGNAL_TRACES,
     "{spans: {n: {description: Text., attributes: [{key: a}, {key: b, default_value: 7}]}}}",
     "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{},{\"attributes\":["
     "{\"key\":\"a\",\"value\":{\"boolValue\":false}}]},{\"attributes\":["
     "{\"key\":\"b\",\"value\":{\"intValue\":\"7\"}},"
     "{\"key\":\"a\",\"value\":{\"boolValue\":false}}]},{\"attributes\":["
     "{\"key\":\"a\",\"value\":{}}," TEXT_ATTRIBUTE("b", "7") "]}]}]}]}",
     GROUP(
         "",
         DESCRIBED(
             "n", "Text.",
             POINT_OF(
                 NOW,
                 NOW,
                 "2",
                 "{\"key\":\"a\",\"value\":{\"boolValue\":false}},"
                 "{\"key\":\"b\",\"value\":{\"intValue\":\"7\"}}") "," POINT_OF(NOW, NOW, "1",
                                                                                "{\"key\":\"a\","
                                                                                "\"value\":{}}"
                                                                                "," TEXT_ATTRIBUTE(
                                                                                    "b", "7")))),
     2},
    {SIGNAL_LOGS, "{logs: {all: , by: {attributes: [{key: a}]}}}",
     "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"timeUnixNano\":\"3\"},"
     "{\"timeUnixNano\":\"2\",\"attributes\":[" TEXT_ATTRIBUTE("a", "x") "]}]}]}]}",
     GROUP("", METRIC("all", POINT("2", "3", "2")) "," METRIC(
                   "by", POINT_OF("2", "3", "1", TEXT_ATTRIBUTE("a", "x")))),
     2},
    {SIGNAL_METRICS, "{datapoints: {all: , by: {attributes: [{key: a}]}}}",
     "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":["
     "{\"gauge\":{\"dataPoints\":[{\"timeUnixNano\":\"3\"}]}},{\"sum\":{\"dataPoints\":[{"
     "\"attributes\":[" TEXT_ATTRIBUTE(
         "a", "x") "]}]}},{\"histogram\":{\"dataPoints\":[{"
                   "\"attributes\":[" TEXT_ATTRIBUTE(
                       "a", "x") "]}]}},{\"exponentialHistogram\":{\"dataPoints\":"
                                 "[{\"timeUnixNano\":\"4\",\"attributes\":[" TEXT_ATTRIBUTE(
                                     "a", "x") "]}]}},"
                                               "{\"summary\":{\"dataPoints\":[{\"timeUnixNano\":"
                                               "\"2\",\"attributes\":[" TEXT_ATTRIBUTE(
                                                   "a", "y") "]}]}},{}]}]}]}",
     GROUP(
         "",
         DESCRIBED(
             "metric.count", "The number of metrics observed.",
             POINT(
                 NOW, NOW,
                 "6")) "," METRIC("all",
                                  POINT(
                                      "2", "4",
                                      "5")) "," METRIC("by",
                                                       POINT_OF(
                                                           "2",
                                                           "4",
                                                           "3",
                                                           TEXT_ATTRIBUTE(
                                                               "a",
                                                               "x")) "," POINT_OF("2", "4", "1",
                                                                                  TEXT_ATTRIBUTE(
                                                                                      "a", "y")))),
     4},
    /* profiles, and their samples at the profile's time */
    {SIGNAL_PROFILES,
     "{profiles: {p: , by: {attributes: [{key: a}]}}, samples: {s: {attributes: [{key: a, "
     "default_value: d}]}}}",
     "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":["
     "{\"timeUnixNano\":\"8\",\"attributeIndices\":[2],\"samples\":[{\"attributeIndices\":[1]},"
     "{\"attributeIndices\":[2,3]},{\"attributeIndices\":[1]}]},{\"samples\":[{}]}]}]}],"
     "\"dictionary\":{\"mappingTable\":[{}],\"locationTable\":[{}],\"functionTable\":[{}],"
     "\"linkTable\":[{}],\"stringTable\":[\"\",\"a\",\"b\"],\"attributeTable\":[{},"
     "{\"keyStrindex\":1,\"value\":{\"stringValue\":\"x\"}},"
     "{\"keyStrindex\":2,\"value\":{\"stringValue\":\"y\"}},"
     "{\"keyStrindex\":1,\"value\":{\"stringValue\":\"x\"},\"unitStrindex\":2}],"
     "\"stackTable\":[{}]}}",
     GROUP("", METRIC("p", POINT("8", "8", "2")) "," METRIC(
                   "s", POINT_OF("8", "8", "3", TEXT_ATTRIBUTE("a", "x")) "," POINT_OF(
                            "8", "8", "1", TEXT_ATTRIBUTE("a", "d")))),
     3},
};

static void counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f;
        struct probe probe;
        struct node *node = place(&f, cases[i].settings, cases[i].signal);
        fixture_consume_json(&f, node, cases[i].request, 7, &probe);
        assert_int_equal(probe.settled, 1);
        assert_true(verdict_is_ok(&probe.verdict));
        assert_int_equal(f.recorder.count, cases[i].counts != NULL);
        if (cases[i].counts) {
            struct text wanted = {0};
            text_printf(&wanted, "{\"resourceMetrics\":[%s]}", cases[i].counts);
            char *got = fixture_recorded_json(&f, 0);
            expect_text(got, text_string(&wanted));
            assert_int_equal(f.recorder.items[0].signal, SIGNAL_METRICS);
            assert_int_equal(f.recorder.items[0].items, cases[i].points);
            free(got);
            text_deinit(&wanted);
        }
        end(&f);
    }
}

/* ---- conditions ---- */

#define NAMED(name, more) "{\"name\":\"" name "\"" more "}"
#define TWO_SPANS                                                                                  \
    NAMED("one", ",\"kind\":2,\"events\":[" NAMED("x", "") "," NAMED("y", "") "]")                 \
    "," NAMED("two", ",\"events\":[" NAMED("x", "") "]")
#define TRACES(service)                                                                            \
    "{\"resource\":{" SERVICE(service) "},\"scopeSpans\":[{\"scope\":{\"name\":\"lib\"},"          \
                                       "\"spans\":[" TWO_SPANS "]}]}"
/* Two resources, each with two spans and three events. */
#define TWO_RESOURCES "{\"resourceSpans\":[" TRACES("a") "," TRACES("b") "]}"

static const struct {
    const char *conditions; /* of a metric of spans and one of events */
    unsigned spans;
    unsigned events;
} conditions[] = {
    {"['true']", 4, 6},
    {"['false']", 0, 0},
    {"['resource.attributes[\"service.name\"] == \"a\"']", 2, 3},
    {"['instrumentation_scope.name == \"lib\"', '1 / 0 == 1']", 4, 6}, /* the first is enough */
    {"['name == \"two\"']", 2, 0},
    {"['name == \"x\"']", 0, 4},
    {"['span.name == \"one\"']", 2, 4},
    {"['span.kind == SPAN_KIND_SERVER and name == \"y\"', 'name == \"two\"']", 2, 2},
    {"['name == \"one\"', 'resource.attributes[\"service.name\"] == \"b\"']", 3, 3},
};

/* Returns the sum of the data points of a metric, one in each resource. */
static unsigned sum_of(struct fixture *f, const char *metric)
{
    unsigned sum = 0;
    char *json = f->recorder.count > 0 ? fixture_recorded_json(f, 0) : NULL;
    for (const char *at = json; at && (at = strstr(at, metric)); at++)
        sum += (unsigned)strtoul(strstr(at, "\"asInt\":\"") + 9, NULL, 10);
    free(json);
    return sum;
}

static void conditions_select_items(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        struct fixture f;
        struct probe probe;
        struct text settings = {0};
        text_printf(&settings, "{spans: {by.span: {conditions: %s}}, ", conditions[i].conditions);
        text_printf(&settings, "spanevents: {by.event: {conditions: %s}}}",
                    conditions[i].conditions);
        struct node *node = place(&f, text_string(&settings), SIGNAL_TRACES);
        fixture_consume_json(&f, node, TWO_RESOURCES, 4, &probe);
        assert_true(verdict_is_ok(&probe.verdict));
        assert_int_equal(sum_of(&f, "\"by.span\""), conditions[i].spans);
        assert_int_equal(sum_of(&f, "\"by.event\""), conditions[i].events);
        text_deinit(&settings);
        end(&f);
    }
}

/* Of other signals, conditions see the resource and the scope. */
static void conditions_of_other_signals_select_resources(void **state)
{
    (void)state;
    struct fixture f;
    struct probe probe;
    struct node *node = place(
        &f,
        "{logs: {l: {conditions: ['resource.attributes[\"service.name\"] == \"a\" and scope.name "
        "== \"x\"']}}}",
        SIGNAL_LOGS);
    fixture_consume_json(
        &f, node,
        "{\"resourceLogs\":[{\"resource\":{" SERVICE(
            "a") "},\"scopeLogs\":["
                 "{\"scope\":{\"name\":\"x\"},\"logRecords\":[{},{}]},{\"logRecords\":[{}]}]},"
                 "{\"resource\":{" SERVICE(
                     "b") "},\"scopeLogs\":["
                          "{\"scope\":{\"name\":\"x\"},\"logRecords\":[{}]}]}]}",
        4, &probe);
    assert_true(verdict_is_ok(&probe.verdict));
    assert_int_equal(sum_of(&f, "\"l\""), 2);
    end(&f);
}

/* An item without the attributes is not judged. */
static void a_failing_condition_refuses_the_request(void **state)
{
    (void)state;
    struct fixture f;
    struct probe probe;
    struct node *node = place(
        &f, "{spans: {n: {attributes: [{key: k}], conditions: ['1 / attributes[\"k\"] == 1']}}}",
        SIGNAL_TRACES);
    fixture_consume_json(&f, node, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{}]}]}]}", 1,
                         &probe);
    assert_true(verdict_is_ok(&probe.verdict));
    fixture_consume_json(&f, node,
                         "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"attributes\":["
                         "{\"key\":\"k\",\"value\":{\"intValue\":\"0\"}}]}]}]}]}",
                         1, &probe);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(probe.verdict.code, GRPC_UNAVAILABLE);
    assert_string_equal(probe.verdict.text, "failed to eval condition: 1 / attributes[\"k\"] == 1, "
                                            "attempted to divide by 0");
    assert_int_equal(f.recorder.count, 0);
    fixture_consume_json(&f, node,
                         "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"attributes\":["
                         "{\"key\":\"k\",\"value\":{\"intValue\":\"1\"}}]}]}]}]}",
                         1, &probe);
    assert_true(verdict_is_ok(&probe.verdict));
    assert_int_equal(f.recorder.count, 1);
    end(&f);
}

/* ---- many values, and large ones ---- */

/* Appends a request of one resource with spans, numbered from 0, with an attribute "k". */
static void print_spans(struct text *request, const char *resource, size_t spans, size_t distinct)
{
    text_printf(request, "{\"resourceSpans\":[{\"resource\":{%s},\"scopeSpans\":[{\"spans\":[",
                resource);
    for (size_t i = 0; i < spans; i++)
        text_printf(request, "%s{\"attributes\":[" TEXT_ATTRIBUTE("k", "%zu") "]}", i ? "," : "",
                    i % distinct);
    text_append(request, "]}]}]}");
}

static size_t occurrences(const char *text, const char *wanted)
{
    size_t count = 0, size = strlen(wanted);
    /* Not strstr or memmem: sanitizers check the whole text at each call. */
    for (; *text; text++)
        count += *text == *wanted && strncmp(text, wanted, size) == 0;
    return count;
}

/* A job counts it. What is behind waits for it. */
static void many_sets(void **state)
{
    (void)state;
    enum { SETS = 30000, SPANS = 90000 };
    struct fixture f;
    struct text request = {0};
    struct probe probe, behind;
    struct node *node = place(&f, "{spans: {n: {attributes: [{key: k}]}}}", SIGNAL_TRACES);
    print_spans(&request, "", SPANS, SETS);
    fixture_consume_json(&f, node, text_string(&request), SPANS, &probe);
    fixture_consume_json(&f, node, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{}]}]}]}", 1,
                         &behind);
    assert_int_equal(probe.settled + behind.settled, 0);
    assert_false(fixture_is_idle(node));
    fixture_advance(&f, 0);
    assert_int_equal(probe.settled + behind.settled, 2);
    assert_int_equal(f.recorder.count, 1);
    assert_int_equal(f.recorder.items[0].items, SETS);
    char *got = fixture_recorded_json(&f, 0);
    assert_int_equal(occurrences(got, "\"asInt\":\"3\""), SETS);
    assert_int_equal(occurrences(got, "\"asInt\""), SETS);
    free(got);
    text_deinit(&request);
    end(&f);
}

/* 1,000 sets share a value of 100 kB: some have it, and the others are counted together. */
static void large_values_have_a_limit(void **state)
{
    (void)state;
    enum { SPANS = 1000, LARGE = 100000 };
    struct fixture f;
    struct text resource = {0}, request = {0};
    struct node *node =
        place(&f, "{spans: {n: {attributes: [{key: k}, {key: r}]}}}", SIGNAL_TRACES);
    text_append(&resource, "\"attributes\":[{\"key\":\"r\",\"value\":{\"stringValue\":\"");
    for (int i = 0; i < LARGE; i++)
        text_append_char(&resource, 'r');
    text_append(&resource, "\"}}]");
    print_spans(&request, text_string(&resource), SPANS, SPANS);
    fixture_consume_json(&f, node, text_string(&request), SPANS, NULL);
    uint32_t points = f.recorder.items[0].items;
    assert_in_range(points, 10, 30);
    assert_in_range(f.recorder.items[0].size, 10 * LARGE, 30 * LARGE);
    char *got = fixture_recorded_json(&f, 0), rest[32];
    snprintf(rest, sizeof rest, "\"asInt\":\"%u\"", SPANS - (points - 1));
    assert_int_equal(occurrences(got, "otel.metric.overflow"), 1);
    assert_int_equal(occurrences(got, rest), 1);
    assert_int_equal(occurrences(got, "\"asInt\":\"1\""), points - 1);
    free(got);
    text_deinit(&resource);
    text_deinit(&request);
    end(&f);
}

/* Returns the sum of all counts of a request. */
static uint64_t total_of(const char *json)
{
    static const char key[] = "\"asInt\":\"";
    uint64_t total = 0;
    for (; *json; json++)
        if (*json == '"' && strncmp(json, key, sizeof key - 1) == 0)
            total += strtoull(json + sizeof key - 1, NULL, 10);
    return total;
}

/* A new value in every few bytes: some values are kept, and the others are counted together. */
static void distinct_values_have_a_limit(void **state)
{
    (void)state;
    enum { SPANS = 200000 };
    struct fixture f;
    struct text request = {0};
    struct node *node = place(&f, "{spans: {n: {attributes: [{key: k}]}, all: }}", SIGNAL_TRACES);
    print_spans(&request, "", SPANS, SPANS);
    fixture_consume_json(&f, node, text_string(&request), SPANS, NULL);
    fixture_advance(&f, 0);
    uint32_t points = f.recorder.items[0].items;
    assert_in_range(points, SPANS / 4, SPANS / 2);
    char *got = fixture_recorded_json(&f, 0);
    assert_int_equal(occurrences(got, "otel.metric.overflow"), 1);
    assert_int_equal(total_of(got), 2 * SPANS); /* nothing is lost, in either metric */
    free(got);
    text_deinit(&request);
    end(&f);
}

/* More resources than a request may reasonably have: the rest is counted together. */
static void resources_have_a_limit(void **state)
{
    (void)state;
    enum { MAX = 100000, MORE = 50 };
    struct fixture f;
    struct text request = {0};
    struct node *node = place(&f, "{logs: {n: }}", SIGNAL_LOGS);
    for (int i = 0; i < MAX + MORE; i++)
        text_printf(&request, "%s{\"scopeLogs\":[{\"logRecords\":[{}]}]}",
                    i ? "," : "{\"resourceLogs\":[");
    text_append(&request, "]}");
    fixture_consume_json(&f, node, text_string(&request), MAX + MORE, NULL);
    fixture_advance(&f, 0);
    assert_int_equal(f.recorder.items[0].items, MAX + 1);
    char *got = fixture_recorded_json(&f, 0);
    assert_int_equal(occurrences(got, "\"asInt\":\"1\""), MAX);
    assert_int_equal(occurrences(got, "\"asInt\":\"50\""), 1);
    free(got);
    text_deinit(&request);
    end(&f);
}

/* ---- receipts ---- */

#define ONE_SPAN "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{}]}]}]}"

/* The sender of the traces gets the verdict on the metrics. */
static void a_refusal_reaches_the_sender(void **state)
{
    (void)state;
    static const enum grpc_code codes[] = {GRPC_INVALID_ARGUMENT, GRPC_UNAVAILABLE};
    for (size_t i = 0; i < 2; i++) {
        struct fixture f;
        struct probe probe;
        struct node *node = place(&f, "{}", SIGNAL_TRACES);
        f.recorder.answer = verdict_of(codes[i], "no");
        fixture_consume_json(&f, node, ONE_SPAN, 1, &probe);
        assert_int_equal(probe.settled, 1);
        assert_int_equal(probe.verdict.code, codes[i]);
        assert_string_equal(probe.verdict.text, "no");
        f.recorder.answer = verdict_ok;
        end(&f);
    }
}

/* Its receipt is open, and the node is not idle, until the metrics are accepted. */
static void the_batch_waits_for_its_counts(void **state)
{
    (void)state;
    struct fixture f;
    struct probe probe;
    struct node *node = place(&f, "{}", SIGNAL_TRACES);
    f.recorder.hold = true;
    fixture_consume_json(&f, node, ONE_SPAN, 1, &probe);
    assert_int_equal(probe.settled, 0);
    assert_false(fixture_is_idle(node));
    assert_true(share_used(&node->component->held[SIGNAL_TRACES]) > 0);
    fixture_release(&f, &verdict_ok);
    assert_int_equal(probe.settled, 1);
    assert_true(verdict_is_ok(&probe.verdict));
    assert_true(fixture_is_idle(node));
    assert_int_equal(share_used(&node->component->held[SIGNAL_TRACES]), 0);
    end(&f);
}

static void several_batches_may_wait(void **state)
{
    (void)state;
    struct fixture f;
    struct probe first, second;
    struct node *node = place(&f, "{}", SIGNAL_TRACES);
    node->component->held[SIGNAL_TRACES].own.limit_bytes = 1 << 20;
    f.recorder.hold = true;
    fixture_consume_json(&f, node, ONE_SPAN, 1, &first);
    fixture_consume_json(&f, node, ONE_SPAN, 1, &second);
    assert_int_equal(first.settled + second.settled, 0);
    fixture_release(&f, &verdict_ok);
    fixture_release(&f, &verdict_ok);
    assert_int_equal(first.settled + second.settled, 2);
    assert_int_equal(share_used(&node->component->held[SIGNAL_TRACES]), 0);
    end(&f);
}

/* Batches whose counts wait take no more memory than the connector's share. */
static void waiting_batches_have_a_limit(void **state)
{
    (void)state;
    struct fixture f;
    struct probe first, second;
    struct node *node = place(&f, "{}", SIGNAL_TRACES);
    node->component->held[SIGNAL_TRACES].own.limit_bytes = 1;
    f.recorder.hold = true;
    fixture_consume_json(&f, node, ONE_SPAN, 1, &first);
    assert_int_equal(first.settled, 0); /* one always fits */
    fixture_consume_json(&f, node, ONE_SPAN, 1, &second);
    assert_int_equal(second.verdict.code, GRPC_UNAVAILABLE);
    fixture_release(&f, &verdict_ok);
    fixture_consume_json(&f, node, ONE_SPAN, 1, &second);
    fixture_release(&f, &verdict_ok);
    assert_true(verdict_is_ok(&second.verdict));
    end(&f);
}

/* ---- mistakes ---- */

static void mistakes_are_refused(void **state)
{
    (void)state;
    static const char *const mistakes[][2] = {
        {"{spans: {n: {attributes: [{key: a}, {key: a}]}}}", "\"a\" is listed twice"},
        {"{spans: {n: {attributes: [{default_value: a}]}}}", "key: is required but not set"},
        {"{spans: {n: {attributes: [{key: ''}]}}}", "key: is required and cannot be empty"},
        {"{spans: {'': }}", "a name cannot be empty"},
        {"{metrics: {n: {attributes: [{key: a}]}}}", "a metric has no attributes to count by"},
        {"{spans: {n: {conditions: ['true', 'nme == \"a\"']}}}",
         "spans::n::conditions::1: unable to parse OTTL condition \"nme == \"a\"\": 1:1: the "
         "context "
         "span has no path \"nme\"; did you mean \"name\"?"},
        {"{spanevents: {n: {conditions: ['IsRootSpan()']}}}",
         "1:1: the context spanevent has no function \"IsRootSpan\""},
        {"{logs: {n: {conditions: ['severity_number >= 17']}}}",
         "missing context name for path \"severity_number\"; conditions of this section can only "
         "use "
         "paths that begin with \"resource.\" or \"scope.\", because profcol passes logs on "
         "unopened"},
        {"{datapoints: {n: {conditions: ['metric.name == \"a\"']}}}",
         "because profcol passes metrics on unopened"},
        {"{samples: {n: {conditions: ['values == []']}}}", "there are no paths of profiles yet"},
        {"{span_events: {n: }}", "did you mean \"spanevents\"?"},
        {"{spans: {n: {attribute: []}}}", "did you mean \"attributes\"?"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        fixture_refuses(&count_connector_type, mistakes[i][0], mistakes[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(conditions_select_items),
        cmocka_unit_test(conditions_of_other_signals_select_resources),
        cmocka_unit_test(a_failing_condition_refuses_the_request),
        cmocka_unit_test(many_sets),
        cmocka_unit_test(large_values_have_a_limit),
        cmocka_unit_test(distinct_values_have_a_limit),
        cmocka_unit_test(resources_have_a_limit),
        cmocka_unit_test(a_refusal_reaches_the_sender),
        cmocka_unit_test(the_batch_waits_for_its_counts),
        cmocka_unit_test(several_batches_may_wait),
        cmocka_unit_test(waiting_batches_have_a_limit),
        cmocka_unit_test(mistakes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

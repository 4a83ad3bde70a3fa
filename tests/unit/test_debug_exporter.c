#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct component_type debug_exporter_type;
extern const struct component_type nop_exporter_type;

static char path[64];

static int make_file(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/profcol-debug-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    return 0;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static const char *shown(void)
{
    static char content[1 << 18];
    FILE *file = fopen(path, "rb");
    size_t size = fread(content, 1, sizeof content - 1, file);
    fclose(file);
    content[size] = '\0';
    return content;
}

static struct fixture_place *start(struct fixture *f, const char *settings, enum signal signal)
{
    char yaml[512];
    snprintf(yaml, sizeof yaml,
             "exporters: {debug: {use_internal_logger: false, output_paths: [%s], %s}}", path,
             settings);
    fixture_init(f, 1);
    return fixture_place(f, &debug_exporter_type, "debug", yaml, signal_name(signal), signal);
}

static void show(struct fixture *f, struct fixture_place *place, const char *json, uint32_t items)
{
    struct probe probe;
    fixture_consume_json(f, place->nodes[0], json, items, &probe);
    assert_int_equal(probe.settled, 1);
    assert_true(verdict_is_ok(&probe.verdict));
}

static const char traces_json[] =
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"
    "\"stringValue\":\"shop\"}}]},"
    "\"scopeSpans\":[{\"scope\":{\"name\":\"lib\",\"version\":\"1.2\"},\"spans\":[{\"traceId\":"
    "\"0102030405060708090a0b0c0d0e0f10\","
    "\"spanId\":\"0102030405060708\",\"name\":\"GET "
    "/\",\"kind\":2,\"startTimeUnixNano\":\"1767225599123456789\",\"endTimeUnixNano\":"
    "\"1767225600000000000\",\"attributes\":[{\"key\":\"i\",\"value\":{\"intValue\":\"-3\"}},{"
    "\"key\":\"list\",\"value\":{\"arrayValue\":"
    "{\"values\":[{\"stringValue\":\"a\\nb\"},{\"doubleValue\":0.5},{}]}}},{\"key\":\"map\","
    "\"value\":{\"kvlistValue\":{\"values\":[{\"key\":"
    "\"k\",\"value\":{\"boolValue\":true}}]}}},{\"key\":\"none\",\"value\":{}}],\"events\":[{"
    "\"timeUnixNano\":\"1767225599500000000\",\"name\":"
    "\"ev\",\"attributes\":[{\"key\":\"e\",\"value\":{\"bytesValue\":\"AQI=\"}}]}],\"links\":[{"
    "\"traceId\":"
    "\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":\"0807060504030201\"}],\"status\":{\"code\":2,"
    "\"message\":\"bad\"}}]}]},"
    "{\"schemaUrl\":\"s\"}]}";

static void shows_counts(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place = start(&f, "verbosity: basic", SIGNAL_TRACES);
    show(&f, place, traces_json, 1);
    assert_string_equal(shown(), "Traces\t{\"resource spans\": 2, \"spans\": 1}\n");
    assert_int_equal(
        (int)metrics_value(f.process.metrics, "otelcol_exporter_sent_spans", "exporter=\"debug\""),
        1);
    fixture_deinit(&f);
}

static void shows_a_line_per_span(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place = start(&f, "verbosity: Normal", SIGNAL_TRACES);
    show(&f, place, traces_json, 1);
    assert_string_equal(
        shown(),
        "Traces\t{\"resource spans\": 2, \"spans\": 1}\n"
        "ResourceSpans #0 service.name=shop\n"
        "ScopeSpans #0 lib@1.2\n"
        "GET / 0102030405060708090a0b0c0d0e0f10 0102030405060708 i=-3 list=[\"a\\nb\",0.5,null] "
        "map={\"k\":true} none=\n"
        "ResourceSpans #1 [s]\n");
    fixture_deinit(&f);
}

static void shows_all_of_a_span(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place = start(&f, "verbosity: detailed", SIGNAL_TRACES);
    show(&f, place, traces_json, 1);
    assert_string_equal(shown(), "Traces\t{\"resource spans\": 2, \"spans\": 1}\n"
                                 "ResourceSpans #0\n"
                                 "Resource SchemaURL: \n"
                                 "Resource attributes:\n"
                                 "     -> service.name: Str(shop)\n"
                                 "ScopeSpans #0\n"
                                 "ScopeSpans SchemaURL: \n"
                                 "InstrumentationScope lib 1.2\n"
                                 "Span #0\n"
                                 "    Trace ID       : 0102030405060708090a0b0c0d0e0f10\n"
                                 "    Parent ID      : \n"
                                 "    ID             : 0102030405060708\n"
                                 "    Name           : GET /\n"
                                 "    Kind           : Server\n"
                                 "    Start time     : 2025-12-31 23:59:59.123456789 +0000 UTC\n"
                                 "    End time       : 2026-01-01 00:00:00.000000000 +0000 UTC\n"
                                 "    Status code    : Error\n"
                                 "    Status message : bad\n"
                                 "Attributes:\n"
                                 "     -> i: Int(-3)\n"
                                 "     -> list: Slice([\"a\\nb\",0.5,null])\n"
                                 "     -> map: Map({\"k\":true})\n"
                                 "     -> none: Empty()\n"
                                 "Events:\n"
                                 "SpanEvent #0\n"
                                 "     -> Name: ev\n"
                                 "     -> Timestamp: 2025-12-31 23:59:59.500000000 +0000 UTC\n"
                                 "     -> DroppedAttributesCount: 0\n"
                                 "     -> Attributes:\n"
                                 "         -> e: Bytes(0102)\n"
                                 "Links:\n"
                                 "SpanLink #0\n"
                                 "     -> Trace ID: 0102030405060708090a0b0c0d0e0f10\n"
                                 "     -> ID: 0807060504030201\n"
                                 "     -> TraceState: \n"
                                 "     -> DroppedAttributesCount: 0\n"
                                 "ResourceSpans #1\n"
                                 "Resource SchemaURL: s\n");
    fixture_deinit(&f);
}

static const char profiles_json[] =
    "{\"resourceProfiles\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"
    "\"stringValue\":\"shop\"}}]},\"scopeProfiles\":"
    "[{\"scope\":{\"name\":\"prof\"},\"profiles\":[{\"sampleType\":{\"typeStrindex\":1,"
    "\"unitStrindex\":2},\"samples\":[{\"stackIndex\":1,"
    "\"attributeIndices\":[1],\"linkIndex\":1,\"values\":[\"10\"],\"timestampsUnixNano\":["
    "\"1767225599000000000\"]},{\"values\":[\"1\",\"2\"],"
    "\"timestampsUnixNano\":[\"1767225599000000000\",\"1767225599000000001\"]}],\"timeUnixNano\":"
    "\"1767225599000000000\",\"durationNano\":"
    "\"1500000000\",\"periodType\":{\"typeStrindex\":1,\"unitStrindex\":2},\"period\":\"7\","
    "\"profileId\":\"000102030405060708090a0b0c0d0e0f\","
    "\"attributeIndices\":[1]}]}]}],\"dictionary\":{\"mappingTable\":[{},{\"filenameStrindex\":7}],"
    "\"locationTable\":[{},{\"mappingIndex\":1,"
    "\"lines\":[{\"functionIndex\":1,\"line\":\"42\"},{\"functionIndex\":2}]},{\"address\":\"255\"}"
    "],\"functionTable\":[{},{\"nameStrindex\":3,"
    "\"filenameStrindex\":4},{\"systemNameStrindex\":3}],\"linkTable\":[{},{\"traceId\":"
    "\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":"
    "\"0102030405060708\"}],\"stringTable\":[\"\",\"cpu\",\"ns\",\"main\",\"main.go\",\"thread\","
    "\"By\",\"bin\"],\"attributeTable\":[{},{\"keyStrindex\":5,"
    "\"value\":{\"intValue\":\"9\"},\"unitStrindex\":6}],\"stackTable\":[{},{\"locationIndices\":["
    "1,2]}]}}";

static void shows_profiles(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place = start(&f, "verbosity: normal", SIGNAL_PROFILES);
    show(&f, place, profiles_json, 2);
    assert_string_equal(shown(), "Profiles\t{\"resource profiles\": 1, \"sample records\": 2}\n"
                                 "ResourceProfiles #0 service.name=shop\n"
                                 "ScopeProfiles #0 prof\n"
                                 "000102030405060708090a0b0c0d0e0f samples=2 thread=9\n");
    fixture_deinit(&f);
}

static void shows_all_of_a_profile(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place = start(&f, "verbosity: detailed", SIGNAL_PROFILES);
    show(&f, place, profiles_json, 2);
    assert_string_equal(shown(),
                        "Profiles\t{\"resource profiles\": 1, \"sample records\": 2}\n"
                        "ResourceProfiles #0\n"
                        "Resource SchemaURL: \n"
                        "Resource attributes:\n"
                        "     -> service.name: Str(shop)\n"
                        "ScopeProfiles #0\n"
                        "ScopeProfiles SchemaURL: \n"
                        "InstrumentationScope prof\n"
                        "Profile #0\n"
                        "    Profile ID     : 000102030405060708090a0b0c0d0e0f\n"
                        "    Start time     : 2025-12-31 23:59:59.000000000 +0000 UTC\n"
                        "    Duration       : 1.5s\n"
                        "    Sample type    : cpu ns\n"
                        "    Period type    : cpu ns\n"
                        "    Period         : 7\n"
                        "    Dropped attrs  : 0\n"
                        "    Attributes:\n"
                        "     -> thread: Int(9) By\n"
                        "    Sample #0\n"
                        "        Values         : 10\n"
                        "        Timestamps     : 2025-12-31 23:59:59.000000000 +0000 UTC\n"
                        "        Trace ID       : 0102030405060708090a0b0c0d0e0f10\n"
                        "        Span ID        : 0102030405060708\n"
                        "        Attributes:\n"
                        "         -> thread: Int(9) By\n"
                        "        Stack (leaf first):\n"
                        "             main main.go:42 (bin)\n"
                        "             main (bin)\n"
                        "             0xff\n"
                        "    Sample #1\n"
                        "        Values         : 1, 2\n"
                        "        Timestamps     : 2025-12-31 23:59:59.000000000 +0000 UTC, "
                        "2025-12-31 23:59:59.000000001 +0000 UTC\n");
    fixture_deinit(&f);
}

static void samples_what_it_shows(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place =
        start(&f, "sampling_initial: 2, sampling_thereafter: 3", SIGNAL_TRACES);
    unsigned lines = 0;
    for (int i = 0; i < 9; i++) /* the 1st, 2nd, 5th and 8th */
        show(&f, place, traces_json, 1);
    fixture_advance(&f, 1000000000);
    show(&f, place, traces_json, 1);
    for (const char *c = shown(); *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 5);
    assert_int_equal(
        (int)metrics_value(f.process.metrics, "otelcol_exporter_sent_spans", "exporter=\"debug\""),
        10);
    fixture_deinit(&f);
}

static bool is_abandoned(const struct receipt *receipt)
{
    (void)receipt;
    return true;
}

/* A job prints a large batch; a manual worker gets its end as a message. */
static void shows_in_order_behind_a_large_batch(void **state)
{
    (void)state;
    enum { LARGE_SIZE = 100000 };
    struct fixture f;
    struct probe probes[4];
    static char name[LARGE_SIZE + 1];
    memset(name, 'n', LARGE_SIZE);
    struct fixture_place *place =
        start(&f, "verbosity: normal, sampling_initial: 10", SIGNAL_TRACES);
    const char *const names[] = {"first", name, "third", "fourth"};
    for (int i = 0; i < 4; i++) {
        struct buffer *span = fixture_span(names[i]);
        fixture_consume(&f, place->nodes[0], buffer_slice(span), 1, &probes[i]);
        buffer_unref(span);
    }
    assert_int_equal(probes[0].settled, 1);
    assert_int_equal(probes[1].settled + probes[2].settled + probes[3].settled, 0);
    assert_false(fixture_is_idle(place->nodes[0]));
    probes[2].receipt.is_abandoned = is_abandoned;
    fixture_advance(&f, 0);
    assert_true(fixture_is_idle(place->nodes[0]));
    assert_true(verdict_is_ok(&probes[1].verdict) && verdict_is_ok(&probes[3].verdict));
    assert_int_equal(probes[2].verdict.code, verdict_sender_is_gone.code);
    const char *first = strstr(shown(), "first"), *second = strstr(shown(), "nnn"),
               *fourth = strstr(shown(), "fourth");
    assert_true(first && second && fourth && first < second && second < fourth);
    assert_null(strstr(shown(), "third"));
    fixture_deinit(&f);
}

/* A batch is acknowledged once it is queued; two of them are printed as one. */
static void shows_what_was_queued(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place =
        start(&f, "verbosity: normal, sending_queue: {batch: {flush_timeout: 1s}}", SIGNAL_TRACES);
    show(&f, place, traces_json, 1);
    show(&f, place, traces_json, 1);
    assert_string_equal(shown(), "");
    assert_false(fixture_is_idle(place->nodes[0]));
    fixture_advance(&f, 1000000000);
    assert_non_null(strstr(shown(), "Traces\t{\"resource spans\": 4, \"spans\": 2}\n"));
    assert_true(fixture_is_idle(place->nodes[0]));
    assert_int_equal(
        (int)metrics_value(f.process.metrics, "otelcol_exporter_sent_spans", "exporter=\"debug\""),
        2);
    /* One is waiting when the node stops. */
    show(&f, place, traces_json, 1);
    fixture_deinit(&f);
}

static void nop_takes_everything(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    struct fixture_place *place =
        fixture_place(&f, &nop_exporter_type, "nop", "exporters: {nop: }", "traces", SIGNAL_TRACES);
    show(&f, place, traces_json, 1);
    fixture_deinit(&f);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_file, remove_file)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(shows_counts),
        TEST(shows_a_line_per_span),
        TEST(shows_all_of_a_span),
        TEST(shows_profiles),
        TEST(shows_all_of_a_profile),
        TEST(samples_what_it_shows),
        TEST(shows_in_order_behind_a_large_batch),
        TEST(shows_what_was_queued),
        cmocka_unit_test(nop_takes_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

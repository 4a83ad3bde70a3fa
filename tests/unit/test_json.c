#include "core/base/budget.h"
#include "core/base/memory.h"
#include "core/data/json.h"
#include "core/data/json_schema.h"
#include "core/data/wire.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "tests/unit/captures.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

static struct buffer *to_protobuf(enum json_message message, const char *json, struct error *err)
{
    bool over_budget = true;
    struct buffer *result =
        json_to_protobuf(message, slice_of_string(json), NULL, &over_budget, err);
    assert_false(over_budget);
    return result;
}

static char *to_json(enum json_message message, struct slice protobuf)
{
    struct text text = {0};
    json_from_protobuf(message, protobuf, &text);
    return text.data;
}

/* ---- round trips: {input, output} ---- */

#define SPANS(span) "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[" span "]}]}]}"
#define VALUE(value) SPANS("{\"attributes\":[{\"key\":\"k\",\"value\":" value "}]}")
#define PROFILES(profile)                                                                          \
    "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[" profile "]}]}]}"
#define DICTIONARY(tables) "{\"dictionary\":{" tables "}}"
#define POINTS(data, point)                                                                        \
    "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"" data "\":{\"dataPoints\":[" point \
    "]}}]}]}]}"
#define RECORDS(record) "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[" record "]}]}]}"
#define TRACE_ID_HEX "0102030405060708090a0b0c0d0e0fff"

static const struct round_trip {
    enum json_message message;
    const char *in;
    const char *out; /* NULL: equal to the input */
} round_trips[] = {
    {JSON_METRICS_REQUEST, POINTS("gauge", "{\"timeUnixNano\":\"1\",\"asDouble\":0}"), NULL},
    {JSON_METRICS_REQUEST, POINTS("sum", "{\"asInt\":-3}"), POINTS("sum", "{\"asInt\":\"-3\"}")},
    {JSON_METRICS_REQUEST,
     POINTS("gauge", "{\"exemplars\":[{\"traceId\":\"" TRACE_ID_HEX "\",\"asInt\":\"0\"}]}"), NULL},
    {JSON_METRICS_REQUEST,
     POINTS("histogram", "{\"count\":\"3\",\"sum\":0,\"bucketCounts\":[\"1\",\"0\",\"2\"],"
                         "\"explicitBounds\":[0.5,1e+300],\"max\":-1.5}"),
     NULL},
    {JSON_METRICS_REQUEST, POINTS("histogram", "{\"sum\":null,\"bucketCounts\":[1,2]}"),
     POINTS("histogram", "{\"bucketCounts\":[\"1\",\"2\"]}")},
    {JSON_METRICS_REQUEST,
     POINTS("exponentialHistogram", "{\"scale\":-2147483648,\"positive\":{\"offset\":2147483647,"
                                    "\"bucketCounts\":[\"18446744073709551615\"]},"
                                    "\"zeroThreshold\":0.25}"),
     NULL},
    {JSON_METRICS_REQUEST,
     POINTS("exponentialHistogram", "{\"scale\":\"-1\",\"negative\":{\"offset\":0}}"),
     POINTS("exponentialHistogram", "{\"scale\":-1,\"negative\":{}}")},
    {JSON_METRICS_REQUEST,
     POINTS("summary", "{\"quantileValues\":[{\"quantile\":1,\"value\":\"NaN\"},{}]}"), NULL},
    {JSON_METRICS_RESPONSE,
     "{\"partialSuccess\":{\"rejectedDataPoints\":\"3\",\"errorMessage\":\"m\"}}", NULL},
    {JSON_LOGS_REQUEST,
     RECORDS("{\"timeUnixNano\":\"1\",\"severityNumber\":9,\"severityText\":\"INFO\",\"body\":{"
             "\"stringValue\":\"\"},"
             "\"flags\":1,\"traceId\":\"" TRACE_ID_HEX "\",\"eventName\":\"e\"}"),
     NULL},
    {JSON_LOGS_REQUEST, RECORDS("{\"severityNumber\":\"SEVERITY_NUMBER_WARN2\"}"),
     RECORDS("{\"severityNumber\":14}")},
    {JSON_LOGS_RESPONSE, "{\"partialSuccess\":{\"rejectedLogRecords\":\"3\"}}", NULL},
    {JSON_TRACES_REQUEST, "{}", NULL},
    {JSON_TRACES_REQUEST, "null", "{}"},
    {JSON_TRACES_REQUEST, " \t\r\n{ } trailing [", "{}"},
    {JSON_TRACES_REQUEST, "{\"resourceSpans\":[]}", "{}"},
    {JSON_TRACES_REQUEST, "{\"resourceSpans\":null}", "{}"},
    {JSON_TRACES_REQUEST, "{\"resourceSpans\":[{},{\"resource\":{}}]}", NULL},
    {JSON_TRACES_REQUEST, "{\"resourceSpans\":[null]}", "{\"resourceSpans\":[{}]}"},
    {JSON_TRACES_REQUEST,
     "{\"resource_spans\":[{\"scope_spans\":[{\"spans\":[{\"dropped_links_count\":1}]}]}]}",
     SPANS("{\"droppedLinksCount\":1}")},
    {JSON_TRACES_REQUEST,
     "{\"a\":{\"b\":[1,\"\\\"\",{\"c\":null}]},\"resourceSpans\":[{\"x\":-1.5e+3}]}",
     "{\"resourceSpans\":[{}]}"},
    {JSON_TRACES_REQUEST, "{\"resource\\u0053pans\":[{}]}", "{\"resourceSpans\":[{}]}"},
    {JSON_TRACES_REQUEST, "{\"resourceSpans\\u0000\":[{}]}", "{}"},
    /* ids */
    {JSON_TRACES_REQUEST,
     SPANS("{\"traceId\":\"" TRACE_ID_HEX
           "\",\"spanId\":\"0102030405060708\",\"parentSpanId\":\"ffffffffffffffff\"}"),
     NULL},
    {JSON_TRACES_REQUEST,
     SPANS("{\"traceId\":\"0102030405060708090A0B0C0D0E0FFF\",\"spanId\":\"\"}"),
     SPANS("{\"traceId\":\"" TRACE_ID_HEX "\"}")},
    /* numbers */
    {JSON_TRACES_REQUEST, SPANS("{\"startTimeUnixNano\":\"18446744073709551615\"}"), NULL},
    {JSON_TRACES_REQUEST, SPANS("{\"startTimeUnixNano\":18446744073709551615}"),
     SPANS("{\"startTimeUnixNano\":\"18446744073709551615\"}")},
    {JSON_TRACES_REQUEST, SPANS("{\"startTimeUnixNano\":5.0,\"flags\":\"4294967295\"}"),
     SPANS("{\"startTimeUnixNano\":\"5\",\"flags\":4294967295}")},
    {JSON_TRACES_REQUEST,
     SPANS("{\"startTimeUnixNano\":\"0\",\"flags\":0,\"name\":\"\",\"kind\":0}"), SPANS("{}")},
    {JSON_TRACES_REQUEST, SPANS("{\"kind\":\"SPAN_KIND_SERVER\",\"status\":{\"code\":2}}"),
     SPANS("{\"kind\":2,\"status\":{\"code\":2}}")},
    {JSON_TRACES_REQUEST, SPANS("{\"kind\":99}"), NULL},
    {JSON_TRACES_REQUEST, SPANS("{\"kind\":\"2\"}"), SPANS("{\"kind\":2}")},
    /* values: a oneof keeps its default */
    {JSON_TRACES_REQUEST, VALUE("{\"stringValue\":\"\"}"), NULL},
    {JSON_TRACES_REQUEST, VALUE("{\"boolValue\":false}"), NULL},
    {JSON_TRACES_REQUEST, VALUE("{\"intValue\":\"0\"}"), NULL},
    {JSON_TRACES_REQUEST, VALUE("{\"intValue\":-9223372036854775808}"),
     VALUE("{\"intValue\":\"-9223372036854775808\"}")},
    {JSON_TRACES_REQUEST, VALUE("{\"doubleValue\":0}"), NULL},
    {JSON_TRACES_REQUEST, VALUE("{\"doubleValue\":\"NaN\"}"), NULL},
    {JSON_TRACES_REQUEST, VALUE("{\"doubleValue\":\"-Infinity\"}"), NULL},
    {JSON_TRACES_REQUEST, VALUE("{\"doubleValue\":\"Infinity\"}"), NULL},
    {JSON_TRACES_REQUEST, VALUE("{\"doubleValue\":0.1}"), NULL},
    {JSON_TRACES_REQUEST, VALUE("{\"doubleValue\":\"1e0\"}"), VALUE("{\"doubleValue\":1}")},
    {JSON_TRACES_REQUEST, VALUE("{\"doubleValue\":-1.7976931348623157e+308}"), NULL},
    {JSON_TRACES_REQUEST, VALUE("{\"doubleValue\":5e-324}"),
     VALUE("{\"doubleValue\":4.94065645841247e-324}")},
    {JSON_TRACES_REQUEST, VALUE("{\"arrayValue\":{}}"), NULL},
    {JSON_TRACES_REQUEST, VALUE("{\"arrayValue\":{\"values\":[{\"intValue\":\"1\"},{}]}}"), NULL},
    {JSON_TRACES_REQUEST,
     VALUE("{\"kvlistValue\":{\"values\":[{\"key\":\"a\",\"value\":{\"boolValue\":true}}]}}"),
     NULL},
    {JSON_TRACES_REQUEST, VALUE("{}"), NULL},
    {JSON_TRACES_REQUEST, VALUE("null"), SPANS("{\"attributes\":[{\"key\":\"k\"}]}")},
    /* bytes */
    {JSON_TRACES_REQUEST, VALUE("{\"bytesValue\":\"\"}"), NULL},
    {JSON_TRACES_REQUEST, VALUE("{\"bytesValue\":\"+/8=\"}"), NULL},
    {JSON_TRACES_REQUEST, VALUE("{\"bytesValue\":\"-_8\"}"), VALUE("{\"bytesValue\":\"+/8=\"}")},
    {JSON_TRACES_REQUEST, VALUE("{\"bytesValue\":\"+\\/8\"}"), VALUE("{\"bytesValue\":\"+/8=\"}")},
    {JSON_TRACES_REQUEST, VALUE("{\"bytesValue\":\"AA==\"}"), NULL},
    {JSON_TRACES_REQUEST, VALUE("{\"bytesValue\":\"AAEC\"}"), NULL},
    /* strings */
    {JSON_TRACES_REQUEST, SPANS("{\"name\":\"\\u00e4\\ud83d\\ude00\\n\\/\\\"\\\\\"}"),
     SPANS("{\"name\":\"\xc3\xa4\xf0\x9f\x98\x80\\n/\\\"\\\\\"}")},
    {JSON_TRACES_REQUEST, SPANS("{\"name\":\"a\\ud83dz\\ude00\\ud83d\"}"),
     SPANS("{\"name\":\"a\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd\"}")},
    {JSON_TRACES_REQUEST, SPANS("{\"name\":\"\\u0000\\b\\f\"}"),
     SPANS("{\"name\":\"\\u0000\\u0008\\u000c\"}")},
    /* profiles */
    {JSON_PROFILES_REQUEST,
     PROFILES("{\"sampleType\":{},\"samples\":[{\"stackIndex\":1,\"attributeIndices\":[0,1],"
              "\"linkIndex\":1,"
              "\"values\":[\"1\",\"-1\"],\"timestampsUnixNano\":[\"0\",\"18446744073709551615\"]}],"
              "\"timeUnixNano\":\"5\",\"profileId\":\"" TRACE_ID_HEX
              "\",\"originalPayload\":\"AA==\"}"),
     NULL},
    {JSON_PROFILES_REQUEST,
     PROFILES("{\"samples\":[{\"values\":[1,\"2\"],\"attributeIndices\":[]}]}"),
     PROFILES("{\"samples\":[{\"values\":[\"1\",\"2\"]}]}")},
    {JSON_PROFILES_REQUEST,
     DICTIONARY("\"mappingTable\":[{}],\"linkTable\":[{},{\"traceId\":\"" TRACE_ID_HEX
                "\",\"spanId\":\"0000000000000001\"}],\"stringTable\":[\"\",\"x\"],"
                "\"attributeTable\":[{\"value\":{}}]"),
     NULL},
    /* answers */
    {JSON_TRACES_RESPONSE, "{\"partialSuccess\":{}}", NULL},
    {JSON_PROFILES_RESPONSE,
     "{\"partialSuccess\":{\"rejectedProfiles\":\"3\",\"errorMessage\":\"no\"}}", NULL},
    {JSON_STATUS, "{\"code\":14,\"message\":\"later\"}", NULL},
    {JSON_STATUS, "{\"code\":14,\"details\":[{\"@type\":\"x\",\"y\":[1]}]}", "{\"code\":14}"},
};

static void reads_and_writes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof round_trips / sizeof round_trips[0]; i++) {
        const struct round_trip *c = &round_trips[i];
        struct error err = {0};
        struct buffer *protobuf = to_protobuf(c->message, c->in, &err);
        if (!protobuf)
            fail_msg("%s: %s", c->in, err.text);
        assert(protobuf); /* for static analysers, which do not know that a failure ends the test */
        char *json = to_json(c->message, buffer_slice(protobuf));
        assert_string_equal(json, c->out ? c->out : c->in);
        free(json);
        buffer_unref(protobuf);
    }
}

/* ---- refusals ---- */

static const struct refusal {
    const char *in;
    const char *error;
} refusals[] = {
    {"", "unexpected end"},
    {"  ", "unexpected end"},
    {"[]", "not an object"},
    {"\"x\"", "not an object"},
    {"{", "invalid JSON at byte 1: a member of an object without a name"},
    {"{\"a\"", "invalid JSON at byte 4: expected : after the name of a member"},
    {"{\"a\":", "invalid JSON at byte 5: unexpected end"},
    {"{\"a\":1", "invalid JSON at byte 6: expected , or } after a member of an object"},
    {"{\"a\":1,}", "invalid JSON at byte 7: a member of an object without a name"},
    {"{\"a\":tru}", "invalid JSON at byte 5: not a value"},
    {"{\"a\":-}", "invalid JSON at byte 6: a number without digits"},
    {"{\"a\":1.}", "invalid JSON at byte 7: a number without digits"},
    {"{\"a\":01}", "invalid JSON at byte 6: expected , or } after a member of an object"},
    {"{\"a\":[1 2]}", "invalid JSON at byte 8: expected , or ] after an element of a list"},
    {"{\"a\":\"\x01\"}", "invalid JSON at byte 7: a control character in a string"},
    {"{\"a\":\"\\x\"}", "invalid JSON at byte 8: an unknown escape in a string"},
    {"{\"a\":\"\\u12g4\"}", "invalid JSON at byte 8: \\u without four hex digits"},
    {"{\"a\":\"\\", "invalid JSON at byte 7: unterminated string"},
    {"{\"resourceSpans\":{}}", "resourceSpans: not a list"},
    {"{\"resourceSpans\":[{},5]}", "resourceSpans[1]: not an object"},
    {"{\"resourceSpans\":[],\"resource_spans\":[]}", "resourceSpans: given twice"},
    {SPANS("{\"traceId\":\"0102030405060708090a0b0c0d0e0ff\"}"),
     "resourceSpans[0].scopeSpans[0].spans[0].traceId: has 31 hex digits, must have 32"},
    {SPANS("{},{\"spanId\":\"010203040506070x\"}"),
     "resourceSpans[0].scopeSpans[0].spans[1].spanId: not a hex digit at position 15"},
    {SPANS("{\"spanId\":5}"), "resourceSpans[0].scopeSpans[0].spans[0].spanId: not a string"},
    {SPANS("{\"name\":5}"), "resourceSpans[0].scopeSpans[0].spans[0].name: not a string"},
    {SPANS("{\"flags\":true}"), "resourceSpans[0].scopeSpans[0].spans[0].flags: not a number"},
    {SPANS("{\"flags\":5.5}"),
     "resourceSpans[0].scopeSpans[0].spans[0].flags: not an integer of at most 64 bits"},
    {SPANS("{\"flags\":\"5x\"}"), "resourceSpans[0].scopeSpans[0].spans[0].flags: not a number"},
    {SPANS("{\"flags\":\"\"}"), "resourceSpans[0].scopeSpans[0].spans[0].flags: not a number"},
    {SPANS("{\"flags\":4294967296}"),
     "resourceSpans[0].scopeSpans[0].spans[0].flags: out of range"},
    {SPANS("{\"flags\":-1}"), "resourceSpans[0].scopeSpans[0].spans[0].flags: out of range"},
    {SPANS("{\"endTimeUnixNano\":18446744073709551616}"),
     "resourceSpans[0].scopeSpans[0].spans[0].endTimeUnixNano: not an integer of at most 64 bits"},
    {SPANS("{\"kind\":\"SERVER\"}"),
     "resourceSpans[0].scopeSpans[0].spans[0].kind: neither a number nor the name of a SpanKind"},
    {VALUE("{\"boolValue\":1}"), "resourceSpans[0].scopeSpans[0].spans[0].attributes[0].value."
                                 "boolValue: neither true nor false"},
    {VALUE("{\"doubleValue\":1e999}"),
     "resourceSpans[0].scopeSpans[0].spans[0].attributes[0].value.doubleValue: out of range"},
    {VALUE("{\"doubleValue\":\"nan\"}"),
     "resourceSpans[0].scopeSpans[0].spans[0].attributes[0].value.doubleValue: not a number"},
    {VALUE("{\"bytesValue\":\"A\"}"),
     "resourceSpans[0].scopeSpans[0].spans[0].attributes[0].value.bytesValue: not base64"},
    {VALUE("{\"bytesValue\":\"A===\"}"),
     "resourceSpans[0].scopeSpans[0].spans[0].attributes[0].value.bytesValue: not base64"},
    {VALUE("{\"bytesValue\":\"AA=A\"}"),
     "resourceSpans[0].scopeSpans[0].spans[0].attributes[0].value.bytesValue: not base64"},
    {VALUE("{\"intValue\":\"9223372036854775808\"}"),
     "resourceSpans[0].scopeSpans[0].spans[0].attributes[0].value.intValue: out of range"},
    {VALUE("{\"intValue\":1,\"stringValue\":\"a\"}"),
     "resourceSpans[0].scopeSpans[0].spans[0].attributes[0].value.stringValue: cannot be combined "
     "with the value that is already set"},
};

static void refuses_with_the_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct error err = {0};
        struct buffer *protobuf = to_protobuf(JSON_TRACES_REQUEST, refusals[i].in, &err);
        if (protobuf)
            fail_msg("accepted: %s", refusals[i].in);
        assert_string_equal(err.text, refusals[i].error);
    }
}

/* ---- depth ---- */

/* Returns a request with `lists` nested lists as an attribute: 6 + 2 * lists levels of messages. */
static char *nested_lists(unsigned lists)
{
    struct text text = {0};
    text_append(&text, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"value\":");
    for (unsigned i = 0; i < lists; i++)
        text_append(&text, "{\"arrayValue\":{\"values\":[");
    text_append(&text, "{}");
    for (unsigned i = 0; i < lists; i++)
        text_append(&text, "]}}");
    text_append(&text, "}]}}]}");
    return text.data;
}

static bool accepts_lists(unsigned lists)
{
    struct error err = {0};
    char *json = nested_lists(lists);
    struct buffer *protobuf = to_protobuf(JSON_TRACES_REQUEST, json, &err);
    if (!protobuf)
        assert_non_null(strstr(err.text, "nested more than 100 messages deep"));
    buffer_unref(protobuf);
    free(json);
    return protobuf;
}

static void nests_up_to_the_limit(void **state)
{
    (void)state;
    assert_true(accepts_lists(47));
    assert_false(accepts_lists(48));
    assert_false(accepts_lists(100000));
    /* Also for skipped values. */
    struct text text = {0};
    struct error err = {0};
    text_append(&text, "{\"x\":");
    for (int i = 0; i < 1000000; i++)
        text_append(&text, "[");
    assert_null(to_protobuf(JSON_TRACES_REQUEST, text.data, &err));
    assert_non_null(strstr(err.text, "nested too deeply"));
    text_deinit(&text);
}

/* ---- budget ---- */

static void respects_the_budget(void **state)
{
    (void)state;
    struct text text = {0};
    text_append(&text, "{\"resourceSpans\":[");
    for (int i = 0; i < 10000; i++)
        text_append(&text, i ? ",{}" : "{}");
    text_append(&text, "]}");
    struct slice json = slice_of(text.data, text.size);
    for (size_t limit = 0; limit < 800000; limit += 20000) {
        struct budget budget = {.limit_bytes = limit + 1};
        struct error err = {0};
        bool over_budget = false;
        struct buffer *protobuf =
            json_to_protobuf(JSON_TRACES_REQUEST, json, &budget, &over_budget, &err);
        assert_true((protobuf != NULL) == !over_budget);
        buffer_unref(protobuf);
        assert_int_equal(budget_used(&budget), 0);
        if (limit > 700000)
            assert_non_null(protobuf);
    }
    text_deinit(&text);
}

/* ---- errors of ours ---- */

static void writes_retry_info(void **state)
{
    (void)state;
    Google__Protobuf__Duration delay = GOOGLE__PROTOBUF__DURATION__INIT;
    Google__Rpc__RetryInfo retry = GOOGLE__RPC__RETRY_INFO__INIT;
    Google__Protobuf__Any detail = GOOGLE__PROTOBUF__ANY__INIT;
    Google__Rpc__Status status = GOOGLE__RPC__STATUS__INIT;
    uint8_t packed[64], bytes[256];
    Google__Protobuf__Any *details[] = {&detail};
    delay.seconds = 1;
    delay.nanos = 500000000;
    retry.retry_delay = &delay;
    detail.type_url = (char *)(uintptr_t) "type.googleapis.com/google.rpc.RetryInfo";
    detail.value = (ProtobufCBinaryData){google__rpc__retry_info__pack(&retry, packed), packed};
    status.code = 8;
    status.message = (char *)(uintptr_t) "full";
    status.details = details;
    status.n_details = 1;
    char *json = to_json(JSON_STATUS, slice_of(bytes, google__rpc__status__pack(&status, bytes)));
    assert_string_equal(
        json, "{\"code\":8,\"message\":\"full\",\"details\":[{\"@type\":\"type.googleapis.com/"
              "google.rpc.RetryInfo\",\"retryDelay\":\"1.500000000s\"}]}");
    free(json);
}

/* ---- recorded requests ---- */

static const ProtobufCMessageDescriptor *descriptor_of(enum signal signal)
{
    return signal == SIGNAL_TRACES
               ? &opentelemetry__proto__collector__trace__v1__export_trace_service_request__descriptor
               : &opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__descriptor;
}

/* Reads and writes a request with protobuf-c: fields in order, without unknown ones. */
static struct buffer *canonical(enum signal signal, struct slice request)
{
    ProtobufCMessage *message =
        protobuf_c_message_unpack(descriptor_of(signal), NULL, request.size, request.data);
    assert_non_null(message);
    size_t size = protobuf_c_message_get_packed_size(message);
    struct buffer *buffer = buffer_new_charged(size, NULL);
    buffer->size = protobuf_c_message_pack(message, buffer->data);
    protobuf_c_message_free_unpacked(message, NULL);
    return buffer;
}

static struct buffer *there_and_back(enum json_message message, struct slice protobuf)
{
    struct text json = {0};
    struct error err = {0};
    bool over_budget;
    json_error_t problem;
    json_from_protobuf(message, protobuf, &json);
    json_t *tree =
        json_loadb(json.data, json.size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &problem);
    if (!tree)
        fail_msg("jansson: %s at %d", problem.text, problem.position);
    json_decref(tree);
    struct buffer *back =
        json_to_protobuf(message, slice_of(json.data, json.size), NULL, &over_budget, &err);
    if (!back)
        fail_msg("%s", err.text);
    assert(back);
    text_deinit(&json);
    return back;
}

static void check_capture(const struct capture *capture, void *context)
{
    unsigned *json_count = context;
    enum json_message message =
        capture->signal == SIGNAL_TRACES ? JSON_TRACES_REQUEST : JSON_PROFILES_REQUEST;
    struct slice request = capture->body;
    struct buffer *from_json = NULL;
    if (capture->json) {
        struct error err = {0};
        bool over_budget;
        from_json = json_to_protobuf(message, capture->body, NULL, &over_budget, &err);
        if (!from_json)
            fail_msg("%s: %s", capture->name, err.text);
        assert(from_json);
        request = buffer_slice(from_json);
        (*json_count)++;
    }
    struct buffer *back = there_and_back(message, request);
    struct buffer *expected = canonical(capture->signal, request),
                  *got = canonical(capture->signal, buffer_slice(back));
    /* It is canonical except for the order of the fields in the JSON. */
    if (!slice_equal(buffer_slice(expected), buffer_slice(got)) || back->size != got->size)
        fail_msg("%s differs", capture->name);
    buffer_unref(from_json);
    buffer_unref(back);
    buffer_unref(expected);
    buffer_unref(got);
}

static void keeps_recorded_requests(void **state)
{
    (void)state;
    unsigned json_count = 0;
    assert_true(captures_each(check_capture, &json_count) > 100);
    assert_true(json_count > 5);
}

/* ---- truncated anywhere, it is refused and nothing is read past its end ---- */

static void refuses_every_prefix(void **state)
{
    (void)state;
    static const char json[] = VALUE(
        "{\"arrayValue\":{\"values\":[{\"stringValue\":\"\\u00e4\\n\"},{\"intValue\":\"-12\"},"
        "{\"doubleValue\":1.5e3},{\"bytesValue\":\"AA==\"},{\"boolValue\":false}]}}");
    for (size_t size = 0; size < sizeof json - 1; size++) {
        struct error err = {0};
        bool over_budget;
        uint8_t *copy =
            memory_alloc(size ? size : 1); /* so that a sanitizer detects reads past its end */
        memcpy(copy, json, size);
        assert_null(
            json_to_protobuf(JSON_TRACES_REQUEST, slice_of(copy, size), NULL, &over_budget, &err));
        assert_true(err.text[0]);
        free(copy);
    }
}

/* ---- names of fields ---- */

static void finds_fields_by_both_names(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *span = &opentelemetry__proto__trace__v1__span__descriptor;
    for (unsigned first = 0; first <= span->n_fields; first++)
        for (unsigned i = 0; i < span->n_fields; i++) {
            const ProtobufCFieldDescriptor *field = &span->fields[i];
            char camel[JSON_NAME_MAX];
            size_t size = json_schema_name(field, camel);
            assert_ptr_equal(json_schema_field(span, slice_of(camel, size), first), field);
            assert_ptr_equal(json_schema_field(span, slice_of_string(field->name), first), field);
        }
}

static void knows_no_other_names(void **state)
{
    (void)state;
    static const struct slice others[] = {
        {NULL, 0},          SLICE("nam"),         SLICE("names"),      SLICE("name\0"),
        SLICE("Name"),      SLICE("trace_Id"),    SLICE("traceID"),    SLICE("traceid"),
        SLICE("trace_id_"), SLICE("parentSpan_"), SLICE("parentSpan"), SLICE("\0"),
    };
    const ProtobufCMessageDescriptor *span = &opentelemetry__proto__trace__v1__span__descriptor;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        for (unsigned first = 0; first <= span->n_fields; first++)
            assert_null(json_schema_field(span, others[i], first));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_and_writes),      cmocka_unit_test(refuses_with_the_place),
        cmocka_unit_test(nests_up_to_the_limit), cmocka_unit_test(respects_the_budget),
        cmocka_unit_test(writes_retry_info),     cmocka_unit_test(keeps_recorded_requests),
        cmocka_unit_test(refuses_every_prefix),  cmocka_unit_test(finds_fields_by_both_names),
        cmocka_unit_test(knows_no_other_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

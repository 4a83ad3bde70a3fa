#include "receivers/pyroscope/push.h"

#include "core/data/json.h"
#include "core/data/wire_writer.h"
#include "tests/unit/pyroscope_fixture.h"
#include "tests/unit/wire_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* sample type cpu/nanoseconds, one sample of `main` with value 7 */
#define PPROF                                                                                      \
    "1{1=1 2=2} 2{1[1] 2[7]} 4{1=1 4{1=1}} 5{1=1 2=3} 6\"\" 6\"cpu\" 6\"nanoseconds\" 6\"main\""
#define LABEL(NAME, VALUE) " 1{1\"" NAME "\" 2\"" VALUE "\"}"
#define SAMPLE " 2{1{" PPROF "} 2\"some id\"}"
#define CPU LABEL("__name__", "process_cpu")

static void word(struct pyroscope_request *request, const char *notation, struct text *encoded)
{
    *encoded = wire_text(notation);
    pyroscope_word(request, NULL, "application/proto", wire_text_slice(encoded));
}

/* Appends the result of a push: the request as JSON, or the refusal. */
static void push(const struct pyroscope_request *request, struct text *out)
{
    struct pyroscope_result result;
    if (!pyroscope_push(request, &result))
        text_printf(out, "error: %s", result.why.text);
    else if (result.samples > 0)
        json_from_protobuf(JSON_PROFILES_REQUEST, buffer_slice(result.profiles), out);
    pyroscope_result_deinit(&result);
}

static void push_text(const char *notation, struct text *out)
{
    struct pyroscope_request request;
    struct text encoded;
    word(&request, notation, &encoded);
    push(&request, out);
    pyroscope_request_deinit(&request);
    text_deinit(&encoded);
}

static void assert_contains(const struct text *text, const char *part)
{
    if (!strstr(text_string(text), part))
        fail_msg("no \"%s\" in:\n%s", part, text_string(text));
}

static void labels_become_what_they_mean(void **state)
{
    (void)state;
    static const struct {
        const char *labels;
        const char *expected[4];
        const char *absent;
    } cases[] = {
        {CPU LABEL("service_name", "shop"),
         {"service.name", "shop", "process_cpu"},
         "service_name"},
        {LABEL("__name__", "godeltaprof_memory") LABEL("service_name", "shop"),
         {"memory"},
         "godeltaprof_"},
        {CPU, {"service.name", "unknown_service"}, NULL},
        {CPU LABEL("service.name", "other") LABEL("service_name", "shop"), {"shop"}, "other"},
        {CPU LABEL("service_namespace", "eu"), {"service.namespace"}, "service_namespace"},
        {CPU LABEL("__session_id__", "5"), {"__session_id__"}, NULL},
        {CPU LABEL("__delta__", "false"), {NULL}, "__delta__"},
        {CPU LABEL("otel.scope.name", "sdk") LABEL("otel.scope.version", "v9"),
         {"sdk", "v9"},
         "otel.scope"},
        {CPU LABEL("region", "eu-1"), {"region", "eu-1"}, NULL},
        /* The label belongs to the whole series. */
        {CPU LABEL("span_id", "00f067aa0ba902b7")
             LABEL("trace_id", "4bf92f3577b34da6a3ce929d0e0e4736"),
         {"00f067aa0ba902b7", "4bf92f3577b34da6a3ce929d0e0e4736"},
         "span_id"},
        {CPU LABEL("span_id", "none"), {"span_id", "none"}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text notation = {0}, out = {0};
        text_printf(&notation, "1{%s%s}", cases[i].labels, SAMPLE);
        push_text(text_string(&notation), &out);
        for (int j = 0; j < 4 && cases[i].expected[j]; j++)
            assert_contains(&out, cases[i].expected[j]);
        if (cases[i].absent && strstr(text_string(&out), cases[i].absent))
            fail_msg("\"%s\" in:\n%s", cases[i].absent, text_string(&out));
        text_deinit(&notation);
        text_deinit(&out);
    }
}

static void what_is_wrong_is_told_with_series_and_sample(void **state)
{
    (void)state;
    static const struct {
        const char *notation, *expected;
    } cases[] = {
        {"1{" CPU SAMPLE "} 1{" LABEL("a", "b") SAMPLE "}",
         "error: series[1]: the label __name__ is missing"},
        {"1{" LABEL("__name__", "") SAMPLE "}", "error: series[0]: the label __name__ is missing"},
        {"1{" CPU LABEL("a", "b") LABEL("a", "c") "}", "error: series[0]: label a is given twice"},
        {"1{" CPU " 1{2\"b\"}}", "error: series[0]: a label without a name"},
        {"1{" CPU " 1{1xff 2\"b\"}}", "error: series[0]: a label's name is not valid UTF-8"},
        {"1{" CPU " 1{1\"a\" 2xff}}", "error: series[0]: label a: its value is not valid UTF-8"},
        {"1{" CPU " 1=5}", "error: series[0]: a label is not a LabelPair message"},
        {"1{" CPU " 1{1=5}}", "error: series[0]: a label is not a LabelPair message"},
        {"1{" CPU " 2=5}", "error: series[0]: samples are not messages"},
        {"1=5", "error: series are not messages"},
        {"1{" CPU SAMPLE "} !0a", "error: series[1]: broken protobuf"},
        {"1{!0a05}", "error: series[0]: broken protobuf"},
        {"1{" CPU LABEL("service_name", "shop") SAMPLE " 2{1=5}}",
         "error: series[0] (process_cpu of shop).samples[1].raw_profile: the message that contains "
         "it is malformed"},
        {"1{" CPU SAMPLE " 2{1x1f8b00}}",
         "error: series[0] (process_cpu of unknown_service).samples[1].raw_profile: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text out = {0};
        push_text(cases[i].notation, &out);
        if (strncmp(text_string(&out), cases[i].expected, strlen(cases[i].expected)) != 0)
            assert_string_equal(text_string(&out), cases[i].expected);
        text_deinit(&out);
    }
    /* The message ends with the reader's own text. */
    struct text out = {0};
    push_text("1{" CPU SAMPLE " 2{1{1{1=1 2=9} 6\"\" 6\"a\"}}}", &out);
    assert_contains(&out, "samples[1].raw_profile: ");
    assert_contains(&out, "9");
    text_deinit(&out);
}

static void labels_are_bounded(void **state)
{
    (void)state;
    static const struct {
        int labels, name, value;
        const char *expected;
    } cases[] = {
        {SERIES_LABELS_MAX - 1, 1, 1, NULL},
        {SERIES_LABELS_MAX, 1, 1, "101 labels, at most 100 are allowed"},
        {3 * SERIES_LABELS_MAX, 1, 1, "101 labels, at most 100 are allowed"},
        {1, SERIES_NAME_MAX_BYTES - 8, SERIES_VALUE_MAX_BYTES, NULL},
        {1, SERIES_NAME_MAX_BYTES - 7, 1, "its name has 1025 bytes, at most 1024 are allowed"},
        {1, 1, SERIES_VALUE_MAX_BYTES + 1, "its value has 2049 bytes, at most 2048 are allowed"},
    };
    char long_text[SERIES_VALUE_MAX_BYTES + 2];
    memset(long_text, 'x', sizeof long_text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text notation = {0}, out = {0};
        text_append(&notation, "1{" CPU);
        for (int j = 0; j < cases[i].labels; j++)
            text_printf(&notation, " 1{1\"%08d%.*s\" 2\"%.*s\"}", j, cases[i].name, long_text,
                        cases[i].value, long_text);
        text_append(&notation, SAMPLE "}");
        push_text(text_string(&notation), &out);
        if (cases[i].expected)
            assert_contains(&out, cases[i].expected);
        else
            assert_null(strstr(text_string(&out), "error"));
        text_deinit(&notation);
        text_deinit(&out);
    }
}

static void the_service_is_named_by_labels_then_a_header_then_the_settings(void **state)
{
    (void)state;
    static const struct {
        const char *label, *header, *fallback, *expected;
    } cases[] = {
        {LABEL("service_name", "label"), "header", "setting", "label"},
        {"", "header", "setting", "header"},
        {LABEL("service_name", ""), "header", "setting", "header"},
        {"", NULL, "setting", "setting"},
        {"", "", "setting", "setting"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text notation = {0}, out = {0}, encoded, expected = {0};
        struct pyroscope_request request;
        text_printf(&notation, "1{%s%s%s}", CPU, cases[i].label, SAMPLE);
        word(&request, text_string(&notation), &encoded);
        request.settings.service_name_header_lower = "x-service";
        request.settings.default_service_name = cases[i].fallback;
        if (cases[i].header)
            pyroscope_add_header(&request, "x-service", cases[i].header);
        push(&request, &out);
        text_printf(&expected, "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"%s\"}}",
                    cases[i].expected);
        assert_contains(&out, text_string(&expected));
        pyroscope_request_deinit(&request);
        text_deinit(&notation);
        text_deinit(&encoded);
        text_deinit(&expected);
        text_deinit(&out);
    }
}

/* A series without samples, or samples without values: the answer is success, and the pipelines
 * get nothing. */
static void empty_pushes_are_no_errors(void **state)
{
    (void)state;
    static const char *const pushes[] = {"", "1{" CPU "}", "1{" CPU " 2{1{1{1=1} 6\"\" 6\"cpu\"}}}",
                                         "7=5 1{" CPU " 9\"later\"}"};
    for (size_t i = 0; i < sizeof pushes / sizeof pushes[0]; i++) {
        struct text out = {0};
        push_text(pushes[i], &out);
        assert_string_equal(text_string(&out), "");
        text_deinit(&out);
    }
}

/* ---- cut anywhere ---- */

typedef bool (*reader)(const struct pyroscope_request *request, struct pyroscope_result *result);

/* A push that is cut between two series is a valid, shorter push. */
static bool is_whole_push(struct slice whole, size_t size)
{
    struct wire_cursor cursor = wire_cursor(whole);
    struct wire_field field;
    bool is_whole = size == 0;
    while (!is_whole && wire_next(&cursor, &field))
        is_whole = field.end == whole.data + size;
    return is_whole;
}

static bool is_whole_body(struct slice whole, size_t size)
{
    return size == whole.size;
}

/* Cuts the body at every byte. A long body is cut at every byte near its ends, and at every 97th
 * byte between them. */
static void cut(struct pyroscope_request *request, reader read,
                bool (*is_whole)(struct slice whole, size_t size), bool all)
{
    struct slice whole = request->body;
    for (size_t size = 0; size <= whole.size; size++) {
        if (!all && size > 1024 && size + 1024 < whole.size && size % 97 != 0)
            continue;
        struct pyroscope_result result;
        request->body.size = size;
        if (read(request, &result) != is_whole(whole, size))
            fail_msg("%zu of %zu bytes: %s", size, whole.size, result.why.text);
        if (!result.profiles)
            assert_int_equal(result.why.code, GRPC_INVALID_ARGUMENT);
        pyroscope_result_deinit(&result);
    }
}

static void frame(const struct pyroscope_request *request, struct text *framed)
{
    uint32_t size = (uint32_t)request->body.size;
    char prefix[5] = {0, (char)(size >> 24), (char)(size >> 16), (char)(size >> 8), (char)size};
    text_append_slice(framed, slice_of(prefix, sizeof prefix));
    text_append_slice(framed, request->body);
}

static void a_push_cut_anywhere_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool all;
    } captures[] = {{"rust-grpc/pyroscope-push/001", true},
                    {"connect-push/pyroscope-push/001", false}};
    for (size_t i = 0; i < sizeof captures / sizeof captures[0]; i++) {
        bool all = captures[i].all;
        struct pyroscope_request request, other;
        pyroscope_load(&request, captures[i].name);
        struct text json = {0}, framed = {0};
        json_from_protobuf(JSON_PUSH_REQUEST, request.body, &json);
        frame(&request, &framed);
        pyroscope_word(&other, NULL, "application/json", slice_of(json.data, json.size));
        cut(&other, pyroscope_push_json, is_whole_body, all);
        other.body = slice_of(framed.data, framed.size);
        cut(&other, pyroscope_grpc_web, is_whole_body, all);
        cut(&request, pyroscope_push, is_whole_push, all);
        pyroscope_request_deinit(&request);
        pyroscope_request_deinit(&other);
        text_deinit(&json);
        text_deinit(&framed);
    }
}

/* ---- limits of decompression ---- */

static void samples_are_decompressed_under_one_limit(void **state)
{
    (void)state;
    struct text zeros = {0};
    for (int i = 0; i < 1 << 16; i++)
        text_append_slice(&zeros, SLICE("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
    struct slice plain = slice_of(zeros.data, zeros.size);
    struct buffer *bomb = compress_slices(COMPRESSION_GZIP, 0, false, &plain, 1, NULL);
    struct wire_writer series = {0};
    size_t begun = wire_writer_begin(&series, 1);
    struct text label = wire_text(CPU);
    wire_writer_raw(&series, wire_text_slice(&label));
    size_t sample = wire_writer_begin(&series, 2);
    wire_writer_bytes(&series, 1, buffer_slice(bomb));
    wire_writer_end(&series, sample);
    wire_writer_end(&series, begun);
    struct pyroscope_request request;
    struct pyroscope_result result;
    pyroscope_word(&request, NULL, "application/proto", wire_writer_slice(&series));
    request.settings.server.max_request_body_size = plain.size - 1;
    assert_false(pyroscope_push(&request, &result));
    assert_int_equal(result.why.code, GRPC_RESOURCE_EXHAUSTED);
    assert_int_equal(result.why.retry_after_ns, -1); /* a retry would be as large */
    assert_non_null(strstr(result.why.text, "has more than 983039 bytes"));
    pyroscope_result_deinit(&result);
    pyroscope_request_deinit(&request);
    wire_writer_deinit(&series);
    text_deinit(&label);
    text_deinit(&zeros);
    buffer_unref(bomb);
}

static void grpc_web_takes_one_message(void **state)
{
    (void)state;
    static const struct {
        const char *body, *encoding, *expected;
    } cases[] = {
        {"!0000000000", NULL, ""},
        {"!000000000105", NULL, "series[0]: broken protobuf"},
        {"", NULL, "grpc: unexpected EOF"},
        {"!00000000", NULL, "grpc: unexpected EOF"},
        {"!0000000001", NULL, "grpc: unexpected EOF"},
        {"!00ffffffff05", NULL, "grpc: unexpected EOF"},
        {"!00000000000000000000", NULL, "grpc: more than one message in a unary call"},
        {"!8000000000", NULL, "grpc: received unexpected payload format"},
        {"!0100000000", "br", "grpc: the grpc-encoding is not understood"},
        {"!0100000000", "lz4", "grpc: the grpc-encoding is not understood"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pyroscope_request request;
        struct pyroscope_result result;
        struct text body;
        word(&request, cases[i].body, &body);
        if (cases[i].encoding)
            pyroscope_add_header(&request, "grpc-encoding", cases[i].encoding);
        pyroscope_grpc_web(&request, &result);
        assert_string_equal(result.why.text, cases[i].expected);
        pyroscope_result_deinit(&result);
        pyroscope_request_deinit(&request);
        text_deinit(&body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_become_what_they_mean),
        cmocka_unit_test(what_is_wrong_is_told_with_series_and_sample),
        cmocka_unit_test(labels_are_bounded),
        cmocka_unit_test(the_service_is_named_by_labels_then_a_header_then_the_settings),
        cmocka_unit_test(empty_pushes_are_no_errors),
        cmocka_unit_test(a_push_cut_anywhere_is_an_error),
        cmocka_unit_test(samples_are_decompressed_under_one_limit),
        cmocka_unit_test(grpc_web_takes_one_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

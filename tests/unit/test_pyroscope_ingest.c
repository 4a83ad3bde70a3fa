#include "receivers/pyroscope/ingest.h"

#include "core/data/json.h"
#include "tests/unit/pyroscope_fixture.h"
#include "tests/unit/wire_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define FORM "multipart/form-data; boundary=b"
#define FILE_PART(NAME, BODY)                                                                      \
    "--b\r\nContent-Disposition: form-data; name=\"" NAME "\"; filename=\"f\"\r\n\r\n" BODY "\r\n"
#define SPAN "00f067aa0ba902b7"
#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"

static void ingest(const struct pyroscope_request *request, struct text *out)
{
    struct pyroscope_result result;
    if (!pyroscope_ingest(request, &result))
        text_printf(out, "error: %s", result.why.text);
    else if (result.samples > 0)
        json_from_protobuf(JSON_PROFILES_REQUEST, buffer_slice(result.profiles), out);
    pyroscope_result_deinit(&result);
}

static void ingest_text(const char *query, const char *content_type, struct slice body,
                        struct text *out)
{
    struct pyroscope_request request;
    pyroscope_word(&request, query, content_type, body);
    ingest(&request, out);
    pyroscope_request_deinit(&request);
}

static void assert_contains(const struct text *text, const char *part)
{
    if (!strstr(text_string(text), part))
        fail_msg("no \"%s\" in:\n%s", part, text_string(text));
}

static void the_format_is_chosen_in_pyroscopes_order(void **state)
{
    (void)state;
    static const struct {
        const char *query, *content_type, *body;
        const char *expected;
    } cases[] = {
        {"name=a", NULL, "main;work 3\n", "\"work\""},
        {"name=a&format=groups", "text/plain", "main;work 3\n", "\"work\""},
        {"name=a&format=folded", "application/x-www-form-urlencoded", "main;work 3\n", "\"work\""},
        {"name=a&format=lines", NULL, "main;work 3\n", "\"work 3\""},
        {"name=a&format=lines", "binary/octet-stream+tree", "\x01", "error: tree: "},
        {"name=a&format=tree", "binary/octet-stream+trie", "\x01", "error: trie: "},
        {"name=a&format=jfr", "binary/octet-stream+tree", "\x01", "error: tree: "},
        {"name=a&format=trie", NULL, "\x01", "error: trie: "},
        {"name=a&format=tree", NULL, "\x01", "error: tree: "},
        {"name=a&format=jfr", NULL, "\x01", "error: jfr: "},
        {"name=a&format=jfr", FORM, FILE_PART("jfr", "x") "--b--", "error: jfr: "},
        {"name=a&format=jfr", FORM, FILE_PART("profile", "x") "--b--",
         "error: form: the file jfr is missing"},
        {"name=a&format=pprof", NULL, "\x01", "error: pprof: "},
        /* This is not recognised as a form. */
        {"name=a&format=pprof", FORM, FILE_PART("profile", "") "--b--", "error: pprof: "},
        {"name=a&format=speedscope", FORM, "[]", "error: speedscope: "},
        {"name=a", FORM, FILE_PART("profile", "\x01") "--b--", "error: pprof: "},
        {"name=a", FORM, "main;work 3\n", "error: form: "},
        {"name=a", NULL, "main;work", "error: folded: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text out = {0};
        ingest_text(cases[i].query, cases[i].content_type, slice_of_string(cases[i].body), &out);
        assert_contains(&out, cases[i].expected);
        text_deinit(&out);
    }
}

static void empty_profiles_are_no_errors(void **state)
{
    (void)state;
    static const struct {
        const char *query, *content_type, *body;
    } cases[] = {
        {"name=a&format=pprof", NULL, ""},
        {"name=a", NULL, ""},
        {"name=a&format=lines", NULL, "\n"},
        {"name=a", FORM, FILE_PART("profile", "") "--b--"},
        {"name=a", FORM, FILE_PART("other", "x") "--b--"},
        {"name=a", FORM, FILE_PART("profile", "") FILE_PART("prev_profile", "") "--b--"},
        {"name=a", FORM, "--b--"},
        /* A value is not a file. */
        {"name=a", FORM,
         "--b\r\nContent-Disposition: form-data; name=\"profile\"\r\n\r\nx\r\n--b--"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text out = {0};
        ingest_text(cases[i].query, cases[i].content_type, slice_of_string(cases[i].body), &out);
        assert_string_equal(text_string(&out), "");
        text_deinit(&out);
    }
}

static void forms_that_are_wrong_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *body, *expected;
    } cases[] = {
        {FILE_PART("profile", "x") FILE_PART("prev_profile", "y") "--b--",
         "error: prev_profile: this client is too old: it sends cumulative profiles, which are not "
         "supported"},
        {FILE_PART("profile", "x") FILE_PART("profile", "y") "--b--",
         "error: profile: it appears more than once in the form"},
        {FILE_PART("profile", "x"),
         "error: form: part 1: the body ends before the part's delimiter"},
        {FILE_PART("profile", "x") FILE_PART("sample_type_config", "{\"cpu\":5}") "--b--",
         "error: sample_type_config: not a JSON object of objects"},
        {FILE_PART("profile", "x") FILE_PART("sample_type_config", "{\"cpu\":{}") "--b--",
         "error: sample_type_config: not a JSON object of objects"},
        {FILE_PART("profile", "x") FILE_PART("sample_type_config", "{}{}") "--b--",
         "error: sample_type_config: not a JSON object of objects"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text out = {0};
        ingest_text("name=a", FORM, slice_of_string(cases[i].body), &out);
        assert_string_equal(text_string(&out), cases[i].expected);
        text_deinit(&out);
    }
}

/* A metric gets its name from the sample types of the pprof and this config. */
static void type_names_name_the_metric(void **state)
{
    (void)state;
    static const struct {
        const char *type, *config, *expected;
    } cases[] = {
        {"samples", "", "process_cpu"},
        {"inuse_space", "", "memory"},
        {"contentions", "{\"contentions\":{\"units\":\"x\",\"display-name\":\"block_count\"}}",
         "block"},
        {"contentions", "{\"contentions\":{\"display-name\":\"mutex_count\",\"cumulative\":false}}",
         "mutex"},
        {"other", "{\"contentions\":{\"display-name\":\"mutex_count\"}}", "other"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text notation = {0}, body = {0}, out = {0}, expected = {0};
        text_printf(&notation,
                    "1{1=1 2=2} 2{1[1] 2[7]} 4{1=1 4{1=1}} 5{1=1 2=3} 6\"\" 6\"%s\" 6\"count\" "
                    "6\"main\"",
                    cases[i].type);
        struct text pprof = wire_text(text_string(&notation));
        text_append(&body, "--b\r\nContent-Disposition: form-data; name=profile; "
                           "filename=f\r\n\r\n");
        text_append_slice(&body, wire_text_slice(&pprof));
        text_printf(&body,
                    "\r\n--b\r\nContent-Disposition: form-data; name=sample_type_config; "
                    "filename=f\r\n\r\n%s\r\n--b--",
                    cases[i].config);
        ingest_text("name=a", FORM, slice_of(body.data, body.size), &out);
        text_printf(&expected, "{\"stringValue\":\"%s\"}", cases[i].expected);
        assert_contains(&out, "__name__");
        assert_contains(&out, text_string(&expected));
        text_deinit(&notation);
        text_deinit(&body);
        text_deinit(&pprof);
        text_deinit(&expected);
        text_deinit(&out);
    }
}

static void the_query_says_what_the_body_does_not(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        const char *expected[4];
        const char *absent;
    } cases[] = {
        {"name=shop&from=100&until=110&spyName=gospy",
         {"\"key\":\"service.name\",\"value\":{\"stringValue\":\"shop\"}",
          "\"key\":\"pyroscope_spy\",\"value\":{\"stringValue\":\"gospy\"}",
          "\"timeUnixNano\":\"100000000000\"", "\"durationNano\":\"10000000000\""},
         NULL},
        {"name=shop&from=100&until=100", {"\"timeUnixNano\":\"100000000000\""}, "durationNano"},
        {"name=shop&from=100&until=90", {"\"timeUnixNano\":\"100000000000\""}, "durationNano"},
        {"name=shop{service_name=till}", {"\"stringValue\":\"till\""}, "shop"},
        {"name=shop{otel.scope.name=sdk,otel.scope.version=v9}",
         {"\"scope\":{\"name\":\"sdk\",\"version\":\"v9\"}"},
         "otel.scope"},
        {"name=shop{__a__=b,__session_id__=c}", {"__session_id__"}, "__a__"},
        {"name=shop{span_id=" SPAN ",trace_id=" TRACE "}",
         {"\"spanId\":\"" SPAN "\"", "\"traceId\":\"" TRACE "\""},
         "span_id"},
        {"name=shop.wall", {"\"shop\"", "\"wall\""}, "shop.wall"},
        {"name=shop.folded", {"\"shop.folded\"", "\"process_cpu\""}, NULL},
        {"name=shop.inuse_space", {"\"shop\"", "\"memory\"", "\"values\":[\"3\"]"}, NULL},
        {"name=shop&sampleRate=50", {"\"values\":[\"60000000\"]"}, NULL},
        {"name=shop&sampleRate=x", {"\"values\":[\"30000000\"]"}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text out = {0};
        ingest_text(cases[i].query, NULL, SLICE("main;work 3\n"), &out);
        for (int j = 0; j < 4 && cases[i].expected[j]; j++)
            assert_contains(&out, cases[i].expected[j]);
        if (cases[i].absent && strstr(text_string(&out), cases[i].absent))
            fail_msg("\"%s\" in:\n%s", cases[i].absent, text_string(&out));
        text_deinit(&out);
    }
}

static void labels_of_the_name_have_the_limits_of_all_labels(void **state)
{
    (void)state;
    struct text query = {0}, out = {0};
    text_append(&query, "name=a{b=");
    for (int i = 0; i <= SERIES_VALUE_MAX_BYTES; i++)
        text_append_char(&query, 'x');
    text_append_char(&query, '}');
    ingest_text(text_string(&query), NULL, SLICE("main 1"), &out);
    assert_string_equal(text_string(&out),
                        "error: name: label b: its value has 2049 bytes, at most 2048 are allowed");
    text_deinit(&query);
    text_deinit(&out);
}

/* A JFR upload keeps the application name of its query in addition to its service name. */
static void a_recording_keeps_the_application_beside_its_service(void **state)
{
    (void)state;
    struct pyroscope_request request;
    struct text out = {0};
    pyroscope_load(&request, "java-grpc-jfr/pyroscope-ingest/001");
    request.query = SLICE("name=shop{service_name=till}&format=jfr&from=100&until=110");
    ingest(&request, &out);
    assert_contains(&out, "\"key\":\"service.name\",\"value\":{\"stringValue\":\"till\"}");
    assert_contains(&out, "\"key\":\"app_name\",\"value\":{\"stringValue\":\"shop\"}");
    pyroscope_request_deinit(&request);
    text_deinit(&out);
}

/* gzip detects truncation itself, by its length and checksum. */
static void compressed_bodies_cut_anywhere_are_errors(void **state)
{
    (void)state;
    struct pyroscope_request request;
    pyroscope_load(&request, "node-http-json/pyroscope-ingest/013");
    struct slice whole = request.body;
    for (size_t size = 1; size <= whole.size; size++) {
        struct pyroscope_result result;
        request.body.size = size;
        if (pyroscope_ingest(&request, &result) != (size == whole.size))
            fail_msg("%zu of %zu bytes: %s", size, whole.size, result.why.text);
        pyroscope_result_deinit(&result);
    }
    pyroscope_request_deinit(&request);
}

static void what_unfolds_to_too_much_is_refused(void **state)
{
    (void)state;
    struct pyroscope_request request;
    struct pyroscope_result result;
    pyroscope_load(&request, "node-http-json/pyroscope-ingest/012");
    /* The body is within the limit, but not when decompressed. */
    request.settings.server.max_request_body_size = request.body.size;
    assert_false(pyroscope_ingest(&request, &result));
    assert_int_equal(result.why.code, GRPC_RESOURCE_EXHAUSTED);
    assert_false(verdict_is_retryable(&result.why));
    pyroscope_result_deinit(&result);
    pyroscope_request_deinit(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_format_is_chosen_in_pyroscopes_order),
        cmocka_unit_test(empty_profiles_are_no_errors),
        cmocka_unit_test(forms_that_are_wrong_are_refused),
        cmocka_unit_test(type_names_name_the_metric),
        cmocka_unit_test(the_query_says_what_the_body_does_not),
        cmocka_unit_test(labels_of_the_name_have_the_limits_of_all_labels),
        cmocka_unit_test(a_recording_keeps_the_application_beside_its_service),
        cmocka_unit_test(compressed_bodies_cut_anywhere_are_errors),
        cmocka_unit_test(what_unfolds_to_too_much_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The decisions of the Collector (recorded from it), and what becomes of profiles. */
#include "core/base/text.h"
#include "tests/unit/canonical_profiles.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

extern const struct component_type probabilistic_sampler_processor_type;

static struct fixture_place *place_sampler(struct fixture *f, enum signal signal,
                                           const char *settings)
{
    struct text yaml = {0};
    fixture_init(f, 1);
    text_printf(&yaml, "processors: {probabilistic_sampler: {%s}}", settings);
    struct fixture_place *place =
        fixture_place(f, &probabilistic_sampler_processor_type, "probabilistic_sampler",
                      text_string(&yaml), signal_name(signal), signal);
    text_deinit(&yaml);
    return place;
}

/* ---- spans ---- */

#define SEQUENCE "0102030405060708090a0b0c0d0e0f10"
#define W3C "4bf92f3577b34da6a3ce929d0e0e4736"
#define ENDING_IN_ZEROS "4bf92f3577b34da6a3e0000000000000"
#define ONES "ffffffffffffffffffffffffffffffff"
#define ZEROS "00000000000000000000000000000000"
#define OPEN "fail_closed: false, "
#define HALF "sampling_percentage: 50"
#define EQUALIZING "mode: equalizing, "
#define PROPORTIONAL "mode: proportional, "
#define INT(value) "\"intValue\":\"" value "\""
#define STRING(value) "\"stringValue\":\"" value "\""
#define DOUBLE(value) "\"doubleValue\":" value

static const struct {
    const char *settings, *trace_id, *tracestate;
    const char *priority; /* a value in JSON; NULL: none */
    const char *expected; /* the tracestate; NULL: the span is not kept */
    const char *policy;
} spans[] = {
    {HALF, SEQUENCE, "", NULL, "ot=rv:976837c4f25a25;th:8", "trace_id_hash"},
    {HALF, W3C, "", NULL, "ot=rv:fdc80d0b42008d;th:8", "trace_id_hash"},
    {HALF, ONES, "", NULL, "ot=rv:aae80a44919545;th:8", "trace_id_hash"},
    {HALF, ENDING_IN_ZEROS, "v=x", NULL, "ot=rv:b5701a4590d2a3;th:8,v=x", "trace_id_hash"},
    {HALF, ZEROS, "", NULL, NULL, "missing_randomness"},
    {"sampling_percentage: 100", ZEROS, "", NULL, NULL, "missing_randomness"},
    {OPEN HALF, ZEROS, "", NULL, "ot=rv:ffffffffffffff;th:0", "missing_randomness"},
    {"hash_seed: 22, " HALF, W3C, "", NULL, NULL, "trace_id_hash"},
    {"hash_seed: 22, " HALF, ENDING_IN_ZEROS, "", NULL, "ot=rv:c9b8232bc8cd91;th:8",
     "trace_id_hash"},
    {"sampling_percentage: 10", W3C, "", NULL, "ot=rv:fdc80d0b42008d;th:e668", "trace_id_hash"},
    {"sampling_percentage: 10", SEQUENCE, "", NULL, NULL, "trace_id_hash"},
    {"sampling_percentage: 0", W3C, "", NULL, NULL, "sampling_priority"},
    {"sampling_percentage: 0.006", W3C, "", NULL, NULL, "sampling_priority"},
    /* randomness or a threshold arrives: an error in this mode */
    {HALF, W3C, "ot=th:8", NULL, NULL, "trace_id_hash"},
    {HALF, W3C, "ot=rv:fe000000000000", NULL, NULL, "trace_id_hash"},
    {OPEN HALF, W3C, "ot=th:8", NULL, "ot=th:8", "trace_id_hash"},
    {HALF, W3C, "not valid", NULL, NULL, "trace_id_hash"},
    {OPEN HALF, W3C, "not valid", NULL, "not valid", "trace_id_hash"},
    /* consistent modes */
    {EQUALIZING HALF, W3C, "", NULL, "ot=th:8", "trace_id_w3c"},
    {EQUALIZING "sampling_percentage: 1", W3C, "", NULL, NULL, "trace_id_w3c"},
    {EQUALIZING HALF, W3C, "ot=rv:fe000000000000", NULL, "ot=rv:fe000000000000;th:8",
     "sampling_randomness"},
    {EQUALIZING HALF, W3C, "ot=rv:1e000000000000", NULL, NULL, "sampling_randomness"},
    {EQUALIZING HALF, W3C, "ot=th:c", NULL, "ot=th:c", "trace_id_w3c"},
    {EQUALIZING HALF, SEQUENCE, "ot=th:c", NULL, NULL, "trace_id_w3c"},
    {OPEN EQUALIZING HALF, SEQUENCE, "ot=th:c", NULL, "ot=th:0", "trace_id_w3c"},
    {PROPORTIONAL HALF, W3C, "ot=th:8", NULL, "ot=th:c", "trace_id_w3c"},
    {PROPORTIONAL "sampling_percentage: 25", W3C, "vendor=x,ot=rv:fe000000000000;th:8;k:v", NULL,
     "ot=rv:fe000000000000;th:e;k:v,vendor=x", "sampling_randomness"},
    {EQUALIZING "sampling_percentage: 100", ZEROS, "", NULL, NULL, "missing_randomness"},
    /* sampling.priority */
    {HALF, W3C, "", INT("0"), NULL, "sampling_priority"},
    {HALF, W3C, "", DOUBLE("0"), NULL, "sampling_priority"},
    {HALF, W3C, "", STRING("0.0"), NULL, "sampling_priority"},
    {HALF, W3C, "", INT("-1"), "ot=rv:fdc80d0b42008d;th:8", "trace_id_hash"},
    {HALF, W3C, "", STRING("x"), "ot=rv:fdc80d0b42008d;th:8", "trace_id_hash"},
    {HALF, ZEROS, "", STRING("1"), "ot=rv:ffffffffffffff;th:0", "sampling_priority"},
    {HALF, W3C, "not valid", INT("1"), "not valid", "sampling_priority"},
    {"sampling_percentage: 0", W3C, "not valid", INT("1"), "ot=th:0", "sampling_priority"},
    {"sampling_percentage: 0", W3C, "ot=th:c", INT("1"), "ot=th:c", "sampling_priority"},
};

static char *span_request(size_t i)
{
    struct text json = {0};
    text_append(&json, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"s\"");
    text_printf(&json, ",\"traceId\":\"%s\",\"traceState\":\"%s\"", spans[i].trace_id,
                spans[i].tracestate);
    if (spans[i].priority)
        text_printf(&json, ",\"attributes\":[{\"key\":\"sampling.priority\",\"value\":{%s}}]",
                    spans[i].priority);
    text_append(&json, "}]}]}]}");
    text_string(&json);
    return json.data;
}

static void expect_span(size_t i)
{
    struct fixture f;
    struct probe probe;
    struct text labels = {0}, wanted = {0};
    struct fixture_place *place = place_sampler(&f, SIGNAL_TRACES, spans[i].settings);
    char *json = span_request(i), *got = NULL;
    fixture_consume_json(&f, place->nodes[0], json, 1, &probe);
    assert_int_equal(probe.settled, 1);
    assert_true(verdict_is_ok(&probe.verdict));
    if ((f.recorder.count > 0) != (spans[i].expected != NULL))
        fail_msg("span %zu: kept: %zu", i, f.recorder.count);
    if (spans[i].expected) {
        got = fixture_recorded_json(&f, 0);
        text_printf(&wanted, "\"traceState\":\"%s\"", spans[i].expected);
        if (!strstr(got, text_string(&wanted)))
            fail_msg("span %zu: %s", i, got);
        assert_int_equal(f.recorder.items[0].items, 1);
    }
    text_printf(&labels, "processor=\"probabilistic_sampler\",policy=\"%s\",sampled=\"%s\"",
                spans[i].policy, spans[i].expected ? "true" : "false");
    if (metrics_value(f.process.metrics,
                      "otelcol_processor_probabilistic_sampler_count_traces_sampled",
                      text_string(&labels)) != 1)
        fail_msg("span %zu: not counted as %s", i, text_string(&labels));
    assert_true(metrics_value(f.process.metrics,
                              "otelcol_processor_probabilistic_sampler_count_spans_processed",
                              "processor=\"probabilistic_sampler\"") == 1);
    fixture_deinit(&f);
    text_deinit(&labels);
    text_deinit(&wanted);
    free(json);
    free(got);
}

static void spans_are_kept_as_by_the_collector(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        expect_span(i);
}

static void what_holds_no_span_goes(void **unused)
{
    (void)unused;
    struct fixture f;
    struct fixture_place *place = place_sampler(&f, SIGNAL_TRACES, HALF);
#define SPAN(id) "{\"traceId\":\"" id "\",\"traceState\":\"ot=k:v\"}"
    fixture_consume_json(&f, place->nodes[0],
                         "{\"resourceSpans\":[{\"scopeSpans\":[{\"scope\":{\"name\":\"a\"},"
                         "\"spans\":[" SPAN(ZEROS) "]},{\"scope\":{\"name\":\"b\"},\"spans\":"
                                                   "[" SPAN(ZEROS) "," SPAN(
                                                       W3C) "]}]},{\"scopeSpans\":[{\"spans\":"
                                                            "[" SPAN(ZEROS) "]}]},{\"schemaUrl\":"
                                                                            "\"x\"}]}",
                         4, NULL);
    char *got = fixture_recorded_json(&f, 0);
    expect_text(got, "{\"resourceSpans\":[{\"scopeSpans\":[{\"scope\":{\"name\":\"b\"},\"spans\":[{"
                     "\"traceId\":\"" W3C "\","
                     "\"traceState\":\"ot=rv:fdc80d0b42008d;th:8;k:v\"}]}]}]}");
    free(got);
    fixture_deinit(&f);
}

/* ---- samples ---- */

/* Of the links, 1 is kept at 10 % and 2 is not. */
#define PROFILE(samples)                                                                           \
    "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"timeUnixNano\":\"7\","           \
    "\"originalPayloadFormat\":\"x\",\"originalPayload\":\"c2VjcmV0\",\"samples\":[" samples       \
    "]}]}]}],\"dictionary\":{"                                                                     \
    "\"mappingTable\":[{}],\"locationTable\":[{}],\"functionTable\":[{}],"                         \
    "\"linkTable\":[{},{\"traceId\":\"" W3C "\",\"spanId\":\"1112131415161718\"},"                 \
    "{\"traceId\":\"" SEQUENCE "\",\"spanId\":\"2122232425262728\"}],"                             \
    "\"stringTable\":[\"\",\"span_id\",\"span_name\",\"mine\"],"                                   \
    "\"attributeTable\":[{},{\"keyStrindex\":1,\"value\":{\"stringValue\":\"secret\"}},"           \
    "{\"keyStrindex\":2,\"value\":{\"stringValue\":\"GET\"}},"                                     \
    "{\"keyStrindex\":3,\"value\":{\"stringValue\":\"secret\"}}],"                                 \
    "\"stackTable\":[{},{\"locationIndices\":[0]}]}}"
#define KEPT "{\"linkIndex\":1,\"values\":[1],\"attributeIndices\":[2]}"
#define NOT_KEPT                                                                                   \
    "{\"linkIndex\":2,\"values\":[3],\"attributeIndices\":[1,2]},"                                 \
    "{\"linkIndex\":2,\"values\":[4],\"attributeIndices\":[2,3]}"
#define UNTRACED "{\"values\":[9],\"attributeIndices\":[2]}"
#define ATTRIBUTE(key, value_hex) " attributes[\"" key "\"<0a" value_hex ">\"\";]"
#define GET ATTRIBUTE("span_name", "03474554")
#define W3C_LINK W3C "/1112131415161718"

static const struct {
    const char *settings, *json, *expected;
    uint32_t samples;
    uint32_t kept, folded, dropped, combined;
    bool has_secret; /* in what is sent */
} profiles[] = {
    {"sampling_percentage: 10", PROFILE(KEPT "," NOT_KEPT "," UNTRACED),
     "sample " GET W3C_LINK " 1\nsample " GET " 3\n"
     "sample  attributes[\"span_name\"<0a03474554>\"\";\"mine\"<0a06736563726574>\"\";] 4\n"
     "sample " GET " 9\n",
     4, 2, 2, 0, 2, true},
    {"sampling_percentage: 10, profiles: {fold_attributes: [mine]}",
     PROFILE(KEPT "," NOT_KEPT "," UNTRACED),
     "sample " GET W3C_LINK " 1\nsample " GET " 7\nsample " GET " 9\n", 4, 2, 2, 0, 1, false},
    {"sampling_percentage: 10, profiles: {otherwise: drop}",
     PROFILE(KEPT "," NOT_KEPT "," UNTRACED), "sample " GET W3C_LINK " 1\nsample " GET " 9\n", 4, 2,
     0, 2, 0, false},
    {"sampling_percentage: 10, mode: equalizing, profiles: {otherwise: drop}",
     PROFILE(KEPT "," NOT_KEPT), NULL, 3, 0, 0, 3, 0, false},
    {"sampling_percentage: 100, profiles: {without_trace: sample}",
     PROFILE(KEPT "," NOT_KEPT "," UNTRACED), "", 4, 4, 0, 0, 0, true},
    {"sampling_percentage: 0, profiles: {without_trace: sample, otherwise: drop}",
     PROFILE(NOT_KEPT "," UNTRACED), NULL, 3, 0, 0, 3, 0, false},
};

static void expect_counted(struct fixture *f, const char *decision, uint32_t count)
{
    struct text labels = {0};
    text_printf(&labels, "processor=\"probabilistic_sampler\",decision=\"%s\"", decision);
    assert_true(metrics_value(f->process.metrics, "profcol_probabilistic_sampler_profile_samples",
                              text_string(&labels)) == count);
    text_deinit(&labels);
}

/* Returns the lines of samples. */
static char *samples_of(struct slice request)
{
    struct text all = {0}, out = {0};
    canonical_profiles(request, CANONICAL_TEXT, &all);
    for (char *line = strtok(all.data, "\n"); line; line = strtok(NULL, "\n"))
        if (strncmp(line, "sample ", 7) == 0)
            text_printf(&out, "%s\n", line);
    text_deinit(&all);
    text_string(&out);
    return out.data;
}

static void expect_profile(size_t i)
{
    struct fixture f;
    struct probe probe;
    struct fixture_place *place = place_sampler(&f, SIGNAL_PROFILES, profiles[i].settings);
    struct buffer *request = fixture_encode(SIGNAL_PROFILES, profiles[i].json);
    fixture_consume(&f, place->nodes[0], buffer_slice(request), profiles[i].samples, &probe);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(f.recorder.count, profiles[i].expected != NULL);
    if (profiles[i].expected) {
        struct slice sent = slice_of(f.recorder.items[0].bytes, f.recorder.items[0].size);
        char *got = samples_of(sent);
        if (*profiles[i].expected)
            expect_text(got, profiles[i].expected);
        else
            assert_true(slice_equal(sent, buffer_slice(request)));
        assert_int_equal(memmem(sent.data, sent.size, "secret", 6) != NULL, profiles[i].has_secret);
        free(got);
    }
    expect_counted(&f, "kept", profiles[i].kept);
    expect_counted(&f, "folded", profiles[i].folded);
    expect_counted(&f, "dropped", profiles[i].dropped);
    assert_true(metrics_value(f.process.metrics,
                              "profcol_probabilistic_sampler_combined_profile_samples",
                              "processor=\"probabilistic_sampler\"") == profiles[i].combined);
    fixture_deinit(&f);
    buffer_unref(request);
}

static void samples_follow_their_trace(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++)
        expect_profile(i);
}

/* Sends `count` profiles of different times, each with ten stacks of one sample of 3 without a
 * trace, and returns the sum of the values that arrive. */
static double sum_of_untraced(const char *settings, unsigned count)
{
    struct fixture f;
    struct fixture_place *place = place_sampler(&f, SIGNAL_PROFILES, settings);
    double sum = 0;
    for (unsigned i = 0; i < count; i++) {
        struct text json = {0};
        text_printf(&json,
                    "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{"
                    "\"timeUnixNano\":\"%u\",\"samples\":[",
                    i * 1000);
        for (int s = 0; s < 10; s++)
            text_printf(&json, "%s{\"stackIndex\":%d,\"values\":[3]}", s ? "," : "", s + 1);
        text_append(&json, "]}]}]}],\"dictionary\":{\"mappingTable\":[{}],\"locationTable\":[{}],"
                           "\"functionTable\":[{}],\"linkTable\":[{}],\"stringTable\":[\"\"],"
                           "\"attributeTable\":[{}],\"stackTable\":[{}");
        for (int s = 0; s < 10; s++)
            text_append(&json, ",{\"locationIndices\":[0]}");
        text_append(&json, "]}}");
        fixture_consume_json(&f, place->nodes[0], text_string(&json), 10, NULL);
        text_deinit(&json);
    }
    for (size_t i = 0; i < f.recorder.count; i++) {
        char *lines = samples_of(slice_of(f.recorder.items[i].bytes, f.recorder.items[i].size));
        for (const char *at = lines; (at = strstr(at, "] "));)
            if (at[2] >= '0' && at[2] <= '9')
                sum += strtod(at += 2, NULL);
            else
                at += 2;
        free(lines);
    }
    fixture_deinit(&f);
    return sum;
}

/* 3,000 stacks of 3: the standard deviation at 30 % is 1 / sqrt(3000) * sqrt(0.7 / 0.3) = 2.8 % of
 * the total. The sequence is the same in every run. */
static void stacks_are_sampled_with_expected_totals(void **unused)
{
    (void)unused;
    double sum = sum_of_untraced("sampling_percentage: 30, profiles: {without_trace: sample}", 300);
    print_message("%.0f of 9000\n", sum);
    assert_true(sum > 9000 * 0.92 && sum < 9000 * 1.08 && sum != 9000);
    assert_true(sum_of_untraced("sampling_percentage: 30", 3) == 90);
}

/* ---- settings ---- */

static void refuses_settings(void **unused)
{
    (void)unused;
    static const char *const mistakes[][2] = {
        {"{sampling_percentage: -1}", "sampling rate is negative: -1.000000%"},
        {"{sampling_percentage: .nan}", "sampling_percentage"},
        {"{sampling_percentage: 1.0e-16}", "sampling rate is too small: 1e-16%"},
        {"{sampling_precision: 0}", "sampling_precision"},
        {"{sampling_precision: 15}", "sampling_precision"},
        {"{hash_seed: 4294967296}", "hash_seed"},
        {"{mode: equal}", "is not one of hash_seed, equalizing, proportional"},
        {"{profiles: {otherwise: keep}}", "otherwise"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        fixture_refuses(&probabilistic_sampler_processor_type, mistakes[i][0], mistakes[i][1]);
}

/* A batch of more than 1 MiB is sampled in a job. */
static void a_large_batch_is_sampled_in_a_job(void **unused)
{
    (void)unused;
    enum { SPANS = 30000 };
    struct fixture f;
    struct text json = {0};
    struct fixture_place *place = place_sampler(&f, SIGNAL_TRACES, HALF);
    text_append(&json, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[");
    for (unsigned i = 0; i < SPANS; i++)
        text_printf(&json, "%s{\"traceId\":\"%032x\",\"name\":\"a name of some length\"}",
                    i ? "," : "", i + 1);
    text_append(&json, "]}]}]}");
    fixture_consume_json(&f, place->nodes[0], text_string(&json), SPANS, NULL);
    assert_int_equal(f.recorder.count, 0);
    fixture_advance(&f, 0);
    assert_int_equal(f.recorder.count, 1);
    assert_true(f.recorder.items[0].items > SPANS * 0.48 &&
                f.recorder.items[0].items < SPANS * 0.52);
    text_deinit(&json);
    fixture_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_kept_as_by_the_collector),
        cmocka_unit_test(what_holds_no_span_goes),
        cmocka_unit_test(samples_follow_their_trace),
        cmocka_unit_test(stacks_are_sampled_with_expected_totals),
        cmocka_unit_test(refuses_settings),
        cmocka_unit_test(a_large_batch_is_sampled_in_a_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

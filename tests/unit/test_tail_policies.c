/* What each policy of tail_sampling decides, and which settings are refused. */
#include "core/base/text.h"
#include "processors/tail_sampling/policy_decision.h"
#include "processors/tail_sampling/tail_probability.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type tail_sampling_processor_type;

/* ---- probabilistic, bit for bit ---- */

static const struct {
    double percentage;
    uint64_t threshold;
} thresholds[] = {
    {0, 0},
    {-1, 0},
    {0.1, UINT64_C(0x004189374bc6a7ef)},
    {1, UINT64_C(0x028f5c28f5c28f5f)},
    {10, UINT64_C(0x19999999999999ff)},
    {25, UINT64_C(0x3fffffffffffffff)},
    {33.3, UINT64_C(0x553f7ced91686fff)},
    {50, UINT64_C(0x7fffffffffffffff)},
    {66.6, UINT64_C(0xaa7ef9db22d0dfff)},
    {90, UINT64_C(0xe6666666666667ff)},
    {99.9, UINT64_C(0xffbe76c8b4395fff)},
    {100, UINT64_MAX},
    {250, UINT64_MAX},
};

static void test_thresholds_are_the_collectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof thresholds / sizeof *thresholds; i++)
        if (tail_probability_threshold(thresholds[i].percentage) != thresholds[i].threshold)
            fail_msg("%g: %llx", thresholds[i].percentage,
                     (unsigned long long)tail_probability_threshold(thresholds[i].percentage));
}

static void test_hashes_are_the_collectors(void **state)
{
    static const uint8_t sequence[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    static const uint8_t w3c[] = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6,
                                  0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36};
    static const uint8_t zero[16];
    (void)state;
    assert_true(tail_hash("default-hash-seed", sequence) == UINT64_C(0xdbcf64d5420f4cad));
    assert_true(tail_hash("abc", sequence) == UINT64_C(0xc80bf3e0030f892b));
    assert_true(tail_hash("default-hash-seed", w3c) == UINT64_C(0xa54533ba2e4970b5));
    assert_true(tail_hash("abc", w3c) == UINT64_C(0x443e8ea12a65d7d3));
    assert_true(tail_hash("default-hash-seed", zero) == UINT64_C(0xe19536eed1bbac3d));
    assert_true(tail_hash("abc", zero) == UINT64_C(0xbb4b22472fed320b));
}

/* ---- policies ---- */

#define ID "0102030405060708090a0b0c0d0e0f10"
#define SPAN(fields) "{\"traceId\":\"" ID "\",\"spanId\":\"0000000000000001\"" fields "}"
#define TIMES(start, end) ",\"startTimeUnixNano\":\"" start "\",\"endTimeUnixNano\":\"" end "\""
#define MS "000000"
#define ATTRIBUTE(key, value) ",\"attributes\":[{\"key\":\"" key "\",\"value\":{" value "}}]"
#define INT(value) "\"intValue\":\"" value "\""
#define STRING(value) "\"stringValue\":\"" value "\""
#define ERROR_STATUS ",\"status\":{\"code\":2}"
#define OK_STATUS ",\"status\":{\"code\":1}"
#define THREE                                                                                      \
    SPAN(TIMES("1000" MS, "1005" MS))                                                              \
    "," SPAN(TIMES("1000" MS, "1050" MS)) "," SPAN(TIMES("1000" MS, "1500" MS))

#define POLICY(type, settings) "{name: p, type: " type ", " type ": {" settings "}}"
#define SUB(type, settings) "{name: s, type: " type ", " type ": {" settings "}}"
#define STATUS(code) SUB("status_code", "status_codes: [" code "]")
#define ALL "{name: all, type: always_sample}"
#define DROP_ERRORS "{name: d, type: drop, drop: {drop_sub_policy: [" STATUS("ERROR") "]}}"

static const struct {
    const char *policies;
    const char *spans;
    const char *resource; /* fields of the resource; NULL: none */
    bool sampled;
} cases[] = {
    {ALL, SPAN(""), NULL, true},
    /* latency: strictly above, by all spans in whatever order */
    {POLICY("latency", "threshold_ms: 50"), SPAN(TIMES("1000" MS, "1050" MS)), NULL, false},
    {POLICY("latency", "threshold_ms: 50"), SPAN(TIMES("1000" MS, "1050999999")), NULL, false},
    {POLICY("latency", "threshold_ms: 50"), SPAN(TIMES("1000" MS, "1051" MS)), NULL, true},
    {POLICY("latency", "threshold_ms: 10, upper_threshold_ms: 100"), THREE, NULL, false},
    {POLICY("latency", "threshold_ms: 10, upper_threshold_ms: 500"), THREE, NULL, true},
    {POLICY("latency", "threshold_ms: 90"),
     SPAN(TIMES("1000" MS, "1010" MS)) "," SPAN(TIMES("1090" MS, "1095" MS)), NULL, true},
    /* status_code */
    {POLICY("status_code", "status_codes: [ERROR]"), SPAN("") "," SPAN(ERROR_STATUS), NULL, true},
    {POLICY("status_code", "status_codes: [ERROR]"), SPAN(OK_STATUS), NULL, false},
    {POLICY("status_code", "status_codes: [OK, UNSET]"), SPAN(""), NULL, true},
    {POLICY("status_code", "status_codes: [UNSET]"), SPAN(ERROR_STATUS), NULL, false},
    /* numeric_attribute: integers; a bound counts if it was written */
    {POLICY("numeric_attribute", "key: a, min_value: 5"), SPAN(ATTRIBUTE("a", INT("5"))), NULL,
     true},
    {POLICY("numeric_attribute", "key: a, min_value: 5"), SPAN(ATTRIBUTE("a", INT("4"))), NULL,
     false},
    {POLICY("numeric_attribute", "key: a, min_value: 0, max_value: 5"),
     SPAN(ATTRIBUTE("a", INT("-3"))), NULL, false},
    {POLICY("numeric_attribute", "key: a, max_value: 5"), SPAN(ATTRIBUTE("a", INT("-3"))), NULL,
     true},
    {POLICY("numeric_attribute", "key: a, max_value: 5"), SPAN(ATTRIBUTE("a", "\"doubleValue\":3")),
     NULL, false},
    {POLICY("numeric_attribute", "key: a, min_value: 1"), SPAN(""), ATTRIBUTE("a", INT("7")), true},
    {POLICY("numeric_attribute", "key: a, min_value: 1, invert_match: true"), SPAN(""), NULL, true},
    {POLICY("numeric_attribute", "key: a, min_value: 1, invert_match: true"),
     SPAN("") "," SPAN(ATTRIBUTE("a", INT("1"))), NULL, false},
    /* string_attribute */
    {POLICY("string_attribute", "key: a, values: [x, y]"), SPAN(ATTRIBUTE("a", STRING("y"))), NULL,
     true},
    {POLICY("string_attribute", "key: a, values: [x, ]"), SPAN(ATTRIBUTE("a", STRING(""))), NULL,
     false},
    {POLICY("string_attribute", "key: a, values: [x]"), SPAN(ATTRIBUTE("a", STRING("ax"))), NULL,
     false},
    {POLICY("string_attribute", "key: a, values: ['^b', 'x'], enabled_regex_matching: true"),
     SPAN(ATTRIBUTE("a", STRING("axa"))), NULL, true},
    {POLICY("string_attribute", "key: a, values: ['^x'], enabled_regex_matching: true"),
     SPAN(ATTRIBUTE("a", STRING("axa"))), NULL, false},
    {POLICY("string_attribute", "key: a, values: [x], invert_match: true"),
     SPAN(ATTRIBUTE("a", STRING("y"))), NULL, true},
    {POLICY("string_attribute", "key: a, values: [x], invert_match: true"), SPAN(""),
     ATTRIBUTE("a", STRING("x")), false},
    /* boolean_attribute */
    {POLICY("boolean_attribute", "key: a, value: true"), SPAN(ATTRIBUTE("a", "\"boolValue\":true")),
     NULL, true},
    {POLICY("boolean_attribute", "key: a, value: false"), SPAN(ATTRIBUTE("a", STRING("x"))), NULL,
     false},
    /* probabilistic: facts for this id */
    {POLICY("probabilistic", "sampling_percentage: 90"), SPAN(""), NULL, true},
    {POLICY("probabilistic", "sampling_percentage: 50"), SPAN(""), NULL, false},
    {POLICY("probabilistic", "sampling_percentage: 80, hash_salt: abc"), SPAN(""), NULL, true},
    {POLICY("probabilistic", "sampling_percentage: 100"), SPAN(""), NULL, true},
    {POLICY("probabilistic", "sampling_percentage: 0"), SPAN(""), NULL, false},
    /* span_count */
    {POLICY("span_count", "min_spans: 3"), THREE, NULL, true},
    {POLICY("span_count", "min_spans: 4"), THREE, NULL, false},
    {POLICY("span_count", "min_spans: 1, max_spans: 2"), THREE, NULL, false},
    /* trace_state, trace_flags */
    {POLICY("trace_state", "key: k, values: [v]"), SPAN(",\"traceState\":\"a=b,k=v\""), NULL, true},
    {POLICY("trace_state", "key: k, values: [v]"), SPAN(",\"traceState\":\"k=v;no, =\""), NULL,
     false},
    {"{name: p, type: trace_flags}", SPAN(",\"flags\":257"), NULL, true},
    {"{name: p, type: trace_flags}", SPAN(",\"flags\":256"), NULL, false},
    /* ottl_condition */
    {POLICY("ottl_condition", "span: ['name == \"x\"', 'attributes[\"a\"] == 1']"),
     SPAN(ATTRIBUTE("a", INT("1"))), NULL, true},
    {POLICY("ottl_condition", "span: ['span.name == \"x\"']"), SPAN(""), NULL, false},
    {POLICY("ottl_condition", "spanevent: ['name == \"e\"']"),
     SPAN(",\"events\":[{\"name\":\"d\"},{\"name\":\"e\"}]"), NULL, true},
    {POLICY("ottl_condition", "error_mode: propagate, span: ['1 / 0 == 1']"), SPAN(""), NULL,
     false},
    /* rates: a trace larger than the burst never passes */
    {POLICY("rate_limiting", "spans_per_second: 2"), THREE, NULL, true},
    {POLICY("rate_limiting", "spans_per_second: 2, burst_capacity: 2"), THREE, NULL, false},
    {POLICY("bytes_limiting", "bytes_per_second: 10"), THREE, NULL, false},
    {POLICY("bytes_limiting", "bytes_per_second: 1000"), THREE, NULL, true},
    /* and, not, drop */
    {"{name: p, type: and, and: {and_sub_policy: [" STATUS("ERROR") ", " SUB("span_count",
                                                                             "min_spans: 2") "]}}",
     SPAN("") "," SPAN(ERROR_STATUS), NULL, true},
    {"{name: p, type: and, and: {and_sub_policy: [" STATUS("ERROR") ", " SUB("span_count",
                                                                             "min_spans: 3") "]}}",
     SPAN("") "," SPAN(ERROR_STATUS), NULL, false},
    {"{name: p, type: and, and: {and_sub_policy: [" ALL
     ", {name: n, type: not, not: {not_sub_policy: " STATUS("ERROR") "}}]}}",
     SPAN(OK_STATUS), NULL, true},
    {"{name: p, type: not, not: {not_sub_policy: " STATUS("ERROR") "}}", SPAN(ERROR_STATUS), NULL,
     false},
    {ALL ", " DROP_ERRORS, SPAN(ERROR_STATUS), NULL, false},
    {ALL ", " DROP_ERRORS, SPAN(OK_STATUS), NULL, true},
    {DROP_ERRORS, SPAN(OK_STATUS), NULL, false},
    /* an inverted match is a negation, and no veto */
    {ALL ", " POLICY("string_attribute", "key: a, values: [x], invert_match: true"),
     SPAN(ATTRIBUTE("a", STRING("x"))), NULL, true},
    /* composite: the first part that samples decides within its share; all have the same */
    {"{name: p, type: composite, composite: {max_total_spans_per_second: 6, composite_sub_policy: "
     "[" STATUS("ERROR") ", {name: rest, type: always_sample}]}}",
     THREE, NULL, true},
    {"{name: p, type: composite, composite: {max_total_spans_per_second: 4, composite_sub_policy: "
     "[" STATUS("ERROR") ", {name: rest, type: always_sample}]}}",
     THREE, NULL, false},
    {"{name: p, type: composite, composite: {max_total_spans_per_second: 4, rate_allocation: "
     "[{policy: rest, percent: 75}], composite_sub_policy: [" STATUS(
         "ERROR") ", {name: rest, type: always_sample}]}}",
     THREE, NULL, true},
    {"{name: p, type: composite, composite: {max_total_spans_per_second: 10, policy_order: [few, "
     "s], rate_allocation: [{policy: few, percent: 10}], composite_sub_policy: "
     "[{name: s, type: always_sample}, {name: few, type: always_sample}]}}",
     THREE, NULL, false},
};

static char *request_of(size_t i)
{
    struct text json = {0};
    text_append(&json, "{\"resourceSpans\":[{");
    if (cases[i].resource)
        text_printf(&json, "\"resource\":{%s},", cases[i].resource + 1);
    text_printf(&json, "\"scopeSpans\":[{\"spans\":[%s]}]}]}", cases[i].spans);
    text_string(&json);
    return json.data;
}

static uint32_t count_spans(const char *spans)
{
    uint32_t count = 0;
    for (const char *at = spans; (at = strstr(at, "traceId")); at++)
        count++;
    return count;
}

static void expect_decision(size_t i)
{
    struct fixture f;
    struct text yaml = {0};
    char *json = request_of(i);
    uint32_t spans = count_spans(cases[i].spans);
    fixture_init(&f, 1);
    text_printf(&yaml, "processors: {tail_sampling: {decision_wait: 300ms, policies: [%s]}}",
                cases[i].policies);
    struct fixture_place *place = fixture_place(&f, &tail_sampling_processor_type, "tail_sampling",
                                                text_string(&yaml), "traces", SIGNAL_TRACES);
    fixture_consume_json(&f, place->nodes[0], json, spans, NULL);
    fixture_advance(&f, 400000000);
    if ((f.recorder.count == 1) != cases[i].sampled)
        fail_msg("case %zu: %s: %zu requests", i, cases[i].policies, f.recorder.count);
    if (cases[i].sampled)
        assert_int_equal(f.recorder.items[0].items, spans);
    assert_true(metrics_value(f.process.metrics,
                              "otelcol_processor_tail_sampling_global_count_traces_sampled",
                              cases[i].sampled ? "processor=\"tail_sampling\",sampled=\"true\","
                                                 "decision=\"sampled\""
                                               : "processor=\"tail_sampling\",sampled=\"false\","
                                                 "decision=\"not_sampled\"") +
                    metrics_value(f.process.metrics,
                                  "otelcol_processor_tail_sampling_global_count_traces_sampled",
                                  "processor=\"tail_sampling\",sampled=\"false\","
                                  "decision=\"dropped\"") ==
                1);
    fixture_deinit(&f);
    text_deinit(&yaml);
    free(json);
}

static void test_policies_decide(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_decision(i);
}

/* ---- mistakes ---- */

#define WITH(policy) "{policies: [" policy "]}"

static const char *const mistakes[][2] = {
    {WITH("{type: always_sample}"), "policy name cannot be empty"},
    {WITH(ALL ", " ALL), "duplicate policy name \"all\""},
    {WITH("{name: p, type: latncy}"), "did you mean \"latency\""},
    {WITH("{name: p, type: latency, latency: {threshold: 5}}"), "threshold_ms"},
    {WITH(POLICY("numeric_attribute", "key: a")), "at least one of min_value and max_value"},
    {WITH(POLICY("status_code", "status_codes: []")), "expected at least one status code"},
    {WITH(POLICY("status_code", "status_codes: [error]")), "unknown status code \"error\""},
    {WITH(POLICY("string_attribute", "key: a, values: ['('], enabled_regex_matching: true")), "("},
    {WITH(POLICY("ottl_condition", "error_mode: ignore")), "at least one OTTL condition"},
    {WITH(POLICY("ottl_condition", "span: ['nme == 1']")), "nme"},
    {WITH(POLICY("function", "pattern: '['")), "["},
    {WITH("{name: p, type: drop, drop: {drop_sub_policy: []}}"), "at least one policy"},
    {WITH("{name: p, type: and}"), "at least one policy"},
    {WITH("{name: p, type: and, and: {and_sub_policy: [{name: a, type: and}]}}"),
     "a policy of type and is not allowed here"},
    {"{sampling_strategy: span-ingest, policies: [" POLICY("rate_limiting",
                                                           "spans_per_second: 1") "]}",
     "requires all policies to be stateless"},
    {"{sampling_strategy: span-ingest, policies: [" POLICY(
         "latency", "threshold_ms: 1, upper_threshold_ms: 5") "]}",
     "requires all policies to be stateless"},
    {"{tail_storage: redis, policies: [" ALL "]}", "is not supported"},
    {"{num_traces: 0, policies: [" ALL "]}", "num_traces"},
};

static void test_mistakes_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        fixture_refuses(&tail_sampling_processor_type, mistakes[i][0], mistakes[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thresholds_are_the_collectors),
        cmocka_unit_test(test_hashes_are_the_collectors),
        cmocka_unit_test(test_policies_decide),
        cmocka_unit_test(test_mistakes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

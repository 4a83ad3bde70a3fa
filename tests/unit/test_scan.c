#include "core/data/scan.h"

#include "core/base/arena.h"
#include "core/data/dictionary.h"
#include "core/data/utf8.h"

#include "captures.h"
#include "wire_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* The expected result: accepted, or this text. */
#define ACCEPTED NULL

struct scan_case {
    const char *request;
    const char *error;
};

typedef bool scan_function(struct slice, const struct scan_limits *, struct scan_result *,
                           struct error *);

/* Scans with and without the fast path: the results must be equal. */
static bool scan_twice(scan_function *scan, struct slice request, struct scan_limits limits,
                       struct scan_result *result, struct error *err)
{
    enum { RESULT_SIZE = offsetof(struct scan_result, misses_zero_entries) + sizeof(bool) };
    struct scan_result careful_result;
    struct error careful_err;
    bool accepted = scan(request, &limits, result, err);

    limits.careful = true;
    assert_int_equal(scan(request, &limits, &careful_result, &careful_err), accepted);
    if (!accepted)
        assert_string_equal(err->text, careful_err.text);
    assert_memory_equal(result, &careful_result, RESULT_SIZE);
    return accepted;
}

/* Scans the request followed by an unknown field, because the fast path stops before the end of a
 * request. */
static void scan_longer(scan_function *scan, const char *notation)
{
    struct text longer = {0};
    struct text request;
    struct scan_result result;
    struct error err;

    text_append(&longer, notation);
    text_append(&longer, " 300*99{}");
    request = wire_text(text_string(&longer));
    scan_twice(scan, wire_text_slice(&request), scan_limits_default, &result, &err);
    text_deinit(&request);
    text_deinit(&longer);
}

static void check_cases(scan_function *scan, const struct scan_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct text request = wire_text(cases[i].request);
        struct scan_result result;
        struct error err = {.text = "accepted"};
        bool accepted =
            scan_twice(scan, wire_text_slice(&request), scan_limits_default, &result, &err);

        scan_longer(scan, cases[i].request);
        if (accepted != !cases[i].error || (!accepted && strcmp(err.text, cases[i].error) != 0))
            fail_msg("%s:\n  expected %s\n  got      %s", cases[i].request,
                     cases[i].error ? cases[i].error : "accepted",
                     accepted ? "accepted" : err.text);
        text_deinit(&request);
    }
}

#define CHECK(scan, cases) check_cases(scan, cases, sizeof(cases) / sizeof((cases)[0]))

#define TRACE_ID "x000102030405060708090a0b0c0d0e0f"
#define SPAN_ID "x0001020304050607"
/* A span with these fields */
#define SPAN(fields) "1{2{2{" fields "}}}"
/* An attribute with this value */
#define VALUE(fields) SPAN("9{1\"k\" 2{" fields "}}")
#define THE_SPAN "resource_spans[0].scope_spans[0].spans[0]"

static const struct scan_case structure_cases[] = {
    {"", ACCEPTED},
    {"1{}", ACCEPTED},
    {SPAN(""), ACCEPTED},
    {"!0a", "resource_spans[0]: a length is truncated, or longer than 5 bytes"},
    {"!0a8080808080", "resource_spans[0]: a length is truncated, or longer than 5 bytes"},
    {"!0a808080808001", "resource_spans[0]: a length is truncated, or longer than 5 bytes"},
    {"!0a8080808000", ACCEPTED}, /* padded */
    {"!0a05", "resource_spans[0]: 5 bytes do not fit into the enclosing message"},
    {"!0affffffff0f", "resource_spans[0]: 4294967295 bytes do not fit into the enclosing message"},
    {"1{} !80", "the request: a field has a malformed tag"},
    {"!808080808001", "the request: a field has a malformed tag"},
    {"!8a000112",
     "resource_spans[0].scope_spans[0]: a length is truncated, or longer than 5 bytes"},
    {"!8a00021200", ACCEPTED},
    {"!8a00001200", ACCEPTED}, /* the tag of field 1 in two bytes, then an unknown field 2 */
    {"!02", "the request: a field has the number 0"},
    {"!8000", "the request: a field has the number 0"},
    {"1{ !00 }", "resource_spans[0]: a field has the number 0"},
    {"1{ !13 }",
     "resource_spans[0].scope_spans[0]: a group, or an unknown wire type: OTLP has none"},
    {"!4b4c", "the request: a group, or an unknown wire type: OTLP has none"},
    {"!bc06", "the request: a group, or an unknown wire type: OTLP has none"},
    {"!0e", "resource_spans[0]: a group, or an unknown wire type: OTLP has none"},
    {"1=3", "resource_spans[0]: has the wrong wire type: 0"},
    {SPAN("5=3"), THE_SPAN ".name: has the wrong wire type: 0"},
    {SPAN("6\"\""), THE_SPAN ".kind: has the wrong wire type: 2"},
    {SPAN("7=1"), THE_SPAN ".start_time_unix_nano: has the wrong wire type: 0"},
    {SPAN("16#1"), THE_SPAN ".flags: has the wrong wire type: 1"},
    {SPAN("16%1 6=2 7#1 8#2"), ACCEPTED},
    {SPAN("!30"), THE_SPAN ".kind: a number is truncated, or longer than 10 bytes"},
    {SPAN("!30ffffffffffffffffff01"), ACCEPTED},
    {SPAN("!30ffffffffffffffffffff01"),
     THE_SPAN ".kind: a number is truncated, or longer than 10 bytes"},
    {SPAN("!3900000000"),
     THE_SPAN ".start_time_unix_nano: 8 bytes do not fit into the enclosing message"},
    {SPAN("!8501000000"), THE_SPAN ".flags: 4 bytes do not fit into the enclosing message"},
};

static const struct scan_case field_cases[] = {
    /* Unknown fields of every kind are skipped, whatever they contain. */
    {SPAN("17=1 18#1 19\"\\xff\" 1000{5=1} 536870911%1"), ACCEPTED},
    {"1{2{2{} 2{} 2{6=1 5xff}}}",
     "resource_spans[0].scope_spans[0].spans[2].name: is not valid UTF-8"},
    {"1{} 1{2{} 3xc3}", "resource_spans[1].schema_url: is not valid UTF-8"},
    {SPAN("5xc3a4"), ACCEPTED},
    /* Backwards, as the Collector writes it */
    {SPAN("16%1 15{3=2 2\"m\"} 9{2{1\"v\"} 1\"k\"} 8#2 7#1 6=2 5\"n\" 2" SPAN_ID " 1" TRACE_ID),
     ACCEPTED},
    {SPAN("9{2{3=200} 1\"k\"} 9{2{1xff} 1\"k\"}"),
     THE_SPAN ".attributes[1].value.string_value: is not valid UTF-8"},
    {SPAN("9{2{3=200} 1\"k\"} 9{2{1\"v\"} 1xff}"),
     THE_SPAN ".attributes[1].key: is not valid UTF-8"},
    {SPAN("11{1#7 2\"e\" 3{1\"k\" 2{4#1}}} 11{2xff}"),
     THE_SPAN ".events[1].name: is not valid UTF-8"},
    {SPAN("1" TRACE_ID " 2" SPAN_ID " 4" SPAN_ID), ACCEPTED},
    {SPAN("1\"\" 2\"\" 4\"\""), ACCEPTED},
    {SPAN("1\"123\""), THE_SPAN ".trace_id: has 3 bytes, must have 16 or none"},
    {SPAN("1" SPAN_ID), THE_SPAN ".trace_id: has 8 bytes, must have 16 or none"},
    {SPAN("2" TRACE_ID), THE_SPAN ".span_id: has 16 bytes, must have 8 or none"},
    {SPAN("4\"1\""), THE_SPAN ".parent_span_id: has 1 bytes, must have 8 or none"},
    {SPAN("13{1" TRACE_ID " 2" SPAN_ID "}"), ACCEPTED},
    {SPAN("13{} 13{1\"1\"}"), THE_SPAN ".links[1].trace_id: has 1 bytes, must have 16 or none"},
    {SPAN("13{2\"1\"}"), THE_SPAN ".links[0].span_id: has 1 bytes, must have 8 or none"},
    {"1{1{} 1{}}", "resource_spans[0].resource: must not appear more than once"},
    {"1{2{1{} 1{}}}", "resource_spans[0].scope_spans[0].scope: must not appear more than once"},
    {SPAN("15{} 15{}"), THE_SPAN ".status: must not appear more than once"},
    {SPAN("9{2{} 2{}}"), THE_SPAN ".attributes[0].value: must not appear more than once"},
    {SPAN("5\"a\" 5\"b\""), ACCEPTED},
    {VALUE("1\"text\""), ACCEPTED},
    {VALUE("2=1"), ACCEPTED},
    {VALUE("3=-1"), ACCEPTED},
    {VALUE("3=300"), ACCEPTED},
    {VALUE("4#1"), ACCEPTED},
    {VALUE("!21ffffffffffffffff"), ACCEPTED},
    {VALUE("!187f00"), THE_SPAN ".attributes[0].value: a field has the number 0"},
    {SPAN("9{2{3=300} 1\"k\"}"), ACCEPTED}, /* the value first */
    {SPAN("9{2{!21ffffffffffffffff} 1\"k\"}"), ACCEPTED},
    {SPAN("9{2{3=300} 1xff}"), THE_SPAN ".attributes[0].key: is not valid UTF-8"},
    {SPAN("9{1xff 2{3=300}}"), THE_SPAN ".attributes[0].key: is not valid UTF-8"},
    {VALUE("5{1{1\"a\"} 1{2=1}}"), ACCEPTED},
    {VALUE("6{1{1\"a\" 2{1\"b\"}}}"), ACCEPTED},
    {VALUE("7xff"), ACCEPTED},
    {VALUE(""), ACCEPTED},
    {VALUE("1\"a\" 2=1"), ACCEPTED}, /* the last one counts */
    {VALUE("1xff"), THE_SPAN ".attributes[0].value.string_value: is not valid UTF-8"},
    {SPAN("9{1xff 2{1\"a\"}}"), THE_SPAN ".attributes[0].key: is not valid UTF-8"},
    {SPAN("9{1xff 2{2=1}}"), THE_SPAN ".attributes[0].key: is not valid UTF-8"},
    {SPAN("9{1xff 2{4#1}}"), THE_SPAN ".attributes[0].key: is not valid UTF-8"},
    {VALUE("!08"), THE_SPAN ".attributes[0].value.string_value: has the wrong wire type: 0"},
    {VALUE("!0a01"),
     THE_SPAN ".attributes[0].value.string_value: 1 bytes do not fit into the enclosing message"},
    {VALUE("!18ff"),
     THE_SPAN ".attributes[0].value.int_value: a number is truncated, or longer than 10 bytes"},
    {VALUE("!18ffffffffffffffffffff01"),
     THE_SPAN ".attributes[0].value.int_value: a number is truncated, or longer than 10 bytes"},
    {VALUE("5{1{} 1{5{1{1xff}}}}"),
     THE_SPAN ".attributes[0].value.array_value.values[1]."
              "array_value.values[0].string_value: is not valid UTF-8"},
    /* In traces, references count as absent, whatever their value. */
    {SPAN("9{3=99 2{8=99}}"), ACCEPTED},
    {SPAN("9{1\"k\" 3=-1 2{8=-1}}"), ACCEPTED},
};

static void test_structure(void **state)
{
    (void)state;
    CHECK(scan_traces, structure_cases);
}

static void test_fields(void **state)
{
    (void)state;
    CHECK(scan_traces, field_cases);
}

#define SAMPLE(fields) "1{2{2{2{" fields "}}}}"
#define THE_PROFILE "resource_profiles[0].scope_profiles[0].profiles[0]"
#define THE_SAMPLE THE_PROFILE ".samples[0]"
/* Two entries in each table, of which the first is the zero value */
#define DICTIONARY                                                                                 \
    "2{1{} 1{1=4096} 2{} 2{2=1} 3{} 3{1=1} 4{} 4{1" TRACE_ID " 2" SPAN_ID "}"                      \
    " 5\"\" 5\"one\" 6{} 6{1=1 2{1\"v\"}} 7{} 7{1[1]}}"
#define THE_STACK "dictionary.stack_table[0].location_indices"
#define OF_300 " is outside the location_table, which has 300 entries"
#define OUTSIDE(table) " is outside the " table ", which has 2 entries"

/* A metric with these fields; with data (a number) of one point */
#define METRIC(fields) "1{2{2{" fields "}}}"
#define POINT(data, fields) METRIC(data "{1{" fields "}}")
#define THE_METRIC "resource_metrics[0].scope_metrics[0].metrics[0]"

static const struct scan_case metrics_cases[] = {
    {"", ACCEPTED},
    {"1{1{1{1\"k\" 2{1\"v\"}}} 3\"schema\"}", ACCEPTED},
    {METRIC("1\"n\" 2\"d\" 3\"u\" 12{1\"k\" 2{3=1}}"), ACCEPTED},
    {METRIC("1xff"), THE_METRIC ".name: is not valid UTF-8"},
    {POINT("5", "2#1 3#2 4#3 7{1\"k\" 2{1\"v\"}} 8=1"), ACCEPTED},
    {POINT("7", "5{2#1 4" SPAN_ID " 5" TRACE_ID " 6#1} 6#4"), ACCEPTED},
    {POINT("5", "5{4x01}"), THE_METRIC ".gauge.data_points[0].exemplars[0].span_id: has 1 bytes, "
                                       "must have 8 or none"},
    {METRIC("1\"n\" 7{1{6#1} 1{5{3#1} 6#2} 2=2 3=1}"), ACCEPTED},
    {METRIC("7{2=2 1{6#1}} 1\"n\""), ACCEPTED},
    {METRIC("7{1{}} 5{1{}}"), ACCEPTED},
    {METRIC("9{1{} 1{}} 12{1\"k\"}"), ACCEPTED},
    {METRIC("5{1{7{1\"k\" 2{1\"v\"}}} 1{7{1xff}} 1{}}"),
     THE_METRIC ".gauge.data_points[1].attributes[0].key: is not valid UTF-8"},
    {METRIC("5{1{}} 5{1{}}"), THE_METRIC ".gauge: must not appear more than once"},
    {METRIC("7{1{} 2#2}"), THE_METRIC ".sum.aggregation_temporality: has the wrong wire type: 1"},
    {METRIC("5{} 5{}"), THE_METRIC ".gauge: must not appear more than once"},
    {POINT("9", "6[#1 2] 7[#3]"), ACCEPTED},
    {POINT("9", "2#1 3#2 4#3 5#4 11#5 12#6 6[#1 2] 7[#3] 8{2#1 3#2 4" SPAN_ID " 5" TRACE_ID
                "} 8{7{1\"k\" 2{3=1}}} 9{1\"k\" 2{1\"v\"}} 10=1"),
     ACCEPTED},
    {POINT("9", "8{} 8{5x01}"), THE_METRIC ".histogram.data_points[0].exemplars[1].trace_id: has 1 "
                                           "bytes, must have 16 or none"},
    {POINT("9", "6#1 6#2 7#3"), ACCEPTED}, /* not packed */
    {POINT("9", "6x00"),
     THE_METRIC ".histogram.data_points[0].bucket_counts[0]: the packed numbers "
                "are truncated, or one is longer than 10 bytes"},
    {POINT("9", "6=1"), THE_METRIC ".histogram.data_points[0].bucket_counts[0]: has the wrong wire "
                                   "type: 0"},
    {POINT("10", "6=3 8{1=1 2[1 2 3]} 9{2=7} 14#1"), ACCEPTED},
    {POINT("10", "8{2x80}"), THE_METRIC
     ".exponential_histogram.data_points[0].positive.bucket_counts[0]: the packed numbers are "
     "truncated, or one is longer than 10 bytes"},
    {POINT("11", "6{1#1 2#2} 6{}"), ACCEPTED},
};

static void test_metrics(void **state)
{
    (void)state;
    CHECK(scan_metrics, metrics_cases);
}

#define RECORD(fields) "1{2{2{" fields "}}}"
#define THE_RECORD "resource_logs[0].scope_logs[0].log_records[0]"

static const struct scan_case logs_cases[] = {
    {"", ACCEPTED},
    {RECORD("1#1 11#2 2=9 3\"INFO\" 5{1\"body\"} 6{1\"k\" 2{4#1}} 7=1 8%1 9" TRACE_ID " 10" SPAN_ID
            " 12\"e\""),
     ACCEPTED},
    {RECORD("5{6{1{1\"k\" 2{5{1{1xff}}}}}}"), THE_RECORD
     ".body.kvlist_value.values[0].value.array_value.values[0].string_value: is not valid "
     "UTF-8"},
    {RECORD("1#1 11#2 5{1\"\xc3\xa4\"} 11#3"), ACCEPTED},
    {RECORD("5{1\"\"}"), ACCEPTED},
    {RECORD("5{1\"a\" 2=1}"), ACCEPTED},
    {RECORD("5{1xff}"), THE_RECORD ".body.string_value: is not valid UTF-8"},
    {RECORD("5{1\"a\"} 5{1\"a\"}"), THE_RECORD ".body: must not appear more than once"},
    {RECORD("!2a040a036162"),
     THE_RECORD ".body.string_value: 3 bytes do not fit into the enclosing message"},
    {RECORD("!2a040a0361"), THE_RECORD ".body: 4 bytes do not fit into the enclosing message"},
    {RECORD("9x00"), THE_RECORD ".trace_id: has 1 bytes, must have 16 or none"},
    {RECORD("8=1"), THE_RECORD ".flags: has the wrong wire type: 0"},
};

static void test_logs(void **state)
{
    (void)state;
    CHECK(scan_logs, logs_cases);
}

/* Data points of all five kinds count, and nothing else. */
static void test_counts_of_relayed_signals(void **state)
{
    (void)state;
    static const struct {
        scan_function *scan;
        const char *request;
        uint32_t groups, items;
    } cases[] = {
        {scan_metrics,
         "1{2{2{5{1{} 1{5{}}}} 2{7{1{}}}}} 1{} 1{2{2{9{1{}}} 2{10{1{}}} 2{11{1{6{}}}}}}", 3, 6},
        {scan_metrics, METRIC("5{1{}} 7{1{}}"), 1, 2},
        {scan_logs, "1{2{2{} 2{5{}}} 2{2{}}} 1{2{}}", 2, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text request = wire_text(cases[i].request);
        struct scan_result result;
        struct error err;
        assert_true(scan_twice(cases[i].scan, wire_text_slice(&request), scan_limits_default,
                               &result, &err));
        assert_int_equal(result.groups, cases[i].groups);
        assert_int_equal(result.items, cases[i].items);
        text_deinit(&request);
    }
}

static const struct scan_case profiles_cases[] = {
    {"", ACCEPTED},
    {"2{}", ACCEPTED},
    {DICTIONARY, ACCEPTED},
    {DICTIONARY SAMPLE("1=1 2[1 0 1] 3=1 4[5]"), ACCEPTED},
    {SAMPLE("1=1 2[1 0 1] 3=1 4[5]") DICTIONARY, ACCEPTED}, /* the dictionary follows */
    {SAMPLE("1=0 2[0 0] 3=0 4[5]"), ACCEPTED},              /* index 0 needs no table */
    {DICTIONARY SAMPLE("1=2 4[1]"), THE_SAMPLE ".stack_index: 2" OUTSIDE("stack_table")},
    {DICTIONARY SAMPLE("1=-1 4[1]"), THE_SAMPLE ".stack_index: -1" OUTSIDE("stack_table")},
    {DICTIONARY SAMPLE("1=4294967297 4[1]"),
     THE_SAMPLE ".stack_index: 4294967297" OUTSIDE("stack_table")},
    {DICTIONARY SAMPLE("3=2 4[1]"), THE_SAMPLE ".link_index: 2" OUTSIDE("link_table")},
    {DICTIONARY SAMPLE("2[1 1 2] 4[1]"),
     THE_SAMPLE ".attribute_indices[2]: 2" OUTSIDE("attribute_table")},
    {DICTIONARY SAMPLE("2=1 2[1 1] 2=1 2=7 4[1]"),
     THE_SAMPLE ".attribute_indices[4]: 7" OUTSIDE("attribute_table")},
    {SAMPLE("3=9 4[1]") "2{4{}}",
     THE_SAMPLE ".link_index: 9 is outside the link_table, which has 1 entries"},
    {DICTIONARY "1{2{2{11[2]}}}",
     THE_PROFILE ".attribute_indices[0]: 2" OUTSIDE("attribute_table")},
    {DICTIONARY "1{2{2{1{1=2}}}}",
     THE_PROFILE ".sample_type.type_strindex: 2" OUTSIDE("string_table")},
    {DICTIONARY "1{2{2{5{2=2}}}}",
     THE_PROFILE ".period_type.unit_strindex: 2" OUTSIDE("string_table")},
    {DICTIONARY "1{2{2{7\"1\"}}}", THE_PROFILE ".profile_id: has 1 bytes, must have 16 or none"},
    {DICTIONARY "1{2{2{7" TRACE_ID " 9\"pprof\" 10xff}}}", ACCEPTED},
    {"2{7{1[1]}}",
     "dictionary.stack_table[0].location_indices[0]: 1 is outside the location_table, "
     "which has 0 entries"},
    /* indices of two bytes, which are read four at a time */
    {"2{300*2{} 7{1[299 128 200 299 130 255 256 299]}}", ACCEPTED},
    {"2{300*2{} 7{1[299 1 128 200 299 130 2 255 256 299 3]}}", ACCEPTED},
    {"2{300*2{} 7{1[300 128 200 299 130 255 256 299]}}", THE_STACK "[0]: 300" OF_300},
    {"2{300*2{} 7{1[299 128 200 300 130 255 256 299]}}", THE_STACK "[3]: 300" OF_300},
    {"2{300*2{} 7{1[299 128 200 299 130 16383 256 299]}}", THE_STACK "[5]: 16383" OF_300},
    {"2{300*2{} 7{1[299 1 128 200 299 130 2 255 256 300 3]}}", THE_STACK "[9]: 300" OF_300},
    {"2{300*2{} 7{1[128 128 128 128 128 128 128 128 16384]}}", THE_STACK "[8]: 16384" OF_300},
    {"2{16383*2{} 7{1[16382 16382 16382 16382 16382 128 16383 128]}}",
     THE_STACK "[6]: 16383 is outside the location_table, which has 16383 entries"},
    {"2{16384*2{} 7{1[16383 16383 16383 16383]}}", ACCEPTED},
    {"2{16384*2{} 7{1[16383 16383 16383 16384]}}",
     THE_STACK "[3]: 16384 is outside the location_table, which has 16384 entries"},
    {"2{2{1=1}}", "dictionary.location_table[0].mapping_index: 1 is outside the mapping_table, "
                  "which has 0 entries"},
    {"2{2{3{} 3{1=1}}}", "dictionary.location_table[0].lines[1].function_index: 1 is outside the "
                         "function_table, which has 0 entries"},
    {"2{2{4[1]}}", "dictionary.location_table[0].attribute_indices[0]: 1 is outside the "
                   "attribute_table, which has 0 entries"},
    {"2{1{4=1}}", "dictionary.mapping_table[0].filename_strindex: 1 is outside the string_table, "
                  "which has 0 entries"},
    {"2{1{5[1]}}", "dictionary.mapping_table[0].attribute_indices[0]: 1 is outside the "
                   "attribute_table, which has 0 entries"},
    {"2{3{} 3{2=1}}", "dictionary.function_table[1].system_name_strindex: 1 is outside the "
                      "string_table, which has 0 entries"},
    {"2{6{3=1}}", "dictionary.attribute_table[0].unit_strindex: 1 is outside the string_table, "
                  "which has 0 entries"},
    {"2{4{1\"1\"}}", "dictionary.link_table[0].trace_id: has 1 bytes, must have 16 or none"},
    {"2{5xff}", "dictionary.string_table[0]: is not valid UTF-8"},
    /* Two dictionaries are one: the second continues the tables of the first. */
    {"2{7{} 7{}} 2{7{}}" SAMPLE("1=2 4[1]"), ACCEPTED},
    {"2{7{} 7{}} 2{7{}}" SAMPLE("1=3 4[1]"),
     THE_SAMPLE ".stack_index: 3 is outside the stack_table, which has 3 entries"},
    /* Shapes */
    {SAMPLE("4[1] 5[#7]"), ACCEPTED},
    {SAMPLE("5[#7 8]"), ACCEPTED},
    {SAMPLE("5#7 5#8"), ACCEPTED},
    {SAMPLE("4=1 4=2 4[3 4] 5[#1 2 3 4]"), ACCEPTED},
    {SAMPLE("4[-1]"), ACCEPTED},
    {SAMPLE(""), THE_SAMPLE ": has neither values nor timestamps"},
    {SAMPLE("1=0 4[]"), THE_SAMPLE ": has neither values nor timestamps"},
    {SAMPLE("4[1 2] 5[#1]"), THE_SAMPLE ": has 2 values and 1 timestamps"},
    {SAMPLE("5x00"), THE_SAMPLE
     ".timestamps_unix_nano[0]: the packed numbers are truncated, or one is longer than 10 bytes"},
    {SAMPLE("4xff"),
     THE_SAMPLE ".values[0]: the packed numbers are truncated, or one is longer than 10 bytes"},
    {SAMPLE("4xffffffffffffffffffffff01"),
     THE_SAMPLE ".values[0]: the packed numbers are truncated, or one is longer than 10 bytes"},
    {SAMPLE("2x80 4[1]"), THE_SAMPLE
     ".attribute_indices[0]: the packed numbers are truncated, or one is longer than 10 bytes"},
    {SAMPLE("5[1]"), THE_SAMPLE
     ".timestamps_unix_nano[0]: the packed numbers are truncated, or one is longer than 10 bytes"},
    /* References */
    {DICTIONARY "1{1{1{3=1 2{8=1}}}}", ACCEPTED},
    {DICTIONARY "1{1{1{3=2}}}",
     "resource_profiles[0].resource.attributes[0].key_strindex: 2" OUTSIDE("string_table")},
    {DICTIONARY "1{2{1{3{1\"k\" 2{8=-1}}}}}",
     "resource_profiles[0].scope_profiles[0].scope.attributes[0].value.string_value_strindex: "
     "-1" OUTSIDE("string_table")},
    {DICTIONARY "1{1{1{1\"k\" 3=0}}}", ACCEPTED},
    {DICTIONARY "1{1{1{1\"\" 3=1}}}", ACCEPTED},
    {DICTIONARY "1{1{1{1\"k\" 3=1}}}",
     "resource_profiles[0].resource.attributes[0]: has both key and key_strindex"},
    /* A broken dictionary is reported as such, not as an index that it lacks. */
    {SAMPLE("1=1 4[1]") "2{7{} !3a05}",
     "dictionary.stack_table[1]: 5 bytes do not fit into the enclosing message"},
};

/* A list of indices of which one is outside its table, at any position. */
struct index_list {
    const char *notation; /* with places for the size of the table and the list */
    const char *place;
    const char *table;
};

struct index_values {
    unsigned table_size, first, second; /* taking turns */
    unsigned outside;
};

/* Checks a list in which the index at `at` is outside; at == count: all are inside. */
static void check_list(const struct index_list *list, const struct index_values *values,
                       unsigned count, unsigned at)
{
    struct text numbers = {0};
    struct text notation = {0};
    char expected[160];

    for (unsigned i = 0; i < count; i++)
        text_printf(&numbers, " %u",
                    i == at ? values->outside
                    : i % 2 ? values->second
                            : values->first);
    text_printf(&notation, list->notation, values->table_size, text_string(&numbers));
    snprintf(expected, sizeof expected, "%s[%u]: %u is outside the %s, which has %u entries",
             list->place, at, values->outside, list->table, values->table_size);
    struct scan_case both = {text_string(&notation), at < count ? expected : ACCEPTED};
    check_cases(scan_profiles, &both, 1);
    text_deinit(&notation);
    text_deinit(&numbers);
}

static void test_every_place_in_a_list(void **state)
{
    /* The second entry of each kind, because the slow path always checks the first. */
    static const struct index_list lists[] = {
        {"2{%u*2{} 7{} 7{1[%s]}}", "dictionary.stack_table[1].location_indices", "location_table"},
        {"2{%u*6{} 2{} 2{4[%s]}}", "dictionary.location_table[1].attribute_indices",
         "attribute_table"},
        {"2{%u*6{}} 1{2{2{2{4[1]} 2{2[%s] 4[1]}}}}",
         "resource_profiles[0].scope_profiles[0].profiles[0].samples[1].attribute_indices",
         "attribute_table"},
    };
    static const struct index_values values[] = {
        {100, 99, 0, 100},    {100, 1, 99, 127},      {100, 99, 98, 128}, {128, 127, 1, 128},
        {300, 299, 299, 300}, {300, 299, 256, 16383}, {300, 5, 299, 300}, {300, 127, 128, 16384},
    };

    (void)state;
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++)
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
            for (unsigned count = 1; count <= 40; count++)
                for (unsigned at = 0; at <= count; at++)
                    check_list(&lists[l], &values[v], count, at);
}

/* The second of two samples of OTLP 1.9; the first is only valid in 1.9 */
#define V19_SAMPLES(fields) "1{2{2{2{2[500]} 2{" fields "}}}}"
#define THE_V19_SAMPLE "read as OTLP 1.9: " THE_PROFILE ".samples[1]"

static const struct scan_case v19_cases[] = {
    {DICTIONARY SAMPLE("1=1 2[500]"), ACCEPTED},
    {DICTIONARY SAMPLE("1=1 2[500] 3[1] 4=1 5[#7]"), ACCEPTED},
    {DICTIONARY V19_SAMPLES("2[500] 4=2"), THE_V19_SAMPLE ".link_index: 2" OUTSIDE("link_table")},
    {DICTIONARY V19_SAMPLES("2[500] 3[1 2]"),
     THE_V19_SAMPLE ".attribute_indices[1]: 2" OUTSIDE("attribute_table")},
    {DICTIONARY V19_SAMPLES("2[500 500] 5[#1]"), THE_V19_SAMPLE ": has 2 values and 1 timestamps"},
    {DICTIONARY V19_SAMPLES("2[1]") " 1{!02}",
     "read as OTLP 1.9: resource_profiles[1]: a field has the number 0"},
    /* Both layouts fail in the same sample: the current one is reported. */
    {DICTIONARY SAMPLE("1=2 2[500]"), THE_SAMPLE ".stack_index: 2" OUTSIDE("stack_table")},
    {DICTIONARY SAMPLE("2[500] 4=2"),
     THE_SAMPLE ".attribute_indices[0]: 500" OUTSIDE("attribute_table")},
};

static void test_profiles(void **state)
{
    (void)state;
    CHECK(scan_profiles, profiles_cases);
}

static void test_v19(void **state)
{
    (void)state;
    CHECK(scan_profiles, v19_cases);
}

static struct scan_result scan_text(scan_function *scan, const char *notation)
{
    struct text request = wire_text(notation);
    struct scan_result result;
    struct error err;

    scan_longer(scan, notation);
    if (!scan_twice(scan, wire_text_slice(&request), scan_limits_default, &result, &err))
        fail_msg("%s: %s", notation, err.text);
    text_deinit(&request);
    return result;
}

static void test_layout(void **state)
{
    static const struct {
        const char *request;
        enum scan_layout layout;
    } cases[] = {
        {DICTIONARY SAMPLE("1=1 4[1]"), SCAN_LAYOUT_CURRENT},
        {DICTIONARY SAMPLE("1=1 5[#1]"), SCAN_LAYOUT_CURRENT}, /* the same in both */
        {DICTIONARY SAMPLE("1=1 4=1"), SCAN_LAYOUT_CURRENT},   /* an unpacked value, no link */
        {DICTIONARY SAMPLE("2[1] 5[#1]"), SCAN_LAYOUT_CURRENT},
        {DICTIONARY SAMPLE("2[1]"), SCAN_LAYOUT_V19}, /* otherwise neither values nor timestamps */
        {DICTIONARY SAMPLE("2[2] 5[#1]"),
         SCAN_LAYOUT_V19}, /* otherwise outside the attribute_table */
        {DICTIONARY SAMPLE("2[1] 3[1]"), SCAN_LAYOUT_V19}, /* otherwise link_index is not a list */
        {DICTIONARY SAMPLE("2[1 1] 4=1 5[#1 2]"), SCAN_LAYOUT_V19}, /* otherwise one value */
        /* One sample decides for all. */
        {DICTIONARY SAMPLE("2[1] 5[#1]") SAMPLE("2[1] 4=1") SAMPLE("2[1]"), SCAN_LAYOUT_V19},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (scan_text(scan_profiles, cases[i].request).layout != cases[i].layout)
            fail_msg("%s: the other layout", cases[i].request);
}

static void test_zero_entries(void **state)
{
    static const struct {
        const char *request;
        bool missing;
    } cases[] = {
        {"", false},
        {"2{}", false},
        {"1{1{1{1\"k\"}}}", false},
        {DICTIONARY SAMPLE("4[1]"), false},
        {"2{1{} 2{} 3{} 4{} 5\"\" 6{} 7{}}" SAMPLE("4[1]"), false},
        /* Explicit, but zero */
        {"2{1{1=0 2=0 5[]} 2{1=0} 3{1=0} 4{1x00 2x0000} 5\"\" 6{1=0 2{} 3=0} 7{1[]}}", true},
        {"2{1{1=0 2=0 5[]} 2{1=0} 3{1=0} 4{1\"\" 2x0000000000000000} 5\"\" 6{2{}} 7{1[]}}", false},
        {"2{5\"\" 1{1=7 1=0}}", false}, /* the last one counts */
        /* Not zero */
        {"2{5\"\" 1{1=0 1=7}}", true},
        {"2{1{} 5\"\" 2{3{} 4[]}}", true},
        {"2{5\"a\"}", true},
        {"2{5\"\" 7{1[0]}}", true},
        {"2{5\"\" 7{1=0}}", true},
        {"2{1{} 3{} 2{3{}} 5\"\"}", true},
        {"2{4{2" SPAN_ID "}}", true},
        {"2{5\"\" 6{2{1\"\"}}}", true},
        /* Empty, and referred to by an explicit or an absent index */
        {SAMPLE("4[1]"), true},
        {"2{5\"\" 7{}}" SAMPLE("4[1]"), false},
        {"2{5\"\" 7{}}" SAMPLE("3=0 4[1]"), true},
        {"2{5\"\" 7{}}" SAMPLE("2[0] 4[1]"), true},
        {"2{5\"\"}" SAMPLE("4[1]"), true},
        {"2{7{}}" SAMPLE("4[1]"), true},
        {"2{5\"\" 2{}}", true},
        {"2{1{} 5\"\" 2{}}", false},
        {"2{1{} 5\"\" 2{} 2{3{}}}", true},
        {"2{3{}}", true},
        {"2{5\"\" 3{}}", false},
        {"1{1{1{2{8=0}}}}", true},
        /* Entry 0 is in the second of two dictionaries */
        {"2{} 2{5\"\" 7{}}" SAMPLE("4[1]"), false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text request = wire_text(cases[i].request);
        struct scan_result result;
        struct error err;

        scan_longer(scan_profiles, cases[i].request);
        if (!scan_twice(scan_profiles, wire_text_slice(&request), scan_limits_default, &result,
                        &err)) {
            assert_true(strstr(err.text, "must have")); /* the one with short ids */
        } else if (result.misses_zero_entries != cases[i].missing) {
            fail_msg("%s: expected %d", cases[i].request, cases[i].missing);
        }
        text_deinit(&request);
    }
}

static void test_result(void **state)
{
    struct scan_result traces = scan_text(
        scan_traces, "1{1{1{1\"k\" 2{1\"v\"}}} 2{1{} 2{} 2{11{} 9{1\"k\" 2{5{1{}}}}}}} 1{2{2{}}}");
    struct scan_result profiles =
        scan_text(scan_profiles,
                  "2{5\"\" 5\"a\" 2{}} 2{7{} 5\"b\"} 1{1{1{3=1}} 2{2{} 2{2{4=1} 2{4=1}}}} 1{}");
    uint32_t sizes[DICTIONARY_TABLE_COUNT] = {[DICTIONARY_STRING_TABLE] = 3,
                                              [DICTIONARY_LOCATION_TABLE] = 1,
                                              [DICTIONARY_STACK_TABLE] = 1};

    (void)state;
    assert_int_equal(traces.groups, 2);
    assert_int_equal(traces.items, 3);
    assert_int_equal(traces.profiles, 0);
    assert_int_equal(traces.elements, 16);
    assert_int_equal(profiles.groups, 2);
    assert_int_equal(profiles.profiles, 2);
    assert_int_equal(profiles.items, 2);
    assert_int_equal(profiles.elements, 16);
    assert_memory_equal(profiles.table_sizes, sizes, sizeof sizes);
    assert_true(profiles.has_references);
    assert_true(profiles.dictionaries);
    assert_true(profiles.misses_zero_entries); /* location 0 refers to mapping 0 */
}

static void check_limit(scan_function *scan, const char *notation, struct scan_limits limits,
                        const char *expected)
{
    struct text request = wire_text(notation);
    struct scan_result result;
    struct error err = {.text = "accepted"};

    scan_twice(scan, wire_text_slice(&request), limits, &result, &err);
    assert_string_equal(err.text, expected);
    text_deinit(&request);
}

static void test_limits(void **state)
{
    (void)state;
    check_limit(scan_traces, "1{2{5*2{}}}", (struct scan_limits){5, 7, 0, false}, "accepted");
    check_limit(scan_traces, "1{2{5*2{}}}", (struct scan_limits){4, 7, 0, false},
                "the request holds 5 spans, more than 4");
    check_limit(
        scan_traces, "1{2{5*2{}}}", (struct scan_limits){5, 6, 0, false},
        "resource_spans[0].scope_spans[0].spans[4]: more than 6 messages and strings in one "
        "request");
    check_limit(scan_traces, "1{2{2{9{1\"a\" 2{1\"b\"}}}}}", (struct scan_limits){5, 4, 0, false},
                THE_SPAN ".attributes[0]: more than 4 messages and strings in one request");
    check_limit(scan_profiles, "2{5\"\" 7{}} 1{2{2{5*2{4=1}}}}",
                (struct scan_limits){4, 100, 0, false}, "the request holds 5 samples, more than 4");
    check_limit(scan_traces, "3*1{}", (struct scan_limits){5, 7, 3, false}, "accepted");
    check_limit(scan_traces, "3*1{}", (struct scan_limits){5, 7, 2, false},
                "the request holds 3 resource_spans, more than 2");
    check_limit(scan_profiles, "3*1{}", (struct scan_limits){5, 7, 2, false},
                "the request holds 3 resource_profiles, more than 2");
    check_limit(scan_profiles, "2{7*5\"\"}", (struct scan_limits){5, 7, 0, false},
                "dictionary.string_table[6]: more than 7 messages and strings in one request");
}

/* Returns a span whose attribute contains nested arrays; `messages` levels in all. */
static struct text nested(unsigned messages)
{
    struct text inner = wire_text(messages % 2 ? "5{}" : "1\"\"");
    unsigned depth =
        messages % 2 ? 7 : 6; /* request, resource, scope, span, attribute, value (, array) */

    for (; depth < messages; depth += 2) {
        struct text notation = {0};

        text_append(&notation, "5{1x");
        text_append_hex(&notation, wire_text_slice(&inner));
        text_append(&notation, "}");
        text_deinit(&inner);
        inner = wire_text(text_string(&notation));
        text_deinit(&notation);
    }
    struct text notation = {0};
    text_append(&notation, "1{2{2{9{2x");
    text_append_hex(&notation, wire_text_slice(&inner));
    text_append(&notation, "}}}}");
    text_deinit(&inner);
    struct text request = wire_text(text_string(&notation));
    text_deinit(&notation);
    return request;
}

static void test_depth(void **state)
{
    (void)state;
    for (unsigned messages = SCAN_DEPTH_MAX - 1; messages < SCAN_DEPTH_MAX + 4; messages++) {
        struct text request = nested(messages);
        struct scan_result result;
        struct error err = {0};
        bool accepted = scan_traces(wire_text_slice(&request), &scan_limits_default, &result, &err);

        assert_int_equal(accepted, messages <= SCAN_DEPTH_MAX);
        if (!accepted)
            assert_non_null(strstr(err.text, "...: messages are nested more than 100 deep"));
        else
            assert_int_equal(result.elements, messages - 1);
        text_deinit(&request);
    }
    struct text request = nested(3000);
    struct scan_result result;
    struct error err;
    assert_false(scan_traces(wire_text_slice(&request), &scan_limits_default, &result, &err));
    text_deinit(&request);
}

/* The fast path for attributes must respect the depth limit. */
static void test_depth_of_attributes(void **state)
{
    (void)state;
    for (unsigned levels = 46; levels < 50; levels++) {
        struct text inner = wire_text("6{1{1\"k\" 2{1\"v\"}}}");
        struct text notation = {0};
        struct text request;
        struct scan_result result;
        struct error err;
        unsigned depth = 6 + 3; /* list, attribute, value below the outermost value */

        for (unsigned i = 0; i < levels; i++, depth += 2) {
            text_clear(&notation);
            text_append(&notation, "5{1x");
            text_append_hex(&notation, wire_text_slice(&inner));
            text_append(&notation, "}");
            text_deinit(&inner);
            inner = wire_text(text_string(&notation));
        }
        text_clear(&notation);
        text_append(&notation, "1{2{2{9{2x");
        text_append_hex(&notation, wire_text_slice(&inner));
        text_append(&notation, "}}}}");
        request = wire_text(text_string(&notation));
        assert_int_equal(
            scan_traces(wire_text_slice(&request), &scan_limits_default, &result, &err),
            depth <= SCAN_DEPTH_MAX);
        text_deinit(&inner);
        text_deinit(&notation);
        text_deinit(&request);
    }
}

/* Strings of every length around the size of a word, with one byte that is not ASCII at every
 * place. */
static void test_utf8(void **state)
{
    static const struct {
        const char *text;
        bool valid;
    } sequences[] = {
        {"\x7f", true},
        {"\xc3\xa4", true},
        {"\xe2\x82\xac", true},
        {"\xf0\x9f\x98\x80", true},
        {"\xf4\x8f\xbf\xbf", true},
        {"\xed\x9f\xbf", true},
        {"\x80", false},
        {"\xc0\x80", false},
        {"\xc1\xbf", false},
        {"\xe0\x9f\xbf", false},
        {"\xed\xa0\x80", false},
        {"\xf0\x8f\xbf\xbf", false},
        {"\xf4\x90\x80\x80", false},
        {"\xf5\x80\x80\x80", false},
        {"\xc3", false},
        {"\xe2\x82", false},
        {"\xf0\x9f\x98", false},
        {"\xff", false},
        {"\xc3\x28", false},
        {"\xe2\x28\xac", false},
    };

    (void)state;
    for (size_t size = 0; size < 40; size++)
        for (size_t place = 0; place <= size; place++)
            for (size_t i = 0; i < sizeof sequences / sizeof sequences[0]; i++) {
                struct text text = {0};

                for (size_t k = 0; k < place; k++)
                    text_append_char(&text, 'a');
                text_append(&text, sequences[i].text);
                for (size_t k = place; k < size; k++)
                    text_append_char(&text, 'z');
                assert_int_equal(utf8_is_valid(wire_text_slice(&text)), sequences[i].valid);
                text_deinit(&text);
            }
    assert_true(utf8_is_valid((struct slice){0}));
}

static void test_utf8_is_repaired(void **state)
{
    static const struct {
        const char *text, *repaired;
    } rows[] = {
        {"", ""},
        {"a\xc3\xa4", "a\xc3\xa4"},
        {"\xff\x80z", "??z"},
        {"\xe2\x82z\xe2\x82", "?z?"},
        {"\xe0\x9f\xbf", "???"},
        {"\xed\xa0\x80", "???"},
        {"\xf0\x9f\x98z\xf0\x9fz\xf0z", "?z?z?z"},
        {"\xf4\x90\x80\x80", "????"},
        {"\xc3\xf0\x9f\x98\x80", "?\xf0\x9f\x98\x80"},
        {"\xf5\xc1\xbf", "???"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text got = {0}, wanted = {0};
        for (const char *c = rows[i].repaired; *c; c++)
            text_append_slice(&wanted, *c == '?' ? SLICE("\xef\xbf\xbd") : slice_of(c, 1));
        utf8_append_repaired(slice_of_string(rows[i].text), &got);
        assert_string_equal(text_string(&got), text_string(&wanted));
        assert_true(utf8_is_valid(wire_text_slice(&got)));
        text_deinit(&got);
        text_deinit(&wanted);
    }
}

static void test_long_place(void **state)
{
    struct text request = nested(100);
    struct scan_result result;
    struct error err;

    (void)state;
    request.data[request.size - 2] = 0x08; /* the innermost value's text becomes a number */
    assert_false(scan_traces(wire_text_slice(&request), &scan_limits_default, &result, &err));
    assert_true(strlen(err.text) < 900);
    assert_non_null(strstr(err.text, "array_value.values[0]"));
    text_deinit(&request);
}

static void check_table(struct dictionary *known, struct dictionary *counted, int table)
{
    uint32_t count = dictionary_count(counted, table);
    assert_int_equal(dictionary_count(known, table), count);
    for (uint32_t i = 0; i < count; i++)
        assert_ptr_equal(dictionary_entry(known, table, i).data,
                         dictionary_entry(counted, table, i).data);
}

/* A dictionary that knows what the scan has found has the entries of one that counts them. */
static void check_layout(struct slice request, const struct scan_result *result)
{
    struct dictionary_layout layout = {.are_known = true};
    struct arena arena = {0};
    struct message root;
    struct dictionary *known, *counted;

    memcpy(layout.counts, result->table_sizes, sizeof layout.counts);
    memcpy(layout.starts, result->table_starts, sizeof layout.starts);
    message_init(&root, request);
    known = dictionary_new(&root, &arena);
    dictionary_know(known, &layout);
    counted = dictionary_new(&root, &arena);
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        check_table(known, counted, table);
    arena_deinit(&arena);
}

static void test_layouts(void **state)
{
    static const char *const requests[] = {
        "1{} 2{5\"\" 7{} 5\"cpu\" 1{} 7{1[0]} 5\"b\" 2{} 3{} 4{} 6{}} 1{}", "1{}", "2{}",
        "2{99=1 5\"\" 5\"x\"} 99=1"};

    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct text request = wire_text(requests[i]);
        for (int careful = 0; careful < 2; careful++) {
            struct scan_limits limits = scan_limits_default;
            struct scan_result result;
            struct error err;
            limits.careful = careful;
            assert_true(scan_profiles(wire_text_slice(&request), &limits, &result, &err));
            check_layout(wire_text_slice(&request), &result);
        }
        text_deinit(&request);
    }
}

/* Requests of real clients are accepted, and need no normalising. */
static void scan_capture(const struct capture *capture, void *context)
{
    unsigned *scanned = context;
    struct scan_result result;
    struct error err;
    bool accepted;

    if (capture->json)
        return;
    accepted = capture->signal == SIGNAL_TRACES
                   ? scan_traces(capture->body, &scan_limits_default, &result, &err)
                   : scan_profiles(capture->body, &scan_limits_default, &result, &err);
    if (!accepted)
        fail_msg("%s: %s", capture->name, err.text);
    assert_true(result.items > 0);
    assert_int_equal(result.layout, SCAN_LAYOUT_CURRENT);
    assert_false(result.has_references || result.dictionaries || result.misses_zero_entries);
    if (capture->signal == SIGNAL_PROFILES)
        check_layout(capture->body, &result);
    ++*scanned;
}

static void test_captures(void **state)
{
    unsigned scanned = 0;

    (void)state;
    captures_each(scan_capture, &scanned);
    assert_true(scanned > 100);
}

/* Changes one byte of a recorded request, many times. */
static void scan_mutations(const struct capture *capture, void *context)
{
    enum { BYTES = 1000000, ROUNDS_MAX = 300, UNKNOWN = 15 << 3 | 2, UNKNOWN_SIZE = 120 };
    static const uint8_t bits[] = {0x01, 0x02, 0x08, 0x10, 0x40, 0x80, 0xff, 0x7f};
    scan_function *scan = capture->signal == SIGNAL_TRACES ? scan_traces : scan_profiles;
    size_t rounds = BYTES / capture->body.size + 1;
    unsigned *mutated = context;
    struct text request = {0};
    struct scan_result result;
    struct error err;
    uint64_t random = 1;

    if (capture->json)
        return;
    text_append_slice(&request, capture->body);
    for (unsigned i = 0; i < 6; i++) { /* the fast path stops before the end of a request */
        static const uint8_t zeros[UNKNOWN_SIZE];
        text_append_char(&request, UNKNOWN);
        text_append_char(&request, UNKNOWN_SIZE);
        text_append_slice(&request, slice_of(zeros, sizeof zeros));
    }
    for (size_t i = 0; i < rounds && i < ROUNDS_MAX; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint8_t *at = (uint8_t *)request.data + (random >> 33) % capture->body.size;
        uint8_t before = *at;

        *at ^= bits[random >> 29 & 7];
        scan_twice(scan, wire_text_slice(&request), scan_limits_default, &result, &err);
        *at = before;
        ++*mutated;
    }
    assert_true(scan_twice(scan, wire_text_slice(&request), scan_limits_default, &result, &err));
    text_deinit(&request);
}

static void test_mutations(void **state)
{
    unsigned mutated = 0;

    (void)state;
    captures_each(scan_mutations, &mutated);
    assert_true(mutated > 10000);
}

static int init(void **state)
{
    (void)state;
    scan_init();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structure),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_logs),
        cmocka_unit_test(test_counts_of_relayed_signals),
        cmocka_unit_test(test_profiles),
        cmocka_unit_test(test_v19),
        cmocka_unit_test(test_every_place_in_a_list),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_zero_entries),
        cmocka_unit_test(test_result),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_depth_of_attributes),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_captures),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_utf8_is_repaired),
        cmocka_unit_test(test_long_place),
        cmocka_unit_test(test_mutations),
    };

    return cmocka_run_group_tests(tests, init, NULL);
}

#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type example_processor_type;

#define SETTINGS "processors: {example: {key: env, value: test}}"

/* Checks the result of the processor for a request with two items. */
static void expect_result(enum signal signal, const char *before, const char *after,
                          double want_changed)
{
    struct fixture f;
    struct probe probe;
    fixture_init(&f, 1);
    struct fixture_place *place = fixture_place(&f, &example_processor_type, "example", SETTINGS,
                                                signal_name(signal), signal);
    fixture_consume_json(&f, place->nodes[0], before, 2, &probe);
    assert_int_equal(probe.settled, 1);
    char *got = fixture_recorded_json(&f, 0);
    expect_text(got, after);
    const char *metric = signal == SIGNAL_TRACES ? "profcol_example_changed_spans"
                                                 : "profcol_example_changed_profile_samples";
    assert_true(metrics_value(f.process.metrics, metric, "processor=\"example\"") == want_changed);
    free(got);
    fixture_deinit(&f);
}

#define ENV(value) "{\"key\":\"env\",\"value\":{\"stringValue\":\"" value "\"}}"

static void spans_gain_the_attribute(void **state)
{
    (void)state;
    expect_result(
        SIGNAL_TRACES,
        "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"a\"},"
        "{\"name\":\"b\",\"attributes\":[" ENV("live") "]}]}]}]}",
        "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"a\",\"attributes\":[" ENV(
            "test") "]},{\"name\":\"b\",\"attributes\":[" ENV("live") "]}]}]}]}",
        1);
}

#define SAMPLES(first, second, more_texts, more_attributes)                                        \
    "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[{" first              \
    "\"values\":[\"1\"]},{" second "\"values\":[\"2\"]}]}]}]}],\"dictionary\":{"                   \
    "\"mappingTable\":[{}],\"locationTable\":[{}],\"functionTable\":[{}],\"linkTable\":[{}],"      \
    "\"stringTable\":[\"\",\"env\"" more_texts "],\"attributeTable\":[{},{\"keyStrindex\":1,"      \
    "\"value\":{\"stringValue\":\"live\"}}" more_attributes "],\"stackTable\":[{}]}}"

static void samples_gain_the_attribute(void **state)
{
    (void)state;
    expect_result(SIGNAL_PROFILES, SAMPLES("", "\"attributeIndices\":[1],", "", ""),
                  SAMPLES("\"attributeIndices\":[2],", "\"attributeIndices\":[1],", "",
                          ",{\"keyStrindex\":1,\"value\":{\"stringValue\":\"test\"}}"),
                  1);
}

/* Two processors in a chain: the second one sees the changes of the first one. */
static void the_next_one_sees_the_change(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    struct fixture_place *second =
        fixture_place(&f, &example_processor_type, "example/second",
                      "processors: {example/second: {key: env}}", "traces", SIGNAL_TRACES);
    struct fixture_place *first = fixture_place_before(
        &f, second, &example_processor_type, "example", SETTINGS, "traces", SIGNAL_TRACES);
    fixture_consume_json(&f, first->nodes[0],
                         "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{}]}]}]}", 1, NULL);
    char *got = fixture_recorded_json(&f, 0);
    expect_text(got, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"attributes\":[" ENV(
                         "test") "]}]}]}]}");
    free(got);
    fixture_deinit(&f);
}

/* A job changes them. What is behind one waits for it. */
static void large_batches_keep_their_place(void **state)
{
    (void)state;
    enum { SPANS = 1 << 19 }; /* of two bytes */
    struct fixture f;
    struct text request = {0};
    fixture_init(&f, 1);
    struct node *node =
        fixture_place(&f, &example_processor_type, "example", SETTINGS, "traces", SIGNAL_TRACES)
            ->nodes[0];
    text_append(&request, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{}");
    for (int i = 1; i < SPANS; i++)
        text_append(&request, ",{}");
    text_append(&request, "]}]}]}");
    fixture_consume_json(&f, node, text_string(&request), SPANS, NULL);
    fixture_consume_json(&f, node, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{}]}]}]}", 1,
                         NULL);
    assert_int_equal(f.recorder.count, 0);
    assert_false(fixture_is_idle(node));
    fixture_advance(&f, 0); /* it leaves its job */
    assert_int_equal(f.recorder.count, 2);
    assert_int_equal(f.recorder.items[0].items, SPANS);
    assert_true(metrics_value(f.process.metrics, "profcol_example_changed_spans",
                              "processor=\"example\"") == SPANS + 1);
    text_deinit(&request);
    fixture_deinit(&f);
}

static void mistakes_are_refused(void **state)
{
    (void)state;
    fixture_refuses(&example_processor_type, "{}", "key: is required but not set");
    fixture_refuses(&example_processor_type, "{key: a, valu: b}", "did you mean \"value\"?");
    fixture_refuses(&example_processor_type,
                    "{key: a, value: "
                    "01234567890123456789012345678901234567890123456789012345678901234}",
                    "value must not be longer than 64 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_gain_the_attribute),
        cmocka_unit_test(samples_gain_the_attribute),
        cmocka_unit_test(the_next_one_sees_the_change),
        cmocka_unit_test(large_batches_keep_their_place),
        cmocka_unit_test(mistakes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

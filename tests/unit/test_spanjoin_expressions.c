/* Attributes whose values OTTL computes from the span (docs/spanjoin.md, "Values that OTTL
 * computes"). */
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/spanjoin_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TRACE = 7, SPAN = 42 };

static const char settings[] =
    "samples: {wait: 5s, attributes: ["
    "{key: span_name, from: span.name}, "
    "{key: lower, from: 'ConvertCase(span.name, \"lower\")'}, "
    "{key: of_service, from: 'Concat([resource.attributes[\"service.name\"], scope.name], \" "
    "\")'}, "
    "{key: size, from: 'span.attributes[\"size\"] * 2'}, "
    "{key: no_events, from: 'Len(span.events)'}]}, "
    "spans: {attributes: [{key: samples, from: samples.count}, "
    "{key: upper, from: 'ConvertCase(span.name, \"upper\")'}]}";

static void send_span(struct join *join, const char *name, bool has_size)
{
    struct request request;
    traces_begin(&request, "shop");
    SpanMessage *span = traces_span(&request, TRACE, SPAN, WALL, WALL + SECOND, name);
    if (has_size)
        span_int(&request, span, "size", 21);
    else
        span_string(&request, span, "size", "large");
    join_send(join, &request);
}

static void send_sample(struct join *join)
{
    struct request request;
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, TRACE, SPAN);
    sample_value(&request, sample, 10);
    join_send(join, &request);
}

/* Reads the last request that left. */
static void read_last(const struct join *join, enum signal signal, struct request *out)
{
    const struct recorder *recorder = &join->fixture.recorder;
    const struct recorded *last = &recorder->items[recorder->count - 1];
    assert_int_equal(last->signal, signal);
    struct slice bytes = slice_of(last->bytes, last->size);
    if (signal == SIGNAL_TRACES)
        request_read_traces(out, bytes);
    else
        request_read_profiles(out, bytes);
}

static void expect_sample(const struct join *join, const char *key, const char *wanted)
{
    struct request out;
    read_last(join, SIGNAL_PROFILES, &out);
    const char *value = sample_attribute(&out, request_sample(&out, 0, 0), key);
    assert_string_equal(value ? value : "none", wanted);
    request_free(&out);
}

static void a_sample_gains_what_is_computed(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, settings);
    send_span(&join, "GET /Cart", true);
    send_sample(&join);
    expect_sample(&join, "span_name", "GET /Cart");
    expect_sample(&join, "lower", "get /cart");
    expect_sample(&join, "of_service", "shop net/http");
    expect_sample(&join, "size", "42");
    expect_sample(&join, "no_events", "0");
    fixture_deinit(&join.fixture);
}

/* The sample waits; what fails is left out. */
static void an_expression_that_fails_adds_nothing(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, settings);
    send_sample(&join);
    send_span(&join, "GET /Cart", false);
    fixture_advance(&join.fixture, 0);
    expect_sample(&join, "lower", "get /cart");
    expect_sample(&join, "size", "none");
    fixture_deinit(&join.fixture);
}

static void a_span_gains_what_is_computed(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    join_init(&join, settings);
    send_sample(&join);
    send_span(&join, "GET /Cart", true);
    size_t i = join.fixture.recorder.count;
    while (join.fixture.recorder.items[--i].signal != SIGNAL_TRACES)
        assert_true(i > 0);
    request_read_traces(
        &out, slice_of(join.fixture.recorder.items[i].bytes, join.fixture.recorder.items[i].size));
    assert_string_equal(span_attribute(request_span(&out, 0), "upper"), "GET /CART");
    assert_string_equal(span_attribute(request_span(&out, 0), "samples"), "1");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* A span without samples is not computed for. */
static void a_span_without_samples_stays(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    join_init(&join, settings);
    send_span(&join, "GET /Cart", true);
    read_last(&join, SIGNAL_TRACES, &out);
    assert_null(span_attribute(request_span(&out, 0), "upper"));
    request_free(&out);
    fixture_deinit(&join.fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_gains_what_is_computed),
        cmocka_unit_test(an_expression_that_fails_adds_nothing),
        cmocka_unit_test(a_span_gains_what_is_computed),
        cmocka_unit_test(a_span_without_samples_stays),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    spanjoin_set_large_bytes(0); /* jobs process each request */
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}

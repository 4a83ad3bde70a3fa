/* The functions with most of a span's samples (docs/spanjoin.md, "Top functions"). */
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/spanjoin_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TRACE = 7, SPAN = 42, PARSE = 1, HASH = 2, OTHER = 3, UNKNOWN = 4 };

static const char settings[] = "samples: {wait: 0s}, spans: {attributes: "
                               "[{key: samples, from: samples.count}, "
                               "{key: top, from: 'samples.top_functions[2]'}, "
                               "{key: first, from: 'samples.top_functions[1]'}]}";

static void begin_profile(struct request *request, const char *type, const char *unit)
{
    profiles_begin(request);
    profiles_stack(request, PARSE, "parse");
    profiles_stack(request, HASH, "hash");
    profiles_stack(request, OTHER, "other");
    profiles_profile(request, type, unit);
}

/* trace 0: it names only the span. */
static void add_sample(struct request *request, uint64_t trace, int32_t stack, int64_t value)
{
    SampleMessage *sample = profiles_sample(request, stack);
    sample_link(request, sample, trace, SPAN);
    sample_value(request, sample, value);
}

static void send_cpu(struct join *join, uint64_t trace, int64_t parse, int64_t hash)
{
    struct request request;
    begin_profile(&request, "cpu", "nanoseconds");
    add_sample(&request, trace, PARSE, parse);
    add_sample(&request, trace, HASH, hash);
    join_send(join, &request);
}

/* Sends the span, and checks what it gains. */
static void expect_top(struct join *join, const char *top, const char *first)
{
    const struct recorder *recorder = &join->fixture.recorder;
    struct request request, out;
    traces_begin(&request, "shop");
    traces_span(&request, TRACE, SPAN, WALL, WALL + SECOND, "GET /cart");
    join_send(join, &request);
    assert_int_equal(recorder->items[recorder->count - 1].signal, SIGNAL_TRACES);
    request_read_traces(&out, slice_of(recorder->items[recorder->count - 1].bytes,
                                       recorder->items[recorder->count - 1].size));
    const char *value = span_attribute(request_span(&out, 0), "top");
    assert_string_equal(value ? value : "none", top);
    value = span_attribute(request_span(&out, 0), "first");
    assert_string_equal(value ? value : "none", first);
    request_free(&out);
}

static void a_span_gains_its_top_functions(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, settings);
    begin_profile(&request, "cpu", "nanoseconds");
    add_sample(&request, TRACE, HASH, 20);
    add_sample(&request, TRACE, PARSE, 30);
    add_sample(&request, TRACE, HASH, 37);
    add_sample(&request, TRACE, OTHER, 10);
    add_sample(&request, TRACE, UNKNOWN, 3); /* a stack without functions */
    join_send(&join, &request);
    expect_top(&join, "hash 57 %, parse 30 %", "hash 57 %");
    fixture_deinit(&join.fixture);
}

/* Those of several uploads, whether they name the trace or not, and also after the span. */
static void uploads_are_added(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, settings);
    send_cpu(&join, 0, 10, 20);
    send_cpu(&join, TRACE, 10, 30);
    expect_top(&join, "hash 71 %, parse 29 %", "hash 71 %");
    fixture_advance(&join.fixture, 20 * SECOND);
    send_cpu(&join, 0, 30, 0);
    expect_top(&join, "hash 50 %, parse 50 %", "hash 50 %");
    fixture_deinit(&join.fixture);
}

/* Without CPU time, observations count. CPU time takes their place. */
static void cpu_time_comes_first(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, settings);
    begin_profile(&request, "wall", "nanoseconds");
    add_sample(&request, TRACE, OTHER, 1000);
    add_sample(&request, TRACE, OTHER, 1000);
    add_sample(&request, TRACE, PARSE, 5000);
    join_send(&join, &request);
    expect_top(&join, "other 67 %, parse 33 %", "other 67 %");
    send_cpu(&join, TRACE, 1, 3);
    expect_top(&join, "hash 75 %, parse 25 %", "hash 75 %");
    fixture_deinit(&join.fixture);
}

/* The profiler sends samples, each of which is 10 ms. */
static void periods_are_cpu_time(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, settings);
    begin_profile(&request, "samples", "count");
    profile_period(&request, request.profiles->resource_profiles[0]->scope_profiles[0]->profiles[0],
                   "cpu", "nanoseconds", 10000000);
    add_sample(&request, TRACE, PARSE, 1);
    add_sample(&request, TRACE, HASH, 1);
    join_send(&join, &request);
    send_cpu(&join, TRACE, 10000000, 0);
    expect_top(&join, "parse 67 %, hash 33 %", "parse 67 %");
    fixture_deinit(&join.fixture);
}

static void they_expire_with_the_window(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, settings);
    send_cpu(&join, TRACE, 10, 20);
    fixture_advance(&join.fixture, 121 * SECOND);
    expect_top(&join, "none", "none");
    fixture_deinit(&join.fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_gains_its_top_functions), cmocka_unit_test(uploads_are_added),
        cmocka_unit_test(cpu_time_comes_first),           cmocka_unit_test(periods_are_cpu_time),
        cmocka_unit_test(they_expire_with_the_window),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    spanjoin_set_large_bytes(0); /* jobs process each request */
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}

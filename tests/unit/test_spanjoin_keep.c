/* `keep` of spanjoin: which samples keep the detail of their span, and what becomes of the
 * others. */
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/spanjoin_fixture.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TRACE = 7, FAST = 42, SLOW = 43, OPEN = 44, NONE = 0 };

static void setup_samples(struct join *join, const char *samples, const char *keep)
{
    char yaml[1100];
    snprintf(yaml, sizeof yaml, "samples: {%s}, keep: {%s}", samples, keep);
    join_init(join, yaml);
}

static void setup(struct join *join, const char *keep)
{
    setup_samples(join, "wait: 5s", keep);
}

static void send_span(struct join *join, uint64_t span, uint64_t duration_ns)
{
    struct request request;
    traces_begin(&request, "shop");
    SpanMessage *message = traces_span(&request, TRACE, span, WALL, WALL + duration_ns,
                                       span == SLOW ? "slow" : "fast");
    span_string(&request, message, "http.route", "/pay");
    span_int(&request, message, "size", span == SLOW ? 100 : 10);
    span_int(&request, message, "big", (INT64_C(1) << 53) + (span == SLOW));
    join_send(join, &request);
}

/* A span of 100 ms, and one of 2 s. */
static void send_spans(struct join *join)
{
    send_span(join, FAST, SECOND / 10);
    send_span(join, SLOW, 2 * SECOND);
}

static void add_sample(struct request *request, uint64_t span, int64_t value)
{
    SampleMessage *sample = profiles_sample(request, 1);
    if (span != NONE)
        sample_link(request, sample, TRACE, span);
    sample_value(request, sample, value);
}

/* Samples of one stack. */
static void send_samples(struct join *join, uint64_t span, unsigned count, int64_t value)
{
    struct request request;
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    for (unsigned i = 0; i < count; i++)
        add_sample(&request, span, value);
    join_send(join, &request);
}

/* Two samples of each span, and two without one. */
static void send_mixed_samples(struct join *join)
{
    static const uint64_t spans[] = {FAST, SLOW, NONE, FAST, SLOW, NONE};
    struct request request;
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        add_sample(&request, spans[i], 10 + (int64_t)i);
    join_send(join, &request);
}

static size_t count_out(const struct join *join)
{
    const struct recorder *recorder = &join->fixture.recorder;
    size_t count = 0;
    for (size_t i = 0; i < recorder->count; i++)
        count += recorder->items[i].signal == SIGNAL_PROFILES;
    return count;
}

/* Appends the samples of the n-th output: name of the span, span id of the Link, value. */
static const char *output(const struct join *join, size_t n)
{
    static char text[512];
    const struct recorder *recorder = &join->fixture.recorder;
    struct request out;
    size_t i = 0, size = 0;
    for (; recorder->items[i].signal != SIGNAL_PROFILES || n-- > 0; i++)
        assert_true(i + 1 < recorder->count);
    request_read_profiles(&out, slice_of(recorder->items[i].bytes, recorder->items[i].size));
    size_t count = request_profile(&out, 0)->n_samples;
    assert_int_equal(recorder->items[i].items, count);
    text[0] = '\0';
    for (size_t k = 0; k < count; k++) {
        const SampleMessage *sample = request_sample(&out, 0, k);
        const char *name = sample_attribute(&out, sample, "span_name");
        uint64_t trace = 0, span = 0;
        sample_read_link(&out, sample, &trace, &span);
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%s %d %d", k ? ", " : "",
                                 name ? name : "-", (int)span, (int)sample->values[0]);
    }
    request_free(&out);
    return text;
}

/* Returns what one of both series has, since a run is dry or is not. */
static double result_of(const struct join *join, const char *name, const char *dry_run)
{
    char labels[96];
    snprintf(labels, sizeof labels, "spanjoin=\"%s\",result=\"%s\",dry_run=\"%s\"",
             join->traces->component->id, name, dry_run);
    return metrics_value(join->fixture.process.metrics, "profcol_spanjoin_keep_samples", labels);
}

static double result(const struct join *join, const char *name)
{
    const struct spanjoin_settings *settings = join->profiles->component->settings;
    return result_of(join, name, settings->keep.dry_run ? "true" : "false");
}

static unsigned unjoined(const struct join *join, const char *reason)
{
    char labels[96];
    snprintf(labels, sizeof labels, "spanjoin=\"spanjoin\",reason=\"%s\"", reason);
    return (unsigned)metrics_value(join->fixture.process.metrics,
                                   "profcol_spanjoin_samples_unjoined", labels);
}

static void expect_results(const struct join *join, unsigned kept, unsigned folded,
                           unsigned combined, unsigned dropped, unsigned late)
{
    assert_int_equal(result(join, "kept"), kept);
    assert_int_equal(result(join, "folded"), folded);
    assert_int_equal(result(join, "combined"), combined);
    assert_int_equal(result(join, "dropped"), dropped);
    assert_int_equal(result(join, "late"), late);
}

static unsigned by_condition(const struct join *join, const char *metric, const char *condition)
{
    char labels[256];
    snprintf(labels, sizeof labels, "spanjoin=\"%s\",condition=\"%s\"", join->traces->component->id,
             condition);
    return (unsigned)metrics_value(join->fixture.process.metrics, metric, labels);
}

static unsigned kept_samples(const struct join *join, const char *condition)
{
    return by_condition(join, "profcol_spanjoin_kept_samples", condition);
}

static unsigned kept_spans(const struct join *join, const char *condition)
{
    return by_condition(join, "profcol_spanjoin_kept_spans", condition);
}

/* ---- conditions on the span ---- */

static const struct {
    const char *condition;
    const char *out;
} span_cases[] = {
    {"duration_above: 1s", "fast 0 23, slow 43 11, - 0 12, slow 43 14, - 0 15"},
    {"duration_above: 2s", "fast 0 23, slow 0 25, - 0 12, - 0 15"},
    {"status: ok", "fast 42 10, slow 43 11, - 0 12, fast 42 13, slow 43 14, - 0 15"},
    {"status: error", "fast 0 23, slow 0 25, - 0 12, - 0 15"},
    {"ratio: 1", "fast 42 10, slow 43 11, - 0 12, fast 42 13, slow 43 14, - 0 15"},
    {"ratio: 0", "fast 0 23, slow 0 25, - 0 12, - 0 15"},
    {"attribute: {key: http.route, matches: '^/pa'}",
     "fast 42 10, slow 43 11, - 0 12, fast 42 13, slow 43 14, - 0 15"},
    {"attribute: {key: http.route, matches: '^pa'}", "fast 0 23, slow 0 25, - 0 12, - 0 15"},
    {"attribute: {key: http.route, above: 5}", "fast 0 23, slow 0 25, - 0 12, - 0 15"},
    {"attribute: {key: size, above: 10}", "fast 0 23, slow 43 11, - 0 12, slow 43 14, - 0 15"},
    {"attribute: {key: size, below: 100}", "fast 42 10, slow 0 25, - 0 12, fast 42 13, - 0 15"},
    {"attribute: {key: size, above: 9.5, below: 1e3, matches: '^1'}",
     "fast 42 10, slow 43 11, - 0 12, fast 42 13, slow 43 14, - 0 15"},
    {"attribute: {key: size, above: 10, below: 100}", "fast 0 23, slow 0 25, - 0 12, - 0 15"},
    {"attribute: {key: big, above: 9007199254740992}",
     "fast 0 23, slow 43 11, - 0 12, slow 43 14, - 0 15"},
    {"attribute: {key: big, below: 9007199254740993}",
     "fast 42 10, slow 0 25, - 0 12, fast 42 13, - 0 15"},
    {"condition: 'name == \"slow\" and resource.attributes[\"service.name\"] == \"shop\"'",
     "fast 0 23, slow 43 11, - 0 12, slow 43 14, - 0 15"},
};

static void test_conditions_on_the_span(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof span_cases / sizeof *span_cases; i++) {
        struct join join;
        char keep[256];
        snprintf(keep, sizeof keep, "span_detail_when: [{%s}]", span_cases[i].condition);
        setup(&join, keep);
        send_spans(&join);
        send_mixed_samples(&join);
        assert_string_equal(output(&join, 0), span_cases[i].out);
        fixture_deinit(&join.fixture);
    }
}

static void test_one_condition_is_enough(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "span_detail_when: [{condition: 'name == \"other\"'}, {duration_above: 1s}, "
                 "{condition: 'name == \"fast\"'}]");
    send_spans(&join);
    send_mixed_samples(&join);
    assert_string_equal(output(&join, 0),
                        "fast 42 10, slow 43 11, - 0 12, fast 42 13, slow 43 14, - 0 15");
    expect_results(&join, 6, 0, 0, 0, 0);
    fixture_deinit(&join.fixture);
}

/* The last 56 bits of the trace id decide, as for all samplers: the upper half is kept. */
static void test_ratio_goes_by_trace(void **state)
{
    static const struct {
        uint64_t trace;
        const char *out;
    } cases[] = {
        {7, "a 0 30"},
        {(UINT64_C(1) << 55) - 1, "a 0 30"},
        {UINT64_C(1) << 55, "a 42 10, a 43 20"},
        {UINT64_MAX, "a 42 10, a 43 20"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct join join;
        struct request request;
        setup(&join, "span_detail_when: [{ratio: 0.5}]");
        traces_begin(&request, "shop");
        for (uint64_t span = FAST; span <= SLOW; span++)
            traces_span(&request, cases[i].trace, span, WALL, WALL + span, "a");
        join_send(&join, &request);
        profiles_begin(&request);
        profiles_profile(&request, "cpu", "nanoseconds");
        for (uint64_t span = FAST; span <= SLOW; span++) {
            SampleMessage *sample = profiles_sample(&request, 1);
            sample_link(&request, sample, cases[i].trace, span);
            sample_value(&request, sample, span == FAST ? 10 : 20);
        }
        join_send(&join, &request);
        assert_string_equal(output(&join, 0), cases[i].out);
        fixture_deinit(&join.fixture);
    }
}

/* ---- conditions on CPU time ---- */

static void test_cpu_adds_up_over_requests(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "span_detail_when: [{cpu_above: 100ns}]");
    send_spans(&join);
    send_samples(&join, FAST, 2, 30);
    assert_string_equal(output(&join, 0), "fast 0 60");
    send_samples(&join, FAST, 1, 41); /* 101 */
    assert_string_equal(output(&join, 1), "fast 42 41");
    expect_results(&join, 1, 2, 1, 0, 2);
    send_samples(&join, FAST, 1, 1);
    assert_string_equal(output(&join, 2), "fast 42 1");
    send_samples(&join, SLOW, 1, 100);
    assert_string_equal(output(&join, 3), "slow 0 100");
    expect_results(&join, 2, 3, 2, 0, 2); /* what was late is counted once */
    fixture_deinit(&join.fixture);
}

/* Samples that name a span without its trace are told apart by their times, and with it by that. */
static void test_cpu_adds_up_whatever_names_the_span(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    setup(&join, "span_detail_when: [{cpu_above: 100ns}]");
    send_spans(&join);
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    for (unsigned i = 0; i < 4; i++) {
        SampleMessage *sample = profiles_sample(&request, 1);
        sample_link(&request, sample, i == 3 ? TRACE : NONE, FAST);
        sample_value(&request, sample, i == 3 ? 11 : 30);
        sample_time(&request, sample, WALL + i);
    }
    join_send(&join, &request);
    assert_string_equal(output(&join, 0), "fast 42 30, fast 42 30, fast 42 30, fast 42 11");
    fixture_deinit(&join.fixture);
}

static void test_cpu_does_not_wrap(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "span_detail_when: [{cpu_above: 100ns}]");
    send_spans(&join);
    send_samples(&join, FAST, 3, INT64_C(1) << 62);
    expect_results(&join, 3, 0, 0, 0, 0);
    fixture_deinit(&join.fixture);
}

/* Samples that left without their span and its detail are late, too, when it turns out to be worth
 * it, unless they passed. */
static void test_late_samples_of_a_span_that_was_late(void **state)
{
    (void)state;
    static const struct {
        const char *unjoined;
        unsigned late;
    } cases[] = {{"fold", 2}, {"drop", 2}, {"pass", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct join join;
        char keep[96];
        snprintf(keep, sizeof keep, "span_detail_when: [{cpu_above: 100ns}], unjoined: %s",
                 cases[i].unjoined);
        setup_samples(&join, "wait: 0s", keep);
        send_samples(&join, FAST, 2, 35);
        send_spans(&join);
        assert_int_equal(result(&join, "late"), 0);
        send_samples(&join, FAST, 1, 40);
        assert_int_equal(result(&join, "late"), cases[i].late);
        send_samples(&join, FAST, 1, 40);
        assert_int_equal(result(&join, "late"), cases[i].late);
        fixture_deinit(&join.fixture);
    }
}

/* Nothing is late if samples leave with their detail anyway. */
static void test_passed_samples_are_not_late(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "span_detail_when: [{cpu_above: 40ns}], otherwise: pass");
    send_spans(&join);
    for (unsigned i = 0; i < 3; i++) {
        send_samples(&join, FAST, 1, 30);
        assert_string_equal(output(&join, i), "fast 42 30");
    }
    expect_results(&join, 3, 0, 0, 0, 0);
    fixture_deinit(&join.fixture);
}

static void test_cpu_share(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "span_detail_when: [{cpu_share_above: 0.5}]");
    send_spans(&join);
    send_samples(&join, FAST, 1, 50000001); /* of 100 ms */
    send_samples(&join, SLOW, 1, 50000001);
    assert_string_equal(output(&join, 0), "fast 42 50000001");
    assert_string_equal(output(&join, 1), "slow 0 50000001");
    fixture_deinit(&join.fixture);
}

/* Any CPU time is more than a part of no duration, also of one that ends before it starts. */
static void test_cpu_share_of_no_duration(void **state)
{
    (void)state;
    for (int is_reversed = 0; is_reversed < 2; is_reversed++) {
        struct join join;
        setup(&join, "span_detail_when: [{cpu_share_above: 0.8}]");
        send_span(&join, FAST, is_reversed ? -SECOND : 0);
        send_samples(&join, FAST, 1, 0);
        send_samples(&join, FAST, 1, 1);
        assert_string_equal(output(&join, 0), "fast 0 0");
        assert_string_equal(output(&join, 1), "fast 42 1");
        fixture_deinit(&join.fixture);
    }
}

/* A span that arrives again does not take back what was recorded of its samples. */
static void test_a_span_that_arrives_again(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "span_detail_when: [{cpu_above: 100ns}]");
    send_spans(&join);
    send_samples(&join, FAST, 1, 60);
    send_spans(&join);
    send_samples(&join, FAST, 1, 61);
    assert_string_equal(output(&join, 1), "fast 42 61");
    expect_results(&join, 1, 1, 1, 0, 1);
    assert_int_equal(metrics_value(join.fixture.process.metrics,
                                   "profcol_spanjoin_samples_unjoined",
                                   "spanjoin=\"spanjoin\",reason=\"span_open\""),
                     0);
    fixture_deinit(&join.fixture);
}

/* ---- otherwise, unjoined ---- */

static void test_otherwise(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "span_detail_when: [{duration_above: 1s}], otherwise: drop");
    send_spans(&join);
    send_mixed_samples(&join);
    assert_string_equal(output(&join, 0), "slow 43 11, - 0 12, slow 43 14, - 0 15");
    send_samples(&join, FAST, 2, 30); /* nothing is left */
    assert_int_equal(count_out(&join), 1);
    expect_results(&join, 4, 0, 0, 4, 0);
    fixture_deinit(&join.fixture);
    setup(&join, "span_detail_when: [{duration_above: 1s}], otherwise: pass");
    send_spans(&join);
    send_samples(&join, FAST, 2, 30);
    assert_string_equal(output(&join, 0), "fast 42 30, fast 42 30");
    expect_results(&join, 2, 0, 0, 0, 0);
    fixture_deinit(&join.fixture);
}

static void test_unjoined(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "span_detail_when: [{duration_above: 1s}], unjoined: fold");
    send_spans(&join);
    send_mixed_samples(&join);
    assert_string_equal(output(&join, 0), "fast 0 23, slow 43 11, - 0 27, slow 43 14");
    fixture_deinit(&join.fixture);
    setup(&join, "span_detail_when: [{duration_above: 1s}], unjoined: drop, otherwise: pass");
    send_spans(&join);
    send_mixed_samples(&join);
    assert_string_equal(output(&join, 0), "fast 42 10, slow 43 11, fast 42 13, slow 43 14");
    fixture_deinit(&join.fixture);
}

/* ---- pyroscope.profile.id ---- */

/* Returns whether the span of the last traces request opens its profile. */
static bool last_opens(const struct join *join)
{
    const struct recorder *recorder = &join->fixture.recorder;
    struct request out;
    size_t i = recorder->count;
    while (recorder->items[i - 1].signal != SIGNAL_TRACES) {
        assert_true(i > 1);
        i--;
    }
    request_read_traces(&out, slice_of(recorder->items[i - 1].bytes, recorder->items[i - 1].size));
    const SpanMessage *span = request_span(&out, 0);
    bool opens = span_attribute(span, "pyroscope.profile.id") != NULL;
    assert_non_null(span_attribute(span, "profile.samples"));
    request_free(&out);
    return opens;
}

/* Samples of 100 ns that arrive first and wait for their span (SLOW, 2 s), or leave before it. */
static const struct {
    const char *keep;
    bool waits;
    bool opens;
} opening[] = {
    {"[{duration_above: 1s}]", true, true},
    {"[{duration_above: 5s}]", true, false},
    {"[{duration_above: 5s}], otherwise: drop", true, false},
    {"[{duration_above: 5s}], otherwise: pass, unjoined: fold", true, true},
    {"[{duration_above: 5s}], dry_run: true", true, true},
    {"[{cpu_above: 99ns}]", true, true},
    {"[{cpu_above: 100ns}]", true, false},
    {"[{duration_above: 1s}]", false, true}, /* they have passed */
    {"[{duration_above: 5s}]", false, true},
    {"[{duration_above: 1s}], unjoined: fold", false, false},
    {"[{cpu_above: 99ns}], unjoined: drop", false, false},
};

static void test_a_span_opens_if_samples_have_its_detail(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof opening / sizeof *opening; i++) {
        struct join join;
        char keep[128];
        snprintf(keep, sizeof keep, "span_detail_when: %s", opening[i].keep);
        setup_samples(&join, opening[i].waits ? "wait: 5s" : "wait: 0s", keep);
        send_samples(&join, SLOW, 1, 100);
        send_span(&join, SLOW, 2 * SECOND);
        if (last_opens(&join) != opening[i].opens)
            fail_msg("%zu: %s", i, keep);
        fixture_deinit(&join.fixture);
    }
}

/* The upload still waits for another span when this one has waited for `spans.wait`. */
static void test_a_span_that_waits_opens_if_its_samples_wait(void **state)
{
    (void)state;
    for (uint64_t above = 99; above <= 100; above++) {
        struct join join;
        char yaml[128];
        snprintf(yaml, sizeof yaml,
                 "spans: {wait: 3s}, samples: {wait: 20s}, keep: {span_detail_when: [{cpu_above: "
                 "%" PRIu64 "ns}]}",
                 above);
        join_init(&join, yaml);
        struct request request;
        profiles_begin(&request);
        profiles_resource_string(&request, "service.name", "shop");
        profiles_profile(&request, "cpu", "nanoseconds")->time_unix_nano = WALL - 9 * SECOND;
        add_sample(&request, SLOW, 100);
        add_sample(&request, OPEN, 1);
        join_send(&join, &request);
        send_span(&join, SLOW, 2 * SECOND);
        assert_int_equal(join.fixture.recorder.count, 0);
        fixture_advance(&join.fixture, 4 * SECOND);
        assert_int_equal(join.fixture.recorder.count, 1);
        assert_int_equal(last_opens(&join), above == 99);
        fixture_advance(&join.fixture, 20 * SECOND);
        assert_string_equal(output(&join, 0),
                            above == 99 ? "slow 43 100, - 44 1" : "slow 0 100, - 44 1");
        fixture_deinit(&join.fixture);
    }
}

/* Samples that arrive later count, too: here the span is sent again. */
static void test_a_span_that_arrives_again_opens(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "span_detail_when: [{cpu_above: 50ns}]");
    send_span(&join, SLOW, 2 * SECOND);
    send_samples(&join, SLOW, 1, 50);
    send_span(&join, SLOW, 2 * SECOND);
    assert_false(last_opens(&join));
    send_samples(&join, SLOW, 1, 1);
    send_span(&join, SLOW, 2 * SECOND);
    assert_true(last_opens(&join));
    fixture_deinit(&join.fixture);
}

/* Only samples of spans.profile_types count. */
static void test_other_types_open_nothing(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    setup_samples(&join, "wait: 0s", "span_detail_when: [{duration_above: 1s}], unjoined: fold");
    send_samples(&join, SLOW, 1, 50); /* folded */
    send_span(&join, SLOW, 2 * SECOND);
    profiles_begin(&request);
    profiles_profile(&request, "wall", "nanoseconds");
    add_sample(&request, SLOW, 1000);
    join_send(&join, &request);
    assert_string_equal(output(&join, 1), "slow 43 1000");
    send_span(&join, SLOW, 2 * SECOND);
    assert_false(last_opens(&join));
    send_samples(&join, SLOW, 1, 50);
    send_span(&join, SLOW, 2 * SECOND);
    assert_true(last_opens(&join));
    fixture_deinit(&join.fixture);
}

/* ---- memory is short ---- */

static void send_large_sample(struct join *join, uint64_t span)
{
    static char text[100001];
    struct request request;
    memset(text, 'x', sizeof text - 1);
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, TRACE, span);
    sample_value(&request, sample, 5);
    sample_string(&request, sample, "ballast", text);
    join_send(join, &request);
}

/* Samples that leave before their spans because memory is short are neither folded nor dropped. */
static void test_memory_is_short(void **state)
{
    (void)state;
    static const char *const fates[] = {"fold", "drop"};
    for (size_t i = 0; i < sizeof fates / sizeof *fates; i++) {
        struct join join;
        char yaml[256];
        snprintf(yaml, sizeof yaml,
                 "max_held_mib: 1, samples: {wait: 5s}, keep: {span_detail_when: [{cpu_above: "
                 "0s}], otherwise: fold, unjoined: %s}",
                 fates[i]);
        join_init(&join, yaml);
        for (uint64_t span = 0; span < 20; span++)
            send_large_sample(&join, 100 + span);
        size_t early = count_out(&join);
        assert_in_range(early, 10, 12);
        for (size_t n = 0; n < early; n++) {
            char expected[32];
            snprintf(expected, sizeof expected, "- %d 5", (int)(100 + n));
            assert_string_equal(output(&join, n), expected);
        }
        expect_results(&join, (unsigned)early, 0, 0, 0, 0);
        fixture_advance(&join.fixture, 6 * SECOND);
        assert_int_equal(result(&join, i == 0 ? "folded" : "dropped"), 20 - early);
        for (uint64_t span = 0; span < 20; span++)
            send_span(&join, 100 + span, SECOND);
        assert_int_equal(unjoined(&join, "overflow"), early);
        assert_int_equal(unjoined(&join, "not_found"), 20 - early);
        assert_int_equal(unjoined(&join, "span_open"), 20);
        assert_int_equal(result(&join, "late"), 0);
        for (uint64_t span = 0; span < 20; span++)
            send_samples(&join, 100 + span, 1, 5);
        assert_int_equal(result(&join, "kept"), early + 20);
        assert_int_equal(result(&join, "late"), 20 - early); /* those that lost their detail */
        fixture_deinit(&join.fixture);
    }
}

/* ---- what samples gain ---- */

/* What the join adds of one span goes whatever its key is, here `span_name`, which output shows. A
 * dry run counts the same. */
static void test_what_names_one_span_goes(void **state)
{
    (void)state;
    static const char *const paths[] = {"span.id", "span.trace_id", "span.parent_id",
                                        "span.start_time", "span.duration_ns"};
    for (size_t i = 0; i < 2 * (sizeof paths / sizeof *paths); i++) {
        struct join join;
        struct request request;
        char samples[96];
        bool is_dry = i % 2;
        snprintf(samples, sizeof samples, "wait: 0s, attributes: [{key: span_name, from: %s}]",
                 paths[i / 2]);
        setup_samples(&join, samples,
                      is_dry ? "span_detail_when: [{status: error}], dry_run: true"
                             : "span_detail_when: [{status: error}, {ratio: 0}]");
        traces_begin(&request, "shop");
        for (uint64_t span = FAST; span <= SLOW; span++)
            span_set_parent(&request,
                            traces_span(&request, TRACE, span, WALL + span, WALL + 3 * span, "a"),
                            span + 5);
        join_send(&join, &request);
        profiles_begin(&request);
        profiles_profile(&request, "cpu", "nanoseconds");
        add_sample(&request, FAST, 10);
        add_sample(&request, SLOW, 11);
        SampleMessage *sample = profiles_sample(&request, 1); /* it has an attribute of the key */
        sample_link(&request, sample, TRACE, FAST);
        sample_string(&request, sample, "span_name", "its own");
        sample_value(&request, sample, 12);
        sample = profiles_sample(&request, 1); /* rewritten, because its Link lacks the trace */
        sample_link(&request, sample, 0, FAST);
        sample_value(&request, sample, 13);
        join_send(&join, &request);
        if (!is_dry)
            assert_string_equal(output(&join, 0), "- 0 34, its own 0 12");
        expect_results(&join, 0, 4, 2, 0, 0);
        fixture_deinit(&join.fixture);
    }
}

/* Spans with one parent share their values; only those of the kept one have it. */
static void test_a_kept_and_a_folded_span_of_one_parent(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    setup_samples(&join, "wait: 0s, attributes: [{key: span_name, from: span.parent_id}]",
                  "span_detail_when: [{duration_above: 1s}]");
    traces_begin(&request, "shop");
    span_set_parent(&request, traces_span(&request, TRACE, FAST, WALL, WALL + 1, "a"), 5);
    span_set_parent(&request, traces_span(&request, TRACE, SLOW, WALL, WALL + 2 * SECOND, "a"), 5);
    join_send(&join, &request);
    send_mixed_samples(&join);
    assert_string_equal(output(&join, 0), "- 0 23, 0000000000000005 43 11, - 0 12, "
                                          "0000000000000005 43 14, - 0 15");
    fixture_deinit(&join.fixture);
}

/* ---- waiting ---- */

static void test_samples_wait_for_the_verdict(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "span_detail_when: [{duration_above: 1s}, {cpu_above: 100ns}]");
    send_mixed_samples(&join);
    assert_int_equal(count_out(&join), 0);
    send_spans(&join);
    fixture_advance(&join.fixture, 0);
    assert_string_equal(output(&join, 0), "fast 0 23, slow 43 11, - 0 12, slow 43 14, - 0 15");
    expect_results(&join, 4, 2, 1, 0, 0);
    send_samples(&join, FAST, 1, 78); /* 23 + 78 */
    assert_string_equal(output(&join, 1), "fast 42 78");
    expect_results(&join, 5, 2, 1, 0, 2);
    fixture_deinit(&join.fixture);
}

static void test_nothing_is_left_after_waiting(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "span_detail_when: [{duration_above: 1s}], otherwise: drop");
    send_samples(&join, FAST, 2, 30);
    send_spans(&join);
    fixture_advance(&join.fixture, 20 * SECOND);
    assert_int_equal(count_out(&join), 0);
    expect_results(&join, 0, 0, 0, 2, 0);
    fixture_deinit(&join.fixture);
}

static void test_a_span_that_comes_too_late(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "span_detail_when: [{duration_above: 1s}], unjoined: fold");
    send_samples(&join, FAST, 1, 30);
    send_samples(&join, SLOW, 2, 30);
    fixture_advance(&join.fixture, 6 * SECOND);
    assert_string_equal(output(&join, 1), "- 0 60");
    send_spans(&join);
    expect_results(&join, 0, 3, 2, 0, 2);
    fixture_deinit(&join.fixture);
    setup(&join, "span_detail_when: [{duration_above: 1s}]");
    send_samples(&join, SLOW, 2, 30);
    fixture_advance(&join.fixture, 6 * SECOND);
    assert_string_equal(output(&join, 0), "- 43 30, - 43 30"); /* the ids are there */
    send_spans(&join);
    expect_results(&join, 2, 0, 0, 0, 0);
    fixture_deinit(&join.fixture);
}

static void test_dry_run(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "span_detail_when: [{duration_above: 1s}], unjoined: drop, dry_run: true");
    send_spans(&join);
    send_mixed_samples(&join);
    assert_string_equal(output(&join, 0),
                        "fast 42 10, slow 43 11, - 0 12, fast 42 13, slow 43 14, - 0 15");
    expect_results(&join, 2, 2, 1, 2, 0);
    send_samples(&join, NONE, 1, 5); /* all would be dropped */
    assert_string_equal(output(&join, 1), "- 0 5");
    fixture_deinit(&join.fixture);
}

/* A reload that changes only `keep` loses no span. Those from before keep their verdict. */
static void test_another_keep(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "span_detail_when: [{duration_above: 1s}], dry_run: true");
    send_spans(&join);
    join_replace(&join, "samples: {wait: 5s}, keep: {span_detail_when: [{duration_above: 5s}]}");
    send_samples(&join, SLOW, 1, 5);
    send_samples(&join, FAST, 1, 6);
    assert_string_equal(output(&join, 0), "slow 43 5");
    assert_string_equal(output(&join, 1), "fast 0 6");
    join_drain_replaced(&join);
    fixture_deinit(&join.fixture);
}

/* Without `keep`, or CPU time, there is nothing that another one could go by. */
static void test_a_first_keep(void **state)
{
    static const char *const before[] = {
        "samples: {wait: 0s}", "samples: {wait: 0s}, keep: {span_detail_when: [{cpu_above: 1s}]}"};
    (void)state;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        struct join join;
        join_init(&join, before[i]);
        send_spans(&join);
        join_replace(&join,
                     "samples: {wait: 0s}, keep: {span_detail_when: [{duration_above: 1s}]}");
        send_samples(&join, FAST, 1, 5);
        assert_string_equal(output(&join, 0), "- 42 5");
        join_drain_replaced(&join);
        fixture_deinit(&join.fixture);
    }
}

/* ---- which condition keeps how much ---- */

/* Of several the first one counts; those on CPU time come last. */
static void test_samples_are_counted_by_condition(void **state)
{
    (void)state;
    for (unsigned dry = 0; dry < 2; dry++) {
        struct join join;
        char keep[512];
        snprintf(keep, sizeof keep,
                 "span_detail_when: [{cpu_above: 20ns}, {attribute: {key: size, above: 50}}, "
                 "{duration_above: 1500ms}, {attribute: {key: http.route, matches: '^/no'}}], "
                 "dry_run: %s",
                 dry ? "true" : "false");
        setup(&join, keep);
        send_spans(&join);
        send_mixed_samples(&join); /* 10 + 13 of FAST, 11 + 14 of SLOW */
        assert_int_equal(kept_samples(&join, "cpu_above: 20ns"), 2);
        assert_int_equal(kept_samples(&join, "attribute: {key: size, above: 50}"), 2);
        assert_int_equal(kept_samples(&join, "duration_above: 1500ms"), 0);
        assert_int_equal(kept_samples(&join, "attribute: {key: http.route, matches: ^/no}"), 0);
        assert_int_equal(kept_spans(&join, "attribute: {key: size, above: 50}"), 1);
        assert_int_equal(kept_spans(&join, "duration_above: 1500ms"), 0);
        expect_results(&join, 6, 0, 0, 0, 0);
        fixture_deinit(&join.fixture);
    }
}

/* A condition on CPU time has no spans, because it is judged for samples. */
static void test_names_of_conditions(void **state)
{
    struct text out = {0};
    struct join join;
    char keep[900], long_name[200];
    (void)state;
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    snprintf(keep, sizeof keep,
             "span_detail_when: [{cpu_share_above: 0.8}, {status: error}, {ratio: 0.010}, "
             "{condition: 'span.name == \"%s\"'}]",
             long_name);
    setup(&join, keep);
    metrics_write(join.fixture.process.metrics, 0, &out);
    const char *text = text_string(&out);
    assert_non_null(strstr(text, "profcol_spanjoin_kept_samples{spanjoin=\"spanjoin\","
                                 "condition=\"cpu_share_above: 0.8\"} 0\n"));
    assert_null(strstr(text, "profcol_spanjoin_kept_spans{spanjoin=\"spanjoin\","
                             "condition=\"cpu_share_above"));
    assert_non_null(strstr(text, "condition=\"ratio: 0.010\"} 0\n"));
    assert_non_null(strstr(text, "condition=\"condition: span.name == \\\"xxxx"));
    assert_non_null(strstr(text, "xxxx...\"} 0\n"));
    fixture_deinit(&join.fixture);
    text_deinit(&out);
}

/* There is a series for each of 16 conditions, and one for all further ones. */
static void test_many_conditions(void **state)
{
    struct join join;
    char keep[900];
    int size = snprintf(keep, sizeof keep, "span_detail_when: [");
    (void)state;
    for (int i = 0; i < 16; i++)
        size += snprintf(keep + size, sizeof keep - (size_t)size, "{duration_above: %dh}, ", i + 1);
    snprintf(keep + size, sizeof keep - (size_t)size, "{cpu_above: 1h}, {duration_above: 1s}]");
    setup(&join, keep);
    send_spans(&join);
    send_mixed_samples(&join);
    assert_int_equal(kept_samples(&join, "duration_above: 16h"), 0);
    assert_int_equal(kept_samples(&join, "other"), 2);
    assert_int_equal(kept_spans(&join, "other"), 1);
    fixture_deinit(&join.fixture);
}

/* A dry run and what follows are counted apart. */
static void test_dry_run_has_its_own_series(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "span_detail_when: [{duration_above: 1s}], dry_run: true");
    send_spans(&join);
    send_samples(&join, FAST, 2, 10);
    assert_int_equal(result_of(&join, "folded", "true"), 2);
    join_replace(&join, "samples: {wait: 5s}, keep: {span_detail_when: [{duration_above: 1s}]}");
    send_samples(&join, FAST, 3, 10);
    assert_int_equal(result_of(&join, "folded", "false"), 3);
    join_drain_replaced(&join);
    fixture_deinit(&join.fixture);
}

/* What was kept for its CPU time stays so, whatever a reload asks for. */
static void test_kept_by_cpu_before_a_reload(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "span_detail_when: [{cpu_above: 100ns}]");
    send_spans(&join);
    send_samples(&join, FAST, 1, 101);
    send_samples(&join, SLOW, 1, 99);
    assert_string_equal(output(&join, 0), "fast 42 101");
    fixture_advance(&join.fixture, SECOND);
    join_replace(&join, "samples: {wait: 5s}, keep: {span_detail_when: [{cpu_above: 1s}]}");
    send_samples(&join, FAST, 1, 10);
    send_samples(&join, SLOW, 1, 10);
    assert_string_equal(output(&join, 2), "fast 42 10");
    assert_string_equal(output(&join, 3), "slow 0 10");
    assert_int_equal(kept_samples(&join, "before the reload"), 1);
    join_drain_replaced(&join);
    fixture_deinit(&join.fixture);
}

/* Spans that arrived before a reload were judged by other conditions. */
static void test_conditions_before_a_reload(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "span_detail_when: [{duration_above: 1s}]");
    send_span(&join, SLOW, 2 * SECOND);
    fixture_advance(&join.fixture, SECOND);
    join_replace(&join, "samples: {wait: 5s}, keep: {span_detail_when: [{duration_above: 10ms}]}");
    send_span(&join, FAST, SECOND / 10);
    send_mixed_samples(&join);
    assert_int_equal(kept_samples(&join, "duration_above: 1s"), 0);
    assert_int_equal(kept_samples(&join, "before the reload"), 2);
    assert_int_equal(kept_samples(&join, "duration_above: 10ms"), 2);
    join_drain_replaced(&join);
    fixture_deinit(&join.fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_samples_are_counted_by_condition),
    cmocka_unit_test(test_names_of_conditions),
    cmocka_unit_test(test_many_conditions),
    cmocka_unit_test(test_conditions_before_a_reload),
    cmocka_unit_test(test_kept_by_cpu_before_a_reload),
    cmocka_unit_test(test_late_samples_of_a_span_that_was_late),
    cmocka_unit_test(test_conditions_on_the_span),
    cmocka_unit_test(test_one_condition_is_enough),
    cmocka_unit_test(test_ratio_goes_by_trace),
    cmocka_unit_test(test_cpu_adds_up_over_requests),
    cmocka_unit_test(test_cpu_adds_up_whatever_names_the_span),
    cmocka_unit_test(test_cpu_does_not_wrap),
    cmocka_unit_test(test_passed_samples_are_not_late),
    cmocka_unit_test(test_cpu_share),
    cmocka_unit_test(test_cpu_share_of_no_duration),
    cmocka_unit_test(test_a_span_that_arrives_again),
    cmocka_unit_test(test_otherwise),
    cmocka_unit_test(test_unjoined),
    cmocka_unit_test(test_memory_is_short),
    cmocka_unit_test(test_a_span_opens_if_samples_have_its_detail),
    cmocka_unit_test(test_a_span_that_waits_opens_if_its_samples_wait),
    cmocka_unit_test(test_a_span_that_arrives_again_opens),
    cmocka_unit_test(test_other_types_open_nothing),
    cmocka_unit_test(test_what_names_one_span_goes),
    cmocka_unit_test(test_a_kept_and_a_folded_span_of_one_parent),
    cmocka_unit_test(test_samples_wait_for_the_verdict),
    cmocka_unit_test(test_nothing_is_left_after_waiting),
    cmocka_unit_test(test_a_span_that_comes_too_late),
    cmocka_unit_test(test_dry_run),
    cmocka_unit_test(test_dry_run_has_its_own_series),
    cmocka_unit_test(test_another_keep),
    cmocka_unit_test(test_a_first_keep),
};

int main(void)
{
    int failed = cmocka_run_group_tests_name("small", tests, NULL, NULL);
    spanjoin_set_large_bytes(0); /* jobs process each request */
    return failed + cmocka_run_group_tests_name("large", tests, NULL, NULL);
}

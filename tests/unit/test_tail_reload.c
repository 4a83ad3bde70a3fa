/* A reload that changes settings of tail_sampling: what waits and what was decided stays. */
#include "core/pipeline/outlet.h"
#include "processors/tail_sampling/held_traces.h"
#include "tests/unit/tail_requests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define GATHER (50 * MS)

/* Samples the trace that has a span of this name. */
#define NAMED(name)                                                                                \
    "policies: [{name: named, type: ottl_condition, ottl_condition: {span: ['name == \"" name      \
    "\"']}}]"

#define EARLY(f, cause)                                                                            \
    ((int)tail_metric(f, "profcol_tail_sampling_decided_early", ",cause=\"" cause "\""))
#define KNOWN(f)                                                                                   \
    ((int)tail_metric(f, "otelcol_processor_tail_sampling_sampling_traces_on_memory", ""))
#define SAMPLED(f)                                                                                 \
    ((int)tail_metric(f, "otelcol_processor_tail_sampling_global_count_traces_sampled",            \
                      ",sampled=\"true\",decision=\"sampled\""))

/* Expects the names of the spans that have left, sorted. */
static void expect_spans(struct fixture *f, const char *expected)
{
    unsigned counts[128] = {0};
    struct text got = {0};
    for (size_t i = 0; i < f->recorder.count; i++) {
        if (f->recorder.items[i].signal != SIGNAL_TRACES)
            continue;
        char *json = fixture_recorded_json(f, i);
        for (const char *at = json; (at = strstr(at, "\"name\":\"")); at++)
            counts[(unsigned char)at[8] % 128]++;
        free(json);
    }
    for (int name = 0; name < 128; name++)
        for (unsigned n = 0; n < counts[name]; n++)
            text_append_char(&got, (char)name);
    assert_string_equal(text_string(&got), expected);
    text_deinit(&got);
    fixture_clear_recorded(f);
}

/* ---- decisions and deadlines ---- */

static void test_waiting_traces_are_decided_by_the_new_policies(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = tail_begin(&f, 2, "decision_wait: 2s, " TAIL_ERRORS);
    tail_consume_spans(&f, traces->nodes[0], "a!bc", NULL);
    tail_consume_spans(&f, traces->nodes[1], "bd!", NULL);
    tail_change(&f, traces, "decision_wait: 2s, " NAMED("b"));
    fixture_advance(&f, SECOND);
    tail_consume_spans(&f, traces->nodes[1], "bc", NULL);
    expect_spans(&f, "");
    fixture_advance(&f, SECOND + GATHER);
    expect_spans(&f, "bbb");
    assert_int_equal(EARLY(&f, "drain"), 0);
    fixture_deinit(&f);
}

/* What was seen for a policy that stays counts, whatever stands around it. */
static void test_a_policy_that_stays(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 1,
                   "decision_wait: 2s, policies: [{name: errors, type: status_code, status_code: "
                   "{status_codes: [ERROR]}}, {name: flags, type: trace_flags}]");
    tail_consume_spans(&f, traces->nodes[0], "a!b", NULL);
    tail_change(&f, traces,
                "decision_wait: 2s, policies: [{name: flags, type: trace_flags}, {name: both, "
                "type: and, and: {and_sub_policy: [{name: all, type: always_sample}, {name: "
                "renamed, type: status_code, status_code: {status_codes: [ERROR]}}]}}]");
    fixture_advance(&f, 2 * SECOND + GATHER);
    expect_spans(&f, "a");
    fixture_deinit(&f);
}

static void test_decisions_stay(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = tail_begin(&f, 2, "decision_wait: 1s, " TAIL_ERRORS);
    tail_consume_spans(&f, traces->nodes[0], "a!b", NULL);
    fixture_advance(&f, SECOND + GATHER);
    expect_spans(&f, "a");
    tail_change(&f, traces, "decision_wait: 5s, num_traces: 70000, " NAMED("b"));
    fixture_advance(&f, SECOND);
    tail_consume_spans(&f, traces->nodes[1], "ab", NULL);
    fixture_advance(&f, GATHER);
    expect_spans(&f, "a");
    fixture_deinit(&f);
}

static void test_deadlines_follow_decision_wait(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = tail_begin(&f, 1, "decision_wait: 10s, " TAIL_ALL);
    tail_consume_spans(&f, traces->nodes[0], "a", NULL);
    fixture_advance(&f, SECOND);
    tail_change(&f, traces, "decision_wait: 2s, " TAIL_ALL);
    fixture_advance(&f, SECOND - 1);
    assert_int_equal(SAMPLED(&f), 0);
    tail_consume_spans(&f, traces->nodes[0], "b", NULL);
    fixture_advance(&f, 1);
    assert_int_equal(SAMPLED(&f), 1);
    tail_change(&f, traces, "decision_wait: 5s, " TAIL_ALL);
    fixture_advance(&f, 5 * SECOND - 2);
    assert_int_equal(SAMPLED(&f), 1);
    fixture_advance(&f, 1 + GATHER);
    expect_spans(&f, "ab");
    fixture_deinit(&f);
}

static void test_a_root_keeps_its_deadline(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 1, "decision_wait: 10s, decision_wait_after_root_received: 2s, " TAIL_ALL);
    tail_consume_spans(&f, traces->nodes[0], "a", NULL);
    tail_change(&f, traces, "decision_wait: 20s, " TAIL_ALL);
    fixture_advance(&f, 2 * SECOND + GATHER);
    expect_spans(&f, "a");
    fixture_deinit(&f);
}

/* The bucket has passed 4 of 4 spans. */
static void test_a_rate_stays_used(void **state)
{
#define RATE                                                                                       \
    "policies: [{name: rate, type: rate_limiting, rate_limiting: {spans_per_second: 1, "           \
    "burst_capacity: 4}}]"
    struct fixture f;
    (void)state;
    struct fixture_place *traces = tail_begin(&f, 1, "decision_wait: 1s, " RATE);
    tail_consume_spans(&f, traces->nodes[0], "aaaabbb", NULL);
    fixture_advance(&f, SECOND - 500 * MS);
    tail_change(&f, traces, "decision_wait: 1001ms, " RATE);
    fixture_advance(&f, 501 * MS);
    tail_change(&f, traces, "decision_wait: 1s, " RATE);
    tail_consume_spans(&f, traces->nodes[0], "cc", NULL);
    fixture_advance(&f, SECOND + GATHER);
    expect_spans(&f, "aaaa");
    fixture_deinit(&f);
}

/* ---- limits ---- */

static void test_the_oldest_leave_when_num_traces_shrinks(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 1, "decision_wait: 60s, num_traces: 9, " TAIL_ERRORS);
    tail_consume_spans(&f, traces->nodes[0], "a!b!c!d!", NULL);
    tail_change(&f, traces, "decision_wait: 60s, num_traces: 2, " TAIL_ERRORS);
    fixture_advance(&f, GATHER);
    expect_spans(&f, "ab");
    assert_int_equal(EARLY(&f, "num_traces"), 2);
    assert_int_equal(KNOWN(&f), 2);
    fixture_deinit(&f);
}

/* By the new policies, which read them first. */
static void test_the_oldest_are_read_before_they_leave(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 2, "decision_wait: 60s, num_traces: 9, " TAIL_ERRORS);
    tail_consume_spans(&f, traces->nodes[0], "a!b!c!d!", NULL);
    tail_consume_spans(&f, traces->nodes[1], "ab", NULL);
    tail_change(&f, traces, "decision_wait: 60s, num_traces: 2, " NAMED("b"));
    fixture_advance(&f, GATHER);
    expect_spans(&f, "bb");
    assert_int_equal(KNOWN(&f), 2);
    fixture_deinit(&f);
}

static void test_caches_shrink(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = tail_begin(
        &f, 1,
        "decision_wait: 1s, num_traces: 9, decision_cache: {sampled_cache_size: 9}, " TAIL_ERRORS);
    tail_consume_spans(&f, traces->nodes[0], "a!b!c!", NULL);
    fixture_advance(&f, SECOND + GATHER);
    expect_spans(&f, "abc");
    tail_change(
        &f, traces,
        "decision_wait: 1s, num_traces: 9, decision_cache: {sampled_cache_size: 1}, " TAIL_ERRORS);
    fixture_advance(&f, GATHER);
    tail_consume_spans(&f, traces->nodes[0], "abc", NULL);
    fixture_advance(&f, 2 * SECOND);
    expect_spans(&f, "c"); /* a and b were forgotten, and have no error now */
    fixture_deinit(&f);
}

static void test_decisions_stay_when_a_cache_goes(void **state)
{
    static const char *const caches[] = {"", "decision_cache: {sampled_cache_size: 9}, ",
                                         "decision_cache: {non_sampled_cache_size: 9}, "};
    (void)state;
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        struct fixture f;
        struct text after = {0};
        struct fixture_place *traces =
            tail_begin(&f, 2,
                       "decision_wait: 1s, decision_cache: "
                       "{sampled_cache_size: 9, non_sampled_cache_size: 9}, " TAIL_ERRORS);
        tail_consume_spans(&f, traces->nodes[0], "a!b", NULL);
        fixture_advance(&f, SECOND + GATHER);
        expect_spans(&f, "a");
        text_printf(&after, "decision_wait: 1s, %s" TAIL_ERRORS, caches[i]);
        tail_change(&f, traces, text_string(&after));
        fixture_advance(&f, GATHER);
        tail_consume_spans(&f, traces->nodes[1], "ab!", NULL);
        fixture_advance(&f, 2 * SECOND);
        expect_spans(&f, "a");
        text_deinit(&after);
        fixture_deinit(&f);
    }
}

/* They count within num_traces then. */
static void test_a_large_cache_goes(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = tail_begin(
        &f, 1,
        "decision_wait: 1s, num_traces: 3, decision_cache: {sampled_cache_size: 9}, " TAIL_ERRORS);
    tail_consume_spans(&f, traces->nodes[0], "a!b!c!", NULL);
    fixture_advance(&f, SECOND + GATHER);
    expect_spans(&f, "abc");
    tail_consume_spans(&f, traces->nodes[0], "d!", NULL);
    tail_change(&f, traces, "decision_wait: 1s, num_traces: 3, " TAIL_ERRORS);
    fixture_advance(&f, GATHER);
    assert_int_equal(KNOWN(&f), 3);
    tail_consume_spans(&f, traces->nodes[0], "bca", NULL); /* a was forgotten; b leaves for it */
    fixture_advance(&f, GATHER);
    assert_int_equal(EARLY(&f, "num_traces"), 0);
    assert_int_equal(KNOWN(&f), 3);
    fixture_advance(&f, 2 * SECOND);
    expect_spans(&f, "bcd");
    fixture_deinit(&f);
}

/* ---- large requests ---- */

enum { MANY = 8 * TRACES_PER_TURN, TWICE = 2 * MANY };

static void consume_many(struct fixture *f, struct node *node, uint64_t count, struct probe *probe)
{
    struct wire_writer request = {0};
    tail_write_traces(&request, count);
    fixture_consume(f, node, wire_writer_slice(&request), (uint32_t)count, probe);
    wire_writer_deinit(&request);
}

/* In the middle of a request, some of whose traces were added before. The oldest of them are not
 * decided before they were read again. */
static void test_a_request_that_arrives(void **state)
{
    static const char *const limits[] = {"num_traces: 50000", "num_traces: 10",
                                         "num_traces: 50000, max_held_mib: 1"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct fixture f;
        struct probe probe;
        struct text settings[2] = {0};
        text_printf(&settings[0], "decision_wait: 2s, %s, " TAIL_ERRORS, limits[0]);
        text_printf(&settings[1], "decision_wait: 2s, %s, " NAMED(""), limits[i]);
        struct fixture_place *traces = tail_begin(&f, 2, text_string(&settings[0]));
        consume_many(&f, traces->nodes[0], MANY, &probe);
        assert_int_equal(probe.settled, 0);
        tail_change(&f, traces, text_string(&settings[1]));
        consume_many(&f, traces->nodes[1], MANY, NULL); /* the same */
        fixture_advance(&f, SECOND);
        assert_true(probe.settled == 1 && verdict_is_ok(&probe.verdict));
        fixture_advance(&f, SECOND + GATHER);
        assert_int_equal(SAMPLED(&f), MANY);
        text_deinit(&settings[0]);
        text_deinit(&settings[1]);
        fixture_deinit(&f);
    }
}

/* A job has read it by the old rules. */
static void test_a_request_in_a_job(void **state)
{
    struct fixture f;
    struct probe probe;
    (void)state;
    struct fixture_place *traces = tail_begin(&f, 1, "decision_wait: 2s, " TAIL_ERRORS);
    consume_many(&f, traces->nodes[0], TWICE, &probe);
    tail_change(&f, traces, "decision_wait: 2s, " NAMED(""));
    fixture_advance(&f, SECOND);
    assert_true(probe.settled == 1 && verdict_is_ok(&probe.verdict));
    fixture_advance(&f, SECOND + GATHER);
    assert_int_equal(SAMPLED(&f), TWICE);
    fixture_deinit(&f);
}

/* Reading again takes turns and a job, and may be overtaken by the next reload. */
static void test_reloads_in_a_row(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = tail_begin(&f, 2, "decision_wait: 2s, " TAIL_ERRORS);
    consume_many(&f, traces->nodes[0], TWICE, NULL);
    consume_many(&f, traces->nodes[0], MANY, NULL);
    tail_consume_spans(&f, traces->nodes[1], "ab", NULL);
    fixture_advance(&f, SECOND);
    tail_change(&f, traces, "decision_wait: 2s, " NAMED("x"));
    fixture_advance(&f, 0);
    tail_change(&f, traces, "decision_wait: 2s, " NAMED("a"));
    tail_change(&f, traces, "decision_wait: 2s, " NAMED(""));
    fixture_advance(&f, SECOND + GATHER);
    assert_int_equal(SAMPLED(&f), TWICE);
    fixture_deinit(&f);
}

/* ---- samples ---- */

#define POLICY(type) "decision_wait: 2s, policies: [{name: p, type: " type "}]"

/* Samples that wait when a reload adds policies that read them count for these, and once. */
static const struct {
    const char *before, *between, *after, *samples, *sent;
} sample_changes[] = {
    {"decision_wait: 2s, " TAIL_ERRORS, NULL, POLICY("function, function: {pattern: 'ork$'}"), "b1",
     "b"},
    {"decision_wait: 2s, " TAIL_ERRORS, NULL, POLICY("function, function: {pattern: '^work'}"),
     "b1", ""},
    {"decision_wait: 2s, " TAIL_ERRORS, NULL, POLICY("cpu_above, cpu_above: {threshold: 100ns}"),
     "a60a41b100", "a"},
    {POLICY("samples_above, samples_above: {threshold: 9}"), NULL,
     POLICY("samples_above, samples_above: {threshold: 2}"), "a1a1b1b1b1", "b"},
    {POLICY("samples_above, samples_above: {threshold: 9}"), "decision_wait: 2s, " TAIL_ERRORS,
     POLICY("samples_above, samples_above: {threshold: 2}"), "a1a1b1b1b1", "b"},
    {POLICY("function, function: {pattern: x}"),
     POLICY("samples_above, samples_above: {threshold: 1}"),
     POLICY("function, function: {pattern: ork}"), "a1", "a"},
    {POLICY("function, function: {pattern: x}"), NULL,
     POLICY("samples_above, samples_above: {threshold: 1}"), "a1b1b1", "b"},
};

static void test_new_policies_read_samples_that_wait(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sample_changes / sizeof *sample_changes; i++) {
        struct fixture f;
        struct fixture_place *traces = tail_begin(&f, 2, sample_changes[i].before);
        struct fixture_place *profiles = tail_place(&f, SIGNAL_PROFILES, "");
        tail_consume_spans(&f, traces->nodes[0], "ab", NULL);
        tail_consume_samples(&f, profiles->nodes[1], sample_changes[i].samples, NULL);
        if (sample_changes[i].between) {
            tail_change(&f, traces, sample_changes[i].between);
            fixture_advance(&f, SECOND);
        }
        tail_change(&f, traces, sample_changes[i].after);
        fixture_advance(&f, 2 * SECOND + GATHER);
        expect_spans(&f, sample_changes[i].sent);
        fixture_deinit(&f);
    }
}

/* The spans are due at the reload, and their samples are read first. */
static void test_decisions_wait_for_the_samples(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = tail_begin(&f, 1, "decision_wait: 60s, " TAIL_ERRORS);
    struct fixture_place *profiles = tail_place(&f, SIGNAL_PROFILES, "");
    tail_consume_spans(&f, traces->nodes[0], "ab", NULL);
    tail_consume_samples(&f, profiles->nodes[0], "a1b2", NULL);
    fixture_advance(&f, 5 * SECOND);
    tail_change(&f, traces, POLICY("samples_above, samples_above: {threshold: 0}"));
    fixture_advance(&f, SECOND);
    expect_spans(&f, "ab");
    fixture_deinit(&f);
}

/* ---- ends ---- */

static void test_a_drain_reads_first(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = tail_begin(&f, 2, "decision_wait: 60s, " TAIL_ERRORS);
    struct fixture_place *profiles = tail_place(&f, SIGNAL_PROFILES, "");
    tail_consume_spans(&f, traces->nodes[0], "a!b", NULL);
    tail_consume_spans(&f, traces->nodes[1], "bb", NULL);
    tail_consume_samples(&f, profiles->nodes[0], "a1b2", NULL);
    tail_change(&f, traces, "decision_wait: 60s, " NAMED("b"));
    fixture_drain(profiles->nodes[0]);
    for (int i = 0; i < 2; i++)
        fixture_drain(traces->nodes[i]);
    fixture_advance(&f, SECOND);
    assert_true(fixture_is_idle(traces->nodes[0]) && fixture_is_idle(profiles->nodes[0]));
    struct text samples = {0};
    for (size_t i = 0; i < f.recorder.count; i++)
        if (f.recorder.items[i].signal == SIGNAL_PROFILES)
            tail_print_samples(slice_of(f.recorder.items[i].bytes, f.recorder.items[i].size),
                               &samples);
    assert_string_equal(text_string(&samples), "-1b2");
    text_deinit(&samples);
    fixture_deinit(&f);
}

static void test_a_stop_during_the_reading(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = tail_begin(&f, 2, "decision_wait: 60s, " TAIL_ERRORS);
    consume_many(&f, traces->nodes[0], TWICE, NULL);
    tail_consume_spans(&f, traces->nodes[1], "a", NULL);
    fixture_advance(&f, SECOND);
    tail_change(&f, traces, "decision_wait: 1s, " NAMED("a"));
    outlet_stop(&traces->nodes[0]->outlets[SIGNAL_TRACES]);
    traces->component->type->node_stop(traces->nodes[0]);
    fixture_advance(&f, SECOND); /* the other node does not wait for it */
    expect_spans(&f, "a");
    fixture_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waiting_traces_are_decided_by_the_new_policies),
        cmocka_unit_test(test_a_policy_that_stays),
        cmocka_unit_test(test_decisions_stay),
        cmocka_unit_test(test_deadlines_follow_decision_wait),
        cmocka_unit_test(test_a_root_keeps_its_deadline),
        cmocka_unit_test(test_a_rate_stays_used),
        cmocka_unit_test(test_the_oldest_leave_when_num_traces_shrinks),
        cmocka_unit_test(test_the_oldest_are_read_before_they_leave),
        cmocka_unit_test(test_caches_shrink),
        cmocka_unit_test(test_decisions_stay_when_a_cache_goes),
        cmocka_unit_test(test_a_large_cache_goes),
        cmocka_unit_test(test_a_request_that_arrives),
        cmocka_unit_test(test_a_request_in_a_job),
        cmocka_unit_test(test_reloads_in_a_row),
        cmocka_unit_test(test_new_policies_read_samples_that_wait),
        cmocka_unit_test(test_decisions_wait_for_the_samples),
        cmocka_unit_test(test_a_drain_reads_first),
        cmocka_unit_test(test_a_stop_during_the_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* How traces and profiles wait for the decision, and how they leave. */
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

/* Expects the names of the spans that have left, in their order; a blank ends a request. */
static void expect_sent(struct fixture *f, const char *expected)
{
    struct text got = {0};
    for (size_t i = 0; i < f->recorder.count; i++) {
        char *json = fixture_recorded_json(f, i);
        text_append(&got, i ? " " : "");
        for (const char *at = json; (at = strstr(at, "\"name\":\"")); at++)
            text_append_char(&got, at[8]);
        free(json);
    }
    assert_string_equal(text_string(&got), expected);
    text_deinit(&got);
    fixture_clear_recorded(f);
}

static double early(struct fixture *f, const char *cause)
{
    struct text label = {0};
    text_printf(&label, ",cause=\"%s\"", cause);
    double value = tail_metric(f, "profcol_tail_sampling_decided_early", text_string(&label));
    text_deinit(&label);
    return value;
}

/* ---- waiting ---- */

static void test_a_trace_is_decided_exactly_after_the_wait(void **state)
{
    struct fixture f;
    struct probe probe;
    (void)state;
    struct fixture_place *traces = tail_begin(&f, 1, "decision_wait: 300ms, " TAIL_ERRORS);
    tail_consume_spans(&f, traces->nodes[0], "aab", &probe);
    assert_int_equal(probe.settled, 1);
    assert_true(verdict_is_ok(&probe.verdict));
    fixture_advance(&f, 300 * MS - 1);
    assert_true(tail_metric(&f, "otelcol_processor_tail_sampling_global_count_traces_sampled",
                            ",sampled=\"false\",decision=\"not_sampled\"") == 0);
    tail_consume_spans(&f, traces->nodes[0], "a!", NULL); /* in time */
    fixture_advance(&f, 1);
    assert_true(tail_metric(&f, "otelcol_processor_tail_sampling_global_count_traces_sampled",
                            ",sampled=\"false\",decision=\"not_sampled\"") == 1);
    tail_consume_spans(&f, traces->nodes[0], "b!", NULL); /* too late */
    fixture_advance(&f, GATHER);
    expect_sent(&f, "aaa");
    fixture_deinit(&f);
}

static void test_traces_share_a_request(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = tail_begin(&f, 1, "decision_wait: 1s, " TAIL_ALL);
    tail_consume_spans(&f, traces->nodes[0], "abab", NULL);
    fixture_advance(&f, 20 * MS);
    tail_consume_spans(&f, traces->nodes[0], "cb", NULL);
    fixture_advance(&f, 500 * MS);
    tail_consume_spans(&f, traces->nodes[0], "d", NULL);
    fixture_advance(&f, 2 * SECOND);
    expect_sent(&f, "ababcb d");
    fixture_deinit(&f);
}

static void test_the_root_ends_the_wait(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 2, "decision_wait: 30s, decision_wait_after_root_received: 2s, " TAIL_ALL);
    tail_consume_spans(&f, traces->nodes[0], "a^b^", NULL);
    fixture_advance(&f, SECOND);
    tail_consume_spans(&f, traces->nodes[1], "b", NULL);
    fixture_advance(&f, 2 * SECOND - 1);
    expect_sent(&f, "");
    fixture_advance(&f, 1 + GATHER);
    expect_sent(&f, "b b"); /* also on the worker that did not get the root */
    fixture_advance(&f, 27 * SECOND);
    expect_sent(&f, "a");
    fixture_deinit(&f);
}

static void test_two_workers_have_one_decision(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = tail_begin(&f, 2, "decision_wait: 1s, " TAIL_ERRORS);
    tail_consume_spans(&f, traces->nodes[0], "ab", NULL);
    fixture_advance(&f, 300 * MS);
    tail_consume_spans(&f, traces->nodes[1], "ab!", NULL);
    fixture_advance(&f, SECOND);
    expect_sent(&f, "b b");
    assert_true(tail_metric(&f, "otelcol_processor_tail_sampling_global_count_traces_sampled",
                            ",sampled=\"true\",decision=\"sampled\"") == 1);
    assert_true(tail_metric(&f, "otelcol_processor_tail_sampling_new_trace_id_received", "") == 2);
    tail_consume_spans(&f, traces->nodes[1], "a!", NULL);
    tail_consume_spans(&f, traces->nodes[1], "b", NULL);
    fixture_advance(&f, SECOND);
    expect_sent(&f, "b");
    fixture_deinit(&f);
}

/* ---- what is remembered ---- */

static void test_late_spans_follow_until_the_trace_is_forgotten(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 1, "decision_wait: 1s, num_traces: 2, " TAIL_ERRORS);
    tail_consume_spans(&f, traces->nodes[0], "ab!", NULL);
    fixture_advance(&f, 2 * SECOND);
    expect_sent(&f, "b");
    tail_consume_spans(&f, traces->nodes[0], "a!b", NULL);
    fixture_advance(&f, GATHER);
    expect_sent(&f, "b");
    tail_consume_spans(&f, traces->nodes[0], "c", NULL);  /* a is forgotten */
    tail_consume_spans(&f, traces->nodes[0], "a!", NULL); /* and b */
    fixture_advance(&f, SECOND + GATHER);
    expect_sent(&f, "a");
    assert_true(early(&f, "num_traces") == 0);
    fixture_deinit(&f);
}

static void test_caches_remember_longer(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 1,
                   "decision_wait: 1s, num_traces: 1, decision_cache: {sampled_cache_size: 2, "
                   "non_sampled_cache_size: 1}, " TAIL_ERRORS);
    tail_consume_spans(&f, traces->nodes[0], "a", NULL);
    fixture_advance(&f, 2 * SECOND);
    tail_consume_spans(&f, traces->nodes[0], "b!", NULL);
    fixture_advance(&f, 2 * SECOND);
    tail_consume_spans(&f, traces->nodes[0], "a!", NULL);
    tail_consume_spans(&f, traces->nodes[0], "b", NULL);
    fixture_advance(&f, 2 * SECOND);
    expect_sent(&f, "b b");
    assert_true(early(&f, "num_traces") == 0); /* decided ones do not count */
    assert_true(tail_metric(&f,
                            "otelcol_processor_tail_sampling_early_releases_from_cache_decision",
                            ",sampled=\"false\"") == 1);
    tail_consume_spans(&f, traces->nodes[0], "c", NULL); /* takes the place of a */
    fixture_advance(&f, 2 * SECOND);
    tail_consume_spans(&f, traces->nodes[0], "a!", NULL);
    fixture_advance(&f, 2 * SECOND);
    expect_sent(&f, "a");
    fixture_deinit(&f);
}

static void test_the_oldest_is_decided_early(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 2, "decision_wait: 30s, num_traces: 2, " TAIL_ERRORS);
    tail_consume_spans(&f, traces->nodes[0], "a!", NULL);
    tail_consume_spans(&f, traces->nodes[1], "a", NULL);
    tail_consume_spans(&f, traces->nodes[0], "b", NULL);
    fixture_advance(&f, GATHER);
    expect_sent(&f, "");
    tail_consume_spans(&f, traces->nodes[0], "c!", NULL);
    fixture_advance(&f, GATHER);
    expect_sent(&f, "a a");
    assert_true(early(&f, "num_traces") == 1);
    fixture_advance(&f, 31 * SECOND);
    expect_sent(&f, "c");
    fixture_deinit(&f);
}

static void test_a_trace_that_is_too_large_is_not_sampled(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 2, "decision_wait: 1s, maximum_trace_size_bytes: 90, " TAIL_ALL);
    tail_consume_spans(&f, traces->nodes[0], "ab", NULL);
    tail_consume_spans(&f, traces->nodes[1], "aa", NULL);
    assert_true(tail_metric(&f, "otelcol_processor_tail_sampling_traces_dropped_too_large", "") ==
                1);
    fixture_advance(&f, 2 * SECOND);
    expect_sent(&f, "b");
    fixture_deinit(&f);
}

static void test_span_ingest_samples_at_once(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 1, "decision_wait: 10s, sampling_strategy: span-ingest, " TAIL_ERRORS);
    tail_consume_spans(&f, traces->nodes[0], "ab", NULL);
    fixture_advance(&f, SECOND);
    tail_consume_spans(&f, traces->nodes[0], "a!", NULL);
    fixture_advance(&f, GATHER);
    expect_sent(&f, "aa");
    fixture_advance(&f, 10 * SECOND);
    expect_sent(&f, "");
    fixture_deinit(&f);
}

/* ---- memory ---- */

static char *long_span(unsigned trace, size_t size)
{
    struct text json = {0};
    text_printf(&json,
                "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":\"%032x\","
                "\"spanId\":\"%016x\",\"name\":\"",
                trace, trace);
    for (size_t i = 0; i < size; i++)
        text_append_char(&json, 'x');
    text_append(&json, "\"}]}]}]}");
    text_string(&json);
    return json.data;
}

static unsigned consume_long(struct fixture *f, struct node *node, unsigned first, unsigned count)
{
    unsigned accepted = 0;
    for (unsigned i = 0; i < count; i++) {
        struct probe probe;
        char *json = long_span(first + i, 100000);
        fixture_consume_json(f, node, json, 1, &probe);
        fixture_advance(f, MS);
        assert_int_equal(probe.settled, 1);
        accepted += verdict_is_ok(&probe.verdict);
        free(json);
    }
    return accepted;
}

static uint32_t items_sent(const struct fixture *f)
{
    uint32_t items = 0;
    for (size_t i = 0; i < f->recorder.count; i++)
        items += f->recorder.items[i].items;
    return items;
}

static void test_memory_decides_the_oldest(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 1, "decision_wait: 60s, max_held_mib: 1, " TAIL_ALL);
    assert_int_equal(consume_long(&f, traces->nodes[0], 1, 40), 40);
    assert_true(early(&f, "memory") >= 30);
    assert_true(tail_metric(&f, "profcol_tail_sampling_held_bytes", "") <= 1 << 20);
    fixture_advance(&f, 61 * SECOND);
    assert_int_equal(items_sent(&f), 40);
    fixture_deinit(&f);
}

static void test_a_worker_with_all_the_memory_gives_some_back(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 2, "decision_wait: 60s, max_held_mib: 1, " TAIL_ALL);
    assert_int_equal(consume_long(&f, traces->nodes[0], 1, 20), 20);
    assert_int_equal(consume_long(&f, traces->nodes[1], 100, 1), 0); /* holds nothing to decide */
    assert_int_equal(consume_long(&f, traces->nodes[1], 100, 2), 2); /* again */
    fixture_advance(&f, 61 * SECOND);
    assert_int_equal(items_sent(&f), 22);
    fixture_deinit(&f);
}

static void test_nothing_is_lost_if_the_next_component_refuses(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 1, "decision_wait: 60s, max_held_mib: 1, " TAIL_ALL);
    f.recorder.answer = verdict_try_later(GRPC_UNAVAILABLE, 0, "not now");
    unsigned accepted = consume_long(&f, traces->nodes[0], 1, 40);
    assert_true(accepted >= 5 && accepted < 20);
    assert_int_equal(f.recorder.count, 0);
    f.recorder.answer = verdict_ok;
    fixture_advance(&f, 70 * SECOND);
    assert_int_equal(items_sent(&f), accepted);
    assert_int_equal(consume_long(&f, traces->nodes[0], 100, 20), 20);
    fixture_advance(&f, 70 * SECOND);
    assert_int_equal(items_sent(&f), accepted + 20);
    fixture_deinit(&f);
}

static void test_a_request_above_the_limit_waits_alone(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 1, "decision_wait: 1s, max_held_mib: 1, " TAIL_ALL);
    char *json = long_span(1, 2 << 20);
    for (int i = 0; i < 2; i++) {
        struct probe probe, other;
        fixture_consume_json(&f, traces->nodes[0], json, 1, &probe);
        fixture_advance(&f, 0); /* it leaves its job */
        tail_consume_spans(&f, traces->nodes[0], "b", &other);
        assert_true(probe.settled == 1 && verdict_is_ok(&probe.verdict));
        assert_true(other.settled == 1);
        fixture_advance(&f, 2 * SECOND);
        assert_true(tail_metric(&f, "profcol_tail_sampling_held_bytes", "") == 0);
    }
    free(json);
    fixture_deinit(&f);
}

static void test_a_permanent_refusal_is_counted(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = tail_begin(&f, 1, "decision_wait: 1s, " TAIL_ALL);
    f.recorder.answer = verdict_of(GRPC_INVALID_ARGUMENT, "no");
    tail_consume_spans(&f, traces->nodes[0], "aab", NULL);
    fixture_advance(&f, 2 * SECOND);
    assert_true(tail_metric(&f, "profcol_tail_sampling_dropped", ",reason=\"refused\"") == 3);
    fixture_deinit(&f);
}

/* ---- work in one turn of the loop ---- */

enum { MANY = 8 * TRACES_PER_TURN }; /* traces; too few bytes for a job */

static void consume_many(struct fixture *f, struct node *node, struct probe *probe)
{
    struct wire_writer request = {0};
    tail_write_traces(&request, MANY);
    fixture_consume(f, node, wire_writer_slice(&request), MANY, probe);
    wire_writer_deinit(&request);
}

static uint64_t turns(struct fixture *f, uint64_t wait_ns)
{
    uint64_t before = f->workers[0].turn;
    fixture_advance(f, wait_ns);
    return f->workers[0].turn - before;
}

static void test_many_traces_take_turns(void **state)
{
    struct fixture f;
    struct probe probe, next;
    (void)state;
    struct fixture_place *traces = tail_begin(&f, 1, "decision_wait: 1s, " TAIL_ERRORS);
    consume_many(&f, traces->nodes[0], &probe);
    tail_consume_spans(&f, traces->nodes[0], "a!", &next);
    assert_int_equal(probe.settled, 0);
    assert_int_equal(next.settled, 0); /* it comes after */
    assert_true(turns(&f, 0) >= MANY / TRACES_PER_TURN - 1);
    assert_true(probe.settled == 1 && verdict_is_ok(&probe.verdict));
    assert_true(next.settled == 1 && verdict_is_ok(&next.verdict));
    assert_true(turns(&f, SECOND) >= MANY / TRACES_PER_TURN);
    fixture_advance(&f, GATHER);
    expect_sent(&f, "a");
    assert_true(tail_metric(&f, "otelcol_processor_tail_sampling_global_count_traces_sampled",
                            ",sampled=\"false\",decision=\"not_sampled\"") == MANY);
    fixture_deinit(&f);
}

static void test_a_stop_refuses_what_arrives(void **state)
{
    struct fixture f;
    struct probe probe;
    (void)state;
    struct node *node = tail_begin(&f, 1, "decision_wait: 60s, " TAIL_ERRORS)->nodes[0];
    consume_many(&f, node, &probe);
    outlet_stop(&node->outlets[SIGNAL_TRACES]);
    node->component->type->node_stop(node);
    assert_true(probe.settled == 1 && !verdict_is_ok(&probe.verdict));
    assert_true(tail_metric(&f, "profcol_tail_sampling_held_bytes", "") == 0);
    fixture_deinit(&f);
}

static void test_a_drain_takes_turns(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = tail_begin(&f, 1, "decision_wait: 60s, " TAIL_ERRORS);
    consume_many(&f, traces->nodes[0], NULL);
    fixture_advance(&f, 0);
    fixture_drain(traces->nodes[0]);
    assert_false(fixture_is_idle(traces->nodes[0]));
    assert_true(turns(&f, 0) >= MANY / TRACES_PER_TURN - 1);
    assert_true(fixture_is_idle(traces->nodes[0]));
    assert_true(early(&f, "drain") == MANY);
    fixture_deinit(&f);
}

/* The large request needs all the room, which many small traces have. */
static void test_making_room_takes_turns(void **state)
{
    struct fixture f;
    struct probe probe;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 1, "decision_wait: 60s, max_held_mib: 16, " TAIL_ERRORS);
    consume_many(&f, traces->nodes[0], NULL);
    fixture_advance(&f, 0);
    char *json = long_span(1, 15 << 20);
    fixture_consume_json(&f, traces->nodes[0], json, 1, &probe);
    assert_true(turns(&f, 0) >= MANY / TRACES_PER_TURN / 2);
    assert_true(probe.settled == 1 && verdict_is_ok(&probe.verdict));
    assert_true(early(&f, "memory") > TRACES_PER_TURN);
    free(json);
    fixture_deinit(&f);
}

/* ---- the end ---- */

static void test_a_drain_decides(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = tail_begin(&f, 2, "decision_wait: 60s, " TAIL_ERRORS);
    tail_consume_spans(&f, traces->nodes[0], "a!b", NULL);
    tail_consume_spans(&f, traces->nodes[1], "ab", NULL);
    fixture_drain(traces->nodes[0]);
    fixture_advance(&f, 0);
    tail_consume_spans(&f, traces->nodes[0], "c!", NULL); /* arrives during the drain */
    fixture_advance(&f, GATHER);
    expect_sent(&f, "a c a");
    assert_true(early(&f, "drain") == 3);
    fixture_deinit(&f);
}

static void test_pending_traces_are_dropped_where_asked(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 1, "decision_wait: 60s, drop_pending_traces_on_shutdown: true, " TAIL_ALL);
    tail_consume_spans(&f, traces->nodes[0], "ab", NULL);
    atomic_store(&f.process.phase, PROCESS_DRAINING);
    fixture_drain(traces->nodes[0]);
    fixture_advance(&f, SECOND);
    expect_sent(&f, "");
    assert_true(tail_metric(&f, "profcol_tail_sampling_pending_dropped_spans", "") == 2);
    fixture_deinit(&f);
}

/* ---- profiles ---- */

static void expect_profiles(struct fixture *f, const char *expected)
{
    struct text got = {0};
    for (size_t i = 0; i < f->recorder.count; i++)
        if (f->recorder.items[i].signal == SIGNAL_PROFILES)
            tail_print_samples(slice_of(f->recorder.items[i].bytes, f->recorder.items[i].size),
                               &got);
    assert_string_equal(text_string(&got), expected);
    text_deinit(&got);
    fixture_clear_recorded(f);
}

static void test_samples_follow_the_decision(void **state)
{
    struct fixture f;
    struct probe probe;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 1, "decision_wait: 2s, profiles: {wait: 4s}, " TAIL_ERRORS);
    struct fixture_place *profiles = tail_place(&f, SIGNAL_PROFILES, "");
    tail_consume_spans(&f, traces->nodes[0], "a!b", NULL);
    tail_consume_samples(&f, profiles->nodes[0], "a5b3b4-9", &probe);
    assert_int_equal(probe.settled, 1);
    fixture_advance(&f, 2 * SECOND - 1);
    expect_profiles(&f, "");
    fixture_advance(&f, 2 * SECOND + 1); /* c to h are not known: 4 s */
    expect_profiles(&f, "a5-7-9");
    assert_true(tail_metric(&f, "profcol_tail_sampling_profile_samples", ",decision=\"folded\"") ==
                2);
    fixture_deinit(&f);
}

static void test_samples_without_links_do_not_wait(void **state)
{
    struct fixture f;
    struct probe probe;
    (void)state;
    tail_begin(&f, 1, TAIL_ALL);
    struct fixture_place *profiles = tail_place(&f, SIGNAL_PROFILES, "");
    fixture_consume_json(&f, profiles->nodes[0],
                         "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":"
                         "[{\"values\":[1]}]}]}]}]}",
                         1, &probe);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(f.recorder.count, 1);
    fixture_deinit(&f);
}

static void test_unknown_traces(void **state)
{
    static const char *const cases[][2] = {{"pass", "a5b3-9"}, {"fold", "-8-9"}, {"drop", "-9"}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct fixture f;
        struct text settings = {0};
        text_printf(&settings, "profiles: {wait: 2s, unknown_trace: %s}, " TAIL_ALL, cases[i][0]);
        tail_begin(&f, 1, text_string(&settings));
        struct fixture_place *profiles = tail_place(&f, SIGNAL_PROFILES, "");
        tail_consume_samples(&f, profiles->nodes[0], "a5b3-9", NULL);
        fixture_advance(&f, 2 * SECOND - 1);
        assert_int_equal(f.recorder.count, 0);
        fixture_advance(&f, 1);
        expect_profiles(&f, cases[i][1]);
        assert_true(
            tail_metric(&f, "profcol_tail_sampling_profile_samples", ",decision=\"unknown\"") == 2);
        text_deinit(&settings);
        fixture_deinit(&f);
    }
}

static void test_samples_of_other_traces_are_dropped_where_asked(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 1, "decision_wait: 1s, profiles: {otherwise: drop, wait: 2s}, " TAIL_ERRORS);
    struct fixture_place *profiles = tail_place(&f, SIGNAL_PROFILES, "");
    tail_consume_spans(&f, traces->nodes[0], "a!b", NULL);
    tail_consume_samples(&f, profiles->nodes[0], "a5b3-9", NULL);
    fixture_advance(&f, 3 * SECOND);
    expect_profiles(&f, "a5-9");
    tail_consume_samples(&f, profiles->nodes[0], "b3", NULL);
    fixture_advance(&f, 3 * SECOND);
    expect_profiles(&f, "");
    fixture_deinit(&f);
}

/* A profile of one sample linked to trace a, with so many more bytes. */
static void consume_large_profile(struct fixture *f, struct node *node, unsigned value,
                                  struct probe *probe)
{
    struct text json = {0};
    text_printf(&json,
                "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":["
                "{\"stackIndex\":0,\"linkIndex\":1,\"values\":[%u]}]}]}]}],"
                "\"dictionary\":{\"linkTable\":[{},{\"traceId\":\"%032x\","
                "\"spanId\":\"00000000000000bb\"}],\"stackTable\":[{}],\"stringTable\":[\"\",\"",
                value, (unsigned)'a');
    for (int i = 0; i < 30000; i++)
        text_append_char(&json, 'x');
    text_append(&json, "\"]}}");
    fixture_consume_json(f, node, text_string(&json), 1, probe);
    text_deinit(&json);
}

static void test_memory_lets_the_oldest_profiles_leave(void **state)
{
    struct fixture f;
    struct text expected = {0};
    (void)state;
    tail_begin(&f, 1, "max_held_mib: 1, profiles: {wait: 60s}, " TAIL_ALL);
    struct node *node = tail_place(&f, SIGNAL_PROFILES, "")->nodes[0];
    for (unsigned i = 1; i <= 40; i++) {
        struct probe probe;
        consume_large_profile(&f, node, i, &probe);
        assert_true(probe.settled == 1 && verdict_is_ok(&probe.verdict));
        assert_true(tail_metric(&f, "profcol_tail_sampling_held_bytes", "") <= 1 << 18);
        fixture_advance(&f, MS);
    }
    size_t left = f.recorder.count;
    assert_in_range(left, 32, 39); /* a quarter of a MiB has room for 8 */
    assert_true(tail_metric(&f, "profcol_tail_sampling_profiles_sent_early", "") == (double)left);
    for (unsigned i = 1; i <= left; i++)
        text_printf(&expected, "a%u", i);
    expect_profiles(&f, text_string(&expected));
    fixture_advance(&f, 60 * SECOND);
    assert_int_equal(f.recorder.count, 40 - left);
    text_deinit(&expected);
    fixture_deinit(&f);
}

static void test_profiles_wait_for_the_next_turn_of_the_loop(void **state)
{
    enum { COUNT = 60 };
    struct fixture f;
    struct probe probes[COUNT];
    (void)state;
    tail_begin(&f, 1, "max_held_mib: 1, profiles: {wait: 60s}, " TAIL_ALL);
    struct node *node = tail_place(&f, SIGNAL_PROFILES, "")->nodes[0];
    for (unsigned i = 0; i < COUNT; i++)
        consume_large_profile(&f, node, i + 1, &probes[i]);
    assert_int_equal(probes[COUNT - 1].settled, 0); /* one turn sends only some */
    fixture_advance(&f, 0);
    for (unsigned i = 0; i < COUNT; i++)
        assert_true(probes[i].settled == 1 && verdict_is_ok(&probes[i].verdict));
    fixture_deinit(&f);
}

/* A profile with a sample for each of the traces 1 to MANY. */
static void consume_linked_to_many(struct fixture *f, struct node *node, struct probe *probe)
{
    struct text json = {0};
    text_append(&json, "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[");
    for (int i = 1; i <= MANY; i++)
        text_printf(&json, "%s{\"linkIndex\":%d,\"values\":[1]}", i > 1 ? "," : "", i);
    text_append(&json, "]}]}]}],\"dictionary\":{\"stringTable\":[\"\"],\"linkTable\":[{}");
    for (int i = 1; i <= MANY; i++)
        text_printf(&json, ",{\"traceId\":\"%032x\",\"spanId\":\"00000000000000bb\"}", i);
    text_append(&json, "]}}");
    fixture_consume_json(f, node, text_string(&json), MANY, probe);
    text_deinit(&json);
}

static void test_a_profile_of_many_traces(void **state)
{
    struct fixture f;
    struct probe probe;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 1,
                   "decision_wait: 2s, policies: [{name: p, type: samples_above, "
                   "samples_above: {threshold: 0}}]");
    struct node *node = tail_place(&f, SIGNAL_PROFILES, "")->nodes[0];
    consume_linked_to_many(&f, node, &probe);
    fixture_advance(&f, 0);
    assert_true(probe.settled == 1 && verdict_is_ok(&probe.verdict));
    tail_consume_spans(&f, traces->nodes[0], "a", NULL);
    fixture_advance(&f, 2 * SECOND + GATHER);
    expect_sent(&f, "a"); /* 'a' is 0x61, one of them */
    fixture_advance(&f, 10 * SECOND);
    assert_int_equal(f.recorder.count, 1);
    assert_true(tail_metric(&f, "profcol_tail_sampling_profile_samples", ",decision=\"kept\"") ==
                MANY);
    fixture_deinit(&f);
}

/* Their traces count as unknown then, even if they wait. */
static void test_profiles_that_leave_early_pass(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 1, "decision_wait: 60s, max_held_mib: 1, " TAIL_ERRORS);
    struct node *node = tail_place(&f, SIGNAL_PROFILES, "")->nodes[0];
    tail_consume_spans(&f, traces->nodes[0], "a", NULL);
    for (unsigned i = 1; i <= 10; i++)
        consume_large_profile(&f, node, i, NULL);
    fixture_advance(&f, MS);
    assert_true(f.recorder.count >= 1);
    assert_true(tail_metric(&f, "profcol_tail_sampling_profile_samples", ",decision=\"unknown\"") ==
                (double)f.recorder.count);
    fixture_deinit(&f);
}

static void test_late_samples_follow_what_is_remembered(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        tail_begin(&f, 1,
                   "decision_wait: 1s, num_traces: 1, profiles: {wait: 0s}, decision_cache: "
                   "{sampled_cache_size: 9, non_sampled_cache_size: 9}, " TAIL_ERRORS);
    struct node *profiles = tail_place(&f, SIGNAL_PROFILES, "")->nodes[0];
    for (int i = 0; i < 3; i++) {
        tail_consume_spans(&f, traces->nodes[0], (const char *[]){"a!", "b", "c"}[i], NULL);
        fixture_advance(&f, 2 * SECOND);
    }
    expect_sent(&f, "a");
    fixture_advance(&f, 3600 * SECOND);
    tail_consume_spans(&f, traces->nodes[0], "ab!", NULL);
    tail_consume_samples(&f, profiles, "a5b3c4-9", NULL);
    expect_profiles(&f, "a5-7-9"); /* at once */
    fixture_advance(&f, 2 * SECOND);
    expect_sent(&f, "a");
    fixture_deinit(&f);
}

/* ---- policies from the join ---- */

static const struct {
    const char *policy;
    const char *samples;
    const char *sent; /* spans */
} joins[] = {
    {"cpu_above, cpu_above: {threshold: 100ns}", "a60a41b100", "a"},
    {"cpu_share_above, cpu_share_above: {threshold: 0}", "b1", "b"},
    {"samples_above, samples_above: {threshold: 2}", "a1a1a1b1b1", "a"},
    {"function, function: {pattern: 'ork$'}", "b1", "b"},
    {"function, function: {pattern: '^work'}", "b1", ""},
};

static void test_policies_read_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++)
        for (int profile_first = 0; profile_first < 2; profile_first++) {
            struct fixture f;
            struct text settings = {0};
            text_printf(&settings, "decision_wait: 5s, policies: [{name: p, type: %s}]",
                        joins[i].policy);
            struct fixture_place *traces = tail_begin(&f, 1, text_string(&settings));
            struct fixture_place *profiles = tail_place(&f, SIGNAL_PROFILES, "");
            if (profile_first)
                tail_consume_samples(&f, profiles->nodes[0], joins[i].samples, NULL);
            tail_consume_spans(&f, traces->nodes[0], "ab", NULL);
            fixture_advance(&f, SECOND);
            if (!profile_first)
                tail_consume_samples(&f, profiles->nodes[0], joins[i].samples, NULL);
            fixture_advance(&f, 5 * SECOND);
            expect_sent(&f, joins[i].sent);
            text_deinit(&settings);
            fixture_deinit(&f);
        }
}

/* Profilers name CPU time differently. An upload may measure it, or count samples, twice. */
static const struct {
    const char *upload;
    const char *cpu, *samples; /* of the span */
} uploads[] = {
    {"cpu/nanoseconds=7", "7ns", "1"},
    {"samples/count=3 every 10 cpu/nanoseconds", "30ns", "3"},
    {"samples/count=3 every 10 cpu/ms", "30ms", "3"},
    {"itimer/ns=7 every 10 itimer/ns", "7ns", "1"},
    {"ctimer/ns=7 every 10 ctimer/ns", "7ns", "1"},
    {"cpu/ms=7", "7ms", "1"},
    {"cpu/count=3 every 10 cpu/ns", "30ns", "3"},
    {"samples/count=3 every 10 cpu/ns, cpu/ns=7 every 10 cpu/ns", "7ns", "3"},
    {"samples/count=3, cpu/ns=7 every 10 cpu/ns", "7ns", "3"},
    {"samples/count=3 every 10 cpu/ns, cpu/ns=7", "7ns", "3"},
    {"cpu/ns=7 every 10 cpu/ns, itimer/ns=8 every 10 cpu/ns", "7ns", "1"},
    {"cpu/ns=7 every 10 cpu/ns, off_cpu/ns=8", "7ns", "2"},
    {"cpu/s=9223372036854775807", "9223372036854775807ns", "1"},
    {"cpu/ns=-7", "0s", "1"},
    {"samples/count=-1 every 10 cpu/ns", "0s", "0"},
    {"wall/ns=7 every 10 wall/ns", "0s", "1"},
};

/* Whether the trace is sampled with this threshold of CPU time and of samples. */
static bool is_above(const char *policy, const char *threshold, const char *upload)
{
    struct fixture f;
    struct text settings = {0};
    text_printf(&settings,
                "decision_wait: 5s, policies: [{name: p, type: %s, %s: {threshold: %s}}]", policy,
                policy, threshold);
    struct fixture_place *traces = tail_begin(&f, 1, text_string(&settings));
    struct fixture_place *profiles = tail_place(&f, SIGNAL_PROFILES, "");
    tail_consume_spans(&f, traces->nodes[0], "a", NULL);
    tail_consume_upload(&f, profiles->nodes[0], upload);
    fixture_advance(&f, 6 * SECOND);
    bool is_sampled = tail_metric(&f, "otelcol_processor_tail_sampling_global_count_traces_sampled",
                                  ",sampled=\"true\",decision=\"sampled\"") > 0;
    text_deinit(&settings);
    fixture_deinit(&f);
    return is_sampled;
}

/* Values are exact: each is above the number below it, and not above itself. */
static void test_cpu_of_every_profiler(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof uploads / sizeof *uploads; i++) {
        assert_false(is_above("cpu_above", uploads[i].cpu, uploads[i].upload));
        assert_false(is_above("samples_above", uploads[i].samples, uploads[i].upload));
        char below[32];
        long long cpu = strtoll(uploads[i].cpu, NULL, 10), samples = atoll(uploads[i].samples);
        snprintf(below, sizeof below, "%lld%s", cpu - 1, strpbrk(uploads[i].cpu, "nms"));
        assert_true(cpu == 0 || is_above("cpu_above", below, uploads[i].upload));
        snprintf(below, sizeof below, "%lld", samples - 1);
        assert_true(samples == 0 || is_above("samples_above", below, uploads[i].upload));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_trace_is_decided_exactly_after_the_wait),
        cmocka_unit_test(test_traces_share_a_request),
        cmocka_unit_test(test_the_root_ends_the_wait),
        cmocka_unit_test(test_two_workers_have_one_decision),
        cmocka_unit_test(test_late_spans_follow_until_the_trace_is_forgotten),
        cmocka_unit_test(test_caches_remember_longer),
        cmocka_unit_test(test_the_oldest_is_decided_early),
        cmocka_unit_test(test_a_trace_that_is_too_large_is_not_sampled),
        cmocka_unit_test(test_span_ingest_samples_at_once),
        cmocka_unit_test(test_memory_decides_the_oldest),
        cmocka_unit_test(test_a_worker_with_all_the_memory_gives_some_back),
        cmocka_unit_test(test_nothing_is_lost_if_the_next_component_refuses),
        cmocka_unit_test(test_a_request_above_the_limit_waits_alone),
        cmocka_unit_test(test_a_permanent_refusal_is_counted),
        cmocka_unit_test(test_many_traces_take_turns),
        cmocka_unit_test(test_a_stop_refuses_what_arrives),
        cmocka_unit_test(test_a_drain_takes_turns),
        cmocka_unit_test(test_making_room_takes_turns),
        cmocka_unit_test(test_a_drain_decides),
        cmocka_unit_test(test_pending_traces_are_dropped_where_asked),
        cmocka_unit_test(test_samples_follow_the_decision),
        cmocka_unit_test(test_samples_without_links_do_not_wait),
        cmocka_unit_test(test_unknown_traces),
        cmocka_unit_test(test_samples_of_other_traces_are_dropped_where_asked),
        cmocka_unit_test(test_memory_lets_the_oldest_profiles_leave),
        cmocka_unit_test(test_profiles_wait_for_the_next_turn_of_the_loop),
        cmocka_unit_test(test_a_profile_of_many_traces),
        cmocka_unit_test(test_profiles_that_leave_early_pass),
        cmocka_unit_test(test_late_samples_follow_what_is_remembered),
        cmocka_unit_test(test_policies_read_samples),
        cmocka_unit_test(test_cpu_of_every_profiler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

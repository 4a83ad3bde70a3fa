/* How traces and profiles wait for the decision, and how they leave. */
#include "core/base/text.h"
#include "tests/unit/canonical_profiles.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type tail_sampling_processor_type;

#define ALL "policies: [{name: all, type: always_sample}]"
#define ERRORS "policies: [{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}]"
#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define GATHER (50 * MS)

static struct fixture_place *place(struct fixture *f, enum signal signal, const char *settings)
{
    struct text yaml = {0};
    text_printf(&yaml, "processors: {tail_sampling: {%s}}", settings);
    struct fixture_place *placed = fixture_place(f, &tail_sampling_processor_type, "tail_sampling",
                                                 text_string(&yaml), signal_name(signal), signal);
    text_deinit(&yaml);
    return placed;
}

static struct fixture_place *begin(struct fixture *f, unsigned workers, const char *settings)
{
    fixture_init(f, workers);
    return place(f, SIGNAL_TRACES, settings);
}

/* A span: 'a' to 'z' name its trace; '!' after it: an error, '^': it has a parent. */
static char *spans_json(const char *spans)
{
    static unsigned last_id;
    struct text json = {0};
    const char *comma = "";
    text_append(&json, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[");
    for (; *spans; spans++) {
        text_printf(&json, "%s{\"traceId\":\"%032x\",\"spanId\":\"%016x\",\"name\":\"%c\"", comma,
                    (unsigned)*spans, ++last_id, *spans);
        for (; spans[1] == '!' || spans[1] == '^'; spans++)
            text_append(&json, spans[1] == '!' ? ",\"status\":{\"code\":2}"
                                               : ",\"parentSpanId\":\"00000000000000aa\"");
        text_append_char(&json, '}');
        comma = ",";
    }
    text_append(&json, "]}]}]}");
    text_string(&json);
    return json.data;
}

static uint32_t count_spans(const char *spans)
{
    uint32_t count = 0;
    for (; *spans; spans++)
        count += *spans >= 'a' && *spans <= 'z';
    return count;
}

static void consume(struct fixture *f, struct node *node, const char *spans, struct probe *probe)
{
    char *json = spans_json(spans);
    fixture_consume_json(f, node, json, count_spans(spans), probe);
    free(json);
}

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

static double metric(struct fixture *f, const char *name, const char *more)
{
    struct text labels = {0};
    text_printf(&labels, "processor=\"tail_sampling\"%s", more);
    double value = metrics_value(f->process.metrics, name, text_string(&labels));
    text_deinit(&labels);
    return value;
}

static double early(struct fixture *f, const char *cause)
{
    struct text label = {0};
    text_printf(&label, ",cause=\"%s\"", cause);
    double value = metric(f, "profcol_tail_sampling_decided_early", text_string(&label));
    text_deinit(&label);
    return value;
}

/* ---- waiting ---- */

static void test_a_trace_is_decided_exactly_after_the_wait(void **state)
{
    struct fixture f;
    struct probe probe;
    (void)state;
    struct fixture_place *traces = begin(&f, 1, "decision_wait: 300ms, " ERRORS);
    consume(&f, traces->nodes[0], "aab", &probe);
    assert_int_equal(probe.settled, 1);
    assert_true(verdict_is_ok(&probe.verdict));
    fixture_advance(&f, 300 * MS - 1);
    assert_true(metric(&f, "otelcol_processor_tail_sampling_global_count_traces_sampled",
                       ",sampled=\"false\",decision=\"not_sampled\"") == 0);
    consume(&f, traces->nodes[0], "a!", NULL); /* in time */
    fixture_advance(&f, 1);
    assert_true(metric(&f, "otelcol_processor_tail_sampling_global_count_traces_sampled",
                       ",sampled=\"false\",decision=\"not_sampled\"") == 1);
    consume(&f, traces->nodes[0], "b!", NULL); /* too late */
    fixture_advance(&f, GATHER);
    expect_sent(&f, "aaa");
    fixture_deinit(&f);
}

static void test_traces_share_a_request(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = begin(&f, 1, "decision_wait: 1s, " ALL);
    consume(&f, traces->nodes[0], "abab", NULL);
    fixture_advance(&f, 20 * MS);
    consume(&f, traces->nodes[0], "cb", NULL);
    fixture_advance(&f, 500 * MS);
    consume(&f, traces->nodes[0], "d", NULL);
    fixture_advance(&f, 2 * SECOND);
    expect_sent(&f, "ababcb d");
    fixture_deinit(&f);
}

static void test_the_root_ends_the_wait(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        begin(&f, 2, "decision_wait: 30s, decision_wait_after_root_received: 2s, " ALL);
    consume(&f, traces->nodes[0], "a^b^", NULL);
    fixture_advance(&f, SECOND);
    consume(&f, traces->nodes[1], "b", NULL);
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
    struct fixture_place *traces = begin(&f, 2, "decision_wait: 1s, " ERRORS);
    consume(&f, traces->nodes[0], "ab", NULL);
    fixture_advance(&f, 300 * MS);
    consume(&f, traces->nodes[1], "ab!", NULL);
    fixture_advance(&f, SECOND);
    expect_sent(&f, "b b");
    assert_true(metric(&f, "otelcol_processor_tail_sampling_global_count_traces_sampled",
                       ",sampled=\"true\",decision=\"sampled\"") == 1);
    assert_true(metric(&f, "otelcol_processor_tail_sampling_new_trace_id_received", "") == 2);
    consume(&f, traces->nodes[1], "a!", NULL);
    consume(&f, traces->nodes[1], "b", NULL);
    fixture_advance(&f, SECOND);
    expect_sent(&f, "b");
    fixture_deinit(&f);
}

/* ---- what is remembered ---- */

static void test_late_spans_follow_until_the_trace_is_forgotten(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = begin(&f, 1, "decision_wait: 1s, num_traces: 2, " ERRORS);
    consume(&f, traces->nodes[0], "ab!", NULL);
    fixture_advance(&f, 2 * SECOND);
    expect_sent(&f, "b");
    consume(&f, traces->nodes[0], "a!b", NULL);
    fixture_advance(&f, GATHER);
    expect_sent(&f, "b");
    consume(&f, traces->nodes[0], "c", NULL);  /* a is forgotten */
    consume(&f, traces->nodes[0], "a!", NULL); /* and b */
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
        begin(&f, 1,
              "decision_wait: 1s, num_traces: 1, decision_cache: {sampled_cache_size: 2, "
              "non_sampled_cache_size: 1}, " ERRORS);
    consume(&f, traces->nodes[0], "a", NULL);
    fixture_advance(&f, 2 * SECOND);
    consume(&f, traces->nodes[0], "b!", NULL);
    fixture_advance(&f, 2 * SECOND);
    consume(&f, traces->nodes[0], "a!", NULL);
    consume(&f, traces->nodes[0], "b", NULL);
    fixture_advance(&f, 2 * SECOND);
    expect_sent(&f, "b b");
    assert_true(early(&f, "num_traces") == 0); /* decided ones do not count */
    assert_true(metric(&f, "otelcol_processor_tail_sampling_early_releases_from_cache_decision",
                       ",sampled=\"false\"") == 1);
    consume(&f, traces->nodes[0], "c", NULL); /* takes the place of a */
    fixture_advance(&f, 2 * SECOND);
    consume(&f, traces->nodes[0], "a!", NULL);
    fixture_advance(&f, 2 * SECOND);
    expect_sent(&f, "a");
    fixture_deinit(&f);
}

static void test_the_oldest_is_decided_early(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = begin(&f, 2, "decision_wait: 30s, num_traces: 2, " ERRORS);
    consume(&f, traces->nodes[0], "a!", NULL);
    consume(&f, traces->nodes[1], "a", NULL);
    consume(&f, traces->nodes[0], "b", NULL);
    fixture_advance(&f, GATHER);
    expect_sent(&f, "");
    consume(&f, traces->nodes[0], "c!", NULL);
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
        begin(&f, 2, "decision_wait: 1s, maximum_trace_size_bytes: 90, " ALL);
    consume(&f, traces->nodes[0], "ab", NULL);
    consume(&f, traces->nodes[1], "aa", NULL);
    assert_true(metric(&f, "otelcol_processor_tail_sampling_traces_dropped_too_large", "") == 1);
    fixture_advance(&f, 2 * SECOND);
    expect_sent(&f, "b");
    fixture_deinit(&f);
}

static void test_span_ingest_samples_at_once(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        begin(&f, 1, "decision_wait: 10s, sampling_strategy: span-ingest, " ERRORS);
    consume(&f, traces->nodes[0], "ab", NULL);
    fixture_advance(&f, SECOND);
    consume(&f, traces->nodes[0], "a!", NULL);
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
    struct fixture_place *traces = begin(&f, 1, "decision_wait: 60s, max_held_mib: 1, " ALL);
    assert_int_equal(consume_long(&f, traces->nodes[0], 1, 40), 40);
    assert_true(early(&f, "memory") >= 30);
    assert_true(metric(&f, "profcol_tail_sampling_held_bytes", "") <= 1 << 20);
    fixture_advance(&f, 61 * SECOND);
    assert_int_equal(items_sent(&f), 40);
    fixture_deinit(&f);
}

static void test_nothing_is_lost_if_the_next_component_refuses(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = begin(&f, 1, "decision_wait: 60s, max_held_mib: 1, " ALL);
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

static void test_a_permanent_refusal_is_counted(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = begin(&f, 1, "decision_wait: 1s, " ALL);
    f.recorder.answer = verdict_of(GRPC_INVALID_ARGUMENT, "no");
    consume(&f, traces->nodes[0], "aab", NULL);
    fixture_advance(&f, 2 * SECOND);
    assert_true(metric(&f, "profcol_tail_sampling_dropped", ",reason=\"refused\"") == 3);
    fixture_deinit(&f);
}

/* ---- the end ---- */

static void test_a_drain_decides(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces = begin(&f, 2, "decision_wait: 60s, " ERRORS);
    consume(&f, traces->nodes[0], "a!b", NULL);
    consume(&f, traces->nodes[1], "ab", NULL);
    fixture_drain(traces->nodes[0]);
    fixture_advance(&f, 0);
    consume(&f, traces->nodes[0], "c!", NULL); /* arrives during the drain */
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
        begin(&f, 1, "decision_wait: 60s, drop_pending_traces_on_shutdown: true, " ALL);
    consume(&f, traces->nodes[0], "ab", NULL);
    atomic_store(&f.process.phase, PROCESS_DRAINING);
    fixture_drain(traces->nodes[0]);
    fixture_advance(&f, SECOND);
    expect_sent(&f, "");
    assert_true(metric(&f, "profcol_tail_sampling_pending_dropped_spans", "") == 2);
    fixture_deinit(&f);
}

/* ---- profiles ---- */

#define CPU_TYPE "\"sampleType\":{\"typeStrindex\":1,\"unitStrindex\":2}"

/* A profile of CPU time with samples "a5" (5 ns, linked to trace a), "-3" (without a link). */
static char *profile_json(const char *samples)
{
    struct text json = {0};
    const char *comma = "";
    text_append(&json, "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{" CPU_TYPE
                       ",\"samples\":[");
    for (const char *at = samples; *at; comma = ",") {
        char *end;
        int link = *at == '-' ? 0 : *at - 'a' + 1;
        long value = strtol(at + 1, &end, 10);
        text_printf(&json, "%s{\"stackIndex\":1,\"linkIndex\":%d,\"values\":[%ld]}", comma, link,
                    value);
        at = end;
    }
    text_append(&json, "]}]}]}],\"dictionary\":{\"mappingTable\":[{}],\"locationTable\":[{},"
                       "{\"lines\":[{\"functionIndex\":1}]}],\"functionTable\":[{},"
                       "{\"nameStrindex\":3}],\"linkTable\":[{}");
    for (unsigned link = 'a'; link <= 'h'; link++)
        text_printf(&json, ",{\"traceId\":\"%032x\",\"spanId\":\"00000000000000bb\"}", link);
    text_append(&json, "],\"stringTable\":[\"\",\"cpu\",\"nanoseconds\",\"main.work\"],"
                       "\"attributeTable\":[{}],\"stackTable\":[{},{\"locationIndices\":[1]}]}}");
    text_string(&json);
    return json.data;
}

static uint32_t count_samples(const char *samples)
{
    uint32_t count = 0;
    for (; *samples; samples++)
        count += *samples == '-' || *samples >= 'a';
    return count;
}

static void consume_profile(struct fixture *f, struct node *node, const char *samples,
                            struct probe *probe)
{
    char *json = profile_json(samples);
    fixture_consume_json(f, node, json, count_samples(samples), probe);
    free(json);
}

/* Prints the samples of a request in the form of profile_json. */
static void print_samples(struct slice request, struct text *out)
{
    struct text all = {0};
    canonical_profiles(request, CANONICAL_TEXT, &all);
    text_string(&all);
    for (char *line = strtok(all.data, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, "sample ", 7) != 0)
            continue;
        const char *slash = strchr(line, '/');
        char name = '-';
        if (slash)
            name = (char)strtol((char[]){slash[-2], slash[-1], 0}, NULL, 16);
        text_printf(out, "%c%s", name, strrchr(line, ' ') + 1);
    }
    text_deinit(&all);
}

static void expect_profiles(struct fixture *f, const char *expected)
{
    struct text got = {0};
    for (size_t i = 0; i < f->recorder.count; i++)
        if (f->recorder.items[i].signal == SIGNAL_PROFILES)
            print_samples(slice_of(f->recorder.items[i].bytes, f->recorder.items[i].size), &got);
    assert_string_equal(text_string(&got), expected);
    text_deinit(&got);
    fixture_clear_recorded(f);
}

static void test_samples_follow_the_decision(void **state)
{
    struct fixture f;
    struct probe probe;
    (void)state;
    struct fixture_place *traces = begin(&f, 1, "decision_wait: 2s, profiles: {wait: 4s}, " ERRORS);
    struct fixture_place *profiles = place(&f, SIGNAL_PROFILES, "");
    consume(&f, traces->nodes[0], "a!b", NULL);
    consume_profile(&f, profiles->nodes[0], "a5b3b4-9", &probe);
    assert_int_equal(probe.settled, 1);
    fixture_advance(&f, 2 * SECOND - 1);
    expect_profiles(&f, "");
    fixture_advance(&f, 2 * SECOND + 1); /* c to h are not known: 4 s */
    expect_profiles(&f, "a5-7-9");
    assert_true(metric(&f, "profcol_tail_sampling_profile_samples", ",decision=\"folded\"") == 2);
    fixture_deinit(&f);
}

static void test_samples_without_links_do_not_wait(void **state)
{
    struct fixture f;
    struct probe probe;
    (void)state;
    begin(&f, 1, ALL);
    struct fixture_place *profiles = place(&f, SIGNAL_PROFILES, "");
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
        text_printf(&settings, "profiles: {wait: 2s, unknown_trace: %s}, " ALL, cases[i][0]);
        begin(&f, 1, text_string(&settings));
        struct fixture_place *profiles = place(&f, SIGNAL_PROFILES, "");
        consume_profile(&f, profiles->nodes[0], "a5b3-9", NULL);
        fixture_advance(&f, 2 * SECOND - 1);
        assert_int_equal(f.recorder.count, 0);
        fixture_advance(&f, 1);
        expect_profiles(&f, cases[i][1]);
        assert_true(metric(&f, "profcol_tail_sampling_profile_samples", ",decision=\"unknown\"") ==
                    2);
        text_deinit(&settings);
        fixture_deinit(&f);
    }
}

static void test_samples_of_other_traces_are_dropped_where_asked(void **state)
{
    struct fixture f;
    (void)state;
    struct fixture_place *traces =
        begin(&f, 1, "decision_wait: 1s, profiles: {otherwise: drop, wait: 2s}, " ERRORS);
    struct fixture_place *profiles = place(&f, SIGNAL_PROFILES, "");
    consume(&f, traces->nodes[0], "a!b", NULL);
    consume_profile(&f, profiles->nodes[0], "a5b3-9", NULL);
    fixture_advance(&f, 3 * SECOND);
    expect_profiles(&f, "a5-9");
    consume_profile(&f, profiles->nodes[0], "b3", NULL);
    fixture_advance(&f, 3 * SECOND);
    expect_profiles(&f, "");
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
            struct fixture_place *traces = begin(&f, 1, text_string(&settings));
            struct fixture_place *profiles = place(&f, SIGNAL_PROFILES, "");
            if (profile_first)
                consume_profile(&f, profiles->nodes[0], joins[i].samples, NULL);
            consume(&f, traces->nodes[0], "ab", NULL);
            fixture_advance(&f, SECOND);
            if (!profile_first)
                consume_profile(&f, profiles->nodes[0], joins[i].samples, NULL);
            fixture_advance(&f, 5 * SECOND);
            expect_sent(&f, joins[i].sent);
            text_deinit(&settings);
            fixture_deinit(&f);
        }
}

/* ---- random schedules ---- */

enum { TRACES = 6, SCHEDULES = 10000 };

static uint64_t random_state = 1;

static unsigned below(unsigned limit)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(random_state >> 33) % limit;
}

struct schedule {
    struct fixture f;
    struct fixture_place *traces, *profiles;
    bool forgets; /* num_traces is small */
    unsigned spans[TRACES];
    bool may_be_sampled[TRACES], must_be_sampled[TRACES];
    uint64_t values[TRACES + 1]; /* of samples; the last without a link */
    /* What has left: */
    unsigned sent[TRACES];
    uint64_t sent_values[TRACES + 1];
};

static void send_spans(struct schedule *s)
{
    char spans[64] = "";
    bool is_new[TRACES];
    for (int i = 0; i < TRACES; i++)
        is_new[i] = s->spans[i] == 0;
    for (unsigned left = 1 + below(5), at = 0; left > 0; left--) {
        unsigned trace = below(TRACES);
        bool failed = below(4) == 0;
        spans[at++] = (char)('a' + trace);
        if (failed)
            spans[at++] = '!';
        spans[at] = 0;
        s->spans[trace]++;
        s->may_be_sampled[trace] |= failed;
        s->must_be_sampled[trace] |= failed && is_new[trace];
    }
    consume(&s->f, s->traces->nodes[below(2)], spans, NULL);
}

static void send_samples(struct schedule *s)
{
    char samples[128] = "";
    size_t at = 0;
    for (unsigned left = 1 + below(4); left > 0; left--) {
        unsigned trace = below(TRACES + 1), value = 1 + below(1000);
        at += (size_t)snprintf(samples + at, sizeof samples - at, "%c%u",
                               trace < TRACES ? 'a' + (char)trace : '-', value);
        s->values[trace] += value;
    }
    consume_profile(&s->f, s->profiles->nodes[below(2)], samples, NULL);
}

static void step(struct schedule *s)
{
    unsigned what = below(10);
    if (what < 4)
        send_spans(s);
    else if (what < 6)
        send_samples(s);
    else if (what < 7)
        s->f.recorder.answer =
            below(2) ? verdict_ok : verdict_try_later(GRPC_UNAVAILABLE, 0, "not now");
    else
        fixture_advance(&s->f, below(2) ? below(100) * MS : below(3000) * MS);
}

static void count_sent(struct schedule *s)
{
    for (size_t i = 0; i < s->f.recorder.count; i++) {
        struct slice bytes = slice_of(s->f.recorder.items[i].bytes, s->f.recorder.items[i].size);
        struct text text = {0};
        if (s->f.recorder.items[i].signal == SIGNAL_TRACES) {
            char *json = fixture_recorded_json(&s->f, i);
            for (const char *at = json; (at = strstr(at, "\"name\":\"")); at++)
                s->sent[at[8] - 'a']++;
            free(json);
            continue;
        }
        print_samples(bytes, &text);
        for (const char *at = text_string(&text); *at;) {
            char *end;
            s->sent_values[*at == '-' ? TRACES : *at - 'a'] += strtoul(at + 1, &end, 10);
            at = end;
        }
        text_deinit(&text);
    }
}

static void check_trace(const struct schedule *s, int trace)
{
    bool sampled = s->sent[trace] > 0;
    assert_true(s->sent[trace] <= s->spans[trace]);
    if (s->forgets)
        return;
    assert_true(s->sent[trace] == 0 || s->sent[trace] == s->spans[trace]);
    assert_true(!sampled || s->may_be_sampled[trace]);
    assert_true(sampled || !s->must_be_sampled[trace]);
    bool keeps_links = sampled || s->spans[trace] == 0;
    assert_true(s->sent_values[trace] == (keeps_links ? s->values[trace] : 0));
}

static void run_schedule(void)
{
    struct schedule s = {.forgets = below(3) == 0};
    struct text settings = {0};
    uint64_t total = 0, sent = 0;
    fixture_init(&s.f, 2);
    text_printf(&settings,
                "decision_wait: %ums, num_traces: %u, decision_cache: {sampled_cache_size: %u, "
                "non_sampled_cache_size: %u}, profiles: {wait: 100s}, " ERRORS,
                1 + below(2000), s.forgets ? 1 + below(3) : 100, below(2) * 100, below(2) * 100);
    s.traces = place(&s.f, SIGNAL_TRACES, text_string(&settings));
    s.profiles = place(&s.f, SIGNAL_PROFILES, "");
    for (unsigned steps = below(30); steps > 0; steps--)
        step(&s);
    s.f.recorder.answer = verdict_ok;
    /* What is unknown waits until the end. */
    for (int i = 0; i < 2; i++) {
        fixture_drain(s.profiles->nodes[i]);
        fixture_drain(s.traces->nodes[i]);
    }
    fixture_advance(&s.f, 60 * SECOND);
    count_sent(&s);
    for (int i = 0; i < TRACES; i++)
        check_trace(&s, i);
    for (int i = 0; i <= TRACES; i++) {
        total += s.values[i];
        sent += s.sent_values[i];
    }
    assert_true(total == sent);
    text_deinit(&settings);
    fixture_deinit(&s.f);
}

static void test_random_schedules(void **state)
{
    (void)state;
    for (int i = 0; i < SCHEDULES; i++)
        run_schedule();
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
        cmocka_unit_test(test_nothing_is_lost_if_the_next_component_refuses),
        cmocka_unit_test(test_a_permanent_refusal_is_counted),
        cmocka_unit_test(test_a_drain_decides),
        cmocka_unit_test(test_pending_traces_are_dropped_where_asked),
        cmocka_unit_test(test_samples_follow_the_decision),
        cmocka_unit_test(test_samples_without_links_do_not_wait),
        cmocka_unit_test(test_unknown_traces),
        cmocka_unit_test(test_samples_of_other_traces_are_dropped_where_asked),
        cmocka_unit_test(test_policies_read_samples),
        cmocka_unit_test(test_random_schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

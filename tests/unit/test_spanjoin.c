/* The worked cases of docs/spanjoin.md, one test each, with their numbers. */
#include "core/base/log.h"
#include "core/data/normalise.h"
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/pipeline_fixture.h"
#include "tests/unit/spanjoin_requests.h"
#include "tests/unit/wire_text.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type spanjoin_processor_type;

enum { TRACE = 7, OTHER_TRACE = 8, SPAN = 42, SPAN_B = 43, SPAN_C = 44 };

struct join {
    struct fixture fixture;
    struct fixture_place *traces;
    struct fixture_place *profiles;
    struct probe probe; /* of the last request */
};

static void setup_workers(struct join *join, const char *settings, unsigned workers)
{
    char yaml[1024];
    snprintf(yaml, sizeof yaml, "processors: {spanjoin: {%s}}", settings);
    fixture_init(&join->fixture, workers);
    join->traces = fixture_place(&join->fixture, &spanjoin_processor_type, "spanjoin", yaml,
                                 "traces", SIGNAL_TRACES);
    join->profiles = fixture_place(&join->fixture, &spanjoin_processor_type, "spanjoin", yaml,
                                   "profiles", SIGNAL_PROFILES);
}

static void setup(struct join *join, const char *settings)
{
    setup_workers(join, settings, 1);
}

static bool all_are_large; /* jobs process each request */

static void send_bytes(struct join *join, struct node *node, struct slice bytes, uint32_t items)
{
    fixture_consume(&join->fixture, node, bytes, items, &join->probe);
    if (all_are_large || bytes.size >= (size_t)1 << 20)
        fixture_advance(&join->fixture, 0); /* the jobs are done */
}

static void send_to(struct join *join, struct request *request, unsigned worker)
{
    struct fixture_place *place = request->traces ? join->traces : join->profiles;
    send_bytes(join, place->nodes[worker], request_encode(request), request->items);
    request_free(request);
}

/* Sends a request, and expects success at once. */
static void send_request(struct join *join, struct request *request)
{
    send_to(join, request, 0);
    assert_int_equal(join->probe.settled, 1);
    assert_int_equal(join->probe.verdict.code, GRPC_OK);
}

static void send_span(struct join *join, uint64_t trace, uint64_t span, const char *name)
{
    struct request request;
    traces_begin(&request, "shop");
    SpanMessage *message = traces_span(&request, trace, span, WALL, WALL + SECOND, name);
    span_string(&request, message, "http.route", "/pay");
    send_request(join, &request);
}

/* One sample of type cpu/nanoseconds with a Link. */
static void begin_linked(struct request *request, uint64_t trace, uint64_t span)
{
    profiles_begin(request);
    profiles_profile(request, "cpu", "nanoseconds");
    SampleMessage *sample = profiles_sample(request, 1);
    sample_link(request, sample, trace, span);
    sample_value(request, sample, 30);
}

static void send_sample(struct join *join, uint64_t trace, uint64_t span)
{
    struct request request;
    begin_linked(&request, trace, span);
    send_request(join, &request);
}

static void wait_s(struct join *join, uint64_t seconds)
{
    fixture_advance(&join->fixture, seconds * SECOND);
}

/* Returns the n-th output of a signal. */
static const struct recorded *nth(struct join *join, enum signal signal, size_t n)
{
    const struct recorder *recorder = &join->fixture.recorder;
    for (size_t i = 0; i < recorder->count; i++)
        if (recorder->items[i].signal == signal && n-- == 0)
            return &recorder->items[i];
    return NULL;
}

static bool came_out(struct join *join, enum signal signal, size_t n)
{
    return nth(join, signal, n) != NULL;
}

static void read_profiles(struct join *join, size_t n, struct request *out)
{
    const struct recorded *recorded = nth(join, SIGNAL_PROFILES, n);
    assert_non_null(recorded);
    request_read_profiles(out, slice_of(recorded->bytes, recorded->size));
}

static void read_traces(struct join *join, size_t n, struct request *out)
{
    const struct recorded *recorded = nth(join, SIGNAL_TRACES, n);
    assert_non_null(recorded);
    request_read_traces(out, slice_of(recorded->bytes, recorded->size));
}

#define METRIC(join, name) metric(join, name, NULL)
static double metric(struct join *join, const char *name, const char *reason)
{
    char full[96], labels[96];
    snprintf(full, sizeof full, "profcol_spanjoin_%s", name);
    if (reason)
        snprintf(labels, sizeof labels, "spanjoin=\"spanjoin\",reason=\"%s\"", reason);
    else
        snprintf(labels, sizeof labels, "spanjoin=\"spanjoin\"");
    return metrics_value(join->fixture.process.metrics, full, labels);
}

static void expect_link(const struct request *request, size_t profile, size_t i, uint64_t trace,
                        uint64_t span)
{
    uint64_t got_trace, got_span;
    sample_read_link(request, request_sample(request, profile, i), &got_trace, &got_span);
    assert_int_equal(got_trace, trace);
    assert_int_equal(got_span, span);
}

#define EXPECT_TEXT(value, expected)                                                               \
    do {                                                                                           \
        const char *text_ = (value);                                                               \
        assert_non_null(text_);                                                                    \
        assert_string_equal(text_, expected);                                                      \
    } while (0)

static void expect_joined(const struct request *request, size_t profile, size_t i, uint64_t trace,
                          uint64_t span, const char *name)
{
    const SampleMessage *sample = request_sample(request, profile, i);
    expect_link(request, profile, i, trace, span);
    EXPECT_TEXT(sample_attribute(request, sample, "span_name"), name);
    EXPECT_TEXT(sample_attribute(request, sample, "span_kind"), "server");
    EXPECT_TEXT(sample_attribute(request, sample, "span_status"), "ok");
}

static void expect_unjoined(const struct request *request, size_t profile, size_t i)
{
    assert_null(sample_attribute(request, request_sample(request, profile, i), "span_name"));
}

/* ---- span first, sample first ---- */

static void test_span_first(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    setup(&join, "");
    send_span(&join, TRACE, SPAN, "GET /pay");
    wait_s(&join, 8);
    send_sample(&join, TRACE, SPAN);
    read_profiles(&join, 0, &out);
    expect_joined(&out, 0, 0, TRACE, SPAN, "GET /pay");
    EXPECT_TEXT(sample_attribute(&out, request_sample(&out, 0, 0), "http.route"), "/pay");
    assert_int_equal(request_sample(&out, 0, 0)->values[0], 30);
    assert_int_equal(request_sample(&out, 0, 0)->stack_index, 1);
    assert_int_equal(METRIC(&join, "samples_joined"), 1);
    assert_int_equal(METRIC(&join, "entries"), 1);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void test_sample_first_waits_for_its_span(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    setup(&join, "samples: {wait: 10s}");
    send_sample(&join, TRACE, SPAN); /* answered at once */
    assert_false(came_out(&join, SIGNAL_PROFILES, 0));
    assert_int_equal(METRIC(&join, "held_requests"), 1);
    assert_true(METRIC(&join, "held_bytes") > 0);
    wait_s(&join, 8);
    assert_false(came_out(&join, SIGNAL_PROFILES, 0));
    send_span(&join, TRACE, SPAN, "GET /pay");
    wait_s(&join, 0);
    read_profiles(&join, 0, &out);
    expect_joined(&out, 0, 0, TRACE, SPAN, "GET /pay");
    assert_int_equal(nth(&join, SIGNAL_PROFILES, 0)->at_ns, FIXTURE_START_NS + 8 * SECOND);
    assert_int_equal(METRIC(&join, "held_requests"), 0);
    assert_int_equal(METRIC(&join, "held_bytes"), 0);
    assert_int_equal(METRIC(&join, "samples_joined"), 1);
    request_free(&out);
    /* The span was sent on at once with its totals. */
    read_traces(&join, 0, &out);
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "pyroscope.profile.id"), span_hex(SPAN));
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "profile.cpu_ns"), "30");
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "profile.samples"), "1");
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "http.route"), "/pay");
    assert_int_equal(METRIC(&join, "spans_enriched"), 1);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void test_sample_leaves_before_its_span(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    setup(&join, "samples: {wait: 5s}");
    send_sample(&join, TRACE, SPAN);
    wait_s(&join, 4);
    assert_false(came_out(&join, SIGNAL_PROFILES, 0));
    wait_s(&join, 1);
    read_profiles(&join, 0, &out);
    expect_unjoined(&out, 0, 0);
    expect_link(&out, 0, 0, TRACE, SPAN);
    assert_int_equal(metric(&join, "samples_unjoined", "not_found"), 1);
    request_free(&out);
    wait_s(&join, 3);
    send_span(&join, TRACE, SPAN, "GET /pay");
    wait_s(&join, 20);
    assert_false(came_out(&join, SIGNAL_PROFILES, 1));
    read_traces(&join, 0, &out);
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "profile.samples"), "1");
    assert_int_equal(metric(&join, "samples_unjoined", "span_open"), 1);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void test_window_is_over(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    setup(&join, "window: 120s");
    send_span(&join, TRACE, SPAN, "GET /pay");
    wait_s(&join, 121);
    send_sample(&join, TRACE, SPAN);
    read_profiles(&join, 0, &out); /* it does not wait for spans that had arrived already */
    expect_unjoined(&out, 0, 0);
    assert_int_equal(metric(&join, "samples_unjoined", "expired"), 1);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* ---- the span of a sample ---- */

static void test_same_span_id_in_two_traces(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    setup(&join, "");
    send_span(&join, TRACE, SPAN, "first");
    send_span(&join, OTHER_TRACE, SPAN, "second");
    send_sample(&join, TRACE, SPAN);
    send_sample(&join, OTHER_TRACE, SPAN);
    read_profiles(&join, 0, &out);
    expect_joined(&out, 0, 0, TRACE, SPAN, "first");
    request_free(&out);
    read_profiles(&join, 1, &out);
    expect_joined(&out, 0, 0, OTHER_TRACE, SPAN, "second");
    assert_int_equal(METRIC(&join, "ambiguous"), 0);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void send_span_at(struct join *join, uint64_t trace, uint64_t start_ns, const char *name)
{
    struct request request;
    traces_begin(&request, "shop");
    traces_span(&request, trace, SPAN, start_ns, start_ns + SECOND, name);
    send_request(join, &request);
}

static void send_timed(struct join *join, uint64_t time_ns)
{
    struct request request;
    profiles_begin(&request);
    profiles_profile(&request, "samples", "count");
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, 0, SPAN);
    sample_time(&request, sample, time_ns);
    send_request(join, &request);
}

static void test_span_id_alone_goes_by_time(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    setup(&join, "");
    send_span_at(&join, TRACE, WALL, "covers");
    wait_s(&join, 1);
    send_span_at(&join, OTHER_TRACE, WALL + 60 * SECOND, "newest");
    send_timed(&join, WALL + 2 * SECOND);   /* within the clock skew of the first */
    send_timed(&join, WALL + 300 * SECOND); /* in neither */
    read_profiles(&join, 0, &out);
    expect_joined(&out, 0, 0, TRACE, SPAN, "covers");
    request_free(&out);
    read_profiles(&join, 1, &out);
    expect_joined(&out, 0, 0, OTHER_TRACE, SPAN, "newest");
    request_free(&out);
    assert_int_equal(METRIC(&join, "ambiguous"), 2);
    fixture_deinit(&join.fixture);
}

static void test_time_never_vetoes(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    setup(&join, "");
    send_span(&join, TRACE, SPAN, "long over");
    profiles_begin(&request);
    ProfileMessage *profile = profiles_profile(&request, "cpu", "nanoseconds");
    profile->time_unix_nano = WALL + 46 * SECOND; /* 45 s after its end */
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, TRACE, SPAN);
    sample_value(&request, sample, 1);
    send_request(&join, &request);
    read_profiles(&join, 0, &out);
    expect_joined(&out, 0, 0, TRACE, SPAN, "long over");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void test_link_without_trace_takes_the_spans(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    setup(&join, "");
    send_span(&join, TRACE, SPAN, "a span");
    send_sample(&join, 0, SPAN);
    read_profiles(&join, 0, &out);
    expect_joined(&out, 0, 0, TRACE, SPAN, "a span");
    assert_int_equal(METRIC(&join, "ambiguous"), 0);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* OTLP requires both ids. Such a span passes, and samples do not wait for it. */
static void test_spans_without_an_id_are_not_joined(void **state)
{
    static const uint64_t ids[][2] = {{0, SPAN}, {TRACE, 0}}; /* trace, span */
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct join join;
        struct request out;
        setup(&join, "samples: {wait: 5s}");
        send_sample(&join, 0, SPAN);
        send_span(&join, ids[i][0], ids[i][1], "a span");
        send_sample(&join, 0, SPAN);
        read_traces(&join, 0, &out);
        assert_null(span_attribute(request_span(&out, 0), "profile.samples"));
        request_free(&out);
        wait_s(&join, 5);
        for (size_t n = 0; n < 2; n++) {
            read_profiles(&join, n, &out);
            expect_unjoined(&out, 0, 0);
            request_free(&out);
        }
        assert_int_equal(metric(&join, "samples_unjoined", "not_found"), 2);
        fixture_deinit(&join.fixture);
    }
}

static void test_one_profile_with_three_links(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    setup(&join, "samples: {wait: 10s}");
    send_span(&join, TRACE, SPAN, "a");
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    for (uint64_t span = SPAN; span <= SPAN_C; span++) {
        SampleMessage *sample = profiles_sample(&request, 1);
        sample_link(&request, sample, TRACE, span);
        sample_value(&request, sample, 10);
    }
    send_request(&join, &request);
    wait_s(&join, 3);
    send_span(&join, TRACE, SPAN_B, "b");
    wait_s(&join, 6);
    assert_false(came_out(&join, SIGNAL_PROFILES, 0));
    wait_s(&join, 1);
    read_profiles(&join, 0, &out);
    expect_joined(&out, 0, 0, TRACE, SPAN, "a");
    expect_joined(&out, 0, 1, TRACE, SPAN_B, "b");
    expect_unjoined(&out, 0, 2);
    expect_link(&out, 0, 2, TRACE, SPAN_C);
    assert_null(request_sample(&out, 0, 3));
    assert_int_equal(METRIC(&join, "samples_joined"), 2);
    assert_int_equal(metric(&join, "samples_unjoined", "not_found"), 1);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* ---- holding ---- */

static void test_downstream_refuses_for_a_while(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    setup(&join, "samples: {wait: 10s}");
    send_sample(&join, TRACE, SPAN);
    join.fixture.recorder.answer = verdict_try_later(GRPC_UNAVAILABLE, -1, "busy");
    wait_s(&join, 10);
    assert_int_equal(join.fixture.recorder.refused, 1);
    assert_int_equal(METRIC(&join, "held_requests"), 1);
    /* 100 ms, 200, 400, ... */
    fixture_advance(&join.fixture, 100000000);
    assert_int_equal(join.fixture.recorder.refused, 2);
    fixture_advance(&join.fixture, 200000000);
    assert_int_equal(join.fixture.recorder.refused, 3);
    wait_s(&join, 60);
    assert_in_range(join.fixture.recorder.refused, 12, 20);
    assert_int_equal(metric(&join, "samples_unjoined", "not_found"), 0);
    join.fixture.recorder.answer = verdict_ok;
    wait_s(&join, 5);
    read_profiles(&join, 0, &out);
    assert_false(came_out(&join, SIGNAL_PROFILES, 1));
    assert_int_equal(request_sample(&out, 0, 0)->values[0], 30);
    assert_int_equal(metric(&join, "samples_unjoined", "not_found"), 1);
    assert_int_equal(METRIC(&join, "held_bytes"), 0);
    wait_s(&join, 60);
    assert_false(came_out(&join, SIGNAL_PROFILES, 1));
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void test_downstream_refuses_for_good(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "samples: {wait: 10s}");
    send_sample(&join, TRACE, SPAN);
    join.fixture.recorder.answer = verdict_of(GRPC_INVALID_ARGUMENT, "no");
    wait_s(&join, 60);
    assert_int_equal(join.fixture.recorder.refused, 1);
    assert_int_equal(metric(&join, "dropped", "refused"), 1);
    assert_int_equal(METRIC(&join, "held_bytes"), 0);
    fixture_deinit(&join.fixture);
}

static void test_direct_path_leaves_the_answer_to_downstream(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    setup(&join, "");
    send_span(&join, TRACE, SPAN, "a span");
    join.fixture.recorder.hold = true;
    begin_linked(&request, TRACE, SPAN);
    send_to(&join, &request, 0);
    assert_int_equal(join.probe.settled, 0);
    struct verdict busy = verdict_try_later(GRPC_UNAVAILABLE, -1, "busy");
    fixture_release(&join.fixture, &busy);
    assert_int_equal(join.probe.settled, 1);
    assert_int_equal(join.probe.verdict.code, GRPC_UNAVAILABLE);
    fixture_deinit(&join.fixture);
}

static void send_large(struct join *join, uint64_t span, uint32_t samples)
{
    struct request request;
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    static char text[100001];
    memset(text, 'x', samples);
    text[samples] = 0;
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, TRACE, span);
    sample_value(&request, sample, 1);
    sample_string(&request, sample, "ballast", text);
    send_to(join, &request, 0);
}

static void test_memory_bound(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "max_held_mib: 1");
    join.fixture.recorder.answer = verdict_try_later(GRPC_UNAVAILABLE, -1, "busy");
    unsigned admitted = 0;
    for (uint64_t i = 0; i < 20; i++) {
        send_large(&join, 100 + i, 100000);
        assert_int_equal(join.probe.settled, 1);
        assert_true(METRIC(&join, "held_bytes") <= 1 << 20);
        if (join.probe.verdict.code == GRPC_OK) {
            admitted++;
            continue;
        }
        assert_int_equal(join.probe.verdict.code, GRPC_UNAVAILABLE);
        assert_true(verdict_is_retryable(&join.probe.verdict));
        char text[sizeof join.probe.verdict.text];
        snprintf(text, sizeof text, "spanjoin: max_held_mib is reached, %.2f MiB are held",
                 METRIC(&join, "held_bytes") / (1 << 20));
        assert_string_equal(join.probe.verdict.text, text);
    }
    assert_in_range(admitted, 8, 10);
    /* Downstream accepts again: acknowledged requests are sent on, the oldest early to make
     * room. */
    join.fixture.recorder.answer = verdict_ok;
    send_large(&join, 200, 100000);
    assert_int_equal(join.probe.verdict.code,
                     GRPC_UNAVAILABLE); /* sent-on requests wait for their next offer */
    wait_s(&join, 5);
    /* A quarter of the limit, rounded up: more would not have helped. */
    assert_int_equal(join.fixture.recorder.count, 3);
    assert_int_equal(metric(&join, "samples_unjoined", "overflow"), 3);
    wait_s(&join, 10);
    assert_int_equal(join.fixture.recorder.count, admitted);
    fixture_deinit(&join.fixture);
}

static void test_memory_bound_makes_the_oldest_leave(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "max_held_mib: 1");
    for (uint64_t i = 0; i < 20; i++) {
        send_large(&join, 100 + i, 100000);
        assert_int_equal(join.probe.verdict.code, GRPC_OK);
        assert_true(METRIC(&join, "held_bytes") <= 1 << 20);
    }
    assert_in_range(join.fixture.recorder.count, 10, 12);
    assert_int_equal(metric(&join, "samples_unjoined", "overflow"), join.fixture.recorder.count);
    wait_s(&join, 10);
    assert_int_equal(join.fixture.recorder.count, 20);
    fixture_deinit(&join.fixture);
}

/* ---- sample types that do not come ---- */

/* Returns how many of the last warnings are about the type. */
static unsigned told_of(const char *type)
{
    struct log_record records[LOG_RECENT_MAX];
    char field[64];
    unsigned told = 0;
    size_t count = log_recent(records);
    snprintf(field, sizeof field, "sample_type: %s", type);
    for (size_t i = 0; i < count; i++)
        told += strstr(records[i].message, field) != NULL;
    return told;
}

/* Of types that profilers are known to send nothing is said: they may be rare. */
static void test_unknown_type_that_does_not_come(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    setup(&join, "spans: {attributes: [{key: a, from: 'samples.sum[\"moons\"]'}, "
                 "{key: b, from: 'samples.count[\"requests\"]'}, "
                 "{key: c, from: 'samples.sum[\"exceptions\"]'}]}");
    wait_s(&join, 200);
    profiles_begin(&request);
    profiles_profile(&request, "requests", "count");
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, TRACE, SPAN);
    sample_value(&request, sample, 5);
    send_request(&join, &request);
    assert_int_equal(told_of("moons"), 0);
    wait_s(&join, 400);
    assert_int_equal(told_of("moons"), 1);
    assert_int_equal(told_of("requests") + told_of("exceptions"), 0);
    fixture_deinit(&join.fixture);
}

/* ---- many held requests ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MANY = 2000 };
#else
enum { MANY = 30000 };
#endif

/* The largest number of requests offered downstream in one turn of the loop. */
struct turns {
    const struct worker *worker;
    uint64_t turn;
    unsigned in_turn;
    unsigned most;
};

static struct verdict count_in_turn(void *context, const struct recorded *offered)
{
    struct turns *turns = context;
    (void)offered;
    if (turns->turn != turns->worker->turn)
        turns->in_turn = 0;
    turns->turn = turns->worker->turn;
    turns->in_turn++;
    if (turns->in_turn > turns->most)
        turns->most = turns->in_turn;
    return verdict_ok;
}

static void hold_many(struct join *join, struct turns *turns, bool one_id)
{
    setup(join, "max_held_mib: 64");
    *turns = (struct turns){.worker = &join->fixture.workers[0]};
    join->fixture.recorder.decide = count_in_turn;
    join->fixture.recorder.context = turns;
    for (uint64_t i = 0; i < MANY; i++)
        send_sample(join, TRACE, one_id ? SPAN : 1000 + i);
    assert_int_equal(METRIC(join, "held_requests"), MANY);
}

static void end_many(struct join *join, const struct turns *turns)
{
    assert_int_equal(join->fixture.recorder.count, MANY);
    assert_in_range(turns->most, 1, PACE_PER_TURN);
    assert_int_equal(METRIC(join, "held_requests"), 0);
    assert_int_equal(METRIC(join, "held_bytes"), 0);
    fixture_deinit(&join->fixture);
}

static void test_many_leave_a_few_at_a_time(void **state)
{
    (void)state;
    struct join join;
    struct turns turns;
    for (int one_id = 0; one_id < 2; one_id++) {
        hold_many(&join, &turns, one_id);
        wait_s(&join, 10); /* the waits of all end at the same time */
        end_many(&join, &turns);

        hold_many(&join, &turns, one_id);
        fixture_drain(join.profiles->nodes[0]);
        wait_s(&join, 1);
        end_many(&join, &turns);
    }
    hold_many(&join, &turns, true);
    send_span(&join, TRACE, SPAN, "a span"); /* nothing is missing for any of them */
    fixture_advance(&join.fixture, 1);
    assert_int_equal(METRIC(&join, "samples_joined"), MANY);
    join.fixture.recorder.count--; /* the span itself */
    free(join.fixture.recorder.items[0].bytes);
    memmove(join.fixture.recorder.items, join.fixture.recorder.items + 1,
            join.fixture.recorder.count * sizeof *join.fixture.recorder.items);
    end_many(&join, &turns);
}

/* A large request arrives: as many of the oldest requests as necessary are sent on, a few at a
 * time, and it is admitted at once. */
static void test_many_make_room_for_one(void **state)
{
    (void)state;
    struct join join;
    struct turns turns;
    setup(&join, "max_held_mib: 8");
    turns = (struct turns){.worker = &join.fixture.workers[0]};
    join.fixture.recorder.decide = count_in_turn;
    join.fixture.recorder.context = &turns;
    uint64_t sent = 0;
    while (METRIC(&join, "samples_unjoined") == 0 && join.fixture.recorder.count == 0)
        send_sample(&join, TRACE, 1000 + sent++); /* until the first is sent on early */
    fixture_clear_recorded(&join.fixture);
    fixture_advance(&join.fixture, 1);
    turns.most = 0;
    send_large(&join, SPAN, 100000);
    send_large(&join, SPAN_B, 100000);
    assert_int_equal(join.probe.verdict.code, GRPC_OK);
    assert_true(METRIC(&join, "held_bytes") <= 10 << 20);
    fixture_advance(&join.fixture, 1);
    assert_true(METRIC(&join, "held_bytes") <= 8 << 20);
    assert_true(join.fixture.recorder.count > (size_t)5 * PACE_PER_TURN);
    assert_in_range(turns.most, 1, PACE_PER_TURN);
    fixture_deinit(&join.fixture);
}

static void test_index_full(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    setup(&join, "max_spans: 100, samples: {wait: 0s}");
    for (uint64_t span = 1; span <= 101; span++)
        send_span(&join, TRACE, span, "a span");
    assert_int_equal(METRIC(&join, "entries"), 100);
    assert_int_equal(metric(&join, "evicted", "full"), 1);
    send_sample(&join, TRACE, 2);
    send_sample(&join, TRACE, 101);
    read_profiles(&join, 0, &out);
    expect_joined(&out, 0, 0, TRACE, 2, "a span");
    request_free(&out);
    read_profiles(&join, 1, &out);
    expect_joined(&out, 0, 0, TRACE, 101, "a span");
    request_free(&out);
    send_sample(&join, TRACE, 1);
    read_profiles(&join, 2, &out);
    expect_unjoined(&out, 0, 0);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* ---- sources ---- */

/* Sends samples with both ids, and with only the span id, of this service. */
static void send_samples_of(struct join *join, uint64_t peer, const char *service)
{
    struct request request;
    join->fixture.peer = peer;
    begin_linked(&request, TRACE, SPAN);
    profiles_resource_string(&request, "service.name", service);
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, 0, SPAN);
    sample_value(&request, sample, 30);
    send_request(join, &request);
}

static void send_span_of(struct join *join, uint64_t peer, const char *service, uint64_t trace,
                         const char *name)
{
    struct request request;
    join->fixture.peer = peer;
    traces_begin(&request, service);
    traces_span(&request, trace, SPAN, WALL, WALL + SECOND, name);
    send_request(join, &request);
}

/* Checks the spans of the two samples of the n-th profile; NULL: not joined. */
static void expect_names(struct join *join, size_t n, const char *both_ids, const char *span_id)
{
    struct request out;
    const char *const names[] = {both_ids, span_id};
    read_profiles(join, n, &out);
    for (size_t i = 0; i < 2; i++) {
        const char *name = sample_attribute(&out, request_sample(&out, 0, i), "span_name");
        if (names[i])
            EXPECT_TEXT(name, names[i]);
        else
            assert_null(name);
    }
    request_free(&out);
}

static void test_a_sample_prefers_the_span_of_its_own_source(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "samples: {wait: 0s}");
    send_span_of(&join, 1, "shop", TRACE, "of the shop");
    wait_s(&join, 1);
    send_span_of(&join, 1, "bank", TRACE, "of the bank");
    wait_s(&join, 1);
    send_span_of(&join, 2, "shop", TRACE, "of a stranger");
    send_samples_of(&join, 1, "shop");
    expect_names(&join, 0, "of the shop", "of the shop");
    send_samples_of(&join, 2, "shop");
    expect_names(&join, 1, "of a stranger", "of a stranger");
    send_samples_of(
        &join, 1, "profiler"); /* of the same peer: the first with both ids, otherwise the newest */
    expect_names(&join, 2, "of the shop", "of the bank");
    send_samples_of(&join, 3, "profiler"); /* none of them is nearer */
    expect_names(&join, 3, "of the shop", "of a stranger");
    assert_int_equal(METRIC(&join, "entries"), 3);
    fixture_deinit(&join.fixture);
}

static void test_the_first_writer_of_a_span_wins(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "samples: {wait: 0s}");
    send_span_of(&join, 1, "shop", TRACE, "first");
    send_span_of(&join, 1, "shop", TRACE, "second");
    assert_int_equal(metric(&join, "evicted", "conflict"), 1);
    send_samples_of(&join, 1, "shop");
    expect_names(&join, 0, "first", "first");
    wait_s(&join, 121);
    send_span_of(&join, 1, "shop", TRACE, "second"); /* the window of the first is over */
    send_samples_of(&join, 1, "shop");
    expect_names(&join, 1, "second", "second");
    fixture_deinit(&join.fixture);
}

static void test_eight_spans_with_a_foreign_span_id(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "samples: {wait: 0s}");
    send_span_of(&join, 1, "shop", TRACE, "good");
    for (uint64_t trace = 100; trace < 120; trace++)
        send_span_of(&join, 2, "shop", trace, "bad");
    send_samples_of(&join, 1, "shop");
    expect_names(&join, 0, "good", "good");
    assert_int_equal(METRIC(&join, "entries"), 8);
    fixture_deinit(&join.fixture);
}

static void test_tenants_are_joined_each_by_itself(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "samples: {wait: 0s}, "
                 "source: {tenant_from: ['resource.attributes[\"service.name\"]']}");
    send_span_of(&join, 1, "mine", TRACE, "of mine");
    send_samples_of(&join, 1, "other");
    expect_names(&join, 0, NULL, NULL);
    send_samples_of(&join, 2, "mine"); /* whatever its address */
    expect_names(&join, 1, "of mine", "of mine");
    send_span_of(&join, 1, "other", TRACE, "of other");
    send_samples_of(&join, 1, "other");
    expect_names(&join, 2, "of other", "of other");
    fixture_deinit(&join.fixture);
}

static void set_number(KeyValueMessage *attribute, int kind, int64_t number)
{
    attribute->value->value_case = (Opentelemetry__Proto__Common__V1__AnyValue__ValueCase)kind;
    if (kind == OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BOOL_VALUE)
        attribute->value->bool_value = number != 0;
    else if (kind == OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_DOUBLE_VALUE)
        attribute->value->double_value = (double)number / 2;
    else
        attribute->value->int_value = number;
}

static void send_samples_of_number(struct join *join, int kind, int64_t tenant)
{
    struct request request;
    begin_linked(&request, TRACE, SPAN);
    profiles_resource_string(&request, "tenant", "");
    set_number(request.profiles->resource_profiles[0]->resource->attributes[0], kind, tenant);
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, 0, SPAN);
    sample_value(&request, sample, 30);
    send_request(join, &request);
}

/* A tenant that is a number or a truth value is the one of the same text. */
static void test_tenants_that_are_no_texts(void **state)
{
    (void)state;
    static const struct {
        int kind;
        int64_t mine, other;
        const char *text; /* of mine */
    } cases[] = {
        {OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE, -7, 8, "-7"},
        {OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BOOL_VALUE, 1, 0, "true"},
        {OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_DOUBLE_VALUE, 3, 5, "1.5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct join join;
        struct request request;
        setup(&join, "samples: {wait: 0s}, "
                     "source: {tenant_from: ['resource.attributes[\"tenant\"]']}");
        traces_begin(&request, "shop");
        traces_resource_string(&request, "tenant", cases[i].text);
        traces_span(&request, TRACE, SPAN, WALL, WALL + SECOND, "of mine");
        send_request(&join, &request);
        send_samples_of_number(&join, cases[i].kind, cases[i].other);
        expect_names(&join, 0, NULL, NULL);
        send_samples_of_number(&join, cases[i].kind, cases[i].mine);
        expect_names(&join, 1, "of mine", "of mine");
        fixture_deinit(&join.fixture);
    }
}

/* A span gets the totals of earlier samples from another source: a profiler of the whole host. */
static void test_samples_of_a_profiler_come_first(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    setup(&join, "");
    send_samples_of(&join, 2, "profiler");
    assert_false(came_out(&join, SIGNAL_PROFILES, 0));
    send_span_of(&join, 1, "shop", TRACE, "good");
    wait_s(&join, 0);
    expect_names(&join, 0, "good", "good");
    read_traces(&join, 0, &out);
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "profile.samples"), "2");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* ---- counting ---- */

static void send_identified(struct join *join, uint64_t id)
{
    struct request request;
    begin_linked(&request, TRACE, SPAN);
    profile_id(&request, request_profile(&request, 0), id);
    send_request(join, &request);
}

static void test_delivered_twice(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    setup(&join, "samples: {wait: 0s}");
    send_identified(&join, 1);
    send_identified(&join, 1);
    send_identified(&join, 2);
    send_span(&join, TRACE, SPAN, "a span");
    send_span(&join, TRACE, SPAN, "a span");
    for (size_t i = 0; i < 2; i++) {
        read_traces(&join, i, &out);
        EXPECT_TEXT(span_attribute(request_span(&out, 0), "profile.samples"), "2");
        EXPECT_TEXT(span_attribute(request_span(&out, 0), "profile.cpu_ns"), "60");
        request_free(&out);
    }
    assert_int_equal(METRIC(&join, "entries"), 1); /* without profile ids */
    send_identified(&join, 2);
    assert_int_equal(METRIC(&join, "samples_joined"), 1);
    fixture_deinit(&join.fixture);
}

/* Of a profile without an id. time_ns: 0: none. */
static void send_unidentified(struct join *join, uint64_t time_ns)
{
    struct request request;
    begin_linked(&request, TRACE, SPAN);
    request_profile(&request, 0)->time_unix_nano = time_ns;
    send_request(join, &request);
}

/* A client that was refused sends the same bytes again. */
static void test_sent_again_without_profile_id(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    setup(&join, "samples: {wait: 0s}");
    send_unidentified(&join, WALL);
    send_unidentified(&join, WALL);
    send_unidentified(&join, WALL + 1);
    send_unidentified(&join, 0); /* these cannot be told apart */
    send_unidentified(&join, 0);
    send_span(&join, TRACE, SPAN, "a span");
    read_traces(&join, 0, &out);
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "profile.samples"), "4");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* Sends a request to the next component, which answers like this. */
static void send_answered(struct join *join, struct request *request, struct verdict answer)
{
    struct fixture_place *place = request->traces ? join->traces : join->profiles;
    struct probe probe;
    join->fixture.recorder.answer = answer;
    fixture_consume(&join->fixture, place->nodes[0], request_encode(request), request->items,
                    &probe);
    fixture_advance(&join->fixture, 0);
    assert_int_equal(probe.verdict.code, answer.code);
    request_free(request);
}

/* Metrics count attempts, as those of all processors do (docs/spanjoin.md, Metrics). A request that
 * waits is answered before, so its client does not send it again. */
static void test_metrics_count_each_attempt(void **state)
{
    static const char *const waits[] = {"samples: {wait: 0s}", "samples: {wait: 5s}"};
    (void)state;
    for (unsigned waits_first = 0; waits_first < 2; waits_first++) {
        struct join join;
        struct request request;
        struct verdict busy = verdict_try_later(GRPC_UNAVAILABLE, -1, "busy");
        setup(&join, waits[waits_first]);
        begin_linked(&request, TRACE, SPAN);
        send_answered(&join, &request, waits_first ? verdict_ok : busy);
        if (!waits_first) {
            begin_linked(&request, TRACE, SPAN);
            send_answered(&join, &request, verdict_ok);
        }
        join.fixture.recorder.answer = busy;
        wait_s(&join, 8);
        join.fixture.recorder.answer = verdict_ok;
        wait_s(&join, 60);
        assert_int_equal(metric(&join, "samples_unjoined", "not_found"), waits_first ? 1 : 2);
        send_span(&join, TRACE, SPAN, "a span");
        assert_int_equal(metric(&join, "samples_unjoined", "span_open"), waits_first ? 1 : 2);
        fixture_deinit(&join.fixture);
    }
}

static void test_go_counts_cpu_once(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    setup(&join,
          "samples: {wait: 0s}, spans: {attributes: [{key: cpu, from: 'samples.sum[\"cpu\"]'}, "
          "{key: n, from: samples.count}, {key: hits, from: 'samples.sum[\"samples\"]'}]}");
    profiles_begin(&request);
    ProfileMessage *count = profiles_profile(&request, "samples", "count");
    profile_period(&request, count, "cpu", "nanoseconds", 10000000);
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, TRACE, SPAN);
    sample_value(&request, sample, 3);
    ProfileMessage *cpu = profiles_profile(&request, "cpu", "nanoseconds");
    profile_period(&request, cpu, "cpu", "nanoseconds", 10000000);
    sample = profiles_sample(&request, 1);
    sample_link(&request, sample, TRACE, SPAN);
    sample_value(&request, sample, 30000000);
    send_request(&join, &request);
    /* The eBPF profiler sends only counts, as timestamps. */
    profiles_begin(&request);
    count = profiles_profile(&request, "samples", "count");
    profile_period(&request, count, "cpu", "nanoseconds", 50000000);
    sample = profiles_sample(&request, 1);
    sample_link(&request, sample, TRACE, SPAN_B);
    sample_time(&request, sample, WALL);
    sample_time(&request, sample, WALL + 1);
    send_request(&join, &request);
    send_span(&join, TRACE, SPAN, "go");
    send_span(&join, TRACE, SPAN_B, "ebpf");
    read_traces(&join, 0, &out);
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "cpu"), "30000000");
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "n"), "3");
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "hits"), "3");
    request_free(&out);
    read_traces(&join, 1, &out);
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "cpu"), "100000000");
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "n"), "2");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* Profilers name CPU time differently. An upload may measure it more than once. */
static void test_cpu_of_every_profiler(void **state)
{
    static const struct {
        const char *types[2][4]; /* type, unit, period type, period unit */
        int64_t values[2];
        const char *cpu, *samples;
    } uploads[] = {
        {{{"itimer", "ns", "itimer", "ns"}}, {7}, "7", "1"},
        {{{"ctimer", "ns", "ctimer", "ns"}}, {7}, "7", "1"},
        {{{"cpu", "ms", "cpu", "ms"}}, {7}, "7000000", "1"},
        {{{"cpu", "count", "cpu", "ns"}}, {7}, "70", "7"},
        {{{"cpu", "s", "", ""}}, {INT64_MAX / 2}, "9223372036854775807", "1"},
        {{{"cpu", "cores", "", ""}}, {7}, NULL, "1"},
        {{{"cpu", "ns", "cpu", "ns"}, {"itimer", "ns", "cpu", "ns"}}, {7, 8}, "7", "1"},
        {{{"itimer", "ns", "cpu", "ns"}, {"cpu", "ns", "cpu", "ns"}}, {8, 7}, "7", "1"},
        {{{"samples", "count", "", ""}, {"cpu", "ns", "cpu", "ns"}}, {3, 7}, "7", "3"},
        {{{"samples", "count", "cpu", "ns"}, {"cpu", "ns", "", ""}}, {3, 7}, "7", "3"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof uploads / sizeof *uploads; i++) {
        struct join join;
        struct request request, out;
        setup(&join, "samples: {wait: 0s}, spans: {attributes: [{key: cpu, from: "
                     "'samples.sum[\"cpu\"]'}, {key: n, from: samples.count}]}");
        profiles_begin(&request);
        for (unsigned k = 0; k < 2 && uploads[i].types[k][0]; k++) {
            const char *const *type = uploads[i].types[k];
            ProfileMessage *profile = profiles_profile(&request, type[0], type[1]);
            if (*type[2])
                profile_period(&request, profile, type[2], type[3], 10);
            SampleMessage *sample = profiles_sample(&request, 1);
            sample_link(&request, sample, TRACE, SPAN);
            sample_value(&request, sample, uploads[i].values[k]);
        }
        send_request(&join, &request);
        send_span(&join, TRACE, SPAN, "work");
        read_traces(&join, 0, &out);
        const char *cpu = span_attribute(request_span(&out, 0), "cpu");
        if (uploads[i].cpu)
            EXPECT_TEXT(cpu, uploads[i].cpu);
        else
            assert_null(cpu);
        EXPECT_TEXT(span_attribute(request_span(&out, 0), "n"), uploads[i].samples);
        request_free(&out);
        fixture_deinit(&join.fixture);
    }
}

/* ---- promotion ---- */

static void test_labels_become_links(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    setup(&join, "samples: {wait: 0s}");
    send_span(&join, TRACE, SPAN, "GET /pay");
    profiles_begin(&request);
    profiles_profile(&request, "samples", "count");
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_string(&request, sample, "thread.name", "main");
    sample_string(&request, sample, "process.context.label.span_id", "000000000000002A");
    sample_string(&request, sample, "process.context.label.span_name", "GET");
    sample_time(&request, sample, WALL);
    /* Not found: a Link with an empty trace id, and the name stays. */
    sample = profiles_sample(&request, 1);
    sample_string(&request, sample, "process.context.label.span_id", "000000000000002b");
    sample_string(&request, sample, "process.context.label.span_name", "PUT");
    sample_time(&request, sample, WALL);
    /* No id at all. */
    sample = profiles_sample(&request, 1);
    sample_string(&request, sample, "span_id", "not an id");
    sample_time(&request, sample, WALL);
    send_request(&join, &request);
    read_profiles(&join, 0, &out);
    sample = request_sample(&out, 0, 0);
    expect_joined(&out, 0, 0, TRACE, SPAN, "GET /pay");
    EXPECT_TEXT(sample_attribute(&out, sample, "thread.name"), "main");
    assert_null(sample_attribute(&out, sample, "process.context.label.span_id"));
    assert_null(sample_attribute(&out, sample, "process.context.label.span_name"));
    expect_link(&out, 0, 1, 0, SPAN_B);
    assert_int_equal(
        out.profiles->dictionary->link_table[request_sample(&out, 0, 1)->link_index]->trace_id.len,
        0);
    sample = request_sample(&out, 0, 1);
    assert_null(sample_attribute(&out, sample, "process.context.label.span_id"));
    EXPECT_TEXT(sample_attribute(&out, sample, "process.context.label.span_name"), "PUT");
    EXPECT_TEXT(sample_attribute(&out, request_sample(&out, 0, 2), "span_id"), "not an id");
    assert_int_equal(metric(&join, "samples_unjoined", "no_id"), 1);
    assert_int_equal(metric(&join, "samples_unjoined", "not_found"), 1);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void test_sdk_labels_with_trace_id(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    setup(&join, "");
    send_span(&join, TRACE, SPAN, "GET /pay");
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_string(&request, sample, "span_name", "GET");
    sample_string(&request, sample, "span_id", span_hex(SPAN));
    sample_string(&request, sample, "trace_id", "aaaaaaaaaaaaaaaa0000000000000007");
    sample_value(&request, sample, 1);
    send_request(&join, &request);
    read_profiles(&join, 0, &out);
    sample = request_sample(&out, 0, 0);
    expect_joined(&out, 0, 0, TRACE, SPAN, "GET /pay");
    assert_null(sample_attribute(&out, sample, "span_id"));
    assert_null(sample_attribute(&out, sample, "trace_id"));
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* A reader of pprof made the Links of labels; the name of the span next to them stayed. */
static void test_a_reader_made_links_of_labels(void **state)
{
    (void)state;
    static const char *const keys[] = {"span_name", "span.name", "otel.span_name"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct join join;
        struct request request, out;
        setup(&join, "samples: {wait: 5s}");
        join.fixture.links_are_labels = true;
        begin_linked(&request, 0, SPAN);
        sample_string(&request, request_sample(&request, 0, 0), keys[i], "GET");
        SampleMessage *sample = profiles_sample(&request, 1);
        sample_link(&request, sample, 0, SPAN_B); /* not found: the name stays */
        sample_string(&request, sample, keys[i], "PUT");
        sample_value(&request, sample, 1);
        send_request(&join, &request);
        send_span(&join, TRACE, SPAN, "GET /pay");
        wait_s(&join, 5);
        read_profiles(&join, 0, &out);
        expect_joined(&out, 0, 0, TRACE, SPAN, "GET /pay");
        if (i > 0)
            assert_null(sample_attribute(&out, request_sample(&out, 0, 0), keys[i]));
        EXPECT_TEXT(sample_attribute(&out, request_sample(&out, 0, 1), keys[i]), "PUT");
        request_free(&out);
        fixture_deinit(&join.fixture);
    }
}

static void test_datadog_ids_are_decimal(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    setup(&join, "");
    send_span(&join, TRACE, 0xf000000000000001u, "as text");
    send_span(&join, TRACE, SPAN, "as a number");
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_string(&request, sample, "local root span id", "1");
    sample_string(&request, sample, "span id", "17293822569102704641");
    sample_value(&request, sample, 1);
    sample = profiles_sample(&request, 1);
    sample_int(&request, sample, "local root span id", SPAN);
    sample_value(&request, sample, 1);
    send_request(&join, &request);
    read_profiles(&join, 0, &out);
    expect_joined(&out, 0, 0, TRACE, 0xf000000000000001u, "as text");
    expect_joined(&out, 0, 1, TRACE, SPAN, "as a number");
    assert_null(sample_attribute(&out, request_sample(&out, 0, 0), "local root span id"));
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void test_resource_names_the_span(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    setup(&join, "");
    send_span(&join, TRACE, SPAN, "one request");
    send_span(&join, TRACE, SPAN_B, "its own");
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", "shop");
    profiles_resource_string(&request, "span_id", span_hex(SPAN));
    profiles_profile(&request, "cpu", "nanoseconds");
    for (int i = 0; i < 3; i++)
        sample_value(&request, profiles_sample(&request, i), i + 1);
    sample_link(&request, request_sample(&request, 0, 2), TRACE, SPAN_B);
    send_request(&join, &request);
    read_profiles(&join, 0, &out);
    expect_joined(&out, 0, 0, TRACE, SPAN, "one request");
    expect_joined(&out, 0, 1, TRACE, SPAN, "one request");
    expect_joined(&out, 0, 2, TRACE, SPAN_B, "its own");
    assert_null(resource_attribute(&out, 0, "span_id"));
    EXPECT_TEXT(resource_attribute(&out, 0, "service.name"), "shop");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void test_profile_names_the_span(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    setup(&join, "");
    send_span(&join, TRACE, SPAN, "one request");
    profiles_begin(&request);
    ProfileMessage *profile = profiles_profile(&request, "cpu", "nanoseconds");
    profile_attribute(&request, profile, "kept", "yes");
    profile_attribute(&request, profile, "span_id", span_hex(SPAN));
    sample_value(&request, profiles_sample(&request, 1), 1);
    send_request(&join, &request);
    read_profiles(&join, 0, &out);
    expect_joined(&out, 0, 0, TRACE, SPAN, "one request");
    assert_null(profile_attribute_of(&out, request_profile(&out, 0), "span_id"));
    EXPECT_TEXT(profile_attribute_of(&out, request_profile(&out, 0), "kept"), "yes");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static bool send_text(struct join *join, const char *notation);

/* Each index is a field of its own, at the beginning of the profile or after long fields. */
static void test_unpacked_profile_attributes(void **state)
{
#define NAMED                                                                                      \
    "2{5\"\" 5\"span_id\" 5\"kept\" 4{} 7{} 7{} 1{} 2{} 3{} 6{} "                                  \
    "6{1=1 2{1\"000000000000002a\"}} 6{1=2 2{1\"yes\"}}}"
    static const char *const requests[] = {
        "1{2{2{11=1 11=2 2{1=1 4[30]}}}} " NAMED,
        "1{2{2{2{1=1 4[30]} 10\"a payload that is longer than all the rest\" 11=2 11=1}}} " NAMED,
    };
    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct join join;
        struct request out;
        setup(&join, "");
        send_span(&join, TRACE, SPAN, "one request");
        assert_true(send_text(&join, requests[i]));
        read_profiles(&join, 0, &out);
        expect_joined(&out, 0, 0, TRACE, SPAN, "one request");
        assert_null(profile_attribute_of(&out, request_profile(&out, 0), "span_id"));
        EXPECT_TEXT(profile_attribute_of(&out, request_profile(&out, 0), "kept"), "yes");
        request_free(&out);
        fixture_deinit(&join.fixture);
    }
#undef NAMED
}

static void test_profiles_side_alone_promotes(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    setup(&join, "");
    join.profiles->component->pipeline_count[SIGNAL_TRACES] = 0;
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_string(&request, sample, "span_id", span_hex(SPAN));
    sample_value(&request, sample, 1);
    send_request(&join, &request);
    read_profiles(&join, 0, &out); /* no span can arrive, so it does not wait */
    expect_link(&out, 0, 0, 0, SPAN);
    assert_int_equal(METRIC(&join, "entries"), 0);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void test_existing_attributes_are_kept(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    setup(&join, "samples: {wait: 0s}");
    send_span(&join, TRACE, SPAN, "from the span");
    begin_linked(&request, TRACE, SPAN);
    sample_string(&request, request_sample(&request, 0, 0), "span_name", "its own");
    send_request(&join, &request);
    read_profiles(&join, 0, &out);
    EXPECT_TEXT(sample_attribute(&out, request_sample(&out, 0, 0), "span_name"), "its own");
    EXPECT_TEXT(sample_attribute(&out, request_sample(&out, 0, 0), "span_kind"), "server");
    request_free(&out);
    traces_begin(&request, "shop");
    SpanMessage *span = traces_span(&request, TRACE, SPAN, WALL, WALL, "again");
    span_string(&request, span, "pyroscope.profile.id", "set by the SDK");
    traces_span(&request, TRACE, SPAN_B, WALL, WALL, "another");
    send_request(&join, &request);
    read_traces(&join, 1, &out);
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "pyroscope.profile.id"), "set by the SDK");
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "profile.samples"), "1");
    assert_string_equal(request_span(&out, 1)->name, "another");
    assert_int_equal(request_span(&out, 1)->n_attributes, 0);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void test_every_path(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    setup(&join,
          "samples: {attributes: [{key: a, from: span.id}, {key: b, from: span.trace_id}, "
          "{key: c, from: span.parent_id}, {key: d, from: span.status.message}, "
          "{key: e, from: span.start_time}, {key: f, from: span.duration_ns}, "
          "{key: g, from: 'resource.attributes[\"service.name\"]'}, {key: h, from: scope.name}, "
          "{key: i, from: 'span.attributes[\"none\"]'}]}, "
          "spans: {attributes: [{key: svc, from: 'resource.attributes[\"service.name\"]'}, "
          "{key: n, from: 'samples.count[\"cpu\"]'}, {key: wall, from: 'samples.sum[\"wall\"]'}]}");
    traces_begin(&request, "shop");
    SpanMessage *span = traces_span(&request, TRACE, SPAN, WALL, WALL + 5, "a span");
    static uint8_t parent[8] = {[7] = 9};
    span->parent_span_id = (ProtobufCBinaryData){8, parent};
    static char why[] = "because";
    span->status->message = why;
    send_request(&join, &request);
    send_sample(&join, TRACE, SPAN);
    read_profiles(&join, 0, &out);
    const SampleMessage *sample = request_sample(&out, 0, 0);
    EXPECT_TEXT(sample_attribute(&out, sample, "a"), "000000000000002a");
    EXPECT_TEXT(sample_attribute(&out, sample, "b"), "aaaaaaaaaaaaaaaa0000000000000007");
    EXPECT_TEXT(sample_attribute(&out, sample, "c"), "0000000000000009");
    EXPECT_TEXT(sample_attribute(&out, sample, "d"), "because");
    EXPECT_TEXT(sample_attribute(&out, sample, "e"), "1700000000000000000");
    EXPECT_TEXT(sample_attribute(&out, sample, "f"), "5");
    EXPECT_TEXT(sample_attribute(&out, sample, "g"), "shop");
    EXPECT_TEXT(sample_attribute(&out, sample, "h"), "net/http");
    assert_null(sample_attribute(&out, sample, "i"));
    request_free(&out);
    send_span(&join, TRACE, SPAN, "again");
    read_traces(&join, 1, &out);
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "svc"), "shop");
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "n"), "1");
    assert_null(span_attribute(request_span(&out, 0), "wall"));
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static const char *long_text(size_t size)
{
    static char text[8001];
    assert_in_range(size, 1, sizeof text - 1);
    memset(text, 'x', size);
    text[size] = 0;
    return text;
}

/* 4 KiB are kept for a span, and of a resource or scope. */
static void test_values_that_are_too_large(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    setup(&join, "samples: {attributes: [{key: a, from: 'span.attributes[\"a\"]'}, "
                 "{key: b, from: 'span.attributes[\"b\"]'}, {key: n, from: span.name}, "
                 "{key: h, from: 'resource.attributes[\"h\"]'}, {key: s, from: scope.name}]}");
    traces_begin(&request, "shop");
    traces_resource_string(&request, "h", long_text(5000));
    request.traces->resource_spans[0]->scope_spans[0]->scope->name =
        arena_strdup(&request.arena, long_text(5000));
    SpanMessage *span = traces_span(&request, TRACE, SPAN, WALL, WALL, "a span");
    span_string(&request, span, "a", long_text(3000));
    span_string(&request, span, "b", long_text(3000));
    send_request(&join, &request);
    send_sample(&join, TRACE, SPAN);
    read_profiles(&join, 0, &out);
    const SampleMessage *sample = request_sample(&out, 0, 0);
    EXPECT_TEXT(sample_attribute(&out, sample, "a"), long_text(3000));
    assert_null(sample_attribute(&out, sample, "b"));
    EXPECT_TEXT(sample_attribute(&out, sample, "n"), "a span");
    assert_null(sample_attribute(&out, sample, "h"));
    assert_null(sample_attribute(&out, sample, "s"));
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* A request becomes at most five times as large, plus 1 MiB. */
static void test_added_values_are_limited(void **state)
{
    enum { SPANS = 400, VALUE = 4000 };
    (void)state;
    struct join join;
    struct request request, out;
    size_t sizes[2], gained[2] = {0};
    setup(&join, "samples: {attributes: [{key: v, from: 'span.attributes[\"v\"]'}]}, "
                 "spans: {attributes: [{key: v, from: 'resource.attributes[\"r\"]'}]}");
    for (uint64_t span = 1; span <= SPANS; span++) {
        char value[VALUE + 1]; /* another one for each span */
        memcpy(value, long_text(VALUE), sizeof value);
        value[0] = (char)('a' + span % 20);
        value[1] = (char)('a' + span / 20);
        traces_begin(&request, "shop");
        SpanMessage *message = traces_span(&request, TRACE, span, WALL, WALL + SECOND, "a");
        span_string(&request, message, "v", value);
        send_request(&join, &request);
    }
    fixture_clear_recorded(&join.fixture);
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    for (uint64_t span = 1; span <= SPANS; span++) {
        SampleMessage *sample = profiles_sample(&request, 1);
        sample_link(&request, sample, TRACE, span);
        sample_value(&request, sample, 1);
    }
    sizes[0] = request_encode(&request).size;
    send_request(&join, &request);
    traces_begin(&request, "shop");
    traces_resource_string(&request, "r", long_text(VALUE));
    for (uint64_t span = 1; span <= SPANS; span++)
        traces_span(&request, TRACE, span, WALL, WALL + SECOND, "a");
    sizes[1] = request_encode(&request).size;
    send_request(&join, &request);
    read_profiles(&join, 0, &out);
    for (size_t i = 0; i < SPANS; i++)
        gained[0] += sample_attribute(&out, request_sample(&out, 0, i), "v") != NULL;
    request_free(&out);
    read_traces(&join, 0, &out);
    for (size_t i = 0; i < SPANS; i++)
        gained[1] += span_attribute(request_span(&out, i), "v") != NULL;
    request_free(&out);
    const size_t got[] = {nth(&join, SIGNAL_PROFILES, 0)->size, nth(&join, SIGNAL_TRACES, 0)->size};
    for (size_t i = 0; i < 2; i++) {
        assert_in_range(got[i], 1 << 20, (1 << 20) + 5 * sizes[i]);
        assert_in_range(gained[i], (1 << 20) / VALUE, SPANS - 1);
    }
    assert_int_equal(METRIC(&join, "samples_joined"), SPANS);
    fixture_deinit(&join.fixture);
}

/* Times of hostile senders do not wrap. */
static void test_times_beyond_an_int64(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    setup(&join, "samples: {wait: 0s, attributes: [{key: start, from: span.start_time}, "
                 "{key: takes, from: span.duration_ns}]}");
    traces_begin(&request, "shop");
    traces_span(&request, TRACE, SPAN, 0, UINT64_C(1) << 63, "long");
    traces_span(&request, TRACE, SPAN_B, UINT64_C(1) << 63, UINT64_MAX, "late");
    send_request(&join, &request);
    begin_linked(&request, TRACE, SPAN);
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, TRACE, SPAN_B);
    sample_value(&request, sample, 1);
    send_request(&join, &request);
    read_profiles(&join, 0, &out);
    EXPECT_TEXT(sample_attribute(&out, request_sample(&out, 0, 0), "takes"), "9223372036854775807");
    EXPECT_TEXT(sample_attribute(&out, request_sample(&out, 0, 1), "start"), "9223372036854775807");
    EXPECT_TEXT(sample_attribute(&out, request_sample(&out, 0, 1), "takes"), "9223372036854775807");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void send_sample_of(struct join *join, const char *type, int64_t value)
{
    struct request request;
    profiles_begin(&request);
    profiles_profile(&request, type, "nanoseconds");
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, TRACE, SPAN);
    sample_value(&request, sample, value);
    sample_value(&request, sample, value);
    send_request(join, &request);
}

/* Whether the span, delivered once more, has the id of a profile. */
static bool shows_profile(struct join *join, size_t n, const char *samples)
{
    struct request out;
    send_span(join, TRACE, SPAN, "a span");
    read_traces(join, n, &out);
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "profile.samples"), samples);
    bool shows = span_attribute(request_span(&out, 0), "pyroscope.profile.id") != NULL;
    request_free(&out);
    return shows;
}

static void test_a_profile_id_only_with_its_samples(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "samples: {wait: 0s}");
    send_sample_of(&join, "wall", 30);
    assert_false(shows_profile(&join, 0, "2"));
    send_sample_of(&join, "cpu", 0);            /* as of a pprof with both types */
    assert_false(shows_profile(&join, 1, "4")); /* two values each */
    send_sample_of(&join, "cpu", 30);
    assert_true(shows_profile(&join, 2, "6"));
    fixture_deinit(&join.fixture);
    setup(&join, "samples: {wait: 0s}, spans: {profile_types: [alloc_space, wall]}");
    send_sample_of(&join, "cpu", 30);
    assert_false(shows_profile(&join, 0, "2"));
    send_sample_of(&join, "wall", 30);
    assert_true(shows_profile(&join, 1, "4"));
    fixture_deinit(&join.fixture);
    setup(&join, "samples: {wait: 0s}, spans: {profile_types: []}");
    send_sample_of(&join, "goroutine", 1);
    assert_true(shows_profile(&join, 0, "2"));
    fixture_deinit(&join.fixture);
}

static void test_duration_buckets(void **state)
{
    static const struct {
        uint64_t duration_ns;
        const char *word;
    } spans[] = {{0, "<100ms"},
                 {SECOND / 10 - 1, "<100ms"},
                 {SECOND / 10, "100ms-1s"},
                 {SECOND, ">=1s"},
                 {100 * SECOND, ">=1s"}};
    (void)state;
    struct join join;
    struct request request, out;
    setup(&join, "samples: {attributes: [{key: a, from: 'span.duration_bucket[100ms, 1s]'}]}, "
                 "spans: {attributes: [{key: a, from: 'span.duration_bucket[50s]'}]}");
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        traces_begin(&request, "shop");
        traces_span(&request, TRACE, i + 1, WALL, WALL + spans[i].duration_ns, "a span");
        send_request(&join, &request);
        send_sample(&join, TRACE, i + 1);
        read_profiles(&join, i, &out);
        EXPECT_TEXT(sample_attribute(&out, request_sample(&out, 0, 0), "a"), spans[i].word);
        request_free(&out);
    }
    traces_begin(&request, "shop"); /* again, now that samples were seen */
    traces_span(&request, TRACE, 5, WALL, WALL + 100 * SECOND, "a span");
    send_request(&join, &request);
    read_traces(&join, 5, &out);
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "a"), ">=50s");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* ---- requests from agents ---- */

/* Sends a request written as text (wire_text.h), scanned and normalised as in a receiver. Returns
 * false if it is refused. */
static bool send_text(struct join *join, const char *notation)
{
    struct text encoded = wire_text(notation);
    struct slice request = wire_text_slice(&encoded);
    struct scan_result scan;
    struct error err;
    struct buffer *normalised = NULL;
    scan_init();
    bool ok = scan_profiles(request, &scan_limits_default, &scan, &err);
    if (ok && normalise_needed(&scan)) {
        normalised = normalise_profiles(request, &scan, NULL, &(bool){false});
        request = buffer_slice(normalised);
    }
    if (ok)
        send_bytes(join, join->profiles->nodes[0], request, scan.items);
    buffer_unref(normalised);
    text_deinit(&encoded);
    return ok;
}

/* The dictionary: strings "", "cpu", "nanoseconds", a link to SPAN of TRACE, two stacks. */
#define WIRE_DICTIONARY                                                                            \
    "2{ 5\"\" 5\"cpu\" 5\"nanoseconds\" 4{} 4{1xaaaaaaaaaaaaaaaa0000000000000007 "                 \
    "2x000000000000002a} 7{} 7{} 1{} 2{} 3{} 6{} }"

static void test_old_layout_and_unpacked_values(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    setup(&join, "");
    send_span(&join, TRACE, SPAN, "a span");
    /* OTLP 1.9: values 2, attributes 3, link 4. */
    assert_true(send_text(&join, "1{2{2{1{1=1 2=2} 2{1=1 2[30] 4=1} 3#5}}} " WIRE_DICTIONARY));
    /* The Java agent writes each value as a field of its own. */
    assert_true(send_text(&join, "1{2{2{1{1=1 2=2} 2{1=1 3=1 4=10 4=20 5[#1700000000000000000 "
                                 "1700000000000000001]}}}} " WIRE_DICTIONARY));
    for (size_t i = 0; i < 2; i++) {
        read_profiles(&join, i, &out);
        expect_joined(&out, 0, 0, TRACE, SPAN, "a span");
        const SampleMessage *sample = request_sample(&out, 0, 0);
        assert_int_equal(sample->n_values, i + 1);
        assert_int_equal(sample->values[i], i ? 20 : 30);
        assert_int_equal(sample->stack_index, 1);
        request_free(&out);
    }
    send_span(&join, TRACE, SPAN, "a span");
    read_traces(&join, 1, &out);
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "profile.cpu_ns"), "60");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void expect_bytes(struct join *join, enum signal signal, size_t n, const char *text)
{
    const struct recorded *recorded = nth(join, signal, n);
    assert_non_null(recorded);
    assert_non_null(memmem(recorded->bytes, recorded->size, text, strlen(text)));
}

/* At each level of requests that the join changes. */
static void test_unknown_fields_survive(void **state)
{
    (void)state;
    static const char *const levels[] = {"of a sample", "of a profile", "of a scope",
                                         "of a resource", "of a request"};
    struct join join;
    setup(&join, "");
    assert_true(send_text(&join, "1{2{2{1{1=1 2=2} 2{1=1 3=1 4[30] 99\"of a sample\"} "
                                 "99\"of a profile\"} 99\"of a scope\"} 99\"of a resource\"} "
                                 "99\"of a request\" " WIRE_DICTIONARY));
    struct text traces = wire_text("1{2{2{1xaaaaaaaaaaaaaaaa0000000000000007 2x000000000000002a "
                                   "5\"a span\" 99\"of a sample\"} 99\"of a profile\"} "
                                   "99\"of a scope\"} 99\"of a resource\" 98\"of a request\"");
    send_bytes(&join, join.traces->nodes[0], wire_text_slice(&traces), 1);
    wait_s(&join, 0);
    assert_int_equal(METRIC(&join, "spans_enriched"), 1);
    assert_int_equal(METRIC(&join, "samples_joined"), 1);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        expect_bytes(&join, SIGNAL_PROFILES, 0, levels[i]);
        expect_bytes(&join, SIGNAL_TRACES, 0, levels[i]);
    }
    text_deinit(&traces);
    fixture_deinit(&join.fixture);
}

/* Attribute 1 of the table, with these members of its value. */
#define NAMED_BY(key, members)                                                                     \
    "1{2{2{1{1=1 2=2} 2{1=1 2[1] 4[30]}}}} 2{ 5\"\" 5\"cpu\" 5\"nanoseconds\" 5\"" key             \
    "\" 4{} 6{} 6{1=3 2{" members "}} 7{} 7{} 1{} 2{} 3{} }"

static void test_the_last_member_of_a_value_names_the_span(void **state)
{
    (void)state;
    static const char *const requests[] = {
        NAMED_BY("span_id", "1\"000000000000002b\" 1\"000000000000002a\""),
        NAMED_BY("span_id", "3=43 1\"000000000000002a\" 9\"new\""),
        NAMED_BY("span id", "1\"43\" 3=42"),
        NAMED_BY("span_id", "9\"new\" 1\"000000000000002a\""),
    };
    struct join join;
    struct request out;
    setup(&join, "samples: {wait: 0s}");
    send_span(&join, TRACE, SPAN, "last");
    send_span(&join, TRACE, SPAN_B, "first");
    size_t count = sizeof requests / sizeof *requests;
    for (size_t i = 0; i < count; i++) {
        assert_true(send_text(&join, requests[i]));
        read_profiles(&join, i, &out);
        expect_joined(&out, 0, 0, TRACE, SPAN, "last");
        request_free(&out);
    }
    /* The last value is not an id, so there is none. */
    assert_true(send_text(&join, NAMED_BY("span_id", "1\"000000000000002a\" 2=1")));
    read_profiles(&join, count, &out);
    expect_unjoined(&out, 0, 0);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void test_invalid_requests_do_not_get_here(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "");
    assert_false(send_text(&join, "1{2{2{1{1=1 2=2} 2{1=1 3=2 4[30]}}}} " WIRE_DICTIONARY));
    assert_false(send_text(&join, "1{2{2{1{1=1 2=2} 2{1=1 4[30]}}}} 2{4{} 4{2x0102}}"));
    /* An empty resource. It ends here. */
    assert_true(send_text(&join, "1{}"));
    assert_true(send_text(&join, "1{2{2{}}}"));
    assert_int_equal(join.fixture.recorder.count, 0);
    fixture_deinit(&join.fixture);
}

/* One profile with many Links, each of which two samples have. */
static struct text many_links(uint32_t count)
{
    struct text dictionary = wire_text("5\"\" 5\"cpu\" 5\"nanoseconds\" 4{} 7{} 7{}");
    struct text profile = wire_text("1{1=1 2=2}");
    for (uint32_t i = 1; i <= count; i++) {
        uint8_t link[2 + 28] = {0x22, 28, 0x0a, 16, [19] = 1, [20] = 0x12, [21] = 8};
        memcpy(link + 22, &i, sizeof i);
        text_append_slice(&dictionary, slice_of(link, sizeof link));
        uint8_t sample[32], *to = wire_write_tag(sample, SAMPLE_LINK_INDEX, WIRE_VARINT);
        to = wire_write_varint(to, i);
        to = wire_write_bytes(to, SAMPLE_VALUES, SLICE("\1"));
        uint8_t header[WIRE_HEADER_MAX];
        size_t size = (size_t)(to - sample);
        uint8_t *end = wire_write_header(header, PROFILE_SAMPLES, size);
        for (unsigned twice = 0; twice < 2; twice++) {
            text_append_slice(&profile, slice_of(header, (size_t)(end - header)));
            text_append_slice(&profile, slice_of(sample, size));
        }
    }
    struct text request = {0};
    const uint32_t numbers[] = {SCOPE_PROFILES_PROFILES, RESOURCE_PROFILES_SCOPE_PROFILES,
                                PROFILES_RESOURCE_PROFILES};
    for (size_t i = 0; i < 4; i++) { /* around the profile, then the dictionary */
        struct text *inner = i < 3 ? &profile : &dictionary;
        uint8_t header[WIRE_HEADER_MAX];
        uint8_t *end =
            wire_write_header(header, i < 3 ? numbers[i] : PROFILES_DICTIONARY, inner->size);
        struct text outer = {0};
        text_append_slice(&outer, slice_of(header, (size_t)(end - header)));
        text_append_slice(&outer, slice_of(inner->data, inner->size));
        text_deinit(inner);
        *inner = outer;
    }
    text_append_slice(&request, slice_of(profile.data, profile.size));
    text_append_slice(&request, slice_of(dictionary.data, dictionary.size));
    text_deinit(&profile);
    text_deinit(&dictionary);
    return request;
}

static void send_more_ids_than_a_request_may_name(const char *settings, size_t out)
{
    struct join join;
    setup(&join, settings);
    struct text request = many_links(70000);
    struct slice bytes = slice_of(request.data, request.size);
    struct scan_result scan;
    struct error err = {0};
    scan_init();
    if (!scan_profiles(bytes, &scan_limits_default, &scan, &err))
        fail_msg("%s", err.text);
    send_bytes(&join, join.profiles->nodes[0], bytes, scan.items);
    assert_int_equal(join.probe.settled, 1);
    assert_int_equal(metric(&join, "samples_unjoined", "not_found"), 2 * 65536);
    assert_int_equal(metric(&join, "samples_unjoined", "overflow"), 2 * (70000 - 65536));
    assert_int_equal(nth(&join, SIGNAL_PROFILES, 0)->items, out);
    if (out == scan.items)
        assert_int_equal(nth(&join, SIGNAL_PROFILES, 0)->size, bytes.size);
    text_deinit(&request);
    fixture_deinit(&join.fixture);
}

static void test_more_ids_than_a_request_may_name(void **state)
{
    (void)state;
    send_more_ids_than_a_request_may_name("samples: {wait: 0s}", 140000);
    /* what is not looked up keeps its detail */
    send_more_ids_than_a_request_may_name("samples: {wait: 0s}, keep: {span_detail_when: [{status: "
                                          "error}], unjoined: drop}",
                                          8928); /* 2 * (70000 - 65536) */
}

/* A thousand requests may wait downstream. Each needs memory only for its bytes, not for the
 * join's plan. */
static void test_what_goes_on_is_not_larger_than_it_came(void **state)
{
    (void)state;
    enum { SPANS = 5000 };
    struct join join;
    setup(&join, "samples: {wait: 0s}");
    join.fixture.recorder.hold = true;
    struct request request;
    traces_begin(&request, "shop");
    for (uint64_t i = 0; i < SPANS; i++)
        traces_span(&request, TRACE, SPAN + i, WALL, WALL + SECOND, "a");
    size_t bytes = request_encode(&request).size;
    send_to(&join, &request, 0);
    assert_int_equal(join.fixture.recorder.held_count, 1);
    assert_in_range(budget_used(&join.fixture.budget), bytes, bytes + 4096);
    fixture_release(&join.fixture, &verdict_ok);

    struct text links = many_links(SPANS);
    struct slice profiles = slice_of(links.data, links.size);
    fixture_consume(&join.fixture, join.profiles->nodes[0], profiles, SPANS, NULL);
    assert_int_equal(join.fixture.recorder.held_count, 1);
    /* and its link table, which was opened */
    assert_in_range(budget_used(&join.fixture.budget), profiles.size, 4 * profiles.size);
    text_deinit(&links);
    fixture_release(&join.fixture, &verdict_ok);
    fixture_deinit(&join.fixture);
}

/* ---- waiting spans ---- */

static void test_spans_wait(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    setup(&join, "spans: {wait: 20s}");
    send_span(&join, TRACE, SPAN, "waits"); /* answered at once */
    wait_s(&join, 12);
    assert_false(came_out(&join, SIGNAL_TRACES, 0));
    send_sample(&join, TRACE, SPAN);
    wait_s(&join, 0);
    read_traces(&join, 0, &out);
    assert_int_equal(nth(&join, SIGNAL_TRACES, 0)->at_ns, FIXTURE_START_NS + 12 * SECOND);
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "profile.samples"), "1");
    request_free(&out);
    send_span(&join, TRACE, SPAN_B, "covered"); /* by the profile that has arrived */
    read_traces(&join, 1, &out);
    assert_null(span_attribute(request_span(&out, 0), "profile.samples"));
    request_free(&out);
    send_span_at(&join, OTHER_TRACE, WALL + 60 * SECOND, "in vain");
    wait_s(&join, 19);
    assert_false(came_out(&join, SIGNAL_TRACES, 2));
    wait_s(&join, 1);
    read_traces(&join, 2, &out);
    assert_null(span_attribute(request_span(&out, 0), "profile.samples"));
    request_free(&out);
    assert_int_equal(METRIC(&join, "held_requests"), 0);
    fixture_deinit(&join.fixture);
}

/* ---- several workers, the stop ---- */

static void test_span_on_another_worker(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    setup_workers(&join, "", 2);
    for (unsigned worker = 0; worker < 2; worker++) {
        begin_linked(&request, TRACE, SPAN);
        request_profile(&request, 0)->time_unix_nano += worker;
        send_to(&join, &request, worker);
        assert_int_equal(join.probe.settled, 1);
    }
    traces_begin(&request, "shop");
    traces_span(&request, TRACE, SPAN, WALL, WALL, "a span");
    send_to(&join, &request, 1);
    assert_false(came_out(&join, SIGNAL_PROFILES, 0)); /* only their own workers send them on */
    wait_s(&join, 0);
    for (size_t i = 0; i < 2; i++) {
        read_profiles(&join, i, &out);
        expect_joined(&out, 0, 0, TRACE, SPAN, "a span");
        request_free(&out);
    }
    assert_int_not_equal(nth(&join, SIGNAL_PROFILES, 0)->worker,
                         nth(&join, SIGNAL_PROFILES, 1)->worker);
    read_traces(&join, 0, &out);
    EXPECT_TEXT(span_attribute(request_span(&out, 0), "profile.samples"), "2");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void test_drain_lets_all_leave(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "");
    send_sample(&join, TRACE, SPAN);
    send_sample(&join, TRACE, SPAN_B);
    join.fixture.recorder.hold = true;
    struct node *node = join.profiles->nodes[0];
    fixture_drain(node);
    assert_int_equal(join.fixture.recorder.held_count, 2);
    assert_false(fixture_is_idle(node));
    struct request late; /* later requests pass */
    begin_linked(&late, TRACE, SPAN_C);
    send_to(&join, &late, 0);
    assert_int_equal(join.probe.settled, 0);
    assert_int_equal(join.fixture.recorder.held_count, 3);
    fixture_release(&join.fixture, &verdict_ok);
    assert_int_equal(join.probe.settled, 1);
    assert_true(fixture_is_idle(node));
    assert_int_equal(join.fixture.recorder.count, 3);
    join.fixture.recorder.hold = false;
    fixture_deinit(&join.fixture);
}

static void test_stop_while_offered(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "samples: {wait: 5s}");
    send_sample(&join, TRACE, SPAN);
    join.fixture.recorder.hold = true;
    wait_s(&join, 5);
    send_sample(&join, TRACE, SPAN_B);
    struct node *node = join.profiles->nodes[0];
    struct verdict stopped = verdict_of(GRPC_UNAVAILABLE, "shutting down");
    fixture_release(&join.fixture, &stopped); /* the next node stops first */
    outlet_stop(&node->outlets[SIGNAL_PROFILES]);
    node->component->type->node_stop(node);
    assert_int_equal(metric(&join, "dropped", "stopped"), 2);
    assert_int_equal((int)atomic_load(&join.fixture.process.lost_items), 2);
    assert_int_equal(METRIC(&join, "held_bytes"), 0);
    join.fixture.recorder.hold = false;
    fixture_deinit(&join.fixture);
}

static void test_lag_has_both_signs(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "");
    send_span(&join, TRACE, SPAN, "first");
    wait_s(&join, 4);
    send_sample(&join, TRACE, SPAN);
    send_sample(&join, TRACE, SPAN_B);
    wait_s(&join, 3);
    send_span(&join, TRACE, SPAN_B, "second");
    struct text out = {0};
    metrics_write(join.fixture.process.metrics, 0, &out);
    assert_non_null(
        strstr(text_string(&out), "profcol_spanjoin_lag_seconds_sum{spanjoin=\"spanjoin\"} 1\n"));
    assert_non_null(
        strstr(text_string(&out), "profcol_spanjoin_lag_seconds_count{spanjoin=\"spanjoin\"} 2\n"));
    text_deinit(&out);
    fixture_deinit(&join.fixture);
}

/* Tests for small requests only, which are processed at once. test_large_requests.c has tests for
 * large ones. */
static const struct CMUnitTest of_small_ones[] = {
    cmocka_unit_test(test_memory_bound),
    cmocka_unit_test(test_unknown_type_that_does_not_come),
    cmocka_unit_test(test_many_leave_a_few_at_a_time),
    cmocka_unit_test(test_what_goes_on_is_not_larger_than_it_came),
    cmocka_unit_test(test_span_on_another_worker),
    cmocka_unit_test(test_drain_lets_all_leave),
};

static const struct CMUnitTest of_all[] = {
    cmocka_unit_test(test_span_first),
    cmocka_unit_test(test_sample_first_waits_for_its_span),
    cmocka_unit_test(test_sample_leaves_before_its_span),
    cmocka_unit_test(test_window_is_over),
    cmocka_unit_test(test_same_span_id_in_two_traces),
    cmocka_unit_test(test_span_id_alone_goes_by_time),
    cmocka_unit_test(test_time_never_vetoes),
    cmocka_unit_test(test_link_without_trace_takes_the_spans),
    cmocka_unit_test(test_spans_without_an_id_are_not_joined),
    cmocka_unit_test(test_one_profile_with_three_links),
    cmocka_unit_test(test_downstream_refuses_for_a_while),
    cmocka_unit_test(test_downstream_refuses_for_good),
    cmocka_unit_test(test_direct_path_leaves_the_answer_to_downstream),
    cmocka_unit_test(test_memory_bound_makes_the_oldest_leave),
    cmocka_unit_test(test_many_make_room_for_one),
    cmocka_unit_test(test_index_full),
    cmocka_unit_test(test_a_sample_prefers_the_span_of_its_own_source),
    cmocka_unit_test(test_the_first_writer_of_a_span_wins),
    cmocka_unit_test(test_eight_spans_with_a_foreign_span_id),
    cmocka_unit_test(test_tenants_are_joined_each_by_itself),
    cmocka_unit_test(test_tenants_that_are_no_texts),
    cmocka_unit_test(test_samples_of_a_profiler_come_first),
    cmocka_unit_test(test_delivered_twice),
    cmocka_unit_test(test_sent_again_without_profile_id),
    cmocka_unit_test(test_metrics_count_each_attempt),
    cmocka_unit_test(test_go_counts_cpu_once),
    cmocka_unit_test(test_cpu_of_every_profiler),
    cmocka_unit_test(test_labels_become_links),
    cmocka_unit_test(test_sdk_labels_with_trace_id),
    cmocka_unit_test(test_a_reader_made_links_of_labels),
    cmocka_unit_test(test_datadog_ids_are_decimal),
    cmocka_unit_test(test_resource_names_the_span),
    cmocka_unit_test(test_profile_names_the_span),
    cmocka_unit_test(test_unpacked_profile_attributes),
    cmocka_unit_test(test_profiles_side_alone_promotes),
    cmocka_unit_test(test_existing_attributes_are_kept),
    cmocka_unit_test(test_every_path),
    cmocka_unit_test(test_values_that_are_too_large),
    cmocka_unit_test(test_added_values_are_limited),
    cmocka_unit_test(test_times_beyond_an_int64),
    cmocka_unit_test(test_duration_buckets),
    cmocka_unit_test(test_a_profile_id_only_with_its_samples),
    cmocka_unit_test(test_old_layout_and_unpacked_values),
    cmocka_unit_test(test_unknown_fields_survive),
    cmocka_unit_test(test_the_last_member_of_a_value_names_the_span),
    cmocka_unit_test(test_invalid_requests_do_not_get_here),
    cmocka_unit_test(test_more_ids_than_a_request_may_name),
    cmocka_unit_test(test_spans_wait),
    cmocka_unit_test(test_stop_while_offered),
    cmocka_unit_test(test_lag_has_both_signs),
};

int main(void)
{
    int failed = cmocka_run_group_tests(of_small_ones, NULL, NULL);
    failed += cmocka_run_group_tests_name("small", of_all, NULL, NULL);
    all_are_large = true;
    spanjoin_set_large_bytes(0);
    return failed + cmocka_run_group_tests_name("large", of_all, NULL, NULL);
}

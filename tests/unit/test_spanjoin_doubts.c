/* A span that may lack samples of its thread says so: it is not known which span they are of
 * (docs/spanjoin.md, "Spans that may lack samples"). */
#include "core/base/log.h"
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/spanjoin_fixture.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

enum { LANE = 31, OS_LANE = 4711 };
#define MS UINT64_C(1000000)
#define UPLOAD_NS (5 * SECOND)

/* A span on a thread; each is in a trace of its own. */
struct ran {
    uint64_t span;
    int64_t thread;
    const char *name;
    uint64_t start, end; /* ms */
};

static void add_span(struct request *request, const struct ran *ran)
{
    SpanMessage *span = traces_span(request, ran->span, ran->span, WALL + ran->start * MS,
                                    WALL + ran->end * MS, "work");
    span_int(request, span, "thread.id", ran->thread);
    span_string(request, span, "thread.name", ran->name);
}

static void send_spans(struct join *join, const struct ran *spans, size_t count)
{
    struct request request;
    traces_begin(&request, "shop");
    traces_resource_string(&request, "telemetry.sdk.language", "java");
    for (size_t i = 0; i < count; i++)
        add_span(&request, &spans[i]);
    join_send(join, &request);
}

static void begin_upload(struct request *request, uint64_t number)
{
    profiles_begin(request);
    profiles_resource_string(request, "service.name", "shop");
    ProfileMessage *profile = profiles_profile(request, "cpu", "nanoseconds");
    profile->time_unix_nano = WALL + number * UPLOAD_NS;
    profile->duration_nano = UPLOAD_NS + 1;
}

static SampleMessage *add_sample(struct request *request, int64_t os_thread, const char *name,
                                 uint64_t time)
{
    SampleMessage *sample = profiles_sample(request, 1);
    sample_int(request, sample, "thread.id", os_thread);
    sample_string(request, sample, "thread.name", name);
    sample_time(request, sample, WALL + time * MS);
    sample_value(request, sample, 1);
    return sample;
}

/* A sample that names its span, so that the span has something to say. */
static void add_linked(struct request *request, uint64_t span)
{
    SampleMessage *sample = profiles_sample(request, 1);
    sample_link(request, sample, span, span);
    sample_value(request, sample, 100);
}

/* Sends the spans again, as one request, and returns what they say of their costs: of each its CPU
 * time, with a `?` if it says that it is not complete. */
static const char *costs_of(struct join *join, const struct ran *spans, size_t count)
{
    static char text[256];
    struct request out;
    size_t size = 0;
    fixture_clear_recorded(&join->fixture);
    send_spans(join, spans, count);
    const struct recorded *last = &join->fixture.recorder.items[join->fixture.recorder.count - 1];
    request_read_traces(&out, slice_of(last->bytes, last->size));
    text[0] = 0;
    for (size_t i = 0; i < count; i++) {
        SpanMessage *span = request_span(&out, i);
        const char *cpu = span_attribute(span, "profile.cpu_ns");
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%s", i ? " " : "",
                                 cpu ? cpu : "-");
        size += (size_t)snprintf(text + size, sizeof text - size, "%s",
                                 span_attribute(span, "profile.complete") ? "?" : "");
    }
    request_free(&out);
    return text;
}

/* Requests and jobs; nobody waits, or samples do. */
static void with_each(void (*test)(struct join *join))
{
    static const char *const settings[] = {"samples: {wait: 0s}", "samples: {wait: 2s}"};
    for (unsigned i = 0; i < 4; i++) {
        struct join join;
        join_init(&join, settings[i % 2]);
        spanjoin_set_large_bytes(i / 2 ? 0 : SIZE_MAX);
        test(&join);
        fixture_deinit(&join.fixture);
        spanjoin_set_large_bytes(SIZE_MAX);
    }
}

/* Two requests take turns on a thread for a while. A third one, before them, is not concerned, nor
 * is one on another thread. */
static const struct ran turns[] = {{1, LANE, "worker", 100, 300},
                                   {2, LANE, "worker", 400, 800},
                                   {3, LANE, "worker", 600, 1000},
                                   {4, LANE + 1, "other", 100, 1000},
                                   {5, LANE, "worker", 1100, 1200}};
enum { TURNS = sizeof turns / sizeof *turns };

static void send_turns(struct join *join)
{
    struct request request;
    begin_upload(&request, 0);
    add_sample(&request, OS_LANE, "worker", 200);
    add_sample(&request, OS_LANE, "worker", 700);
    add_sample(&request, OS_LANE, "worker", 900);
    add_sample(&request, OS_LANE, "worker", 1150);
    add_sample(&request, OS_LANE + 1, "other", 700);
    add_linked(&request, 2);
    join_send(join, &request);
    fixture_advance(&join->fixture, UPLOAD_NS);
}

static void check_turns(struct join *join)
{
    send_spans(join, turns, TURNS);
    send_turns(join);
    assert_string_equal(costs_of(join, turns, TURNS), "1 100? 1? 1 1");
}

static void spans_that_overlap_say_it(void **state)
{
    (void)state;
    with_each(check_turns);
}

/* They say it also if they have waited for their costs. */
static void spans_that_wait_say_it(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    join_init(&join, "samples: {wait: 2s}, spans: {wait: 20s}");
    send_spans(&join, turns, TURNS);
    send_turns(&join);
    begin_upload(&request, 1);
    join_send(&join, &request);
    fixture_advance(&join.fixture, 20 * SECOND);
    static const char *const complete[TURNS] = {NULL, "false", "false", NULL, NULL};
    unsigned seen = 0;
    for (size_t i = 0; i < join.fixture.recorder.count; i++) {
        const struct recorded *one = &join.fixture.recorder.items[i];
        if (one->signal != SIGNAL_TRACES)
            continue;
        seen++;
        request_read_traces(&out, slice_of(one->bytes, one->size));
        for (size_t k = 0; k < TURNS; k++) {
            const char *got = span_attribute(request_span(&out, k), "profile.complete");
            assert_non_null(span_attribute(request_span(&out, k), "profile.cpu_ns"));
            assert_string_equal(got ? got : "none", complete[k] ? complete[k] : "none");
        }
        request_free(&out);
    }
    assert_int_equal(seen, 1);
    fixture_deinit(&join.fixture);
}

/* What is taken back for a span that comes later may turn out to be of two. */
static void check_late(struct join *join)
{
    send_spans(join, turns, 1);
    send_turns(join);
    assert_string_equal(costs_of(join, turns + 1, 4), "100? 1? 1 1");
    assert_string_equal(costs_of(join, turns, 1), "1");
}

static void late_spans_say_it(void **state)
{
    (void)state;
    with_each(check_late);
}

/* A name that two threads have does not tell which one it is. */
static const struct ran pool[] = {{1, LANE, "pool", 100, 300},
                                  {2, LANE + 1, "pool", 200, 400},
                                  {3, LANE + 1, "pool", 500, 600},
                                  {4, LANE + 2, "other", 100, 1000}};
enum { POOL = sizeof pool / sizeof *pool };

static void check_names(struct join *join)
{
    struct request request;
    send_spans(join, pool, POOL);
    begin_upload(&request, 0);
    for (int i = 0; i < 20; i++) /* of many threads, so that all are told by the name */
        add_sample(&request, OS_LANE + i, "pool", 250);
    add_sample(&request, OS_LANE + 99, "other", 250);
    for (uint64_t span = 1; span <= 3; span++)
        add_linked(&request, span);
    join_send(join, &request);
    fixture_advance(&join->fixture, UPLOAD_NS);
    assert_string_equal(costs_of(join, pool, POOL), "100? 100? 100 1");
}

static void threads_of_one_name_say_it(void **state)
{
    (void)state;
    with_each(check_names);
}

/* Of two values and three times, it is not known which ones a span may have. */
static void check_whole(struct join *join)
{
    struct request request;
    send_spans(join, turns, TURNS);
    begin_upload(&request, 0);
    SampleMessage *sample = add_sample(&request, OS_LANE, "worker", 200);
    sample_value(&request, sample, 1);
    sample_time(&request, sample, WALL + 350 * MS);
    sample_time(&request, sample, WALL + 1150 * MS);
    add_sample(&request, OS_LANE, "worker", 210);
    add_sample(&request, OS_LANE, "worker", 900);
    add_sample(&request, OS_LANE, "worker", 1160);
    join_send(join, &request);
    fixture_advance(&join->fixture, UPLOAD_NS);
    assert_string_equal(costs_of(join, turns, TURNS), "1? - 1 - 1?");
}

static void what_cannot_be_split_is_said(void **state)
{
    (void)state;
    with_each(check_whole);
}

/* Doubts are forgotten when spans of that time cannot arrive any more. */
static void doubts_end(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, "samples: {wait: 0s}, window: 60s");
    send_spans(&join, turns, TURNS);
    send_turns(&join);
    fixture_advance(&join.fixture, 200 * SECOND);
    send_spans(&join, turns, TURNS);
    begin_upload(&request, 0);
    add_linked(&request, 2);
    join_send(&join, &request);
    assert_string_equal(costs_of(&join, turns, 2), "- 100");
    fixture_deinit(&join.fixture);
}

int main(void)
{
    log_init(LOG_ERROR + 1, LOG_CONSOLE);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_that_overlap_say_it),
        cmocka_unit_test(spans_that_wait_say_it),
        cmocka_unit_test(late_spans_say_it),
        cmocka_unit_test(threads_of_one_name_say_it),
        cmocka_unit_test(what_cannot_be_split_is_said),
        cmocka_unit_test(doubts_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

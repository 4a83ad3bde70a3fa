/* Samples by thread that arrive before the first spans of their process: a span that was running
 * then gets them, or says that it may lack them (docs/spanjoin.md, "What arrives before the first
 * spans"). */
#include "core/base/log.h"
#include "core/data/left_samples.h"
#include "core/data/span_index.h"
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/spanjoin_fixture.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

enum { TRACE = 7, LANE = 31, OS_LANE = 4711 };
#define MS UINT64_C(1000000)
#define WINDOW_NS (60 * SECOND)
#define LONG_ID "0123456789abcdef0123456789abcdef"

/* A process as its spans and its profiles name it. */
struct sender {
    const char *spans, *profiles;
};
static const struct sender same = {"service.name=shop service.instance.id=" LONG_ID,
                                   "service.name=shop service.instance.id=" LONG_ID};
static const struct sender other = {"service.name=other service.instance.id=1", NULL};

static SpanMessage *begin_span(struct request *request, const struct sender *sender, uint64_t id,
                               uint64_t start, uint64_t end)
{
    traces_begin(request, NULL);
    request_resource(request, sender->spans);
    traces_resource_string(request, "telemetry.sdk.language", "java");
    return traces_span(request, TRACE, id, WALL + start * MS, WALL + end * MS, "work");
}

static void send_span(struct join *join, const struct sender *sender, uint64_t id, uint64_t start,
                      uint64_t end)
{
    struct request request;
    SpanMessage *span = begin_span(&request, sender, id, start, end);
    span_int(&request, span, "thread.id", LANE);
    span_string(&request, span, "thread.name", "worker");
    join_send(join, &request);
}

static void send_span_without_thread(struct join *join, uint64_t id, uint64_t start, uint64_t end)
{
    struct request request;
    begin_span(&request, &same, id, start, end);
    join_send(join, &request);
}

/* Expects the CPU time of the span that left last; `?`: it says that it may lack something. */
static void expect_costs(struct join *join, const char *expected)
{
    struct request out;
    char text[32];
    const struct recorded *last = &join->fixture.recorder.items[join->fixture.recorder.count - 1];
    assert_int_equal(last->signal, SIGNAL_TRACES);
    request_read_traces(&out, slice_of(last->bytes, last->size));
    SpanMessage *span = request_span(&out, 0);
    const char *cpu = span_attribute(span, "profile.cpu_ns");
    size_t size = (size_t)snprintf(text, sizeof text, "%s", cpu ? cpu : "-");
    bool is_complete = !span_attribute(span, "profile.complete");
    snprintf(text + size, sizeof text - size, "%s", is_complete ? "" : "?");
    assert_string_equal(text, expected);
    request_free(&out);
}

/* An upload of 5 s. */
static void begin_upload(struct request *request, const struct sender *sender, uint64_t number)
{
    profiles_begin(request);
    request_resource(request, sender->profiles);
    ProfileMessage *profile = profiles_profile(request, "cpu", "nanoseconds");
    profile->time_unix_nano = WALL + number * 5 * SECOND;
    profile->duration_nano = 5 * SECOND + 1;
}

static void add_sample(struct request *request, const char *name, uint64_t time, int64_t value)
{
    SampleMessage *sample = profiles_sample(request, 1);
    sample_int(request, sample, "thread.id", OS_LANE);
    sample_string(request, sample, "thread.name", name);
    sample_time(request, sample, WALL + time * MS);
    sample_value(request, sample, value);
}

static void add_linked(struct request *request, uint64_t span, int64_t value)
{
    SampleMessage *sample = profiles_sample(request, 1);
    sample_link(request, sample, TRACE, span);
    sample_value(request, sample, value);
}

/* Sends an upload with a sample in its middle. */
static void send_upload(struct join *join, const struct sender *sender, uint64_t number,
                        int64_t value)
{
    struct request request;
    begin_upload(&request, sender, number);
    add_sample(&request, "worker", number * 5000 + 2500, value);
    join_send(join, &request);
}

/* Expects that it leaves at once. */
static void send_early(struct join *join, const struct sender *sender, uint64_t number,
                       int64_t value)
{
    fixture_clear_recorded(&join->fixture);
    send_upload(join, sender, number, value);
    assert_int_equal(join->fixture.recorder.count, 1);
    fixture_advance(&join->fixture, 5 * SECOND);
}

/* Sends one with another sample, of a span that is known, which may wait. */
static void send_later(struct join *join, const struct sender *sender, uint64_t number,
                       int64_t value)
{
    struct request request;
    begin_upload(&request, sender, number);
    add_sample(&request, "worker", number * 5000 + 150, 16);
    add_sample(&request, "worker", number * 5000 + 2500, value);
    join_send(join, &request);
    fixture_advance(&join->fixture, 5 * SECOND);
}

/* profcol runs for longer than a window, and knows threads of another process. */
static void begin(struct join *join, const char *settings)
{
    join_init(join, settings);
    for (int i = 0; i < 2; i++) {
        send_span(join, &other, 1, 1, 2);
        fixture_advance(&join->fixture, i ? SECOND : 2 * WINDOW_NS);
    }
}

static void with_each(void (*test)(struct join *join))
{
    static const char *const settings[] = {"samples: {wait: 0s}, window: 60s",
                                           "samples: {wait: 2s}, window: 60s"};
    for (unsigned i = 0; i < 4; i++) {
        struct join join;
        begin(&join, settings[i % 2]);
        spanjoin_set_large_bytes(i / 2 ? 0 : SIZE_MAX);
        test(&join);
        fixture_deinit(&join.fixture);
        spanjoin_set_large_bytes(SIZE_MAX);
    }
}

/* Two uploads, a span of 100 ms, a third upload, and the span that all of them are of. Then one of
 * a later upload. */
static void run_long(struct join *join, const struct sender *sender, const char *expected)
{
    send_early(join, sender, 0, 1);
    send_early(join, sender, 1, 2);
    send_span(join, sender, 41, 10100, 10200);
    send_later(join, sender, 2, 4);
    send_span(join, sender, 42, 500, 14000);
    expect_costs(join, expected);
    send_later(join, sender, 3, 8);
    send_span(join, sender, 43, 16000, 18000);
    expect_costs(join, "8");
}

static void check_same(struct join *join)
{
    run_long(join, &same, "7");
}

static void the_first_span_gets_all(void **state)
{
    (void)state;
    with_each(check_same);
}

/* It is the first span of all. */
static void check_first(struct join *join)
{
    send_early(join, &same, 0, 1);
    send_early(join, &same, 1, 2);
    send_span(join, &same, 42, 500, 9000);
    expect_costs(join, "3");
}

static void nobody_was_known_before(void **state)
{
    (void)state;
    with_each(check_first);
    struct join join; /* profcol has just started */
    join_init(&join, "samples: {wait: 2s}");
    check_first(&join);
    fixture_deinit(&join.fixture);
}

/* Profiles of a process that is known by its service, by its container, or by its name in another
 * pid namespace: which one it is shows later. */
static void check_others(struct join *join)
{
    static const struct sender senders[] = {
        {"service.name=shop service.instance.id=a", "service.name=shop"},
        {"service.name=shop process.pid=#1 container.id=c", "process.pid=#28081 container.id=c"},
        {"service.name=shop process.pid=#1 service.instance.id=" LONG_ID "a",
         "service.name=shop process.pid=#28081 service.instance.id=" LONG_ID "a"}};
    for (size_t i = 0; i < sizeof senders / sizeof *senders; i++) {
        run_long(join, &senders[i], "4?");
        fixture_advance(&join->fixture, 2 * WINDOW_NS); /* it has ended */
        send_span(join, &other, 1, 1, 2);
    }
}

static void others_say_what_they_may_lack(void **state)
{
    (void)state;
    with_each(check_others);
}

/* The profiler knows the spans, so what it does not name is of none. */
static void check_named(struct join *join)
{
    const struct sender senders[] = {
        same, {"service.name=app service.instance.id=b", "service.name=profiles"}};
    for (size_t i = 0; i < 2; i++) {
        struct request request;
        for (uint64_t number = 0; number < 3; number++) {
            begin_upload(&request, &senders[i], number);
            add_sample(&request, "collector", number * 5000 + 1000, 100);
            add_linked(&request, 42 + i, 1);
            join_send(join, &request);
            fixture_advance(&join->fixture, 5 * SECOND);
        }
        send_span(join, &senders[i], 42 + i, 500, 11000);
        begin_upload(&request, &senders[i], 3);
        add_linked(&request, 42 + i, 1);
        join_send(join, &request);
        fixture_advance(&join->fixture, 5 * SECOND);
        send_span(join, &senders[i], 42 + i, 500, 11000);
        expect_costs(join, "4");
    }
}

static void samples_that_name_spans_are_no_reason(void **state)
{
    (void)state;
    with_each(check_named);
}

/* No span of it has come for longer than the window. */
static void check_idle(struct join *join)
{
    send_span(join, &same, 41, 100, 200);
    for (uint64_t i = 0; i < 15; i++) { /* its uploads go on */
        send_upload(join, &same, i, 1);
        fixture_advance(&join->fixture, 5 * SECOND);
    }
    for (uint64_t i = 15; i < 30; i++)
        send_early(join, &same, i, 1);
    send_span(join, &same, 42, 130500, 149000);
    expect_costs(join, "4");
}

static void an_idle_process_is_looked_after(void **state)
{
    (void)state;
    with_each(check_idle);
}

/* From the second upload on, profiles of the service may be of two processes. */
static void check_several(struct join *join)
{
    static const struct sender first = {"service.name=shop service.instance.id=a",
                                        "service.name=shop"},
                               second = {"service.name=shop service.instance.id=b", NULL};
    send_span(join, &first, 41, 100, 200);
    send_later(join, &first, 0, 1);
    send_span(join, &second, 42, 5100, 5200);
    fixture_clear_recorded(&join->fixture);
    send_upload(join, &first, 1, 2);
    fixture_advance(&join->fixture, 5 * SECOND);
    send_span(join, &first, 43, 500, 9000);
    expect_costs(join, "1?");
}

static void one_of_several_says_it(void **state)
{
    (void)state;
    with_each(check_several);
}

static struct left_samples *left_of(struct join *join)
{
    return span_index_left(((struct spanjoin_node *)join->traces->nodes[0])->join->index);
}

static double unjoined(struct join *join, const char *reason)
{
    char labels[80];
    snprintf(labels, sizeof labels, "spanjoin=\"spanjoin\",reason=\"%s\"", reason);
    return metrics_value(join->fixture.process.metrics, "profcol_spanjoin_samples_unjoined",
                         labels);
}

/* A process without spans is looked after for a window, and then no more. If a span comes all the
 * same, it says what it may lack. */
static void check_old(struct join *join)
{
    for (uint64_t i = 0; i < 40; i++) {
        if (i % 4 == 0)
            send_span(join, &other, 1, 1, 2);
        send_early(join, &same, i, 1);
    }
    assert_int_equal(left_samples_count(left_of(join)), 0);
    assert_int_equal(unjoined(join, "no_process"), 40);
    assert_int_equal(unjoined(join, "no_span_on_thread"), 0);
    send_span(join, &same, 41, 200100, 200200);
    send_later(join, &same, 40, 4);
    send_span(join, &same, 42, 190000, 204000);
    expect_costs(join, "4?");
    send_later(join, &same, 41, 8);
    send_span(join, &same, 43, 206000, 208000);
    expect_costs(join, "8");
}

static void old_processes_cost_nothing(void **state)
{
    (void)state;
    with_each(check_old);
}

/* While no spans name threads, samples count as before. */
static void without_threads_nothing_changes(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "samples: {wait: 2s}, window: 60s");
    for (uint64_t i = 0; i < 30; i++)
        send_early(&join, &same, i, 1);
    assert_int_equal(unjoined(&join, "no_id"), 30);
    assert_int_equal(left_samples_count(left_of(&join)), 0);
    fixture_deinit(&join.fixture);
}

/* The first upload names spans, too, and waits for one of them. Of its other samples it is known
 * when it leaves whose they are: spans that name their thread wait for that, and others do not. */
static void an_upload_that_waits_counts_when_it_leaves(void **state)
{
    (void)state;
    for (int with_thread = 0; with_thread < 2; with_thread++) {
        struct join join;
        struct request request;
        join_init(&join, "samples: {wait: 10s}, spans: {wait: 30s}, window: 60s");
        begin_upload(&request, &same, 0);
        add_linked(&request, 9, 4); /* never arrives */
        add_linked(&request, 42, 10);
        add_sample(&request, "worker", 2500, 20);
        join_send(&join, &request);
        if (with_thread)
            send_span(&join, &same, 42, 2000, 3000);
        else
            send_span_without_thread(&join, 42, 2000, 3000);
        assert_int_equal(join.fixture.recorder.count, !with_thread);
        if (with_thread)
            fixture_advance(&join.fixture, 11 * SECOND);
        expect_costs(&join, with_thread ? "30" : "10");
        fixture_deinit(&join.fixture);
    }
}

int main(void)
{
    log_init(LOG_ERROR + 1, LOG_CONSOLE);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_span_gets_all),
        cmocka_unit_test(nobody_was_known_before),
        cmocka_unit_test(others_say_what_they_may_lack),
        cmocka_unit_test(samples_that_name_spans_are_no_reason),
        cmocka_unit_test(an_idle_process_is_looked_after),
        cmocka_unit_test(one_of_several_says_it),
        cmocka_unit_test(old_processes_cost_nothing),
        cmocka_unit_test(without_threads_nothing_changes),
        cmocka_unit_test(an_upload_that_waits_counts_when_it_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

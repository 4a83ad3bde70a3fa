/* Processes that are restarted, and replicas that run side by side, where profiles do not say which
 * of them they are of (docs/spanjoin.md, "By thread and time"). */
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/spanjoin_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { THREAD = 31, NOTHING = 0, SPANS = 1000 };

/* A span has the number SPANS and its second, is of one second, and the process is known by these
 * attributes. It arrives at its end. */
static void send_span(struct join *join, const char *process, uint64_t second)
{
    struct request request;
    traces_begin(&request, "shop");
    traces_resource_string(&request, "telemetry.sdk.language", "cpp");
    request_resource(&request, process);
    SpanMessage *span = traces_span(&request, 7, SPANS + second, WALL + second * SECOND,
                                    WALL + (second + 1) * SECOND, "work");
    span_int(&request, span, "thread.id", THREAD);
    span_string(&request, span, "thread.name", "worker");
    join_send(join, &request);
}

/* Sends a sample that was taken in this second. */
static void send_sample_of(struct join *join, const char *process, int64_t thread, uint64_t second)
{
    struct request request;
    profiles_begin(&request);
    request_resource(&request, process);
    ProfileMessage *profile = profiles_profile(&request, "cpu", "nanoseconds");
    profile->time_unix_nano = WALL + second * SECOND;
    profile->duration_nano = SECOND;
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_int(&request, sample, "thread.id", thread);
    sample_string(&request, sample, "thread.name", "worker");
    sample_time(&request, sample, WALL + second * SECOND + SECOND / 2);
    sample_value(&request, sample, 10);
    join_send(join, &request);
}

static void send_sample(struct join *join, const char *process, uint64_t second)
{
    send_sample_of(join, process, THREAD, second);
}

/* Checks the span of the upload that left last. NOTHING: it has none. */
static void expect_joined(struct join *join, uint64_t span)
{
    struct request out;
    uint64_t trace_id, span_id = 0;
    size_t i = join->fixture.recorder.count - 1;
    assert_int_equal(join->fixture.recorder.items[i].signal, SIGNAL_PROFILES);
    request_read_profiles(&out, slice_of(join->fixture.recorder.items[i].bytes,
                                         join->fixture.recorder.items[i].size));
    sample_read_link(&out, request_sample(&out, 0, 0), &trace_id, &span_id);
    assert_int_equal(span_id, span);
    request_free(&out);
}

static unsigned unjoined(struct join *join, const char *reason)
{
    char labels[80];
    snprintf(labels, sizeof labels, "spanjoin=\"spanjoin\",reason=\"%s\"", reason);
    return (unsigned)metrics_value(join->fixture.process.metrics,
                                   "profcol_spanjoin_samples_unjoined", labels);
}

/* How a process that is restarted is known by its spans, and by its profiles. */
static const struct restart {
    const char *first, *second, *profiles;
} restarts[] = {
    {"service.instance.id=1", "service.instance.id=2", "service.name=shop"},
    /* a profiler that knows all processes of a host */
    {"service.instance.id=1 process.pid=#7 host.id=h",
     "service.instance.id=2 process.pid=#7 host.id=h", "process.pid=#7 host.id=h"},
    {"service.instance.id=1 process.pid=#7 host.id=h",
     "service.instance.id=2 process.pid=#7 host.id=h", "process.pid=#7 host.id=h host.name=web"},
    {"service.instance.id=1", "service.instance.id=2", "service.name=shop host.name=web"},
};
enum { RESTARTS = sizeof restarts / sizeof *restarts };

/* The first process sends a span every 5 s. */
static void run_first(struct join *join, const struct restart *restart)
{
    for (uint64_t second = 0; second <= 15; second += 5) {
        send_span(join, restart->first, second);
        send_sample(join, restart->profiles, second);
        expect_joined(join, SPANS + second);
        fixture_advance(&join->fixture, 5 * SECOND);
    }
}

static void process_goes_on_after_a_restart(void **state)
{
    (void)state;
    for (size_t i = 0; i < RESTARTS; i++) {
        struct join join;
        join_init(&join, "samples: {wait: 0s}");
        run_first(&join, &restarts[i]);
        fixture_advance(&join.fixture, 20 * SECOND); /* longer than it has ever been silent */
        send_span(&join, restarts[i].second, 40);
        send_sample(&join, restarts[i].profiles, 40);
        expect_joined(&join, SPANS + 40);
        send_sample(&join, restarts[i].profiles, 15); /* an upload that is late */
        expect_joined(&join, SPANS + 15);
        assert_int_equal(unjoined(&join, "ambiguous_thread"), 0);
        fixture_deinit(&join.fixture);
    }
}

/* It is not known whether the first one has ended. (Profiles that have shown that they are of that
 * one are taken to be so until then.) */
static void next_process_waits_until_the_first_one_is_silent(void **state)
{
    (void)state;
    for (size_t i = 0; i < RESTARTS - 1; i++) {
        struct join join;
        join_init(&join, "samples: {wait: 0s}");
        run_first(&join, &restarts[i]);
        send_span(&join, restarts[i].second, 20);
        send_sample(&join, restarts[i].profiles, 20);
        expect_joined(&join, NOTHING);
        assert_int_equal(unjoined(&join, "ambiguous_thread"), 1);
        assert_int_equal(unjoined(&join, "no_process"), 0);
        send_sample(&join, restarts[i].profiles, 15); /* when only the first one ran */
        expect_joined(&join, SPANS + 15);
        fixture_advance(&join.fixture, 20 * SECOND);
        send_sample(&join, restarts[i].profiles, 20);
        expect_joined(&join, SPANS + 20);
        fixture_deinit(&join.fixture);
    }
}

/* The samples that wait are joined when they leave. */
static void sample_waits_for_the_end_of_the_first_process(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "samples: {wait: 20s}");
    for (uint64_t second = 0; second <= 15; second += 5) {
        send_span(&join, restarts[0].first, second);
        fixture_advance(&join.fixture, 5 * SECOND);
    }
    send_span(&join, restarts[0].second, 20);
    send_sample(&join, restarts[0].profiles, 20);
    fixture_advance(&join.fixture, 21 * SECOND);
    expect_joined(&join, SPANS + 20);
    fixture_deinit(&join.fixture);
}

/* The first one sends spans again, so that both run. */
static void run_side_by_side(struct join *join, const struct restart *restart)
{
    run_first(join, restart);
    for (uint64_t second = 20; second < 60; second += 10) {
        send_span(join, restart->second, second);
        send_sample(join, restart->profiles, second);
        expect_joined(join, NOTHING);
        fixture_advance(&join->fixture, 5 * SECOND);
        send_span(join, restart->first, second + 5);
        send_sample(join, restart->profiles, second + 5);
        expect_joined(join, NOTHING);
        fixture_advance(&join->fixture, 5 * SECOND);
    }
}

static void replicas_side_by_side_are_not_taken_for_a_restart(void **state)
{
    (void)state;
    for (size_t i = 0; i < RESTARTS - 1; i++) {
        struct join join;
        join_init(&join, "samples: {wait: 0s}");
        run_side_by_side(&join, &restarts[i]);
        assert_int_equal(unjoined(&join, "ambiguous_thread"), 8);
        assert_int_equal(unjoined(&join, "no_process"), 0);
        /* The first one ends. That they ran side by side is forgotten after a window. */
        for (uint64_t second = 60; second <= 180; second += 20) {
            send_span(&join, restarts[i].second, second);
            send_sample(&join, restarts[i].profiles, second);
            expect_joined(&join, second == 180 ? SPANS + second : NOTHING);
            fixture_advance(&join.fixture, 20 * SECOND);
        }
        fixture_deinit(&join.fixture);
    }
}

/* The profiler of a host knows a program in a container by other numbers than its spans do. */
static void container_goes_on_after_a_restart(void **state)
{
    static const char *const spans[][2] = {
        {"service.instance.id=1 process.pid=#1 container.id=0b47fcfc7546",
         "service.instance.id=2 process.pid=#1 container.id=0b47fcfc7546"},
        {"process.pid=#1 container.id=0b47fcfc7546", "process.pid=#1 container.id=0b47fcfc7546"},
    };
    static const char *const profiles[] = {"process.pid=#3010 container.id=0b47fcfc7546 host.id=h",
                                           "process.pid=#3050 container.id=0b47fcfc7546 host.id=h"};
    static const int64_t threads[] = {3012, 3052};
    static const uint64_t restarts_at[] = {40, 10};
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct join join;
        uint64_t restart_s = restarts_at[i / 2];
        join_init(&join, "samples: {wait: 0s}");
        for (uint64_t second = 0; second < restart_s + 40; second += 5) {
            bool is_second = second >= restart_s;
            send_span(&join, spans[i % 2][is_second], second);
            send_sample_of(&join, profiles[is_second], threads[is_second], second);
            if (second < restart_s || second >= restart_s + 20)
                expect_joined(&join, SPANS + second);
            fixture_advance(&join.fixture, 5 * SECOND);
        }
        fixture_deinit(&join.fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(process_goes_on_after_a_restart),
        cmocka_unit_test(next_process_waits_until_the_first_one_is_silent),
        cmocka_unit_test(sample_waits_for_the_end_of_the_first_process),
        cmocka_unit_test(container_goes_on_after_a_restart),
        cmocka_unit_test(replicas_side_by_side_are_not_taken_for_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

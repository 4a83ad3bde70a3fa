#include "extensions/explore/join_late.h"
#include "tests/unit/expect_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NS_PER_S INT64_C(1000000000)

/* Samples with lags around these seconds, and requests that wait 10 s. */
static struct join_figures figures_with(const uint64_t counts[10])
{
    static const double bounds[] = {-60, -30, -15, -13, -11, -10, -5, 0, 5};
    struct join_figures figures = {
        .id = "spanjoin", .window_ns = 120 * NS_PER_S, .wait_ns = 10 * NS_PER_S, .bound_count = 9};
    memcpy(figures.bounds, bounds, sizeof bounds);
    memcpy(figures.counts, counts, 10 * sizeof *counts);
    return figures;
}

static void expect_advice(const struct join_figures *figures, const char *expected)
{
    struct text out = {0};
    struct json_text json = {.out = &out};
    json_text_open(&json, NULL, '[');
    join_advice_write(figures, &json);
    json_text_close(&json, ']');
    expect_text(text_string(&out), expected);
    text_deinit(&out);
}

static void nothing_has_arrived(void **state)
{
    (void)state;
    struct join_figures figures = {.id = "spanjoin", .window_ns = NS_PER_S};
    expect_advice(&figures, "[]");
}

static void all_spans_come_in_time(void **state)
{
    (void)state;
    struct join_figures figures = figures_with((uint64_t[10]){0, 0, 0, 0, 0, 0, 50, 50, 900, 0});
    figures.joined = 1000;
    expect_advice(&figures, "[]");
}

static void a_longer_wait_joins_late_spans(void **state)
{
    (void)state;
    struct join_figures figures = figures_with((uint64_t[10]){0, 0, 0, 0, 140, 0, 60, 300, 500, 0});
    figures.joined = 860;
    expect_advice(&figures,
                  "[{\"text\":\"14 % of the spans that samples name come 11 to 13 s after their "
                  "samples, and requests wait 10 s. samples.wait: 13s would join them.\","
                  "\"setting\":\"processors.spanjoin.samples.wait\",\"value\":\"13s\"}]");
}

/* The few that come minutes later would need a wait that costs more than it brings. */
static void the_wait_covers_most_not_all(void **state)
{
    (void)state;
    struct join_figures figures = figures_with((uint64_t[10]){3, 2, 0, 0, 95, 0, 0, 0, 900, 0});
    figures.joined = 900;
    expect_advice(&figures,
                  "[{\"text\":\"10 % of the spans that samples name come 11 to 13 s after their "
                  "samples, and requests wait 10 s. samples.wait: 13s would join them.\","
                  "\"setting\":\"processors.spanjoin.samples.wait\",\"value\":\"13s\"}]");
}

static void requests_that_do_not_wait(void **state)
{
    (void)state;
    struct join_figures figures = figures_with((uint64_t[10]){0, 0, 0, 0, 0, 0, 0, 500, 500, 0});
    figures.wait_ns = 0;
    figures.joined = 500;
    expect_advice(&figures,
                  "[{\"text\":\"50 % of the spans that samples name come 0 to 5 s after their "
                  "samples, and requests do not wait for them. samples.wait: 5s would join "
                  "them.\",\"setting\":\"processors.spanjoin.samples.wait\",\"value\":\"5s\"}]");
}

/* The first bucket has no end, so no wait is known to cover it. */
static void samples_without_bound(void **state)
{
    (void)state;
    struct join_figures figures = figures_with((uint64_t[10]){500, 0, 0, 0, 0, 0, 0, 0, 500, 0});
    figures.joined = 500;
    expect_advice(&figures, "[]");
}

static void spans_have_left_the_window(void **state)
{
    (void)state;
    struct join_figures figures = figures_with((uint64_t[10]){0});
    figures.joined = 900;
    figures.unjoined[JOIN_REASON_EXPIRED] = 100;
    expect_advice(&figures,
                  "[{\"text\":\"10 % of the samples come after their span has left the window. A "
                  "larger one joins them, and needs more memory.\","
                  "\"setting\":\"processors.spanjoin.window\",\"value\":\"4m0s\"}]");
}

/* It names a window that has nearly all of them, as far as one can. */
static void the_join_has_forgotten_the_spans(void **state)
{
    (void)state;
    struct join_figures figures = figures_with((uint64_t[10]){0});
    figures.joined = 9900;
    figures.unjoined[JOIN_REASON_EXPIRED] = 100;
    figures.late[4] = 80; /* until 5 min */
    figures.late[7] = 4;
    figures.late[JOIN_LATE_STEPS - 1] = 2;
    expect_advice(&figures,
                  "[{\"text\":\"1 % of the samples come after their span has left the window. A "
                  "larger one joins them, and needs more memory.\","
                  "\"setting\":\"processors.spanjoin.window\",\"value\":\"5m0s\"}]");
}

static void late_samples_are_expired(void **state)
{
    (void)state;
    struct join_late late = {.count = 0};
    struct join_figures figures = figures_with((uint64_t[10]){0});
    figures.unjoined[JOIN_REASON_NOT_FOUND] = 3;
    join_late_add(&late, "spanjoin", 151 * NS_PER_S);
    join_late_add(&late, "spanjoin", 300 * NS_PER_S);
    join_late_add(&late, "spanjoin/other", 300 * NS_PER_S);
    join_late_apply(&late, &figures);
    assert_int_equal(figures.late[4], 2);
    assert_int_equal(figures.unjoined[JOIN_REASON_EXPIRED], 2);
    assert_int_equal(figures.unjoined[JOIN_REASON_NOT_FOUND], 1);
}

/* A store that has counted more than the metrics have: these change a little later. */
static void late_samples_are_at_most_all(void **state)
{
    (void)state;
    struct join_late late = {.count = 0};
    struct join_figures figures = figures_with((uint64_t[10]){0});
    figures.unjoined[JOIN_REASON_NOT_FOUND] = 1;
    for (int i = 0; i < 3; i++)
        join_late_add(&late, "spanjoin", (uint64_t)(2 + i) * 100000 * NS_PER_S);
    join_late_apply(&late, &figures);
    assert_int_equal(figures.late[JOIN_LATE_STEPS - 1], 1);
    assert_int_equal(figures.unjoined[JOIN_REASON_EXPIRED], 1);
    assert_int_equal(figures.unjoined[JOIN_REASON_NOT_FOUND], 0);
}

static void only_so_many_joins_are_counted(void **state)
{
    (void)state;
    struct join_late late = {.count = 0};
    char id[120];
    for (int i = 0; i < 2 * JOIN_LATE_MAX; i++) {
        snprintf(id, sizeof id, "spanjoin/%0*d", 1 + i % 2 * 100, i); /* long ones are cut */
        join_late_add(&late, id, 200 * NS_PER_S);
    }
    assert_int_equal(late.count, JOIN_LATE_MAX);
}

static void other_reasons_name_their_setting(void **state)
{
    (void)state;
    struct join_figures figures = figures_with((uint64_t[10]){0});
    figures.joined = 100;
    figures.evicted = 7;
    figures.unjoined[JOIN_REASON_NO_ID] = 800;
    figures.unjoined[JOIN_REASON_NOT_FOUND] = 50;
    figures.unjoined[JOIN_REASON_OVERFLOW] = 50;
    expect_advice(
        &figures,
        "[{\"text\":\"5 % of the samples left early, because there was no memory to wait in. A "
        "larger max_held_mib, or a shorter samples.wait, keeps them.\"},"
        "{\"text\":\"7 spans left the index before their window was over, because it was full. A "
        "larger max_spans keeps them.\"},"
        "{\"text\":\"80 % of the samples name no span. Idle threads have none; if the services are "
        "busy, their profilers do not put span ids into samples: docs/clients has the setting for "
        "each language.\"}]");
}

static void threads_whose_span_is_not_sure(void **state)
{
    (void)state;
    struct join_figures figures = figures_with((uint64_t[10]){0});
    figures.joined = 95;
    figures.unjoined[JOIN_REASON_AMBIGUOUS_THREAD] = 5;
    expect_advice(
        &figures,
        "[{\"text\":\"5 % of the samples name no span, and it is not sure which one ran on their "
        "thread: requests change threads, threads share a name, or the clocks of spans and samples "
        "differ by an unknown time (profcol_spanjoin_clocks). A profiler that puts span ids into "
        "samples joins them: docs/clients has the setting for each language.\"}]");
}

/* It is not said that their profilers lack span ids. */
static void threads_without_spans(void **state)
{
    (void)state;
    struct join_figures figures = figures_with((uint64_t[10]){0});
    figures.joined = 20;
    figures.unjoined[JOIN_REASON_NO_PROCESS] = 80;
    expect_advice(
        &figures,
        "[{\"text\":\"80 % of the samples name no span, and are of processes without "
        "spans that name their threads. If these processes have spans, nothing says so: "
        "profiles and spans both need the same service.name, service.instance.id, or "
        "process.pid and in containers container.id (docs/spanjoin.md, The same process), "
        "and spans thread.id or thread.name.\"}]");
    figures.unjoined[JOIN_REASON_NO_PROCESS] = 0;
    figures.unjoined[JOIN_REASON_NO_SPAN_ON_THREAD] = 80;
    expect_advice(&figures,
                  "[{\"text\":\"80 % of the samples name no span, and no span of their process ran "
                  "on their threads; none was joined by thread. Spans and samples name their "
                  "threads differently, samples.wait is shorter than spans take to arrive, samples "
                  "arrive after the window, or the clocks of both differ by more than 12 s.\"}]");
    figures.by_thread = 1;
    expect_advice(&figures, "[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_has_arrived),
        cmocka_unit_test(all_spans_come_in_time),
        cmocka_unit_test(a_longer_wait_joins_late_spans),
        cmocka_unit_test(the_wait_covers_most_not_all),
        cmocka_unit_test(requests_that_do_not_wait),
        cmocka_unit_test(samples_without_bound),
        cmocka_unit_test(spans_have_left_the_window),
        cmocka_unit_test(the_join_has_forgotten_the_spans),
        cmocka_unit_test(late_samples_are_expired),
        cmocka_unit_test(late_samples_are_at_most_all),
        cmocka_unit_test(only_so_many_joins_are_counted),
        cmocka_unit_test(other_reasons_name_their_setting),
        cmocka_unit_test(threads_whose_span_is_not_sure),
        cmocka_unit_test(threads_without_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

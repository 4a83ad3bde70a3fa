/* Clocks that differ by seconds (core/data/clock_search.h). */
#include "core/data/clock_search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS INT64_C(1000000)

/* Times are in milliseconds. */
enum { SPANS = 400, BEGIN = 20000 };

static uint64_t seed;

static int64_t below(int64_t limit)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((seed >> 33) % (uint64_t)limit);
}

/* A thread that serves requests, and samples of it. */
struct traffic {
    int64_t shortest; /* a request takes so long, */
    int64_t longer;   /* or longer, by less than this */
    int64_t pause;    /* after it, at least; and at most twice as long */
    int64_t period;   /* requests begin at its multiples; 0: not */
    bool is_wall;     /* samples are taken in pauses, too */
    int64_t after;    /* all of them in the pause, so long after the span; 0: inside */
    int outside;      /* one of so many is in the pause; 0: none */
};

static const struct traffic web = {.shortest = 20, .longer = 700, .pause = 200};

struct scene {
    struct thread_timeline timeline;
    int64_t samples[SPANS];
};

static void add_span(struct scene *scene, uint64_t number, int64_t start, int64_t end)
{
    struct timeline_span span = {.start_ns = (uint64_t)(start * MS),
                                 .end_ns = (uint64_t)(end * MS)};
    memcpy(span.key.trace_id, &number, sizeof number);
    memcpy(span.key.span_id, &number, sizeof number);
    assert_true(timeline_add(&scene->timeline, &span, 1));
}

static void make_scene(struct scene *scene, const struct traffic *traffic)
{
    int64_t time = BEGIN;
    seed = 1;
    *scene = (struct scene){.timeline = {.count = 0}};
    for (uint64_t i = 0; i < SPANS; i++) {
        if (traffic->period > 0)
            time = (time / traffic->period + 1) * traffic->period;
        int64_t duration = traffic->shortest + below(traffic->longer);
        int64_t pause = traffic->pause + below(traffic->pause);
        add_span(scene, i + 1, time, time + duration);
        scene->samples[i] = time + below(duration + (traffic->is_wall ? pause : 0));
        if (traffic->after > 0)
            scene->samples[i] = time + duration + traffic->after + below(traffic->pause / 4);
        if (traffic->outside > 0 && i % (uint64_t)traffic->outside == 0)
            scene->samples[i] = time + duration + below(pause);
        time += duration + pause;
    }
}

static const struct clock_estimate unknown = {.is_known = false};

static struct clock_estimate estimate_of(int64_t offset)
{
    return (struct clock_estimate){true, offset * MS};
}

/* The samples vote, with a clock that is late, until there is a verdict. */
static enum clock_verdict run(const struct traffic *traffic, int64_t late, int64_t present,
                              struct clock_estimate estimate, int64_t *offset_out)
{
    static struct scene scene;
    struct clock_search *search = calloc(1, sizeof *search);
    enum clock_verdict verdict = CLOCK_OPEN;
    make_scene(&scene, traffic);
    for (int round = 0; round < 4 && verdict == CLOCK_OPEN; round++)
        for (int i = 0; i < SPANS && verdict == CLOCK_OPEN; i++) {
            clock_search_vote(search, &scene.timeline, (uint64_t)((scene.samples[i] + late) * MS));
            verdict = clock_search_decide(search, present * MS, estimate, offset_out);
        }
    while (scene.timeline.count > 0)
        timeline_drop_first(&scene.timeline);
    free(search);
    return verdict;
}

static void test_clocks_that_agree(void **state)
{
    (void)state;
    int64_t offset;
    static const struct traffic cases[] = {
        {.shortest = 20, .longer = 700, .pause = 200},
        {.shortest = 1, .longer = 5, .pause = 10},
        {.shortest = 5000, .longer = 9000, .pause = 3000},
        {.shortest = 20, .longer = 700, .pause = 200, .is_wall = true},
        {.shortest = 300, .longer = 100, .pause = 300, .period = 1000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run(&cases[i], 0, 0, unknown, &offset), CLOCK_STANDS);
        /* Also if spans or samples come by a slow way. */
        if (!cases[i].is_wall)
            assert_int_equal(run(&cases[i], 0, 0, estimate_of(-5000), &offset), CLOCK_STANDS);
    }
}

/* Returns how many samples vote until the clock stands. */
static uint32_t samples_until_it_stands(const struct traffic *traffic)
{
    static struct scene scene;
    static struct clock_search search;
    int64_t offset;
    make_scene(&scene, traffic);
    search = (struct clock_search){.samples = 0};
    for (int i = 0;; i++) {
        assert_true(i < SPANS);
        clock_search_vote(&search, &scene.timeline, (uint64_t)(scene.samples[i] * MS));
        enum clock_verdict verdict = clock_search_decide(&search, 0, unknown, &offset);
        if (verdict == CLOCK_STANDS)
            break;
        assert_int_equal(verdict, CLOCK_OPEN);
    }
    while (scene.timeline.count > 0)
        timeline_drop_first(&scene.timeline);
    return search.samples;
}

/* If hardly any sample is outside of spans, no other offset can be much better. */
static void test_few_samples_are_enough_if_all_are_inside(void **state)
{
    (void)state;
    static const struct traffic some = {.shortest = 20, .longer = 700, .pause = 200, .outside = 40};
    static const struct traffic fifth = {.shortest = 20, .longer = 700, .pause = 200, .outside = 5};
    assert_in_range(samples_until_it_stands(&web), 128, 160);
    assert_in_range(samples_until_it_stands(&some), 128, 160);
    assert_in_range(samples_until_it_stands(&fifth), 256, 300);
}

static void test_a_clock_that_is_wrong(void **state)
{
    (void)state;
    static const int64_t lates[] = {-11000, -3000, -1000, 1000, 3000, 11000};
    for (size_t i = 0; i < sizeof lates / sizeof *lates; i++) {
        int64_t offset = 0;
        struct clock_estimate about = estimate_of(-lates[i] + 300);
        assert_int_equal(run(&web, lates[i], 0, unknown, &offset), CLOCK_MOVES);
        assert_in_range(offset / MS + lates[i] + 100, 0, 200);
        assert_int_equal(run(&web, lates[i], 0, about, &offset), CLOCK_MOVES);
        assert_in_range(offset / MS + lates[i] + 100, 0, 200);
        /* It is set right again. */
        assert_int_equal(run(&web, 0, -lates[i], estimate_of(100), &offset), CLOCK_MOVES);
        assert_in_range(offset / MS + 100, 0, 200);
        assert_int_equal(run(&web, lates[i], -lates[i], about, &offset), CLOCK_STANDS);
    }
}

/* A program that also works outside of spans. */
static void test_a_wrong_clock_with_work_outside(void **state)
{
    (void)state;
    static const struct traffic third = {.shortest = 20, .longer = 300, .pause = 200, .outside = 3};
    static const int64_t lates[] = {-3000, -1000, 1000, 3000};
    for (size_t i = 0; i < sizeof lates / sizeof *lates; i++) {
        int64_t offset = 0;
        assert_int_equal(run(&third, lates[i], 0, unknown, &offset), CLOCK_MOVES);
        assert_in_range(offset / MS + lates[i] + 100, 0, 200);
        assert_int_equal(run(&third, lates[i], 0, estimate_of(-lates[i] + 300), &offset),
                         CLOCK_MOVES);
        assert_in_range(offset / MS + lates[i] + 100, 0, 200);
    }
    int64_t offset;
    assert_int_equal(run(&third, 0, 0, unknown, &offset), CLOCK_STANDS);
    assert_int_equal(run(&third, 0, 0, estimate_of(-2000), &offset), CLOCK_STANDS);
}

/* A thread that works for seconds after each span, outside of all: the clocks agree. */
static void test_code_that_runs_after_spans(void **state)
{
    (void)state;
    static const struct traffic query = {
        .shortest = 3000, .longer = 1000, .pause = 2000, .after = 100};
    int64_t offset;
    assert_int_equal(run(&query, 0, 0, estimate_of(200), &offset), CLOCK_STANDS);
}

/* What arrives shows a difference, the samples another one. */
static void test_a_difference_that_is_not_sure(void **state)
{
    (void)state;
    static const struct traffic query = {
        .shortest = 3000, .longer = 1000, .pause = 2000, .after = 100};
    static const struct traffic periodic = {
        .shortest = 300, .longer = 1, .pause = 300, .period = 1000};
    int64_t offset;
    assert_int_equal(run(&query, 0, 0, estimate_of(9000), &offset), CLOCK_UNCLEAR);
    assert_int_equal(run(&periodic, 2500, 0, unknown, &offset), CLOCK_UNCLEAR);
    /* With both, one period is right. */
    assert_int_equal(run(&periodic, 2500, 0, estimate_of(-2400), &offset), CLOCK_MOVES);
    assert_in_range(offset / MS + 2500 + 100, 0, 200);
}

/* Beyond what is looked for, nothing is found. */
static void test_a_clock_that_is_far_away(void **state)
{
    (void)state;
    int64_t offset;
    assert_int_equal(run(&web, 15000, 0, estimate_of(-15000), &offset), CLOCK_STANDS);
    assert_int_equal(run(&web, 86400000, 0, unknown, &offset), CLOCK_OPEN);
}

static void test_times_that_are_none(void **state)
{
    (void)state;
    struct clock_search *search = calloc(1, sizeof *search);
    struct thread_timeline timeline = {.count = 0};
    int64_t offset;
    clock_search_vote(search, &timeline, UINT64_C(20000000000));
    struct timeline_span span = {.start_ns = 0, .end_ns = UINT64_MAX};
    assert_true(timeline_add(&timeline, &span, 1));
    clock_search_vote(search, &timeline, 0);
    clock_search_vote(search, &timeline, UINT64_MAX);
    clock_search_vote(search, &timeline, INT64_MAX);
    assert_int_equal(search->samples, 0);
    clock_search_vote(search, &timeline, INT64_MAX - CLOCK_SEARCH_MAX_NS - 1);
    clock_search_vote(search, &timeline, UINT64_C(12000000000));
    assert_int_equal(search->samples, 2);
    assert_int_equal(clock_search_decide(search, 0, estimate_of(INT64_MAX / MS), &offset),
                     CLOCK_OPEN);
    assert_int_equal(
        clock_search_decide(search, INT64_MIN / 2, estimate_of(INT64_MIN / MS), &offset),
        CLOCK_OPEN);
    timeline_drop_first(&timeline);
    free(search);
}

static void test_what_arrivals_show(void **state)
{
    (void)state;
    struct clock_lag spans = {.since_ns = 0}, samples = {.since_ns = 0};
    uint64_t now_ns = UINT64_C(1000000000000000000), second_ns = UINT64_C(1000000000);
    clock_lag_add(&spans, now_ns, 0);
    assert_false(clock_lag_compare(&spans, &samples).is_known);
    clock_lag_add(&spans, now_ns - second_ns, now_ns);
    assert_false(clock_lag_compare(&spans, &samples).is_known);
    clock_lag_add(&samples, now_ns + 3 * second_ns, now_ns); /* it is ahead */
    assert_true(clock_lag_compare(&spans, &samples).is_known);
    assert_int_equal(clock_lag_compare(&spans, &samples).offset_ns, -4 * (int64_t)second_ns);
    clock_lag_add(&spans, now_ns - 5 * second_ns, now_ns); /* the least counts, */
    assert_int_equal(clock_lag_compare(&spans, &samples).offset_ns, -4 * (int64_t)second_ns);
    now_ns += 61 * second_ns; /* for a minute or two */
    clock_lag_add(&samples, now_ns - 2 * second_ns, now_ns);
    assert_int_equal(clock_lag_compare(&spans, &samples).offset_ns, -4 * (int64_t)second_ns);
    now_ns += 61 * second_ns;
    clock_lag_add(&samples, now_ns - 2 * second_ns, now_ns);
    assert_int_equal(clock_lag_compare(&spans, &samples).offset_ns, (int64_t)second_ns);
}

/* Requests that arrive much sooner than those before. */
static void test_a_clock_that_is_set(void **state)
{
    (void)state;
    struct clock_lag lag = {.since_ns = 0};
    uint64_t now_ns = UINT64_C(1000000000000000000), second_ns = UINT64_C(1000000000);
    for (int i = 0; i < 20; i++, now_ns += second_ns)
        assert_false(clock_lag_add(&lag, now_ns - (uint64_t)(1 + i % 3) * second_ns, now_ns));
    assert_false(clock_lag_add(&lag, now_ns - second_ns / 2, now_ns));
    assert_true(clock_lag_add(&lag, now_ns + second_ns, now_ns));
    assert_false(clock_lag_add(&lag, now_ns + second_ns, now_ns));
    /* The first ones may have been slow. */
    lag = (struct clock_lag){.since_ns = 0};
    assert_false(clock_lag_add(&lag, now_ns - 9 * second_ns, now_ns));
    assert_false(clock_lag_add(&lag, now_ns - second_ns, now_ns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clocks_that_agree),
        cmocka_unit_test(test_few_samples_are_enough_if_all_are_inside),
        cmocka_unit_test(test_a_clock_that_is_wrong),
        cmocka_unit_test(test_a_wrong_clock_with_work_outside),
        cmocka_unit_test(test_code_that_runs_after_spans),
        cmocka_unit_test(test_a_difference_that_is_not_sure),
        cmocka_unit_test(test_a_clock_that_is_far_away),
        cmocka_unit_test(test_times_that_are_none),
        cmocka_unit_test(test_what_arrivals_show),
        cmocka_unit_test(test_a_clock_that_is_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

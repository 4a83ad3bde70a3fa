/* The offset between the clock of samples and that of spans (core/data/clock_offset.h). */
#include "core/data/clock_offset.h"

#include "core/base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

enum { SPANS = 2000, BEGIN = 10000, SAMPLES_MAX = 8 * SPANS };

static uint64_t seed;

static uint64_t below(uint64_t limit)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % limit;
}

/* Times are in milliseconds. */
static void add_span(struct thread_timeline *timeline, uint64_t number, uint64_t start,
                     uint64_t end)
{
    struct timeline_span span = {.start_ns = start * MS, .end_ns = end * MS};
    memcpy(span.key.trace_id, &number, sizeof number);
    memcpy(span.key.span_id, &number, sizeof number);
    assert_true(timeline_add(timeline, &span, 1));
}

static void ask_all(struct clock_offset *clock, const struct thread_timeline *timeline,
                    const uint64_t *samples, size_t count)
{
    for (size_t i = 0; i < count; i++)
        clock_offset_vote(clock, timeline, samples[i] * MS + MS / 2);
    for (size_t i = 0; i < count && clock_offset_find(clock); i++)
        clock_offset_check(clock, timeline, samples[i] * MS + MS / 2);
}

static int64_t offset_of(const struct clock_offset *clock)
{
    int64_t offset_ns;
    enum offset_verdict verdict = clock_offset_judge(clock, &offset_ns);
    assert_true((verdict == CLOCK_IS_OFF) == (offset_ns != 0));
    return offset_ns;
}

/* A thread that serves one request after another, for 5 to 40 ms each, with pauses. The sample of
 * each has a clock that is `late` milliseconds late, and some samples are in the pauses. */
static void run_thread_on(struct clock_offset *clock, int64_t late, uint64_t pause_max)
{
    struct thread_timeline timeline = {.count = 0};
    uint64_t samples[SPANS], time = BEGIN;
    seed = 1;
    for (uint64_t i = 0; i < SPANS; i++) {
        uint64_t duration = 5 + below(36);
        add_span(&timeline, i, time, time + duration);
        uint64_t pause = 1 + below(pause_max);
        samples[i] = time + below(duration + (i % 10 == 0 ? pause : 0)) + (uint64_t)late;
        time += duration + pause;
    }
    ask_all(clock, &timeline, samples, SPANS);
    while (timeline.count > 0)
        timeline_drop_first(&timeline);
}

static struct clock_offset run_thread(int64_t late, uint64_t pause_max)
{
    struct clock_offset clock = {.samples = 0};
    run_thread_on(&clock, late, pause_max);
    return clock;
}

static void test_clocks_that_agree(void **state)
{
    (void)state;
    for (uint64_t pause = 1; pause < 100; pause *= 3) {
        struct clock_offset clock = run_thread(0, pause);
        assert_int_equal(offset_of(&clock), 0);
        assert_true(clock.samples > SPANS * 9 / 10);
    }
}

static void test_a_clock_that_is_wrong(void **state)
{
    (void)state;
    static const int64_t lates[] = {-240, -50, -8, 8, 50, 240};
    for (size_t i = 0; i < sizeof lates / sizeof *lates; i++) {
        struct clock_offset clock = run_thread(lates[i], 20);
        int64_t wrong_ns = offset_of(&clock) + lates[i] * (int64_t)MS;
        assert_in_range(wrong_ns + (int64_t)MS, 0, 2 * MS);
    }
}

/* They look like code that runs directly before a span. */
static void test_small_offsets_are_not_used(void **state)
{
    (void)state;
    struct clock_offset clock = run_thread(3, 20);
    assert_int_equal(offset_of(&clock), 0);
}

/* Unless the clocks are known to differ. */
static void test_what_is_left_of_a_difference(void **state)
{
    (void)state;
    struct clock_offset clock = {.is_rest = true};
    run_thread_on(&clock, 3, 20);
    assert_in_range(-offset_of(&clock), 2 * MS, 4 * MS);
    clock = (struct clock_offset){.is_rest = true};
    run_thread_on(&clock, 0, 20);
    assert_int_equal(offset_of(&clock), 0);
}

/* One of a second and one of a day are none that it looks for: no offset is better than another. */
static void test_large_offsets_are_not_found(void **state)
{
    (void)state;
    struct clock_offset clock = run_thread(-1000, 20);
    assert_int_equal(offset_of(&clock), 0);
    clock = run_thread(-270, 20);
    assert_int_equal(offset_of(&clock), 0);
    clock = run_thread(86400000, 20);
    assert_int_equal(offset_of(&clock), 0);
    assert_int_equal(clock.samples, 0);
}

/* The clock is set while the process runs. */
static void test_the_estimate_follows(void **state)
{
    (void)state;
    struct clock_offset clock = run_thread(50, 20), later = run_thread(0, 20);
    assert_in_range(-offset_of(&clock), 49 * MS, 51 * MS);
    for (unsigned rounds = 0; offset_of(&clock) != 0; rounds++) {
        assert_true(rounds < 30);
        for (uint32_t i = 0; i <= CLOCK_OFFSETS; i++)
            clock.votes[i] += later.votes[i];
        clock.samples += later.samples;
        clock.newer += later.samples;
        clock_offset_find(&clock);
    }
}

/* Where nothing looks wrong, fewer votes are enough. */
static void test_when_it_is_settled(void **state)
{
    (void)state;
    struct clock_offset clock = run_thread(0, 20);
    assert_in_range(clock.samples, 1024, SPANS);
    assert_true(clock_offset_is_settled(&clock));
    clock = run_thread(8, 20);
    assert_false(clock_offset_is_settled(&clock));
    clock = (struct clock_offset){.is_rest = true};
    run_thread_on(&clock, 0, 20);
    assert_false(clock_offset_is_settled(&clock));
}

/* That it was set is known: votes from before count little. */
static void test_votes_that_are_in_doubt(void **state)
{
    (void)state;
    struct clock_offset clock = {.samples = 0};
    for (int i = 0; i < 8; i++)
        run_thread_on(&clock, 50, 20);
    assert_true(clock_offset_is_settled(&clock));
    clock_offset_doubt(&clock);
    assert_false(clock_offset_is_settled(&clock));
    run_thread_on(&clock, -100, 20);
    assert_in_range(offset_of(&clock), 99 * MS, 101 * MS);
}

/* The ends of a thread's known spans say nothing: others may be missing there. */
static void test_only_between_known_spans(void **state)
{
    (void)state;
    struct thread_timeline timeline = {.count = 0};
    struct clock_offset clock = {.samples = 0};
    struct timeline_span span = {.start_ns = BEGIN * MS, .end_ns = (BEGIN + 1000) * MS};
    clock_offset_vote(&clock, &timeline, BEGIN * MS);
    assert_true(timeline_add(&timeline, &span, 1));
    static const uint64_t unknown[] = {0, 1, BEGIN, BEGIN + 249, BEGIN + 751, BEGIN + 2000};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        clock_offset_vote(&clock, &timeline, unknown[i] * MS);
    clock_offset_vote(&clock, &timeline, UINT64_MAX);
    assert_int_equal(clock.samples, 0);
    clock_offset_vote(&clock, &timeline, (BEGIN + 250) * MS);
    clock_offset_vote(&clock, &timeline, (BEGIN + 750) * MS);
    assert_int_equal(clock.samples, 2);
    assert_int_equal(offset_of(&clock), 0);
    timeline_drop_first(&timeline);
}

/* Returns the verdict after these samples, and empties the timeline. */
static enum offset_verdict judge_all(struct thread_timeline *timeline, const uint64_t *samples,
                                     size_t count)
{
    struct clock_offset clock = {.samples = 0};
    int64_t offset_ns;
    ask_all(&clock, timeline, samples, count);
    while (timeline->count > 0)
        timeline_drop_first(timeline);
    return clock_offset_judge(&clock, &offset_ns);
}

/* Requests that wait inside of their spans, and work after them or before them. */
struct program {
    uint64_t span_min, span_max; /* milliseconds, as all times here */
    uint64_t work;               /* outside of each span */
    uint64_t idle;               /* at most, until the next one */
    unsigned inside;             /* spans of 100 that have a sample inside, anywhere */
    bool is_before;              /* the work */
    bool is_undecided;           /* the clock could be off as well */
};

static enum offset_verdict run_program(const struct program *program)
{
    struct thread_timeline timeline = {.count = 0};
    uint64_t samples[SAMPLES_MAX], time = BEGIN;
    size_t count = 0;
    seed = 1;
    for (uint64_t i = 0; i < SPANS; i++) {
        uint64_t work = time + below(5);
        uint64_t start = time + (program->is_before ? program->work : 0);
        uint64_t end = start + program->span_min + below(program->span_max - program->span_min + 1);
        add_span(&timeline, i, start, end);
        if (!program->is_before)
            work = end + below(5);
        for (uint64_t at = work; at < work + program->work; at += 10)
            samples[count++] = at;
        if (below(100) < program->inside)
            samples[count++] = start + below(end - start);
        time = end + (program->is_before ? 0 : program->work) + 5 + below(program->idle);
    }
    return judge_all(&timeline, samples, count);
}

static void test_programs_that_work_outside_of_spans(void **state)
{
    (void)state;
    static const struct program programs[] = {
        {100, 150, .work = 60, .idle = 200},
        {100, 150, .work = 60, .idle = 200, .inside = 50},
        {100, 150, .work = 60, .idle = 200, .is_before = true},
        {100, 150, .work = 20, .idle = 200, .inside = 100},
        {20, 100, .work = 40, .idle = 100, .inside = 20},
        {30, 30, .work = 20, .idle = 1},
        {10, 15, .work = 15, .idle = 100, .is_before = true, .is_undecided = true},
    };
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        assert_int_equal(run_program(&programs[i]),
                         programs[i].is_undecided ? CLOCK_UNKNOWN : CLOCK_AGREES);
}

/* Each request waits first, then works to the end of its span and some time longer. Times are in
 * milliseconds. */
static enum offset_verdict run_late_work(uint64_t duration, uint64_t wait, uint64_t longer)
{
    struct thread_timeline timeline = {.count = 0};
    uint64_t samples[SAMPLES_MAX], time = BEGIN;
    size_t count = 0;
    seed = 1;
    for (uint64_t i = 0; i < SPANS; i++) {
        uint64_t end = time + duration * 3 / 4 + below(duration / 2);
        add_span(&timeline, i, time, end);
        for (uint64_t at = time + wait + below(20); at < end + longer && count < SAMPLES_MAX;
             at += 20)
            samples[count++] = at;
        time = end + longer + 5 + below(300);
    }
    return judge_all(&timeline, samples, count);
}

static void test_work_that_begins_late_and_ends_late(void **state)
{
    (void)state;
    assert_int_equal(run_late_work(100, 60, 20), CLOCK_AGREES);
    assert_int_equal(run_late_work(200, 100, 30), CLOCK_AGREES);
    assert_int_equal(run_late_work(500, 200, 50), CLOCK_AGREES);
    /* It waits as long as it works after the span: that is the same as a wrong clock. */
    assert_int_equal(run_late_work(200, 30, 30), CLOCK_IS_OFF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clocks_that_agree),
        cmocka_unit_test(test_a_clock_that_is_wrong),
        cmocka_unit_test(test_small_offsets_are_not_used),
        cmocka_unit_test(test_what_is_left_of_a_difference),
        cmocka_unit_test(test_large_offsets_are_not_found),
        cmocka_unit_test(test_the_estimate_follows),
        cmocka_unit_test(test_when_it_is_settled),
        cmocka_unit_test(test_votes_that_are_in_doubt),
        cmocka_unit_test(test_only_between_known_spans),
        cmocka_unit_test(test_programs_that_work_outside_of_spans),
        cmocka_unit_test(test_work_that_begins_late_and_ends_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

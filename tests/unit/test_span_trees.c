/* Which local root is above a span, and who gives up room. */
#include "core/data/span_trees.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct tree_place place_of(uint8_t trace, uint64_t span, uint16_t owner)
{
    struct tree_place place = {.source = {.number = owner, .owner = owner}, .instance = 1};
    memset(place.key.trace_id, trace, TRACE_ID_SIZE);
    memcpy(place.key.span_id, &span, SPAN_ID_SIZE);
    return place;
}

static void add(struct span_trees *trees, const struct tree_place *place, uint64_t parent,
                bool is_root, uint64_t now_ns)
{
    struct tree_span span = {.place = *place, .is_root = is_root};
    memcpy(span.parent_id, &parent, SPAN_ID_SIZE);
    span_trees_put(trees, &span, 1, now_ns);
}

/* Adds a chain of spans 1, 2, ..., of which 1 is the local root. */
static void add_chain(struct span_trees *trees, uint8_t trace, uint64_t count, uint16_t owner)
{
    for (uint64_t span = count; span > 0; span--) {
        struct tree_place place = place_of(trace, span, owner);
        add(trees, &place, span - 1, span == 1, 1);
    }
}

/* Returns the number of the local root; 0: it is not known. */
static uint64_t root_of(struct span_trees *trees, uint8_t trace, uint64_t span, uint16_t owner)
{
    struct root_ask ask = {.place = place_of(trace, span, owner)};
    uint64_t root = 0;
    span_trees_find_roots(trees, &ask, 1);
    if (ask.is_known)
        memcpy(&root, ask.root_id, SPAN_ID_SIZE);
    return root;
}

static void the_root_is_above(void **state)
{
    (void)state;
    struct span_trees *trees = span_trees_new(1000, false);
    add_chain(trees, 7, 3, 1);
    assert_int_equal(root_of(trees, 7, 3, 1), 1);
    assert_int_equal(root_of(trees, 7, 1, 1), 1);
    assert_int_equal(root_of(trees, 7, 4, 1), 0);
    assert_int_equal(root_of(trees, 8, 3, 1), 0); /* another trace */
    assert_int_equal(root_of(trees, 7, 3, 2), 0); /* another source */
    struct root_ask ask = {.place = place_of(7, 3, 1)};
    ask.place.instance = 2;
    span_trees_find_roots(trees, &ask, 1);
    assert_false(ask.is_known);
    span_trees_free(trees);
}

static void depth_and_size_are_bounded(void **state)
{
    (void)state;
    struct span_trees *trees = span_trees_new(100000, false);
    add_chain(trees, 7, SPAN_TREE_SPANS_MAX + 10, 1);
    assert_int_equal(span_trees_count(trees), SPAN_TREE_SPANS_MAX);
    span_trees_sweep(trees, 1000, 0);
    assert_int_equal(span_trees_count(trees), 0);
    add_chain(trees, 7, SPAN_TREE_DEPTH_MAX + 10, 1);
    assert_int_equal(root_of(trees, 7, SPAN_TREE_DEPTH_MAX + 1, 1), 1);
    assert_int_equal(root_of(trees, 7, SPAN_TREE_DEPTH_MAX + 2, 1), 0);
    span_trees_free(trees);
}

static void the_owner_with_the_most_spans_gives_up_room(void **state)
{
    (void)state;
    struct span_trees *trees = span_trees_new(100, false);
    add_chain(trees, 1, 3, 1);
    for (uint8_t trace = 10; trace < 110; trace++)
        add_chain(trees, trace, 2, 2);
    assert_true(span_trees_count(trees) <= 100);
    assert_int_equal(root_of(trees, 1, 3, 1), 1);
    assert_int_equal(root_of(trees, 109, 2, 2), 1);
    assert_int_equal(root_of(trees, 10, 2, 2), 0);
    span_trees_free(trees);
}

static void trees_stay_for_the_window_after_their_newest_span(void **state)
{
    (void)state;
    struct span_trees *trees = span_trees_new(100, false);
    struct tree_place root = place_of(1, 1, 1), child = place_of(1, 2, 1);
    add(trees, &root, 0, true, 1000);
    add(trees, &child, 1, false, 1500);
    size_t memory = span_trees_memory(trees);
    span_trees_sweep(trees, 2000, 900);
    assert_int_equal(root_of(trees, 1, 2, 1), 1);
    span_trees_sweep(trees, 2401, 900);
    assert_int_equal(root_of(trees, 1, 2, 1), 0);
    assert_int_equal(span_trees_count(trees), 0);
    assert_true(span_trees_memory(trees) < memory);
    span_trees_free(trees);
}

/* ---- what was running ---- */

/* Adds a span that runs from one time to another. thread 0: it names none. */
static void add_run(struct span_trees *trees, uint64_t id, uint64_t parent, uint64_t start_ns,
                    uint64_t end_ns, int64_t thread)
{
    struct tree_span span = {.place = place_of(7, id, 1),
                             .is_root = parent == 0,
                             .start_ns = start_ns,
                             .end_ns = end_ns};
    span.thread.has_id[THREAD_ID_OS] = thread != 0;
    span.thread.id[THREAD_ID_OS] = thread;
    memcpy(span.parent_id, &parent, SPAN_ID_SIZE);
    span_trees_put(trees, &span, 1, 1);
}

/* Returns the span below a root that ran at a time: 0: none, 1: ambiguous. */
static uint64_t running(struct span_trees *trees, uint64_t root, uint64_t time_ns, int64_t thread,
                        uint64_t steps)
{
    struct tree_place place = place_of(7, root, 1);
    struct sample_thread sample = {.has_id[THREAD_ID_OS] = thread != 0, .id[THREAD_ID_OS] = thread};
    struct thread_ask ask = {.time_ns = time_ns};
    uint64_t span = 0;
    span_trees_find_running(trees, &place, &sample, &ask, 1, &steps);
    if (ask.answer == THREAD_SPAN)
        memcpy(&span, ask.key.span_id, SPAN_ID_SIZE);
    return ask.answer == THREAD_AMBIGUOUS ? 1 : span;
}

static void the_innermost_span_was_running(void **state)
{
    (void)state;
    struct span_trees *trees = span_trees_new(100, true);
    add_run(trees, 12, 11, 30, 40, 0);
    add_run(trees, 11, 10, 20, 60, 0);
    add_run(trees, 10, 0, 0, 100, 0);
    add_run(trees, 20, 0, 0, 100, 0); /* another root of the same trace */
    add_run(trees, 21, 20, 35, 100, 0);
    assert_int_equal(running(trees, 10, 10, 0, 1000), 0);
    assert_int_equal(running(trees, 10, 20, 0, 1000), 11);
    assert_int_equal(running(trees, 10, 39, 0, 1000), 12);
    assert_int_equal(running(trees, 10, 40, 0, 1000), 11);
    assert_int_equal(running(trees, 10, 60, 0, 1000), 0);
    assert_int_equal(running(trees, 20, 36, 0, 1000), 21);
    assert_int_equal(running(trees, 30, 36, 0, 1000), 0);
    span_trees_free(trees);
}

static void siblings_are_told_apart_by_threads_only(void **state)
{
    (void)state;
    struct span_trees *trees = span_trees_new(100, true);
    add_run(trees, 10, 0, 0, 100, 1);
    add_run(trees, 11, 10, 20, 60, 1);
    add_run(trees, 12, 10, 40, 80, 2);
    add_run(trees, 13, 12, 50, 55, 2);
    assert_int_equal(running(trees, 10, 30, 0, 1000), 11);
    assert_int_equal(running(trees, 10, 45, 0, 1000), 1);
    assert_int_equal(running(trees, 10, 52, 0, 1000), 1);
    assert_int_equal(running(trees, 10, 45, 1, 1000), 11);
    assert_int_equal(running(trees, 10, 52, 2, 1000), 13);
    assert_int_equal(running(trees, 10, 52, 3, 1000), 0);
    span_trees_free(trees);
}

/* A child may outlive its parent, and clocks may be wrong. */
static void a_span_runs_at_its_own_time(void **state)
{
    (void)state;
    struct span_trees *trees = span_trees_new(100, true);
    add_run(trees, 10, 0, 0, 50, 0);
    add_run(trees, 11, 10, 10, 20, 0);
    add_run(trees, 12, 11, 15, 90, 0);
    assert_int_equal(running(trees, 10, 70, 0, 1000), 12);
    assert_int_equal(running(trees, 10, 17, 0, 1000), 12);
    assert_int_equal(running(trees, 10, 90, 0, 1000), 0);
    span_trees_free(trees);
}

/* Many times of one sample are answered as each of them alone. */
static void many_times_at_once(void **state)
{
    enum { SPANS = 24, TIMES = 128 };
    (void)state;
    struct tree_place place = place_of(7, 10, 1);
    struct sample_thread sample = {.has_id[THREAD_ID_OS] = true, .id[THREAD_ID_OS] = 1};
    uint64_t random = 1, steps = UINT64_MAX;
    for (int round = 0; round < 200; round++) {
        struct span_trees *trees = span_trees_new(100, true);
        struct thread_ask asks[TIMES];
        add_run(trees, 10, 0, 5, 120, 1);
        for (uint64_t span = 11; span < 10 + SPANS; span++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            uint64_t start = (random >> 33) % 100, length = (random >> 43) % 60;
            uint64_t parent = 10 + (random >> 53) % (span - 10);
            add_run(trees, span, parent, start, start + length, 1 + (int64_t)(random >> 62) / 3);
        }
        for (uint64_t i = 0; i < TIMES; i++)
            asks[i] = (struct thread_ask){.time_ns = i};
        span_trees_find_running(trees, &place, &sample, asks, TIMES, &steps);
        for (uint64_t i = 0; i < TIMES; i++) {
            uint64_t alone = running(trees, 10, i, 1, UINT64_MAX), span = 0;
            if (asks[i].answer == THREAD_SPAN)
                memcpy(&span, asks[i].key.span_id, SPAN_ID_SIZE);
            assert_int_equal(asks[i].answer == THREAD_AMBIGUOUS ? 1 : span, alone);
        }
        span_trees_free(trees);
    }
}

static struct tree_ask ask_of(struct span_trees *trees, uint64_t span)
{
    struct tree_ask ask = {.place = place_of(7, span, 1)};
    span_trees_ask(trees, &ask, 1);
    return ask;
}

/* Whether the samples of a span may be others than those that it was given. */
static bool lacks(struct span_trees *trees, uint64_t span)
{
    return ask_of(trees, span).lacks;
}

static void a_span_that_arrives_later_lacks_what_left(void **state)
{
    (void)state;
    struct span_trees *trees = span_trees_new(100, true);
    add_run(trees, 10, 0, 0, 100, 0);
    running(trees, 10, 50, 0, 1000);
    running(trees, 10, 30, 0, 1000);
    add_run(trees, 11, 10, 0, 30, 0); /* before */
    add_run(trees, 12, 10, 51, 100, 0);
    assert_false(lacks(trees, 11));
    assert_false(lacks(trees, 12));
    add_run(trees, 13, 10, 50, 51, 0);
    add_run(trees, 14, 10, 20, 31, 0);
    assert_true(lacks(trees, 13));
    assert_true(lacks(trees, 14));
    assert_false(lacks(trees, 10)); /* it has all samples that name it */
    assert_false(lacks(trees, 11));
    assert_false(lacks(trees, 15));
    span_trees_free(trees);
}

/* The times of what a span without others had are not known exactly. */
static void samples_of_a_lone_root_leave(void **state)
{
    (void)state;
    struct span_trees *trees = span_trees_new(100, true);
    struct root_ask ask = {.place = place_of(7, 10, 1), .left_from_ns = 20, .left_to_ns = 50};
    add_run(trees, 10, 0, 0, 100, 0);
    span_trees_find_roots(trees, &ask, 1);
    assert_false(ask.has_others);
    add_run(trees, 11, 10, 10, 20, 0);
    add_run(trees, 12, 10, 10, 21, 0);
    assert_false(lacks(trees, 11));
    assert_true(lacks(trees, 12));
    ask.left_to_ns = 90; /* now what is asked for exactly counts */
    span_trees_find_roots(trees, &ask, 1);
    assert_true(ask.has_others);
    add_run(trees, 13, 10, 51, 90, 0);
    assert_false(lacks(trees, 13));
    span_trees_free(trees);
}

/* Those that ran at the same time may have its samples, and what is below it may lack some. */
static void spans_lack_because_of_one_that_arrives_later(void **state)
{
    (void)state;
    struct span_trees *trees = span_trees_new(100, true);
    add_run(trees, 10, 0, 0, 100, 0);
    add_run(trees, 11, 10, 20, 60, 0);
    add_run(trees, 14, 13, 50, 70, 0);
    add_run(trees, 15, 10, 0, 20, 0);
    for (uint64_t time_ns = 10; time_ns <= 60; time_ns++)
        running(trees, 10, time_ns, 0, 1000);
    assert_false(lacks(trees, 11));
    add_run(trees, 20, 0, 0, 100, 0); /* another root changes nothing */
    assert_false(lacks(trees, 11));
    add_run(trees, 13, 11, 30, 40, 0);
    assert_true(lacks(trees, 11));
    assert_true(lacks(trees, 14));
    assert_false(lacks(trees, 15));
    span_trees_free(trees);
}

static bool has_late_root(struct span_trees *trees, uint64_t span)
{
    return ask_of(trees, span).has_late_root;
}

static void a_root_may_arrive_when_its_samples_have_left(void **state)
{
    (void)state;
    struct span_trees *trees = span_trees_new(100, true);
    add_run(trees, 12, 11, 20, 30, 0);
    add_run(trees, 22, 20, 20, 30, 0);
    assert_true(has_late_root(trees, 12)); /* as far as is known */
    assert_true(has_late_root(trees, 22));
    add_run(trees, 11, 10, 0, 50, 0);
    struct tree_span root = {
        .place = place_of(7, 10, 1), .is_root = true, .is_late = true, .end_ns = 100};
    span_trees_put(trees, &root, 1, 1);
    add_run(trees, 20, 0, 0, 100, 0);
    assert_true(has_late_root(trees, 12));
    assert_true(has_late_root(trees, 11));
    assert_false(has_late_root(trees, 10));
    assert_false(has_late_root(trees, 22));
    span_trees_free(trees);
}

/* The span that connects it with the root has not arrived. */
static void a_span_without_a_root_lacks_what_left(void **state)
{
    (void)state;
    struct span_trees *trees = span_trees_new(100, true);
    add_run(trees, 10, 0, 0, 100, 0);
    add_run(trees, 12, 11, 20, 30, 0);
    add_run(trees, 13, 11, 30, 40, 0);
    assert_false(lacks(trees, 12));
    running(trees, 10, 25, 0, 1000);
    assert_true(lacks(trees, 12));
    assert_false(lacks(trees, 13));
    span_trees_free(trees);
}

/* A chain that is as long as a tree may be, and a circle. */
static void steps_limit_the_work(void **state)
{
    (void)state;
    struct span_trees *trees = span_trees_new(10000, true);
    for (uint64_t span = 2; span < SPAN_TREE_SPANS_MAX; span++)
        add_run(trees, span, span - 1, 0, 100, 0);
    add_run(trees, 1, 0, 0, 100, 0);
    assert_int_equal(running(trees, 1, 50, 0, 100), 1);
    assert_int_equal(running(trees, 1, 50, 0, UINT64_MAX), SPAN_TREE_DEPTH_MAX + 1);
    span_trees_sweep(trees, 1000, 0);
    add_run(trees, 2, 3, 0, 100, 0);
    add_run(trees, 3, 2, 0, 100, 0);
    add_run(trees, 1, 0, 0, 100, 0);
    assert_int_equal(running(trees, 1, 50, 0, UINT64_MAX), 0);
    span_trees_free(trees);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_innermost_span_was_running),
        cmocka_unit_test(siblings_are_told_apart_by_threads_only),
        cmocka_unit_test(a_span_runs_at_its_own_time),
        cmocka_unit_test(many_times_at_once),
        cmocka_unit_test(steps_limit_the_work),
        cmocka_unit_test(a_span_that_arrives_later_lacks_what_left),
        cmocka_unit_test(samples_of_a_lone_root_leave),
        cmocka_unit_test(spans_lack_because_of_one_that_arrives_later),
        cmocka_unit_test(a_root_may_arrive_when_its_samples_have_left),
        cmocka_unit_test(a_span_without_a_root_lacks_what_left),
        cmocka_unit_test(the_root_is_above),
        cmocka_unit_test(depth_and_size_are_bounded),
        cmocka_unit_test(the_owner_with_the_most_spans_gives_up_room),
        cmocka_unit_test(trees_stay_for_the_window_after_their_newest_span),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

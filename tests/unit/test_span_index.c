#include "core/data/span_index.h"

#include "core/base/hash.h"
#include "core/data/span_shard.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static const struct span_source nobody;

enum { LEAVE_TOGETHER = 16 }; /* entries evicted together when the index is full */

static struct span_index *make_index(uint64_t max_spans, uint64_t window_s)
{
    hash_init();
    return span_index_new(&(struct span_index_options){
        .max_spans = max_spans, .window_ns = window_s * SECOND, .type_count = 1});
}

static struct span_key key_of(uint64_t trace, uint64_t span)
{
    struct span_key key = {.trace_id = {0}};
    memcpy(key.trace_id, &trace, sizeof trace);
    memcpy(key.span_id, &span, sizeof span);
    return key;
}

/* Adds a span with its number as value, and returns the result. */
static struct span_put put_span(struct span_index *index, uint64_t now_s, uint64_t trace,
                                uint64_t span, struct arena *arena, struct span_wakeups *wakeups)
{
    char name[32];
    snprintf(name, sizeof name, "span %llu", (unsigned long long)span);
    struct span_put put = {.key = key_of(trace, span),
                           .facts = {.start_ns = span, .end_ns = span + 1, .kind = 2, .status = 1}};
    put.facts.values = slice_of_string(name);
    struct span_wakeups ignored = {0};
    span_index_put_many(index, now_s * SECOND, &put, 1, arena, wakeups ? wakeups : &ignored);
    span_wakeups_deinit(&ignored);
    return put;
}

static struct span_find find_span(struct span_index *index, uint64_t now_s, uint64_t trace,
                                  uint64_t span, struct arena *arena)
{
    struct span_find find = {.key = key_of(trace, span)};
    span_index_find_many(index, now_s * SECOND, &find, 1, arena);
    return find;
}

static struct span_find add_samples(struct span_index *index, uint64_t now_s, uint64_t trace,
                                    uint64_t span, uint64_t count, const struct span_waiter *waiter)
{
    uint64_t totals[3] = {count, count, count * 10};
    struct span_find find = {.key = key_of(trace, span), .totals = count ? totals : NULL};
    span_index_add_many(index, now_s * SECOND, &find, 1, waiter);
    return find;
}

static void test_found_with_its_values(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct span_index *index = make_index(100, 120);
    put_span(index, 1, 7, 42, &arena, NULL);
    struct span_find find = find_span(index, 9, 7, 42, &arena);
    assert_int_equal(find.presence, SPAN_FOUND);
    assert_int_equal(find.match_count, 1);
    assert_true(slice_is(find.matches[0].facts.values, "span 42"));
    assert_int_equal(find.matches[0].facts.start_ns, 42);
    assert_int_equal(find.matches[0].facts.kind, 2);
    assert_int_equal(find.matches[0].arrived_ns, SECOND);
    assert_int_equal(find_span(index, 9, 8, 42, &arena).presence, SPAN_MISSING);
    assert_int_equal(find_span(index, 9, 7, 43, &arena).presence, SPAN_MISSING);
    assert_int_equal(span_index_entries(index), 1);
    span_index_unref(index);
    arena_deinit(&arena);
}

static void test_the_window_ends(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct span_index *index = make_index(100, 120);
    put_span(index, 0, 7, 42, &arena, NULL);
    assert_int_equal(find_span(index, 120, 7, 42, &arena).presence, SPAN_FOUND);
    assert_int_equal(find_span(index, 121, 7, 42, &arena).presence, SPAN_EXPIRED);
    /* Whatever else arrives, an expired span differs from one that never arrived. */
    put_span(index, 121, 7, 43, &arena, NULL);
    assert_int_equal(find_span(index, 121, 7, 42, &arena).presence, SPAN_EXPIRED);
    assert_int_equal(find_span(index, 121, 0, 42, &arena).presence, SPAN_EXPIRED);
    span_index_sweep(index, 151 * SECOND);
    assert_int_equal(find_span(index, 151, 7, 42, &arena).presence, SPAN_MISSING);
    assert_int_equal(span_index_entries(index), 1);
    span_index_sweep(index, 1000 * SECOND);
    assert_int_equal(span_index_entries(index), 0);
    span_index_unref(index);
    arena_deinit(&arena);
}

static void test_the_window_can_change(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct span_index *index = make_index(100, 120);
    put_span(index, 0, 7, 42, &arena, NULL);
    span_index_set_window(index, 10 * SECOND);
    assert_int_equal(find_span(index, 10, 7, 42, &arena).presence, SPAN_FOUND);
    assert_int_equal(find_span(index, 11, 7, 42, &arena).presence, SPAN_EXPIRED);
    span_index_set_window(index, 300 * SECOND);
    assert_true(span_index_window(index) == 300 * SECOND);
    assert_int_equal(find_span(index, 300, 7, 42, &arena).presence, SPAN_FOUND);
    span_index_set_window(index, 20 * SECOND);
    span_index_sweep(index, 301 * SECOND);
    span_index_set_window(index, 300 * SECOND);
    assert_int_equal(find_span(index, 300, 7, 42, &arena).presence, SPAN_MISSING);
    span_index_unref(index);
    arena_deinit(&arena);
}

static void test_one_id_in_several_traces(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct span_index *index = make_index(100, 120);
    put_span(index, 1, 7, 42, &arena, NULL);
    put_span(index, 2, 8, 42, &arena, NULL);
    assert_int_equal(span_index_entries(index), 2);
    struct span_find find = find_span(index, 3, 0, 42, &arena);
    assert_int_equal(find.match_count, 2);
    assert_int_equal(find.matches[0].arrived_ns, 2 * SECOND); /* newest first */
    assert_int_equal(find_span(index, 3, 7, 42, &arena).matches[0].arrived_ns, SECOND);
    /* The ninth evicts the oldest. */
    for (uint64_t trace = 9; trace < 16; trace++)
        put_span(index, 4, trace, 42, &arena, NULL);
    assert_int_equal(span_index_entries(index), SPAN_INDEX_CANDIDATES_MAX);
    assert_int_equal(find_span(index, 4, 7, 42, &arena).presence, SPAN_MISSING);
    assert_int_equal(find_span(index, 4, 8, 42, &arena).presence, SPAN_FOUND);
    assert_int_equal(span_index_take_evicted(index, SPAN_EVICTED_SAME_ID), 1);
    assert_int_equal(span_index_take_evicted(index, SPAN_EVICTED_SAME_ID), 0);
    span_index_unref(index);
    arena_deinit(&arena);
}

/* Samples that name one span id with other trace ids do not evict the span. */
static void test_samples_do_not_push_a_span_out(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct span_index *index = make_index(100, 120);
    put_span(index, 1, 7, 42, &arena, NULL);
    for (uint64_t trace = 100; trace < 150; trace++)
        add_samples(index, 2, trace, 42, 3, NULL);
    assert_int_equal(span_index_entries(index), SPAN_INDEX_CANDIDATES_MAX);
    assert_int_equal(find_span(index, 3, 7, 42, &arena).presence, SPAN_FOUND);
    /* Of samples, the oldest are evicted. */
    assert_null(put_span(index, 3, 142, 42, &arena, NULL).totals);
    assert_non_null(put_span(index, 3, 149, 42, &arena, NULL).totals);
    assert_int_equal(find_span(index, 3, 7, 42, &arena).presence, SPAN_FOUND);
    span_index_unref(index);
    arena_deinit(&arena);
}

static void test_the_oldest_leaves_when_full(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct span_index *index = make_index(100, 120);
    for (uint64_t span = 1; span <= 250; span++)
        put_span(index, span / 10, 7, span, &arena, NULL);
    assert_int_equal(span_index_entries(index), 100);
    for (uint64_t span = 1; span <= 250; span++)
        assert_int_equal(find_span(index, 25, 7, span, &arena).presence,
                         span > 150 ? SPAN_FOUND : SPAN_MISSING);
    assert_int_equal(span_index_take_evicted(index, SPAN_EVICTED_FULL), 150);
    span_index_unref(index);
    arena_deinit(&arena);
}

static void test_late_samples_keep_a_span_in_a_full_index(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct span_index *index = make_index(10, 120);
    for (uint64_t i = 1; i <= 10; i++)
        put_span(index, i, 7, i, &arena, NULL);
    add_samples(index, 3, 7, 2, 1, NULL); /* soon after the span: it leaves in its turn */
    add_samples(index, 10, 7, 1, 1, NULL);
    put_span(index, 11, 7, 11, &arena, NULL);
    assert_int_equal(find_span(index, 11, 7, 1, &arena).presence, SPAN_FOUND);
    assert_int_equal(find_span(index, 11, 7, 2, &arena).presence, SPAN_MISSING);
    assert_int_equal(find_span(index, 11, 7, 3, &arena).presence, SPAN_FOUND);
    for (uint64_t i = 12; i <= 30; i++)
        put_span(index, i, 7, i, &arena, NULL);
    assert_int_equal(find_span(index, 30, 7, 1, &arena).presence, SPAN_MISSING);
    assert_int_equal(span_index_entries(index), 10);
    span_index_unref(index);
    arena_deinit(&arena);
}

static void test_late_samples_stay_for_their_window(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct span_index *index = make_index(100, 120);
    put_span(index, 0, 7, 42, &arena, NULL);
    put_span(index, 0, 7, 43, &arena, NULL);
    add_samples(index, 100, 7, 42, 5, NULL);
    span_index_sweep(index, 160 * SECOND);
    assert_int_equal(span_index_entries(index), 1);
    span_index_sweep(index, 200 * SECOND);
    struct span_put again = put_span(index, 210, 7, 42, &arena, NULL);
    assert_non_null(again.totals);
    assert_int_equal(again.totals[0], 5);
    span_index_sweep(index, 1000 * SECOND);
    assert_int_equal(span_index_entries(index), 0);
    span_index_unref(index);
    arena_deinit(&arena);
}

static void test_totals_wait_for_their_span(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct span_index *index = make_index(100, 120);
    add_samples(index, 1, 7, 42, 3, NULL);
    add_samples(index, 2, 7, 42, 4, NULL);
    assert_int_equal(span_index_entries(index), 1);
    struct span_put put = put_span(index, 9, 7, 42, &arena, NULL);
    assert_non_null(put.totals);
    assert_int_equal(put.totals[0], 7);
    assert_int_equal(put.totals[2], 70);
    assert_true(put.has_lag);
    assert_int_equal(put.lag_ns, -8 * (int64_t)SECOND);
    /* Delivered again: one entry, the same totals, no second lag. */
    put = put_span(index, 10, 7, 42, &arena, NULL);
    assert_int_equal(put.totals[0], 7);
    assert_false(put.has_lag);
    assert_int_equal(span_index_entries(index), 1);
    /* Totals have a window of their own. */
    put = put_span(index, 123, 7, 42, &arena, NULL);
    assert_null(put.totals);
    span_index_unref(index);
    arena_deinit(&arena);
}

static void test_totals_without_a_trace_id(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct span_index *index = make_index(100, 120);
    add_samples(index, 1, 0, 42, 3, NULL);
    add_samples(index, 2, 7, 42, 4, NULL);
    assert_int_equal(span_index_entries(index), 2);
    struct span_put put = put_span(index, 9, 7, 42, &arena, NULL);
    assert_int_equal(put.totals[0], 7);
    assert_int_equal(span_index_entries(index), 1);
    add_samples(index, 10, 0, 42, 2, NULL); /* now it is the entry of the span */
    put = put_span(index, 11, 7, 42, &arena, NULL);
    assert_int_equal(put.totals[0], 9);
    span_index_unref(index);
    arena_deinit(&arena);
}

static void test_waiters_are_woken_once(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct span_wakeups wakeups = {0};
    struct span_index *index = make_index(100, 120);
    struct span_waiter first = {100, 1}, second = {200, 2};
    assert_true(add_samples(index, 1, 7, 42, 3, &first).waits);
    assert_true(add_samples(index, 1, 0, 42, 3, &second).waits);
    put_span(index, 1, 7, 43, &arena, &wakeups);
    assert_int_equal(wakeups.count, 0);
    put_span(index, 2, 7, 42, &arena, &wakeups);
    assert_int_equal(wakeups.count, 2);
    assert_int_equal(wakeups.items[0].waiter.hold + wakeups.items[1].waiter.hold, 300);
    assert_int_equal(wakeups.items[0].waits_for, SPAN_WAITS_FOR_SPAN);
    put_span(index, 2, 7, 42, &arena, &wakeups);
    assert_int_equal(wakeups.count, 2);
    assert_false(add_samples(index, 3, 7, 42, 3, &first).waits);
    span_wakeups_deinit(&wakeups);
    span_index_unref(index);
    arena_deinit(&arena);
}

static void test_what_left_early_is_remembered(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct span_wakeups wakeups = {0};
    struct span_index *index = make_index(100, 120);
    struct span_waiter waiter = {100, 1};
    struct span_find find = add_samples(index, 1, 7, 42, 3, &waiter);
    find.samples_left = 3;
    span_index_leave_many(index, 6 * SECOND, &find, 1, &waiter);
    struct span_put put = put_span(index, 8, 7, 42, &arena, &wakeups);
    assert_int_equal(put.samples_left, 3);
    assert_int_equal(wakeups.count, 0);
    assert_int_equal(put_span(index, 8, 7, 42, &arena, &wakeups).samples_left, 0);
    span_wakeups_deinit(&wakeups);
    span_index_unref(index);
    arena_deinit(&arena);
}

/* Waiters can be removed in any order. A waiter of another request at the same place stays. */
static void test_a_waiter_is_taken_out_where_it_stands(void **state)
{
    (void)state;
    enum { WAITERS = 5 };
    struct arena arena = {0};
    struct span_wakeups wakeups = {0};
    struct span_index *index = make_index(100, 120);
    struct span_waiter waiters[WAITERS];
    struct span_find finds[WAITERS];
    for (unsigned i = 0; i < WAITERS; i++) {
        waiters[i] = (struct span_waiter){100 + i, 1};
        finds[i] = add_samples(index, 1, 7, 42, 3, &waiters[i]);
        assert_true(finds[i].waits && finds[i].place > 0);
    }
    static const unsigned leaving[] = {0, 2, 4, 2 /* again: it is no longer there */};
    for (size_t i = 0; i < sizeof leaving / sizeof *leaving; i++)
        span_index_leave_many(index, 2 * SECOND, &finds[leaving[i]], 1, &waiters[leaving[i]]);
    struct span_waiter next = {200, 1};
    struct span_find reused = add_samples(index, 2, 7, 42, 3, &next);
    span_index_leave_many(index, 2 * SECOND, &finds[4], 1, &waiters[4]);
    assert_true(reused.waits);
    put_span(index, 3, 7, 42, &arena, &wakeups);
    assert_int_equal(wakeups.count, 3);
    assert_int_equal(wakeups.items[0].waiter.hold, 200);
    assert_int_equal(wakeups.items[1].waiter.hold + wakeups.items[2].waiter.hold, 101 + 103);
    span_wakeups_deinit(&wakeups);
    span_index_unref(index);
    arena_deinit(&arena);
}

static void test_profile_ids(void **state)
{
    (void)state;
    static const uint8_t id[PROFILE_ID_SIZE] = {1, 2, 3}, other[PROFILE_ID_SIZE] = {[15] = 9};
    struct arena arena = {0};
    struct span_index *index = make_index(100, 120);
    assert_false(span_index_see_profile(index, SECOND, id, &nobody, 1, false));
    assert_false(span_index_see_profile(index, SECOND, id, &nobody, 1, true));
    assert_false(
        span_index_see_profile(index, SECOND, id, &nobody, 1, false)); /* the same request */
    assert_true(span_index_see_profile(index, 2 * SECOND, id, &nobody, 2, true));
    assert_false(span_index_see_profile(index, 2 * SECOND, other, &nobody, 2, true));
    assert_false(span_index_see_profile(index, 122 * SECOND, id, &nobody, 3, true));
    /* No span has this id. */
    uint64_t first_half;
    memcpy(&first_half, id, sizeof first_half);
    assert_int_equal(find_span(index, 122, 0, first_half, &arena).presence, SPAN_MISSING);
    span_index_unref(index);
    arena_deinit(&arena);
}

/* Many ids, many times: no more entries are lost than necessary, and memory stays bounded. */
static void test_memory_stays_bounded(void **state)
{
    (void)state;
    enum { SPANS = 20000, ROUNDS = 10 };
    struct arena arena = {0};
    struct span_wakeups wakeups = {0};
    struct span_index *index = make_index(SPANS, 120);
    char name[64];
    memset(name, 'x', sizeof name);
    struct span_put put = {.facts = {.values = slice_of(name, sizeof name)}};
    for (uint64_t i = 1; i <= UINT64_C(1) * SPANS * ROUNDS; i++) {
        put.key = key_of(i, i);
        span_index_put_many(index, SECOND + i, &put, 1, &arena, &wakeups);
    }
    assert_in_range(span_index_entries(index), SPANS - LEAVE_TOGETHER, SPANS);
    size_t memory = span_index_memory(index);
    assert_in_range(memory, SPANS * 64, SPANS * 110); /* the spans have one set */
    unsigned found = 0;
    for (uint64_t i = UINT64_C(1) * SPANS * (ROUNDS - 1) + 1; i <= UINT64_C(1) * SPANS * ROUNDS;
         i++) {
        struct span_find find = {.key = key_of(i, i)};
        span_index_find_many(index, 2 * SECOND, &find, 1, &arena);
        found += find.presence == SPAN_FOUND;
    }
    assert_in_range(found, SPANS * 95 / 100, SPANS); /* first in, first out per shard */
    span_index_sweep(index, 1000 * SECOND);
    for (int i = 0; i < 20; i++)
        span_index_sweep(index, 1000 * SECOND);
    assert_int_equal(span_index_entries(index), 0);
    span_index_unref(index);
    arena_deinit(&arena);
}

/* A span that is not looked up again does not keep the dead entries of others. */
static void test_what_comes_again_takes_no_more_memory(void **state)
{
    (void)state;
    enum { SPANS = 2000, ROUNDS = 100 };
    struct arena arena = {0};
    struct span_index *index = make_index(100000, 120);
    for (uint64_t i = 0; i < SPANS; i++)
        put_span(index, 1, 9, 1000000 + i, &arena, NULL);
    for (uint64_t i = 0; i < SPANS; i++)
        put_span(index, 1, 7, i + 1, &arena, NULL);
    size_t before = span_index_memory(index);
    for (uint64_t round = 0; round < ROUNDS; round++)
        for (uint64_t i = 0; i < SPANS; i++)
            put_span(index, 2, 7, i + 1, &arena, NULL);
    assert_in_range(span_index_memory(index), 0, 4 * before);
    for (uint64_t i = 0; i < SPANS; i++) {
        assert_int_equal(find_span(index, 3, 9, 1000000 + i, &arena).presence, SPAN_FOUND);
        assert_int_equal(find_span(index, 3, 7, i + 1, &arena).presence, SPAN_FOUND);
    }
    arena_deinit(&arena);
    span_index_unref(index);
}

/* With values of usual size, only max_spans causes evictions, even if samples arrive for all
 * spans. */
static void test_samples_push_nothing_out_by_memory(void **state)
{
    (void)state;
    enum { SPANS = 20000, AT_ONCE = 500 };
    struct arena arena = {0};
    struct span_wakeups wakeups = {0};
    struct span_index *index = make_index(SPANS, 120);
    uint64_t totals[3] = {1, 1, 10};
    char name[56] = {0};
    static struct span_put puts[AT_ONCE];
    static struct span_find finds[AT_ONCE];
    for (uint64_t first = 1; first < UINT64_C(3) * SPANS; first += AT_ONCE) {
        for (uint64_t i = 0; i < AT_ONCE; i++) {
            puts[i] = (struct span_put){.key = key_of(first + i, first + i),
                                        .facts.values = slice_of(name, sizeof name)};
            finds[i] = (struct span_find){.key = puts[i].key, .totals = totals};
        }
        span_index_put_many(index, SECOND, puts, AT_ONCE, &arena, &wakeups);
        span_index_add_many(index, SECOND, finds, AT_ONCE, NULL);
    }
    assert_in_range(span_index_entries(index), SPANS - LEAVE_TOGETHER, SPANS);
    assert_int_equal(span_index_take_evicted(index, SPAN_EVICTED_MEMORY), 0);
    span_wakeups_deinit(&wakeups);
    span_index_unref(index);
    arena_deinit(&arena);
}

/* Puts spans that have the largest values, each its own. */
static void put_large(struct span_index *index, uint64_t spans, struct arena *arena)
{
    struct span_wakeups wakeups = {0};
    static uint8_t value[SPAN_INDEX_VALUES_MAX];
    struct span_put put = {.facts = {.values = slice_of(value, sizeof value)}};
    for (uint64_t i = 1; i <= spans; i++) {
        put.key = key_of(i, i);
        memcpy(value, &i, sizeof i);
        span_index_put_many(index, SECOND, &put, 1, arena, &wakeups);
    }
    assert_int_equal(wakeups.count, 0);
}

static void test_large_values_push_out_by_memory(void **state)
{
    (void)state;
    struct arena arena = {0};
    enum { ROOM = 10000, SPANS = 5000 };
    struct span_index *index = make_index(ROOM, 120);
    put_large(index, SPANS, &arena);
    assert_true(span_index_memory(index) < UINT64_C(256) * ROOM);
    uint64_t evicted = span_index_take_evicted(index, SPAN_EVICTED_MEMORY);
    assert_in_range(evicted, SPANS - UINT64_C(192) * ROOM / SPAN_INDEX_VALUES_MAX, SPANS);
    assert_int_equal(find_span(index, 1, SPANS, SPANS, &arena).presence, SPAN_FOUND);
    assert_int_equal(find_span(index, 1, 1, 1, &arena).presence, SPAN_MISSING);
    span_index_unref(index);
    arena_deinit(&arena);
}

/* Without its values a span is not found any more, but what its samples cost is still added to it.
 * So it counts again when its entry leaves (docs/spanjoin.md, Metrics). */
static void test_values_that_are_given_up_leave_the_entry(void **state)
{
    (void)state;
    struct arena arena = {0};
    enum { ROOM = 2000, SPANS = 1500, MANY = 6000 };
    struct span_index *index = make_index(ROOM, 120);
    struct span_put put = {.key = key_of(1, 1)};
    put_large(index, SPANS, &arena);
    assert_true(span_index_take_evicted(index, SPAN_EVICTED_MEMORY) > SPANS / 2);
    assert_int_equal(span_index_entries(index), SPANS);
    assert_int_equal(find_span(index, 1, 1, 1, &arena).presence, SPAN_MISSING);
    add_samples(index, 1, 1, 1, 3, NULL);
    span_index_collect_many(index, SECOND, &put, 1, &arena);
    assert_non_null(put.totals);
    assert_int_equal(put.totals[0], 3);
    for (uint64_t i = SPANS + 1; i <= MANY; i++)
        put_span(index, 1, i, i, &arena, NULL);
    assert_int_equal(span_index_take_evicted(index, SPAN_EVICTED_FULL),
                     MANY - span_index_entries(index));
    span_index_unref(index);
    arena_deinit(&arena);
}

/* Compares with a plain array: random puts, samples, finds and time. */
enum { MODEL_SPANS = 64, MODEL_STEPS = 200000 };
struct model_span {
    bool has_span;
    uint64_t span_s;
    uint64_t samples_s;
    uint64_t samples;
    struct span_match seen; /* some time ago */
    bool was_seen;
};

static void model_put(struct span_index *index, struct model_span *model, uint64_t now_s,
                      uint64_t number, struct arena *arena)
{
    struct model_span *span = &model[number];
    uint64_t expected = span->samples && now_s - span->samples_s <= 120 ? span->samples : 0;
    struct span_put put = put_span(index, now_s, number % 3 + 1, number + 1, arena, NULL);
    assert_int_equal(put.totals ? put.totals[0] : 0, expected);
    span->has_span = true;
    span->span_s = now_s;
    span->samples = expected;
}

static void model_add(struct span_index *index, struct model_span *model, uint64_t now_s,
                      uint64_t number)
{
    struct model_span *span = &model[number];
    if (now_s - span->samples_s > 120)
        span->samples = 0;
    span->samples += 2;
    span->samples_s = now_s;
    uint64_t totals[] = {2, 0, 0};
    struct span_find find = {.key = key_of(number % 3 + 1, number + 1),
                             .totals = totals,
                             .chosen = span->was_seen ? &span->seen : NULL};
    span_index_add_many(index, now_s * SECOND, &find, 1, NULL);
}

static void test_against_a_model(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct span_index *index = make_index(1000, 120);
    struct model_span model[MODEL_SPANS] = {{.has_span = false}};
    uint64_t now_s = 1000;
    srand(1);
    for (int step = 0; step < MODEL_STEPS; step++) {
        uint64_t number = (uint64_t)rand() % MODEL_SPANS;
        now_s += rand() % 8 == 0 ? (uint64_t)rand() % 12 : 0;
        switch (rand() % 3) {
        case 0:
            model_put(index, model, now_s, number, &arena);
            break;
        case 1:
            model_add(index, model, now_s, number);
            break;
        default: {
            struct span_find find = find_span(index, now_s, number % 3 + 1, number + 1, &arena);
            bool expected = model[number].has_span && now_s - model[number].span_s <= 120;
            assert_int_equal(find.presence == SPAN_FOUND, expected);
            model[number].was_seen = expected;
            if (expected)
                model[number].seen = find.matches[0];
        }
        }
        if (step % 1000 == 0) {
            arena_deinit(&arena);
            arena = (struct arena){0};
        }
    }
    assert_true(span_index_entries(index) <= MODEL_SPANS);
    span_index_unref(index);
    arena_deinit(&arena);
}

/* The front expires at any time while entries are moved together. */
static void test_the_window_ends_while_entries_move(void **state)
{
    (void)state;
    enum { OLD = 600, FEW = 20, TOUCHES_MIN = 1000, TOUCHES_MAX = 1400 };
    struct arena arena = {0};
    for (unsigned touches = TOUCHES_MIN; touches < TOUCHES_MAX; touches += 7) {
        struct span_index *index = make_index(1000, 120);
        for (uint64_t span = 1; span <= OLD; span++)
            put_span(index, 1, 7, span, &arena, NULL);
        for (uint64_t i = 0; i < touches; i++)
            put_span(index, 100, 8, i % FEW + 1, &arena, NULL);
        span_index_sweep(index, 160 * SECOND);
        assert_int_equal(span_index_entries(index), FEW);
        for (uint64_t i = 0; i < touches; i++)
            put_span(index, 161, 9, i % (UINT64_C(3) * FEW) + 1, &arena, NULL);
        assert_int_equal(span_index_entries(index), 4 * FEW);
        for (uint64_t span = 1; span <= FEW; span++) {
            assert_int_equal(find_span(index, 161, 8, span, &arena).presence, SPAN_FOUND);
            assert_int_equal(find_span(index, 161, 9, span, &arena).presence, SPAN_FOUND);
        }
        span_index_sweep(index, 1000 * SECOND);
        assert_int_equal(span_index_entries(index), 0);
        span_index_unref(index);
        arena_deinit(&arena);
        arena = (struct arena){0};
    }
}

/* In waves, a few spans arrive repeatedly, then many new ones: the oldest are evicted, whatever was
 * moved in between. */
static void test_the_oldest_leave_in_waves(void **state)
{
    (void)state;
    enum { SPANS = 1000, ROOM = 300, STEPS = 100000, WAVE = 3000 };
    struct arena arena = {0};
    struct span_index *index = make_index(ROOM, 120);
    static uint32_t last_step[SPANS];
    uint32_t order[ROOM + 1]; /* newest first */
    uint32_t count = 0;
    srand(2);
    for (uint32_t step = 1; step <= STEPS; step++) {
        uint32_t few = step / WAVE % 3 == 2 ? SPANS : 20 + step / WAVE;
        uint32_t number = (uint32_t)rand() % few;
        put_span(index, 1, 7, number + 1, &arena, NULL);
        uint32_t at = 0;
        while (at < count && order[at] != number)
            at++;
        count += at == count;
        memmove(order + 1, order, at * sizeof *order);
        order[0] = number;
        last_step[number] = step;
        if (count > ROOM) {
            last_step[order[ROOM]] = 0;
            count = ROOM;
        }
        uint32_t other = (uint32_t)rand() % SPANS;
        assert_int_equal(find_span(index, 1, 7, other + 1, &arena).presence,
                         last_step[other] ? SPAN_FOUND : SPAN_MISSING);
        if (step % 1000 == 0) {
            arena_deinit(&arena);
            arena = (struct arena){0};
        }
    }
    assert_int_equal(span_index_entries(index), count);
    span_index_sweep(index, 1000 * SECOND);
    assert_int_equal(span_index_entries(index), 0);
    span_index_unref(index);
    arena_deinit(&arena);
}

/* ---- sources ---- */

/* Returns the source of a peer, of a service, or of a tenant. */
static struct span_source source_of(struct span_index *index, const char *tenant, uint64_t peer,
                                    const char *service)
{
    return span_index_source(index, slice_of_string(tenant), peer, slice_of_string(service),
                             SECOND);
}

static void put_of(struct span_index *index, const struct span_source *source, uint64_t trace,
                   uint64_t span, const char *name)
{
    struct arena arena = {0};
    struct span_wakeups wakeups = {0};
    struct span_put put = {
        .key = key_of(trace, span), .source = *source, .facts = {.start_ns = 1, .end_ns = 2}};
    put.facts.values = slice_of_string(name);
    span_index_put_many(index, SECOND, &put, 1, &arena, &wakeups);
    span_wakeups_deinit(&wakeups);
    arena_deinit(&arena);
}

/* Whether a look-up finds the span with this name; "": nothing. */
static bool finds(struct span_index *index, const struct span_source *source, uint64_t trace,
                  uint64_t span, const char *name)
{
    struct arena arena = {0};
    struct span_find find = {.key = key_of(trace, span), .source = *source};
    span_index_find_many(index, SECOND, &find, 1, &arena);
    bool is_so = find.match_count > 0 ? slice_is(find.matches[0].facts.values, name) : !*name;
    arena_deinit(&arena);
    return is_so;
}

enum { ROOM = 1000, GOOD = 400 };

static unsigned joined_of(struct span_index *index, const struct span_source *source)
{
    unsigned joined = 0;
    for (uint64_t span = 1; span <= GOOD; span++)
        joined += finds(index, source, 7, span, "good");
    return joined;
}

/* A flood of other ids evicts its own entries. */
static void test_a_flood_pushes_out_its_own(void **state)
{
    (void)state;
    struct span_index *index = make_index(ROOM, 120);
    struct span_source good = source_of(index, "", 1, "shop"), flood = source_of(index, "", 2, "x");
    for (uint64_t span = 1; span <= GOOD; span++) {
        put_of(index, &good, 7, span, "good");
        for (uint64_t i = 0; i < 50; i++)
            put_of(index, &flood, 8, 1000000 + span * 50 + i, "bad");
    }
    assert_int_equal(joined_of(index, &good), GOOD);
    assert_in_range(span_index_entries(index), ROOM - LEAVE_TOGETHER, ROOM);
    assert_true(span_index_take_evicted(index, SPAN_EVICTED_FULL) > UINT64_C(40) * GOOD);
    span_index_unref(index);
}

/* A new service for each request gets no new share: the peer's share is divided. */
static void test_invented_services_push_out_their_own(void **state)
{
    (void)state;
    struct span_index *index = make_index(ROOM, 120);
    struct span_source good = source_of(index, "", 1, "shop");
    char service[32];
    for (uint64_t span = 1; span <= GOOD; span++) {
        put_of(index, &good, 7, span, "good");
        for (uint64_t i = 0; i < 50; i++) {
            snprintf(service, sizeof service, "service %u", (unsigned)(span * 50 + i));
            struct span_source flood = source_of(index, "", 2, service);
            put_of(index, &flood, 8, 1000000 + span * 50 + i, "bad");
        }
    }
    assert_int_equal(joined_of(index, &good), GOOD);
    assert_int_equal(span_index_sources(index), 2 + 1 + SPAN_OWNER_SERVICES_MAX);
    span_index_unref(index);
}

static void test_many_spans_with_a_victims_id(void **state)
{
    (void)state;
    struct span_index *index = make_index(ROOM, 120);
    struct span_source good = source_of(index, "", 1, "shop"), bad = source_of(index, "", 2, "x");
    put_of(index, &good, 7, 42, "good");
    for (uint64_t trace = 100; trace < 150; trace++)
        put_of(index, &bad, trace, 42, "bad");
    assert_true(finds(index, &good, 7, 42, "good"));
    assert_true(finds(index, &good, 0, 42, "good")); /* its own, though it is the oldest */
    assert_true(finds(index, &bad, 7, 42, "good"));  /* both ids */
    span_index_unref(index);
}

static void test_the_first_writer_wins(void **state)
{
    (void)state;
    struct span_index *index = make_index(ROOM, 120);
    struct span_source good = source_of(index, "", 1, "shop"), bad = source_of(index, "", 2, "x");
    struct span_source third = source_of(index, "", 3, "profiler");
    put_of(index, &good, 7, 42, "good");
    put_of(index, &good, 7, 42, "other");
    assert_int_equal(span_index_take_evicted(index, SPAN_NOT_KEPT_CONFLICT), 1);
    put_of(index, &good, 7, 42, "good");
    assert_int_equal(span_index_take_evicted(index, SPAN_NOT_KEPT_CONFLICT), 0);
    put_of(index, &bad, 7, 42, "bad");
    assert_int_equal(span_index_entries(index), 2);
    assert_true(finds(index, &good, 7, 42, "good"));
    assert_true(finds(index, &bad, 7, 42, "bad")); /* only itself */
    assert_true(finds(index, &third, 0, 42, "bad") || finds(index, &third, 0, 42, "good"));
    span_index_unref(index);
}

static void test_tenants_never_meet(void **state)
{
    (void)state;
    struct span_index *index = make_index(ROOM, 120);
    struct span_source a = source_of(index, "a", 1, "shop"), b = source_of(index, "b", 1, "shop");
    struct span_source none = source_of(index, "", 1, "shop");
    assert_int_equal(source_of(index, "a", 9, "other").number, a.number);
    put_of(index, &a, 7, 42, "of a");
    for (uint64_t trace = 0; trace <= 7; trace += 7) {
        assert_true(finds(index, &a, trace, 42, "of a"));
        assert_true(finds(index, &b, trace, 42, ""));
        assert_true(finds(index, &none, trace, 42, ""));
    }
    span_index_unref(index);
}

/* More tenants than numbers: they share one number, and still never match. */
static void test_tenants_without_a_number(void **state)
{
    (void)state;
    struct span_index *index = make_index(ROOM, 120);
    char tenant[32];
    struct span_source sources[SPAN_SOURCES_MAX + 2];
    for (unsigned i = 0; i < SPAN_SOURCES_MAX + 2; i++) {
        snprintf(tenant, sizeof tenant, "tenant %u", i);
        sources[i] = source_of(index, tenant, 0, "");
    }
    const struct span_source *a = &sources[SPAN_SOURCES_MAX], *b = a + 1;
    assert_int_equal(a->number, 0);
    put_of(index, a, 7, 42, "of a");
    assert_true(finds(index, a, 7, 42, "of a"));
    assert_true(finds(index, b, 7, 42, ""));
    assert_true(finds(index, b, 0, 42, ""));
    assert_int_equal(span_index_sources(index), SPAN_SOURCES_MAX - 1);
    span_index_sweep(index, 1000 * SECOND);
    span_index_sweep(index, 2000 * SECOND);
    assert_int_equal(span_index_sources(index), 0);
    span_index_unref(index);
}

enum { PEERS = 5, SERVICES = 4, SMALL = 60, ALL = PEERS * SERVICES };

/* The entries of each source, oldest first. */
struct model_shares {
    struct span_index *index;
    struct span_source sources[ALL];
    uint64_t held[ALL][SMALL + 1];
    unsigned counts[ALL];
    unsigned peers[PEERS];
    unsigned total;
};

/* The first entry of one source was evicted: of the largest source of the largest peer. */
static void model_lose_one(struct model_shares *model)
{
    unsigned left = ALL, most_peer = 0, most = 0;
    for (unsigned i = 0; i < PEERS; i++)
        most_peer = model->peers[i] > most_peer ? model->peers[i] : most_peer;
    for (unsigned i = 0; i < ALL && left == ALL; i++)
        if (model->counts[i] > 0 &&
            !finds(model->index, &model->sources[i], 1, model->held[i][0], "x"))
            left = i;
    assert_in_range(left, 0, ALL - 1);
    for (unsigned i = left / SERVICES * SERVICES; i < (left / SERVICES + 1) * SERVICES; i++)
        most = model->counts[i] > most ? model->counts[i] : most;
    assert_int_equal(model->peers[left / SERVICES], most_peer);
    assert_int_equal(model->counts[left], most);
    memmove(model->held[left], model->held[left] + 1, --model->counts[left] * sizeof(uint64_t));
    model->peers[left / SERVICES]--;
    model->total--;
}

static void model_add_new(struct model_shares *model, unsigned from, uint64_t span)
{
    put_of(model->index, &model->sources[from], 1, span, "x");
    if (model->total == SMALL)
        model_lose_one(model);
    model->held[from][model->counts[from]++] = span;
    model->peers[from / SERVICES]++;
    model->total++;
}

/* An existing entry arrives again, and becomes the newest of its source. */
static void model_repeat(struct model_shares *model, unsigned from)
{
    if (model->counts[from] == 0)
        return;
    unsigned at = (unsigned)rand() % model->counts[from], behind = model->counts[from] - at - 1;
    uint64_t span = model->held[from][at];
    put_of(model->index, &model->sources[from], 1, span, "x");
    memmove(&model->held[from][at], &model->held[from][at + 1], behind * sizeof(uint64_t));
    model->held[from][model->counts[from] - 1] = span;
}

/* The evicted entry is the oldest of the largest source of the largest peer, whatever was moved in
 * between. */
static void test_shares_against_a_model(void **state)
{
    (void)state;
    enum { STEPS = 60000 };
    static const char *const names[] = {"a", "b", "c", "d"};
    static struct model_shares model;
    model = (struct model_shares){.index = make_index(SMALL, 120)};
    for (unsigned i = 0; i < ALL; i++)
        model.sources[i] = source_of(model.index, "", i / SERVICES + 1, names[i % SERVICES]);
    srand(3);
    for (uint64_t span = 1; span <= STEPS; span++) {
        unsigned from = (unsigned)rand() % ALL;
        from = span / 1000 % 2 ? from : from % 6; /* in waves */
        if (rand() % 100 < (span / 3000 % 2 ? 10 : 90))
            model_repeat(&model, from);
        else
            model_add_new(&model, from, span);
    }
    for (unsigned i = 0; i < ALL; i++)
        for (unsigned k = 0; k < model.counts[i]; k++)
            assert_true(finds(model.index, &model.sources[i], 1, model.held[i][k], "x"));
    assert_int_equal(span_index_entries(model.index), SMALL);
    span_index_sweep(model.index, 1000 * SECOND);
    assert_int_equal(span_index_entries(model.index), 0);
    span_index_unref(model.index);
}

/* When memory is short, the peer with the largest sets loses those that it has not used for the
 * longest time, even if its spans are few, large, and of many services. */
static void test_large_values_push_out_their_own(void **state)
{
    (void)state;
    static char large[SPAN_INDEX_VALUES_MAX + 1];
    memset(large, 'x', sizeof large - 1);
    for (unsigned services = 1; services <= 300; services += 299) {
        struct span_index *index = make_index(UINT64_C(4) * ROOM, 120);
        struct span_source good = source_of(index, "", 1, "shop");
        char service[32];
        for (uint64_t span = 1; span <= GOOD; span++) {
            put_of(index, &good, 7, span, "good");
            for (uint64_t i = 0; i < 20; i++) {
                snprintf(service, sizeof service, "%u", (unsigned)(span * 20 + i) % services);
                struct span_source flood = source_of(index, "", 2, service);
                char number[16];
                snprintf(number, sizeof number, "%08u", (unsigned)(span * 20 + i));
                memcpy(large, number, 8); /* each has a set of its own */
                put_of(index, &flood, 8, 1000000 + span * 20 + i, large);
            }
        }
        assert_int_equal(joined_of(index, &good), GOOD);
        assert_true(span_index_take_evicted(index, SPAN_EVICTED_MEMORY) > UINT64_C(15) * GOOD);
        assert_in_range(span_index_memory(index), 0, ROOM * 4 * 500);
        span_index_unref(index);
    }
}

/* A span that is sent repeatedly takes no room of others. */
static void test_repeats_keep_their_place(void **state)
{
    (void)state;
    struct span_index *index = make_index(UINT64_C(4) * ROOM, 120);
    struct span_source good = source_of(index, "", 1, "shop"), bad = source_of(index, "", 2, "x");
    for (uint64_t span = 1; span <= GOOD; span++) {
        put_of(index, &good, 7, span, "good");
        for (int i = 0; i < 300; i++)
            put_of(index, &bad, 8, 1000000, "the same as ever");
    }
    assert_int_equal(joined_of(index, &good), GOOD);
    assert_int_equal(span_index_take_evicted(index, SPAN_EVICTED_MEMORY), 0);
    span_index_unref(index);
}

/* ---- threads ---- */

struct hammer {
    struct span_index *index;
    uint64_t seed;
};

static void *hammer(void *argument)
{
    struct hammer *h = argument;
    struct arena arena = {0};
    struct span_wakeups wakeups = {0};
    struct span_waiter waiter = {h->seed, (uint32_t)h->seed};
    uint64_t number = h->seed;
    for (int i = 0; i < 20000; i++) {
        number = number * 6364136223846793005u + 1442695040888963407u;
        uint64_t span = (number >> 33) % 3000 + 1;
        uint64_t totals[3] = {1, 1, 10};
        struct span_source source =
            span_index_source(h->index, SLICE(""), number >> 60, SLICE("shop"), SECOND);
        struct span_put put = {
            .key = key_of(1, span), .source = source, .facts = {.values = SLICE("a name")}};
        struct span_find find = {
            .key = key_of(i % 4 ? 1 : 0, span), .source = source, .totals = totals};
        if (i % 2)
            span_index_put_many(h->index, SECOND, &put, 1, &arena, &wakeups);
        else
            span_index_add_many(h->index, SECOND, &find, 1, &waiter);
        span_index_find_many(h->index, SECOND, &find, 1, &arena);
        if (find.match_count > 0)
            assert_true(slice_is(find.matches[0].facts.values, "a name"));
        if (i % 500 == 0) {
            arena_deinit(&arena);
            arena = (struct arena){0};
        }
    }
    span_wakeups_deinit(&wakeups);
    arena_deinit(&arena);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct span_index *index = make_index(2000, 120);
    struct hammer hammers[4];
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++) {
        hammers[i] = (struct hammer){index, i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &hammers[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_true(span_index_entries(index) <= 2004);
    span_index_unref(index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found_with_its_values),
        cmocka_unit_test(test_the_window_ends),
        cmocka_unit_test(test_the_window_can_change),
        cmocka_unit_test(test_one_id_in_several_traces),
        cmocka_unit_test(test_samples_do_not_push_a_span_out),
        cmocka_unit_test(test_the_oldest_leaves_when_full),
        cmocka_unit_test(test_late_samples_keep_a_span_in_a_full_index),
        cmocka_unit_test(test_late_samples_stay_for_their_window),
        cmocka_unit_test(test_totals_wait_for_their_span),
        cmocka_unit_test(test_totals_without_a_trace_id),
        cmocka_unit_test(test_waiters_are_woken_once),
        cmocka_unit_test(test_what_left_early_is_remembered),
        cmocka_unit_test(test_a_waiter_is_taken_out_where_it_stands),
        cmocka_unit_test(test_profile_ids),
        cmocka_unit_test(test_memory_stays_bounded),
        cmocka_unit_test(test_what_comes_again_takes_no_more_memory),
        cmocka_unit_test(test_samples_push_nothing_out_by_memory),
        cmocka_unit_test(test_large_values_push_out_by_memory),
        cmocka_unit_test(test_values_that_are_given_up_leave_the_entry),
        cmocka_unit_test(test_against_a_model),
        cmocka_unit_test(test_the_window_ends_while_entries_move),
        cmocka_unit_test(test_the_oldest_leave_in_waves),
        cmocka_unit_test(test_a_flood_pushes_out_its_own),
        cmocka_unit_test(test_invented_services_push_out_their_own),
        cmocka_unit_test(test_many_spans_with_a_victims_id),
        cmocka_unit_test(test_the_first_writer_wins),
        cmocka_unit_test(test_tenants_never_meet),
        cmocka_unit_test(test_tenants_without_a_number),
        cmocka_unit_test(test_shares_against_a_model),
        cmocka_unit_test(test_large_values_push_out_their_own),
        cmocka_unit_test(test_repeats_keep_their_place),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

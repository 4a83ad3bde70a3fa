#include "core/data/span_sets.h"

#include "core/base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

enum { ROOM = 65536, WINDOW_S = 120 };

static uint64_t store(struct span_sets *sets, uint64_t now_s, uint16_t owner, const char *values,
                      uint8_t kind)
{
    struct span_sets_writer writer;
    struct span_facts facts = {.kind = kind, .status = 1, .values = slice_of_string(values)};
    span_sets_begin(&writer, sets, 1, now_s * SECOND, WINDOW_S * SECOND);
    uint64_t hash = span_sets_store(&writer, owner, &facts);
    span_sets_finish(&writer);
    return hash;
}

static bool is_there(struct span_sets *sets, uint64_t hash, const char *values, uint8_t kind)
{
    struct arena arena = {0};
    struct span_sets_reader reader;
    struct span_facts facts = {0};
    span_sets_open(&reader, sets, 1, &arena);
    bool found = span_sets_read(&reader, hash, &facts);
    if (found) {
        assert_true(slice_is(facts.values, values));
        assert_int_equal(facts.kind, kind);
        assert_int_equal(facts.status, 1);
    }
    arena_deinit(&arena);
    return found;
}

static void test_equal_sets_are_stored_once(void **state)
{
    (void)state;
    struct span_sets *sets = span_sets_new(ROOM, 1);
    uint64_t hash = store(sets, 1, 3, "GET /", 2);
    size_t memory = span_sets_memory(sets);
    for (int i = 0; i < 1000; i++)
        assert_true(store(sets, 1, 3, "GET /", 2) == hash);
    assert_int_equal(span_sets_memory(sets), memory);
    assert_true(is_there(sets, hash, "GET /", 2));
    uint64_t others[] = {store(sets, 1, 3, "GET /", 3), store(sets, 1, 4, "GET /", 2),
                         store(sets, 1, 3, "GET /a", 2), store(sets, 1, 3, "", 2)};
    const char *const values[] = {"GET /", "GET /", "GET /a", ""};
    for (int i = 0; i < 4; i++) {
        assert_true(others[i] != hash && others[i] != 0);
        assert_true(is_there(sets, others[i], values[i], i == 0 ? 3 : 2));
    }
    span_sets_free(sets);
}

static void test_a_set_stays_while_its_spans_may_be_found(void **state)
{
    (void)state;
    struct span_sets *sets = span_sets_new(ROOM, 1);
    uint64_t used = store(sets, 0, 3, "used", 2), idle = store(sets, 0, 3, "idle", 2);
    store(sets, 100, 3, "used", 2);
    span_sets_sweep(sets, WINDOW_S * SECOND, WINDOW_S * SECOND);
    assert_true(is_there(sets, used, "used", 2) && is_there(sets, idle, "idle", 2));
    span_sets_sweep(sets, 151 * SECOND, WINDOW_S * SECOND);
    assert_true(is_there(sets, used, "used", 2));
    assert_false(is_there(sets, idle, "idle", 2));
    span_sets_sweep(sets, 251 * SECOND, WINDOW_S * SECOND);
    assert_false(is_there(sets, used, "used", 2));
    assert_int_equal(span_sets_take_evicted(sets), 0); /* they were not needed any more */
    assert_true(store(sets, 300, 3, "used", 2) == used);
    assert_true(is_there(sets, used, "used", 2));
    span_sets_free(sets);
}

/* An owner that invents sets loses its own, those used last stay, and what others use stays. */
static void test_a_flood_takes_only_its_own_room(void **state)
{
    (void)state;
    enum { FLOOD = 30000 };
    struct span_sets *sets = span_sets_new(ROOM, 1);
    uint64_t good = store(sets, 1, 3, "good", 2), own = store(sets, 1, 7, "own", 2), last = 0;
    char values[64];
    for (unsigned i = 0; i < FLOOD; i++) {
        snprintf(values, sizeof values, "invented %u", i);
        last = store(sets, 2, 7, values, 2);
        if (i % 100 == 0)
            assert_true(store(sets, 2, 7, "own", 2) == own);
    }
    assert_true(is_there(sets, good, "good", 2));
    assert_true(is_there(sets, own, "own", 2));
    assert_true(is_there(sets, last, values, 2));
    uint64_t evicted = span_sets_take_evicted(sets);
    assert_in_range(evicted, FLOOD - 1000, FLOOD);
    assert_true(span_sets_memory(sets) < UINT64_C(3) * ROOM);
    span_sets_free(sets);
}

/* The count of evicted spans is that of the last window or two, however many used the set. */
static void test_spans_of_an_evicted_set_are_counted(void **state)
{
    (void)state;
    struct span_sets *sets = span_sets_new(ROOM, 1);
    static char large[SPAN_INDEX_VALUES_MAX];
    struct span_sets_writer writer;
    struct span_facts facts = {.values = SLICE("many")};
    for (uint64_t now_s = 1; now_s <= 1001; now_s += 100) {
        span_sets_begin(&writer, sets, 500, now_s * SECOND, WINDOW_S * SECOND);
        for (int i = 0; i < 500; i++)
            span_sets_store(&writer, 3, &facts);
        span_sets_finish(&writer);
    }
    for (unsigned i = 0; i < 16; i++) { /* the last one does not fit beside it */
        snprintf(large, sizeof large, "%01000u", i);
        memset(large + 1000, 'x', sizeof large - 1001);
        store(sets, 1002, 3, large, 2);
    }
    assert_in_range(span_sets_take_evicted(sets), 500, 2000 + 16);
    span_sets_free(sets);
}

int main(void)
{
    hash_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_sets_are_stored_once),
        cmocka_unit_test(test_a_set_stays_while_its_spans_may_be_found),
        cmocka_unit_test(test_a_flood_takes_only_its_own_room),
        cmocka_unit_test(test_spans_of_an_evicted_set_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

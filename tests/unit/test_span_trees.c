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
    struct span_trees *trees = span_trees_new(1000);
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
    struct span_trees *trees = span_trees_new(100000);
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
    struct span_trees *trees = span_trees_new(100);
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
    struct span_trees *trees = span_trees_new(100);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_root_is_above),
        cmocka_unit_test(depth_and_size_are_bounded),
        cmocka_unit_test(the_owner_with_the_most_spans_gives_up_room),
        cmocka_unit_test(trees_stay_for_the_window_after_their_newest_span),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

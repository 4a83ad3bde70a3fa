#include "extensions/explore/largest.h"
#include "tests/unit/random_profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ITEMS = 200 };

struct items {
    uint64_t weights[ITEMS];
    uint32_t costs[ITEMS];
    uint64_t total;
};

/* Few weights are many ties. */
static void make_items(struct items *items, uint32_t kinds)
{
    items->total = 0;
    for (int i = 0; i < ITEMS; i++) {
        unsigned shift = kinds > 10 ? random_below(60) : 0;
        items->weights[i] = (uint64_t)random_below(kinds) << shift;
        items->costs[i] = 1 + random_below(50);
        items->total += items->costs[i];
    }
}

/* By definition: an item is left if there is room for it and all larger ones, and for those of its
 * weight before it that were left. */
static bool is_left(const struct items *items, int item, uint64_t room, const bool *left)
{
    uint64_t before = items->costs[item];
    for (int i = 0; i < ITEMS; i++)
        if (items->weights[i] > items->weights[item] ||
            (items->weights[i] == items->weights[item] && i < item && left[i]))
            before += items->costs[i];
    return before <= room;
}

static void leaves_what_there_is_room_for(void **state)
{
    (void)state;
    static const uint32_t kinds[] = {1, 2, 10, 1000, UINT32_MAX};
    for (int round = 0; round < 200; round++) {
        struct items items;
        bool left[ITEMS];
        make_items(&items, kinds[round % 5]);
        uint64_t room = random_below((uint32_t)items.total);
        struct largest largest = largest_of(items.weights, items.costs, ITEMS, room);
        for (int i = 0; i < ITEMS; i++) {
            left[i] = largest_takes(&largest, items.weights[i], items.costs[i]);
            assert_int_equal(left[i], is_left(&items, i, room, left));
        }
    }
}

static void counts_items_without_costs(void **state)
{
    (void)state;
    const uint64_t weights[] = {5, 0, UINT64_MAX, 5, 7, 5};
    static const bool expected[] = {true, false, true, true, true, false};
    struct largest largest = largest_of(weights, NULL, 6, 4);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(largest_takes(&largest, weights[i], 1), expected[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_what_there_is_room_for),
        cmocka_unit_test(counts_items_without_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

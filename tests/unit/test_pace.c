#include "core/base/container_of.h"
#include "core/base/worker.h"
#include "core/pipeline/pace.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct worker worker;

struct items {
    struct pace pace;
    unsigned left;
    unsigned done;
    size_t bytes; /* of each item */
    bool pauses;  /* after each item */
    uint64_t turn;
    unsigned in_turn, most_in_turn;
};

static bool next(struct pace *pace)
{
    struct items *items = container_of(pace, struct items, pace);
    if (items->left == 0)
        return false;
    items->left--;
    items->done++;
    items->in_turn = items->turn == worker.turn ? items->in_turn + 1 : 1;
    items->turn = worker.turn;
    if (items->in_turn > items->most_in_turn)
        items->most_in_turn = items->in_turn;
    pace_count_bytes(pace, items->bytes);
    if (items->pauses)
        pace_pause(pace, 1000);
    pace_pump(pace); /* does nothing, because it is the caller */
    return true;
}

static void begin(struct items *items, unsigned count)
{
    *items = (struct items){.left = count};
    pace_init(&items->pace, &worker, next);
}

static void the_rest_follows_in_the_next_turns(void **state)
{
    (void)state;
    struct items items;
    begin(&items, 2 * PACE_PER_TURN + 1);
    pace_pump(&items.pace);
    pace_pump(&items.pace); /* in the same turn */
    assert_int_equal(items.done, PACE_PER_TURN);
    worker_advance(&worker, worker.now_ns);
    assert_int_equal(items.done, 2 * PACE_PER_TURN + 1);
    assert_int_equal(items.most_in_turn, PACE_PER_TURN);
    assert_false(pace_is_paused(&items.pace));
}

static void large_items_count_more(void **state)
{
    (void)state;
    struct items items;
    begin(&items, PACE_PER_TURN);
    items.bytes = (size_t)3 * PACE_BYTES;
    pace_pump(&items.pace);
    assert_int_equal(items.done, PACE_PER_TURN / 4);
    pace_stop(&items.pace);
    begin(&items, PACE_PER_TURN);
    pace_count_work(&items.pace, (size_t)PACE_PER_TURN / 4 * PACE_BYTES); /* four times */
    items.pace.turn = worker.turn;
    pace_pump(&items.pace);
    assert_int_equal(items.done, 0);
    pace_stop(&items.pace);
}

static void nothing_is_called_in_a_pause(void **state)
{
    (void)state;
    struct items items;
    begin(&items, 3);
    items.pauses = true;
    pace_pump(&items.pace);
    pace_pump(&items.pace);
    assert_int_equal(items.done, 1);
    assert_true(pace_is_paused(&items.pace));
    worker_advance(&worker, worker.now_ns + 1000);
    assert_int_equal(items.done, 2);
    pace_resume(&items.pace);
    assert_int_equal(items.done, 3);
    pace_stop(&items.pace);
    assert_false(pace_is_paused(&items.pace));
}

static int set_up(void **state)
{
    (void)state;
    worker_init_manual(&worker, 0, 1000);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    worker_deinit(&worker);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rest_follows_in_the_next_turns),
        cmocka_unit_test(large_items_count_more),
        cmocka_unit_test(nothing_is_called_in_a_pause),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

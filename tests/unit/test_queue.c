#include "core/pipeline/queue.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct share held;
static struct queue queue;

static int set_up(void **state)
{
    (void)state;
    held = (struct share){.own.limit_bytes = 10000};
    queue = (struct queue){.capacity = 10, .held = &held};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(atomic_load(&queue.queued), 0);
    assert_int_equal(atomic_load(&queue.sending_bytes), 0);
    assert_int_equal(share_used(&held), 0);
    return 0;
}

static void it_has_room_for_its_size(void **state)
{
    (void)state;
    struct room room[2];
    assert_true(queue_reserve(&queue, 7, 100, &room[0]));
    assert_true(queue_has_capacity(&queue, 3));
    assert_false(queue_has_capacity(&queue, 4));
    assert_false(queue_reserve(&queue, 4, 100, &room[1]));
    assert_int_equal(share_used(&held), room[0].bytes); /* nothing is left of the other one */
    assert_true(queue_reserve(&queue, 3, 100, &room[1]));
    assert_int_equal(atomic_load(&queue.queued), 10);
    queue_release(&room[0]);
    queue_release(&room[1]);
}

static void it_has_room_for_its_share_of_memory(void **state)
{
    (void)state;
    struct room room[2];
    assert_true(queue_reserve(&queue, 1, 6000, &room[0]));
    assert_in_range(room[0].bytes, 6001, 8000); /* plus the overhead of a request */
    assert_false(queue_reserve(&queue, 1, 6000, &room[1]));
    assert_true(queue_has_capacity(&queue, 1));
    queue_release(&room[0]);
}

static void one_request_always_has_room(void **state)
{
    (void)state;
    struct room room[2];
    budget_charge(&held.own, 9000); /* kept batches */
    assert_true(queue_reserve(&queue, 1, 50000, &room[0]));
    assert_false(queue_reserve(&queue, 1, 1, &room[1]));
    queue_release(&room[0]);
    assert_false(queue_reserve(&queue, 11, 1, &room[1])); /* but not for more than queue_size */
    budget_release(&held.own, 9000);
}

static void a_room_may_be_all_of_it(void **state)
{
    (void)state;
    struct room room[2];
    assert_true(queue_reserve(&queue, 2, 100, &room[0]));
    assert_true(queue_has_only(&room[0]));
    assert_true(queue_reserve(&queue, 2, 100, &room[1]));
    assert_false(queue_has_only(&room[0]));
    queue_release(&room[1]);
    assert_true(queue_has_only(&room[0]));
    queue_release(&room[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_has_room_for_its_size, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_has_room_for_its_share_of_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_request_always_has_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_room_may_be_all_of_it, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/memory.h"
#include "core/net/h2_refusals.h"

/* test_h2_server.c tests the answers and the resets. */

static void fill(struct h2_refusals *refusals, unsigned count)
{
    refusals->streams = memory_array(H2_REFUSALS_MAX, sizeof *refusals->streams);
    for (; refusals->count < count; refusals->count++)
        refusals->streams[refusals->count].stream_id = (int32_t)(2 * refusals->count + 1);
}

static void a_connection_has_a_limit(void **state)
{
    (void)state;
    struct h2_refusals refusals = {0};
    unsigned worker_count = H2_REFUSALS_MAX + 5;
    fill(&refusals, H2_REFUSALS_MAX);
    assert_false(h2_refusals_answer(&refusals, &worker_count, NULL, 1001, true));
    assert_int_equal(worker_count, H2_REFUSALS_MAX + 5);
    h2_refusals_deinit(&refusals, &worker_count);
    assert_int_equal(worker_count, 5);
}

static void a_worker_has_a_limit(void **state)
{
    (void)state;
    struct h2_refusals refusals = {0};
    unsigned worker_count = H2_REFUSALS_WORKER_MAX;
    assert_false(h2_refusals_answer(&refusals, &worker_count, NULL, 1, true));
    assert_int_equal(worker_count, H2_REFUSALS_WORKER_MAX);
    assert_int_equal(h2_refusals_check(&refusals, NULL, 0), UINT64_MAX);
    h2_refusals_deinit(&refusals, &worker_count);
    assert_int_equal(worker_count, H2_REFUSALS_WORKER_MAX);
}

static void closed_streams_make_room(void **state)
{
    (void)state;
    struct h2_refusals refusals = {0};
    unsigned worker_count = 10;
    fill(&refusals, 3); /* 1, 3, 5 */
    h2_refusals_closed(&refusals, &worker_count, 7);
    assert_int_equal(refusals.count, 3);
    h2_refusals_closed(&refusals, &worker_count, 1);
    h2_refusals_closed(&refusals, &worker_count, 1);
    assert_int_equal(refusals.count, 2);
    assert_int_equal(worker_count, 9);
    assert_int_equal(refusals.streams[0].stream_id + refusals.streams[1].stream_id, 8);
    h2_refusals_deinit(&refusals, &worker_count);
    assert_int_equal(worker_count, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_has_a_limit),
        cmocka_unit_test(a_worker_has_a_limit),
        cmocka_unit_test(closed_streams_make_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

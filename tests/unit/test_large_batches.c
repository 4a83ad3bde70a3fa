/* Batches on which a node works at once or in a job: their order, and the ways to end. A manual
 * worker runs a job at once, and fixture_advance delivers its result. */
#include "core/pipeline/large_batches.h"

#include "core/pipeline/component_as.h"
#include "core/pipeline/items.h"
#include "core/pipeline/queue.h"
#include "core/pipeline/reservation.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LARGE_BYTES = 1000 };

/* ---- a processor that marks its spans ---- */

struct marking_node {
    struct node node;
    struct large_batches batches;
    unsigned worked; /* batches */
    uint64_t marked; /* spans */
    bool is_flat;    /* the last batch was, after the work */
};

extern const struct component_type marking_type;

static struct marking_node *node_of(struct node *node)
{
    return node_as(struct marking_node, node, &marking_type);
}

static uint64_t mark(struct node *node, struct batch *batch)
{
    uint64_t marked = 0;
    node_of(node)->worked++;
    for (struct items items = items_of(batch); items_next(&items); marked++)
        message_append(item_open(&items), &batch->arena, SLICE("\x30\x01"));
    return marked;
}

static void count_and_forward(struct node *node, struct batch *batch, uint64_t marked)
{
    assert_ptr_equal(batch->owner, node->worker);
    node_of(node)->marked += marked;
    node_of(node)->is_flat = !batch_is_changed(batch);
    node_forward(node, batch);
}

static const struct batch_work marking = {mark, count_and_forward, LARGE_BYTES};

static bool marking_start(struct node *node, struct error *err)
{
    (void)err;
    large_batches_init(&node_of(node)->batches, node, &marking);
    return true;
}

static void marking_consume(struct node *node, struct batch *batch)
{
    large_batches_add(&node_of(node)->batches, batch);
}

static bool marking_is_idle(const struct node *node)
{
    return large_batches_is_empty(
        &node_as(const struct marking_node, node, &marking_type)->batches);
}

static void marking_stop(struct node *node)
{
    large_batches_stop(&node_of(node)->batches);
}

static const struct field no_fields[] = {FIELD_END};
const struct component_type marking_type = {
    .config = {.name = "marking",
               .section = CONFIG_PROCESSORS,
               .stability = {STABILITY_STABLE, STABILITY_STABLE},
               .fields = no_fields,
               .config_size = 1},
    .node_size = sizeof(struct marking_node),
    .node_start = marking_start,
    .consume = marking_consume,
    .is_idle = marking_is_idle,
    .node_stop = marking_stop,
};

/* ---- batches ---- */

static struct fixture fixture;
static struct node *node;

static int set_up(void **state)
{
    (void)state;
    fixture_init(&fixture, 1);
    node = fixture_place(&fixture, &marking_type, "marking", "processors: {marking: }", "traces",
                         SIGNAL_TRACES)
               ->nodes[0];
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fixture_deinit(&fixture);
    return 0;
}

/* A batch of one span. Its name is repeated until the batch is large. */
static void submit(const char *letter, bool is_large, struct probe *probe)
{
    struct text name = {0};
    for (int i = 0; i < (is_large ? LARGE_BYTES : 1); i++)
        text_append(&name, letter);
    struct buffer *span = fixture_span(text_string(&name));
    fixture_consume(&fixture, node, buffer_slice(span), 1, probe);
    buffer_unref(span);
    text_deinit(&name);
}

/* The first letter of each recorded span, which must be marked. */
static void expect_order(const char *letters)
{
    struct text got = {0};
    for (size_t i = 0; i < fixture.recorder.count; i++) {
        char *json = fixture_recorded_json(&fixture, i);
        char *name = strstr(json, "\"name\":\"");
        assert_non_null(name);
        assert_non_null(strstr(json, "\"kind\":1"));
        text_append_char(&got, name[strlen("\"name\":\"")]);
        free(json);
    }
    assert_string_equal(text_string(&got), letters);
    text_deinit(&got);
}

static bool always(const struct receipt *receipt)
{
    (void)receipt;
    return true;
}

static void stop(void)
{
    outlet_stop(&node->outlets[SIGNAL_TRACES]);
    node->component->type->node_stop(node);
}

/* ---- order ---- */

static void small_ones_are_forwarded_at_once(void **state)
{
    (void)state;
    struct probe probe;
    submit("a", false, &probe);
    assert_int_equal(probe.settled, 1);
    expect_order("a");
    assert_int_equal(node_of(node)->marked, 1);
    assert_false(node_of(node)->is_flat); /* nobody has copied it */
    assert_true(fixture_is_idle(node));
}

/* The next node would do it on the loop. */
static void large_ones_are_flattened_by_the_job(void **state)
{
    (void)state;
    struct probe probe;
    submit("a", true, &probe);
    fixture_advance(&fixture, 0);
    assert_true(node_of(node)->is_flat);
    expect_order("a");
}

static void all_wait_behind_a_large_one(void **state)
{
    (void)state;
    struct probe probes[4];
    const char *const letters[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++)
        submit(letters[i], i % 2 == 0, &probes[i]);
    assert_int_equal(fixture.recorder.count, 0);
    assert_int_equal(probes[0].settled, 0);
    assert_false(fixture_is_idle(node));
    fixture_advance(&fixture, 0);
    expect_order("abcd");
    assert_int_equal(node_of(node)->marked, 4);
    for (int i = 0; i < 4; i++)
        assert_true(probes[i].settled == 1 && verdict_is_ok(&probes[i].verdict));
    assert_true(fixture_is_idle(node));
    submit("e", false, &probes[0]);
    expect_order("abcde");
}

/* ---- the sender gives up ---- */

static void all_wait_while_it_is_held(void **state)
{
    (void)state;
    struct large_batches *batches = &node_of(node)->batches;
    large_batches_hold(batches);
    submit("a", false, NULL);
    submit("b", true, NULL);
    fixture_advance(&fixture, 0);
    assert_int_equal(fixture.recorder.count, 0);
    assert_false(fixture_is_idle(node));
    large_batches_release(batches);
    fixture_advance(&fixture, 0);
    expect_order("ab");
    assert_true(fixture_is_idle(node));
}

static void abandoned_ones_are_dropped(void **state)
{
    (void)state;
    struct probe probes[3];
    submit("a", true, &probes[0]);
    submit("b", false, &probes[1]);
    submit("c", false, &probes[2]);
    probes[0].receipt.is_abandoned = always; /* during its job */
    probes[1].receipt.is_abandoned = always; /* while it waits */
    fixture_advance(&fixture, 0);
    expect_order("c");
    assert_int_equal(node_of(node)->worked, 2); /* not on the one that waited */
    assert_int_equal(node_of(node)->marked, 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(probes[i].verdict.code, verdict_sender_is_gone.code);
    assert_true(fixture_is_idle(node));
}

/* ---- drain and stop ---- */

static void a_drain_waits_for_jobs(void **state)
{
    (void)state;
    struct probe probe;
    submit("a", true, &probe);
    fixture_drain(node);
    assert_false(fixture_is_idle(node));
    fixture_advance(&fixture, 0);
    assert_true(fixture_is_idle(node));
    assert_true(verdict_is_ok(&probe.verdict));
}

/* Nobody sends again what has no receipt, so it is counted. */
static void a_stop_refuses_all(void **state)
{
    (void)state;
    struct probe probes[2];
    submit("a", true, &probes[0]);
    submit("b", false, &probes[1]);
    submit("c", true, NULL);
    stop();
    for (int i = 0; i < 2; i++)
        assert_int_equal(probes[i].verdict.code, verdict_shutting_down.code);
    assert_int_equal(atomic_load(&fixture.process.lost_items), 1);
    assert_int_equal(fixture.recorder.count, 0);
    assert_int_equal(node_of(node)->marked, 0);
    assert_true(fixture_is_idle(node));
}

/* ---- reservations ---- */

/* A large batch of one unknown field. */
static struct batch *batch_with(struct reservation *reservation)
{
    static const uint8_t zeros[LARGE_BYTES];
    enum { UNKNOWN = 100 };
    struct slice payload = slice_of(zeros, sizeof zeros);
    struct buffer *buffer = buffer_new(wire_size_bytes(UNKNOWN, payload.size), NULL);
    buffer->size = (size_t)(wire_write_bytes(buffer->data, UNKNOWN, payload) - buffer->data);
    struct batch *batch = batch_new(node->worker, SIGNAL_TRACES, buffer, 1, NULL, NULL);
    batch->reservation = reservation_ref(reservation);
    return batch;
}

static void room_stays_reserved(void **state)
{
    (void)state;
    struct queue queue = {.capacity = 10, .sizer = QUEUE_SIZER_ITEMS};
    struct share held = {.own.limit_bytes = 1 << 20};
    queue.held = &held;
    struct reservation *reservation = reservation_new();
    struct room room;
    assert_true(queue_reserve(&queue, 1, 100, &room));
    reservation_add(reservation, &room);
    marking_consume(node, batch_with(reservation));
    reservation_close(reservation); /* as the outlet does after `consume` */
    assert_int_equal(atomic_load(&queue.queued), 1);
    fixture_advance(&fixture, 0);
    assert_int_equal(atomic_load(&queue.queued), 0);
    reservation_unref(reservation);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(small_ones_are_forwarded_at_once),
        TEST(large_ones_are_flattened_by_the_job),
        TEST(all_wait_behind_a_large_one),
        TEST(all_wait_while_it_is_held),
        TEST(abandoned_ones_are_dropped),
        TEST(a_drain_waits_for_jobs),
        TEST(a_stop_refuses_all),
        TEST(room_stays_reserved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

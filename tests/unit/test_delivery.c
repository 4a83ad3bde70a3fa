#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/data/json.h"
#include "core/data/wire_writer.h"
#include "core/pipeline/delivery.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define START_NS (1000 * SECOND)

/* Two workers with a delivery each, and a backend that answers when the test tells it to. */
enum { WORKERS = 2, SENT_MAX = 64 };

struct lane {
    struct node node;
    struct delivery delivery;
    struct shipment *sent[SENT_MAX]; /* current attempts, oldest first */
    size_t sent_count;
    size_t attempts;
    size_t aborted;
    uint64_t attempted_ns;
};

static struct worker workers[WORKERS];
static struct metrics *metrics;
static struct process process;
static struct component component;
static struct sending_queue_settings queue;
static struct retry_settings retry;
static struct delivery_shared shared;
static struct lane lanes[WORKERS];
static uint64_t random_bits;

struct probe {
    struct receipt receipt;
    unsigned settled;
    struct verdict verdict;
};

static void on_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct probe *probe = (struct probe *)receipt;
    probe->settled++;
    probe->verdict = *verdict;
}

static void ship(struct node *node, struct shipment *shipment)
{
    struct lane *lane = (struct lane *)node;
    assert_true(lane->sent_count < SENT_MAX);
    lane->sent[lane->sent_count++] = shipment;
    lane->attempts++;
    lane->attempted_ns = node->worker->now_ns;
}

static void take(struct lane *lane, size_t i)
{
    lane->sent_count--;
    for (; i < lane->sent_count; i++)
        lane->sent[i] = lane->sent[i + 1];
}

static void abort_attempt(struct node *node, struct shipment *shipment)
{
    struct lane *lane = (struct lane *)node;
    for (size_t i = 0; i < lane->sent_count; i++) {
        if (lane->sent[i] != shipment)
            continue;
        take(lane, i);
        lane->aborted++;
        return;
    }
    fail_msg("aborted what was not being sent");
}

static uint64_t fixed_random(void)
{
    return random_bits;
}

static int set_up(void **state)
{
    (void)state;
    hash_init_with(1);
    metrics = metrics_new(WORKERS);
    process = (struct process){.workers = workers, .worker_count = WORKERS, .metrics = metrics};
    component = (struct component){.id = "otlp", .label = "exporter otlp", .process = &process};
    queue = (struct sending_queue_settings){.enabled = true, .num_consumers = 4, .queue_size = 8};
    retry = (struct retry_settings){.enabled = true,
                                    .initial_interval = 5 * (int64_t)SECOND,
                                    .randomization_factor = 0.5,
                                    .multiplier = 2,
                                    .max_interval = 30 * (int64_t)SECOND,
                                    .max_elapsed_time = 300 * (int64_t)SECOND};
    random_bits = UINT64_C(1) << 63; /* the middle */
    for (unsigned i = 0; i < WORKERS; i++)
        worker_init_manual(&workers[i], i, START_NS);
    return 0;
}

static void start(void)
{
    shared = (struct delivery_shared){0};
    delivery_shared_init(&shared, &component, SIGNAL_TRACES, &queue, "server_address=\"x\"");
    for (unsigned i = 0; i < WORKERS; i++) {
        lanes[i] = (struct lane){0};
        lanes[i].node =
            (struct node){.component = &component, .worker = &workers[i], .signal = SIGNAL_TRACES};
        lanes[i].delivery = (struct delivery){.node = &lanes[i].node,
                                              .queue = &queue,
                                              .retry = &retry,
                                              .shared = &shared,
                                              .send = ship,
                                              .abort = abort_attempt,
                                              .random = fixed_random};
        delivery_start(&lanes[i].delivery);
    }
}

static int tear_down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WORKERS; i++) {
        if (lanes[i].delivery.node)
            delivery_stop(&lanes[i].delivery);
        worker_deinit(&workers[i]);
    }
    assert_int_equal(atomic_load(&shared.queue.queued), 0);
    assert_int_equal(metrics_value(metrics, "otelcol_exporter_in_flight_requests",
                                   "exporter=\"otlp\",data_type=\"traces\""),
                     0);
    delivery_shared_deinit(&shared);
    metrics_free(metrics);
    return 0;
}

static struct batch *new_batch(unsigned lane, uint32_t items, struct probe *probe)
{
    static const uint8_t request[4] = {0x0a, 2, 0x0a, 0};
    struct buffer *buffer = buffer_new(sizeof(request), NULL);
    buffer_append(buffer, request, sizeof(request), sizeof(request));
    if (probe) {
        *probe = (struct probe){0};
        receipt_init(&probe->receipt, on_settled);
    }
    return batch_new(&workers[lane], SIGNAL_TRACES, buffer, items, probe ? &probe->receipt : NULL,
                     NULL);
}

static void consume(unsigned lane, uint32_t items, struct probe *probe)
{
    delivery_consume(&lanes[lane].delivery, new_batch(lane, items, probe));
}

static void answer(unsigned lane, struct verdict verdict)
{
    struct shipment *shipment = lanes[lane].sent[0];
    assert_true(lanes[lane].sent_count > 0);
    take(&lanes[lane], 0);
    delivery_done(shipment, &verdict);
}

static void advance(uint64_t ns)
{
    for (unsigned i = 0; i < WORKERS; i++)
        worker_advance(&workers[i], workers[i].now_ns + ns);
}

static double counted(const char *what)
{
    char name[80];
    snprintf(name, sizeof(name), "otelcol_exporter_%s_spans", what);
    return metrics_value(metrics, name,
                         strcmp(what, "enqueue_failed") == 0
                             ? "exporter=\"otlp\""
                             : "exporter=\"otlp\",server_address=\"x\"");
}

static double queue_size(void)
{
    return metrics_value(metrics, "otelcol_exporter_queue_size",
                         "exporter=\"otlp\",data_type=\"traces\"");
}

static const struct verdict later = {
    .code = GRPC_UNAVAILABLE, .retry_after_ns = -1, .text = "later"};
static const struct verdict never = {
    .code = GRPC_INVALID_ARGUMENT, .retry_after_ns = -1, .text = "never"};

static void a_queue_has_it(void **state)
{
    (void)state;
    struct probe probe;
    start();
    consume(0, 3, &probe);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(probe.verdict.code, GRPC_OK);
    assert_int_equal(lanes[0].sent_count, 1);
    assert_int_equal(queue_size(), 1);
    assert_int_equal(metrics_value(metrics, "otelcol_exporter_queue_capacity",
                                   "exporter=\"otlp\",data_type=\"traces\""),
                     8);
    answer(0, verdict_ok);
    assert_int_equal(queue_size(), 0);
    assert_int_equal(counted("sent"), 3);
    assert_int_equal(counted("send_failed"), 0);
}

static enum status_kind status_now(void)
{
    struct status_event event;
    component_status_set(&component.status, STATUS_OK, NULL);
    component_status_read(&component.status, SIGNAL_TRACES, &event);
    return event.status;
}

static void a_dead_backend_shows_in_the_status(void **state)
{
    (void)state;
    start();
    consume(0, 1, NULL);
    consume(1, 1, NULL);
    assert_int_equal(status_now(), STATUS_OK);
    answer(0, later);
    assert_int_equal(status_now(), STATUS_RECOVERABLE_ERROR);
    answer(1, verdict_ok); /* a success of any worker shows that it is back */
    assert_int_equal(status_now(), STATUS_OK);
    advance(10 * SECOND);
    answer(0, never);
    assert_int_equal(status_now(), STATUS_OK);
}

static void consumers_are_divided(void **state)
{
    (void)state;
    queue.num_consumers = 3;
    start();
    assert_int_equal(lanes[0].delivery.consumers, 2);
    assert_int_equal(lanes[1].delivery.consumers, 1);
    for (int i = 0; i < 4; i++)
        consume(0, 1, NULL);
    assert_int_equal(lanes[0].sent_count, 2);
    answer(0, verdict_ok);
    assert_int_equal(lanes[0].sent_count, 2);
    assert_int_equal(lanes[0].attempts, 3);
    queue.num_consumers = 1;
    for (unsigned i = 0; i < WORKERS; i++) {
        delivery_start(&lanes[i].delivery);
        assert_int_equal(lanes[i].delivery.consumers, 1);
    }
}

static void the_bound_is_over_all_workers(void **state)
{
    (void)state;
    struct probe probe;
    start();
    for (unsigned i = 0; i < 8; i++)
        consume(i % 2, 2, NULL);
    consume(1, 2, &probe);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(probe.verdict.code, GRPC_UNAVAILABLE);
    assert_string_equal(probe.verdict.text, "sending queue is full");
    assert_int_equal(probe.verdict.retry_after_ns, 500000000);
    assert_true(verdict_is_retryable(&probe.verdict));
    assert_int_equal(counted("enqueue_failed"), 2);
    answer(0, verdict_ok);
    consume(1, 2, &probe);
    assert_int_equal(probe.verdict.code, GRPC_OK);
}

static void the_sizer_is_the_unit(void **state)
{
    (void)state;
    struct probe probe;
    queue.sizer = QUEUE_SIZER_ITEMS;
    start();
    consume(0, 6, &probe);
    assert_int_equal(queue_size(), 6);
    consume(0, 3, &probe);
    assert_int_equal(probe.verdict.code, GRPC_UNAVAILABLE);
    consume(0, 9, &probe);
    assert_int_equal(probe.verdict.code, GRPC_RESOURCE_EXHAUSTED);
    assert_false(verdict_is_retryable(&probe.verdict));
    assert_string_equal(probe.verdict.text, "element size too large");
    answer(0, verdict_ok);
    shared.queue.sizer = QUEUE_SIZER_BYTES;
    consume(0, 9, &probe);
    assert_int_equal(queue_size(), 4);
}

/* test_outlet.c tests the use of reservations. */
static void room_is_reserved_over_all_workers(void **state)
{
    (void)state;
    struct room room[3];
    queue.block_on_overflow = true;
    queue.queue_size = 2;
    start();
    struct batch *batch = new_batch(0, 1, NULL);
    size_t bytes = batch_memory(batch);
    assert_true(queue_reserve(lanes[0].node.queue, 1, bytes, &room[0]));
    assert_true(queue_reserve(lanes[1].node.queue, 1, bytes, &room[1]));
    assert_false(queue_reserve(lanes[1].node.queue, 1, bytes, &room[2]));
    assert_int_equal(queue_size(), 2);
    queue_release(&room[0]);
    assert_true(queue_reserve(lanes[1].node.queue, 1, bytes, &room[2]));
    queue_release(&room[1]);
    queue_release(&room[2]);
    assert_int_equal(queue_size(), 0);
    batch_free(batch);
}

static void bytes_are_bounded_too(void **state)
{
    (void)state;
    struct probe probe;
    component.held[SIGNAL_TRACES].own.limit_bytes = 3000; /* two requests with their overhead */
    start();
    consume(0, 1, NULL);
    consume(1, 1, NULL);
    consume(1, 1, &probe);
    assert_int_equal(probe.verdict.code, GRPC_UNAVAILABLE);
    assert_string_equal(probe.verdict.text,
                        "the exporter's share of the memory for requests is used up");
    assert_int_equal(counted("enqueue_failed"), 1);
    answer(0, verdict_ok);
    consume(1, 1, &probe);
    assert_int_equal(probe.verdict.code, GRPC_OK);
    answer(1, verdict_ok);
    answer(1, verdict_ok);
    assert_int_equal(share_used(&component.held[SIGNAL_TRACES]), 0);
    component.held[SIGNAL_TRACES].own.limit_bytes = 10;
    consume(0, 1, &probe); /* larger than the limit, but alone */
    assert_int_equal(probe.verdict.code, GRPC_OK);
    consume(0, 1, &probe);
    assert_int_equal(probe.verdict.code, GRPC_UNAVAILABLE);
}

static bool always(const struct receipt *receipt)
{
    (void)receipt;
    return true;
}

static void what_its_sender_gave_up_is_not_sent(void **state)
{
    (void)state;
    struct probe probe;
    queue.enabled = false;
    start();
    consume(0, 1, &probe);
    answer(0, later);
    probe.receipt.is_abandoned = always;
    advance(10 * SECOND);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(probe.verdict.code, GRPC_CANCELLED);
    assert_int_equal(lanes[0].attempts, 1);
    assert_int_equal(counted("send_failed"), 0);
}

static void what_waits_in_the_queue_for_a_sender_that_gave_up_is_not_sent(void **state)
{
    (void)state;
    struct probe probes[4];
    queue.wait_for_result = true;
    start(); /* two consumers */
    for (int i = 0; i < 4; i++)
        consume(0, 1, &probes[i]);
    probes[2].receipt.is_abandoned = always;
    answer(0, verdict_ok);
    assert_int_equal(probes[2].verdict.code, GRPC_CANCELLED);
    assert_int_equal(lanes[0].attempts, 3);
    answer(0, verdict_ok);
    answer(0, verdict_ok);
    assert_int_equal(probes[3].verdict.code, GRPC_OK);
    assert_int_equal(counted("sent"), 3);
}

static void results_are_waited_for(void **state)
{
    (void)state;
    struct probe probe;
    queue.wait_for_result = true;
    start();
    consume(0, 1, &probe);
    assert_int_equal(probe.settled, 0);
    answer(0, never);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(probe.verdict.code, GRPC_INVALID_ARGUMENT);
    assert_string_equal(probe.verdict.text, "never");
}

static void without_a_queue_the_backend_answers(void **state)
{
    (void)state;
    struct probe probes[20];
    queue.enabled = false;
    start();
    for (int i = 0; i < 20; i++)
        consume(0, 1, &probes[i]);
    assert_int_equal(lanes[0].sent_count, 20); /* only the receivers limit them */
    answer(0, verdict_ok);
    answer(0, never);
    answer(0, later);
    assert_int_equal(probes[0].verdict.code, GRPC_OK);
    assert_int_equal(probes[1].verdict.code, GRPC_INVALID_ARGUMENT);
    assert_int_equal(probes[2].settled, 0);
    advance(6 * SECOND);
    assert_int_equal(lanes[0].attempts, 21);
    while (lanes[0].sent_count > 0)
        answer(0, verdict_ok);
    assert_int_equal(probes[2].verdict.code, GRPC_OK);
    assert_int_equal(counted("sent"), 19);
    assert_int_equal(counted("send_failed"), 1);
}

static void permanent_errors_are_not_retried(void **state)
{
    (void)state;
    start();
    consume(0, 5, NULL);
    answer(0, never);
    advance(1000 * SECOND);
    assert_int_equal(lanes[0].attempts, 1);
    assert_int_equal(counted("send_failed"), 5);
    consume(0, 5, NULL);
    answer(0, verdict_of(GRPC_RESOURCE_EXHAUSTED, "without RetryInfo"));
    assert_int_equal(counted("send_failed"), 10);
}

/* Pauses of 5 s, 10 s, 20 s, 30 s, 30 s ... until the next attempt would be later than 5
 * minutes. */
static void the_wait_grows_and_ends(void **state)
{
    (void)state;
    static const uint64_t waits_s[] = {5, 10, 20, 30, 30, 30, 30, 30, 30, 30, 30};
    uint64_t elapsed = 0;
    start();
    consume(0, 1, NULL);
    for (size_t i = 0; i < sizeof(waits_s) / sizeof(waits_s[0]); i++) {
        answer(0, later);
        advance(waits_s[i] * SECOND - 1);
        assert_int_equal(lanes[0].sent_count, 0);
        advance(1);
        assert_int_equal(lanes[0].sent_count, 1);
        elapsed += waits_s[i];
    }
    assert_int_equal(elapsed, 275);
    answer(0, later); /* 275 + 30 > 300 */
    assert_int_equal(counted("send_failed"), 1);
    assert_int_equal(queue_size(), 0);
}

static void for_ever_is_for_ever(void **state)
{
    (void)state;
    retry.max_elapsed_time = 0;
    start();
    consume(0, 1, NULL);
    for (int i = 0; i < 100; i++) {
        answer(0, later);
        advance(30 * SECOND);
        assert_int_equal(lanes[0].sent_count, 1);
    }
    answer(0, verdict_ok);
    assert_int_equal(counted("sent"), 1);
}

static void the_wait_is_randomized(void **state)
{
    (void)state;
    static const struct {
        uint64_t bits;
        uint64_t wait_ns;
    } table[] = {
        {0, 5 * SECOND / 2}, {UINT64_MAX, 15 * SECOND / 2}, {UINT64_C(1) << 63, 5 * SECOND}};
    for (size_t i = 0; i < 3; i++) {
        random_bits = table[i].bits;
        start();
        consume(0, 1, NULL);
        answer(0, later);
        advance(10 * SECOND);
        int64_t off = (int64_t)(lanes[0].attempted_ns + 10 * SECOND - workers[0].now_ns) -
                      (int64_t)table[i].wait_ns;
        assert_true(off > -10 && off < 10);
        answer(0, verdict_ok);
        delivery_shared_deinit(&shared);
    }
}

static void a_zero_wait_is_no_loop(void **state)
{
    (void)state;
    retry.initial_interval = 0;
    start();
    consume(0, 1, NULL);
    answer(0, later);
    assert_int_equal(lanes[0].attempts, 1);
    advance(SECOND / 100);
    assert_int_equal(lanes[0].attempts, 2);
}

static void throttling_is_a_floor(void **state)
{
    (void)state;
    retry.max_elapsed_time = 0;
    start();
    static const struct {
        int64_t retry_after_ns;
        uint64_t wait_s;
    } table[] = {{0, 5}, {INT64_C(1000000000), 10}, {INT64_C(60000000000), 60}, {INT64_MAX, 300}};
    consume(0, 1, NULL);
    for (size_t i = 0; i < 4; i++) {
        answer(0, verdict_try_later(GRPC_RESOURCE_EXHAUSTED, table[i].retry_after_ns, "slow down"));
        advance(table[i].wait_s * SECOND - 1);
        assert_int_equal(lanes[0].sent_count, 0);
        advance(1);
        assert_int_equal(lanes[0].sent_count, 1);
    }
}

static void without_retry_it_fails_at_once(void **state)
{
    (void)state;
    retry.enabled = false;
    start();
    consume(0, 1, NULL);
    answer(0, later);
    assert_int_equal(counted("send_failed"), 1);
}

static void a_waiting_retry_keeps_its_consumer(void **state)
{
    (void)state;
    start(); /* two consumers each */
    for (int i = 0; i < 3; i++)
        consume(0, 1, NULL);
    answer(0, later);
    answer(0, later);
    assert_int_equal(lanes[0].attempts, 2);
    advance(5 * SECOND);
    answer(0, verdict_ok);
    assert_int_equal(lanes[0].attempts, 5);
}

static void draining_sends_what_there_is(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 4; i++)
        consume(0, 1, NULL);
    answer(0, later);
    answer(0, later);
    assert_int_equal(lanes[0].sent_count, 0);
    lanes[0].node.draining = lanes[1].node.draining = true;
    delivery_drain(&lanes[1].delivery);
    assert_true(delivery_is_idle(&lanes[1].node));
    delivery_drain(&lanes[0].delivery);
    advance(0);
    assert_int_equal(lanes[0].sent_count, 2); /* pauses end at once */
    answer(0, later);
    advance(SECOND); /* and are short from now on */
    assert_int_equal(lanes[0].sent_count, 2);
    while (lanes[0].sent_count > 0)
        answer(0, verdict_ok);
    assert_true(delivery_is_idle(&lanes[0].node));
    assert_int_equal(counted("sent"), 4);
}

/* ---- sending_queue.batch ---- */

/* Consumes a request of `spans` empty spans, with a header `tenant` unless tenant is NULL. */
static void consume_spans_of(const char *tenant, unsigned lane, uint8_t spans, struct probe *probe)
{
    struct context *context = NULL;
    if (tenant) {
        context = context_new();
        context->entries = arena_array(&context->arena, 1, sizeof *context->entries);
        context->entries[context->entry_count++] = (struct context_entry){"tenant", tenant};
    }
    uint8_t request[256] = {0x0a, (uint8_t)(2 + 2 * spans), 0x12, (uint8_t)(2 * spans)};
    assert_true(spans < 60);
    for (size_t i = 0; i < spans; i++)
        request[4 + 2 * i] = 0x12;
    struct buffer *buffer = buffer_new(sizeof(request), NULL);
    buffer_append(buffer, request, 4 + 2 * (size_t)spans, sizeof(request));
    if (probe) {
        *probe = (struct probe){0};
        receipt_init(&probe->receipt, on_settled);
    }
    delivery_consume(&lanes[lane].delivery, batch_new(&workers[lane], SIGNAL_TRACES, buffer, spans,
                                                      probe ? &probe->receipt : NULL, context));
}

static void consume_spans(unsigned lane, uint8_t spans, struct probe *probe)
{
    consume_spans_of(NULL, lane, spans, probe);
}

static void start_batching(uint64_t min_size, uint64_t max_size)
{
    queue.queue_size = 100;
    queue.batch = (struct queue_batch_settings){.enabled = true,
                                                .flush_timeout = (int64_t)SECOND / 5,
                                                .min_size = min_size,
                                                .max_size = max_size};
    start();
}

static uint32_t sent_items(size_t i)
{
    assert_true(i < lanes[0].sent_count);
    return lanes[0].sent[i]->batch->items;
}

static void small_ones_are_joined(void **state)
{
    (void)state;
    struct probe probes[3];
    start_batching(10, 0);
    consume_spans(0, 4, &probes[0]);
    consume_spans(0, 4, &probes[1]);
    assert_int_equal(probes[1].settled, 1); /* the queue has them */
    assert_int_equal(lanes[0].sent_count, 0);
    consume_spans(0, 4, &probes[2]);
    assert_int_equal(lanes[0].sent_count, 1);
    assert_int_equal(sent_items(0), 12);
    assert_int_equal(lanes[0].sent[0]->batch->part_count, 3);
    assert_int_equal(queue_size(), 3);
    answer(0, verdict_ok);
    assert_int_equal(queue_size(), 0);
    assert_int_equal(counted("sent"), 12);
}

static void tenants_are_not_joined(void **state)
{
    (void)state;
    static const char *const tenants[] = {"a", "a", "b", NULL, NULL};
    start_batching(100, 0);
    lanes[0].delivery.sent_by = "tenant";
    for (size_t i = 0; i < 5; i++)
        consume_spans_of(tenants[i], 0, 4, NULL);
    lanes[0].node.draining = true;
    delivery_drain(&lanes[0].delivery);
    static const uint32_t items[] = {8, 4, 8};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(sent_items(0), items[i]);
        answer(0, verdict_ok);
    }
}

/* Requests of the same partition are joined although others came between them. */
static void partitions_are_joined(void **state)
{
    (void)state;
    static const char *const tenants[] = {"a", "b", "a", NULL, "b", "a"};
    static const char *keys[] = {"tenant"};
    start_batching(100, 0);
    queue.batch.partition.metadata_keys = (struct config_strings){keys, 1};
    for (size_t i = 0; i < 6; i++)
        consume_spans_of(tenants[i], 0, (uint8_t)(i + 1), NULL);
    lanes[0].node.draining = true;
    delivery_drain(&lanes[0].delivery);
    static const uint32_t items[] = {1 + 3 + 6, 2 + 5, 4};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(sent_items(0), items[i]);
        answer(0, verdict_ok);
    }
}

static void little_is_sent_after_a_while(void **state)
{
    (void)state;
    start_batching(10, 0);
    consume_spans(0, 1, NULL);
    advance(SECOND / 10);
    consume_spans(0, 1, NULL);
    advance(SECOND / 10 - 1);
    assert_int_equal(lanes[0].sent_count, 0);
    advance(1);
    assert_int_equal(lanes[0].sent_count, 1);
    assert_int_equal(sent_items(0), 2);
    consume_spans(0, 3, NULL);
    advance(SECOND / 5);
    assert_int_equal(sent_items(1), 3);
}

static void large_ones_are_cut(void **state)
{
    (void)state;
    struct probe probe;
    queue.wait_for_result = true;
    start_batching(10, 10);
    consume_spans(0, 24, &probe);
    assert_int_equal(queue_size(), 1);
    assert_int_equal(lanes[0].sent_count, 2);
    assert_int_equal(sent_items(0), 10);
    assert_int_equal(sent_items(1), 10);
    consume_spans(0, 7, NULL); /* does not fit with the other 4 */
    answer(0, verdict_ok);
    assert_int_equal(sent_items(1), 4);
    answer(0, verdict_ok);
    answer(0, never);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(probe.verdict.code, GRPC_INVALID_ARGUMENT);
    advance(SECOND);
    assert_int_equal(sent_items(0), 7);
    answer(0, verdict_ok);
    assert_int_equal(counted("sent"), 27);
    assert_int_equal(counted("send_failed"), 4);
}

/* The same, with a resource that makes the request large. */
static void consume_large_spans(unsigned lane, uint8_t spans, struct probe *probe)
{
    struct wire_writer request = {0};
    static uint8_t text[DELIVERY_LARGE_BYTES];
    size_t resource_spans = wire_writer_begin(&request, TRACES_RESOURCE_SPANS);
    size_t resource = wire_writer_begin(&request, RESOURCE_SPANS_RESOURCE);
    wire_writer_bytes(&request, 15, slice_of(text, sizeof(text))); /* an unknown field */
    wire_writer_end(&request, resource);
    size_t scope_spans = wire_writer_begin(&request, RESOURCE_SPANS_SCOPE_SPANS);
    for (size_t i = 0; i < spans; i++)
        wire_writer_bytes(&request, SCOPE_SPANS_SPANS, (struct slice){0});
    wire_writer_end(&request, scope_spans);
    wire_writer_end(&request, resource_spans);
    struct buffer *buffer = buffer_new(request.size, NULL);
    buffer_append(buffer, request.data, request.size, request.size);
    wire_writer_deinit(&request);
    if (probe) {
        *probe = (struct probe){0};
        receipt_init(&probe->receipt, on_settled);
    }
    delivery_consume(&lanes[lane].delivery, batch_new(&workers[lane], SIGNAL_TRACES, buffer, spans,
                                                      probe ? &probe->receipt : NULL, NULL));
}

static void very_large_ones_are_cut_beside_the_loop(void **state)
{
    (void)state;
    struct probe probe;
    start_batching(10, 10);
    consume_large_spans(0, 24, &probe);
    assert_int_equal(probe.settled, 1); /* the queue has it */
    assert_int_equal(queue_size(), 1);
    consume_spans(0, 10, NULL);
    consume_spans(0, 3, NULL);
    assert_int_equal(lanes[0].sent_count, 0); /* nothing overtakes it */
    assert_false(delivery_is_idle(&lanes[0].node));
    advance(0);
    static const uint32_t items[] = {10, 10, 4, 10, 3};
    for (size_t i = 0; i < 5; i++) {
        advance(SECOND); /* the 4 and the 3 wait for more */
        assert_int_equal(sent_items(0), items[i]);
        answer(0, verdict_ok);
    }
    assert_int_equal(queue_size(), 0);
    assert_true(delivery_is_idle(&lanes[0].node));
    assert_int_equal(counted("sent"), 37);
}

static void a_sender_that_gives_up_while_its_data_is_cut(void **state)
{
    (void)state;
    struct probe probe;
    queue.wait_for_result = true;
    start_batching(10, 10);
    consume_large_spans(0, 24, &probe);
    probe.receipt.is_abandoned = always;
    advance(0);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(probe.verdict.code, GRPC_CANCELLED);
    assert_int_equal(lanes[0].attempts, 0);
    assert_int_equal(queue_size(), 0);
}

static void stopping_while_it_is_cut(void **state)
{
    (void)state;
    struct probe probe;
    queue.wait_for_result = true;
    start_batching(10, 10);
    consume_large_spans(0, 24, &probe);
    delivery_stop(&lanes[0].delivery);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(probe.verdict.code, GRPC_UNAVAILABLE);
    assert_int_equal(counted("send_failed"), 24);
    advance(SECOND);
    assert_int_equal(lanes[0].attempts, 0);
    lanes[0].delivery.node = NULL;
}

static void joined_ones_share_a_result(void **state)
{
    (void)state;
    struct probe probes[3];
    queue.wait_for_result = true;
    start_batching(10, 0);
    for (int i = 0; i < 3; i++)
        consume_spans(0, 4, &probes[i]);
    answer(0, later);
    advance(5 * SECOND);
    assert_int_equal(probes[0].settled, 0);
    answer(0, verdict_ok);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(probes[i].settled, 1);
        assert_int_equal(probes[i].verdict.code, GRPC_OK);
    }
}

static void bytes_can_be_the_unit(void **state)
{
    (void)state;
    queue.sizer = QUEUE_SIZER_BYTES;
    queue.queue_size = 1000;
    start_batching(40, 64);
    queue.queue_size = shared.queue.capacity = 1000;
    consume_spans(0, 10, NULL); /* 24 bytes */
    assert_int_equal(lanes[0].sent_count, 0);
    consume_spans(0, 10, NULL);
    assert_int_equal(lanes[0].sent_count, 1);
    consume_spans(0, 50, NULL); /* 104 bytes: 30 of the 50 spans fit */
    assert_int_equal(sent_items(1), 30);
    assert_true(batch_size(lanes[0].sent[1]->batch) <= 64);
}

/* Returns a request of `samples` samples. Each refers 20 times to an attribute of its own, which
 * has a long key. */
static struct batch *profiles_of(const char *prefix, uint32_t samples)
{
    struct text json = {0};
    text_printf(&json,
                "{\"resourceProfiles\": [{\"scopeProfiles\": [{\"profiles\": [{\"samples\": [");
    for (uint32_t i = 1; i <= samples; i++) {
        text_printf(&json, "%s{\"values\": [1], \"attributeIndices\": [%u", i > 1 ? "," : "", i);
        for (int j = 1; j < 20; j++)
            text_printf(&json, ", %u", i);
        text_printf(&json, "]}");
    }
    text_printf(&json, "]}]}]}], \"dictionary\": {");
    static const char *const empty[] = {"mappingTable", "locationTable", "functionTable",
                                        "linkTable", "stackTable"};
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++)
        text_printf(&json, "\"%s\": [{}], ", empty[i]);
    text_printf(&json, "\"stringTable\": [\"\"");
    for (uint32_t i = 1; i <= samples; i++)
        text_printf(&json, ", \"%s%060u\"", prefix, i);
    text_printf(&json, "], \"attributeTable\": [{}");
    for (uint32_t i = 1; i <= samples; i++)
        text_printf(&json, ", {\"keyStrindex\": %u}", i);
    text_printf(&json, "]}}");
    struct error err = {0};
    struct buffer *buffer = json_to_protobuf(
        JSON_PROFILES_REQUEST, slice_of_string(text_string(&json)), NULL, &(bool){false}, &err);
    assert_non_null(buffer);
    text_deinit(&json);
    return batch_new(&workers[0], SIGNAL_PROFILES, buffer, samples, NULL, NULL);
}

static void start_batching_bytes(uint64_t min_size, uint64_t max_size)
{
    queue.sizer = QUEUE_SIZER_BYTES;
    start_batching(min_size, max_size);
    queue.queue_size = shared.queue.capacity = 10000000;
}

/* Answers all requests and checks that none is larger than max_size. Returns their number. */
static size_t answer_all(uint64_t max_size, uint32_t *items_out)
{
    size_t count = 0;
    *items_out = 0;
    advance(SECOND);
    for (; lanes[0].sent_count > 0; count++) {
        assert_in_range(batch_size(lanes[0].sent[0]->batch), 1, max_size);
        *items_out += lanes[0].sent[0]->batch->items;
        answer(0, verdict_ok);
    }
    assert_true(delivery_is_idle(&lanes[0].node));
    return count;
}

static void what_the_parts_of_profiles_repeat_counts(void **state)
{
    enum { MAX = 5000 };
    (void)state;
    uint32_t items;
    start_batching_bytes(10, MAX);
    struct batch *batch = profiles_of("a", 1000);
    size_t size = batch_size(batch);
    delivery_consume(&lanes[0].delivery, batch);
    size_t requests = answer_all(MAX, &items);
    assert_in_range(requests, size / MAX * 3 / 4, size / MAX * 5 / 4);
    assert_int_equal(items, 1000);
}

static void merged_profiles_keep_the_limit(void **state)
{
    (void)state;
    uint32_t items;
    struct batch *a = profiles_of("a", 100), *b = profiles_of("b", 100);
    size_t sum = batch_size(a) + batch_size(b);
    start_batching_bytes(sum, sum);
    delivery_consume(&lanes[0].delivery, a);
    delivery_consume(&lanes[0].delivery, b);
    assert_int_equal(answer_all(sum, &items), 2);
    assert_int_equal(items, 200);
}

/* ---- encoded data of attempts ---- */

static size_t size_of_spans(const struct delivery *delivery, const struct batch *batch)
{
    (void)delivery;
    return (size_t)batch->items * 100;
}

static unsigned dropped;

static void count_dropped(struct shipment *shipment)
{
    assert_true(shipment->encoding_bytes > 0);
    dropped++;
}

/* A span encodes to 100 bytes, and there is room for ten at once. */
static void start_encoding(void)
{
    dropped = 0;
    component.held[SIGNAL_TRACES].own.limit_bytes = 1000000;
    start();
    shared.encoding.limit_bytes = 1000;
    for (unsigned i = 0; i < WORKERS; i++) {
        lanes[i].delivery.encoded_size = size_of_spans;
        lanes[i].delivery.drop_encoded = count_dropped;
    }
}

static void encoding_waits_for_room(void **state)
{
    (void)state;
    struct probe probe;
    start_encoding();
    consume_spans(0, 6, NULL);
    consume_spans(0, 6, &probe);
    consume_spans(1, 4, NULL); /* there is room, but another request is first */
    assert_int_equal(probe.verdict.code, GRPC_OK);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(lanes[0].sent_count, 1);
    assert_int_equal(lanes[1].sent_count, 0);
    advance(SECOND);
    assert_int_equal(lanes[0].sent_count, 1);
    answer(0, verdict_ok);
    advance(SECOND / 100);
    advance(SECOND / 100);
    assert_int_equal(lanes[0].sent_count, 1);
    assert_int_equal(lanes[1].sent_count, 1);
    assert_int_equal(budget_used(&shared.encoding), 1000);
    answer(0, verdict_ok);
    answer(1, verdict_ok);
    assert_int_equal(budget_used(&shared.encoding), 0);
}

static void a_large_one_is_encoded_alone(void **state)
{
    (void)state;
    start_encoding();
    consume_spans(0, 1, NULL);
    component.held[SIGNAL_TRACES].own.limit_bytes = 1000000;
    shared.encoding.limit_bytes = 10; /* less than a single span, which cannot be split */
    consume_spans(1, 1, NULL);
    advance(SECOND);
    assert_int_equal(lanes[1].sent_count, 0);
    answer(0, verdict_ok);
    advance(SECOND / 100);
    assert_int_equal(lanes[1].sent_count, 1);
    answer(1, verdict_ok);
    assert_int_equal(budget_used(&shared.encoding), 0);
}

static void what_encodes_to_too_much_is_cut(void **state)
{
    (void)state;
    struct probe probe;
    queue.wait_for_result = true;
    start_encoding();
    consume_spans(0, 24, &probe);
    assert_int_equal(sent_items(0), 10);
    for (unsigned sent = 0; sent < 24;) {
        assert_int_equal(probe.settled, 0);
        advance(SECOND / 100);
        sent += sent_items(0);
        assert_true(budget_used(&shared.encoding) <= 1000);
        answer(0, verdict_ok);
    }
    assert_int_equal(probe.settled, 1);
    assert_int_equal(probe.verdict.code, GRPC_OK);
    assert_int_equal(counted("sent"), 24);
}

static void nothing_encoded_is_kept_between_attempts(void **state)
{
    (void)state;
    start_encoding();
    consume_spans(0, 6, NULL);
    consume_spans(0, 6, NULL);
    answer(0, later);
    assert_int_equal(dropped, 1);
    assert_int_equal(budget_used(&shared.encoding), 0);
    advance(SECOND / 100);
    assert_int_equal(lanes[0].sent_count, 1); /* the other one */
    answer(0, verdict_ok);
    advance(5 * SECOND);
    assert_int_equal(lanes[0].attempts, 3);
    answer(0, verdict_ok);
    assert_int_equal(counted("sent"), 12);
}

static void who_waits_to_encode_is_stopped(void **state)
{
    (void)state;
    start_encoding();
    consume_spans(0, 6, NULL);
    consume_spans(0, 6, NULL);
    delivery_stop(&lanes[0].delivery);
    lanes[0].delivery.node = NULL;
    assert_int_equal(budget_used(&shared.encoding), 0);
    consume_spans(1, 10, NULL); /* nobody stands before it any more */
    assert_int_equal(lanes[1].sent_count, 1);
    answer(1, verdict_ok);
}

static void draining_does_not_wait_for_more(void **state)
{
    (void)state;
    start_batching(100, 0);
    consume_spans(0, 1, NULL);
    consume_spans(0, 1, NULL);
    lanes[0].node.draining = true;
    delivery_drain(&lanes[0].delivery);
    assert_int_equal(sent_items(0), 2);
    assert_false(delivery_is_idle(&lanes[0].node));
    answer(0, verdict_ok);
    assert_true(delivery_is_idle(&lanes[0].node));
}

static void stopping_counts_the_rest(void **state)
{
    (void)state;
    struct probe probe;
    queue.wait_for_result = true;
    start();
    for (int i = 0; i < 4; i++)
        consume(0, 2, NULL);
    consume(0, 2, &probe);
    answer(0, later);
    delivery_stop(&lanes[0].delivery);
    assert_int_equal(lanes[0].aborted, 1);
    assert_int_equal(counted("send_failed"), 10);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(probe.verdict.code, GRPC_UNAVAILABLE);
    advance(100 * SECOND);
    assert_int_equal(lanes[0].sent_count, 0);
    lanes[0].delivery.node = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_queue_has_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dead_backend_shows_in_the_status, set_up, tear_down),
        cmocka_unit_test_setup_teardown(consumers_are_divided, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_bound_is_over_all_workers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_sizer_is_the_unit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(room_is_reserved_over_all_workers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bytes_are_bounded_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_its_sender_gave_up_is_not_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_waits_in_the_queue_for_a_sender_that_gave_up_is_not_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(results_are_waited_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_queue_the_backend_answers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(permanent_errors_are_not_retried, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_wait_grows_and_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(for_ever_is_for_ever, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_wait_is_randomized, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_zero_wait_is_no_loop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(throttling_is_a_floor, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_retry_it_fails_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_waiting_retry_keeps_its_consumer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(draining_sends_what_there_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(small_ones_are_joined, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tenants_are_not_joined, set_up, tear_down),
        cmocka_unit_test_setup_teardown(partitions_are_joined, set_up, tear_down),
        cmocka_unit_test_setup_teardown(little_is_sent_after_a_while, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_ones_are_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(very_large_ones_are_cut_beside_the_loop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_sender_that_gives_up_while_its_data_is_cut, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(stopping_while_it_is_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(joined_ones_share_a_result, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bytes_can_be_the_unit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_parts_of_profiles_repeat_counts, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(merged_profiles_keep_the_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(encoding_waits_for_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_large_one_is_encoded_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_encodes_to_too_much_is_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_encoded_is_kept_between_attempts, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_waits_to_encode_is_stopped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(draining_does_not_wait_for_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stopping_counts_the_rest, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

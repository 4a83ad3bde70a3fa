/* The join feed: what it takes, drops and tells, alone and behind the join. */
#include "core/base/memory.h"
#include "core/pipeline/join_feed.h"
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/pipeline_fixture.h"
#include "tests/unit/spanjoin_requests.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type spanjoin_processor_type;

enum { TRACE = 7, SPAN = 42, SPAN_B = 43 };

struct join {
    struct fixture fixture;
    struct fixture_place *places[SIGNAL_OPENED_COUNT];
    atomic_uint woken;
};

static void on_wake(void *context)
{
    atomic_fetch_add((atomic_uint *)context, 1);
}

static bool listen_to(struct join *join, size_t limit_bytes)
{
    struct join_subscriber subscriber = {limit_bytes, on_wake, &join->woken};
    return join_feed_open(join->fixture.process.join_feed, &subscriber);
}

static void setup(struct join *join, const char *settings)
{
    char yaml[512];
    snprintf(yaml, sizeof yaml, "processors: {spanjoin: {%s}}", settings);
    fixture_init(&join->fixture, 1);
    atomic_init(&join->woken, 0);
    join->fixture.process.join_feed = join_feed_new();
    for (int signal = 0; signal < SIGNAL_OPENED_COUNT; signal++)
        join->places[signal] =
            fixture_place(&join->fixture, &spanjoin_processor_type, "spanjoin", yaml,
                          signal_name((enum signal)signal), (enum signal)signal);
}

static void teardown(struct join *join)
{
    struct join_feed *feed = join->fixture.process.join_feed;
    if (join_feed_is_open(feed))
        join_feed_close(feed);
    fixture_deinit(&join->fixture);
    join_feed_free(feed);
}

static void send_request(struct join *join, struct request *request)
{
    struct probe probe;
    enum signal signal = request->traces ? SIGNAL_TRACES : SIGNAL_PROFILES;
    fixture_consume(&join->fixture, join->places[signal]->nodes[0], request_encode(request),
                    request->items, &probe);
    request_free(request);
    fixture_advance(&join->fixture, 0);
    assert_int_equal(probe.settled, 1);
}

static void send_span(struct join *join, uint64_t span)
{
    struct request request;
    traces_begin(&request, "shop");
    traces_span(&request, TRACE, span, WALL, WALL + SECOND, "a span");
    send_request(join, &request);
}

static void add_sample(struct request *request, uint64_t span)
{
    SampleMessage *sample = profiles_sample(request, 1);
    sample_link(request, sample, TRACE, span);
    sample_value(request, sample, 30);
}

static void send_sample(struct join *join, uint64_t span)
{
    struct request request;
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    add_sample(&request, span);
    send_request(join, &request);
}

static struct join_offer *take(struct join *join)
{
    return join_feed_take(join->fixture.process.join_feed);
}

/* Takes an offer of the signal, whose bytes are those that left as number n. */
static struct join_offer *take_as_sent(struct join *join, enum signal signal, size_t n)
{
    struct join_offer *offer = take(join);
    assert_non_null(offer);
    assert_int_equal(offer->signal, signal);
    assert_string_equal(offer->component, "spanjoin");
    const struct recorded *sent = &join->fixture.recorder.items[n];
    assert_int_equal(offer->part_count, 1);
    assert_int_equal(offer->items, sent->items);
    if (signal == SIGNAL_PROFILES) { /* spans lack the attributes that the join adds */
        assert_int_equal(offer->parts[0]->size, sent->size);
        assert_memory_equal(offer->parts[0]->data, sent->bytes, sent->size);
    }
    assert_true(offer->report || signal == SIGNAL_TRACES);
    return offer;
}

static void expect_key(const struct join_offer *offer, uint32_t k, uint64_t span,
                       enum join_outcome outcome)
{
    assert_true(k < offer->report->size.keys);
    const struct join_key *key = &offer->report->keys[k];
    uint64_t id = 0;
    for (int i = 0; i < SPAN_ID_SIZE; i++)
        id = id << 8 | key->span_id[i];
    assert_int_equal(id, span);
    assert_int_equal(key->outcome, outcome);
    assert_int_equal(key->samples, 1);
}

/* Returns the condition of the first key. */
static const char *condition_of(const struct join_offer *offer)
{
    return join_report_condition(offer->report, offer->report->keys[0].condition);
}

static void test_nobody_listens(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "");
    send_span(&join, SPAN);
    send_sample(&join, SPAN);
    assert_null(take(&join));
    assert_int_equal(join_feed_stats(join.fixture.process.join_feed).offers, 0);
    assert_false(join_feed_is_open(NULL));
    teardown(&join);
}

static void test_requests_that_pass(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "samples: {wait: 0s}");
    assert_true(listen_to(&join, 1 << 20));
    send_span(&join, SPAN);
    fixture_advance(&join.fixture, 3 * SECOND);
    struct request request;
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    add_sample(&request, SPAN);
    add_sample(&request, SPAN_B);
    send_request(&join, &request);
    struct join_offer *offer = take_as_sent(&join, SIGNAL_TRACES, 0);
    assert_null(offer->report); /* no samples had been seen */
    join_offer_free(offer);
    offer = take_as_sent(&join, SIGNAL_PROFILES, 1);
    expect_key(offer, 0, SPAN, JOIN_FOUND);
    expect_key(offer, 1, SPAN_B, JOIN_NOT_FOUND);
    assert_int_equal(offer->report->keys[0].lag_ns, 3 * SECOND);
    join_offer_free(offer);
    assert_null(take(&join));
    assert_int_equal(atomic_load(&join.woken), 1); /* the mailbox was not empty the second time */
    teardown(&join);
}

static void test_requests_that_wait(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "samples: {wait: 10s}");
    assert_true(listen_to(&join, 1 << 20));
    send_sample(&join, SPAN);
    send_sample(&join, SPAN_B);
    assert_null(take(&join));
    fixture_advance(&join.fixture, 4 * SECOND);
    send_span(&join, SPAN);
    fixture_advance(&join.fixture, 20 * SECOND);
    struct join_offer *offer = take_as_sent(&join, SIGNAL_TRACES, 0);
    assert_int_equal(offer->report->size.spans, 1);
    assert_int_equal(offer->report->spans[0].span_id[SPAN_ID_SIZE - 1], SPAN);
    assert_true(offer->report->spans[0].has_gained && offer->report->spans[0].gains_profile_id);
    join_offer_free(offer);
    offer = take_as_sent(&join, SIGNAL_PROFILES, 1);
    expect_key(offer, 0, SPAN, JOIN_FOUND);
    assert_int_equal(offer->report->keys[0].lag_ns, -4 * (int64_t)SECOND);
    join_offer_free(offer);
    offer = take_as_sent(&join, SIGNAL_PROFILES, 2);
    expect_key(offer, 0, SPAN_B, JOIN_NOT_FOUND);
    assert_int_equal(offer->offered_ns - offer->arrived_ns, 10 * SECOND);
    join_offer_free(offer);
    teardown(&join);
}

static void test_expired_and_kept_out(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "window: 10s, samples: {wait: 0s}, "
                 "keep: {span_detail_when: [{duration_above: 1h}], otherwise: fold}");
    assert_true(listen_to(&join, 1 << 20));
    send_span(&join, SPAN);
    send_sample(&join, SPAN);
    fixture_advance(&join.fixture, 11 * SECOND);
    send_sample(&join, SPAN);
    join_offer_free(take_as_sent(&join, SIGNAL_TRACES, 0));
    struct join_offer *offer = take_as_sent(&join, SIGNAL_PROFILES, 1);
    expect_key(offer, 0, SPAN, JOIN_FOUND);
    assert_true(offer->report->keys[0].is_kept_out);
    assert_string_equal(condition_of(offer), "");
    join_offer_free(offer);
    offer = take_as_sent(&join, SIGNAL_PROFILES, 2);
    expect_key(offer, 0, SPAN, JOIN_EXPIRED);
    assert_int_equal(offer->report->window_ns, 10 * SECOND);
    join_offer_free(offer);
    teardown(&join);
}

static void test_condition_of_keep(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "samples: {wait: 0s}, "
                 "keep: {span_detail_when: [{cpu_above: 1h}, {ratio: 1.0}], otherwise: fold}");
    assert_true(listen_to(&join, 1 << 20));
    send_span(&join, SPAN);
    send_sample(&join, SPAN);
    join_offer_free(take_as_sent(&join, SIGNAL_TRACES, 0));
    struct join_offer *offer = take_as_sent(&join, SIGNAL_PROFILES, 1);
    assert_string_equal(condition_of(offer), "ratio: 1.0");
    join_offer_free(offer);
    teardown(&join);
}

static void test_full_mailbox(void **state)
{
    (void)state;
    struct join join;
    setup(&join, "");
    assert_true(listen_to(&join, 1)); /* one request alone always fits */
    assert_false(listen_to(&join, 1));
    for (int i = 0; i < 5; i++)
        send_span(&join, SPAN + (uint64_t)i);
    struct join_feed *feed = join.fixture.process.join_feed;
    assert_int_equal(join_feed_stats(feed).offers, 5);
    assert_int_equal(join_feed_stats(feed).dropped, 4);
    assert_true(join_feed_stats(feed).bytes > 0);
    assert_int_equal(join.fixture.recorder.count, 5);
    join_offer_free(take(&join));
    assert_null(take(&join));
    send_span(&join, SPAN);
    join_feed_close(feed); /* frees it */
    assert_int_equal(join_feed_stats(feed).bytes, 0);
    assert_true(listen_to(&join, 1));
    teardown(&join);
}

/* ---- verdicts ---- */

/* What the client sends again counts when it is accepted. */
static void test_refused_requests(void **state)
{
    (void)state;
    static const struct {
        enum grpc_code code;
        bool is_offered;
    } cases[] = {{GRPC_UNAVAILABLE, false}, {GRPC_INVALID_ARGUMENT, true}, {GRPC_OK, true}};
    struct join join;
    setup(&join, "samples: {wait: 0s}");
    assert_true(listen_to(&join, 1 << 20));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        join.fixture.recorder.answer = (struct verdict){.code = cases[i].code};
        send_span(&join, SPAN);
        send_sample(&join, SPAN);
        for (int signals = 0; cases[i].is_offered && signals < 2; signals++)
            join_offer_free(take(&join));
        assert_null(take(&join));
        assert_int_equal(join_feed_stats(join.fixture.process.join_feed).bytes, 0);
    }
    teardown(&join);
}

static void send_unanswered(struct join *join, struct probe *probe)
{
    struct buffer *buffer = fixture_span("a span");
    fixture_consume(&join->fixture, join->places[SIGNAL_TRACES]->nodes[0], buffer_slice(buffer), 1,
                    probe);
    buffer_unref(buffer);
    fixture_advance(&join->fixture, 0);
}

static void test_requests_without_a_verdict_yet(void **state)
{
    (void)state;
    struct join join;
    struct probe probe;
    setup(&join, "");
    join.fixture.recorder.hold = true;
    struct join_feed *feed = join.fixture.process.join_feed;
    for (int i = 0; i < 3; i++) {
        assert_true(listen_to(&join, 1 << 20));
        send_unanswered(&join, &probe);
        assert_null(take(&join));
        assert_true(join_feed_stats(feed).bytes > 0);
        if (i == 1)
            join_feed_close(feed); /* then nobody gets it */
        fixture_release(&join.fixture, &verdict_ok);
        assert_int_equal(probe.settled, 1);
        struct join_offer *offer = take(&join);
        assert_true(!offer == (i == 1));
        if (offer) {
            join_offer_free(offer);
            join_feed_close(feed);
        }
        assert_int_equal(join_feed_stats(feed).bytes, 0);
    }
    teardown(&join);
}

/* Spans of several senders that were put together: all parts are offered. */
static void test_several_parts(void **state)
{
    (void)state;
    struct worker worker;
    struct join_feed *feed = join_feed_new();
    atomic_uint woken = 0;
    const struct join_subscriber subscriber = {1 << 20, on_wake, &woken};
    assert_true(join_feed_open(feed, &subscriber));
    worker_init_manual(&worker, 0, 1);
    struct batch *batch = batch_new(&worker, SIGNAL_TRACES, fixture_span("one"), 1, NULL, NULL);
    batch_append(batch, batch_new(&worker, SIGNAL_TRACES, fixture_span("two"), 1, NULL, NULL));
    join_feed_offer(feed, batch, "spanjoin", 0, NULL);
    batch_free(batch);
    struct join_offer *offer = join_feed_take(feed);
    assert_int_equal(offer->part_count, 2);
    assert_int_equal(offer->items, 2);
    assert_non_null(memmem(offer->parts[0]->data, offer->parts[0]->size, "one", 3));
    assert_non_null(memmem(offer->parts[1]->data, offer->parts[1]->size, "two", 3));
    join_offer_free(offer);
    join_feed_close(feed);
    join_feed_free(feed);
    worker_deinit(&worker);
}

/* ---- threads ---- */

enum { PRODUCERS = 3, OFFERS = 2000 };

struct producer {
    pthread_t thread;
    struct join_feed *feed;
    struct worker worker;
};

static void *produce(void *context)
{
    struct producer *producer = context;
    worker_init_manual(&producer->worker, 0, 1);
    for (int i = 0; i < OFFERS; i++) {
        struct buffer *buffer = fixture_span("a span");
        struct batch *batch = batch_new(&producer->worker, SIGNAL_TRACES, buffer, 1, NULL, NULL);
        join_feed_offer(producer->feed, batch, "spanjoin", 0,
                        join_report_new((struct join_report_size){.keys = (uint32_t)i % 3,
                                                                  .resources = (uint32_t)i % 2}));
        batch_free(batch);
    }
    worker_deinit(&producer->worker);
    return NULL;
}

static uint64_t take_some(struct join_feed *feed, int limit)
{
    uint64_t taken = 0;
    for (struct join_offer *offer; limit-- > 0 && (offer = join_feed_take(feed)); taken++) {
        assert_int_equal(offer->items, 1);
        join_offer_free(offer);
    }
    return taken;
}

/* The subscriber comes and goes, as in reloads. */
static void test_threads(void **state)
{
    (void)state;
    struct producer producers[PRODUCERS];
    struct join_feed *feed = join_feed_new();
    atomic_uint woken = 0;
    struct join_subscriber subscriber = {100000, on_wake, &woken};
    uint64_t taken = 0;
    for (int i = 0; i < PRODUCERS; i++) {
        producers[i].feed = feed;
        pthread_create(&producers[i].thread, NULL, produce, &producers[i]);
    }
    for (int i = 0; i < 50; i++) {
        assert_true(join_feed_open(feed, &subscriber));
        taken += take_some(feed, 200);
        join_feed_close(feed);
    }
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(producers[i].thread, NULL);
    struct join_feed_stats stats = join_feed_stats(feed);
    assert_true(stats.offers <= (uint64_t)PRODUCERS * OFFERS && taken <= stats.offers);
    assert_int_equal(stats.bytes, 0);
    join_feed_free(feed);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_requests_that_pass),
        cmocka_unit_test(test_requests_that_wait),
        cmocka_unit_test(test_expired_and_kept_out),
        cmocka_unit_test(test_condition_of_keep),
        cmocka_unit_test(test_full_mailbox),
        cmocka_unit_test(test_refused_requests),
        cmocka_unit_test(test_requests_without_a_verdict_yet),
        cmocka_unit_test(test_several_parts),
        cmocka_unit_test(test_threads),
    };
    (void)argc;
    (void)argv;
    if (cmocka_run_group_tests_name("join feed", tests, NULL, NULL) != 0)
        return 1;
    spanjoin_set_large_bytes(0); /* jobs process each request */
    return cmocka_run_group_tests_name("join feed, in jobs", tests, NULL, NULL);
}

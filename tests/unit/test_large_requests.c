/* Requests that jobs of the join process: events meanwhile, and ways to end. Every request counts
 * as large. A manual worker runs a job at once, and fixture_advance delivers its result. */
#include "core/pipeline/delivery.h"
#include "processors/spanjoin/hold.h"
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/pipeline_fixture.h"
#include "tests/unit/spanjoin_requests.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type spanjoin_processor_type;

enum { TRACE = 7, SPAN = 42, SPAN_B = 43 };

struct join {
    struct fixture fixture;
    struct fixture_place *places[SIGNAL_OPENED_COUNT];
};

static void setup(struct join *join, const char *settings)
{
    char yaml[256];
    snprintf(yaml, sizeof yaml, "processors: {spanjoin: {%s}}", settings);
    fixture_init(&join->fixture, 1);
    for (int signal = 0; signal < SIGNAL_OPENED_COUNT; signal++)
        join->places[signal] =
            fixture_place(&join->fixture, &spanjoin_processor_type, "spanjoin", yaml,
                          signal_name((enum signal)signal), (enum signal)signal);
}

static struct node *node_of(struct join *join, enum signal signal)
{
    return join->places[signal]->nodes[0];
}

static void hand_over(struct join *join, struct request *request, struct probe *probe)
{
    enum signal signal = request->traces ? SIGNAL_TRACES : SIGNAL_PROFILES;
    fixture_consume(&join->fixture, node_of(join, signal), request_encode(request), request->items,
                    probe);
    request_free(request);
}

static void begin_span(struct join *join, uint64_t span, struct probe *probe)
{
    struct request request;
    traces_begin(&request, "shop");
    traces_span(&request, TRACE, span, WALL, WALL + SECOND, "a span");
    hand_over(join, &request, probe);
}

static void begin_sample(struct join *join, uint64_t span, struct probe *probe)
{
    struct request request;
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, TRACE, span);
    sample_value(&request, sample, 30);
    hand_over(join, &request, probe);
}

static void begin(struct join *join, enum signal signal, struct probe *probe)
{
    if (signal == SIGNAL_TRACES)
        begin_span(join, SPAN, probe);
    else
        begin_sample(join, SPAN, probe);
}

static void end_jobs(struct join *join)
{
    fixture_advance(&join->fixture, 0);
}

static double metric(struct join *join, const char *name)
{
    char full[96];
    snprintf(full, sizeof full, "profcol_spanjoin_%s", name);
    return metrics_value(join->fixture.process.metrics, full, "spanjoin=\"spanjoin\"");
}

static bool always(const struct receipt *receipt)
{
    (void)receipt;
    return true;
}

static void refuse_all(struct join *join)
{
    join->fixture.recorder.answer = verdict_of(GRPC_INVALID_ARGUMENT, "no");
}

/* ---- a request that is sent on ---- */

static void it_is_not_answered_before_its_job_is_done(void **state)
{
    (void)state;
    for (int signal = 0; signal < SIGNAL_OPENED_COUNT; signal++) {
        struct join join;
        struct probe probe;
        setup(&join, "samples: {wait: 0s}");
        begin(&join, (enum signal)signal, &probe);
        assert_int_equal(probe.settled, 0);
        assert_int_equal(join.fixture.recorder.count, 0);
        assert_false(fixture_is_idle(node_of(&join, (enum signal)signal)));
        end_jobs(&join);
        assert_int_equal(probe.settled, 1);
        assert_int_equal(probe.verdict.code, GRPC_OK);
        assert_int_equal(join.fixture.recorder.count, 1);
        assert_true(fixture_is_idle(node_of(&join, (enum signal)signal)));
        fixture_deinit(&join.fixture);
    }
}

static void downstream_answers_it(void **state)
{
    (void)state;
    for (int signal = 0; signal < SIGNAL_OPENED_COUNT; signal++) {
        struct join join;
        struct probe probe;
        setup(&join, "samples: {wait: 0s}");
        refuse_all(&join);
        begin(&join, (enum signal)signal, &probe);
        end_jobs(&join);
        assert_int_equal(probe.settled, 1);
        assert_int_equal(probe.verdict.code, GRPC_INVALID_ARGUMENT);
        fixture_deinit(&join.fixture);
    }
}

/* Jobs process both at once: neither is in the index yet for the other, unless it waits. */
static void two_that_come_together_find_each_other(void **state)
{
    (void)state;
    struct join join;
    struct probe span, sample;
    setup(&join, "samples: {wait: 5s}, spans: {wait: 5s}");
    begin_span(&join, SPAN, &span);
    begin_sample(&join, SPAN, &sample);
    end_jobs(&join);
    assert_int_equal(span.settled + sample.settled, 2);
    assert_int_equal(join.fixture.recorder.count, 2);
    assert_int_equal(join.fixture.recorder.items[0].at_ns, FIXTURE_START_NS); /* nobody waited */
    assert_int_equal(metric(&join, "samples_joined"), 1);
    assert_int_equal(metric(&join, "spans_enriched"), 1);
    fixture_deinit(&join.fixture);
}

static struct hold *new_hold(struct join *join, uint64_t id)
{
    struct spanjoin_node *node = (struct spanjoin_node *)node_of(join, SIGNAL_TRACES);
    struct request request;
    traces_begin(&request, "shop");
    traces_span(&request, TRACE, SPAN, WALL, WALL + SECOND, "a span");
    struct slice bytes = request_encode(&request);
    struct buffer *buffer = buffer_new_charged(bytes.size, &join->fixture.budget);
    buffer_append(buffer, bytes.data, bytes.size, bytes.size);
    request_free(&request);
    struct batch *kept = batch_new(node->node.worker, SIGNAL_TRACES, buffer, 1, NULL, NULL);
    size_t charged;
    assert_int_equal(holds_make_room(node, kept, 2, &charged), HOLD_ROOM);
    return hold_new(node, id, kept, charged);
}

/* Other threads deliver what a request waits for before its own job has returned. */
static void what_comes_before_the_hold_is_there_wakes_it(void **state)
{
    (void)state;
    for (int early = 0; early <= 2; early++) {
        struct join join;
        setup(&join, "spans: {wait: 5s}");
        struct spanjoin_node *node = (struct spanjoin_node *)node_of(&join, SIGNAL_TRACES);
        uint64_t unused = holds_take_id(node);
        holds_wake(node, unused);
        holds_return_id(node, unused);
        uint64_t id = holds_take_id(node);
        for (int i = 0; i < early; i++)
            holds_wake(node, id);
        holds_wake(node, unused); /* of a request that was sent on: ignored */
        hold_wait(new_hold(&join, id), 2, 5 * (int64_t)SECOND);
        for (int i = early; i < 2; i++) {
            end_jobs(&join);
            assert_int_equal(join.fixture.recorder.count, 0);
            holds_wake(node, id);
        }
        end_jobs(&join);
        assert_int_equal(join.fixture.recorder.count, 1);
        fixture_deinit(&join.fixture);
    }
}

/* ---- a client that gives up ---- */

static void what_its_sender_gave_up_goes_nowhere(void **state)
{
    (void)state;
    static const char *const settings[] = {"samples: {wait: 0s}",
                                           "samples: {wait: 5s}, spans: {wait: 5s}"};
    for (int i = 0; i < 2 * SIGNAL_OPENED_COUNT; i++) {
        struct join join;
        struct probe probe;
        enum signal signal = i % 2 ? SIGNAL_TRACES : SIGNAL_PROFILES;
        setup(&join, settings[i / 2]);
        begin(&join, signal, &probe);
        probe.receipt.is_abandoned = always;
        end_jobs(&join);
        assert_int_equal(probe.settled, 1);
        assert_int_equal(probe.verdict.code, GRPC_CANCELLED);
        assert_int_equal(join.fixture.recorder.count, 0);
        assert_int_equal(metric(&join, "held_requests"), 0);
        fixture_deinit(&join.fixture);
    }
}

/* The sender sends it again, and its samples count once. */
static void samples_that_were_given_up_are_not_counted(void **state)
{
    (void)state;
    struct join join;
    struct probe first, again, span;
    setup(&join, "samples: {wait: 0s}");
    begin_sample(&join, SPAN, &first);
    first.receipt.is_abandoned = always;
    end_jobs(&join);
    begin_sample(&join, SPAN, &again);
    end_jobs(&join);
    begin_span(&join, SPAN, &span);
    end_jobs(&join);
    struct request out;
    const struct recorded *recorded = &join.fixture.recorder.items[1];
    request_read_traces(&out, slice_of(recorded->bytes, recorded->size));
    assert_string_equal(span_attribute(request_span(&out, 0), "profile.samples"), "1");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* ---- holding ---- */

static void a_held_one_takes_what_it_gains_in_a_job(void **state)
{
    (void)state;
    struct join join;
    struct probe sample, span;
    setup(&join, "");
    begin_sample(&join, SPAN, &sample);
    end_jobs(&join);
    assert_int_equal(sample.settled, 1);
    assert_int_equal(metric(&join, "held_requests"), 1);
    struct node *node = node_of(&join, SIGNAL_PROFILES);
    fixture_drain(node); /* it is being sent on, in a job */
    assert_int_equal(join.fixture.recorder.count, 0);
    assert_false(fixture_is_idle(node));
    end_jobs(&join);
    assert_int_equal(join.fixture.recorder.count, 1);
    assert_true(fixture_is_idle(node));
    begin_span(&join, SPAN, &span);
    end_jobs(&join);
    assert_int_equal(metric(&join, "held_bytes"), 0);
    fixture_deinit(&join.fixture);
}

/* A request that could wait when it arrived does not wait when the process ends. */
static void a_drain_does_not_wait(void **state)
{
    (void)state;
    for (int signal = 0; signal < SIGNAL_OPENED_COUNT; signal++) {
        struct join join;
        struct probe probe;
        setup(&join, "samples: {wait: 5s}, spans: {wait: 5s}");
        begin(&join, (enum signal)signal, &probe);
        fixture_drain(node_of(&join, (enum signal)signal));
        assert_false(fixture_is_idle(node_of(&join, (enum signal)signal)));
        end_jobs(&join);
        assert_int_equal(probe.settled, 1);
        assert_int_equal(probe.verdict.code, GRPC_OK);
        assert_int_equal(join.fixture.recorder.count, 1);
        assert_true(fixture_is_idle(node_of(&join, (enum signal)signal)));
        fixture_deinit(&join.fixture);
    }
}

static void send_ballast(struct join *join, uint64_t span, struct probe *probe)
{
    struct request request;
    char *text = malloc(300001);
    memset(text, 'x', 300000);
    text[300000] = '\0';
    traces_begin(&request, "shop");
    SpanMessage *message = traces_span(&request, TRACE, span, WALL, WALL + SECOND, "a span");
    span_string(&request, message, "ballast", text);
    hand_over(join, &request, probe);
    end_jobs(join);
    free(text);
}

static void without_room_it_is_refused(void **state)
{
    (void)state;
    struct join join;
    struct probe probe;
    setup(&join, "max_held_mib: 1, spans: {wait: 5s}");
    join.fixture.recorder.answer = verdict_try_later(GRPC_UNAVAILABLE, -1, "busy");
    unsigned admitted = 0;
    for (uint64_t i = 0; i < 8; i++) {
        send_ballast(&join, 100 + i, &probe);
        assert_int_equal(probe.settled, 1);
        admitted += probe.verdict.code == GRPC_OK;
        if (probe.verdict.code != GRPC_OK)
            assert_int_equal(probe.verdict.code, GRPC_UNAVAILABLE);
        assert_true(metric(&join, "held_bytes") <= 5 << 18);
    }
    assert_in_range(admitted, 3, 4);
    join.fixture.recorder.answer = verdict_ok;
    fixture_advance(&join.fixture, 10 * SECOND);
    assert_int_equal(join.fixture.recorder.count, admitted);
    fixture_deinit(&join.fixture);
}

/* ---- stop ---- */

static void stop(struct join *join, enum signal signal)
{
    struct node *node = node_of(join, signal);
    outlet_stop(&node->outlets[signal]);
    node->component->type->node_stop(node);
}

static void a_stop_refuses_what_is_at_work(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * SIGNAL_OPENED_COUNT; i++) {
        struct join join;
        struct probe probe;
        enum signal signal = i % 2 ? SIGNAL_TRACES : SIGNAL_PROFILES;
        bool has_receipt = i / 2 == 0;
        setup(&join, "samples: {wait: 5s}, spans: {wait: 5s}");
        begin(&join, signal, has_receipt ? &probe : NULL);
        stop(&join, signal);
        if (has_receipt) {
            assert_int_equal(probe.settled, 1);
            assert_int_equal(probe.verdict.code, GRPC_UNAVAILABLE);
        }
        assert_int_equal(atomic_load(&join.fixture.process.lost_items), !has_receipt);
        fixture_deinit(&join.fixture);
    }
}

static void a_stop_counts_held_ones_that_are_at_work(void **state)
{
    (void)state;
    struct join join;
    struct probe probe;
    setup(&join, "");
    begin_sample(&join, SPAN, &probe);
    end_jobs(&join);
    fixture_drain(node_of(&join, SIGNAL_PROFILES));
    stop(&join, SIGNAL_PROFILES);
    assert_int_equal(atomic_load(&join.fixture.process.lost_items), 1);
    assert_int_equal(metric(&join, "held_bytes"), 0);
    assert_int_equal(metric(&join, "held_requests"), 0);
    fixture_deinit(&join.fixture);
}

int main(void)
{
    spanjoin_set_large_bytes(0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_not_answered_before_its_job_is_done),
        cmocka_unit_test(downstream_answers_it),
        cmocka_unit_test(two_that_come_together_find_each_other),
        cmocka_unit_test(what_comes_before_the_hold_is_there_wakes_it),
        cmocka_unit_test(what_its_sender_gave_up_goes_nowhere),
        cmocka_unit_test(samples_that_were_given_up_are_not_counted),
        cmocka_unit_test(a_held_one_takes_what_it_gains_in_a_job),
        cmocka_unit_test(a_drain_does_not_wait),
        cmocka_unit_test(without_room_it_is_refused),
        cmocka_unit_test(a_stop_refuses_what_is_at_work),
        cmocka_unit_test(a_stop_counts_held_ones_that_are_at_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A span that lasts longer than samples wait gets what left before it by thread, too
 * (docs/spanjoin.md, "By thread and time"). */
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/data/sample_threads.h"
#include "core/data/span_index.h"
#include "core/data/thread_spans.h"
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/spanjoin_fixture.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TRACE = 7, SHORT = 41, LONG = 42, CHILD = 43, THREAD = 31, OS_THREAD = 4711 };
#define MS UINT64_C(1000000)
#define UPLOAD_MS UINT64_C(5000)

static void add_span(struct request *request, uint64_t span, uint64_t parent, uint64_t start,
                     uint64_t end)
{
    SpanMessage *message =
        traces_span(request, TRACE, span, WALL + start * MS, WALL + end * MS, "work");
    if (parent)
        span_set_parent(request, message, parent);
    span_int(request, message, "thread.id", THREAD);
    span_string(request, message, "thread.name", "worker");
}

static void begin_spans(struct request *request)
{
    traces_begin(request, "shop");
    traces_resource_string(request, "telemetry.sdk.language", "java");
}

static void send_span(struct join *join, uint64_t span, uint64_t start, uint64_t end)
{
    struct request request;
    begin_spans(&request);
    add_span(&request, span, 0, start, end);
    join_send(join, &request);
}

/* Who samples a thread. */
enum sampler { BY_RUNTIME_ID, BY_NAME, SAMPLERS };

static SampleMessage *add_sample(struct request *request, enum sampler sampler, uint64_t time,
                                 int64_t value)
{
    SampleMessage *sample = profiles_sample(request, 1);
    if (sampler == BY_RUNTIME_ID)
        sample_int(request, sample, SAMPLE_THREAD_RUNTIME_ID, THREAD);
    sample_int(request, sample, sampler == BY_RUNTIME_ID ? SAMPLE_THREAD_OS_ID : "thread.id",
               OS_THREAD);
    sample_string(request, sample, sampler == BY_RUNTIME_ID ? SAMPLE_THREAD_NAME : "thread.name",
                  "worker");
    sample_time(request, sample, WALL + time * MS);
    sample_value(request, sample, value);
    return sample;
}

/* An upload of 5 s. */
static ProfileMessage *begin_upload(struct request *request, uint64_t number)
{
    profiles_begin(request);
    profiles_resource_string(request, "service.name", "shop");
    ProfileMessage *profile = profiles_profile(request, "cpu", "nanoseconds");
    profile->time_unix_nano = WALL + number * 5 * SECOND;
    profile->duration_nano = 5 * SECOND + 1;
    return profile;
}

/* Sends an upload with a sample in its middle. */
static void send_upload(struct join *join, enum sampler sampler, uint64_t number, int64_t value)
{
    struct request request;
    begin_upload(&request, number);
    add_sample(&request, sampler, number * 5000 + 2500, value);
    join_send(join, &request);
    fixture_advance(&join->fixture, 5 * SECOND);
}

/* Sends three uploads of a span that is open; those of the process wait for the given time. */
static void send_three(struct join *join, enum sampler sampler)
{
    send_span(join, SHORT, 100, 200);
    for (uint64_t i = 0; i < 3; i++)
        send_upload(join, sampler, i, INT64_C(1) << i);
    fixture_clear_recorded(&join->fixture);
}

static void expect_span(struct join *join, size_t i, const char *cpu, const char *complete)
{
    struct request out;
    const struct recorded *last = &join->fixture.recorder.items[join->fixture.recorder.count - 1];
    assert_int_equal(last->signal, SIGNAL_TRACES);
    request_read_traces(&out, slice_of(last->bytes, last->size));
    const char *got = span_attribute(request_span(&out, i), "profile.cpu_ns");
    assert_string_equal(got ? got : "none", cpu ? cpu : "none");
    got = span_attribute(request_span(&out, i), "profile.complete");
    assert_string_equal(got ? got : "none", complete ? complete : "none");
    request_free(&out);
}

/* Checks whether the last span opens a profile. */
static void expect_opens(struct join *join, bool opens)
{
    struct request out;
    const struct recorded *last = &join->fixture.recorder.items[join->fixture.recorder.count - 1];
    request_read_traces(&out, slice_of(last->bytes, last->size));
    const char *got = span_attribute(request_span(&out, 0), "pyroscope.profile.id");
    assert_int_equal(got != NULL, opens);
    request_free(&out);
}

static double metric(struct join *join, const char *name, const char *labels)
{
    return metrics_value(join->fixture.process.metrics, name, labels);
}

static const char *const waits[] = {
    "samples: {wait: 0s}",
    "samples: {wait: 2s}",
    "samples: {wait: 2s}, spans: {wait: 20s}",
    "samples: {wait: 2s}, attribute_children: true",
};
enum { WAITS = sizeof waits / sizeof *waits };

/* Runs a test with all of them, and with requests that jobs process. */
static void with_each(void (*test)(struct join *join, enum sampler sampler))
{
    for (unsigned i = 0; i < WAITS * SAMPLERS * 2; i++) {
        struct join join;
        join_init(&join, waits[i % WAITS]);
        spanjoin_set_large_bytes(i / WAITS % 2 ? 0 : SIZE_MAX);
        test(&join, (enum sampler)(i / WAITS / 2));
        fixture_deinit(&join.fixture);
        spanjoin_set_large_bytes(SIZE_MAX);
    }
}

static void check_all_uploads(struct join *join, enum sampler sampler)
{
    send_three(join, sampler);
    send_span(join, LONG, 500, 14000);
    expect_span(join, 0, "7", NULL);
    assert_int_equal(metric(join, "profcol_spanjoin_samples_unjoined",
                            "spanjoin=\"spanjoin\",reason=\"span_open\""),
                     3);
    /* what it got is not there any more */
    send_span(join, LONG + 10, 500, 14000);
    expect_span(join, 0, NULL, NULL);
}

static void a_long_span_has_all_uploads(void **state)
{
    (void)state;
    with_each(check_all_uploads);
}

/* The child is behind its parent in the request. */
static void check_children(struct join *join, enum sampler sampler)
{
    struct request request;
    send_three(join, sampler);
    begin_spans(&request);
    add_span(&request, LONG, 0, 500, 14000);
    add_span(&request, CHILD, LONG, 6000, 9000);
    join_send(join, &request);
    expect_span(join, 0, "5", NULL);
    expect_span(join, 1, "2", NULL);
}

static void children_of_the_same_request_get_theirs(void **state)
{
    (void)state;
    with_each(check_children);
}

/* What left without its Link opens nothing. */
static void check_opening(struct join *join, enum sampler sampler)
{
    send_three(join, sampler);
    send_span(join, LONG, 500, 17600);
    fixture_advance(&join->fixture, 20 * SECOND); /* it may wait */
    expect_opens(join, false);
    send_upload(join, sampler, 3, 8);
    send_span(join, LONG, 500, 17600);
    expect_opens(join, true);
}

static void a_span_opens_what_left_with_its_link(void **state)
{
    (void)state;
    with_each(check_opening);
}

/* What is outside of the span stays for another one. */
static void check_times(struct join *join, enum sampler sampler)
{
    send_three(join, sampler);
    send_span(join, LONG, 6000, 14000);
    expect_span(join, 0, "6", NULL);
    send_span(join, LONG + 1, 500, 5900);
    expect_span(join, 0, "1", NULL);
}

static void a_span_gets_what_is_of_its_time(void **state)
{
    (void)state;
    with_each(check_times);
}

/* A recording shows which thread of the operating system the span's is; another profiler only knows
 * that. */
static void pairs_of_ids_find_it(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, "samples: {wait: 0s}");
    send_span(&join, SHORT, 100, 200);
    begin_upload(&request, 0);
    add_sample(&request, BY_RUNTIME_ID, 150, 1);
    join_send(&join, &request);
    begin_upload(&request, 1);
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_int(&request, sample, "thread.id", OS_THREAD);
    sample_time(&request, sample, WALL + 7000 * MS);
    sample_value(&request, sample, 8);
    join_send(&join, &request);
    fixture_advance(&join.fixture, 10 * SECOND);
    send_span(&join, LONG, 500, 9500);
    expect_span(&join, 0, "8", NULL);
    fixture_deinit(&join.fixture);
}

/* Of two values and three times, it is not known which ones the span may have. */
static void a_span_says_what_it_may_lack(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, "samples: {wait: 0s}");
    send_span(&join, SHORT, 100, 200);
    begin_upload(&request, 0);
    SampleMessage *sample = add_sample(&request, BY_NAME, 1000, 5);
    sample_value(&request, sample, 5);
    sample_time(&request, sample, WALL + 2000 * MS);
    sample_time(&request, sample, WALL + 3000 * MS);
    join_send(&join, &request);
    for (uint64_t i = 1; i < 4; i++)
        send_upload(&join, BY_NAME, i, 1);
    send_span(&join, LONG, 500, 14000);
    expect_span(&join, 0, "2", "false");
    send_span(&join, LONG + 1, 15000, 18000); /* began later */
    expect_span(&join, 0, "1", NULL);
    fixture_deinit(&join.fixture);
}

/* The same profile twice: its samples count once. */
static void a_profile_counts_once(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, "samples: {wait: 0s}");
    send_span(&join, SHORT, 100, 200);
    for (int i = 0; i < 2; i++) {
        profile_id(&request, begin_upload(&request, 0), 9);
        add_sample(&request, BY_RUNTIME_ID, 1000, 5);
        join_send(&join, &request);
    }
    send_upload(&join, BY_RUNTIME_ID, 1, 1);
    send_span(&join, LONG, 500, 8000);
    expect_span(&join, 0, "6", NULL);
    fixture_deinit(&join.fixture);
}

/* Conditions on CPU time see what had left. */
static void keep_sees_it(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    join_init(&join, "samples: {wait: 0s}, keep: {span_detail_when: [{cpu_above: 6ns}]}");
    send_three(&join, BY_RUNTIME_ID);
    send_span(&join, LONG, 500, 16000);
    begin_upload(&request, 3);
    add_sample(&request, BY_RUNTIME_ID, 15500, 1);
    join_send(&join, &request);
    const struct recorded *last = &join.fixture.recorder.items[join.fixture.recorder.count - 1];
    request_read_profiles(&out, slice_of(last->bytes, last->size));
    uint64_t trace_id, span_id = 0;
    sample_read_link(&out, request_sample(&out, 0, 0), &trace_id, &span_id);
    assert_int_equal(span_id, LONG);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* ---- random schedules ---- */

enum { THREADS = 3, UPLOADS = 12, SPANS_MAX = 64, SAMPLES_MAX = 512, SCHEDULES = 150 };

struct model_span {
    uint64_t parent; /* number + 1 of the span that it is in; 0: none */
    uint64_t start_ms;
    uint64_t end_ms;
    uint64_t sends_ms;
    unsigned thread;
    uint64_t cost;
    bool sent;
    bool is_stranger; /* of another trace than what it overlaps */
};
struct model_sample {
    uint64_t time_ms;
    unsigned thread;
    int64_t value;
};

struct model {
    struct join join;
    uint64_t random;
    struct model_span spans[SPANS_MAX];
    unsigned span_count;
    struct model_sample samples[SAMPLES_MAX];
    unsigned sample_count;
    bool by_name;
    uint64_t sends_ms[UPLOADS]; /* uploads */
};

static uint64_t below(struct model *model, uint64_t limit)
{
    model->random = model->random * 6364136223846793005u + 1442695040888963407u;
    return (model->random >> 33) % limit;
}

static void plan_span(struct model *model, unsigned thread, uint64_t parent, uint64_t start_ms,
                      uint64_t end_ms)
{
    if (model->span_count == SPANS_MAX)
        return;
    struct model_span *span = &model->spans[model->span_count++];
    *span = (struct model_span){.parent = parent,
                                .start_ms = start_ms,
                                .end_ms = end_ms,
                                .sends_ms = end_ms + below(model, 5000),
                                .thread = thread};
    uint64_t number = model->span_count;
    if (end_ms - start_ms > 200 && below(model, 2))
        plan_span(model, thread, number, start_ms + 50, end_ms - 50 - below(model, 100));
    if (number > 1 && parent > 0) { /* children are exported before, or with their parents */
        struct model_span *above = &model->spans[parent - 1];
        if (above->sends_ms < span->sends_ms)
            above->sends_ms = span->sends_ms;
    }
}

static void plan_thread(struct model *model, unsigned thread)
{
    uint64_t time_ms = 100 + below(model, 1000);
    while (time_ms < 35000) {
        uint64_t length_ms = 20 + below(model, below(model, 3) ? 1500 : 20000);
        if (model->span_count > SPANS_MAX - 8)
            return;
        plan_span(model, thread, 0, time_ms, time_ms + length_ms);
        time_ms += length_ms + 20 + below(model, 500);
    }
}

/* Adds a span of another trace that begins while this one runs. */
static void plan_stranger(struct model *model, unsigned beside)
{
    const struct model_span span = model->spans[beside];
    uint64_t start_ms = span.start_ms + below(model, span.end_ms - span.start_ms);
    uint64_t end_ms = start_ms + 20 + below(model, 3000);
    if (model->span_count == SPANS_MAX)
        return;
    model->spans[model->span_count++] = (struct model_span){.start_ms = start_ms,
                                                            .end_ms = end_ms,
                                                            .sends_ms = end_ms + below(model, 5000),
                                                            .thread = span.thread,
                                                            .is_stranger = true};
}

/* Adds the value to the innermost span of the time; to none if that is not known, because of a
 * stranger. */
static void add_cost(struct model *model, const struct model_sample *sample)
{
    struct model_span *innermost = NULL;
    bool has_stranger = false;
    for (unsigned i = 0; i < model->span_count; i++) {
        struct model_span *span = &model->spans[i];
        if (span->thread != sample->thread || span->start_ms > sample->time_ms ||
            sample->time_ms > span->end_ms)
            continue;
        has_stranger |= span->is_stranger;
        if (!innermost || span->parent > 0)
            innermost = span;
    }
    if (innermost && !has_stranger)
        innermost->cost += (uint64_t)sample->value;
}

/* Most of the CPU time is of spans, as usual: otherwise it would look like another clock. */
static void plan_samples(struct model *model)
{
    for (unsigned i = 0; i < SAMPLES_MAX; i++) {
        const struct model_span *span = &model->spans[below(model, model->span_count)];
        struct model_sample *sample = &model->samples[model->sample_count++];
        *sample =
            (struct model_sample){span->start_ms + below(model, span->end_ms - span->start_ms),
                                  span->thread, 1 + (int64_t)below(model, 1000)};
        if (below(model, 16) == 0)
            sample->time_ms = below(model, UPLOADS * UPLOAD_MS);
        add_cost(model, sample);
    }
}

static void name_thread(struct request *request, const struct model *model, SampleMessage *sample,
                        unsigned thread)
{
    char name[16];
    snprintf(name, sizeof name, "worker-%u", thread);
    if (!model->by_name)
        sample_int(request, sample, SAMPLE_THREAD_RUNTIME_ID, THREAD + thread);
    sample_int(request, sample, model->by_name ? "thread.id" : SAMPLE_THREAD_OS_ID,
               OS_THREAD + thread);
    sample_string(request, sample, model->by_name ? "thread.name" : SAMPLE_THREAD_NAME, name);
}

/* Sends the samples of 5 s: those of each thread are one message, or one each. */
static void send_samples(struct model *model, uint64_t number)
{
    struct request request;
    bool together = below(model, 2);
    begin_upload(&request, number);
    for (unsigned thread = 0; thread < THREADS; thread++) {
        SampleMessage *sample = NULL;
        for (unsigned i = 0; i < model->sample_count; i++) {
            const struct model_sample *one = &model->samples[i];
            if (one->thread != thread || one->time_ms / 5000 != number)
                continue;
            if (!sample || !together) {
                sample = profiles_sample(&request, 1);
                name_thread(&request, model, sample, thread);
            }
            sample_time(&request, sample, WALL + one->time_ms * MS);
            sample_value(&request, sample, one->value);
        }
    }
    join_send(&model->join, &request);
}

static void name_span_thread(struct request *request, SpanMessage *message,
                             const struct model_span *span)
{
    char name[16];
    snprintf(name, sizeof name, "worker-%u", span->thread);
    span_int(request, message, "thread.id", THREAD + (int64_t)span->thread);
    span_string(request, message, "thread.name", name);
}

static uint64_t trace_of(const struct model_span *span, unsigned number)
{
    return span->is_stranger ? TRACE + 1 + number : TRACE;
}

/* Sends the spans that are due in one request, children before or behind their parents. */
static void send_spans(struct model *model, uint64_t now_ms)
{
    struct request request;
    begin_spans(&request);
    bool any = false;
    for (unsigned i = model->span_count; i-- > 0;) {
        struct model_span *span = &model->spans[i];
        if (span->sent || span->sends_ms > now_ms)
            continue;
        SpanMessage *message =
            traces_span(&request, trace_of(span, i), i + 1, WALL + span->start_ms * MS,
                        WALL + span->end_ms * MS, "work");
        if (span->parent)
            span_set_parent(&request, message, span->parent);
        name_span_thread(&request, message, span);
        any = span->sent = true;
    }
    if (any)
        join_send(&model->join, &request);
    else
        request_free(&request);
}

/* How what spans say is judged. */
enum judgement { NOT_AT_ALL, BY_COMPLETE_ONES, EXACTLY };

/* Who does not say that it may lack something has all samples that are surely its own. */
static void judge_costs(const struct model_span *span, const SpanMessage *message,
                        enum judgement judgement)
{
    const char *got = span_attribute(message, "profile.cpu_ns");
    uint64_t cost = got ? strtoull(got, NULL, 10) : 0;
    bool is_complete =
        span->end_ms < UPLOADS * UPLOAD_MS && got && !span_attribute(message, "profile.complete");
    if (judgement == EXACTLY)
        assert_int_equal(cost, span->cost);
    if (judgement == EXACTLY && got && span->end_ms < UPLOADS * UPLOAD_MS)
        assert_true(is_complete);
    if (is_complete)
        assert_true(cost >= span->cost);
}

/* Sends each span again, to read its costs. */
static void expect_costs(struct model *model, enum judgement judgement)
{
    for (unsigned i = 0; i < model->span_count; i++) {
        const struct model_span *span = &model->spans[i];
        struct request request, out;
        begin_spans(&request);
        SpanMessage *sent =
            traces_span(&request, trace_of(span, i), i + 1, WALL + span->start_ms * MS,
                        WALL + span->end_ms * MS, "work");
        name_span_thread(&request, sent, span);
        fixture_clear_recorded(&model->join.fixture);
        join_send(&model->join, &request);
        const struct recorded *last = &model->join.fixture.recorder.items[0];
        request_read_traces(&out, slice_of(last->bytes, last->size));
        judge_costs(span, request_span(&out, 0), judgement);
        request_free(&out);
    }
}

/* So few spans and samples may look as if clocks differed. */
static enum judgement judgement_of(struct model *model)
{
    const struct spanjoin_node *node = (struct spanjoin_node *)model->join.traces->nodes[0];
    struct thread_spans *threads = span_index_threads(node->join->index);
    for (uint16_t instance = 1; instance < 8; instance++)
        if (thread_spans_offset(threads, instance) != 0)
            return NOT_AT_ALL;
    bool any = metric(&model->join, "profcol_spanjoin_samples_unjoined",
                      "spanjoin=\"spanjoin\",reason=\"ambiguous_thread\"") > 0;
    return any ? BY_COMPLETE_ONES : EXACTLY;
}

/* Returns how it was judged. */
static enum judgement run_schedule(uint64_t seed, bool has_strangers)
{
    static struct model model;
    char settings[64];
    model = (struct model){.random = seed * 2654435761u + 1};
    model.by_name = below(&model, 2);
    bool is_known = below(&model, 2); /* the process has spans before its first uploads */
    snprintf(settings, sizeof settings, "samples: {wait: %us}", (unsigned)below(&model, 4) * 3);
    join_init(&model.join, settings);
    spanjoin_set_large_bytes(below(&model, 2) ? 0 : SIZE_MAX);
    for (unsigned thread = 0; thread < THREADS; thread++) {
        if (is_known) {
            plan_span(&model, thread, 0, 1, 2);
            model.spans[model.span_count - 1].sends_ms = 0;
        }
        plan_thread(&model, thread);
    }
    for (unsigned i = 0; has_strangers && i < 6; i++)
        plan_stranger(&model, (unsigned)below(&model, model.span_count));
    plan_samples(&model);
    for (uint64_t i = 0; i < UPLOADS; i++)
        model.sends_ms[i] = (i + 1) * 5000 + below(&model, 4000);
    for (uint64_t now_ms = 0; now_ms < 80000; now_ms += 500) {
        clock_fix_wall(WALL + now_ms * MS);
        send_spans(&model, now_ms);
        for (uint64_t i = 0; i < UPLOADS; i++)
            if (model.sends_ms[i] / 500 * 500 == now_ms)
                send_samples(&model, i);
        fixture_advance(&model.join.fixture, 500 * MS);
    }
    enum judgement judgement = judgement_of(&model);
    if (judgement == EXACTLY && has_strangers)
        judgement = BY_COMPLETE_ONES;
    if (judgement != NOT_AT_ALL)
        expect_costs(&model, judgement);
    fixture_deinit(&model.join.fixture);
    spanjoin_set_large_bytes(SIZE_MAX);
    clock_fix_wall(0);
    return judgement;
}

/* Whatever comes first: in the end each span has exactly the samples of its thread and time. */
static void each_span_has_its_samples(void **state)
{
    (void)state;
    unsigned judged = 0;
    for (uint64_t seed = 1; seed <= SCHEDULES; seed++)
        judged += run_schedule(seed, false) == EXACTLY;
    assert_true(judged > SCHEDULES * 9 / 10);
}

/* Requests take turns on threads now and then. */
static void a_complete_span_lacks_nothing(void **state)
{
    (void)state;
    unsigned judged = 0;
    for (uint64_t seed = 1; seed <= SCHEDULES; seed++)
        judged += run_schedule(seed + SCHEDULES, true) == BY_COMPLETE_ONES;
    assert_true(judged > SCHEDULES / 2);
}

int main(void)
{
    log_init(LOG_ERROR + 1, LOG_CONSOLE);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_span_has_all_uploads),
        cmocka_unit_test(children_of_the_same_request_get_theirs),
        cmocka_unit_test(a_span_opens_what_left_with_its_link),
        cmocka_unit_test(a_span_gets_what_is_of_its_time),
        cmocka_unit_test(pairs_of_ids_find_it),
        cmocka_unit_test(a_span_says_what_it_may_lack),
        cmocka_unit_test(a_profile_counts_once),
        cmocka_unit_test(keep_sees_it),
        cmocka_unit_test(each_span_has_its_samples),
        cmocka_unit_test(a_complete_span_lacks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

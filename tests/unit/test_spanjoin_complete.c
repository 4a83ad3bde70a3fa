/* Spans wait until profiles cover them (docs/spanjoin.md, "When a span's costs are complete"). */
#include "core/base/clock.h"
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/spanjoin_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TRACE = 7, SPAN = 42, OTHER = 43, NOTHING = 0 };
#define HALF (SECOND / 2)

/* A span between two times after WALL. */
static void send_span_of(struct join *join, const char *service, uint64_t span, uint64_t start_ns,
                         uint64_t end_ns)
{
    struct request request;
    traces_begin(&request, service);
    traces_span(&request, TRACE, span, WALL + start_ns, WALL + end_ns, "work");
    join_send(join, &request);
}

/* A span from WALL that lasts this long. */
static void send_span(struct join *join, const char *service, uint64_t span, uint64_t duration_ns)
{
    send_span_of(join, service, span, 0, duration_ns);
}

/* An upload that ends so long after WALL. span NOTHING: it has no samples. */
static void send_upload(struct join *join, const char *service, const char *type, uint64_t span,
                        uint64_t end_ns)
{
    struct request request;
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", service);
    ProfileMessage *profile = profiles_profile(&request, type, "nanoseconds");
    profile->time_unix_nano = WALL + end_ns - 10 * SECOND;
    if (span != NOTHING) {
        SampleMessage *sample = profiles_sample(&request, 1);
        sample_link(&request, sample, TRACE, span);
        sample_value(&request, sample, 30);
    }
    join_send(join, &request);
}

/* Returns how many traces requests have left. */
static unsigned left(struct join *join)
{
    unsigned count = 0;
    for (size_t i = 0; i < join->fixture.recorder.count; i++)
        count += join->fixture.recorder.items[i].signal == SIGNAL_TRACES;
    return count;
}

/* Returns how many spans have waited with this result. */
static double waited(struct join *join, const char *result)
{
    char labels[64];
    snprintf(labels, sizeof labels, "spanjoin=\"spanjoin\",result=\"%s\"", result);
    return metrics_value(join->fixture.process.metrics, "profcol_spanjoin_spans_waited", labels);
}

/* Checks attributes of the span in the n-th traces request. NULL: it is absent. */
static void expect_span(struct join *join, unsigned n, const char *cpu, const char *complete)
{
    struct request out;
    size_t i = 0;
    while (join->fixture.recorder.items[i].signal != SIGNAL_TRACES || n-- > 0)
        assert_true(++i < join->fixture.recorder.count);
    const struct recorded *recorded = &join->fixture.recorder.items[i];
    request_read_traces(&out, slice_of(recorded->bytes, recorded->size));
    const char *wanted[] = {cpu, complete}, *keys[] = {"profile.cpu_ns", "profile.complete"};
    for (int k = 0; k < 2; k++) {
        const char *got = span_attribute(request_span(&out, 0), keys[k]);
        assert_string_equal(got ? got : "absent", wanted[k] ? wanted[k] : "absent");
    }
    request_free(&out);
}

/* A span of 14 s, whose samples arrive in three uploads. */
static void waits_for_all_uploads(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_upload(&join, "shop", "cpu", SPAN, HALF - 5 * SECOND);
    send_upload(&join, "shop", "cpu", SPAN, HALF + 5 * SECOND);
    send_span(&join, "shop", SPAN, 14 * SECOND);
    assert_int_equal(left(&join), 0);
    send_upload(&join, "shop", "cpu", SPAN, 15 * SECOND + HALF);
    assert_int_equal(left(&join), 1);
    assert_int_equal(waited(&join, "covered"), 1);
    assert_int_equal(waited(&join, "timed_out"), 0);
    expect_span(&join, 0, "90", NULL);
    fixture_deinit(&join.fixture);
}

static void does_not_wait_when_covered(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_upload(&join, "shop", "cpu", NOTHING, 5 * SECOND + HALF);
    send_upload(&join, "shop", "cpu", SPAN, 15 * SECOND + HALF);
    send_span(&join, "shop", SPAN, 14 * SECOND);
    assert_int_equal(left(&join), 1);
    expect_span(&join, 0, "30", NULL);
    fixture_deinit(&join.fixture);
}

/* It has sent uploads before, to a profcol that was started anew since. */
static void span_from_before_the_first_upload_is_incomplete(void **state)
{
    (void)state;
    for (unsigned is_late = 0; is_late < 2; is_late++) { /* the process began later than profcol */
        struct join join;
        join_init(&join, "window: 60s, spans: {wait: 20s}");
        send_span(&join, "other", OTHER, SECOND);
        fixture_advance(&join.fixture, (is_late ? 61 : 20) * SECOND);
        send_upload(&join, "shop", "cpu", SPAN, 15 * SECOND + HALF);
        send_span(&join, "shop", SPAN, 14 * SECOND);
        send_span_of(&join, "shop", SPAN, 6 * SECOND, 14 * SECOND);
        assert_int_equal(left(&join), 3);
        expect_span(&join, 1, "30", is_late ? NULL : "false");
        expect_span(&join, 2, "30", NULL);
        fixture_deinit(&join.fixture);
    }
}

/* Sends a span of 14 s and an upload that ends so long after its start. */
static void expect_covered(uint64_t end_ns, bool is_covered)
{
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_span(&join, "shop", SPAN, 14 * SECOND);
    send_upload(&join, "shop", "cpu", NOTHING, end_ns);
    assert_int_equal(left(&join), is_covered);
    if (is_covered)
        expect_span(&join, 0, NULL, NULL);
    fixture_deinit(&join.fixture);
}

static void upload_without_samples_covers(void **state)
{
    (void)state;
    expect_covered(13 * SECOND + HALF, false);
    expect_covered(14 * SECOND + HALF, true);
}

/* A whole second may be rounded. */
static void rounded_end_covers_a_second_less(void **state)
{
    (void)state;
    expect_covered(14 * SECOND, false);
    expect_covered(15 * SECOND, true);
}

/* Nothing tells two replicas apart but that their uploads overlap: each has to cover the span. */
static void waits_for_each_of_two_replicas(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_upload(&join, "shop", "cpu", OTHER, HALF);
    send_upload(&join, "shop", "cpu", NOTHING, 4 * SECOND + HALF);
    send_span(&join, "shop", SPAN, 6 * SECOND);
    send_upload(&join, "shop", "cpu", OTHER, 10 * SECOND + HALF);
    assert_int_equal(left(&join), 0);
    send_upload(&join, "shop", "cpu", SPAN, 14 * SECOND + HALF);
    assert_int_equal(left(&join), 1);
    expect_span(&join, 0, "30", NULL);
    fixture_deinit(&join.fixture);
}

/* Node's profiler sends the end as the time of a profile. */
static void end_in_the_future_is_a_time_that_is_the_end(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    uint64_t now_ns = WALL + HALF;
    clock_fix_wall(now_ns);
    join_init(&join, "spans: {wait: 20s}");
    traces_begin(&request, "shop");
    traces_span(&request, TRACE, SPAN, now_ns - 5 * SECOND, now_ns - 2 * SECOND, "work");
    join_send(&join, &request);
    for (unsigned i = 0; i < 2; i++) {
        profiles_begin(&request);
        profiles_resource_string(&request, "service.name", "shop");
        ProfileMessage *profile = profiles_profile(&request, "cpu", "nanoseconds");
        profile->time_unix_nano = now_ns - (i == 0 ? 8 : 2) * HALF;
        profile->duration_nano = (i == 0 ? 10 : 3) * SECOND;
        join_send(&join, &request);
        assert_int_equal(left(&join), i);
    }
    fixture_deinit(&join.fixture);
    clock_fix_wall(0);
}

/* What counts is when it arrived. */
static void upload_that_waits_covers_no_more_when_it_leaves(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    uint64_t now_ns = WALL + HALF;
    clock_fix_wall(now_ns);
    join_init(&join, "spans: {wait: 40s}, samples: {wait: 10s}");
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", "shop");
    profiles_profile(&request, "cpu", "nanoseconds")->time_unix_nano = 0; /* it ends now */
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, TRACE, OTHER);
    sample_value(&request, sample, 30);
    join_send(&join, &request);
    traces_begin(&request, "shop");
    traces_span(&request, TRACE, SPAN, now_ns, now_ns + 5 * SECOND, "work");
    join_send(&join, &request);
    clock_fix_wall(now_ns + 11 * SECOND);
    fixture_advance(&join.fixture, 11 * SECOND);
    assert_int_equal(join.fixture.recorder.count, 1); /* the upload */
    assert_int_equal(left(&join), 0);
    fixture_deinit(&join.fixture);
    clock_fix_wall(0);
}

/* Whether times that are ahead by so much are taken for ends of uploads of 10 s. */
static bool are_taken_for_ends(uint64_t ahead_ns)
{
    return ahead_ns >= 5 * SECOND && ahead_ns < 10 * SECOND;
}

/* Uploads of 10 s by a profiler whose times are ahead; the second one is slow. A span ends after
 * it, in the time that it seems to cover because it arrives late. */
static void expect_no_more_covered(uint64_t ahead_ns, uint64_t slow_ns)
{
    struct join join;
    struct request request;
    uint64_t now_ns = WALL + HALF;
    clock_fix_wall(now_ns);
    join_init(&join, "spans: {wait: 60s}");
    send_span_of(&join, "shop", SPAN, 12 * SECOND, 14 * SECOND); /* so that nothing waits for it */
    for (uint64_t end_ns = 0; end_ns <= 20 * SECOND; end_ns += 10 * SECOND) {
        clock_fix_wall(now_ns + end_ns + (end_ns == 10 * SECOND ? slow_ns : SECOND / 10));
        profiles_begin(&request);
        profiles_resource_string(&request, "service.name", "shop");
        profiles_profile(&request, "cpu", "nanoseconds")->time_unix_nano =
            now_ns + end_ns - 10 * SECOND + ahead_ns;
        join_send(&join, &request);
        if (end_ns < 20 * SECOND || !are_taken_for_ends(ahead_ns))
            assert_int_equal(left(&join), end_ns == 20 * SECOND);
    }
    fixture_deinit(&join.fixture);
    clock_fix_wall(0);
}

static void slow_upload_of_a_clock_that_is_ahead_covers_no_more(void **state)
{
    (void)state;
    for (uint64_t ahead_ns = 0; ahead_ns < 40 * SECOND; ahead_ns += SECOND * 3 / 7)
        expect_no_more_covered(ahead_ns, 7 * SECOND);
}

/* An upload of 10 s, whose times are ahead, of a profiler that says of the process what others do
 * not; NULL: of one that says only its service. */
static void send_ahead(struct join *join, const char *attribute, uint64_t end_ns, uint64_t ahead_ns)
{
    struct request request;
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", "shop");
    profiles_resource_string(&request, "service.instance.id", "1");
    if (attribute)
        profiles_resource_string(&request, attribute, "host-1");
    profiles_profile(&request, "cpu", "nanoseconds")->time_unix_nano =
        end_ns - 10 * SECOND + ahead_ns;
    join_send(join, &request);
}

/* Two profilers of one process on a host whose clock is ahead. */
static void uploads_of_two_profilers_that_are_ahead_leave_no_gaps(void **state)
{
    (void)state;
    for (uint64_t ahead_ns = 0; ahead_ns < 40 * SECOND; ahead_ns += SECOND * 3 / 7) {
        struct join join;
        struct request request;
        join_init(&join, "spans: {wait: 60s}");
        for (unsigned i = 0; i < 4; i++) {
            uint64_t end_ns = WALL + HALF + 10 * SECOND * i;
            clock_fix_wall(end_ns + SECOND / 10);
            send_ahead(&join, NULL, end_ns, ahead_ns);
            send_ahead(&join, "host.name", end_ns, ahead_ns);
        }
        traces_begin(&request, "shop");
        traces_resource_string(&request, "service.instance.id", "1");
        traces_span(&request, TRACE, SPAN, WALL + 4 * SECOND, WALL + 7 * SECOND, "work");
        join_send(&join, &request);
        assert_int_equal(left(&join), 1);
        fixture_deinit(&join.fixture);
        clock_fix_wall(0);
    }
}

/* Nothing is missing between them. */
static void uploads_of_a_clock_that_is_ahead_leave_no_gaps(void **state)
{
    (void)state;
    for (uint64_t ahead_ns = 0; ahead_ns < 40 * SECOND; ahead_ns += SECOND * 3 / 7) {
        struct join join;
        struct request request;
        join_init(&join, "spans: {wait: 60s}");
        for (unsigned i = 0; i < 3; i++) {
            uint64_t end_ns = WALL + HALF + 10 * SECOND * i;
            clock_fix_wall(end_ns + SECOND / 10);
            profiles_begin(&request);
            profiles_resource_string(&request, "service.name", "shop");
            profiles_profile(&request, "cpu", "nanoseconds")->time_unix_nano =
                end_ns - 10 * SECOND + ahead_ns;
            join_send(&join, &request);
        }
        send_span_of(&join, "shop", SPAN, 4 * SECOND, 7 * SECOND);
        assert_int_equal(left(&join), 1);
        fixture_deinit(&join.fixture);
        clock_fix_wall(0);
    }
}

/* ---- a clock that turns out to be ahead ---- */

enum { THREAD = 31 };
#define AHEAD (3 * SECOND)
#define SLOWLY (29 * SECOND / 10) /* so that the clock seems to be right, but for 0.1 s */
#define FAST (SECOND / 10)

/* An upload by a profiler whose clock is ahead. It ends so long after WALL, and arrives so long
 * after its end. */
static void begin_upload_ahead(struct request *request, const char *type, uint64_t end_ns,
                               uint64_t takes_ns)
{
    clock_fix_wall(WALL + end_ns + takes_ns);
    profiles_begin(request);
    profiles_resource_string(request, "service.name", "shop");
    profiles_profile(request, type, "nanoseconds")->time_unix_nano =
        WALL + end_ns - 10 * SECOND + AHEAD;
}

static void send_upload_ahead(struct join *join, const char *type, uint64_t end_ns,
                              uint64_t takes_ns)
{
    struct request request;
    begin_upload_ahead(&request, type, end_ns, takes_ns);
    join_send(join, &request);
}

/* Types that come in requests of their own have the same clock: what the upload of one shows moves
 * those of the others. */
static void a_lead_moves_the_uploads_of_all_types(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 60s}");
    send_upload_ahead(&join, "cpu", 10 * SECOND + HALF, SLOWLY);
    send_upload_ahead(&join, "wall", 10 * SECOND + HALF, SLOWLY);
    send_span_of(&join, "shop", SPAN, 11 * SECOND, 12 * SECOND);
    send_upload_ahead(&join, "cpu", 20 * SECOND + HALF, FAST);
    send_span_of(&join, "shop", OTHER, 11 * SECOND, 12 * SECOND);
    assert_int_equal(left(&join), 1); /* the clock seemed to be right */
    send_upload_ahead(&join, "wall", 20 * SECOND + HALF, FAST);
    assert_int_equal(left(&join), 2);
    fixture_deinit(&join.fixture);
    clock_fix_wall(0);
}

/* A span of a thread of "shop", of which all samples are. */
static void send_span_of_thread(struct join *join)
{
    struct request request;
    traces_begin(&request, "shop");
    traces_resource_string(&request, "telemetry.sdk.language", "cpp");
    SpanMessage *span = traces_span(&request, TRACE, SPAN, WALL, WALL + 40 * SECOND, "work");
    span_int(&request, span, "thread.id", THREAD);
    join_send(join, &request);
}

static void send_thread_ahead(struct join *join, uint64_t end_ns, uint64_t takes_ns)
{
    struct request request;
    begin_upload_ahead(&request, "cpu", end_ns, takes_ns);
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_int(&request, sample, "thread.id", THREAD);
    sample_time(&request, sample, WALL + end_ns);
    sample_value(&request, sample, 30);
    join_send(join, &request);
}

/* Uploads that are joined by thread, at once or when they have waited, are of one sender. */
static void a_lead_moves_uploads_that_are_joined_by_thread(void **state)
{
    static const char *const settings[] = {
        "spans: {wait: 60s}, samples: {wait: 1s}",
        "spans: {wait: 60s}, samples: {wait: 0s}",
        "spans: {wait: 60s}, samples: {wait: 0s}, attribute_children: true", /* planned anew */
        "spans: {wait: 60s}, samples: {wait: 1s}, attribute_children: true",
    };
    (void)state;
    for (unsigned i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct join join;
        join_init(&join, settings[i]);
        send_span_of_thread(&join);
        send_thread_ahead(&join, 10 * SECOND + HALF, SLOWLY);
        fixture_advance(&join.fixture, SECOND);
        send_thread_ahead(&join, 20 * SECOND + HALF, FAST);
        fixture_advance(&join.fixture, SECOND);
        send_span_of(&join, "shop", OTHER, 14 * SECOND, 15 * SECOND);
        assert_int_equal(join.fixture.recorder.count, 3);
        assert_int_equal(left(&join), 1);
        fixture_deinit(&join.fixture);
        clock_fix_wall(0);
    }
}

/* All times that a profile can have. */
static void times_at_the_limits(void **state)
{
    static const uint64_t limits[] = {
        0,         1,          SECOND,         WALL,           WALL + 1,
        INT64_MAX, 1ULL << 63, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX};
    enum { COUNT = sizeof limits / sizeof *limits };
    (void)state;
    struct join join;
    struct request request;
    clock_fix_wall(WALL);
    join_init(&join, "spans: {wait: 20s}");
    for (unsigned i = 0; i < COUNT * COUNT * 2; i++) {
        profiles_begin(&request);
        profiles_resource_string(&request, "service.name", "shop");
        ProfileMessage *profile = profiles_profile(&request, "cpu", "nanoseconds");
        profile->time_unix_nano = limits[i % COUNT];
        profile->duration_nano = limits[i / COUNT % COUNT];
        join_send(&join, &request);
        send_span(&join, "shop", SPAN, 4 * SECOND);
    }
    fixture_advance(&join.fixture, 20 * SECOND);
    assert_int_equal(left(&join), COUNT * COUNT * 2);
    fixture_deinit(&join.fixture);
    clock_fix_wall(0);
}

/* Passes a request on without running jobs. */
static void send_without_jobs(struct join *join, struct request *request, struct probe *probe)
{
    struct fixture_place *place = request->traces ? join->traces : join->profiles;
    fixture_consume(&join->fixture, place->nodes[0], request_encode(request), request->items,
                    probe);
    request_free(request);
}

/* An upload that a job reads. A later one, which says nothing of its time, overtakes it. */
static void span_waits_for_an_upload_that_is_being_read(void **state)
{
    (void)state;
    enum { LARGE = 1000 };
    char padding[LARGE + 1];
    struct join join;
    struct request request;
    struct probe probes[3];
    memset(padding, 'x', LARGE);
    padding[LARGE] = '\0';
    spanjoin_set_large_bytes(LARGE);
    join_init(&join, "spans: {wait: 20s}");
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", "shop");
    profiles_resource_string(&request, "padding", padding);
    profiles_profile(&request, "cpu", "nanoseconds")->time_unix_nano = WALL + HALF;
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, TRACE, SPAN);
    sample_value(&request, sample, 30);
    send_without_jobs(&join, &request, &probes[0]);
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", "shop");
    ProfileMessage *later = profiles_profile(&request, "cpu", "nanoseconds");
    later->time_unix_nano = WALL + 20 * SECOND + HALF;
    later->duration_nano = 0;
    send_without_jobs(&join, &request, &probes[1]);
    traces_begin(&request, "shop");
    traces_span(&request, TRACE, SPAN, WALL, WALL + 4 * SECOND, "work");
    send_without_jobs(&join, &request, &probes[2]);
    assert_int_equal(left(&join), 0);
    fixture_advance(&join.fixture, 0);
    assert_int_equal(left(&join), 1);
    expect_span(&join, 0, "30", NULL);
    assert_int_equal(probes[0].settled + probes[1].settled + probes[2].settled, 3);
    fixture_deinit(&join.fixture);
    spanjoin_set_large_bytes((size_t)1024 * 1024);
}

/* After a reload that changes other processors. The span waits in the new component, and its upload
 * in the old one, which has not sent on everything yet. */
static void upload_in_a_replaced_component_completes_spans(void **state)
{
    (void)state;
    const char *settings = "spans: {wait: 20s}, samples: {wait: 10s}, attribute_children: true";
    struct join join;
    join_init(&join, settings);
    send_upload(&join, "shop", "cpu", OTHER, 5 * SECOND + HALF); /* waits for its span */
    join_replace(&join, settings);
    send_span(&join, "shop", SPAN, 4 * SECOND);
    assert_int_equal(join.fixture.recorder.count, 0);
    join_drain_replaced(&join);
    assert_int_equal(left(&join), 1);
    expect_span(&join, 0, NULL, NULL);
    fixture_deinit(&join.fixture);
}

/* An upload in the old component leaves when its span arrives in the new one. */
static void span_in_a_new_component_wakes_uploads_of_the_old_one(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "samples: {wait: 10s}");
    send_upload(&join, "shop", "cpu", SPAN, 5 * SECOND + HALF);
    join_replace(&join, "samples: {wait: 10s}");
    send_span(&join, "shop", SPAN, 4 * SECOND);
    assert_int_equal(join.fixture.recorder.count, 2);
    fixture_deinit(&join.fixture);
}

static void each_sample_type_has_to_cover(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_upload(&join, "shop", "cpu", NOTHING, HALF);
    send_upload(&join, "shop", "wall", NOTHING, HALF);
    send_span(&join, "shop", SPAN, SECOND);
    send_upload(&join, "shop", "cpu", SPAN, 10 * SECOND + HALF);
    assert_int_equal(left(&join), 0);
    send_upload(&join, "shop", "wall", NOTHING, 10 * SECOND + HALF);
    assert_int_equal(left(&join), 1);
    fixture_deinit(&join.fixture);
}

/* Go's SDK sends its first CPU profile 15 s after its first memory profile. */
static void first_uploads_of_another_type_do_not_cover(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_span(&join, "shop", SPAN, 4 * SECOND);
    fixture_advance(&join.fixture, 5 * SECOND);
    send_upload(&join, "shop", "alloc", SPAN, 5 * SECOND + HALF);
    send_span(&join, "shop", OTHER, 8 * SECOND);
    assert_int_equal(left(&join), 0);
    fixture_advance(&join.fixture, 14 * SECOND);
    send_upload(&join, "shop", "cpu", SPAN, 9 * SECOND + HALF);
    assert_int_equal(left(&join), 1); /* the other one waits for the other type */
    expect_span(&join, 0, "30", NULL);
    fixture_deinit(&join.fixture);
}

static void first_type_of_several_says_that_more_may_come(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_upload(&join, "shop", "alloc", SPAN, 5 * SECOND + HALF);
    send_span(&join, "shop", SPAN, 4 * SECOND);
    fixture_advance(&join.fixture, 20 * SECOND);
    assert_int_equal(left(&join), 1);
    expect_span(&join, 0, NULL, "false");
    fixture_deinit(&join.fixture);
}

/* Its spans wait for a CPU profile only in the first time. */
static void process_without_a_cpu_profiler_is_not_delayed(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_upload(&join, "shop", "alloc", NOTHING, 5 * SECOND + HALF);
    fixture_advance(&join.fixture, 21 * SECOND);
    send_span(&join, "shop", SPAN, 4 * SECOND);
    assert_int_equal(left(&join), 1);
    send_span(&join, "shop", OTHER, 14 * SECOND);
    assert_int_equal(left(&join), 1);
    send_upload(&join, "shop", "alloc", OTHER, 15 * SECOND + HALF);
    assert_int_equal(left(&join), 2);
    expect_span(&join, 1, NULL, NULL);
    fixture_deinit(&join.fixture);
}

/* Once its profiles were missing for a window, it is new. */
static void profiler_that_begins_anew_begins_with_any_type(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "window: 60s, spans: {wait: 20s}");
    send_upload(&join, "shop", "cpu", NOTHING, HALF);
    fixture_advance(&join.fixture, 61 * SECOND);
    send_upload(&join, "shop", "alloc", NOTHING, 60 * SECOND + HALF);
    send_span_of(&join, "shop", SPAN, 55 * SECOND, 60 * SECOND);
    assert_int_equal(left(&join), 0);
    send_upload(&join, "shop", "cpu", SPAN, 60 * SECOND + HALF);
    assert_int_equal(left(&join), 1);
    expect_span(&join, 0, "30", NULL);
    fixture_deinit(&join.fixture);
}

static void wait_ends(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_upload(&join, "shop", "cpu", SPAN, 10 * SECOND + HALF);
    send_span(&join, "shop", SPAN, 14 * SECOND);
    fixture_advance(&join.fixture, 19 * SECOND);
    assert_int_equal(left(&join), 0);
    fixture_advance(&join.fixture, SECOND);
    assert_int_equal(left(&join), 1);
    assert_int_equal(waited(&join, "timed_out"), 1);
    assert_int_equal(waited(&join, "covered"), 0);
    expect_span(&join, 0, "30", "false");
    fixture_deinit(&join.fixture);
}

static void span_that_passes_may_be_incomplete(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "");
    send_upload(&join, "shop", "cpu", SPAN, 10 * SECOND + HALF);
    send_span(&join, "shop", SPAN, 14 * SECOND);
    expect_span(&join, 0, "30", "false");
    send_span(&join, "shop", OTHER, 14 * SECOND); /* without attributes, it says nothing */
    expect_span(&join, 1, NULL, NULL);
    fixture_deinit(&join.fixture);
}

/* Nothing says yet that the upload, which waits for the span, is of its process. */
static void span_with_samples_of_an_upload_that_waits_is_incomplete(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "");
    send_upload(&join, "app", "cpu", SPAN, 10 * SECOND + HALF);
    send_span(&join, "shop", SPAN, 14 * SECOND);
    expect_span(&join, 0, "30", "false");
    fixture_deinit(&join.fixture);
}

/* What nobody profiles is waited for only as long as that cannot be known. */
static void unprofiled_service_is_not_delayed(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 5s}");
    send_span(&join, "plain", SPAN, SECOND);
    assert_int_equal(left(&join), 0);
    fixture_advance(&join.fixture, 6 * SECOND);
    assert_int_equal(left(&join), 1);
    send_upload(&join, "shop", "cpu", OTHER, HALF);
    send_span(&join, "plain", SPAN, SECOND);
    assert_int_equal(left(&join), 2);
    send_span(&join, "new", SPAN, SECOND);
    assert_int_equal(left(&join), 3);
    send_span(&join, "shop", OTHER, SECOND);
    assert_int_equal(left(&join), 3);
    fixture_deinit(&join.fixture);
}

static void service_that_is_profiled_no_more_is_not_delayed(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "window: 60s, spans: {wait: 20s}");
    send_upload(&join, "shop", "cpu", NOTHING, HALF);
    fixture_advance(&join.fixture, 30 * SECOND);
    send_span(&join, "shop", SPAN, SECOND);
    assert_int_equal(left(&join), 0);
    fixture_advance(&join.fixture, 31 * SECOND);
    assert_int_equal(left(&join), 1);
    send_span(&join, "shop", OTHER, SECOND);
    assert_int_equal(left(&join), 2);
    fixture_deinit(&join.fixture);
}

static void nothing_waits_without_a_pipeline_of_profiles(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    join.traces->component->pipeline_count[SIGNAL_PROFILES] = 0;
    send_span(&join, "shop", SPAN, SECOND);
    assert_int_equal(left(&join), 1);
    fixture_deinit(&join.fixture);
}

/* Profiles of an application whose name is not that of its spans. */
static void samples_show_the_instance(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_upload(&join, "app", "cpu", SPAN, 5 * SECOND + HALF); /* waits for the span */
    send_span(&join, "shop", SPAN, 4 * SECOND);
    assert_int_equal(left(&join), 1); /* the upload was joined and covers it */
    send_span(&join, "shop", OTHER, 14 * SECOND);
    assert_int_equal(left(&join), 1);
    send_upload(&join, "app", "cpu", NOTHING, 15 * SECOND + HALF); /* and is idle */
    assert_int_equal(left(&join), 2);
    fixture_deinit(&join.fixture);
}

/* Uploads of several processes that name themselves alike: each covers the spans it names. */
static void shared_name_covers_what_it_names(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_span(&join, "one", SPAN, SECOND);
    send_span(&join, "two", OTHER, SECOND);
    send_upload(&join, "app", "cpu", SPAN, 5 * SECOND + HALF);
    assert_int_equal(left(&join), 1);
    send_upload(&join, "app", "cpu", OTHER, 5 * SECOND + HALF);
    assert_int_equal(left(&join), 2);
    send_span(&join, "one", SPAN + 10, 14 * SECOND);
    send_span(&join, "two", OTHER + 10, 14 * SECOND);
    send_upload(&join, "app", "cpu", NOTHING, 15 * SECOND + HALF); /* of which process? */
    assert_int_equal(left(&join), 2);
    send_upload(&join, "app", "cpu", OTHER + 10, 15 * SECOND + HALF);
    assert_int_equal(left(&join), 3);
    fixture_deinit(&join.fixture);
}

/* ---- waits that end with time ---- */

/* Of two replicas, one has ended. Its last upload arrived at 0 s, and took 10 s. */
static void span_waits_for_a_silent_sender_only_for_a_while(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 60s}");
    send_upload(&join, "shop", "cpu", OTHER, HALF);
    send_upload(&join, "shop", "cpu", NOTHING, 4 * SECOND + HALF);
    fixture_advance(&join.fixture, 10 * SECOND);
    send_upload(&join, "shop", "cpu", SPAN, 14 * SECOND + HALF);
    send_span(&join, "shop", SPAN, 6 * SECOND);
    fixture_advance(&join.fixture, 12 * SECOND);
    assert_int_equal(left(&join), 0);
    fixture_advance(&join.fixture, SECOND);
    assert_int_equal(left(&join), 1);
    assert_int_equal(waited(&join, "covered"), 1);
    expect_span(&join, 0, "30", NULL);
    fixture_deinit(&join.fixture);
}

/* It has no CPU profiler. */
static void process_that_begins_is_waited_for_only_for_a_while(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_upload(&join, "shop", "alloc", SPAN, 5 * SECOND + HALF);
    fixture_advance(&join.fixture, 15 * SECOND);
    send_span(&join, "shop", SPAN, 4 * SECOND);
    fixture_advance(&join.fixture, 4 * SECOND);
    assert_int_equal(left(&join), 0);
    fixture_advance(&join.fixture, 2 * SECOND);
    assert_int_equal(left(&join), 1);
    expect_span(&join, 0, NULL, NULL);
    fixture_deinit(&join.fixture);
}

static void unprofiled_spans_wait_only_at_the_beginning(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_span(&join, "plain", SPAN, SECOND);
    fixture_advance(&join.fixture, 15 * SECOND);
    send_span(&join, "plain", OTHER, SECOND);
    send_span(&join, "new", SPAN, SECOND);
    assert_int_equal(left(&join), 0);
    fixture_advance(&join.fixture, 6 * SECOND);
    assert_int_equal(left(&join), 3);
    fixture_deinit(&join.fixture);
}

/* Nor does a new process of a service that is profiled. */
static void unprofiled_process_waits_only_at_its_beginning(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, "spans: {wait: 20s}");
    send_span(&join, "shop", SPAN, SECOND);
    fixture_advance(&join.fixture, 30 * SECOND);
    send_upload(&join, "shop", "cpu", OTHER, 5 * SECOND + HALF);
    for (unsigned i = 0; i < 2; i++) {
        traces_begin(&request, "shop");
        traces_resource_string(&request, "service.instance.id", "one");
        traces_span(&request, TRACE, SPAN + 10 + i, WALL, WALL + SECOND, "work");
        join_send(&join, &request);
        fixture_advance(&join.fixture, (i == 0 ? 15 : 4) * SECOND);
        assert_int_equal(left(&join), 1);
    }
    fixture_advance(&join.fixture, 2 * SECOND);
    assert_int_equal(left(&join), 3);
    fixture_deinit(&join.fixture);
}

/* ---- gaps ---- */

/* A profiler that sends 10 s of CPU time, one after another, up to 40.5 s after WALL. */
static void send_continuous_uploads(struct join *join, const char *type)
{
    for (uint64_t end_ns = 10 * SECOND; end_ns <= 40 * SECOND; end_ns += 10 * SECOND)
        send_upload(join, "shop", type, NOTHING, end_ns + HALF);
}

/* The upload from 40.5 to 50.5 s is lost. */
static void span_of_a_lost_upload_is_incomplete(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_continuous_uploads(&join, "cpu");
    send_span_of(&join, "shop", SPAN, 45 * SECOND, 55 * SECOND);
    send_upload(&join, "shop", "cpu", SPAN, 60 * SECOND + HALF);
    assert_int_equal(left(&join), 0);
    /* Others are complete, before and after it; also later ones wait. */
    send_span_of(&join, "shop", OTHER, 35 * SECOND, 40 * SECOND);
    send_span_of(&join, "shop", OTHER + 1, 51 * SECOND, 60 * SECOND);
    assert_int_equal(left(&join), 2);
    send_span_of(&join, "shop", OTHER + 2, 41 * SECOND, 42 * SECOND);
    fixture_advance(&join.fixture, 19 * SECOND);
    assert_int_equal(left(&join), 2);
    fixture_advance(&join.fixture, SECOND);
    assert_int_equal(left(&join), 4);
    expect_span(&join, 2, "30", "false");
    expect_span(&join, 3, NULL, NULL);
    fixture_deinit(&join.fixture);
}

static void late_upload_completes_its_spans(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_continuous_uploads(&join, "cpu");
    send_span_of(&join, "shop", SPAN, 45 * SECOND, 55 * SECOND);
    send_upload(&join, "shop", "cpu", SPAN, 60 * SECOND + HALF);
    send_span_of(&join, "shop", OTHER, 45 * SECOND, 50 * SECOND);
    assert_int_equal(left(&join), 0);
    send_upload(&join, "shop", "cpu", SPAN, 50 * SECOND + HALF);
    assert_int_equal(left(&join), 2);
    expect_span(&join, 0, "60", NULL);
    expect_span(&join, 1, NULL, NULL);
    fixture_deinit(&join.fixture);
}

/* The second of the first three uploads is lost. */
static void first_upload_that_is_lost_counts(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_upload(&join, "shop", "cpu", SPAN, 10 * SECOND + HALF);
    send_span_of(&join, "shop", SPAN, 5 * SECOND, 25 * SECOND);
    send_upload(&join, "shop", "cpu", SPAN, 30 * SECOND + HALF);
    assert_int_equal(left(&join), 0);
    fixture_advance(&join.fixture, 20 * SECOND);
    expect_span(&join, 0, "60", "false");
    fixture_deinit(&join.fixture);
}

/* Two are late: the span waits for both, whichever comes first. */
static void span_waits_for_all_late_uploads(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 2; first++) {
        struct join join;
        join_init(&join, "spans: {wait: 20s}");
        send_continuous_uploads(&join, "cpu");
        send_span_of(&join, "shop", SPAN, 45 * SECOND, 65 * SECOND);
        send_upload(&join, "shop", "cpu", SPAN, 70 * SECOND + HALF);
        send_upload(&join, "shop", "cpu", SPAN, (first ? 60 : 50) * SECOND + HALF);
        assert_int_equal(left(&join), 0);
        send_upload(&join, "shop", "cpu", SPAN, (first ? 50 : 60) * SECOND + HALF);
        assert_int_equal(left(&join), 1);
        expect_span(&join, 0, "90", NULL);
        fixture_deinit(&join.fixture);
    }
}

/* A late span waits for a lost upload only until that is forgotten. */
static void span_does_not_wait_for_what_is_forgotten(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "window: 40s, spans: {wait: 20s}");
    send_continuous_uploads(&join, "cpu");
    send_upload(&join, "shop", "cpu", NOTHING, 60 * SECOND + HALF);
    fixture_advance(&join.fixture, 30 * SECOND);
    send_upload(&join, "shop", "cpu", NOTHING, 70 * SECOND + HALF);
    send_span_of(&join, "shop", SPAN, 45 * SECOND, 55 * SECOND);
    fixture_advance(&join.fixture, 10 * SECOND);
    assert_int_equal(left(&join), 0);
    fixture_advance(&join.fixture, SECOND);
    assert_int_equal(left(&join), 1);
    assert_int_equal(waited(&join, "covered"), 1);
    fixture_deinit(&join.fixture);
}

/* What passes at once says that it lacks samples, too. */
static void span_that_passes_may_lack_an_upload(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "");
    send_continuous_uploads(&join, "cpu");
    send_span_of(&join, "shop", SPAN, 45 * SECOND, 55 * SECOND);
    send_upload(&join, "shop", "cpu", SPAN, 60 * SECOND + HALF);
    send_span_of(&join, "shop", SPAN, 45 * SECOND, 55 * SECOND);
    expect_span(&join, 1, "30", "false");
    send_upload(&join, "shop", "cpu", NOTHING, 50 * SECOND + HALF);
    send_span_of(&join, "shop", SPAN, 45 * SECOND, 55 * SECOND);
    expect_span(&join, 2, "30", NULL);
    fixture_deinit(&join.fixture);
}

static void each_sample_type_has_its_gaps(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_continuous_uploads(&join, "cpu");
    send_continuous_uploads(&join, "wall");
    send_span_of(&join, "shop", SPAN, 45 * SECOND, 55 * SECOND);
    send_upload(&join, "shop", "cpu", SPAN, 60 * SECOND + HALF);
    send_upload(&join, "shop", "wall", SPAN, 60 * SECOND + HALF);
    send_upload(&join, "shop", "cpu", SPAN, 50 * SECOND + HALF);
    assert_int_equal(left(&join), 0);
    send_upload(&join, "shop", "wall", SPAN, 50 * SECOND + HALF);
    assert_int_equal(left(&join), 1);
    fixture_deinit(&join.fixture);
}

/* A profiler that is asked for 10 s in each minute. The third upload shows it. */
static void pauses_of_a_profiler_are_no_gaps(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    send_upload(&join, "shop", "cpu", NOTHING, HALF - 120 * SECOND);
    fixture_advance(&join.fixture, 60 * SECOND);
    send_upload(&join, "shop", "cpu", NOTHING, HALF - 60 * SECOND);
    fixture_advance(&join.fixture, 60 * SECOND);
    for (uint64_t i = 1; i < 6; i++) {
        send_upload(&join, "shop", "cpu", NOTHING, (i - 1) * 60 * SECOND + HALF);
        send_span_of(&join, "shop", SPAN + i, (i * 60 - 90) * SECOND, (i * 60 - 61) * SECOND);
        assert_int_equal(left(&join), i);
        fixture_advance(&join.fixture, 60 * SECOND);
    }
    fixture_deinit(&join.fixture);
}

/* Spans that ended after the uploads so far. */
static void send_flood(struct join *join, unsigned count)
{
    struct request request;
    traces_begin(&request, "shop");
    for (unsigned i = 0; i < count; i++)
        traces_span(&request, TRACE + 1, 1000 + i, WALL, WALL + 100 * SECOND, "flood");
    join_send(join, &request);
}

static void span_whose_totals_were_evicted_is_incomplete(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "max_spans: 100, spans: {wait: 20s}");
    send_upload(&join, "shop", "cpu", SPAN, HALF + 5 * SECOND);
    send_span(&join, "shop", SPAN, 14 * SECOND);
    send_flood(&join, 500);
    send_upload(&join, "shop", "cpu", SPAN, HALF + 15 * SECOND);
    assert_int_equal(left(&join), 1);
    expect_span(&join, 0, "30", "false");
    fixture_deinit(&join.fixture);
}

/* Samples that arrived before the span. */
static void span_whose_totals_were_evicted_before_it_is_incomplete(void **state)
{
    (void)state;
    for (unsigned waits = 0; waits < 2; waits++) {
        struct join join;
        join_init(&join, waits ? "max_spans: 100, spans: {wait: 20s}" : "max_spans: 100");
        send_upload(&join, "shop", "cpu", SPAN, HALF + 5 * SECOND);
        send_flood(&join, 500);
        fixture_advance(&join.fixture, 20 * SECOND);
        if (waits)
            send_span(&join, "shop", SPAN, 14 * SECOND);
        send_upload(&join, "shop", "cpu", SPAN, HALF + 15 * SECOND);
        if (!waits)
            send_span(&join, "shop", SPAN, 14 * SECOND);
        assert_int_equal(left(&join), 2);
        expect_span(&join, 1, "30", "false");
        fixture_deinit(&join.fixture);
    }
}

/* A part of an upload of 10 s: 10 ns of the span. */
static void send_part(struct join *join, uint64_t span, uint64_t end_ns, const char *content)
{
    struct request request;
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", "shop");
    profiles_resource_string(&request, "content", content);
    ProfileMessage *profile = profiles_profile(&request, "cpu", "nanoseconds");
    profile->time_unix_nano = WALL + end_ns - 10 * SECOND;
    profile->duration_nano = 10 * SECOND;
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, TRACE, span);
    sample_value(&request, sample, 10);
    join_send(join, &request);
}

static void span_waits_for_the_parts_of_an_upload(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "spans: {wait: 20s}");
    fixture_advance(&join.fixture, 30 * SECOND);
    send_part(&join, OTHER, 9 * SECOND + HALF, "1");
    send_part(&join, OTHER, 9 * SECOND + HALF, "2");
    send_span_of(&join, "shop", SPAN, 12 * SECOND, 13 * SECOND);
    for (unsigned i = 0; i < 3; i++) {
        send_part(&join, SPAN, 19 * SECOND + HALF, (const char *[]){"3", "4", "5"}[i]);
        assert_int_equal(left(&join), 0);
        fixture_advance(&join.fixture, SECOND);
    }
    fixture_advance(&join.fixture, SECOND);
    assert_int_equal(left(&join), 1);
    expect_span(&join, 0, "30", NULL);
    assert_int_equal(waited(&join, "covered"), 1);
    send_span_of(&join, "shop", SPAN + 2, 22 * SECOND, 23 * SECOND);
    send_part(&join, SPAN + 2, 29 * SECOND + HALF, "6");
    send_part(&join, OTHER, 39 * SECOND + HALF, "7"); /* a later upload begins */
    assert_int_equal(left(&join), 2);
    expect_span(&join, 1, "10", NULL);
    fixture_deinit(&join.fixture);
}

/* What splits the uploads of one process of a service splits those of the others. */
static void first_upload_of_another_process_may_have_parts(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, "spans: {wait: 20s}");
    send_part(&join, OTHER, 9 * SECOND + HALF, "1");
    send_part(&join, OTHER, 9 * SECOND + HALF, "2");
    for (unsigned i = 0; i < 2; i++) {
        profiles_begin(&request);
        profiles_resource_string(&request, "service.name", "shop");
        profiles_resource_string(&request, "service.instance.id", "new");
        profiles_resource_string(&request, "content", i == 0 ? "3" : "4");
        ProfileMessage *profile = profiles_profile(&request, "cpu", "nanoseconds");
        profile->time_unix_nano = WALL + HALF;
        SampleMessage *sample = profiles_sample(&request, 1);
        sample_link(&request, sample, TRACE, SPAN);
        sample_value(&request, sample, 10);
        join_send(&join, &request);
        if (i == 1)
            break;
        traces_begin(&request, "shop");
        traces_resource_string(&request, "service.instance.id", "new");
        traces_span(&request, TRACE, SPAN, WALL + SECOND, WALL + 2 * SECOND, "work");
        join_send(&join, &request);
        assert_int_equal(left(&join), 0);
    }
    fixture_advance(&join.fixture, 2 * SECOND);
    assert_int_equal(left(&join), 1);
    expect_span(&join, 0, "20", NULL);
    fixture_deinit(&join.fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_for_all_uploads),
        cmocka_unit_test(does_not_wait_when_covered),
        cmocka_unit_test(span_from_before_the_first_upload_is_incomplete),
        cmocka_unit_test(upload_without_samples_covers),
        cmocka_unit_test(rounded_end_covers_a_second_less),
        cmocka_unit_test(waits_for_each_of_two_replicas),
        cmocka_unit_test(end_in_the_future_is_a_time_that_is_the_end),
        cmocka_unit_test(upload_that_waits_covers_no_more_when_it_leaves),
        cmocka_unit_test(slow_upload_of_a_clock_that_is_ahead_covers_no_more),
        cmocka_unit_test(uploads_of_a_clock_that_is_ahead_leave_no_gaps),
        cmocka_unit_test(a_lead_moves_the_uploads_of_all_types),
        cmocka_unit_test(a_lead_moves_uploads_that_are_joined_by_thread),
        cmocka_unit_test(uploads_of_two_profilers_that_are_ahead_leave_no_gaps),
        cmocka_unit_test(times_at_the_limits),
        cmocka_unit_test(span_waits_for_an_upload_that_is_being_read),
        cmocka_unit_test(upload_in_a_replaced_component_completes_spans),
        cmocka_unit_test(span_in_a_new_component_wakes_uploads_of_the_old_one),
        cmocka_unit_test(each_sample_type_has_to_cover),
        cmocka_unit_test(first_uploads_of_another_type_do_not_cover),
        cmocka_unit_test(first_type_of_several_says_that_more_may_come),
        cmocka_unit_test(process_without_a_cpu_profiler_is_not_delayed),
        cmocka_unit_test(profiler_that_begins_anew_begins_with_any_type),
        cmocka_unit_test(wait_ends),
        cmocka_unit_test(span_that_passes_may_be_incomplete),
        cmocka_unit_test(span_with_samples_of_an_upload_that_waits_is_incomplete),
        cmocka_unit_test(unprofiled_service_is_not_delayed),
        cmocka_unit_test(service_that_is_profiled_no_more_is_not_delayed),
        cmocka_unit_test(nothing_waits_without_a_pipeline_of_profiles),
        cmocka_unit_test(samples_show_the_instance),
        cmocka_unit_test(shared_name_covers_what_it_names),
        cmocka_unit_test(span_waits_for_a_silent_sender_only_for_a_while),
        cmocka_unit_test(process_that_begins_is_waited_for_only_for_a_while),
        cmocka_unit_test(unprofiled_spans_wait_only_at_the_beginning),
        cmocka_unit_test(unprofiled_process_waits_only_at_its_beginning),
        cmocka_unit_test(span_of_a_lost_upload_is_incomplete),
        cmocka_unit_test(late_upload_completes_its_spans),
        cmocka_unit_test(first_upload_that_is_lost_counts),
        cmocka_unit_test(span_waits_for_all_late_uploads),
        cmocka_unit_test(span_that_passes_may_lack_an_upload),
        cmocka_unit_test(span_does_not_wait_for_what_is_forgotten),
        cmocka_unit_test(each_sample_type_has_its_gaps),
        cmocka_unit_test(pauses_of_a_profiler_are_no_gaps),
        cmocka_unit_test(span_whose_totals_were_evicted_is_incomplete),
        cmocka_unit_test(span_whose_totals_were_evicted_before_it_is_incomplete),
        cmocka_unit_test(span_waits_for_the_parts_of_an_upload),
        cmocka_unit_test(first_upload_of_another_process_may_have_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

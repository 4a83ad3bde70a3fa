/* Samples that name a local root go on to the child that was running then (docs/spanjoin.md, "From
 * the local root to its children"). */
#include "core/base/log.h"
#include "core/data/sample_threads.h"
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/spanjoin_fixture.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TRACE = 7, ROOT = 42, LOAD = 43, QUERY = 44, OTHER = 45 };
#define MS UINT64_C(1000000)

static const char children[] = "attribute_children: true, samples: {wait: 5s}";

/* Adds a span of "shop". Times are in milliseconds after WALL. parent 0: it is a local root. thread
 * 0: it names none. */
static void add_span(struct request *request, uint64_t span, uint64_t parent, uint64_t start,
                     uint64_t end, int64_t thread)
{
    char name[16];
    snprintf(name, sizeof name, "span%" PRIu64, span);
    SpanMessage *message =
        traces_span(request, TRACE, span, WALL + start * MS, WALL + end * MS, name);
    message->kind = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_INTERNAL;
    if (parent != 0)
        span_set_parent(request, message, parent);
    if (thread != 0)
        span_int(request, message, "thread.id", thread);
}

/* A root from 0 to 100 ms, LOAD from 20 to 80 ms, in it QUERY from 40 to 60 ms. */
static void send_spans(struct join *join)
{
    struct request request;
    traces_begin(&request, "shop");
    traces_resource_string(&request, "telemetry.sdk.language", "cpp");
    add_span(&request, QUERY, LOAD, 40, 60, 0);
    add_span(&request, LOAD, ROOT, 20, 80, 0);
    add_span(&request, ROOT, 0, 0, 100, 0);
    join_send(join, &request);
}

static void begin_upload(struct request *request)
{
    profiles_begin(request);
    profiles_profile(request, "cpu", "nanoseconds");
}

/* Adds a sample that names the span by a Link, with these times, each of which has the value that
 * follows it. */
static SampleMessage *add_sample(struct request *request, uint64_t span,
                                 const uint64_t *times_and_values, size_t count)
{
    SampleMessage *sample = profiles_sample(request, 1);
    if (span != 0)
        sample_link(request, sample, TRACE, span);
    for (size_t i = 0; i < count; i++) {
        sample_time(request, sample, WALL + times_and_values[2 * i] * MS);
        sample_value(request, sample, (int64_t)times_and_values[2 * i + 1]);
    }
    return sample;
}

static const uint64_t times[] = {10, 1, 30, 2, 50, 4, 70, 8, 90, 16};

/* Returns the samples of the last upload as "span: values; ...". */
static const char *uploaded(const struct join *join)
{
    static char text[512];
    struct request out;
    const struct recorder *recorder = &join->fixture.recorder;
    size_t n = recorder->count, size = 0;
    while (n-- > 0 && recorder->items[n].signal != SIGNAL_PROFILES)
        assert_true(n > 0);
    request_read_profiles(&out, slice_of(recorder->items[n].bytes, recorder->items[n].size));
    const ProfileMessage *profile = request_profile(&out, 0);
    assert_int_equal(recorder->items[n].items, profile->n_samples);
    text[0] = 0;
    for (size_t i = 0; i < profile->n_samples; i++) {
        const SampleMessage *sample = request_sample(&out, 0, i);
        const char *name = sample_attribute(&out, sample, "span_name");
        uint64_t trace = 0, span = 0;
        sample_read_link(&out, sample, &trace, &span);
        assert_true(sample->n_timestamps_unix_nano == 0 ||
                    sample->n_timestamps_unix_nano == sample->n_values);
        assert_null(sample_attribute(&out, sample, "span_id"));
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%s %" PRIu64 ":",
                                 i ? "; " : "", name ? name : "none", span);
        for (size_t k = 0; k < sample->n_values; k++)
            size +=
                (size_t)snprintf(text + size, sizeof text - size, " %" PRId64, sample->values[k]);
    }
    request_free(&out);
    return text;
}

static void a_sample_goes_on_to_the_child_that_ran(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, children);
    send_spans(&join);
    begin_upload(&request);
    add_sample(&request, ROOT, times, 5);
    add_sample(&request, ROOT, (const uint64_t[]){55, 32}, 1);
    add_sample(&request, LOAD, (const uint64_t[]){55, 64}, 1); /* not a local root */
    join_send(&join, &request);
    assert_string_equal(uploaded(&join), "span42 42: 1 16; span43 43: 2 8; span44 44: 4; "
                                         "span44 44: 32; span43 43: 64");
    fixture_deinit(&join.fixture);
}

/* The root is judged by all samples that named it, as its child is. */
static void a_root_is_kept_for_what_went_on(void **state)
{
    (void)state;
    static const char *const keeps[] = {"30ns", "31ns"};
    static const char *const expected[] = {"span42 42: 1 16; span43 43: 2 8; span44 44: 4",
                                           "span42 0: 1 16; span43 0: 2 8; span44 0: 4"};
    for (int i = 0; i < 2; i++) {
        struct join join;
        struct request request;
        char yaml[256];
        snprintf(yaml, sizeof yaml, "%s, keep: {span_detail_when: [{cpu_above: %s}]}", children,
                 keeps[i]);
        join_init(&join, yaml);
        send_spans(&join);
        begin_upload(&request);
        add_sample(&request, ROOT, times, 5); /* 31 ns */
        join_send(&join, &request);
        assert_string_equal(uploaded(&join), expected[i]);
        fixture_deinit(&join.fixture);
    }
}

static void without_the_setting_it_stays(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, "samples: {wait: 5s}");
    send_spans(&join);
    begin_upload(&request);
    add_sample(&request, ROOT, times, 5);
    join_send(&join, &request);
    assert_string_equal(uploaded(&join), "span42 42: 1 2 4 8 16");
    fixture_deinit(&join.fixture);
}

/* A sample that names the root by attributes loses them with its parts that go on. */
static void a_sample_with_attributes_goes_on(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, children);
    send_spans(&join);
    begin_upload(&request);
    SampleMessage *sample = add_sample(&request, 0, times, 5);
    sample_string(&request, sample, "span_id", span_hex(ROOT));
    sample_string(&request, sample, "span_name", "of the sender");
    join_send(&join, &request);
    assert_string_equal(uploaded(&join), "span42 42: 1 16; span43 43: 2 8; span44 44: 4");
    fixture_deinit(&join.fixture);
}

/* The upload label of a recording. */
static void ids_of_a_resource_are_removed(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    join_init(&join, children);
    send_spans(&join);
    begin_upload(&request);
    profiles_resource_string(&request, "span_id", span_hex(ROOT));
    add_sample(&request, 0, (const uint64_t[]){50, 4}, 1);
    join_send(&join, &request);
    assert_string_equal(uploaded(&join), "span44 44: 4");
    const struct recorded *last = &join.fixture.recorder.items[join.fixture.recorder.count - 1];
    request_read_profiles(&out, slice_of(last->bytes, last->size));
    assert_null(resource_attribute(&out, 0, "span_id"));
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* Siblings that ran at the same time: it is not known which one the sample is of, unless the thread
 * tells. */
static void overlapping_siblings_are_ambiguous(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, children);
    traces_begin(&request, "shop");
    traces_resource_string(&request, "telemetry.sdk.language", "cpp");
    add_span(&request, LOAD, ROOT, 20, 60, 1);
    add_span(&request, OTHER, ROOT, 40, 80, 2);
    add_span(&request, ROOT, 0, 0, 100, 1);
    join_send(&join, &request);
    begin_upload(&request);
    add_sample(&request, ROOT, times, 5);
    SampleMessage *sample = add_sample(&request, ROOT, times, 5);
    sample_int(&request, sample, "thread.id", 2);
    join_send(&join, &request);
    assert_string_equal(uploaded(&join), "span42 42: 1 4 16; span43 43: 2; span45 45: 8; "
                                         "span42 42: 1 2 16; span45 45: 4 8");
    fixture_deinit(&join.fixture);
}

static void a_sample_without_times_stays(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, children);
    send_spans(&join);
    begin_upload(&request);
    sample_value(&request, add_sample(&request, ROOT, NULL, 0), 5);
    SampleMessage *named = add_sample(&request, ROOT, NULL, 0);
    sample_string(&request, named, "span_name", "mine");
    sample_value(&request, named, 6);
    join_send(&join, &request);
    assert_string_equal(uploaded(&join), "span42 42: 5; mine 42: 6");
    fixture_deinit(&join.fixture);
}

/* It waits for the root; the children have arrived by then. */
static void a_sample_that_waits_goes_on(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, children);
    begin_upload(&request);
    add_sample(&request, ROOT, times, 5);
    join_send(&join, &request);
    send_spans(&join);
    fixture_advance(&join.fixture, 0);
    assert_string_equal(uploaded(&join), "span42 42: 1 16; span43 43: 2 8; span44 44: 4");
    fixture_deinit(&join.fixture);
}

/* The child has the totals of what went on to it; the root those of all samples that name it. */
static void totals_are_those_of_the_children_and_of_the_root(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    join_init(&join, children);
    send_spans(&join);
    begin_upload(&request);
    add_sample(&request, ROOT, times, 5);
    join_send(&join, &request);
    send_spans(&join);
    const struct recorded *last = &join.fixture.recorder.items[join.fixture.recorder.count - 1];
    request_read_traces(&out, slice_of(last->bytes, last->size));
    assert_string_equal(span_attribute(request_span(&out, 0), "profile.cpu_ns"), "4");
    assert_string_equal(span_attribute(request_span(&out, 1), "profile.cpu_ns"), "10");
    assert_string_equal(span_attribute(request_span(&out, 2), "profile.cpu_ns"), "31");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* What a span says of its samples. */
struct said {
    bool is_enriched;
    bool opens;      /* its profile */
    bool lacks_some; /* it may lack samples */
};

static struct said read_said(const SpanMessage *span)
{
    const char *complete = span_attribute(span, "profile.complete");
    return (struct said){.is_enriched = span_attribute(span, "profile.samples") != NULL,
                         .opens = span_attribute(span, "pyroscope.profile.id") != NULL,
                         .lacks_some = complete && strcmp(complete, "false") == 0};
}

static void put_span(struct join *join, uint64_t span, uint64_t parent, uint64_t start,
                     uint64_t end)
{
    struct request request;
    traces_begin(&request, "shop");
    traces_resource_string(&request, "telemetry.sdk.language", "cpp");
    add_span(&request, span, parent, start, end, 0);
    join_send(join, &request);
}

/* Returns what the first span of the last request says. */
static struct said last_said(const struct join *join)
{
    struct request out;
    const struct recorder *recorder = &join->fixture.recorder;
    const struct recorded *last = &recorder->items[recorder->count - 1];
    assert_int_equal(last->signal, SIGNAL_TRACES);
    request_read_traces(&out, slice_of(last->bytes, last->size));
    struct said said = read_said(request_span(&out, 0));
    request_free(&out);
    return said;
}

/* Sends a span, maybe again. Returns what it says. */
static struct said send_span(struct join *join, uint64_t span, uint64_t parent, uint64_t start,
                             uint64_t end)
{
    put_span(join, span, parent, start, end);
    return last_said(join);
}

/* Returns whether a span of send_spans, which has samples, opens its profile. */
static bool opens_again(struct join *join, uint64_t span, uint64_t parent, uint64_t start,
                        uint64_t end)
{
    struct said said = send_span(join, span, parent, start, end);
    assert_true(said.is_enriched);
    return said.opens;
}

static bool root_opens(struct join *join)
{
    return opens_again(join, ROOT, 0, 0, 100);
}

static void a_root_opens_what_stays_with_it(void **state)
{
    (void)state;
    static const char *const types[] = {"", ", spans: {profile_types: []}"};
    for (int i = 0; i < 2; i++) {
        struct join join;
        struct request request;
        char yaml[128];
        snprintf(yaml, sizeof yaml, "%s%s", children, types[i]);
        join_init(&join, yaml);
        send_spans(&join);
        begin_upload(&request);
        add_sample(&request, ROOT, times + 2, 3);
        join_send(&join, &request);
        assert_false(root_opens(&join));
        assert_true(opens_again(&join, LOAD, ROOT, 20, 80));
        assert_true(opens_again(&join, QUERY, LOAD, 40, 60));
        profiles_begin(&request); /* what stays is not shown */
        profiles_profile(&request, "wall", "nanoseconds");
        add_sample(&request, ROOT, (const uint64_t[]){90, 1}, 1);
        join_send(&join, &request);
        assert_int_equal(root_opens(&join), i == 1);
        begin_upload(&request);
        add_sample(&request, ROOT, times, 5);
        join_send(&join, &request);
        assert_true(root_opens(&join));
        fixture_deinit(&join.fixture);
    }
}

/* `keep` keeps the detail of the root, and not that of its children. Begins an upload. */
static void begin_with_kept_root(struct join *join, struct request *request)
{
    join_init(join, "attribute_children: true, keep: {span_detail_when: [{duration_above: 90ms}]}");
    send_spans(join);
    begin_upload(request);
}

/* Although its detail is kept. */
static void a_root_that_is_kept_opens_what_stays_with_it(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    begin_with_kept_root(&join, &request);
    add_sample(&request, ROOT, times + 2, 3);
    join_send(&join, &request);
    assert_false(root_opens(&join));
    assert_true(opens_again(&join, QUERY, LOAD, 40, 60));
    fixture_deinit(&join.fixture);
}

/* What goes on to a child keeps its detail if that of the root is kept. */
static void the_detail_of_a_slow_root_is_kept(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    begin_with_kept_root(&join, &request);
    add_sample(&request, ROOT, (const uint64_t[]){50, 4}, 1);
    add_sample(&request, OTHER, (const uint64_t[]){50, 4}, 1);
    join_send(&join, &request);
    fixture_advance(&join.fixture, 20 * SECOND);
    assert_string_equal(uploaded(&join), "span44 44: 4; none 45: 4");
    fixture_deinit(&join.fixture);
}

/* Samples that name the child themselves do not, if it is not worth it. */
static void samples_of_a_child_are_not_kept_for_its_root(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, "attribute_children: true, samples: {attributes: [{key: span_name, from: "
                     "span.name}, {key: root, from: root.name}]}, "
                     "keep: {span_detail_when: [{duration_above: 90ms}]}");
    send_spans(&join);
    begin_upload(&request);
    add_sample(&request, QUERY, (const uint64_t[]){51, 8}, 1);
    add_sample(&request, ROOT, (const uint64_t[]){50, 4}, 1);
    sample_string(&request, add_sample(&request, QUERY, (const uint64_t[]){52, 16}, 1), "a", "b");
    add_sample(&request, LOAD, (const uint64_t[]){30, 32}, 1);
    join_send(&join, &request);
    assert_string_equal(uploaded(&join), "span44 0: 8; span44 44: 4; span44 0: 16; span43 0: 32");
    fixture_deinit(&join.fixture);
}

static unsigned asked;

/* The sender gives up while the job runs. */
static bool gives_up_after_the_first(const struct receipt *receipt)
{
    (void)receipt;
    return asked++ > 0;
}

/* Returns whether QUERY, which has samples without detail, opens its profile. */
static bool query_opens(struct join *join)
{
    return opens_again(join, QUERY, LOAD, 40, 60);
}

/* The sender of a large request may give up while a job reads it. Then nothing of it is recorded,
 * nor that what goes on to a child has its detail. */
static void a_child_has_no_detail_of_a_request_that_is_dropped(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    struct probe probe;
    join_init(&join, "attribute_children: true, samples: {wait: 0s}, "
                     "keep: {span_detail_when: [{duration_above: 90ms}]}");
    send_spans(&join);
    begin_upload(&request);
    add_sample(&request, QUERY, (const uint64_t[]){51, 8}, 1);
    join_send(&join, &request);
    assert_false(query_opens(&join));
    begin_upload(&request);
    add_sample(&request, ROOT, (const uint64_t[]){50, 4}, 1);
    asked = 0;
    fixture_consume(&join.fixture, join.profiles->nodes[0], request_encode(&request), request.items,
                    &probe);
    bool is_large = probe.settled == 0;
    probe.receipt.is_abandoned = gives_up_after_the_first;
    fixture_advance(&join.fixture, 0);
    request_free(&request);
    assert_int_equal(probe.verdict.code, is_large ? verdict_sender_is_gone.code : GRPC_OK);
    assert_int_equal(query_opens(&join), !is_large);
    fixture_deinit(&join.fixture);
}

/* A child is judged by what went on to it and by what named it, whether the request waited or not.
 */
static void a_child_is_kept_for_all_of_its_samples(void **state)
{
    static const char *const keeps[] = {"35ns", "36ns"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        char yaml[256];
        struct join join;
        struct request request;
        snprintf(yaml, sizeof yaml, "%s, keep: {span_detail_when: [{cpu_above: %s}]}", children,
                 keeps[i % 2]);
        join_init(&join, yaml);
        send_spans(&join);
        begin_upload(&request);
        add_sample(&request, QUERY, (const uint64_t[]){51, 20}, 1);
        add_sample(&request, ROOT, (const uint64_t[]){50, 16}, 1);
        if (i >= 2) /* it waits for this one */
            add_sample(&request, OTHER, (const uint64_t[]){50, 4}, 1);
        join_send(&join, &request);
        fixture_advance(&join.fixture, 5 * SECOND);
        const char *rest = i >= 2 ? "; none 45: 4" : "";
        char wanted[64];
        snprintf(wanted, sizeof wanted,
                 i % 2 ? "span44 0: 20 16%s" : "span44 44: 20; span44 44: 16%s", rest);
        assert_string_equal(uploaded(&join), wanted);
        fixture_deinit(&join.fixture);
    }
}

/* ---- recordings: the reader has added threads and times, which the join removes ---- */

/* Adds a sample that names a span by its id only, as recordings do. */
static SampleMessage *add_recorded(struct request *request, uint64_t span, int64_t thread,
                                   const uint64_t *times_and_values, size_t count)
{
    SampleMessage *sample = add_sample(request, 0, times_and_values, count);
    sample_link(request, sample, 0, span);
    sample_int(request, sample, SAMPLE_THREAD_RUNTIME_ID, thread);
    sample_string(request, sample, SAMPLE_THREAD_NAME, "worker");
    return sample;
}

static void send_recording(struct join *join)
{
    struct request request;
    begin_upload(&request);
    add_recorded(&request, ROOT, 31, times, 5);
    add_recorded(&request, ROOT, 32, (const uint64_t[]){50, 32, 95, 64}, 2);
    join_send(join, &request);
}

static double value_of(const struct join *join, const char *name)
{
    return metrics_value(join->fixture.process.metrics, name, "spanjoin=\"spanjoin\"");
}

/* Expects the number of samples and the CPU time that a span says. */
static void expect_cost(const struct request *traces, size_t i, const char *samples,
                        const char *cpu_ns)
{
    assert_string_equal(span_attribute(request_span(traces, i), "profile.samples"), samples);
    assert_string_equal(span_attribute(request_span(traces, i), "profile.cpu_ns"), cpu_ns);
}

/* Without the times, the samples of both threads are equal again. */
static void recorded_samples_go_on_and_become_sums(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    join_init(&join, children);
    send_spans(&join);
    send_recording(&join);
    assert_string_equal(uploaded(&join), "span42 42: 81; span43 43: 10; span44 44: 36");
    assert_int_equal(value_of(&join, "profcol_spanjoin_samples_to_children"), 3);
    assert_int_equal(value_of(&join, "profcol_spanjoin_samples_joined"), 5);
    send_spans(&join);
    const struct recorded *last = &join.fixture.recorder.items[join.fixture.recorder.count - 1];
    request_read_traces(&out, slice_of(last->bytes, last->size));
    expect_cost(&out, 0, "2", "36");
    expect_cost(&out, 1, "2", "10");
    expect_cost(&out, 2, "7", "127");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* A reload may have turned it off while the recording was read. */
static void without_the_setting_they_become_sums(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "samples: {wait: 5s}");
    send_spans(&join);
    send_recording(&join);
    assert_string_equal(uploaded(&join), "span42 42: 127");
    fixture_deinit(&join.fixture);
}

/* Begins an upload of 10 s, from a half second on. */
static void begin_upload_of(struct request *request, uint64_t begin_s)
{
    profiles_begin(request);
    profiles_resource_string(request, "service.name", "shop");
    ProfileMessage *profile = profiles_profile(request, "cpu", "nanoseconds");
    profile->time_unix_nano = WALL + begin_s * SECOND + SECOND / 2;
    profile->duration_nano = 10 * SECOND;
}

/* Sends such an upload with a sample of a span. */
static void send_upload(struct join *join, uint64_t begin_s, uint64_t span, uint64_t at_ms)
{
    struct request request;
    begin_upload_of(&request, begin_s);
    add_recorded(&request, span, 31, (const uint64_t[]){at_ms, 1}, 1);
    join_send(join, &request);
}

static size_t count_traces(const struct join *join)
{
    size_t count = 0;
    for (size_t i = 0; i < join->fixture.recorder.count; i++)
        count += join->fixture.recorder.items[i].signal == SIGNAL_TRACES;
    return count;
}

/* Uploads whose samples go on cover the spans of their time, and so do those after them. */
static void uploads_whose_samples_go_on_cover_spans(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, "attribute_children: true, samples: {wait: 0s}, spans: {wait: 20s}");
    send_upload(&join, 0, ROOT, 50);
    traces_begin(&request, "shop");
    add_span(&request, LOAD, ROOT, 11000, 12000, 31);
    add_span(&request, ROOT, 0, 10600, 13000, 31);
    join_send(&join, &request);
    assert_int_equal(count_traces(&join), 0);
    send_upload(&join, 10, ROOT, 11500);
    assert_int_equal(count_traces(&join), 1);
    traces_begin(&request, "shop");
    add_span(&request, QUERY, 0, 21000, 22000, 31);
    join_send(&join, &request);
    assert_int_equal(count_traces(&join), 1);
    send_upload(&join, 20, QUERY, 21500);
    assert_int_equal(count_traces(&join), 2);
    fixture_deinit(&join.fixture);
}

/* Samples of the root from 1100 to 1900 ms leave, and others that their spans name. */
static void send_named(struct join *join)
{
    struct request request;
    begin_upload_of(&request, 0);
    add_sample(&request, ROOT, (const uint64_t[]){1100, 1, 1500, 2, 1900, 4}, 3);
    add_sample(&request, LOAD, (const uint64_t[]){1300, 8}, 1);
    add_sample(&request, QUERY, (const uint64_t[]){1300, 8}, 1);
    add_sample(&request, OTHER, (const uint64_t[]){1300, 8}, 1);
    join_send(join, &request);
}

/* Says whether a span may lack samples. */
static bool lacks_some(struct join *join, uint64_t span, uint64_t parent, uint64_t start,
                       uint64_t end)
{
    struct said said = send_span(join, span, parent, start, end);
    assert_true(said.is_enriched);
    return said.lacks_some;
}

static void a_child_that_arrives_late_says_that_it_lacks_samples(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "attribute_children: true, samples: {wait: 0s}");
    send_span(&join, ROOT, 0, 1000, 3000);
    send_span(&join, OTHER, ROOT, 1200, 1300);
    send_named(&join);
    assert_true(lacks_some(&join, LOAD, ROOT, 1400, 1600));
    assert_false(lacks_some(&join, QUERY, ROOT, 1901, 2000)); /* they were taken before it */
    assert_false(lacks_some(&join, OTHER, ROOT, 1200, 1300));
    assert_false(lacks_some(&join, ROOT, 0, 1000, 3000));
    fixture_deinit(&join.fixture);
}

static void the_first_child_of_a_root_says_that_it_may_lack_samples(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "attribute_children: true, samples: {wait: 0s}");
    send_span(&join, ROOT, 0, 1000, 3000);
    send_named(&join);
    assert_true(lacks_some(&join, LOAD, ROOT, 2000, 2100));
    fixture_deinit(&join.fixture);
}

/* Its samples may have left, or not, even if the request has a resource without profiles, or its
 * begin is not known. */
static void a_first_child_lacks_samples_of_its_time(void **state)
{
    (void)state;
    static const struct {
        bool with_empty, with_duration;
        uint64_t at_ms;
        bool lacks;
    } cases[] = {{false, true, 5000, false},
                 {true, true, 5000, false},
                 {false, true, 15000, true},
                 {true, true, 15000, true},
                 {false, false, 5000, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct join join;
        struct request request;
        join_init(&join, "attribute_children: true, samples: {wait: 0s}");
        send_upload(&join, 0, OTHER, 600);
        send_span(&join, ROOT, 0, 1000, 30000);
        begin_upload_of(&request, 10);
        if (!cases[i].with_duration)
            request_profile(&request, 0)->duration_nano = 0;
        add_sample(&request, ROOT, (const uint64_t[]){11000, 1}, 1);
        add_sample(&request, LOAD, (const uint64_t[]){11000, 8}, 1);
        if (cases[i].with_empty)
            profiles_resource(&request);
        join_send(&join, &request);
        uint64_t at_ms = cases[i].at_ms;
        if (lacks_some(&join, LOAD, ROOT, at_ms, at_ms + 100) != cases[i].lacks)
            fail_msg("%zu", i);
        fixture_deinit(&join.fixture);
    }
}

static void a_span_says_that_it_has_samples_of_a_late_child(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "attribute_children: true, samples: {wait: 0s}");
    send_span(&join, ROOT, 0, 1000, 3000);
    send_span(&join, LOAD, ROOT, 1400, 1600);
    send_named(&join);
    assert_false(lacks_some(&join, LOAD, ROOT, 1400, 1600));
    send_span(&join, OTHER, LOAD, 1450, 1550);
    assert_true(lacks_some(&join, LOAD, ROOT, 1400, 1600));
    fixture_deinit(&join.fixture);
}

/* A root that lasts longer than its samples wait. */
static void children_of_a_root_that_arrives_late_say_that_they_lack_samples(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "attribute_children: true, samples: {wait: 0s}");
    send_span(&join, LOAD, ROOT, 1200, 2000);
    send_span(&join, OTHER, 0, 1200, 2000);
    send_named(&join);
    assert_true(lacks_some(&join, LOAD, ROOT, 1200, 2000)); /* the root is not known */
    assert_false(lacks_some(&join, OTHER, 0, 1200, 2000));
    assert_false(lacks_some(&join, ROOT, 0, 1000, 5000));
    assert_true(lacks_some(&join, LOAD, ROOT, 1200, 2000));
    fixture_deinit(&join.fixture);
}

/* The child waits for the upload, and the upload for the root. */
static void a_child_that_waits_knows_that_its_root_is_late(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "attribute_children: true, samples: {wait: 5s}, spans: {wait: 20s}");
    put_span(&join, LOAD, ROOT, 1200, 2000);
    send_named(&join);
    fixture_advance(&join.fixture, 4 * SECOND);
    assert_int_equal(join.fixture.recorder.count, 0);
    fixture_advance(&join.fixture, 2 * SECOND);
    assert_int_equal(count_traces(&join), 1);
    assert_true(last_said(&join).is_enriched && last_said(&join).lacks_some);
    fixture_deinit(&join.fixture);
}

/* Samples that name no unknown span show that the root's have not left. */
static void children_lack_nothing_while_all_samples_are_joined(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, "attribute_children: true, samples: {wait: 0s}");
    send_span(&join, LOAD, ROOT, 1200, 2000);
    begin_upload_of(&request, 0);
    add_sample(&request, LOAD, (const uint64_t[]){1300, 8}, 1);
    join_send(&join, &request);
    assert_false(lacks_some(&join, LOAD, ROOT, 1200, 2000));
    send_upload(&join, 10, ROOT, 11000);
    assert_false(lacks_some(&join, LOAD, ROOT, 1200, 2000));
    fixture_deinit(&join.fixture);
}

static void recorded_samples_are_kept_or_folded(void **state)
{
    (void)state;
    static const char *const keeps[] = {"126ns", "127ns"};
    static const char *const expected[] = {"span42 42: 81; span43 43: 10; span44 44: 36",
                                           "span42 0: 81; span43 0: 10; span44 0: 36"};
    for (int i = 0; i < 2; i++) {
        struct join join;
        char yaml[256];
        snprintf(yaml, sizeof yaml, "%s, keep: {span_detail_when: [{cpu_above: %s}]}", children,
                 keeps[i]);
        join_init(&join, yaml);
        send_spans(&join);
        send_recording(&join);
        assert_string_equal(uploaded(&join), expected[i]);
        fixture_deinit(&join.fixture);
    }
}

static void the_thread_of_a_recording_chooses_the_sibling(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, children);
    traces_begin(&request, "shop");
    traces_resource_string(&request, "telemetry.sdk.language", "java");
    add_span(&request, LOAD, ROOT, 20, 60, 31);
    add_span(&request, OTHER, ROOT, 40, 80, 32);
    add_span(&request, ROOT, 0, 0, 100, 31);
    join_send(&join, &request);
    begin_upload(&request);
    add_recorded(&request, ROOT, 32, times, 5);
    join_send(&join, &request);
    assert_string_equal(uploaded(&join), "span42 42: 19; span45 45: 12");
    fixture_deinit(&join.fixture);
}

/* Without a trace id, a time would be looked up apart. Those that were added are too many. */
static void recorded_times_are_not_looked_up(void **state)
{
    (void)state;
    struct join join;
    struct text metrics = {0};
    join_init(&join, children);
    send_spans(&join);
    send_recording(&join);
    metrics_write(join.fixture.process.metrics, 0, &metrics);
    assert_non_null(strstr(text_string(&metrics),
                           "profcol_spanjoin_lag_seconds_count{spanjoin=\"spanjoin\"} 1\n"));
    text_deinit(&metrics);
    fixture_deinit(&join.fixture);
}

/* ---- random trees, against a model ---- */

enum { MODEL_SPANS = 7, MODEL_SAMPLES = 5, MODEL_TIMES = 4, MODEL_RUNS = 1500 };

struct model_span {
    unsigned parent; /* 0: a local root; the id of a span is its index + 1 */
    uint64_t start;
    uint64_t end;
    int64_t thread; /* 0: none */
    bool is_late;   /* it arrives when the samples have left */
};
struct model_sample {
    unsigned span;
    int64_t thread;
    bool is_label; /* an attribute names the span, not a Link */
    bool has_sum;  /* one value for all times */
    uint64_t times[MODEL_TIMES];
    unsigned count;
};
struct model {
    uint64_t random;
    bool knows_late;                          /* answers are those with all spans */
    bool is_recording;                        /* times and threads were added, and are removed */
    struct model_span spans[MODEL_SPANS + 1]; /* by id */
    struct model_sample samples[MODEL_SAMPLES];
};

static uint64_t next_random(struct model *model, uint64_t below)
{
    model->random = model->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (model->random >> 33) % below;
}

static void make_model(struct model *model, uint64_t seed)
{
    *model = (struct model){.random = seed};
    bool has_threads = next_random(model, 2);
    model->is_recording = next_random(model, 2);
    for (unsigned id = 1; id <= MODEL_SPANS; id++) {
        uint64_t start = next_random(model, 80);
        model->spans[id] = (struct model_span){
            .parent = id <= 1 + seed % 2 ? 0 : 1 + (unsigned)next_random(model, id - 1),
            .start = start,
            .end = start + 1 + next_random(model, 60),
            .thread = has_threads ? (int64_t)next_random(model, 3) : 0};
    }
    for (unsigned i = 0; i < MODEL_SAMPLES; i++) {
        struct model_sample *sample = &model->samples[i];
        *sample = (struct model_sample){.span = 1 + (unsigned)next_random(model, 3),
                                        .thread = has_threads ? (int64_t)next_random(model, 3) : 0,
                                        .is_label = next_random(model, 2),
                                        .has_sum = next_random(model, 4) == 0,
                                        .count = 1 + (unsigned)next_random(model, MODEL_TIMES)};
        for (unsigned k = 0; k < sample->count; k++)
            sample->times[k] = next_random(model, 140);
    }
}

static bool model_knows(const struct model *model, unsigned id)
{
    return model->knows_late || !model->spans[id].is_late;
}

static bool model_is_above(const struct model *model, unsigned upper, unsigned lower)
{
    unsigned id = model->spans[lower].parent;
    while (id != 0 && id != upper && model_knows(model, id))
        id = model->spans[id].parent;
    return id != 0 && id == upper;
}

/* Returns the span of a sample at a time. */
static unsigned model_answer(const struct model *model, const struct model_sample *sample,
                             uint64_t time)
{
    unsigned running[MODEL_SPANS], count = 0, innermost = sample->span;
    if (model->spans[sample->span].parent != 0 || !model_knows(model, sample->span))
        return sample->span;
    for (unsigned id = 1; id <= MODEL_SPANS; id++) {
        const struct model_span *span = &model->spans[id];
        bool is_elsewhere = span->thread && sample->thread && span->thread != sample->thread;
        if (model_knows(model, id) && model_is_above(model, sample->span, id) &&
            span->start <= time && time < span->end && !is_elsewhere)
            running[count++] = id;
    }
    for (unsigned i = 0; i < count; i++) {
        for (unsigned k = 0; k < i; k++)
            if (!model_is_above(model, running[i], running[k]) &&
                !model_is_above(model, running[k], running[i]))
                return sample->span;
        if (innermost == sample->span || model_is_above(model, innermost, running[i]))
            innermost = running[i];
    }
    return innermost;
}

/* A sample that cannot be split goes on as a whole, or stays. */
static unsigned model_span_at(const struct model *model, const struct model_sample *sample,
                              unsigned k)
{
    unsigned span = model_answer(model, sample, sample->times[k]);
    for (unsigned i = 0; sample->has_sum && sample->count > 1 && i < sample->count; i++)
        if (model_answer(model, sample, sample->times[i]) != span)
            return sample->span;
    return span;
}

/* Sends all spans that are late, or not. */
static void send_some_spans(struct join *join, const struct model *model, bool are_late)
{
    struct request request;
    traces_begin(&request, "shop");
    traces_resource_string(&request, "telemetry.sdk.language",
                           model->is_recording ? "java" : "cpp");
    for (unsigned id = MODEL_SPANS; id > 0; id--)
        if (model->spans[id].is_late == are_late)
            add_span(&request, id, model->spans[id].parent, model->spans[id].start,
                     model->spans[id].end, model->spans[id].thread);
    join_send(join, &request);
}

static void send_model_spans(struct join *join, const struct model *model)
{
    send_some_spans(join, model, false);
}

/* The value at a time tells which one it is: 10 times the sample, and the place of the time. */
static void send_model_samples(struct join *join, const struct model *model)
{
    struct request request;
    begin_upload(&request);
    profiles_resource_string(&request, "service.name", "shop");
    request_profile(&request, 0)->time_unix_nano = WALL - 5 * SECOND / 2;
    request_profile(&request, 0)->duration_nano = 10 * SECOND;
    for (unsigned i = 0; i < MODEL_SAMPLES; i++) {
        const struct model_sample *sample = &model->samples[i];
        SampleMessage *message = profiles_sample(&request, (int32_t)i);
        if (sample->is_label)
            sample_string(&request, message, "span_id", span_hex(sample->span));
        else
            sample_link(&request, message, TRACE, sample->span);
        if (model->is_recording)
            sample_string(&request, message, SAMPLE_THREAD_NAME, "worker");
        if (sample->thread)
            sample_int(&request, message,
                       model->is_recording ? SAMPLE_THREAD_RUNTIME_ID : "thread.id",
                       sample->thread);
        for (unsigned k = 0; k < sample->count; k++)
            sample_time(&request, message, WALL + sample->times[k] * MS);
        for (unsigned k = 0; k < (sample->has_sum ? 1 : sample->count); k++)
            sample_value(&request, message, 10 * i + k + 1);
    }
    join_send(join, &request);
}

/* Returns the sum of the values of a sample whose times belong to a span, as the model says. */
static int64_t model_sum(const struct model *model, unsigned i, uint64_t span)
{
    const struct model_sample *sample = &model->samples[i];
    int64_t sum = 0;
    for (unsigned k = 0; k < (sample->has_sum ? 1 : sample->count); k++)
        sum += model_span_at(model, sample, k) == span ? 10 * (int64_t)i + k + 1 : 0;
    return sum;
}

/* What is of one span leaves as one sample, with the sum of its values. */
static void check_sums(const struct request *out, const struct model *model)
{
    bool is_seen[MODEL_SAMPLES][MODEL_SPANS + 1] = {{false}};
    for (size_t i = 0; i < request_profile(out, 0)->n_samples; i++) {
        SampleMessage *message = request_sample(out, 0, i);
        unsigned number = (unsigned)message->stack_index;
        uint64_t trace, span = 0;
        sample_read_link(out, message, &trace, &span);
        assert_in_range(span, 1, MODEL_SPANS);
        assert_false(is_seen[number][span]);
        is_seen[number][span] = true;
        assert_null(sample_attribute(out, message, SAMPLE_THREAD_NAME));
        assert_int_equal(message->n_timestamps_unix_nano, 0);
        assert_int_equal(message->n_values, 1);
        assert_int_equal(message->values[0], model_sum(model, number, span));
    }
    for (unsigned i = 0; i < MODEL_SAMPLES; i++)
        for (unsigned k = 0; k < model->samples[i].count; k++)
            assert_true(is_seen[i][model_span_at(model, &model->samples[i], k)]);
}

/* Each time leaves once, with its value, in a sample of the span that the model says. */
static void check_times(const struct request *out, const struct model *model)
{
    unsigned seen = 0, expected = 0;
    for (size_t i = 0; i < request_profile(out, 0)->n_samples; i++) {
        SampleMessage *message = request_sample(out, 0, i);
        const struct model_sample *sample = &model->samples[message->stack_index];
        uint64_t trace, span = 0;
        sample_read_link(out, message, &trace, &span);
        assert_null(sample_attribute(out, message, "span_id"));
        for (size_t k = 0; k < message->n_timestamps_unix_nano; k++, seen++) {
            int64_t value = message->values[sample->has_sum ? 0 : k] - 1;
            unsigned place = sample->has_sum ? (unsigned)k : (unsigned)value % 10;
            assert_int_equal(value / 10, message->stack_index);
            assert_int_equal(message->timestamps_unix_nano[k], WALL + sample->times[place] * MS);
            assert_int_equal(span, model_span_at(model, sample, place));
        }
    }
    for (unsigned i = 0; i < MODEL_SAMPLES; i++)
        expected += model->samples[i].count;
    assert_int_equal(seen, expected);
}

static void check_model(const struct join *join, const struct model *model)
{
    struct request out;
    const struct recorder *recorder = &join->fixture.recorder;
    size_t n = recorder->count;
    while (recorder->items[--n].signal != SIGNAL_PROFILES)
        assert_true(n > 0);
    request_read_profiles(&out, slice_of(recorder->items[n].bytes, recorder->items[n].size));
    (model->is_recording ? check_sums : check_times)(&out, model);
    request_free(&out);
}

/* Whether a time of a sample is of this span. */
static bool model_has_samples(const struct model *model, unsigned id)
{
    for (unsigned i = 0; i < MODEL_SAMPLES; i++)
        for (unsigned k = 0; k < model->samples[i].count; k++)
            if (model_span_at(model, &model->samples[i], k) == id)
                return true;
    return false;
}

/* Sends all spans again, and reads what each of them says. */
static void read_all_said(struct join *join, const struct model *model,
                          struct said said_out[MODEL_SPANS + 1])
{
    struct request out;
    struct model all = *model;
    const struct recorder *recorder = &join->fixture.recorder;
    for (unsigned id = 1; id <= MODEL_SPANS; id++)
        all.spans[id].is_late = false;
    send_model_spans(join, &all);
    fixture_advance(&join->fixture, 0);
    const struct recorded *last = &recorder->items[recorder->count - 1];
    assert_int_equal(last->signal, SIGNAL_TRACES);
    request_read_traces(&out, slice_of(last->bytes, last->size));
    for (unsigned id = 1; id <= MODEL_SPANS; id++)
        said_out[id] = read_said(request_span(&out, MODEL_SPANS - id));
    request_free(&out);
}

/* Spans that arrive again open a profile exactly if samples left with them. */
static void check_profile_ids(struct join *join, const struct model *model)
{
    struct said said[MODEL_SPANS + 1];
    read_all_said(join, model, said);
    for (unsigned id = 1; id <= MODEL_SPANS; id++)
        assert_int_equal(said[id].opens, model_has_samples(model, id));
}

static void random_trees_are_as_the_model_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= MODEL_RUNS; seed++) {
        struct join join;
        struct model model;
        bool spans_first = seed % 3 > 0;
        make_model(&model, seed);
        join_init(&join, "attribute_children: true, samples: {wait: 5s, by_thread: false}");
        if (spans_first)
            send_model_spans(&join, &model);
        send_model_samples(&join, &model);
        if (!spans_first)
            send_model_spans(&join, &model);
        fixture_advance(&join.fixture, 6 * SECOND);
        check_model(&join, &model);
        check_profile_ids(&join, &model);
        fixture_deinit(&join.fixture);
    }
}

/* Some spans arrive when the samples have left. No span begins before its parent. */
static void make_late_model(struct model *model, uint64_t seed)
{
    make_model(model, seed);
    model->spans[1].is_late = next_random(model, 4) == 0;
    for (unsigned id = 2; id <= MODEL_SPANS; id++) {
        struct model_span *span = &model->spans[id];
        uint64_t earliest = model->spans[span->parent].start;
        span->is_late = next_random(model, 3) == 0;
        if (span->start < earliest)
            *span = (struct model_span){span->parent, earliest, earliest + span->end - span->start,
                                        span->thread, span->is_late};
    }
}

/* Whether a span would have other samples if all spans had arrived before. */
static bool model_lacks(struct model *model, unsigned id)
{
    bool differs = false;
    for (unsigned i = 0; i < MODEL_SAMPLES; i++)
        for (unsigned k = 0; k < model->samples[i].count; k++) {
            model->knows_late = false;
            bool had = model_span_at(model, &model->samples[i], k) == id;
            model->knows_late = true;
            differs |= had != (model_span_at(model, &model->samples[i], k) == id);
        }
    return model->spans[id].parent != 0 && differs;
}

/* Those that have other samples than if all had arrived before say so; without late ones, nobody
 * does. */
static void check_lacks(struct join *join, struct model *model)
{
    struct said said[MODEL_SPANS + 1];
    bool any_late = false;
    read_all_said(join, model, said);
    for (unsigned id = 1; id <= MODEL_SPANS; id++)
        any_late |= model->spans[id].is_late;
    for (unsigned id = 1; id <= MODEL_SPANS; id++) {
        assert_true(said[id].lacks_some || !said[id].is_enriched || !model_lacks(model, id));
        assert_true(!said[id].lacks_some || (any_late && model->spans[id].parent != 0));
    }
}

static void spans_that_may_lack_samples_say_so(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= MODEL_RUNS; seed++) {
        struct join join;
        struct model model;
        make_late_model(&model, seed);
        join_init(&join, "attribute_children: true, samples: {wait: 5s, by_thread: false}");
        send_some_spans(&join, &model, false);
        send_model_samples(&join, &model);
        fixture_advance(&join.fixture, 6 * SECOND);
        send_some_spans(&join, &model, true);
        check_lacks(&join, &model);
        fixture_deinit(&join.fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_trees_are_as_the_model_says),
        cmocka_unit_test(spans_that_may_lack_samples_say_so),
        cmocka_unit_test(a_sample_goes_on_to_the_child_that_ran),
        cmocka_unit_test(a_root_is_kept_for_what_went_on),
        cmocka_unit_test(without_the_setting_it_stays),
        cmocka_unit_test(a_sample_with_attributes_goes_on),
        cmocka_unit_test(ids_of_a_resource_are_removed),
        cmocka_unit_test(overlapping_siblings_are_ambiguous),
        cmocka_unit_test(a_sample_without_times_stays),
        cmocka_unit_test(a_sample_that_waits_goes_on),
        cmocka_unit_test(totals_are_those_of_the_children_and_of_the_root),
        cmocka_unit_test(a_root_opens_what_stays_with_it),
        cmocka_unit_test(a_root_that_is_kept_opens_what_stays_with_it),
        cmocka_unit_test(the_detail_of_a_slow_root_is_kept),
        cmocka_unit_test(samples_of_a_child_are_not_kept_for_its_root),
        cmocka_unit_test(a_child_has_no_detail_of_a_request_that_is_dropped),
        cmocka_unit_test(a_child_is_kept_for_all_of_its_samples),
        cmocka_unit_test(recorded_samples_go_on_and_become_sums),
        cmocka_unit_test(without_the_setting_they_become_sums),
        cmocka_unit_test(uploads_whose_samples_go_on_cover_spans),
        cmocka_unit_test(a_child_that_arrives_late_says_that_it_lacks_samples),
        cmocka_unit_test(the_first_child_of_a_root_says_that_it_may_lack_samples),
        cmocka_unit_test(a_first_child_lacks_samples_of_its_time),
        cmocka_unit_test(a_span_says_that_it_has_samples_of_a_late_child),
        cmocka_unit_test(children_of_a_root_that_arrives_late_say_that_they_lack_samples),
        cmocka_unit_test(a_child_that_waits_knows_that_its_root_is_late),
        cmocka_unit_test(children_lack_nothing_while_all_samples_are_joined),
        cmocka_unit_test(recorded_samples_are_kept_or_folded),
        cmocka_unit_test(the_thread_of_a_recording_chooses_the_sibling),
        cmocka_unit_test(recorded_times_are_not_looked_up),
    };
    log_init(LOG_ERROR + 1, LOG_CONSOLE);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    spanjoin_set_large_bytes(0); /* jobs process each request */
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}

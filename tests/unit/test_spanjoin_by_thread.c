/* Samples that name no span are joined by their thread and time (docs/spanjoin.md, "By thread and
 * time"). */
#include "core/data/sample_threads.h"
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/spanjoin_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TRACE = 7, FIRST = 42, SECOND_SPAN = 43, CHILD = 44, THREAD = 31 };
#define MS UINT64_C(1000000)

/* A span of "shop". Times are in milliseconds after WALL. */
static void add_span(struct request *request, uint64_t trace, uint64_t span, uint64_t start,
                     uint64_t end)
{
    SpanMessage *message =
        traces_span(request, trace, span, WALL + start * MS, WALL + end * MS, "work");
    span_int(request, message, "thread.id", THREAD);
    span_string(request, message, "thread.name", "worker");
}

static void send_span(struct join *join, uint64_t trace, uint64_t span, uint64_t start,
                      uint64_t end)
{
    struct request request;
    traces_begin(&request, "shop");
    traces_resource_string(&request, "telemetry.sdk.language", "cpp");
    add_span(&request, trace, span, start, end);
    join_send(join, &request);
}

static void begin_upload(struct request *request, const char *service)
{
    profiles_begin(request);
    profiles_resource_string(request, "service.name", service);
    ProfileMessage *profile = profiles_profile(request, "cpu", "nanoseconds");
    profile->time_unix_nano = WALL;
    profile->duration_nano = 10 * SECOND + 1;
}

/* Adds a sample of the thread with these times, each of which has the value that follows it. */
static SampleMessage *add_sample(struct request *request, const uint64_t *times_and_values,
                                 size_t count)
{
    SampleMessage *sample = profiles_sample(request, 1);
    sample_int(request, sample, "thread.id", THREAD);
    sample_string(request, sample, "thread.name", "worker");
    for (size_t i = 0; i < count; i++) {
        sample_time(request, sample, WALL + times_and_values[2 * i] * MS);
        if (times_and_values[2 * i + 1] > 0)
            sample_value(request, sample, (int64_t)times_and_values[2 * i + 1]);
    }
    return sample;
}

static void send_sample(struct join *join, const char *service, uint64_t time, uint64_t value)
{
    struct request request;
    begin_upload(&request, service);
    add_sample(&request, (const uint64_t[]){time, value}, 1);
    join_send(join, &request);
}

/* Returns how many requests of a signal have left. */
static unsigned left(struct join *join, enum signal signal)
{
    unsigned count = 0;
    for (size_t i = 0; i < join->fixture.recorder.count; i++)
        count += join->fixture.recorder.items[i].signal == signal;
    return count;
}

static void read_last(struct join *join, enum signal signal, struct request *out)
{
    size_t i = join->fixture.recorder.count;
    while (i-- > 0 && join->fixture.recorder.items[i].signal != signal)
        assert_true(i > 0);
    struct slice bytes =
        slice_of(join->fixture.recorder.items[i].bytes, join->fixture.recorder.items[i].size);
    if (signal == SIGNAL_TRACES)
        request_read_traces(out, bytes);
    else
        request_read_profiles(out, bytes);
}

/* Checks the span, the name of the span, and the values of a sample of the last upload. span 0: it
 * has none. */
static void expect_sample(const struct request *out, size_t i, uint64_t span, const int64_t *values,
                          size_t count)
{
    SampleMessage *sample = request_sample(out, 0, i);
    uint64_t trace_id, span_id = 0;
    sample_read_link(out, sample, &trace_id, &span_id);
    assert_int_equal(span_id, span);
    const char *name = sample_attribute(out, sample, "span_name");
    assert_string_equal(name ? name : "none", span ? "work" : "none");
    assert_string_equal(sample_attribute(out, sample, "thread.name"), "worker");
    assert_int_equal(sample->n_values, count);
    assert_int_equal(sample->n_timestamps_unix_nano, count ? count : 1);
    for (size_t k = 0; k < count; k++)
        assert_int_equal(sample->values[k], values[k]);
}

/* Samples have ids of the operating system. Spans of Python have those, too, or an address. */
static void ids_are_of_the_same_kind(void **state)
{
    static const struct {
        const char *spans;
        int64_t id;
        uint64_t joined;
    } cases[] = {{"telemetry.sdk.language=python", 31337, FIRST},
                 {"telemetry.sdk.language=python", 0x7f0000001000, 0},
                 {"telemetry.sdk.language=java", 31, 0},
                 {"telemetry.sdk.language=go", 31, FIRST},
                 /* the language is not known */
                 {"process.pid=#4711", 4713, FIRST},
                 {"process.pid=#4711", 31, 0},
                 {"process.pid=#7", 31, 0},
                 {"host.name=web", 4713, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct join join;
        struct request request;
        join_init(&join, "samples: {wait: 0s}");
        traces_begin(&request, "shop");
        request_resource(&request, cases[i].spans);
        SpanMessage *span =
            traces_span(&request, TRACE, FIRST, WALL + 100 * MS, WALL + 200 * MS, "work");
        span_int(&request, span, "thread.id", cases[i].id);
        join_send(&join, &request);
        begin_upload(&request, "shop");
        SampleMessage *sample = profiles_sample(&request, 1);
        sample_int(&request, sample, "thread.id", cases[i].id);
        sample_string(&request, sample, "thread.name", "worker");
        sample_time(&request, sample, WALL + 110 * MS);
        sample_value(&request, sample, 1);
        join_send(&join, &request);
        struct request out;
        read_last(&join, SIGNAL_PROFILES, &out);
        expect_sample(&out, 0, cases[i].joined, (const int64_t[]){1}, 1);
        request_free(&out);
        fixture_deinit(&join.fixture);
    }
}

/* Some senders know only texts, such as those of Zipkin. */
static void an_id_may_be_text(void **state)
{
    static const struct {
        const char *span, *sample; /* NULL: the integer 77 */
        uint64_t joined;
    } cases[] = {{"77", NULL, FIRST}, {NULL, "77", FIRST}, {"77", "77", FIRST},
                 {"77 ", NULL, 0},    {NULL, "0x4d", 0},   {"9223372036854775808", NULL, 0},
                 {NULL, "", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct join join;
        struct request request, out;
        join_init(&join, "samples: {wait: 0s}");
        traces_begin(&request, "shop");
        traces_resource_string(&request, "telemetry.sdk.language", "cpp");
        SpanMessage *span =
            traces_span(&request, TRACE, FIRST, WALL + 100 * MS, WALL + 200 * MS, "work");
        if (cases[i].span)
            span_string(&request, span, "thread.id", cases[i].span);
        else
            span_int(&request, span, "thread.id", 77);
        join_send(&join, &request);
        begin_upload(&request, "shop");
        SampleMessage *sample = profiles_sample(&request, 1);
        if (cases[i].sample)
            sample_string(&request, sample, "thread.id", cases[i].sample);
        else
            sample_int(&request, sample, "thread.id", 77);
        sample_string(&request, sample, "thread.name", "worker");
        sample_time(&request, sample, WALL + 110 * MS);
        sample_value(&request, sample, 1);
        join_send(&join, &request);
        read_last(&join, SIGNAL_PROFILES, &out);
        expect_sample(&out, 0, cases[i].joined, (const int64_t[]){1}, 1);
        request_free(&out);
        fixture_deinit(&join.fixture);
    }
}

/* Spans of a program in a container, and what a profiler of the host says of its process. */
static const struct {
    const char *spans, *profiles;
    uint64_t joined;
} containers[] = {
    {"container.id=0123456789abcdef0 process.pid=#1",
     "container.id=0123456789abcdef0 process.pid=#4711", FIRST},
    {"container.id=0123456789abcdef0", "container.id=0123456789abcdef0 process.pid=#4711", FIRST},
    {"container.id=0123456789abcdef0 service.instance.id=1 host.name=web",
     "container.id=0123456789abcdef0 process.pid=#4711 host.name=node service.name=app", FIRST},
    {"container.id=0123456789abcdef0 process.pid=#1",
     "container.id=123456789abcdef01 process.pid=#4711", 0},
    /* Docker names hosts by the first digits */
    {"host.name=0123456789ab", "container.id=0123456789abcdef0 process.pid=#4711", FIRST},
    {"host.name=123456789ab", "container.id=123456789abcdef0 process.pid=#4711", 0},
    {"host.name=customer-web", "container.id=customer-web process.pid=#4711", 0},
    /* by pod, if the container of the spans is not known, or is that of another one */
    {"k8s.pod.uid=a process.pid=#7", "k8s.pod.uid=a container.id=c process.pid=#4711", FIRST},
    {"k8s.pod.uid=a process.pid=#7", "k8s.pod.uid=b container.id=c process.pid=#4711", 0},
    {"k8s.pod.uid=a container.id=d process.pid=#7",
     "k8s.pod.uid=a container.id=c process.pid=#4711", FIRST},
    /* what a process sends itself has its own number */
    {"container.id=c process.pid=#7", "container.id=c process.pid=#8 telemetry.sdk.language=java",
     0},
    {"container.id=c process.pid=#7", "container.id=c process.pid=#8 service.instance.id=2", 0},
    {"container.id=c process.pid=#7", "container.id=c process.pid=#8 __session_id__=2", 0},
    {"container.id=c process.pid=#7", "container.id=c", 0},
};

static void send_of_container(struct join *join, const char *spans, const char *profiles,
                              const char *name)
{
    struct request request;
    traces_begin(&request, "shop");
    request_resource(&request, spans);
    request_resource(&request, "telemetry.sdk.language=java");
    add_span(&request, TRACE, FIRST, 100, 200);
    join_send(join, &request);
    profiles_begin(&request);
    request_resource(&request, profiles);
    profiles_profile(&request, "cpu", "nanoseconds");
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_int(&request, sample, "thread.id", 4713);
    sample_string(&request, sample, "thread.name", name);
    sample_time(&request, sample, WALL + 110 * MS);
    join_send(join, &request);
}

static uint64_t joined_in_container(const char *spans, const char *profiles, const char *name)
{
    struct join join;
    struct request out;
    uint64_t trace, span;
    join_init(&join, "samples: {wait: 0s}");
    send_of_container(&join, spans, profiles, name);
    read_last(&join, SIGNAL_PROFILES, &out);
    sample_read_link(&out, request_sample(&out, 0, 0), &trace, &span);
    request_free(&out);
    fixture_deinit(&join.fixture);
    return span;
}

static void the_process_of_a_container_is_known_by_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++) {
        const char *spans = containers[i].spans, *profiles = containers[i].profiles;
        uint64_t joined = joined_in_container(spans, profiles, "worker");
        if (joined != containers[i].joined)
            fail_msg("%s | %s: %s", spans, profiles, joined ? "joined" : "not joined");
        assert_int_equal(joined_in_container(spans, profiles, "other"), 0);
    }
}

/* Expects this many lags, and their sum in seconds. */
static void expect_lags(const struct join *join, int count, int sum_s)
{
    struct text out = {0}, line = {0};
    metrics_write(join->fixture.process.metrics, 0, &out);
    text_printf(&line,
                "profcol_spanjoin_lag_seconds_sum{spanjoin=\"spanjoin\"} %d\n"
                "profcol_spanjoin_lag_seconds_count{spanjoin=\"spanjoin\"} %d\n",
                sum_s, count);
    if (!strstr(text_string(&out), text_string(&line)))
        fail_msg("%s is not in %s", text_string(&line), text_string(&out));
    text_deinit(&out);
    text_deinit(&line);
}

static void joins_at_once_without_wait(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    join_init(&join, "samples: {wait: 0s}");
    send_span(&join, TRACE, CHILD, 200, 300);
    send_span(&join, TRACE, FIRST, 100, 400);
    fixture_advance(&join.fixture, 3 * SECOND);
    send_sample(&join, "shop", 150, 30);
    read_last(&join, SIGNAL_PROFILES, &out);
    expect_lags(&join, 1, 3);
    expect_sample(&out, 0, FIRST, (const int64_t[]){30}, 1);
    request_free(&out);
    send_sample(&join, "shop", 250, 30);
    read_last(&join, SIGNAL_PROFILES, &out);
    expect_sample(&out, 0, CHILD, (const int64_t[]){30}, 1);
    request_free(&out);
    send_sample(&join, "shop", 450, 30);
    read_last(&join, SIGNAL_PROFILES, &out);
    expect_sample(&out, 0, 0, (const int64_t[]){30}, 1);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* The spans of a process whose spans name their threads may arrive later than its samples. */
static void waits_for_the_spans_of_its_process(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    join_init(&join, "samples: {wait: 10s}");
    send_span(&join, TRACE, FIRST, 100, 200);
    send_sample(&join, "shop", 350, 30);
    assert_int_equal(left(&join, SIGNAL_PROFILES), 0);
    send_sample(&join, "other", 350, 30); /* its process sends no spans */
    assert_int_equal(left(&join, SIGNAL_PROFILES), 1);
    fixture_advance(&join.fixture, 8 * SECOND);
    send_span(&join, TRACE + 1, SECOND_SPAN, 300, 400);
    fixture_advance(&join.fixture, 2 * SECOND);
    assert_int_equal(left(&join, SIGNAL_PROFILES), 2);
    read_last(&join, SIGNAL_PROFILES, &out);
    expect_sample(&out, 0, SECOND_SPAN, (const int64_t[]){30}, 1);
    request_free(&out);
    expect_lags(&join, 1, -8);
    /* The span that arrives again gets what it cost. */
    send_span(&join, TRACE + 1, SECOND_SPAN, 300, 400);
    read_last(&join, SIGNAL_TRACES, &out);
    assert_string_equal(span_attribute(request_span(&out, 0), "profile.cpu_ns"), "30");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* A sample is split by its times; the part whose span is not sure counts as such. */
static void a_part_that_is_not_sure(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    join_init(&join, "samples: {wait: 0s}");
    send_span(&join, TRACE, FIRST, 0, 100);
    send_span(&join, TRACE + 1, SECOND_SPAN, 50, 150); /* so that the first one went on elsewhere */
    for (uint64_t i = 1; i < 8; i++)
        send_span(&join, TRACE + 1 + i, CHILD + i, 200 * i, 200 * i + 100);
    begin_upload(&request, "shop");
    add_sample(&request, (const uint64_t[]){75, 10, 250, 20}, 2);
    join_send(&join, &request);
    read_last(&join, SIGNAL_PROFILES, &out);
    expect_sample(&out, 0, 0, (const int64_t[]){10}, 1);
    expect_sample(&out, 1, CHILD + 1, (const int64_t[]){20}, 1);
    request_free(&out);
    struct metrics *metrics = join.fixture.process.metrics;
    assert_int_equal(metrics_value(metrics, "profcol_spanjoin_samples_unjoined",
                                   "spanjoin=\"spanjoin\",reason=\"ambiguous_thread\""),
                     1);
    assert_int_equal(metrics_value(metrics, "profcol_spanjoin_samples_unjoined",
                                   "spanjoin=\"spanjoin\",reason=\"no_id\""),
                     0);
    fixture_deinit(&join.fixture);
}

/* Sends an upload of the first thread, which says that it was profiled between two times. */
static void send_upload_of(struct join *join, uint64_t from, uint64_t to, uint64_t time)
{
    struct request request;
    begin_upload(&request, "shop");
    ProfileMessage *profile =
        request.profiles->resource_profiles[0]->scope_profiles[0]->profiles[0];
    profile->time_unix_nano = WALL + from * MS;
    profile->duration_nano = (to - from) * MS;
    add_sample(&request, (const uint64_t[]){time, 30}, 1);
    join_send(join, &request);
}

/* Replicas that nothing tells apart: their threads have the same ids. Uploads of one process do not
 * overlap. */
static void several_processes_that_count_as_one_are_not_joined(void **state)
{
    static const struct {
        uint64_t from, to;
        bool is_several;
    } seconds[] = {
        {10100, 20100, false}, /* the next one */
        {100, 10100, false},   /* the same again */
        {9200, 19200, false},  /* ends are rounded */
        {3100, 13100, true},   {600, 10600, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        struct join join;
        struct request out;
        join_init(&join, "samples: {wait: 10s}, window: 20s");
        send_span(&join, TRACE, FIRST, 5000, 6000);
        send_upload_of(&join, 100, 10100, 5500);
        fixture_advance(&join.fixture, 5 * SECOND);
        send_upload_of(&join, seconds[i].from, seconds[i].to, 5600);
        for (int k = 0; k < 2; k++) {
            fixture_advance(&join.fixture, 5 * SECOND);
            read_last(&join, SIGNAL_PROFILES, &out);
            expect_sample(&out, 0, seconds[i].is_several ? 0 : FIRST, (const int64_t[]){30}, 1);
            request_free(&out);
        }
        assert_int_equal(left(&join, SIGNAL_PROFILES), 2);
        assert_int_equal(metrics_value(join.fixture.process.metrics,
                                       "profcol_spanjoin_samples_unjoined",
                                       "spanjoin=\"spanjoin\",reason=\"ambiguous_thread\""),
                         seconds[i].is_several ? 2 : 0);
        fixture_advance(&join.fixture, 21 * SECOND); /* one of them has ended */
        send_span(&join, TRACE, FIRST, 75000, 76000);
        send_upload_of(&join, 70100, 80100, 75500);
        fixture_advance(&join.fixture, 10 * SECOND);
        read_last(&join, SIGNAL_PROFILES, &out);
        expect_sample(&out, 0, FIRST, (const int64_t[]){30}, 1);
        request_free(&out);
        fixture_deinit(&join.fixture);
    }
}

/* Two profilers of one process tell different things of it. */
static void two_profilers_are_not_two_processes(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    join_init(&join, "samples: {wait: 0s}");
    traces_begin(&request, "shop");
    traces_resource_string(&request, "telemetry.sdk.language", "cpp");
    traces_resource_string(&request, "service.instance.id", "1");
    add_span(&request, TRACE, FIRST, 5000, 6000);
    join_send(&join, &request);
    for (int i = 0; i < 6; i++) {
        static const char *const told[] = {"host.name", "process.executable.name"};
        begin_upload(&request, "shop");
        profiles_resource_string(&request, "service.instance.id", "1");
        if (i % 3)
            profiles_resource_string(&request, told[i % 3 - 1], "a");
        ProfileMessage *profile =
            request.profiles->resource_profiles[0]->scope_profiles[0]->profiles[0];
        profile->time_unix_nano = WALL + (uint64_t)(100 + 5000 * i) * MS;
        profile->duration_nano = 10 * SECOND;
        add_sample(&request, (const uint64_t[]){5500, 30}, 1);
        join_send(&join, &request);
        read_last(&join, SIGNAL_PROFILES, &out);
        expect_sample(&out, 0, FIRST, (const int64_t[]){30}, 1);
        request_free(&out);
    }
    fixture_deinit(&join.fixture);
}

static void splits_a_sample_by_its_times(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    join_init(&join, "samples: {wait: 0s}");
    send_span(&join, TRACE, FIRST, 100, 200);
    send_span(&join, TRACE + 1, SECOND_SPAN, 300, 400);
    begin_upload(&request, "shop");
    profiles_sample(&request, 2);
    add_sample(&request, (const uint64_t[]){350, 1, 110, 2, 250, 3, 120, 4, 360, 5}, 5);
    add_sample(&request, (const uint64_t[]){390, 0}, 1);
    profiles_sample(&request, 3);
    join_send(&join, &request);
    read_last(&join, SIGNAL_PROFILES, &out);
    assert_int_equal(request_profile(&out, 0)->n_samples, 6);
    assert_int_equal(join.fixture.recorder.items[join.fixture.recorder.count - 1].items, 6);
    expect_sample(&out, 1, 0, (const int64_t[]){3}, 1);
    expect_sample(&out, 2, FIRST, (const int64_t[]){2, 4}, 2);
    expect_sample(&out, 3, SECOND_SPAN, (const int64_t[]){1, 5}, 2);
    expect_sample(&out, 4, SECOND_SPAN, NULL, 0);
    request_free(&out);
    send_span(&join, TRACE + 1, SECOND_SPAN, 300, 400);
    read_last(&join, SIGNAL_TRACES, &out);
    assert_string_equal(span_attribute(request_span(&out, 0), "profile.cpu_ns"), "7");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void a_named_span_goes_first(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    join_init(&join, "samples: {wait: 10s}");
    send_span(&join, TRACE, FIRST, 100, 200);
    begin_upload(&request, "shop");
    SampleMessage *named = add_sample(&request, (const uint64_t[]){150, 7}, 1);
    sample_link(&request, named, TRACE + 1, SECOND_SPAN);
    add_sample(&request, (const uint64_t[]){150, 8}, 1);
    join_send(&join, &request);
    fixture_advance(&join.fixture, 9 * SECOND);
    send_span(&join, TRACE + 1, SECOND_SPAN, 800, 900);
    assert_int_equal(left(&join, SIGNAL_PROFILES), 0);
    fixture_advance(&join.fixture, 1 * SECOND);
    read_last(&join, SIGNAL_PROFILES, &out);
    expect_sample(&out, 0, SECOND_SPAN, (const int64_t[]){7}, 1);
    expect_sample(&out, 1, FIRST, (const int64_t[]){8}, 1);
    request_free(&out);
    /* Both count once. */
    send_span(&join, TRACE + 1, SECOND_SPAN, 800, 900);
    read_last(&join, SIGNAL_TRACES, &out);
    assert_string_equal(span_attribute(request_span(&out, 0), "profile.cpu_ns"), "7");
    request_free(&out);
    send_span(&join, TRACE, FIRST, 100, 200);
    read_last(&join, SIGNAL_TRACES, &out);
    assert_string_equal(span_attribute(request_span(&out, 0), "profile.cpu_ns"), "8");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* Spans that wait for their profiles wait for those that are held because of threads, too. */
static void spans_get_what_is_joined_later(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    join_init(&join, "samples: {wait: 5s}, spans: {wait: 20s}");
    send_span(&join, TRACE, FIRST, 100, 200);
    send_sample(&join, "shop", 150, 30);
    assert_int_equal(left(&join, SIGNAL_TRACES), 0);
    fixture_advance(&join.fixture, 5 * SECOND);
    assert_int_equal(left(&join, SIGNAL_PROFILES), 1);
    assert_int_equal(left(&join, SIGNAL_TRACES), 1);
    read_last(&join, SIGNAL_TRACES, &out);
    assert_string_equal(span_attribute(request_span(&out, 0), "profile.cpu_ns"), "30");
    assert_null(span_attribute(request_span(&out, 0), "profile.complete"));
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* An upload of the next 10 s, which can leave at once. */
enum next_upload { NEXT_EMPTY, NEXT_LINKED, NEXT_OTHER_TYPE, NEXT_WITHOUT_THREAD, NEXT_COUNT };

static void send_next_upload(struct join *join, enum next_upload kind)
{
    struct request request;
    SampleMessage *sample;
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", "shop");
    ProfileMessage *profile =
        profiles_profile(&request, kind == NEXT_OTHER_TYPE ? "lock" : "cpu", "nanoseconds");
    profile->time_unix_nano = WALL + 10 * SECOND;
    profile->duration_nano = 10 * SECOND + 1;
    if (kind != NEXT_EMPTY) {
        sample = profiles_sample(&request, 1);
        sample_value(&request, sample, 5);
        if (kind == NEXT_LINKED)
            sample_link(&request, sample, TRACE, FIRST);
        else
            sample_time(&request, sample, WALL + 11 * SECOND);
    }
    join_send(join, &request);
}

/* Checks a span that has left, and that it is complete. */
static void expect_cost(struct join *join, uint64_t span, const char *cpu)
{
    bool found = false;
    for (size_t i = 0; i < join->fixture.recorder.count; i++) {
        const struct recorded *recorded = &join->fixture.recorder.items[i];
        struct request out;
        if (recorded->signal != SIGNAL_TRACES)
            continue;
        request_read_traces(&out, slice_of(recorded->bytes, recorded->size));
        if (request_span(&out, 0)->span_id.data[7] == span) {
            found = true;
            assert_string_equal(span_attribute(request_span(&out, 0), "profile.cpu_ns"), cpu);
            assert_null(span_attribute(request_span(&out, 0), "profile.complete"));
        }
        request_free(&out);
    }
    assert_true(found);
}

/* Whatever later uploads cover: the samples of one that waits are not there yet. */
static void spans_wait_for_an_upload_that_others_overtake(void **state)
{
    (void)state;
    for (enum next_upload kind = 0; kind < NEXT_COUNT; kind++) {
        struct join join;
        join_init(&join, "samples: {wait: 5s}, spans: {wait: 20s}");
        send_span(&join, TRACE, FIRST, 100, 200);
        send_sample(&join, "shop", 150, 30);
        send_next_upload(&join, kind);
        send_span(&join, TRACE + 1, SECOND_SPAN, 300, 400);
        fixture_advance(&join.fixture, 4 * SECOND);
        assert_int_equal(left(&join, SIGNAL_PROFILES), kind != NEXT_EMPTY);
        assert_int_equal(left(&join, SIGNAL_TRACES), 0);
        fixture_advance(&join.fixture, 1 * SECOND);
        assert_int_equal(left(&join, SIGNAL_TRACES), 2);
        expect_cost(&join, FIRST, kind == NEXT_LINKED ? "35" : "30");
        fixture_deinit(&join.fixture);
    }
}

/* Without a wait, too, spans do not look complete while an upload waits. */
static void spans_that_an_upload_will_add_to_are_incomplete(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    join_init(&join, "samples: {wait: 5s}");
    send_span(&join, TRACE, FIRST, 100, 200);
    send_sample(&join, "shop", 150, 30);
    send_next_upload(&join, NEXT_LINKED);
    send_span(&join, TRACE, FIRST, 100, 200);
    read_last(&join, SIGNAL_TRACES, &out);
    assert_string_equal(span_attribute(request_span(&out, 0), "profile.cpu_ns"), "5");
    assert_string_equal(span_attribute(request_span(&out, 0), "profile.complete"), "false");
    request_free(&out);
    fixture_advance(&join.fixture, 5 * SECOND);
    send_span(&join, TRACE, FIRST, 100, 200);
    read_last(&join, SIGNAL_TRACES, &out);
    assert_string_equal(span_attribute(request_span(&out, 0), "profile.cpu_ns"), "35");
    assert_null(span_attribute(request_span(&out, 0), "profile.complete"));
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void can_be_turned_off(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    join_init(&join, "samples: {by_thread: false}");
    send_span(&join, TRACE, FIRST, 100, 200);
    send_sample(&join, "shop", 150, 30);
    read_last(&join, SIGNAL_PROFILES, &out);
    expect_sample(&out, 0, 0, (const int64_t[]){30}, 1);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static double unjoined(struct join *join, const char *reason)
{
    char labels[96];
    snprintf(labels, sizeof labels, "spanjoin=\"spanjoin\",reason=\"%s\"", reason);
    return metrics_value(join->fixture.process.metrics, "profcol_spanjoin_samples_unjoined",
                         labels);
}

/* Why samples that name no span have none. */
static void each_cause_has_a_reason(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, "samples: {wait: 0s}");
    send_sample(&join, "shop", 150, 30); /* no spans name threads yet */
    assert_int_equal(unjoined(&join, "no_id"), 1);
    send_span(&join, TRACE, FIRST, 100, 200);
    begin_upload(&request, "shop");
    add_sample(&request, (const uint64_t[]){250, 30}, 1);
    add_sample(&request, (const uint64_t[]){150, 30, 250, 30}, 2); /* one of its parts */
    sample_value(&request, profiles_sample(&request, 1), 30);      /* without thread and time */
    profiles_resource(&request);
    profiles_resource_string(&request, "service.name", "other");
    profiles_profile(&request, "cpu", "nanoseconds");
    add_sample(&request, (const uint64_t[]){150, 30}, 1);
    sample_value(&request, profiles_sample(&request, 1), 30);
    join_send(&join, &request);
    assert_int_equal(unjoined(&join, "no_id"), 3);
    assert_int_equal(unjoined(&join, "no_span_on_thread"), 2);
    assert_int_equal(unjoined(&join, "no_process"), 1);
    assert_int_equal(unjoined(&join, "ambiguous_thread"), 0);
    fixture_deinit(&join.fixture);
}

/* Sends a sample with a time in each of many spans. Returns how many samples it becomes; if it is
 * one, it counts as not split. */
static size_t split_sample(unsigned spans, unsigned attributes, uint64_t value)
{
    struct join join;
    struct request request, out;
    join_init(&join, "samples: {wait: 0s}");
    traces_begin(&request, "shop");
    traces_resource_string(&request, "telemetry.sdk.language", "cpp");
    uint64_t *times = calloc(spans, 2 * sizeof *times);
    for (uint64_t i = 0; i < spans; i++) {
        add_span(&request, TRACE + i, FIRST + i, i * 10, i * 10 + 5);
        times[2 * i] = i * 10 + 2;
        times[2 * i + 1] = value;
    }
    join_send(&join, &request);
    begin_upload(&request, "shop");
    SampleMessage *sample = add_sample(&request, times, spans);
    free(times);
    for (unsigned i = 0; i < attributes; i++) {
        char key[32];
        snprintf(key, sizeof key, "key%u", i);
        sample_string(&request, sample, key, "value");
    }
    join_send(&join, &request);
    read_last(&join, SIGNAL_PROFILES, &out);
    size_t samples = request_profile(&out, 0)->n_samples, left = 0;
    for (size_t i = 0; i < samples; i++)
        left += request_sample(&out, 0, i)->n_timestamps_unix_nano;
    assert_int_equal(left, spans);
    assert_int_equal(unjoined(&join, "not_split"), samples == 1);
    assert_int_equal(unjoined(&join, "no_id"), 0);
    request_free(&out);
    fixture_deinit(&join.fixture);
    return samples;
}

/* Each time of a sample may be of another span; what the splits repeat is limited. */
static void a_split_is_limited(void **state)
{
    enum { SPANS = 3000 };
    (void)state;
    assert_int_equal(split_sample(SPANS, 1000, 0), 1);
}

/* Checks the span of a sample with two times and one value. */
static void expect_sample_of_two(const struct request *out, size_t i, uint64_t span)
{
    SampleMessage *sample = request_sample(out, 0, i);
    uint64_t trace_id, span_id = 0;
    sample_read_link(out, sample, &trace_id, &span_id);
    assert_int_equal(span_id, span);
    assert_int_equal(sample->n_timestamps_unix_nano, 2);
    assert_int_equal(sample->n_values, 1);
}

/* A value of two times is of neither span. */
static void a_sample_without_pairs_is_not_split(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    join_init(&join, "samples: {wait: 0s}");
    send_span(&join, TRACE, FIRST, 100, 200);
    send_span(&join, TRACE + 1, SECOND_SPAN, 300, 400);
    begin_upload(&request, "shop");
    add_sample(&request, (const uint64_t[]){150, 3, 350, 0}, 2);
    add_sample(&request, (const uint64_t[]){150, 4, 160, 0}, 2);
    add_sample(&request, (const uint64_t[]){250, 5}, 1);
    join_send(&join, &request);
    read_last(&join, SIGNAL_PROFILES, &out);
    expect_sample_of_two(&out, 0, 0);
    expect_sample_of_two(&out, 1, FIRST);
    expect_sample(&out, 2, 0, (const int64_t[]){5}, 1);
    assert_int_equal(unjoined(&join, "not_split"), 1);
    assert_int_equal(unjoined(&join, "no_span_on_thread"), 1);
    assert_int_equal(unjoined(&join, "no_id"), 0);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* Times and values are divided, however many they are. */
static void only_what_is_repeated_is_limited(void **state)
{
    enum { SPANS = 3000, FEW_SPANS = 1500 };
    (void)state;
    assert_int_equal(split_sample(SPANS, 0, 0), SPANS);
    assert_int_equal(split_sample(FEW_SPANS, 0, 10000000), FEW_SPANS);
}

/* ---- threads that readers add ---- */

enum { OS_THREAD = 4711 };

static void send_java_span(struct join *join, uint64_t trace, uint64_t span, uint64_t start,
                           uint64_t end)
{
    struct request request;
    traces_begin(&request, "shop");
    traces_resource_string(&request, "telemetry.sdk.language", "java");
    add_span(&request, trace, span, start, end);
    join_send(join, &request);
}

/* Adds a sample of a recording. time 0: it has none. */
static SampleMessage *add_recorded(struct request *request, int64_t runtime_id, uint64_t time,
                                   int64_t value)
{
    SampleMessage *sample = profiles_sample(request, 1);
    sample_int(request, sample, SAMPLE_THREAD_RUNTIME_ID, runtime_id);
    sample_int(request, sample, SAMPLE_THREAD_OS_ID, OS_THREAD + runtime_id - THREAD);
    sample_string(request, sample, SAMPLE_THREAD_NAME, "any name");
    sample_value(request, sample, value);
    if (time > 0)
        sample_time(request, sample, WALL + time * MS);
    return sample;
}

/* Checks a sample that has lost its thread and times. */
static void expect_recorded(const struct request *out, size_t i, uint64_t span, int64_t value)
{
    SampleMessage *sample = request_sample(out, 0, i);
    uint64_t trace_id, span_id = 0;
    sample_read_link(out, sample, &trace_id, &span_id);
    assert_int_equal(span_id, span);
    assert_null(sample_attribute(out, sample, SAMPLE_THREAD_NAME));
    assert_null(sample_attribute(out, sample, SAMPLE_THREAD_OS_ID));
    assert_int_equal(sample->n_timestamps_unix_nano, 0);
    assert_int_equal(sample->n_values, 1);
    assert_int_equal(sample->values[0], value);
}

static void expect_no_text(const struct request *out, const char *text)
{
    const DictionaryMessage *dictionary = out->profiles->dictionary;
    for (size_t i = 0; i < dictionary->n_string_table; i++)
        assert_string_not_equal(dictionary->string_table[i], text);
}

static void send_recording(struct join *join)
{
    struct request request;
    begin_upload(&request, "shop");
    add_recorded(&request, THREAD, 110, 1);
    add_recorded(&request, THREAD, 250, 2);
    add_recorded(&request, THREAD + 1, 120, 4);
    add_recorded(&request, THREAD, 350, 8);
    add_recorded(&request, THREAD, 190, 16);
    sample_link(&request, add_recorded(&request, THREAD + 2, 0, 32), TRACE, FIRST);
    join_send(join, &request);
}

/* By Java's ids, whatever else has the same number. What the reader added is gone; samples that are
 * equal then are one. */
static void recordings_are_joined_and_lose_their_threads(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    join_init(&join, "samples: {wait: 0s}");
    send_java_span(&join, TRACE, FIRST, 100, 200);
    send_java_span(&join, TRACE + 1, SECOND_SPAN, 300, 400);
    send_recording(&join);
    read_last(&join, SIGNAL_PROFILES, &out);
    assert_int_equal(request_profile(&out, 0)->n_samples, 3);
    assert_int_equal(join.fixture.recorder.items[join.fixture.recorder.count - 1].items, 3);
    expect_recorded(&out, 0, FIRST, 1 + 16 + 32);
    expect_recorded(&out, 1, 0, 2 + 4);
    expect_recorded(&out, 2, SECOND_SPAN, 8);
    expect_no_text(&out, SAMPLE_THREAD_RUNTIME_ID);
    expect_no_text(&out, "any name");
    request_free(&out);
    send_java_span(&join, TRACE, FIRST, 100, 200);
    read_last(&join, SIGNAL_TRACES, &out);
    assert_string_equal(span_attribute(request_span(&out, 0), "profile.cpu_ns"), "49");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static void held_recordings_lose_their_threads(void **state)
{
    (void)state;
    struct join join;
    struct request out;
    join_init(&join, "samples: {wait: 5s}");
    send_java_span(&join, TRACE, FIRST, 100, 200);
    send_recording(&join);
    assert_int_equal(left(&join, SIGNAL_PROFILES), 0);
    send_java_span(&join, TRACE + 1, SECOND_SPAN, 300, 400);
    fixture_advance(&join.fixture, 5 * SECOND);
    read_last(&join, SIGNAL_PROFILES, &out);
    assert_int_equal(request_profile(&out, 0)->n_samples, 3);
    expect_recorded(&out, 0, FIRST, 1 + 16 + 32);
    expect_recorded(&out, 2, SECOND_SPAN, 8);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* Whatever `keep` does, and also if nothing is joined by thread. */
static void threads_are_removed_in_any_case(void **state)
{
    (void)state;
    static const struct {
        const char *settings;
        size_t samples;
        uint64_t span;
        int64_t value;
    } cases[] = {
        {"samples: {wait: 0s}, keep: {span_detail_when: [{duration_above: 50ms}]}", 3, FIRST, 49},
        {"samples: {wait: 0s}, keep: {span_detail_when: [{duration_above: 1s}]}", 2, 0, 57},
        {"samples: {wait: 0s}, keep: {span_detail_when: [{duration_above: 1s}], dry_run: true}", 3,
         FIRST, 49},
        {"samples: {by_thread: false}", 2, 0, 31},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct join join;
        struct request out;
        join_init(&join, cases[i].settings);
        send_java_span(&join, TRACE, FIRST, 100, 200);
        send_java_span(&join, TRACE + 1, SECOND_SPAN, 300, 400);
        send_recording(&join);
        read_last(&join, SIGNAL_PROFILES, &out);
        assert_int_equal(request_profile(&out, 0)->n_samples, cases[i].samples);
        expect_recorded(&out, 0, cases[i].span, cases[i].value);
        request_free(&out);
        fixture_deinit(&join.fixture);
    }
}

/* A profiler that knows only ids of the operating system, and another name of the thread. */
static void a_recording_shows_which_thread_has_an_id(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    join_init(&join, "samples: {wait: 0s}");
    send_java_span(&join, TRACE, FIRST, 100, 200);
    for (int i = 0; i < 2; i++) {
        begin_upload(&request, "shop");
        SampleMessage *sample = profiles_sample(&request, 1);
        sample_int(&request, sample, "thread.id", OS_THREAD);
        sample_time(&request, sample, WALL + 150 * MS);
        join_send(&join, &request);
        read_last(&join, SIGNAL_PROFILES, &out);
        uint64_t trace_id, span_id = 0;
        sample_read_link(&out, request_sample(&out, 0, 0), &trace_id, &span_id);
        assert_int_equal(span_id, i == 0 ? 0 : FIRST);
        request_free(&out);
        /* Also a sample that names its span tells of its thread. */
        begin_upload(&request, "shop");
        sample_link(&request, add_recorded(&request, THREAD, 0, 1), TRACE, FIRST);
        join_send(&join, &request);
    }
    fixture_deinit(&join.fixture);
}

/* A Link that names no span, and one value for two times. */
static void a_link_without_ids_and_values_without_pairs(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    join_init(&join, "samples: {wait: 5s}");
    send_span(&join, TRACE, FIRST, 100, 200);
    begin_upload(&request, "shop");
    SampleMessage *sample = add_sample(&request, (const uint64_t[]){110, 7, 120, 0}, 2);
    sample_link(&request, sample, 0, 0);
    join_send(&join, &request);
    fixture_advance(&join.fixture, 6 * SECOND);
    read_last(&join, SIGNAL_PROFILES, &out);
    sample = request_sample(&out, 0, 0);
    uint64_t trace_id, span_id = 0;
    sample_read_link(&out, sample, &trace_id, &span_id);
    assert_int_equal(span_id, FIRST);
    assert_int_equal(sample->n_values, 1);
    assert_int_equal(sample->n_timestamps_unix_nano, 2);
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* The first upload of an application whose name is not that of its spans shows, by a sample with an
 * id, which process it is of. When it leaves, its samples without ids are joined, too. */
static void spans_wait_for_what_is_joined_when_an_upload_leaves(void **state)
{
    (void)state;
    enum { UNKNOWN = 99 };
    struct join join;
    struct request request, out;
    join_init(&join, "spans: {wait: 40s}");
    send_span(&join, TRACE, FIRST, 100, 200);
    begin_upload(&request, "app");
    sample_link(&request, add_sample(&request, (const uint64_t[]){110, 10}, 1), TRACE, FIRST);
    sample_link(&request, add_sample(&request, (const uint64_t[]){310, 10}, 1), TRACE, UNKNOWN);
    add_sample(&request, (const uint64_t[]){120, 7}, 1);
    join_send(&join, &request);
    assert_int_equal(left(&join, SIGNAL_TRACES), 0);
    fixture_advance(&join.fixture, 11 * SECOND);
    assert_int_equal(left(&join, SIGNAL_PROFILES), 1);
    assert_int_equal(left(&join, SIGNAL_TRACES), 1);
    read_last(&join, SIGNAL_TRACES, &out);
    assert_string_equal(span_attribute(request_span(&out, 0), "profile.cpu_ns"), "17");
    request_free(&out);
    fixture_deinit(&join.fixture);
}

static double metric_of(const struct join *join, const char *name)
{
    return metrics_value(join->fixture.process.metrics, name, "spanjoin=\"spanjoin\"");
}

/* What the index has, and has room for. */
static void gauges_of_room(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "max_spans: 1000, max_held_mib: 9, "
                     "samples: {attributes: [{key: endpoint, from: root.name}]}");
    send_span(&join, TRACE, FIRST, 0, 10);
    send_span(&join, TRACE, SECOND_SPAN, 20, 30);
    assert_int_equal(metric_of(&join, "profcol_spanjoin_entries"), 2);
    assert_int_equal(metric_of(&join, "profcol_spanjoin_entries_limit"), 1000);
    assert_int_equal(metric_of(&join, "profcol_spanjoin_thread_spans"), 2);
    assert_int_equal(metric_of(&join, "profcol_spanjoin_thread_spans_limit"), 251);
    assert_int_equal(metric_of(&join, "profcol_spanjoin_tree_spans"), 2);
    assert_int_equal(metric_of(&join, "profcol_spanjoin_held_bytes_limit"), 9 << 20);
    fixture_deinit(&join.fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_wait_for_what_is_joined_when_an_upload_leaves),
        cmocka_unit_test(a_link_without_ids_and_values_without_pairs),
        cmocka_unit_test(ids_are_of_the_same_kind),
        cmocka_unit_test(an_id_may_be_text),
        cmocka_unit_test(the_process_of_a_container_is_known_by_names),
        cmocka_unit_test(joins_at_once_without_wait),
        cmocka_unit_test(waits_for_the_spans_of_its_process),
        cmocka_unit_test(several_processes_that_count_as_one_are_not_joined),
        cmocka_unit_test(a_part_that_is_not_sure),
        cmocka_unit_test(two_profilers_are_not_two_processes),
        cmocka_unit_test(splits_a_sample_by_its_times),
        cmocka_unit_test(a_named_span_goes_first),
        cmocka_unit_test(spans_get_what_is_joined_later),
        cmocka_unit_test(spans_wait_for_an_upload_that_others_overtake),
        cmocka_unit_test(spans_that_an_upload_will_add_to_are_incomplete),
        cmocka_unit_test(can_be_turned_off),
        cmocka_unit_test(a_split_is_limited),
        cmocka_unit_test(each_cause_has_a_reason),
        cmocka_unit_test(a_sample_without_pairs_is_not_split),
        cmocka_unit_test(only_what_is_repeated_is_limited),
        cmocka_unit_test(recordings_are_joined_and_lose_their_threads),
        cmocka_unit_test(held_recordings_lose_their_threads),
        cmocka_unit_test(threads_are_removed_in_any_case),
        cmocka_unit_test(a_recording_shows_which_thread_has_an_id),
        cmocka_unit_test(gauges_of_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What the store of explore makes of requests: totals, both orders of arrival, merging, hostile
 * names. Outgoing requests are read with protobuf-c. */
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/data/scan.h"
#include "core/net/compression.h"
#include "tests/unit/explore_fixture.h"
#include "tests/unit/pprof_fixture.h"
#include "tests/unit/random_profiles.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TRACE = 7, SPAN = 42 };

/* ---- one span, one sample ---- */

static void send_span(struct scene *scene, uint64_t span, const char *name, uint64_t duration_ns)
{
    struct request request;
    traces_begin(&request, "shop");
    SpanMessage *message = traces_span(&request, TRACE, span, WALL, WALL + duration_ns, name);
    span_string(&request, message, "user", "ann \"a\"");
    span_int(&request, message, "size", 12);
    scene_send(scene, &request);
}

static void send_sample(struct scene *scene, uint64_t span, int64_t value)
{
    static const char *const functions[] = {"leaf", "main"};
    struct request request;
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", "shop");
    profiles_profile(&request, "cpu", "nanoseconds");
    SampleMessage *sample = profiles_sample(&request, profiles_add_stack(&request, functions, 2));
    if (span)
        sample_link(&request, sample, TRACE, span);
    sample_value(&request, sample, value);
    scene_send(scene, &request);
}

static void expect_number(struct scene *scene, const char *path, const char *query,
                          const char *where, int64_t wanted)
{
    json_t *answer = scene_ask(scene, path, query);
    int64_t got = json_number_at(answer, where);
    if (got != wanted)
        fail_msg("%s?%s %s: %lld, not %lld", path, query, where, (long long)got, (long long)wanted);
    json_decref(answer);
}

/* The sample belongs to the operation in whichever order both arrive. */
static void check_joined(struct scene *scene)
{
    expect_number(scene, "flamegraph", "operation=GET+%2Fa", "total", 30);
    expect_number(scene, "flamegraph", "operation=GET+%2Fa&min_duration=900ms", "total", 30);
    expect_number(scene, "flamegraph", "operation=GET+%2Fa&max_duration=500ms", "total", 0);
    expect_number(scene, "flamegraph", "operation=", "total", 0);
    expect_number(scene, "flamegraph", "", "total", 30);
    expect_number(scene, "flamegraph", "span=000000000000002a", "total", 30);
    expect_number(scene, "services", "", "services.0.costs.cpu", 30);
    expect_number(scene, "operations", "", "operations.0.spans", 1);
    expect_number(scene, "operations", "", "operations.0.costs.cpu", 30);
    expect_number(scene, "spans", "", "spans.0.costs.cpu", 30);
    expect_number(scene, "spans", "attribute=size%3D12", "total", 1);
    expect_number(scene, "spans", "attribute=size%3D1", "total", 0);
    expect_number(scene, "spans", "attribute=user%3Dann+%22a%22", "total", 1);
    expect_number(scene, "span", "span=000000000000002a", "span.time.on_cpu_ns", 30);
    expect_number(scene, "histogram", "measure=duration", "rows.0.width_ns", 60000000000);
    json_t *answer = scene_ask(scene, "flamegraph", "");
    assert_string_equal(json_text_at(answer, "names.1"), "main");
    assert_string_equal(json_text_at(answer, "names.2"), "leaf");
    assert_int_equal(json_number_at(answer, "nodes.2.3"), 30);
    json_decref(answer);
}

static void test_span_first(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 8 << 20, "samples: {wait: 0s}");
    send_span(&scene, SPAN, "GET /a", SECOND);
    send_sample(&scene, SPAN, 30);
    check_joined(&scene);
    expect_number(&scene, "services", "", "services.0.joined.cpu", 30);
    scene_end(&scene);
}

static void test_sample_first(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 8 << 20, "samples: {wait: 0s}");
    send_sample(&scene, SPAN, 30);
    expect_number(&scene, "flamegraph", "operation=", "total", 30);
    scene_wait(&scene, 3 * SECOND);
    send_span(&scene, SPAN, "GET /a", SECOND);
    check_joined(&scene);
    expect_number(&scene, "services", "", "services.0.samples.unjoined.not_found", 1);
    scene_end(&scene);
}

/* kind, flags: of a span with the parent, if there is one. */
static void send_child(struct scene *scene, uint64_t span, uint64_t parent, int kind,
                       uint32_t flags)
{
    struct request request;
    traces_begin(&request, "shop");
    SpanMessage *message = traces_span(&request, TRACE, span, WALL, WALL + SECOND, "child");
    message->kind = (Opentelemetry__Proto__Trace__V1__Span__SpanKind)kind;
    message->flags = flags;
    if (parent)
        span_set_parent(&request, message, parent);
    scene_send(scene, &request);
}

static void test_entries(void **state)
{
    (void)state;
    enum { INTERNAL = 1, SERVER = 2, CLIENT = 3, CONSUMER = 5, LOCAL = 0x100, REMOTE = 0x300 };
    static const struct {
        uint64_t parent;
        int kind;
        uint32_t flags;
        int is_entry;
    } cases[] = {
        {0, INTERNAL, 0, 1}, {0, CLIENT, LOCAL, 1}, {7, SERVER, 0, 1},     {7, CONSUMER, 0, 1},
        {7, CLIENT, 0, 0},   {7, INTERNAL, 0, 0},   {7, SERVER, LOCAL, 0}, {7, INTERNAL, REMOTE, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene scene;
        scene_begin(&scene, 8 << 20, "samples: {wait: 0s}");
        send_child(&scene, SPAN, cases[i].parent, cases[i].kind, cases[i].flags);
        expect_number(&scene, "spans", "entry=true", "total", cases[i].is_entry);
        expect_number(&scene, "spans", "entry=false", "total", 1);
        expect_number(&scene, "spans", "", "total", 1);
        scene_end(&scene);
    }
}

/* A call and what it called are one request. */
static void test_answered_calls(void **state)
{
    (void)state;
    enum { SERVER = 2, CLIENT = 3, PRODUCER = 4, REMOTE = 0x300 };
    struct scene scene;
    scene_begin(&scene, 8 << 20, "samples: {wait: 0s}");
    send_child(&scene, 7, 0, CLIENT, 0);
    expect_number(&scene, "spans", "entry=true", "total", 1);
    send_child(&scene, 8, 7, SERVER, REMOTE);
    expect_number(&scene, "spans", "entry=true", "total", 1);
    expect_number(&scene, "spans", "entry=true&span=0000000000000008", "total", 1);
    expect_number(&scene, "spans", "entry=true&kind=server", "total", 1);
    expect_number(&scene, "spans", "entry=true&kind=client", "total", 1);
    expect_number(&scene, "spans", "", "total", 2);
    send_child(&scene, 9, 0, SERVER,
               0); /* not a call, so it stays although it has an entry inside */
    send_child(&scene, 10, 9, SERVER, REMOTE);
    expect_number(&scene, "spans", "entry=true", "total", 3);
    scene_end(&scene);
}

/* A span and its callers are in the list of its trace, however many others there are. */
static void test_large_trace(void **state)
{
    (void)state;
    enum { INTERNAL = 1, CHILDREN = 1200, ROOT = 5000 };
    struct scene scene;
    struct request request;
    scene_begin(&scene, 16 << 20, "samples: {wait: 0s}");
    send_child(&scene, ROOT, 0, INTERNAL, 0);
    send_child(&scene, SPAN, ROOT, INTERNAL, 0);
    traces_begin(&request, "shop");
    for (uint64_t i = 0; i < CHILDREN; i++)
        span_set_parent(&request,
                        traces_span(&request, TRACE, ROOT + 1 + i, WALL, WALL + SECOND, "c"), SPAN);
    scene_send(&scene, &request);
    json_t *answer = scene_ask(&scene, "span", "span=000000000000002a");
    assert_int_equal(json_array_size(json_object_get(answer, "trace")), API_LIST_MAX);
    assert_int_equal(json_number_at(answer, "trace_total"), CHILDREN + 2);
    assert_string_equal(json_text_at(answer, "trace.0.span_id"), "000000000000002a");
    assert_string_equal(json_text_at(answer, "trace.1.span_id"), "0000000000001388");
    json_decref(answer);
    scene_end(&scene);
}

/* Each is the parent of the other. */
static void test_circle_of_parents(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 8 << 20, "samples: {wait: 0s}");
    send_child(&scene, SPAN, SPAN + 1, 1, 0);
    send_child(&scene, SPAN + 1, SPAN, 1, 0);
    expect_number(&scene, "span", "span=000000000000002a", "trace_total", 2);
    scene_end(&scene);
}

static void test_span_twice(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 8 << 20, "samples: {wait: 0s}");
    send_span(&scene, SPAN, "GET /a", SECOND);
    send_span(&scene, SPAN, "GET /a", SECOND);
    expect_number(&scene, "services", "", "services.0.spans", 1);
    scene_end(&scene);
}

static void send_version(struct scene *scene, const char *version)
{
    struct request request;
    traces_begin(&request, "shop");
    traces_resource_string(&request, "service.version", version);
    traces_span(&request, TRACE, SPAN, WALL, WALL + SECOND, "GET /a");
    scene_send(scene, &request);
}

/* Few profilers send service.version. */
static void test_version_of_the_span(void **state)
{
    (void)state;
    for (int sample_first = 0; sample_first < 2; sample_first++) {
        struct scene scene;
        scene_begin(&scene, 8 << 20, "samples: {wait: 0s}");
        if (sample_first)
            send_sample(&scene, SPAN, 30);
        send_version(&scene, "1.2");
        if (!sample_first)
            send_sample(&scene, SPAN, 30);
        send_sample(&scene, 0, 5);
        expect_number(&scene, "flamegraph", "version=1.2", "total", 30);
        expect_number(&scene, "flamegraph", "version=1.2", "spans", 1);
        expect_number(&scene, "flamegraph", "version=", "total", 5);
        scene_end(&scene);
    }
}

/* A status is one of spans. */
static void test_samples_outside_of_requests_have_no_status(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 8 << 20, "samples: {wait: 0s}");
    send_span(&scene, SPAN, "GET /a", SECOND);
    send_sample(&scene, SPAN, 30);
    send_sample(&scene, 0, 5);
    expect_number(&scene, "flamegraph", "", "total", 35);
    expect_number(&scene, "flamegraph", "status=ok", "total", 30);
    expect_number(&scene, "flamegraph", "status=unset", "total", 0);
    scene_end(&scene);
}

/* A selection finds a name as answers show it. */
static void test_names_that_are_no_text(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 8 << 20, "samples: {wait: 0s}");
    send_span(&scene, SPAN, "a\xff\xc3(", SECOND);
    expect_number(&scene, "spans", "operation=a%EF%BF%BD%EF%BF%BD(", "total", 1);
    expect_number(&scene, "flamegraph", "operation=a%EF%BF%BD%EF%BF%BD(", "spans", 1);
    scene_end(&scene);
}

/* A count of samples with a period of CPU time is CPU time. */
static void test_counts_of_a_period(void **state)
{
    (void)state;
    struct scene scene;
    struct request request;
    scene_begin(&scene, 8 << 20, "");
    profiles_begin(&request);
    ProfileMessage *profile = profiles_profile(&request, "samples", "count");
    profile_period(&request, profile, "cpu", "nanoseconds", 20);
    sample_value(&request, profiles_sample(&request, 1), 3);
    scene_send(&scene, &request);
    expect_number(&scene, "status", "", "types.0.total", 60);
    scene_end(&scene);
}

static void add_value(struct request *request, const char *type, const char *unit, int64_t value)
{
    ProfileMessage *profile = profiles_profile(request, type, unit);
    profile_period(request, profile, "itimer", "ns", 20);
    sample_value(request, profiles_sample(request, 1), value);
}

/* It is one type, whatever its name and unit. A second measure of it keeps its own type. */
static void test_cpu_of_every_profiler(void **state)
{
    (void)state;
    struct scene scene;
    struct request request;
    scene_begin(&scene, 8 << 20, "");
    profiles_begin(&request);
    add_value(&request, "itimer", "us", 3);
    scene_send(&scene, &request);
    profiles_begin(&request);
    add_value(&request, "cpu", "ms", 4);
    add_value(&request, "itimer", "ns", 5);
    scene_send(&scene, &request);
    expect_number(&scene, "services", "", "services.0.costs.cpu", 4003000);
    expect_number(&scene, "services", "", "services.0.costs.itimer", 5);
    scene_end(&scene);
}

/* ---- why samples have no span ---- */

/* Adds a span of a thread; times are in seconds. */
static void add_threaded(struct request *request, uint64_t id, uint64_t from, uint64_t to)
{
    SpanMessage *span =
        traces_span(request, id, id, WALL + from * SECOND, WALL + to * SECOND, "work");
    span_int(request, span, "thread.id", 31);
}

/* Adds a sample of the thread at a time; 0: one without a thread. */
static void add_unnamed(struct request *request, uint64_t at)
{
    SampleMessage *sample = profiles_sample(request, 1);
    sample_value(request, sample, 1);
    if (at > 0) {
        sample_int(request, sample, "thread.id", 31);
        sample_time(request, sample, WALL + at * SECOND);
    }
}

/* Of two spans one may have been moved to another thread. */
static void test_ambiguous_threads(void **state)
{
    (void)state;
    struct scene scene;
    struct request request;
    scene_begin(&scene, 8 << 20, "samples: {wait: 0s}");
    traces_begin(&request, "shop");
    traces_resource_string(&request, "telemetry.sdk.language", "cpp");
    add_threaded(&request, 1, 10, 40); /* it contains a span of another trace */
    add_threaded(&request, 2, 20, 30);
    add_threaded(&request, 3, 50, 60);
    scene_send(&scene, &request);
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", "idle");
    profiles_profile(&request, "cpu", "nanoseconds");
    add_unnamed(&request, 0);
    profiles_resource(&request);
    profiles_resource_string(&request, "service.name", "shop");
    profiles_profile(&request, "cpu", "nanoseconds");
    const uint64_t times[] = {15, 0, 25, 35, 45, 55};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        add_unnamed(&request, times[i]);
    profiles_resource(&request);
    profiles_resource_string(&request, "service.name", "other");
    profiles_profile(&request, "cpu", "nanoseconds");
    add_unnamed(&request, 15);
    scene_send(&scene, &request);
    expect_number(&scene, "services", "", "services.0.samples.unjoined.ambiguous_thread", 3);
    expect_number(&scene, "services", "", "services.0.samples.unjoined.no_id", 1);
    expect_number(&scene, "services", "", "services.0.samples.unjoined.no_span_on_thread", 1);
    expect_number(&scene, "services", "", "services.0.samples.joined", 1);
    expect_number(&scene, "services", "", "services.1.samples.unjoined.no_id", 1);
    expect_number(&scene, "services", "", "services.2.samples.unjoined.no_process", 1);
    scene_end(&scene);
}

/* The join has forgotten the span; the store knows that it had arrived. */
static void test_long_after_the_window(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 8 << 20, "window: 60s, samples: {wait: 0s}");
    send_span(&scene, SPAN, "GET /a", SECOND);
    scene_wait(&scene, 300 * SECOND);
    send_sample(&scene, SPAN, 30);
    send_sample(&scene, SPAN + 1, 30);
    expect_number(&scene, "services", "", "services.0.samples.unjoined.expired", 1);
    expect_number(&scene, "services", "", "services.0.samples.unjoined.not_found", 1);
    struct join_figures figures = {.id = "spanjoin", .unjoined = {[JOIN_REASON_NOT_FOUND] = 2}};
    join_late_apply(&scene.store->late, &figures);
    assert_int_equal(figures.unjoined[JOIN_REASON_EXPIRED], 1);
    assert_int_equal(figures.unjoined[JOIN_REASON_NOT_FOUND], 1);
    scene_end(&scene);
}

/* ---- comparisons, functions ---- */

static void test_diff_and_functions(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 8 << 20, "samples: {wait: 0s}");
    send_span(&scene, SPAN, "GET /a", SECOND);
    send_span(&scene, SPAN + 1, "GET /b", SECOND);
    send_sample(&scene, SPAN, 30);
    send_sample(&scene, SPAN + 1, 50);
    const char *sides = "a.operation=GET+%2Fa&b.operation=GET+%2Fb";
    expect_number(&scene, "diff", sides, "total_a", 30);
    expect_number(&scene, "diff", sides, "total_b", 50);
    expect_number(&scene, "diff", sides, "nodes.2.4", 30);
    expect_number(&scene, "diff", sides, "nodes.2.5", 50);
    expect_number(&scene, "functions", "sort=total&search=MAI", "functions.0.total", 80);
    expect_number(&scene, "functions", "sort=total&search=MAI", "functions.0.self", 0);
    scene_end(&scene);
}

/* ---- parameters ---- */

static const struct {
    const char *path, *query, *message; /* NULL: it is answered */
} questions[] = {
    {"services", "", NULL},
    {"services", "service=shop", "service: there is no such parameter; there are none here"},
    {"span", "span=000000000000002a&x=", "x: there is no such parameter; there are: span trace"},
    {"spans", "a.service=shop", "a.service: there is no such parameter; there are: sort order"},
    {"diff", "a.service=shop&b.service=shop&type=cpu&a.type=cpu&max_nodes=9", NULL},
    {"diff", "service=shop", "service: there is no such parameter; there are: type max_nodes, "},
    {"diff", "c.service=shop", "c.service: there is no such parameter"},
    {"spans", "service=shop&service=cart", "service: is there twice"},
    {"spans", "attribute=size%3D12&attribute=user%3Dann", NULL},
    {"spans", "attribute=size", "attribute: must be key=value"},
    {"spans", "sort=bogus", "sort: must be duration, start or a profile type: cpu"},
    {"spans", "sort=cpu&order=asc&entry=true&limit=1&cursor=0", NULL},
    {"spans", "order=up", "order: must be desc or asc"},
    {"spans", "entry=yes", "entry: must be false or true"},
    {"spans", "limit=1001", "limit: must be a number from 0 to 1000"},
    {"spans", "cursor=-1", "cursor: must be a number from 0 to 4294967295"},
    {"spans", "kind=boss", "kind: must be unspecified, internal, server, client, producer or con"},
    {"spans", "status=bad", "status: must be unset, ok or error"},
    {"spans", "trace=12", "trace: must be 32 hex digits, not all 0"},
    {"spans", "from=now", "from: must be nanoseconds since 1970, or -15m"},
    {"spans", "max_duration=1", "max_duration: must be a duration, such as 250ms"},
    {"spans", "bucket=128", "bucket: must be a number from 0 to 127"},
    {"operations", "sort=p98", "sort: must be spans, errors, p50, p95, p99 or a profile type: "},
    {"operations", "sort=p50", NULL},
    {"functions", "sort=bogus", "sort: must be self or total"},
    {"functions", "type=wall", "type: must be a profile type: cpu"},
    {"histogram", "measure=size", "measure: must be duration or cpu"},
    {"export", "format=svg", "format: must be pprof, collapsed or speedscope"},
    {"flamegraph", "max_nodes=many", "max_nodes: must be a number from 0 to 100000"},
};

static void ask_question(struct scene *scene, size_t i)
{
    struct text body;
    int status = scene_ask_raw(scene, questions[i].path, questions[i].query, &body);
    const char *message = questions[i].message;
    if (status != (message ? 400 : 200) || (message && !strstr(text_string(&body), message)))
        fail_msg("%s?%s: %d %s", questions[i].path, questions[i].query, status, text_string(&body));
    text_deinit(&body);
}

static void test_parameters(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 8 << 20, "samples: {wait: 0s}");
    send_span(&scene, SPAN, "GET /a", SECOND);
    send_sample(&scene, SPAN, 30);
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++)
        ask_question(&scene, i);
    scene_end(&scene);
}

/* Types of one name are told apart by their units. */
static void test_types_of_one_name(void **state)
{
    (void)state;
    static const char *const type_units[] = {"count", "nanoseconds"};
    struct scene scene;
    scene_begin(&scene, 8 << 20, "");
    for (int i = 0; i < 4; i++) {
        struct request request;
        profiles_begin(&request);
        profiles_profile(&request, "contentions", type_units[i % 2]);
        sample_value(&request, profiles_sample(&request, 1), 3 + i % 2);
        scene_send(&scene, &request);
    }
    expect_number(&scene, "services", "", "services.0.costs.contentions", 6);
    expect_number(&scene, "services", "", "services.0.costs.contentions (nanoseconds)", 8);
    expect_number(&scene, "flamegraph", "type=contentions", "total", 6);
    expect_number(&scene, "flamegraph", "type=contentions+(nanoseconds)", "total", 8);
    scene_end(&scene);
}

/* ---- random requests ---- */

enum { SERVICES = 4, TYPES = 2 };
static const char *const types[TYPES] = {"cpu", "alloc_space"};
static const char *const units[TYPES] = {"nanoseconds", "bytes"};

struct totals {
    int64_t values[SERVICES][TYPES];
};

static uint64_t random_span(void)
{
    return 1 + random_below(5000);
}

static void random_spans(struct scene *scene)
{
    struct request request;
    char name[64];
    snprintf(name, sizeof name, "svc%u", random_below(SERVICES));
    traces_begin(&request, name);
    for (uint32_t i = 1 + random_below(20); i > 0; i--) {
        uint64_t id = random_span();
        snprintf(name, sizeof name, "operation %u", random_below(600));
        SpanMessage *span = traces_span(&request, id / 4 + 1, id, WALL,
                                        WALL + (UINT64_C(1) << random_below(36)), name);
        snprintf(name, sizeof name, "value %u", random_below(100000));
        span_string(&request, span, "key", name);
    }
    scene_send(scene, &request);
}

static int32_t random_stack(struct request *request)
{
    const char *functions[12];
    char names[12][32];
    uint32_t depth = 1 + random_below(12);
    for (uint32_t i = 0; i < depth; i++) {
        snprintf(names[i], sizeof names[i], "function %u", random_below(i < 2 ? 3000 : 20));
        functions[i] = names[i];
    }
    return profiles_add_stack(request, functions, depth);
}

static void random_samples(struct request *request)
{
    for (uint32_t i = 1 + random_below(15); i > 0; i--) {
        SampleMessage *sample = profiles_sample(request, random_stack(request));
        if (random_below(4) > 0) {
            uint64_t id = random_span();
            sample_link(request, sample, random_below(8) ? id / 4 + 1 : 0, id);
        }
        sample_value(request, sample, 1 + random_below(1000000));
    }
}

static void random_profiles_request(struct scene *scene)
{
    struct request request;
    char name[32];
    profiles_begin(&request);
    for (uint32_t resources = 1 + random_below(2); resources > 0; resources--) {
        snprintf(name, sizeof name, "svc%u", random_below(SERVICES));
        profiles_resource_string(&request, "service.name", name);
        snprintf(name, sizeof name, "v%u", random_below(3));
        profiles_resource_string(&request, "service.version", name);
        for (uint32_t type = 0; type < TYPES; type++) {
            profiles_profile(&request, types[type], units[type]);
            random_samples(&request);
        }
        if (resources > 1)
            profiles_resource(&request);
    }
    scene_send(scene, &request);
}

/* Adds the values of a request that has left, as protobuf-c reads them. */
static void add_request(struct totals *totals, struct slice bytes)
{
    struct request request;
    request_read_profiles(&request, bytes);
    char *const *strings = request.profiles->dictionary->string_table;
    for (size_t r = 0; r < request.profiles->n_resource_profiles; r++) {
        const char *service = resource_attribute(&request, r, "service.name");
        int64_t *values = totals->values[service[3] - '0'];
        for (size_t p = 0;
             p < request.profiles->resource_profiles[r]->scope_profiles[0]->n_profiles; p++) {
            const ProfileMessage *profile =
                request.profiles->resource_profiles[r]->scope_profiles[0]->profiles[p];
            int type = strcmp(strings[profile->sample_type->type_strindex], types[0]) != 0;
            for (size_t s = 0; s < profile->n_samples; s++)
                for (size_t v = 0; v < profile->samples[s]->n_values; v++)
                    values[type] += profile->samples[s]->values[v];
        }
    }
    request_free(&request);
}

static void add_sent(struct totals *totals, struct scene *scene)
{
    const struct recorder *recorder = &scene->fixture.recorder;
    for (size_t i = 0; i < recorder->count; i++)
        if (recorder->items[i].signal == SIGNAL_PROFILES)
            add_request(totals, slice_of(recorder->items[i].bytes, recorder->items[i].size));
    fixture_clear_recorded(&scene->fixture);
}

static int64_t sum_of_selfs(const json_t *graph)
{
    int64_t sum = 0;
    json_t *node;
    size_t i;
    json_array_foreach(json_object_get(graph, "nodes"), i, node)
    {
        sum += json_integer_value(json_array_get(node, 3));
        assert_true(json_integer_value(json_array_get(node, 0)) < (json_int_t)i || i == 0);
    }
    return sum;
}

static int64_t sum_of_pprof(struct scene *scene, const char *query)
{
    struct text body, report = {0};
    struct error err = {0};
    struct buffer *pprof = NULL;
    const struct pprof_options options = {0};
    long long sum = 0;
    assert_int_equal(scene_ask_raw(scene, "export", query, &body), 200);
    if (body.size == 0)
        return 0;
    enum decompress_result result = decompress(COMPRESSION_GZIP, slice_of(body.data, body.size),
                                               (size_t)1 << 30, NULL, &pprof, &err);
    assert_int_equal(result, DECOMPRESS_OK);
    struct buffer *request = pprof_to_otlp(buffer_slice(pprof), &options, &err);
    if (!request) {
        fail_msg("%s", err.text);
        return 0;
    }
    pprof_report(buffer_slice(request), "x", &report);
    if (report.size > 0)
        assert_int_equal(sscanf(text_string(&report), "x %*s %*s %*d %lld", &sum), 1);
    buffer_unref(request);
    buffer_unref(pprof);
    text_deinit(&report);
    text_deinit(&body);
    return sum;
}

static int64_t sum_of_collapsed(struct scene *scene, const char *query)
{
    struct text body;
    char full[128];
    int64_t sum = 0;
    snprintf(full, sizeof full, "%s&format=collapsed", query);
    assert_int_equal(scene_ask_raw(scene, "export", full, &body), 200);
    for (const char *line = text_string(&body), *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        const char *blank = memrchr(line, ' ', (size_t)(end - line));
        sum += strtoll(blank, NULL, 10);
    }
    text_deinit(&body);
    return sum;
}

static void check_selection(struct scene *scene, const char *query, int64_t wanted)
{
    char small[128];
    snprintf(small, sizeof small, "%s&max_nodes=50", query);
    json_t *whole = scene_ask(scene, "flamegraph", query);
    json_t *cut = scene_ask(scene, "flamegraph", small);
    assert_int_equal(json_number_at(whole, "total"), wanted);
    assert_int_equal(sum_of_selfs(whole), wanted);
    assert_int_equal(sum_of_selfs(cut), wanted);
    assert_true(json_array_size(json_object_get(cut, "nodes")) <= 50);
    assert_int_equal(sum_of_pprof(scene, query), wanted);
    assert_int_equal(sum_of_collapsed(scene, query), wanted);
    json_decref(whole);
    json_decref(cut);
}

static int64_t cost_in_list(const json_t *list, const char *service, const char *type)
{
    json_t *item;
    size_t i;
    int64_t sum = 0;
    json_array_foreach(list, i, item) if (strcmp(json_text_at(item, "service"), service) == 0)
        sum += json_integer_value(json_object_get(json_object_get(item, "costs"), type));
    return sum;
}

/* The slowest span that an operation names is remembered. */
static void check_slowest(struct scene *scene, const json_t *operation)
{
    char query[256];
    const json_t *max = json_object_get(operation, "max_ns");
    if (!json_is_integer(max))
        return;
    long long ns = json_integer_value(max);
    snprintf(query, sizeof query, "service=%s&operation=%s&min_duration=%lldns&max_duration=%lldns",
             json_text_at(operation, "service"), json_text_at(operation, "operation"), ns, ns);
    for (char *blank = query; (blank = strchr(blank, ' '));)
        *blank = '+';
    json_t *spans = scene_ask(scene, "spans", query);
    if (json_number_at(spans, "total") == 0)
        fail_msg("%s: there is none", query);
    json_decref(spans);
}

static void check_all_slowest(struct scene *scene, unsigned *with_max)
{
    json_t *operations = scene_ask(scene, "operations", "sort=p99&limit=100"), *item;
    size_t i;
    json_array_foreach(json_object_get(operations, "operations"), i, item)
    {
        check_slowest(scene, item);
        *with_max += json_is_integer(json_object_get(item, "max_ns"));
    }
    json_decref(operations);
}

static void check_totals(struct scene *scene, const struct totals *totals)
{
    json_t *services = scene_ask(scene, "services", "");
    json_t *operations = scene_ask(scene, "operations", "limit=1000");
    for (int type = 0; type < TYPES; type++) {
        int64_t all = 0;
        char query[64];
        for (int service = 0; service < SERVICES; service++) {
            char name[16];
            int64_t wanted = totals->values[service][type];
            all += wanted;
            snprintf(name, sizeof name, "svc%d", service);
            snprintf(query, sizeof query, "service=%s&type=%s", name, types[type]);
            check_selection(scene, query, wanted);
            assert_int_equal(cost_in_list(json_object_get(services, "services"), name, types[type]),
                             wanted);
            if (json_is_null(json_object_get(operations, "next")))
                assert_int_equal(
                    cost_in_list(json_object_get(operations, "operations"), name, types[type]),
                    wanted);
        }
        snprintf(query, sizeof query, "type=%s", types[type]);
        check_selection(scene, query, all);
    }
    json_decref(services);
    json_decref(operations);
    assert_true(store_bytes(scene->store) <= scene->store->budget_bytes);
}

static void run_random(size_t budget_bytes, int steps, bool merges)
{
    struct scene scene;
    struct totals totals = {0};
    unsigned with_max = 0;
    scene_begin(&scene, budget_bytes, "samples: {wait: 2s}");
    scene.pace = 60; /* an hour of the store in a minute of the join */
    for (int i = 1; i <= steps; i++) {
        if (random_below(3) == 0)
            random_spans(&scene);
        else
            random_profiles_request(&scene);
        if (random_below(4) == 0)
            scene_wait(&scene, random_below(4) * SECOND);
        if (i % (steps / 5) != 0)
            continue;
        add_sent(&totals, &scene);
        check_totals(&scene, &totals);
        check_all_slowest(&scene, &with_max);
    }
    assert_true(with_max > 5);
    json_t *status = scene_ask(&scene, "status", "");
    assert_true((json_number_at(status, "merged.dropped_stacks") > 0) == merges);
    json_decref(status);
    scene_end(&scene);
}

static void test_random(void **state)
{
    (void)state;
    run_random((size_t)64 << 20, 500, false);
}

/* Everything is merged that can be. */
static void test_random_in_little_memory(void **state)
{
    (void)state;
    run_random(STORE_BUDGET_MIN, 3000, true);
    run_random((size_t)1 << 20, 2000, true);
}

/* ---- more operations than there is room for, all within a minute ---- */

/* Adds up a member of a list, on all its pages. */
static int64_t sum_of(struct scene *scene, const char *path, const char *member)
{
    char query[64] = "";
    int64_t sum = 0;
    for (bool has_more = true; has_more;) {
        json_t *answer = scene_ask(scene, path, query), *item;
        size_t i;
        json_array_foreach(json_object_get(answer, path), i, item) sum +=
            json_number_at(item, member);
        const char *next = json_string_value(json_object_get(answer, "next"));
        snprintf(query, sizeof query, "cursor=%s", next ? next : "0");
        has_more = next;
        json_decref(answer);
    }
    return sum;
}

static void send_failure(struct scene *scene, uint64_t span)
{
    struct request request;
    char name[32];
    snprintf(name, sizeof name, "rare %llu", (unsigned long long)span);
    traces_begin(&request, "shop");
    SpanMessage *message = traces_span(&request, TRACE, span, WALL, WALL + SECOND, name);
    message->status->code = 2;
    scene_send(scene, &request);
}

static void test_last_minute_stays(void **state)
{
    (void)state;
    struct scene scene;
    enum { RARE = 4000 };
    scene_begin(&scene, 1 << 20, "samples: {wait: 0s}");
    send_span(&scene, SPAN, "GET /a", SECOND);
    send_sample(&scene, SPAN, 1000000);
    for (uint64_t i = 1; i <= RARE; i++)
        send_failure(&scene, 1000 + i);
    json_t *status = scene_ask(&scene, "status", "");
    assert_true(json_number_at(status, "merged.operations") > 0);
    json_decref(status);
    json_t *graph = scene_ask(&scene, "flamegraph", "operation=GET+%2Fa");
    assert_int_equal(json_number_at(graph, "total"), 1000000);
    assert_string_equal(json_text_at(graph, "names.1"), "main");
    json_decref(graph);
    assert_int_equal(sum_of(&scene, "services", "errors"), RARE);
    assert_int_equal(sum_of(&scene, "operations", "errors"), RARE);
    scene_end(&scene);
}

/* ---- nothing is merged while there is memory ---- */

enum {
    LOAD_BUDGET = 2 << 20,
    LOAD_LATE = LOAD_BUDGET / 4 * 3,
    LOAD_ITEMS = 50 /* of a request */,
    LOAD_OPERATIONS = 64
};

static void load_operations(struct scene *scene, uint64_t turn)
{
    struct request request;
    char name[64];
    snprintf(name, sizeof name, "service %llu", (unsigned long long)turn % 20);
    traces_begin(&request, name);
    for (uint64_t i = 1; i <= LOAD_ITEMS; i++) {
        uint64_t id = turn * LOAD_ITEMS + i;
        snprintf(name, sizeof name, "GET /orders/%llu/items", (unsigned long long)id);
        traces_span(&request, id, id, WALL, WALL + SECOND, name);
    }
    scene_send(scene, &request);
}

static void load_spans(struct scene *scene, uint64_t turn)
{
    struct request request;
    char text[64];
    traces_begin(&request, "shop");
    for (uint64_t i = 1; i <= LOAD_ITEMS; i++) {
        uint64_t id = turn * LOAD_ITEMS + i;
        snprintf(text, sizeof text, "GET /%llu", (unsigned long long)i % LOAD_OPERATIONS);
        SpanMessage *span =
            traces_span(&request, id / 4 + 1, id, WALL, WALL + SECOND / (1 + i % 7), text);
        snprintf(text, sizeof text, "https://shop.example/orders/%llu", (unsigned long long)id);
        span_string(&request, span, "url.full", text);
    }
    scene_send(scene, &request);
}

static void load_stacks(struct scene *scene, uint64_t turn)
{
    static const uint64_t ways[] = {9973, 997, 499, 251, 127, 61, 31, 13, 7, 3, 2, 1};
    enum { DEPTH = sizeof ways / sizeof *ways };
    struct request request;
    const char *functions[DEPTH];
    char names[DEPTH][32];
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", "shop");
    profiles_profile(&request, "cpu", "nanoseconds");
    for (uint64_t i = 1; i <= LOAD_ITEMS; i++) {
        for (size_t f = 0; f < DEPTH; f++) {
            uint64_t way = (turn * LOAD_ITEMS + i) * 7919 % ways[f];
            snprintf(names[f], sizeof names[f], "function %llu", (unsigned long long)way);
            functions[f] = names[f];
        }
        int32_t stack = profiles_add_stack(&request, functions, DEPTH);
        sample_value(&request, profiles_sample(&request, stack), 1);
    }
    scene_send(scene, &request);
}

static uint64_t count_merged(const struct store *store)
{
    const struct store_merged *merged = &store->cells.merged;
    return merged->minutes + merged->operations + merged->stacks + store->names.missed;
}

static void run_load(void (*send)(struct scene *scene, uint64_t turn), const char *path,
                     const char *member, bool merges)
{
    struct scene scene;
    uint64_t turn = 0, late = 0;
    scene_begin(&scene, LOAD_BUDGET, "samples: {wait: 0s}");
    for (; turn < 500 && late < 40; turn++) {
        size_t used = store_bytes(scene.store);
        uint64_t merged = count_merged(scene.store);
        send(&scene, turn);
        late += late > 0 || used >= LOAD_LATE;
        if (merged == 0 && count_merged(scene.store) > 0)
            assert_true(used >= LOAD_LATE);
        assert_true(store_bytes(scene.store) <= LOAD_BUDGET);
    }
    assert_true(late > 0);
    assert_true((count_merged(scene.store) > 0) == merges);
    assert_int_equal(sum_of(&scene, path, member), turn * LOAD_ITEMS);
    scene_end(&scene);
}

static void test_merging_begins_late(void **state)
{
    (void)state;
    run_load(load_operations, "operations", "spans", true);
    run_load(load_spans, "services", "spans", false); /* the oldest spans go */
    run_load(load_stacks, "services", "costs.cpu", true);
}

/* ---- lists and files that are long ---- */

static uint64_t duration_of(uint64_t i)
{
    return 1 + i * 7919 % 1000 * SECOND / 1000;
}

/* Pages have every span once, in the order of the whole list. */
static void test_pages_of_spans(void **state)
{
    (void)state;
    enum { SPANS = 700, PAGE = 64 };
    struct scene scene;
    char query[64];
    int64_t before = INT64_MAX;
    scene_begin(&scene, 8 << 20, "samples: {wait: 0s}");
    for (uint64_t i = 0; i < SPANS; i++)
        send_span(&scene, i + 1, "GET /a", duration_of(i));
    for (size_t from = 0; from < SPANS; from += PAGE) {
        snprintf(query, sizeof query, "limit=%d&cursor=%zu", PAGE, from);
        json_t *answer = scene_ask(&scene, "spans", query), *span;
        size_t i, wanted = SPANS - from < PAGE ? SPANS - from : PAGE;
        assert_int_equal(json_number_at(answer, "total"), SPANS);
        assert_int_equal(json_array_size(json_object_get(answer, "spans")), wanted);
        json_array_foreach(json_object_get(answer, "spans"), i, span)
        {
            int64_t ns = json_number_at(span, "duration_ns");
            assert_true(ns <= before);
            before = ns;
        }
        json_decref(answer);
    }
    expect_number(&scene, "spans", "cursor=99999", "total", SPANS);
    scene_end(&scene);
}

/* Adds a stack of long names that is as deep as they may be, with a value at its last functions. */
static void add_deep_stack(struct store *store, uint32_t number, uint32_t last)
{
    static char name[STORE_TEXT_MAX];
    struct store_names *names = &store->names;
    uint32_t service = store_cells_service(&store->cells, STORE_TEXT_EMPTY);
    const struct store_cell key = {
        .operation = store_cells_operation(&store->cells, service, STORE_TEXT_EMPTY, 0)};
    struct store_entry entry = {.cell = store_cells_cell(&store->cells, &key),
                                .bucket = STORE_BUCKET_ANY};
    entry.type = store_cells_type(&store->cells, store_names_text(names, SLICE("cpu"), 100),
                                  store_names_text(names, SLICE("nanoseconds"), 100));
    memset(name, 'x', sizeof name);
    for (uint32_t i = 0; i < STORE_DEPTH_MAX; i++) {
        int digits = snprintf(name, 16, "%u.%u", number, i);
        name[digits] = ' '; /* in place of the NUL */
        uint32_t text = store_names_text(names, slice_of(name, sizeof name), STORE_TEXT_MAX);
        uint32_t frame = store_names_frame(names, text, STORE_TEXT_EMPTY);
        entry.node = store_names_node(names, entry.node, frame);
        entry.value = number * 1000 + i;
        if (i + last >= STORE_DEPTH_MAX)
            store_cells_add(&store->cells, &entry);
    }
}

/* Stacks that make a file too large become "(other)"; the total stays. */
static void test_large_export(void **state)
{
    (void)state;
    enum { STACKS = 3, LAST = 30 /* 15 MiB of text each */, FILE_MAX = 17 << 20 };
    struct scene scene;
    struct text body;
    scene_begin(&scene, 64 << 20, "");
    for (uint32_t i = 1; i <= STACKS; i++)
        add_deep_stack(scene.store, i, LAST);
    json_t *graph = scene_ask(&scene, "flamegraph", "");
    int64_t total = json_number_at(graph, "total");
    assert_int_equal(sum_of_collapsed(&scene, "type=cpu"), total);
    assert_int_equal(sum_of_pprof(&scene, "type=cpu"), total);
    assert_int_equal(scene_ask_raw(&scene, "export", "format=collapsed", &body), 200);
    assert_in_range(body.size, FILE_MAX / 2, FILE_MAX);
    assert_int_equal(strncmp(text_string(&body), "(other) ", 8), 0);
    assert_non_null(strstr(text_string(&body), "3.511 x")); /* the largest stays */
    text_deinit(&body);
    json_decref(graph);
    scene_end(&scene);
}

/* ---- limits ---- */

/* Operations that call themselves "(other)" take no room from those that stand for others. */
static void test_each_service_keeps_its_own(void **state)
{
    (void)state;
    enum { SERVICES_OF_ALL = 16, KINDS = 6 };
    struct store *store = store_new(STORE_BUDGET_MIN, WALL);
    struct store_cells *cells = &store->cells;
    uint32_t services[SERVICES_OF_ALL];
    char name[32];
    for (uint32_t s = 0; s < SERVICES_OF_ALL; s++) {
        snprintf(name, sizeof name, "service %u", s);
        services[s] = store_cells_service(
            cells, store_names_text(&store->names, slice_of_string(name), STORE_TEXT_MAX));
    }
    store->pool.limit = store->pool.used; /* nothing grows any more */
    for (uint32_t s = 0; s < SERVICES_OF_ALL; s++)
        for (unsigned kind = 1; kind < KINDS; kind++)
            store_cells_operation(cells, services[s], STORE_TEXT_MERGED, (uint8_t)kind);
    for (uint32_t s = 0; s < SERVICES_OF_ALL; s++) {
        uint32_t operation = store_cells_operation(cells, services[s], STORE_TEXT_MERGED, 0);
        assert_int_equal(store_operation_at(cells, operation)->service, services[s]);
    }
    store_free(store);
}

/* With little traffic, minutes stay minutes for days; the newest ones are in the answer. */
static void test_histogram_of_days(void **state)
{
    (void)state;
    enum { MINUTES = 5000 };
    struct scene scene;
    scene_begin(&scene, 32 << 20, "samples: {wait: 0s}");
    for (uint64_t i = 0; i < MINUTES; i++) {
        send_span(&scene, i + 1, "GET /a", SECOND);
        scene.wall_ns += STORE_MINUTE_NS;
    }
    json_t *answer = scene_ask(&scene, "histogram", "");
    const json_t *rows = json_object_get(answer, "rows");
    uint64_t last =
        strtoull(json_text_at(json_array_get(rows, json_array_size(rows) - 1), "time"), NULL, 10);
    uint64_t newest = (WALL / STORE_MINUTE_NS + MINUTES - 1) * STORE_MINUTE_NS;
    assert_true(last == newest);
    assert_int_equal(json_number_at(json_array_get(rows, 0), "width_ns"), 3600000000000);
    assert_true(json_array_size(rows) < 1600);
    json_decref(answer);
    scene_end(&scene);
}

/* ---- any request that the scan accepts ---- */

static struct join_offer *offer_of(struct buffer *buffer, enum signal signal, uint32_t keys)
{
    struct join_offer *offer = memory_zalloc(sizeof *offer + sizeof(struct buffer *));
    offer->signal = signal;
    offer->part_count = 1;
    offer->parts[0] = buffer;
    offer->report =
        signal == SIGNAL_PROFILES ? join_report_new((struct join_report_size){.keys = keys}) : NULL;
    for (uint32_t k = 0; k < keys; k++)
        offer->report->keys[k].span_id[0] = offer->report->keys[k].trace_id[0] = (uint8_t)k;
    return offer;
}

static void test_random_dictionaries(void **state)
{
    (void)state;
    struct budget budget = {0};
    struct random_client client = {.texts_are_unique = true, .shapes_differ = true};
    struct store *store = store_new(STORE_BUDGET_MIN, WALL);
    random_client_begin(&client);
    for (uint64_t i = 0; i < 3000; i++) {
        random_client_change(&client);
        struct join_offer *offer =
            offer_of(random_request(&client, &budget), SIGNAL_PROFILES, random_below(40));
        store_add(store, offer, WALL + i * SECOND * 7, 1);
        store_make_room(store);
        join_offer_free(offer);
        assert_true(store_bytes(store) <= STORE_BUDGET_MIN);
    }
    random_client_deinit(&client);
    store_free(store);
    assert_int_equal(budget_used(&budget), 0);
}

/* ---- hostile names ---- */

static void test_long_names(void **state)
{
    (void)state;
    struct scene scene;
    enum { LONG = 1 << 20 };
    char *name = memory_alloc(LONG + 1);
    memset(name, 'x', LONG);
    name[LONG] = '\0';
    scene_begin(&scene, 1 << 20, "samples: {wait: 0s}");
    for (int i = 0; i < 60; i++) {
        struct request request;
        const char *functions[] = {name};
        snprintf(name, LONG, "<script>%d</script>", i);
        name[strlen(name)] = 'y';
        profiles_begin(&request);
        profiles_resource_string(&request, "service.name", "shop");
        profiles_profile(&request, "cpu", "nanoseconds");
        sample_value(&request,
                     profiles_sample(&request, profiles_add_stack(&request, functions, 1)), 5);
        scene_send(&scene, &request);
        send_span(&scene, (uint64_t)i + 1, name, SECOND);
    }
    expect_number(&scene, "flamegraph", "", "total", 300);
    json_decref(scene_ask(&scene, "spans", ""));
    json_decref(scene_ask(&scene, "operations", ""));
    assert_true(store_bytes(scene.store) <= (size_t)1 << 20);
    scene_end(&scene);
    free(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_span_first),
        cmocka_unit_test(test_sample_first),
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_answered_calls),
        cmocka_unit_test(test_span_twice),
        cmocka_unit_test(test_long_after_the_window),
        cmocka_unit_test(test_large_trace),
        cmocka_unit_test(test_circle_of_parents),
        cmocka_unit_test(test_version_of_the_span),
        cmocka_unit_test(test_samples_outside_of_requests_have_no_status),
        cmocka_unit_test(test_names_that_are_no_text),
        cmocka_unit_test(test_counts_of_a_period),
        cmocka_unit_test(test_cpu_of_every_profiler),
        cmocka_unit_test(test_ambiguous_threads),
        cmocka_unit_test(test_diff_and_functions),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_types_of_one_name),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_random_in_little_memory),
        cmocka_unit_test(test_last_minute_stays),
        cmocka_unit_test(test_merging_begins_late),
        cmocka_unit_test(test_pages_of_spans),
        cmocka_unit_test(test_large_export),
        cmocka_unit_test(test_each_service_keeps_its_own),
        cmocka_unit_test(test_histogram_of_days),
        cmocka_unit_test(test_random_dictionaries),
        cmocka_unit_test(test_long_names),
    };
    scan_init();
    return cmocka_run_group_tests_name("store of explore", tests, NULL, NULL);
}

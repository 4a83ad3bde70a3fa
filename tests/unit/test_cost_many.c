/*
 * The cost of many small requests that are all held; the sender chooses their number.
 *
 * The "request" of a case is a list of OTLP requests (see cost.h). Twice as many requests must cost
 * twice as much, however many are held already.
 */
#include "core/pipeline/component.h"
#include "tests/unit/cost.h"
#include "tests/unit/pipeline_fixture.h"
#include "tests/unit/spanjoin_requests.h"

#include <assert.h>

extern const struct component_type spanjoin_processor_type;

enum { LIST_TRACES = 1, LIST_PROFILES = 2 }; /* fields of the list; each request has one item */
enum { LIST_ITEMS = 3 };                     /* unless this field says how many the next one has */
enum { TRACE = 7, SPAN = 9, WAIT_S = 5 };

/* ---- lists ---- */

static void add_request(struct wire_writer *out, struct request *request)
{
    assert(request->items == 1);
    wire_writer_bytes(out, request->traces ? LIST_TRACES : LIST_PROFILES, request_encode(request));
    request_free(request);
}

static void add_sample(struct wire_writer *out, uint64_t span)
{
    struct request request;
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, TRACE, span);
    sample_value(&request, sample, 30);
    add_request(out, &request);
}

static void add_span(struct wire_writer *out, uint64_t span)
{
    struct request request;
    traces_begin(&request, "shop");
    traces_span(&request, TRACE, span, WALL, WALL + SECOND, "pay");
    add_request(out, &request);
}

static void samples_of_many_spans(struct wire_writer *out, size_t size)
{
    for (uint64_t span = SPAN; out->size < size; span++)
        add_sample(out, span);
}

static void samples_of_one_span(struct wire_writer *out, size_t size)
{
    while (out->size < size)
        add_sample(out, SPAN);
}

/* The span that all wait for comes last. */
static void samples_then_their_span(struct wire_writer *out, size_t size)
{
    samples_of_one_span(out, size);
    add_span(out, SPAN);
}

static void many_spans(struct wire_writer *out, size_t size)
{
    for (uint64_t span = SPAN; out->size < size; span++)
        add_span(out, span);
}

/* An upload of 10 s, whose sample names no span, so that it does not wait. */
static void add_upload(struct wire_writer *out, uint64_t begin_s)
{
    struct request request;
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", "shop");
    ProfileMessage *profile = profiles_profile(&request, "cpu", "nanoseconds");
    profile->time_unix_nano = WALL + begin_s * SECOND + SECOND / 2;
    profile->duration_nano = 10 * SECOND;
    sample_value(&request, profiles_sample(&request, 1), 30);
    add_request(out, &request);
}

/* All spans wait for an upload that is missing between two others. It comes last. */
static void spans_in_a_gap(struct wire_writer *out, size_t size)
{
    add_upload(out, 0);
    add_upload(out, 20);
    for (uint64_t span = SPAN; out->size < size; span++) {
        struct request request;
        traces_begin(&request, "shop");
        traces_span(&request, TRACE, span, WALL + 12 * SECOND, WALL + 18 * SECOND, "pay");
        add_request(out, &request);
    }
    add_upload(out, 10);
}

enum { THREAD = 31 };

static void add_span_of_thread(struct wire_writer *out, uint64_t span, uint64_t start_ns)
{
    struct request request;
    traces_begin(&request, "shop");
    SpanMessage *message =
        traces_span(&request, TRACE, span, WALL + start_ns, WALL + start_ns + 10, "pay");
    span_int(&request, message, "thread.id", THREAD);
    add_request(out, &request);
}

/* Adds requests with a sample of one thread each, at any time of 100 s. */
static void add_samples_of_thread(struct wire_writer *out, size_t size)
{
    for (uint64_t i = 1; out->size < size; i++) {
        struct request request;
        profiles_begin(&request);
        profiles_resource_string(&request, "service.name", "shop");
        profiles_profile(&request, "cpu", "nanoseconds");
        SampleMessage *sample = profiles_sample(&request, 1);
        sample_int(&request, sample, "thread.id", THREAD);
        sample_time(&request, sample, WALL + 10 * SECOND + i * 7919 % 100000 * SECOND / 1000);
        add_request(out, &request);
    }
}

/* Requests of two traces take turns on the thread all the time, so that it is not known whose its
 * samples are. */
static void doubted_samples_of_a_thread(struct wire_writer *out, size_t size)
{
    for (uint64_t i = 0; i < 2; i++) {
        struct request request;
        traces_begin(&request, "shop");
        traces_resource_string(&request, "telemetry.sdk.language", "go");
        SpanMessage *span = traces_span(&request, TRACE + i, SPAN + i, WALL + (1 + i) * SECOND,
                                        WALL + (300 + i) * SECOND, "pay");
        span_int(&request, span, "thread.id", THREAD);
        add_request(out, &request);
    }
    add_samples_of_thread(out, size);
}

/* Samples of one thread at any time, and then spans that began before them, but own none. */
static void long_spans_of_a_thread(struct wire_writer *out, size_t size)
{
    add_span_of_thread(out, SPAN, SECOND);
    add_samples_of_thread(out, size / 2);
    for (uint64_t i = 1; out->size < size; i++)
        add_span_of_thread(out, SPAN + i, 20 * SECOND + 20 * i);
}

/* Gives a sample an attribute that another one has, before those of its own. */
static void share_attribute(struct request *request, SampleMessage *sample, int32_t attribute)
{
    size_t count = sample->n_attribute_indices;
    int32_t *indices = arena_array(&request->arena, count + 1, sizeof *indices);
    indices[0] = attribute;
    memcpy(indices + 1, sample->attribute_indices, count * sizeof *indices);
    sample->attribute_indices = indices;
    sample->n_attribute_indices = count + 1;
}

/* One request: each sample is of another thread, and all threads have the same long name. */
static void threads_with_a_long_name(struct wire_writer *out, size_t size)
{
    enum { THREADS = 1000 };
    struct request request;
    add_span_of_thread(out, SPAN, SECOND);
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", "shop");
    profiles_profile(&request, "cpu", "nanoseconds");
    char *name = arena_zalloc(&request.arena, size + 1);
    memset(name, 'x', size);
    SampleMessage *first = profiles_sample(&request, 1);
    sample_string(&request, first, "thread.name", name);
    for (size_t i = 0; i < THREADS; i++) {
        SampleMessage *sample = profiles_sample(&request, 1);
        sample_int(&request, sample, "thread.id", (int64_t)(THREAD + 1 + i));
        sample_time(&request, sample, WALL + 10 * SECOND + i);
        share_attribute(&request, sample, first->attribute_indices[0]);
    }
    wire_writer_varint(out, LIST_ITEMS, request.items);
    wire_writer_bytes(out, LIST_PROFILES, request_encode(&request));
    request_free(&request);
}

/* ---- the join ---- */

struct join {
    struct fixture fixture;
    struct fixture_place *places[SIGNAL_OPENED_COUNT];
    size_t sent;
};

static void start(struct join *join)
{
    static const char yaml[] = "processors: {spanjoin: {max_held_mib: 1000, samples: {wait: 5s}, "
                               "spans: {wait: 5s}}}";
    *join = (struct join){.sent = 0};
    fixture_init(&join->fixture, 1);
    join->fixture.budget.limit_bytes = SIZE_MAX / 4;
    for (int signal = 0; signal < SIGNAL_OPENED_COUNT; signal++)
        join->places[signal] =
            fixture_place(&join->fixture, &spanjoin_processor_type, "spanjoin", yaml,
                          signal_name((enum signal)signal), (enum signal)signal);
}

static void send_all(struct join *join, struct slice list)
{
    struct wire_cursor cursor = wire_cursor(list);
    struct wire_field field;
    while (wire_next(&cursor, &field) && field.type == WIRE_BYTES) {
        enum signal signal = field.number == LIST_TRACES ? SIGNAL_TRACES : SIGNAL_PROFILES;
        fixture_consume(&join->fixture, join->places[signal]->nodes[0], field.bytes, 1, NULL);
        join->sent++;
    }
}

static size_t held(const struct join *join)
{
    return (size_t)metrics_value(join->fixture.process.metrics, "profcol_spanjoin_held_requests",
                                 "spanjoin=\"spanjoin\"");
}

/* All requests wait at the same time, and are sent on when their wait ends. */
static bool send_and_wait(struct slice list, struct verdict *why)
{
    struct join join;
    start(&join);
    send_all(&join, list);
    *why = verdict_ok;
    bool were_held = held(&join) == join.sent;
    fixture_advance(&join.fixture, WAIT_S * SECOND);
    fixture_advance(&join.fixture, SECOND); /* each turn sends a few */
    bool have_left = held(&join) == 0 && join.fixture.recorder.count == join.sent;
    fixture_deinit(&join.fixture);
    return were_held && have_left;
}

/* The last request has what all others wait for, but waits itself. */
static bool send_and_find(struct slice list, struct verdict *why)
{
    struct join join;
    start(&join);
    send_all(&join, list);
    *why = verdict_ok;
    fixture_advance(&join.fixture, SECOND);
    bool have_left = join.fixture.recorder.count >= join.sent - 1;
    fixture_deinit(&join.fixture);
    return have_left;
}

/* Samples have left when spans come, which wait. labels: of those that found no span. */
static bool send_and_leave_as(struct slice list, struct verdict *why, const char *labels)
{
    struct join join;
    struct wire_cursor cursor = wire_cursor(list);
    struct wire_field field;
    start(&join);
    *why = verdict_ok;
    uint32_t items = 1;
    for (bool were_profiles = false; wire_next(&cursor, &field);) {
        if (field.number == LIST_ITEMS) {
            items = (uint32_t)field.value;
            continue;
        }
        bool are_profiles = field.number == LIST_PROFILES;
        if (were_profiles && !are_profiles) {
            fixture_advance(&join.fixture, WAIT_S * SECOND);
            fixture_advance(&join.fixture, SECOND);
        }
        were_profiles = are_profiles;
        fixture_consume(&join.fixture,
                        join.places[are_profiles ? SIGNAL_PROFILES : SIGNAL_TRACES]->nodes[0],
                        field.bytes, items, NULL);
        items = 1;
        join.sent++;
    }
    fixture_advance(&join.fixture, WAIT_S * SECOND);
    fixture_advance(&join.fixture, SECOND);
    bool have_left = held(&join) == 0 && join.fixture.recorder.count == join.sent;
    have_left &= metrics_value(join.fixture.process.metrics, "profcol_spanjoin_samples_unjoined",
                               labels) > 0;
    fixture_deinit(&join.fixture);
    return have_left;
}

static bool send_and_leave(struct slice list, struct verdict *why)
{
    return send_and_leave_as(list, why, "spanjoin=\"spanjoin\",reason=\"no_span_on_thread\"");
}

static bool send_and_doubt(struct slice list, struct verdict *why)
{
    return send_and_leave_as(list, why, "spanjoin=\"spanjoin\",reason=\"ambiguous_thread\"");
}

/* All requests are sent on because the process ends. */
static bool send_and_drain(struct slice list, struct verdict *why)
{
    struct join join;
    start(&join);
    send_all(&join, list);
    *why = verdict_ok;
    bool were_held = held(&join) == join.sent;
    fixture_drain(join.places[SIGNAL_PROFILES]->nodes[0]);
    fixture_advance(&join.fixture, SECOND);
    bool have_left = held(&join) == 0 && join.fixture.recorder.count == join.sent;
    fixture_deinit(&join.fixture);
    return were_held && have_left;
}

int main(int argc, char **argv)
{
    static const struct cost_case cases[] = {
        {"held_samples", samples_of_many_spans, send_and_wait, GRPC_OK},
        {"held_samples_one_span", samples_of_one_span, send_and_wait, GRPC_OK},
        {"held_samples_found", samples_then_their_span, send_and_find, GRPC_OK},
        {"held_samples_drained", samples_of_many_spans, send_and_drain, GRPC_OK},
        {"held_spans", many_spans, send_and_wait, GRPC_OK},
        {"held_spans_in_a_gap", spans_in_a_gap, send_and_find, GRPC_OK},
        {"long_spans_of_a_thread", long_spans_of_a_thread, send_and_leave, GRPC_OK},
        {"threads_with_a_long_name", threads_with_a_long_name, send_and_leave, GRPC_OK},
        {"doubted_samples_of_a_thread", doubted_samples_of_a_thread, send_and_doubt, GRPC_OK},
    };
    return cost_main(argc, argv, cases, sizeof cases / sizeof *cases);
}

/*
 * The cost of traces that wait in tail_sampling; the sender chooses their number.
 *
 * A request has as many traces as fit, of one small span each. Twice as many must cost twice as
 * much, whatever ends their wait; and so must as many requests of one trace, late spans, and
 * samples of many traces.
 */
#include "core/data/otlp.h"
#include "tests/unit/cost.h"
#include "tests/unit/tail_requests.h"

#define SECOND UINT64_C(1000000000)

static void many_traces(struct wire_writer *out, size_t size)
{
    tail_write_traces(out, size / TAIL_SPAN_BYTES);
}

static uint32_t samples_written;

/* A sample for each of many traces. */
static void many_links(struct wire_writer *out, size_t size)
{
    enum { LINK_BYTES = 40 }; /* of a link and its sample */
    uint64_t count = size / LINK_BYTES;
    samples_written = (uint32_t)count;
    size_t dictionary = wire_writer_begin(out, PROFILES_DICTIONARY);
    wire_writer_bytes(out, DICTIONARY_STRING_TABLE, slice_of("", 0));
    wire_writer_bytes(out, DICTIONARY_LINK_TABLE, slice_of("", 0));
    for (uint64_t i = 1; i <= count; i++) {
        uint8_t id[TRACE_ID_SIZE] = {1};
        memcpy(id + 8, &i, sizeof i);
        size_t link = wire_writer_begin(out, DICTIONARY_LINK_TABLE);
        wire_writer_bytes(out, LINK_TRACE_ID, slice_of(id, TRACE_ID_SIZE));
        wire_writer_bytes(out, LINK_SPAN_ID, slice_of(id, SPAN_ID_SIZE));
        wire_writer_end(out, link);
    }
    wire_writer_end(out, dictionary);
    size_t group = wire_writer_begin(out, PROFILES_RESOURCE_PROFILES);
    size_t scope = wire_writer_begin(out, RESOURCE_PROFILES_SCOPE_PROFILES);
    size_t profile = wire_writer_begin(out, SCOPE_PROFILES_PROFILES);
    for (uint64_t i = 1; i <= count; i++) {
        size_t sample = wire_writer_begin(out, PROFILE_SAMPLES);
        wire_writer_varint(out, SAMPLE_LINK_INDEX, i);
        wire_writer_end(out, sample);
    }
    wire_writer_end(out, profile);
    wire_writer_end(out, scope);
    wire_writer_end(out, group);
}

/* ---- the processor ---- */

static uint32_t spans_sent(const struct fixture *f)
{
    uint32_t spans = 0;
    for (size_t i = 0; i < f->recorder.count; i++)
        spans += f->recorder.items[i].items;
    return spans;
}

/* Places the processor for traces; what it holds has no limit but that of the settings. */
static struct fixture_place *begin(struct fixture *f, const char *settings)
{
    fixture_init(f, 1);
    f->budget.limit_bytes = SIZE_MAX / 4;
    return tail_place(f, SIGNAL_TRACES, settings);
}

/* Ends the test, if so many spans have left by now. */
static bool end_with(struct fixture *f, uint32_t spans)
{
    bool have_left = spans_sent(f) == spans;
    fixture_deinit(f);
    return have_left;
}

/* Sends the request and ends the wait. Returns whether what is sampled has left, and no other. */
static bool consume(const char *settings, bool drains, bool samples, struct slice request)
{
    struct fixture f;
    uint32_t spans = (uint32_t)(request.size / TAIL_SPAN_BYTES);
    struct fixture_place *traces = begin(&f, settings);
    fixture_consume(&f, traces->nodes[0], request, spans, NULL);
    fixture_advance(&f, 0); /* the job that reads it */
    if (drains)
        fixture_drain(traces->nodes[0]);
    fixture_advance(&f, 2 * SECOND);
    bool have_left = spans_sent(&f) == (samples ? spans : 0) && fixture_is_idle(traces->nodes[0]);
    fixture_deinit(&f);
    return have_left;
}

static bool send_sampled(struct slice request, struct verdict *why)
{
    *why = verdict_ok;
    return consume("decision_wait: 1s, num_traces: 1000000, max_held_mib: 1000, " TAIL_ALL, false,
                   true, request);
}

static bool send_not_sampled(struct slice request, struct verdict *why)
{
    *why = verdict_ok;
    return consume("decision_wait: 1s, num_traces: 1000000, max_held_mib: 1000, " TAIL_ERRORS,
                   false, false, request);
}

static bool send_drained(struct slice request, struct verdict *why)
{
    *why = verdict_ok;
    return consume("decision_wait: 60s, num_traces: 1000000, max_held_mib: 1000, " TAIL_ALL, true,
                   true, request);
}

/* Each trace pushes the one before out. */
static bool send_pushed_out(struct slice request, struct verdict *why)
{
    *why = verdict_ok;
    return consume("decision_wait: 1s, num_traces: 1, max_held_mib: 1000, " TAIL_ALL, false, true,
                   request);
}

static bool send_beyond_memory(struct slice request, struct verdict *why)
{
    *why = verdict_ok;
    return consume("decision_wait: 1s, num_traces: 1000000, max_held_mib: 1, " TAIL_ALL, false,
                   true, request);
}

/* Other policies, for which all spans are read again. */
static bool send_before_reload(struct slice request, struct verdict *why)
{
    struct fixture f;
    uint32_t spans = (uint32_t)(request.size / TAIL_SPAN_BYTES);
    *why = verdict_ok;
    struct fixture_place *traces =
        begin(&f, "decision_wait: 60s, num_traces: 1000000, max_held_mib: 1000, " TAIL_ERRORS);
    fixture_consume(&f, traces->nodes[0], request, spans, NULL);
    fixture_advance(&f, 0);
    tail_change(&f, traces,
                "decision_wait: 1s, num_traces: 1000000, max_held_mib: 1000, policies: [{name: p, "
                "type: status_code, status_code: {status_codes: [UNSET]}}]");
    fixture_advance(&f, 2 * SECOND);
    return end_with(&f, spans);
}

/* Each request has one span; all are of one trace. */
static bool send_one_by_one(struct slice request, struct verdict *why)
{
    struct fixture f;
    struct wire_writer one = {0};
    uint32_t count = (uint32_t)(request.size / TAIL_SPAN_BYTES);
    *why = verdict_ok;
    tail_write_traces(&one, 1);
    struct fixture_place *traces = begin(&f, "decision_wait: 1s, max_held_mib: 1000, " TAIL_ALL);
    for (uint32_t i = 0; i < count; i++)
        fixture_consume(&f, traces->nodes[0], wire_writer_slice(&one), 1, NULL);
    fixture_advance(&f, 2 * SECOND);
    wire_writer_deinit(&one);
    return end_with(&f, count);
}

static bool send_late(struct slice request, struct verdict *why)
{
    struct fixture f;
    uint32_t spans = (uint32_t)(request.size / TAIL_SPAN_BYTES);
    *why = verdict_ok;
    struct fixture_place *traces =
        begin(&f, "decision_wait: 1s, num_traces: 1000000, max_held_mib: 1000, decision_cache: "
                  "{sampled_cache_size: 1000000}, " TAIL_ALL);
    for (int i = 0; i < 2; i++) {
        fixture_consume(&f, traces->nodes[0], request, spans, NULL);
        fixture_advance(&f, 2 * SECOND);
    }
    return end_with(&f, 2 * spans);
}

#define SAMPLES_ABOVE "policies: [{name: p, type: samples_above, samples_above: {threshold: 1}}]"

/* Sends samples, which wait for spans, and changes the settings meanwhile if there are others. */
static bool wait_for_spans(const char *settings, const char *changed, struct slice request)
{
    struct fixture f;
    struct fixture_place *traces = begin(&f, settings);
    struct node *node = tail_place(&f, SIGNAL_PROFILES, "")->nodes[0];
    fixture_consume(&f, node, request, samples_written, NULL);
    if (changed)
        tail_change(&f, traces, changed);
    fixture_advance(&f, 2 * SECOND);
    bool have_left = f.recorder.count == 1 && f.recorder.items[0].items == samples_written;
    fixture_deinit(&f);
    return have_left;
}

/* They count for a policy. */
static bool send_samples(struct slice request, struct verdict *why)
{
    *why = verdict_ok;
    return wait_for_spans(
        "num_traces: 1000000, max_held_mib: 1000, profiles: {wait: 1s}, " SAMPLES_ABOVE, NULL,
        request);
}

/* They are read again for it. */
static bool send_samples_before_reload(struct slice request, struct verdict *why)
{
    *why = verdict_ok;
    return wait_for_spans(
        "num_traces: 1000000, max_held_mib: 1000, profiles: {wait: 1s}, " TAIL_ALL,
        "num_traces: 1000000, max_held_mib: 1000, profiles: {wait: 1s}, " SAMPLES_ABOVE, request);
}

int main(int argc, char **argv)
{
    static const struct cost_case cases[] = {
        {"tail_sampled", many_traces, send_sampled, GRPC_OK},
        {"tail_not_sampled", many_traces, send_not_sampled, GRPC_OK},
        {"tail_drained", many_traces, send_drained, GRPC_OK},
        {"tail_pushed_out", many_traces, send_pushed_out, GRPC_OK},
        {"tail_beyond_memory", many_traces, send_beyond_memory, GRPC_OK},
        {"tail_before_reload", many_traces, send_before_reload, GRPC_OK},
        {"tail_one_by_one", many_traces, send_one_by_one, GRPC_OK},
        {"tail_late", many_traces, send_late, GRPC_OK},
        {"tail_samples", many_links, send_samples, GRPC_OK},
        {"tail_samples_before_reload", many_links, send_samples_before_reload, GRPC_OK},
    };
    return cost_main(argc, argv, cases, sizeof cases / sizeof *cases);
}

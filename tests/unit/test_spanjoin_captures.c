/*
 * Recorded requests through the join: every sample that names a span finds it, and nothing else
 * changes.
 *
 * The expected results are computed from the recordings with protobuf-c, independently of the
 * tested code.
 */
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/data/normalise.h"
#include "tests/unit/captures.h"
#include "tests/unit/pipeline_fixture.h"
#include "tests/unit/spanjoin_requests.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type spanjoin_processor_type;

struct known_span {
    uint8_t trace_id[TRACE_ID_SIZE];
    uint8_t span_id[SPAN_ID_SIZE];
};

struct flow {
    struct fixture fixture;
    struct fixture_place *places[SIGNAL_OPENED_COUNT];
    const char *prefix;
    enum signal signal; /* of the request being sent */
    struct known_span *spans;
    size_t span_count;
    unsigned requests[SIGNAL_OPENED_COUNT];
    uint64_t samples;
    uint64_t named; /* samples with a span id */
    uint64_t known; /* whose span was recorded */
};

static void begin(struct flow *flow, const char *prefix, const char *settings)
{
    char yaml[256];
    snprintf(yaml, sizeof yaml, "processors: {spanjoin: {%s}}", settings);
    *flow = (struct flow){.prefix = prefix};
    fixture_init(&flow->fixture, 1);
    flow->places[SIGNAL_TRACES] = fixture_place(&flow->fixture, &spanjoin_processor_type,
                                                "spanjoin", yaml, "traces", SIGNAL_TRACES);
    flow->places[SIGNAL_PROFILES] = fixture_place(&flow->fixture, &spanjoin_processor_type,
                                                  "spanjoin", yaml, "profiles", SIGNAL_PROFILES);
}

static void end(struct flow *flow)
{
    fixture_deinit(&flow->fixture);
    free(flow->spans);
}

static double metric(struct flow *flow, const char *name, const char *reason)
{
    char labels[96];
    snprintf(labels, sizeof labels, "spanjoin=\"spanjoin\"%s%s%s", reason ? ",reason=\"" : "",
             reason ? reason : "", reason ? "\"" : "");
    return metrics_value(flow->fixture.process.metrics, name, labels);
}

/* ---- the contents of the recordings ---- */

static void learn_spans(struct flow *flow, const struct request *request)
{
    SpanMessage *span;
    for (size_t i = 0; (span = request_span(request, i)) != NULL; i++) {
        flow->spans = memory_grow(flow->spans, flow->span_count + 1, sizeof *flow->spans);
        struct known_span *known = &flow->spans[flow->span_count++];
        memcpy(known->trace_id, span->trace_id.data, TRACE_ID_SIZE);
        memcpy(known->span_id, span->span_id.data, SPAN_ID_SIZE);
    }
}

static bool is_known(const struct flow *flow, const uint8_t *span_id, const uint8_t *trace_id)
{
    for (size_t i = 0; i < flow->span_count; i++)
        if (memcmp(flow->spans[i].span_id, span_id, SPAN_ID_SIZE) == 0 &&
            (!trace_id || memcmp(flow->spans[i].trace_id, trace_id, TRACE_ID_SIZE) == 0))
            return true;
    return false;
}

static void read_hex(const char *text, uint8_t *id, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned byte;
        assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
        id[i] = (uint8_t)byte;
    }
}

/* Gets the ids of a sample from its Link or label; returns false if it has none. */
static bool ids_of(const struct request *request, const SampleMessage *sample, uint8_t *span_id,
                   uint8_t *trace_id)
{
    const DictionaryMessage *d = request->profiles->dictionary;
    if (sample->link_index > 0) {
        memcpy(span_id, d->link_table[sample->link_index]->span_id.data, SPAN_ID_SIZE);
        memcpy(trace_id, d->link_table[sample->link_index]->trace_id.data, TRACE_ID_SIZE);
        return true;
    }
    const char *label = sample_attribute(request, sample, "process.context.label.span_id");
    if (!label)
        return false;
    read_hex(label, span_id, SPAN_ID_SIZE);
    read_hex(sample_attribute(request, sample, "process.context.label.trace_id"), trace_id,
             TRACE_ID_SIZE);
    return true;
}

static void expect_same_sample(const struct request *in, const SampleMessage *before,
                               const struct request *out, const SampleMessage *after)
{
    assert_non_null(after);
    assert_int_equal(before->stack_index, after->stack_index);
    assert_int_equal(before->n_values, after->n_values);
    assert_int_equal(before->n_timestamps_unix_nano, after->n_timestamps_unix_nano);
    if (before->n_values > 0)
        assert_memory_equal(before->values, after->values, before->n_values * 8);
    if (before->n_timestamps_unix_nano > 0)
        assert_memory_equal(before->timestamps_unix_nano, after->timestamps_unix_nano,
                            before->n_timestamps_unix_nano * 8);
    static const char *const others[] = {"thread.name", "thread.id", "cpu.logical_number"};
    for (size_t i = 0; i < 3; i++) {
        char text[64] = "";
        const char *value = sample_attribute(in, before, others[i]);
        bool is_there = value != NULL;
        snprintf(text, sizeof text, "%s", value ? value : "");
        value = sample_attribute(out, after, others[i]);
        assert_int_equal(is_there, value != NULL);
        assert_string_equal(text, value ? value : "");
    }
}

static void judge_sample(struct flow *flow, const struct request *in, const SampleMessage *before,
                         const struct request *out, const SampleMessage *after)
{
    uint8_t span_id[SPAN_ID_SIZE], trace_id[TRACE_ID_SIZE], now_span[SPAN_ID_SIZE],
        now_trace[TRACE_ID_SIZE];
    expect_same_sample(in, before, out, after);
    flow->samples++;
    if (!ids_of(in, before, span_id, trace_id)) {
        assert_int_equal(after->link_index, 0);
        assert_int_equal(after->n_attribute_indices, before->n_attribute_indices);
        return;
    }
    bool known = is_known(flow, span_id, trace_id);
    flow->named++;
    flow->known += known;
    assert_true(after->link_index > 0);
    assert_true(ids_of(out, after, now_span, now_trace));
    assert_memory_equal(span_id, now_span, SPAN_ID_SIZE);
    assert_memory_equal(trace_id, now_trace, TRACE_ID_SIZE);
    assert_null(sample_attribute(out, after, "process.context.label.span_id"));
    assert_null(sample_attribute(out, after, "process.context.label.trace_id"));
    assert_int_equal(sample_attribute(out, after, "span_name") != NULL, known);
    assert_int_equal(sample_attribute(out, after, "span_kind") != NULL, known);
}

static void judge_profiles(struct flow *flow, const struct request *in, const struct request *out)
{
    ProfileMessage *before;
    size_t p = 0;
    for (; (before = request_profile(in, p)) != NULL; p++) {
        const ProfileMessage *after = request_profile(out, p);
        assert_non_null(after);
        assert_int_equal(before->time_unix_nano, after->time_unix_nano);
        assert_int_equal(before->n_samples, after->n_samples);
        for (size_t i = 0; i < before->n_samples; i++)
            judge_sample(flow, in, before->samples[i], out, after->samples[i]);
    }
    assert_null(request_profile(out, p));
}

/* ---- sending ---- */

static void expect_scanned(enum signal signal, struct slice bytes)
{
    struct scan_result scan;
    struct error err = {0};
    bool ok = signal == SIGNAL_TRACES ? scan_traces(bytes, &scan_limits_default, &scan, &err)
                                      : scan_profiles(bytes, &scan_limits_default, &scan, &err);
    if (!ok)
        fail_msg("%s", err.text);
    assert_false(signal == SIGNAL_PROFILES && normalise_needed(&scan));
}

static void send_bytes(struct flow *flow, enum signal signal, struct slice bytes)
{
    struct scan_result scan;
    struct error err = {0};
    struct buffer *normalised = NULL;
    if (signal == SIGNAL_TRACES) {
        assert_true(scan_traces(bytes, &scan_limits_default, &scan, &err));
    } else {
        assert_true(scan_profiles(bytes, &scan_limits_default, &scan, &err));
        if (normalise_needed(&scan)) {
            normalised = normalise_profiles(bytes, &scan, NULL, &(bool){false});
            bytes = buffer_slice(normalised);
        }
    }
    fixture_consume(&flow->fixture, flow->places[signal]->nodes[0], bytes, scan.items, NULL);
    flow->requests[signal]++;

    const struct recorder *recorder = &flow->fixture.recorder;
    assert_int_equal(recorder->count, 1);
    struct slice sent = slice_of(recorder->items[0].bytes, recorder->items[0].size);
    expect_scanned(signal, sent);
    struct request in, out;
    if (signal == SIGNAL_TRACES) {
        request_read_traces(&in, bytes);
        learn_spans(flow, &in);
    } else {
        request_read_profiles(&in, bytes);
        request_read_profiles(&out, sent);
        judge_profiles(flow, &in, &out);
        request_free(&out);
    }
    request_free(&in);
    fixture_clear_recorded(&flow->fixture);
    buffer_unref(normalised);
}

static void on_capture(const struct capture *capture, void *context)
{
    struct flow *flow = context;
    size_t size = strlen(flow->prefix);
    if (capture->signal != flow->signal || capture->json ||
        strncmp(capture->name, flow->prefix, size) != 0 || capture->name[size] != '/')
        return;
    send_bytes(flow, capture->signal, capture->body);
}

static void send_all(struct flow *flow, enum signal signal)
{
    flow->signal = signal;
    captures_each(on_capture, flow);
    assert_true(flow->requests[signal] > 0);
}

static void send_file(struct flow *flow, const char *name)
{
    static uint8_t bytes[1 << 22];
    char path[4096];
    const char *source = getenv("PROFCOL_SOURCE");
    snprintf(path, sizeof path, "%s/tests/data/captures/%s", source ? source : ".", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    send_bytes(flow, SIGNAL_PROFILES, slice_of(bytes, size));
}

/* Every span id of every live client occurs in its traces, so if spans arrive first, all samples
 * are joined. */
static void expect_all_joined(struct flow *flow, uint64_t named)
{
    assert_int_equal(flow->named, named);
    assert_int_equal(flow->known, named);
    assert_int_equal(metric(flow, "profcol_spanjoin_samples_joined", NULL), flow->named);
    assert_int_equal(metric(flow, "profcol_spanjoin_samples_unjoined", "no_id"),
                     flow->samples - flow->named);
    assert_int_equal(metric(flow, "profcol_spanjoin_samples_unjoined", "not_found"), 0);
    assert_int_equal(metric(flow, "profcol_spanjoin_ambiguous", NULL), 0);
    assert_int_equal(metric(flow, "profcol_spanjoin_entries", NULL), flow->span_count);
}

static void test_ebpf_labels(void **state)
{
    (void)state;
    struct flow flow;
    begin(&flow, "ebpf-profiler", "");
    send_all(&flow, SIGNAL_TRACES);
    send_all(&flow, SIGNAL_PROFILES);
    expect_all_joined(&flow, 65);
    end(&flow);
}

static void test_obi_links(void **state)
{
    (void)state;
    struct flow flow;
    begin(&flow, "ebpf-profiler-obi-links", "");
    send_all(&flow, SIGNAL_TRACES);
    send_all(&flow, SIGNAL_PROFILES);
    expect_all_joined(&flow, 94);
    end(&flow);
}

/* 518 CPU samples of which 507 name 104 spans, in two profiles; 7 goroutines name 5. */
static void test_go_pprof(void **state)
{
    (void)state;
    struct flow flow;
    begin(&flow, "go-pprof-endpoint", "");
    send_all(&flow, SIGNAL_TRACES);
    send_file(&flow, "pprof-to-otlp/files/cpu.pb");
    send_file(&flow, "pprof-to-otlp/files/goroutine.pb");
    expect_all_joined(&flow, 2 * 507 + 7);
    end(&flow);
}

/* No sample names a span, so the bytes are unchanged. */
static void test_heap_profile_is_untouched(void **state)
{
    (void)state;
    struct flow flow;
    begin(&flow, "go-pprof-endpoint", "");
    send_all(&flow, SIGNAL_TRACES);
    send_file(&flow, "pprof-to-otlp/files/heap.pb");
    assert_int_equal(flow.named, 0);
    assert_int_equal(metric(&flow, "profcol_spanjoin_samples_joined", NULL), 0);
    end(&flow);
}

/* Samples first: spans get their totals when they arrive. */
static void test_samples_first(void **state)
{
    (void)state;
    struct flow flow;
    begin(&flow, "ebpf-profiler", "samples: {wait: 0s}");
    send_all(&flow, SIGNAL_PROFILES);
    assert_int_equal(flow.known, 0);
    assert_int_equal(metric(&flow, "profcol_spanjoin_samples_unjoined", "not_found"), flow.named);
    double waiting = metric(&flow, "profcol_spanjoin_entries", NULL);
    send_all(&flow, SIGNAL_TRACES);
    assert_int_equal(metric(&flow, "profcol_spanjoin_spans_enriched", NULL), waiting);
    assert_int_equal(metric(&flow, "profcol_spanjoin_samples_unjoined", "span_open"), flow.named);
    assert_int_equal(metric(&flow, "profcol_spanjoin_entries", NULL), flow.span_count);
    end(&flow);
}

int main(void)
{
    log_init(LOG_ERROR, LOG_CONSOLE);
    scan_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ebpf_labels),   cmocka_unit_test(test_obi_links),
        cmocka_unit_test(test_go_pprof),      cmocka_unit_test(test_heap_profile_is_untouched),
        cmocka_unit_test(test_samples_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

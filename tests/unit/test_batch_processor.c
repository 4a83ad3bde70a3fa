#include "core/base/memory.h"
#include "core/data/scan.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "tests/unit/canonical_profiles.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type batch_processor_type;

#define MS UINT64_C(1000000)

static struct buffer *encode(enum signal signal, struct text *json)
{
    struct buffer *buffer = fixture_encode(signal, text_string(json));
    text_deinit(json);
    return buffer;
}

/* Spans named s<first>, s<first + 1>, ..., in scopes of three; a resource attribute of `padding`
 * bytes. */
static struct buffer *make_spans(unsigned first, unsigned count, size_t padding)
{
    struct text json = {0};
    text_append(&json, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"p\","
                       "\"value\":{\"stringValue\":\"");
    for (size_t i = 0; i < padding; i++)
        text_append_char(&json, 'p');
    text_append(&json, "\"}}]},\"scopeSpans\":[{}");
    for (unsigned i = 0; i < count; i++) {
        if (i % 3 == 0)
            text_printf(&json, "%s,{\"scope\":{\"name\":\"c%u\"},\"spans\":[", i ? "]}" : "",
                        first + i);
        text_printf(&json, "%s{\"name\":\"s%u\"}", i % 3 ? "," : "", first + i);
    }
    text_append(&json, count ? "]}]},{}]}" : "]},{}]}");
    return encode(SIGNAL_TRACES, &json);
}

/* Samples with values first, first + 1, ...; every other one has a stack. */
static struct buffer *make_samples(unsigned first, unsigned count)
{
    struct text json = {0};
    text_append(&json, "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"sampleType\":{"
                       "\"typeStrindex\":1},\"samples\":[");
    for (unsigned i = 0; i < count; i++)
        text_printf(&json, "%s{\"stackIndex\":%u,\"values\":[%u]}", i ? "," : "", i % 2, first + i);
    text_append(&json, "]}]}]}],\"dictionary\":{\"mappingTable\":[{}],\"locationTable\":[{},{"
                       "\"address\":5}],\"functionTable\":[{}],"
                       "\"linkTable\":[{}],\"stringTable\":[\"\",\"cpu\"],\"attributeTable\":[{}],"
                       "\"stackTable\":[{},{\"locationIndices\":[1]}]}}");
    return encode(SIGNAL_PROFILES, &json);
}

static struct probe consume_spans(struct fixture *f, struct fixture_place *place, unsigned first,
                                  unsigned count)
{
    struct probe probe;
    struct buffer *request = make_spans(first, count, 3);
    fixture_consume(f, place->nodes[0], buffer_slice(request), count, &probe);
    buffer_unref(request);
    return probe;
}

static struct fixture_place *start(struct fixture *f, enum signal signal, const char *settings)
{
    char yaml[256];
    snprintf(yaml, sizeof yaml, "processors: {batch: %s}", settings);
    fixture_init(f, 1);
    return fixture_place(f, &batch_processor_type, "batch", yaml, signal_name(signal), signal);
}

static double metric(struct fixture *f, const char *name)
{
    return metrics_value(f->process.metrics, name, "processor=\"batch\"");
}

/* Checks that the recorder received the spans s0, s1, ... in order, in valid requests whose
 * scopes fit their spans. Returns their number. */
static unsigned check_spans(const struct fixture *f)
{
    typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest Request;
    unsigned next = 0;
    for (size_t i = 0; i < f->recorder.count; i++) {
        const struct recorded *recorded = &f->recorder.items[i];
        struct scan_result scan;
        struct error err = {0};
        if (!scan_traces(slice_of(recorded->bytes, recorded->size), &scan_limits_default, &scan,
                         &err))
            fail_msg("%s", err.text);
        assert_int_equal(scan.items, recorded->items);
        Request *r =
            opentelemetry__proto__collector__trace__v1__export_trace_service_request__unpack(
                NULL, recorded->size, recorded->bytes);
        assert_non_null(r);
        for (size_t g = 0; g < r->n_resource_spans; g++)
            for (size_t c = 0; c < r->resource_spans[g]->n_scope_spans; c++)
                for (size_t s = 0; s < r->resource_spans[g]->scope_spans[c]->n_spans; s++) {
                    char name[16];
                    snprintf(name, sizeof name, "s%u", next++);
                    assert_string_equal(r->resource_spans[g]->scope_spans[c]->spans[s]->name, name);
                    assert_int_equal(r->resource_spans[g]->scope_spans[c]->scope->name[0], 'c');
                    assert_int_equal(r->resource_spans[g]->resource->n_attributes, 1);
                }
        opentelemetry__proto__collector__trace__v1__export_trace_service_request__free_unpacked(
            r, NULL);
    }
    return next;
}

static void sends_at_its_size(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place = start(&f, SIGNAL_TRACES, "{send_batch_size: 10}");
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(f.recorder.count, 0);
        struct probe probe = consume_spans(&f, place, i * 4, 4);
        assert_int_equal(probe.settled, 1); /* admitted, so acknowledged */
        assert_true(verdict_is_ok(&probe.verdict));
    }
    assert_int_equal(f.recorder.count, 1);
    assert_int_equal(f.recorder.items[0].items, 12);
    assert_int_equal(check_spans(&f), 12);
    fixture_advance(&f, 1000 * MS);
    assert_int_equal(f.recorder.count, 1);
    assert_int_equal((int)metric(&f, "otelcol_processor_batch_batch_size_trigger_send"), 1);
    assert_int_equal((int)metric(&f, "otelcol_processor_batch_timeout_trigger_send"), 0);
    fixture_deinit(&f);
}

static void large_requests_take_turns(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place = start(&f, SIGNAL_TRACES, "{send_batch_size: 1}");
    for (unsigned i = 0; i < 4; i++) {
        struct probe probe;
        struct buffer *request = make_spans(i, 1, (size_t)PACE_PER_TURN / 2 * PACE_BYTES);
        fixture_consume(&f, place->nodes[0], buffer_slice(request), 1, &probe);
        buffer_unref(request);
        assert_int_equal(probe.settled, 1);
    }
    assert_int_equal(f.recorder.count, 2);
    fixture_advance(&f, 1);
    assert_int_equal(f.recorder.count, 4);
    assert_int_equal(check_spans(&f), 4);
    fixture_deinit(&f);
}

static void sends_after_its_timeout(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place = start(&f, SIGNAL_TRACES, "{timeout: 200ms}");
    consume_spans(&f, place, 0, 4);
    fixture_advance(&f, 150 * MS);
    consume_spans(&f, place, 4, 2);
    fixture_advance(&f, 49 * MS);
    assert_int_equal(f.recorder.count, 0);
    fixture_advance(&f, 1 * MS);
    assert_int_equal(f.recorder.count, 1);
    assert_int_equal(check_spans(&f), 6);
    assert_int_equal((int)metric(&f, "otelcol_processor_batch_timeout_trigger_send"), 1);
    consume_spans(&f, place, 6, 1);
    fixture_advance(&f, 199 * MS);
    assert_int_equal(f.recorder.count, 1);
    fixture_advance(&f, 1 * MS);
    assert_int_equal(f.recorder.count, 2);
    fixture_deinit(&f);
}

static void cuts_at_its_largest_size(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place =
        start(&f, SIGNAL_TRACES, "{send_batch_size: 4, send_batch_max_size: 5}");
    consume_spans(&f, place, 0, 12);
    assert_int_equal(f.recorder.count, 2); /* two are left, fewer than 4 */
    consume_spans(&f, place, 12, 7);
    assert_int_equal(f.recorder.count, 4); /* 2 + 3, 4 */
    fixture_advance(&f, 200 * MS);
    assert_int_equal(check_spans(&f), 19);
    for (size_t i = 0; i < f.recorder.count; i++)
        assert_true(f.recorder.items[i].items <= 5);
    fixture_deinit(&f);
}

static void sends_at_once_without_a_timeout(void **state)
{
    (void)state;
    static const char *const settings[] = {
        "{timeout: 0}", "{send_batch_size: 0}",
        "{timeout: 0, send_batch_size: 2, send_batch_max_size: 2}"};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        struct fixture f;
        struct fixture_place *place = start(&f, SIGNAL_TRACES, settings[i]);
        consume_spans(&f, place, 0, 3);
        consume_spans(&f, place, 3, 0);
        assert_int_equal(check_spans(&f), 3);
        assert_int_equal(f.recorder.count, i == 2 ? 3 : 2);
        fixture_deinit(&f);
    }
}

/* ---- profiles ---- */

static void check_samples(struct fixture *f, unsigned total)
{
    struct buffer *whole = make_samples(0, total);
    struct text expected = {0}, got = {0};
    canonical_profiles(buffer_slice(whole), CANONICAL_SAMPLES, &expected);
    for (size_t i = 0; i < f->recorder.count; i++)
        canonical_profiles(slice_of(f->recorder.items[i].bytes, f->recorder.items[i].size),
                           CANONICAL_SAMPLES, &got);
    assert_string_equal(text_string(&got), text_string(&expected));
    text_deinit(&expected);
    text_deinit(&got);
    buffer_unref(whole);
}

static void merges_and_cuts_profiles(void **state)
{
    (void)state;
    static const char *const settings[] = {"{send_batch_size: 10}",
                                           "{send_batch_size: 4, send_batch_max_size: 5}",
                                           "{send_batch_size: 1, send_batch_max_size: 1}"};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        struct fixture f;
        struct fixture_place *place = start(&f, SIGNAL_PROFILES, settings[i]);
        for (unsigned first = 0; first < 36; first += 4) {
            struct buffer *request = make_samples(first, 4);
            fixture_consume(&f, place->nodes[0], buffer_slice(request), 4, NULL);
            buffer_unref(request);
        }
        fixture_advance(&f, 200 * MS);
        check_samples(&f, 36);
        if (i == 0)
            assert_int_equal(f.recorder.count, 3); /* 12 each */
        if (i == 2)
            assert_int_equal(f.recorder.count, 36);
        fixture_deinit(&f);
    }
}

/* ---- when the next node cannot accept it ---- */

static void keeps_what_finds_no_room(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place = start(&f, SIGNAL_TRACES, "{send_batch_size: 5}");
    f.recorder.refusal = REFUSED_FULL;
    f.recorder.answer = verdict_try_later(GRPC_UNAVAILABLE, -1, "full");
    struct probe probe = consume_spans(&f, place, 0, 5);
    assert_true(verdict_is_ok(&probe.verdict));
    consume_spans(&f, place, 5, 5); /* waits behind the first */
    assert_int_equal(f.recorder.refused, 1);
    fixture_advance(&f, 60000 * MS); /* 20, 60, 140, 300 ms, then every 200 ms */
    assert_int_equal(f.recorder.refused, 1 + 4 + 298);
    f.recorder.answer = verdict_ok;
    consume_spans(&f, place, 10, 1);
    fixture_advance(&f, 200 * MS);
    assert_int_equal(check_spans(&f), 11); /* each once, in order */
    assert_int_equal((int)metric(&f, "profcol_processor_batch_dropped_spans"), 0);
    consume_spans(&f, place, 11, 5);
    assert_int_equal(check_spans(&f), 16);
    fixture_deinit(&f);
}

static void keeps_what_is_refused_for_now(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place = start(&f, SIGNAL_TRACES, "{send_batch_size: 5}");
    f.recorder.answer = verdict_try_later(GRPC_UNAVAILABLE, -1, "later");
    struct probe probe = consume_spans(&f, place, 0, 5);
    assert_true(verdict_is_ok(&probe.verdict));
    assert_int_equal(f.recorder.refused, 1);
    fixture_advance(&f, 99 * MS);
    assert_int_equal(f.recorder.refused, 1);
    fixture_advance(&f, 1 * MS); /* 100 ms */
    assert_int_equal(f.recorder.refused, 2);
    fixture_advance(&f, 199 * MS);
    assert_int_equal(f.recorder.refused, 2);
    fixture_advance(&f, 1 * MS); /* 300 ms */
    assert_int_equal(f.recorder.refused, 3);
    fixture_advance(&f, 60000 * MS); /* 700, 1500, 3100, 6300 ms, then every 5 s */
    assert_int_equal(f.recorder.refused, 3 + 4 + 10);
    f.recorder.answer = verdict_ok;
    consume_spans(&f, place, 5, 5); /* does not wait for the first */
    assert_int_equal(f.recorder.count, 1);
    fixture_advance(&f, 5000 * MS);
    assert_int_equal(f.recorder.count, 2);
    assert_int_equal((int)metric(&f, "profcol_processor_batch_dropped_spans"), 0);
    fixture_deinit(&f);
}

static void waits_as_long_as_it_is_told(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place = start(&f, SIGNAL_TRACES, "{timeout: 0}");
    f.recorder.answer = verdict_try_later(GRPC_RESOURCE_EXHAUSTED, 2000 * (int64_t)MS, "later");
    consume_spans(&f, place, 0, 1);
    f.recorder.answer = verdict_ok;
    fixture_advance(&f, 1999 * MS);
    assert_int_equal(f.recorder.count, 0);
    fixture_advance(&f, 1 * MS);
    assert_int_equal(f.recorder.count, 1);
    fixture_deinit(&f);
}

static void keeps_what_is_answered_later(void **state)
{
    (void)state;
    struct fixture f;
    struct verdict later = verdict_try_later(GRPC_UNAVAILABLE, -1, "later");
    struct fixture_place *place = start(&f, SIGNAL_TRACES, "{timeout: 0}");
    f.recorder.hold = true;
    consume_spans(&f, place, 0, 2);
    consume_spans(&f, place, 2, 2);
    assert_int_equal(f.recorder.held_count, 2); /* both are being sent */
    fixture_release(&f, &later);
    f.recorder.hold = false;
    fixture_advance(&f, 100 * MS);
    assert_int_equal(check_spans(&f), 4);
    fixture_deinit(&f);
}

static void drops_what_is_refused_for_good(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place = start(&f, SIGNAL_TRACES, "{timeout: 0}");
    f.recorder.answer = verdict_of(GRPC_INVALID_ARGUMENT, "never");
    consume_spans(&f, place, 0, 7);
    f.recorder.answer = verdict_ok;
    fixture_advance(&f, 10000 * MS);
    assert_int_equal(f.recorder.count, 0);
    assert_int_equal((int)metric(&f, "profcol_processor_batch_dropped_spans"), 7);
    consume_spans(&f, place, 0, 1);
    assert_int_equal(check_spans(&f), 1);
    fixture_deinit(&f);
}

static void refuses_beyond_its_bound(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place = start(&f, SIGNAL_TRACES, "{timeout: 0, max_held_mib: 1}");
    f.recorder.answer = verdict_try_later(GRPC_UNAVAILABLE, -1, "later");
    struct buffer *big = make_spans(0, 1, 600000), *huge = make_spans(2, 1, 3000000);
    struct buffer *small = make_spans(1, 1, 1000);
    struct probe probe;
    fixture_consume(&f, place->nodes[0], buffer_slice(big), 1, &probe);
    assert_true(verdict_is_ok(&probe.verdict));
    fixture_consume(&f, place->nodes[0], buffer_slice(big), 1, &probe);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(probe.verdict.code, GRPC_UNAVAILABLE);
    assert_true(probe.verdict.retry_after_ns > 0);
    assert_int_equal((int)metric(&f, "profcol_processor_batch_refused_spans"), 1);
    f.recorder.answer = verdict_ok;
    fixture_advance(&f, 100 * MS);
    assert_true(metric(&f, "profcol_processor_batch_held_bytes") == 0);
    /* A request larger than the limit would never fit: it may exceed the limit, but the next one
     * may not. */
    f.recorder.answer = verdict_try_later(GRPC_UNAVAILABLE, -1, "later");
    fixture_consume(&f, place->nodes[0], buffer_slice(small), 1, &probe);
    assert_true(verdict_is_ok(&probe.verdict));
    fixture_consume(&f, place->nodes[0], buffer_slice(huge), 1, &probe);
    assert_true(verdict_is_ok(&probe.verdict));
    fixture_consume(&f, place->nodes[0], buffer_slice(huge), 1, &probe);
    assert_int_equal(probe.verdict.code, GRPC_UNAVAILABLE);
    f.recorder.answer = verdict_ok;
    fixture_advance(&f, 1000 * MS);
    assert_int_equal(check_spans(&f), 3);
    buffer_unref(small);
    buffer_unref(big);
    buffer_unref(huge);
    fixture_deinit(&f);
}

static void drains(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place = start(&f, SIGNAL_TRACES, "{timeout: 1h}");
    struct node *node = place->nodes[0];
    consume_spans(&f, place, 0, 3);
    f.recorder.answer = verdict_try_later(GRPC_UNAVAILABLE, -1, "later");
    fixture_drain(node);
    assert_false(fixture_is_idle(node));
    f.recorder.answer = verdict_ok;
    fixture_advance(&f, 100 * MS);
    assert_true(fixture_is_idle(node));
    assert_int_equal(check_spans(&f), 3);
    fixture_deinit(&f);
}

/* ---- ack: delivered ---- */

static void passes_answers_on(void **state)
{
    (void)state;
    struct fixture f;
    struct probe probes[3];
    struct fixture_place *place =
        start(&f, SIGNAL_TRACES, "{ack: delivered, send_batch_size: 3, send_batch_max_size: 3}");
    struct buffer *two = make_spans(0, 2, 3), *seven = make_spans(2, 7, 3);
    f.recorder.hold = true;
    fixture_consume(&f, place->nodes[0], buffer_slice(two), 2, &probes[0]);
    fixture_consume(&f, place->nodes[0], buffer_slice(seven), 7,
                    &probes[1]); /* in three batches: 1, 3, 3 */
    assert_int_equal(f.recorder.held_count, 3);
    assert_int_equal(probes[0].settled + probes[1].settled, 0);
    fixture_release(&f, &verdict_ok);
    assert_int_equal(probes[0].settled, 1);
    assert_int_equal(probes[1].settled, 1);
    assert_true(verdict_is_ok(&probes[0].verdict) && verdict_is_ok(&probes[1].verdict));
    assert_int_equal(check_spans(&f), 9);
    /* The sender is told to try later and will do so, so the request is not kept here. */
    f.recorder.hold = false;
    f.recorder.answer = verdict_try_later(GRPC_UNAVAILABLE, -1, "later");
    fixture_consume(&f, place->nodes[0], buffer_slice(two), 2, &probes[2]);
    fixture_advance(&f, 200 * MS);
    assert_int_equal(probes[2].settled, 1);
    assert_int_equal(probes[2].verdict.code, GRPC_UNAVAILABLE);
    f.recorder.answer = verdict_ok;
    fixture_advance(&f, 10000 * MS);
    assert_int_equal(f.recorder.count, 3);
    assert_int_equal((int)metric(&f, "profcol_processor_batch_dropped_spans"), 0);
    assert_true(metric(&f, "profcol_processor_batch_held_bytes") == 0);
    buffer_unref(two);
    buffer_unref(seven);
    fixture_deinit(&f);
}

/* ---- metadata_keys ---- */

/* Passes a request to the node. Returns whether it was admitted. */
static bool consume_of(struct fixture *f, struct fixture_place *place, const char *tenant,
                       unsigned first, unsigned count)
{
    struct context *context = context_new();
    context->entries = arena_array(&context->arena, 2, sizeof *context->entries);
    context->entries[0] = (struct context_entry){"x-other", "gone"};
    context->entry_count = 1;
    if (tenant)
        context->entries[context->entry_count++] = (struct context_entry){"x-tenant", tenant};
    double before = metric(f, "profcol_processor_batch_refused_spans");
    batch_processor_type.consume(place->nodes[0],
                                 batch_new(&f->workers[0], SIGNAL_TRACES,
                                           make_spans(first, count, 3), count, NULL, context));
    return metric(f, "profcol_processor_batch_refused_spans") == before;
}

static void keeps_tenants_apart(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place =
        start(&f, SIGNAL_TRACES,
              "{metadata_keys: [X-Tenant], metadata_cardinality_limit: 3, send_batch_size: 4}");
    assert_true(consume_of(&f, place, "a", 0, 2));
    assert_true(consume_of(&f, place, "b", 0, 2));
    assert_true(consume_of(&f, place, NULL, 0, 2));
    assert_int_equal(f.recorder.count, 0);
    assert_true(consume_of(&f, place, "a", 2, 2));
    assert_int_equal(f.recorder.count, 1);
    assert_int_equal(check_spans(&f), 4);
    assert_int_equal((int)metric(&f, "otelcol_processor_batch_metadata_cardinality"), 3);
    assert_false(consume_of(&f, place, "c", 0, 2));
    fixture_advance(&f, 200 * MS);
    assert_int_equal(f.recorder.count, 3);
    fixture_deinit(&f);
}

/* Clients choose how many tenants there are, so each is found by a hash. */
static void finds_one_of_many_tenants(void **state)
{
    (void)state;
    enum { TENANTS = 30000 };
    struct fixture f;
    char tenant[16];
    struct fixture_place *place = start(&f, SIGNAL_TRACES,
                                        "{metadata_keys: [x-tenant], send_batch_size: 2, "
                                        "metadata_cardinality_limit: 30000, timeout: 1h}");
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < TENANTS; i++) {
            snprintf(tenant, sizeof tenant, "%u", i);
            struct context *context = context_new();
            context->entries = arena_array(&context->arena, 1, sizeof *context->entries);
            context->entries[context->entry_count++] =
                (struct context_entry){"x-tenant", arena_strdup(&context->arena, tenant)};
            batch_processor_type.consume(place->nodes[0], batch_new(&f.workers[0], SIGNAL_TRACES,
                                                                    make_spans(2 * i + pass, 1, 3),
                                                                    1, NULL, context));
        }
    fixture_advance(&f, 200 * MS);
    assert_int_equal((int)metric(&f, "otelcol_processor_batch_metadata_cardinality"), TENANTS);
    assert_int_equal(f.recorder.count, TENANTS);
    fixture_deinit(&f);
}

/* ---- cutting costs a bounded multiple ---- */

static void bounds_what_cutting_costs(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place =
        start(&f, SIGNAL_TRACES, "{send_batch_size: 1, send_batch_max_size: 1}");
    struct buffer *request = make_spans(0, 2000, 100000);
    fixture_consume(&f, place->nodes[0], buffer_slice(request), 2000, NULL);
    fixture_advance(&f, 200 * MS);
    assert_int_equal(check_spans(&f), 2000);
    assert_true(f.recorder.count > 31 && f.recorder.count < 100);
    buffer_unref(request);
    fixture_deinit(&f);
}

int main(void)
{
    scan_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_at_its_size),
        cmocka_unit_test(large_requests_take_turns),
        cmocka_unit_test(sends_after_its_timeout),
        cmocka_unit_test(cuts_at_its_largest_size),
        cmocka_unit_test(sends_at_once_without_a_timeout),
        cmocka_unit_test(merges_and_cuts_profiles),
        cmocka_unit_test(keeps_what_finds_no_room),
        cmocka_unit_test(keeps_what_is_refused_for_now),
        cmocka_unit_test(waits_as_long_as_it_is_told),
        cmocka_unit_test(keeps_what_is_answered_later),
        cmocka_unit_test(drops_what_is_refused_for_good),
        cmocka_unit_test(refuses_beyond_its_bound),
        cmocka_unit_test(drains),
        cmocka_unit_test(passes_answers_on),
        cmocka_unit_test(keeps_tenants_apart),
        cmocka_unit_test(finds_one_of_many_tenants),
        cmocka_unit_test(bounds_what_cutting_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/data/scan.h"
#include "core/data/traces_split.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "tests/unit/captures.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct budget budget;

static void print_packed(struct text *out, const ProtobufCMessage *message)
{
    size_t size = message ? protobuf_c_message_get_packed_size(message) : 0;
    uint8_t *bytes = malloc(size + 1);
    assert_non_null(bytes);
    if (message)
        protobuf_c_message_pack(message, bytes);
    text_printf(out, " %016" PRIx64, hash_bytes(slice_of(bytes, size)));
    free(bytes);
}

/* Prints a line for each span, with its resource and scope. */
static void print_spans(struct slice request, struct text *out)
{
    typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest Request;
    Request *r = opentelemetry__proto__collector__trace__v1__export_trace_service_request__unpack(
        NULL, request.size, request.data);
    assert_non_null(r);
    for (size_t g = 0; g < r->n_resource_spans; g++)
        for (size_t c = 0; c < r->resource_spans[g]->n_scope_spans; c++)
            for (size_t s = 0; s < r->resource_spans[g]->scope_spans[c]->n_spans; s++) {
                const Opentelemetry__Proto__Trace__V1__ScopeSpans *scope =
                    r->resource_spans[g]->scope_spans[c];
                print_packed(out, r->resource_spans[g]->resource
                                      ? &r->resource_spans[g]->resource->base
                                      : NULL);
                print_packed(out, scope->scope ? &scope->scope->base : NULL);
                print_packed(out, &scope->spans[s]->base);
                text_printf(out, " %s %s\n", r->resource_spans[g]->schema_url, scope->schema_url);
            }
    opentelemetry__proto__collector__trace__v1__export_trace_service_request__free_unpacked(r,
                                                                                            NULL);
}

static void check_parts(const struct capture *capture, uint32_t items, uint32_t size)
{
    struct text got = {0}, expected = {0};
    struct traces_source *source = traces_source_new(&capture->body, 1, &budget);
    assert_int_equal(traces_source_items(source), items);
    for (uint32_t first = 0; first < items; first += size) {
        struct scan_result scan;
        struct error err;
        uint32_t count = items - first < size ? items - first : size;
        struct buffer *part = traces_source_part(source, first, count);
        if (!scan_traces(buffer_slice(part), &scan_limits_default, &scan, &err))
            fail_msg("%s: %s", capture->name, err.text);
        assert_int_equal(scan.items, count);
        print_spans(buffer_slice(part), &got);
        buffer_unref(part);
    }
    print_spans(capture->body, &expected);
    if (strcmp(text_string(&got), text_string(&expected)) != 0)
        fail_msg("%s: in parts of %u it says something else", capture->name, size);
    text_deinit(&got);
    text_deinit(&expected);
    traces_source_free(source);
}

static void check_capture(const struct capture *capture, void *context)
{
    struct scan_result scan;
    struct error err;
    unsigned *count = context;
    if (capture->signal != SIGNAL_TRACES || capture->json)
        return;
    assert_true(scan_traces(capture->body, &scan_limits_default, &scan, &err));
    check_parts(capture, scan.items, 1);
    check_parts(capture, scan.items, 7);
    check_parts(capture, scan.items, scan.items + 1);
    (*count)++;
}

static void keeps_what_recorded_requests_say(void **state)
{
    (void)state;
    unsigned count = 0;
    captures_each(check_capture, &count);
    assert_true(count > 50);
    assert_int_equal(budget_used(&budget), 0);
}

/* Very many empty scopes and groups, and a part for each span: the cost of a part is
 * proportional to its size. */
static void passes_over_what_is_empty(void **state)
{
    (void)state;
    enum { GROUPS = 30000, SPANS = 20000 };
    static const uint8_t empty_group[] = {0x0a, 0x02, 0x12, 0x00}; /* with an empty scope */
    static const uint8_t span[] = {0x12, 0x02, 0x2a, 0x00};        /* with an empty name */
    struct text scope = {0}, request = {0};
    uint8_t header[8];
    for (int i = 0; i < GROUPS; i++)
        text_append_slice(&request, slice_of(empty_group, sizeof empty_group));
    for (int i = 0; i < SPANS; i++)
        text_append_slice(&scope, slice_of(span, sizeof span));
    size_t inner = scope.size + 4; /* tag and a length of three bytes */
    header[0] = 0x0a;
    header[1] = (uint8_t)(inner | 0x80);
    header[2] = (uint8_t)(inner >> 7 | 0x80);
    header[3] = (uint8_t)(inner >> 14);
    header[4] = 0x12;
    header[5] = (uint8_t)(scope.size | 0x80);
    header[6] = (uint8_t)(scope.size >> 7 | 0x80);
    header[7] = (uint8_t)(scope.size >> 14);
    text_append_slice(&request, slice_of(header, sizeof header));
    text_append_slice(&request, slice_of(scope.data, scope.size));
    for (int i = 0; i < GROUPS; i++)
        text_append_slice(&request, slice_of(empty_group, sizeof empty_group));
    struct slice bytes = slice_of(request.data, request.size);
    struct traces_source *source = traces_source_new(&bytes, 1, &budget);
    assert_int_equal(traces_source_items(source), SPANS);
    for (uint32_t i = 0; i < SPANS; i++) {
        struct buffer *part = traces_source_part(source, i, 1);
        assert_int_equal(part->size, 8);
        buffer_unref(part);
    }
    traces_source_free(source);
    text_deinit(&scope);
    text_deinit(&request);
}

int main(void)
{
    hash_init();
    scan_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_recorded_requests_say),
        cmocka_unit_test(passes_over_what_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

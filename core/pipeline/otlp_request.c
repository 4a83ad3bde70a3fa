#include "core/pipeline/otlp_request.h"

#include "core/base/budget.h"
#include "core/base/verdict.h"
#include "core/data/json.h"
#include "core/data/normalise.h"
#include "core/data/scan.h"
#include "core/data/signals.h"
#include "core/data/unfold.h"
#include "core/data/wire.h"
#include "core/pipeline/reading.h"
#include "core/pipeline/received.h"

#include <assert.h>

#define PROFILES_VERSION_HEADER "otlp-profiles-development-version"

bool otlp_request_check_profiles_version(const struct exchange *exchange, struct verdict *why)
{
    const struct http_headers *headers = exchange_headers(exchange);
    size_t count = http_header_count(headers, PROFILES_VERSION_HEADER);
    if (count == 0 ||
        (count == 1 && slice_is(http_header_get(headers, PROFILES_VERSION_HEADER), "1")))
        return true;
    *why =
        verdict_of(GRPC_INVALID_ARGUMENT, "invalid or unsupported " PROFILES_VERSION_HEADER ": %s",
                   count > 1 ? "must contain exactly one value" : "supported version is 1");
    return false;
}

/* ---- reading ---- */

bool otlp_request_is_large(size_t size_bytes, bool is_json)
{
    return size_bytes >= (is_json ? READING_LARGE_BYTES : 8 * READING_LARGE_BYTES);
}

/* Converts JSON to protobuf; takes over the body. Returns NULL, with *why set, if it is refused. */
static struct buffer *transcode(struct buffer *body, enum signal signal, struct budget *budget,
                                struct verdict *why)
{
    struct error err;
    bool is_over_budget = false;
    struct buffer *protobuf = json_to_protobuf(signal_traits(signal)->request, buffer_slice(body),
                                               budget, &is_over_budget, &err);
    buffer_unref(body);
    if (!protobuf)
        *why = is_over_budget ? verdict_over_budget
                              : verdict_of(GRPC_INVALID_ARGUMENT, "%s", err.text);
    return protobuf;
}

/* Takes over the body. Returns NULL, with *why set, if the request would unfold to too much, or to
 * more than there is room for now. After the answer, it cannot be refused any more. */
static struct buffer *refuse_what_unfolds(struct buffer *body, enum signal signal,
                                          const struct scan_result *scan, struct budget *budget,
                                          struct verdict *why)
{
    struct error err;
    bool (*unfold)(struct slice, const struct scan_result *, size_t, struct error *) =
        signal == SIGNAL_TRACES ? unfold_traces : unfold_profiles;
    if (!unfold(buffer_slice(body), scan, budget_limit(budget), &err))
        *why = verdict_of(GRPC_RESOURCE_EXHAUSTED, "%s", err.text);
    else if (!budget_has_room(budget, unfold_usual_bytes(scan)))
        *why = verdict_over_budget;
    else
        return body;
    buffer_unref(body);
    return NULL;
}

/* Normalises a request; takes over the body. Returns NULL, with *why set, if it is refused. */
static struct buffer *normalise(struct buffer *body, const struct scan_result *scan,
                                struct budget *budget, struct verdict *why)
{
    bool is_too_large;
    struct buffer *normal = normalise_profiles(buffer_slice(body), scan, budget, &is_too_large);
    buffer_unref(body);
    if (!normal)
        *why = is_too_large ? verdict_of(GRPC_RESOURCE_EXHAUSTED,
                                         "the texts that attributes refer to are too large")
                            : verdict_over_budget;
    return normal;
}

/* Returns the tables of a request that is passed on as it was scanned. */
static struct dictionary_layout layout_of(const struct scan_result *scan)
{
    struct dictionary_layout layout = {.are_known = true};
    memcpy(layout.counts, scan->table_sizes, sizeof layout.counts);
    memcpy(layout.starts, scan->table_starts, sizeof layout.starts);
    return layout;
}

/* Scans a request, and normalises it if necessary; takes over the body. Returns NULL, with *why
 * set, if it is refused. */
static struct buffer *examine(struct buffer *body, enum signal signal, struct budget *budget,
                              struct otlp_request_content *content, struct verdict *why)
{
    struct scan_result scan;
    struct error err;
    if (!signal_traits(signal)->scan(buffer_slice(body), &scan_limits_default, &scan, &err)) {
        *why = verdict_of(GRPC_INVALID_ARGUMENT, "%s", err.text);
        buffer_unref(body);
        return NULL;
    }
    assert(scan.items <= scan_limits_default.items_max);
    content->items = scan.items;
    if (signal == SIGNAL_PROFILES && normalise_needed(&scan))
        body = normalise(body, &scan, budget, why);
    else if (signal == SIGNAL_PROFILES)
        content->layout = layout_of(&scan);
    if (!body || signal_traits(signal)->is_relayed) /* what nobody opens does not unfold */
        return body;
    return refuse_what_unfolds(body, signal, &scan, budget, why);
}

struct buffer *otlp_request_read(struct buffer *body, enum signal signal, bool is_json,
                                 struct budget *budget, struct otlp_request_content *content_out,
                                 struct verdict *why)
{
    *content_out = (struct otlp_request_content){.items = 0};
    if (is_json)
        body = transcode(body, signal, budget, why);
    return body ? examine(body, signal, budget, content_out, why) : NULL;
}

/* ---- answers ---- */

static size_t write_varint_field(uint8_t *to, uint32_t number, uint64_t value)
{
    return (size_t)(wire_write_varint(wire_write_tag(to, number, WIRE_VARINT), value) - to);
}

/* Answers with a google.rpc.Status in the request's encoding. */
void otlp_request_refuse(struct exchange *exchange, bool is_json, int http_status,
                         const struct verdict *verdict)
{
    assert(!verdict_is_ok(verdict));
    uint8_t status[16 + sizeof verdict->text];
    size_t size = write_varint_field(status, 1, (uint64_t)verdict->code);
    size = (size_t)(wire_write_bytes(status + size, 2, slice_of_string(verdict->text)) - status);
    assert(size <= sizeof status);
    char seconds[24];
    struct http_header retry;
    size_t retry_count = received_retry_after(verdict, http_status, &retry, seconds);
    if (!is_json) {
        exchange_respond(exchange, http_status, "application/x-protobuf", slice_of(status, size),
                         &retry, retry_count);
        return;
    }
    struct text json = {0};
    json_from_protobuf(JSON_STATUS, slice_of(status, size), &json);
    exchange_respond(exchange, http_status, "application/json", slice_of(json.data, json.size),
                     &retry, retry_count);
    text_deinit(&json);
}

/* An empty partial_success, as in the Collector's answers. */
static const uint8_t success_message[] = {0x0a, 0x00};

static void respond_success(struct exchange *exchange, bool is_json)
{
    if (is_json)
        exchange_respond(exchange, 200, "application/json", SLICE("{\"partialSuccess\":{}}"), NULL,
                         0);
    else
        exchange_respond(exchange, 200, "application/x-protobuf",
                         slice_of(success_message, sizeof success_message), NULL, 0);
}

void otlp_request_respond(struct exchange *exchange, bool is_json, const struct verdict *verdict)
{
    if (exchange_dialect(exchange) == SERVER_GRPC)
        exchange_respond_grpc(exchange, verdict, slice_of(success_message, sizeof success_message));
    else if (verdict_is_ok(verdict))
        respond_success(exchange, is_json);
    else
        otlp_request_refuse(exchange, is_json, verdict_http_status(verdict), verdict);
}

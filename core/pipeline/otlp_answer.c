#include "core/pipeline/otlp_answer.h"

#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/data/signals.h"
#include "core/data/wire.h"
#include "core/net/compression.h"
#include "core/net/grpc_status.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>

#define SECOND_NS INT64_C(1000000000)

enum { STATUS_FIELD_CODE = 1, STATUS_FIELD_MESSAGE = 2, STATUS_FIELD_DETAILS = 3 };
enum { ANY_FIELD_TYPE = 1, ANY_FIELD_VALUE = 2, RETRY_INFO_FIELD_DELAY = 1 };
enum { DURATION_FIELD_SECONDS = 1, DURATION_FIELD_NANOS = 2 };
enum { RESPONSE_FIELD_PARTIAL = 1, PARTIAL_FIELD_REJECTED = 1, PARTIAL_FIELD_MESSAGE = 2 };

/* ---- google.rpc.Status ---- */

struct rpc_status {
    int64_t code;
    struct slice message;
    int64_t retry_delay_ns; /* from a RetryInfo; -1: none */
    struct text types;      /* types of the details, for messages */
};

static int64_t read_duration(struct slice bytes)
{
    struct wire_cursor cursor = wire_cursor(bytes);
    struct wire_field field;
    int64_t ns = 0;
    while (wire_next(&cursor, &field)) {
        if (field.type != WIRE_VARINT)
            continue;
        if (field.number == DURATION_FIELD_SECONDS)
            ns = saturate_multiply((int64_t)field.value, SECOND_NS);
        else if (field.number == DURATION_FIELD_NANOS && field.value < (uint64_t)SECOND_NS)
            ns = saturate_add(ns, (int64_t)field.value);
    }
    return ns < 0 ? 0 : ns;
}

static int64_t read_retry_info(struct slice bytes)
{
    return read_duration(wire_last_bytes(bytes, RETRY_INFO_FIELD_DELAY));
}

static void read_detail(struct slice bytes, struct rpc_status *status)
{
    struct wire_cursor cursor = wire_cursor(bytes);
    struct wire_field field;
    struct slice type = SLICE(""), value = SLICE("");
    while (wire_next(&cursor, &field)) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == ANY_FIELD_TYPE)
            type = field.bytes;
        else if (field.number == ANY_FIELD_VALUE)
            value = field.bytes;
    }
    if (slice_is(type, "type.googleapis.com/google.rpc.RetryInfo"))
        status->retry_delay_ns = read_retry_info(value);
    if (status->types.size > 100)
        return;
    text_printf(&status->types, "%s%.*s", status->types.size > 0 ? " " : "",
                (int)(type.size < 100 ? type.size : 100), (const char *)type.data);
}

/* Reads a google.rpc.Status. Returns false if it is invalid. `types` must be freed in any case. */
static bool read_status(struct slice bytes, struct rpc_status *status)
{
    *status = (struct rpc_status){.retry_delay_ns = -1};
    struct wire_cursor cursor = wire_cursor(bytes);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (field.number == STATUS_FIELD_CODE && field.type == WIRE_VARINT)
            status->code = (int64_t)field.value;
        else if (field.number == STATUS_FIELD_MESSAGE && field.type == WIRE_BYTES)
            status->message = field.bytes;
        else if (field.number == STATUS_FIELD_DETAILS && field.type == WIRE_BYTES)
            read_detail(field.bytes, status);
        else if (field.number <= STATUS_FIELD_DETAILS)
            return false;
    }
    return !cursor.broken;
}

/* ---- Export*ServiceResponse ---- */

static bool read_partial(struct slice bytes, struct otlp_answer *out)
{
    struct wire_cursor cursor = wire_cursor(bytes);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (field.number == PARTIAL_FIELD_REJECTED && field.type == WIRE_VARINT)
            out->rejected = (int64_t)field.value;
        else if (field.number == PARTIAL_FIELD_MESSAGE && field.type == WIRE_BYTES)
            snprintf(out->partial_message, sizeof out->partial_message, "%.*s",
                     SLICE_ARG(field.bytes));
        else if (field.number <= PARTIAL_FIELD_MESSAGE)
            return false;
    }
    out->partial = out->rejected != 0 || out->partial_message[0] != '\0';
    return !cursor.broken;
}

static bool read_response(struct slice bytes, struct otlp_answer *out)
{
    struct wire_cursor cursor = wire_cursor(bytes);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (field.number != RESPONSE_FIELD_PARTIAL)
            continue;
        if (field.type != WIRE_BYTES || !read_partial(field.bytes, out))
            return false;
    }
    return !cursor.broken;
}

static bool read_json_response(struct slice json, enum signal signal, struct otlp_answer *out)
{
    bool over_budget;
    struct error err;
    struct buffer *buffer =
        json_to_protobuf(signal_traits(signal)->response, json, NULL, &over_budget, &err);
    if (!buffer)
        return false;
    bool read = read_response(buffer_slice(buffer), out);
    buffer_unref(buffer);
    return read;
}

void otlp_answer_warn(const struct otlp_answer *answer, enum signal signal,
                      struct log_origin origin)
{
    if (!answer->partial)
        return;
    char dropped[64];
    snprintf(dropped, sizeof dropped, "dropped_%s", signal_traits(signal)->rejected);
    log_warn(origin, "Partial success response", LOG_TEXT("message", answer->partial_message),
             LOG_U64(dropped, answer->rejected < 0 ? 0 : answer->rejected));
}

/* ---- HTTP ---- */

static bool is_success(int status)
{
    return status >= 200 && status < 300;
}

static bool has_type(const struct client_answer *answer, const char *type)
{
    struct slice value = http_header_get(&answer->headers, "content-type");
    size_t size = strlen(type);
    return value.size >= size && strncasecmp((const char *)value.data, type, size) == 0 &&
           (value.size == size || value.data[size] == ';' || value.data[size] == ' ');
}

static void read_http_success(const struct client_answer *answer, enum signal signal,
                              struct otlp_answer *out)
{
    bool whole = true;
    if (answer->body.size > 0 && !answer->body_cut && has_type(answer, "application/x-protobuf"))
        whole = read_response(answer->body, out);
    else if (answer->body.size > 0 && !answer->body_cut && has_type(answer, "application/json"))
        whole = read_json_response(answer->body, signal, out);
    out->verdict = verdict_ok;
    if (whole)
        return;
    out->verdict = verdict_of(GRPC_INTERNAL,
                              "the body of the backend's answer (HTTP status %d) cannot be read",
                              answer->status);
    out->verdict.error_type = "_OTHER";
}

/* Says why a redirect was not followed, without parts of its URL that may be secret. Returns the
 * number of characters. */
static int print_redirect(const struct client_answer *answer, char *out, size_t size)
{
    struct slice location = http_header_get(&answer->headers, "location");
    char shown[100];
    snprintf(shown, sizeof shown, "%.*s", SLICE_ARG(location));
    shown[strcspn(shown, "@?#")] = '\0';
    int written = snprintf(out, size,
                           ", a redirect to %s; only 307 and 308 to the same origin are followed, "
                           "once",
                           shown[0] ? shown : "nowhere");
    return (size_t)written < size ? written : (int)size - 1;
}

static void read_http_error(const struct client_answer *answer, const char *url, uint64_t wall_ns,
                            struct otlp_answer *out)
{
    int64_t retry_after = -1;
    if (answer->status == 429 || answer->status == 503)
        retry_after = http_retry_after_ns(&answer->headers, wall_ns);
    out->verdict = verdict_from_http(answer->status, retry_after);
    struct verdict *verdict = &out->verdict;
    int size =
        snprintf(verdict->text, sizeof verdict->text,
                 "error exporting items, request to %.120s responded with HTTP Status Code %d", url,
                 answer->status);
    assert(size > 0 && (size_t)size < sizeof verdict->text);
    if (answer->status >= 300 && answer->status < 400)
        size += print_redirect(answer, verdict->text + size, sizeof verdict->text - (size_t)size);
    struct rpc_status status = {0};
    bool is_text = has_type(answer, "text/plain") || has_type(answer, "application/json");
    if (answer->body.size > 0 && is_text)
        snprintf(verdict->text + size, sizeof verdict->text - (size_t)size, ", Message=%.*s",
                 SLICE_ARG(answer->body));
    else if (answer->body.size > 0 && read_status(answer->body, &status))
        snprintf(verdict->text + size, sizeof verdict->text - (size_t)size,
                 ", Message=%.*s, Details=[%s]", SLICE_ARG(status.message),
                 text_string(&status.types));
    text_deinit(&status.types);
}

/* A code would stand for an answer, and there is none. */
struct verdict otlp_answer_failed(const struct client_answer *answer)
{
    assert(answer->failure != CLIENT_OK);
    struct verdict verdict =
        verdict_of(GRPC_UNAVAILABLE, "failed to make an HTTP request: %s", answer->failure_text);
    verdict.error_type = answer->failure == CLIENT_TIMEOUT ? "Deadline_Exceeded" : "_OTHER";
    return verdict;
}

void otlp_answer_http(const struct client_answer *answer, enum signal signal, const char *url,
                      uint64_t wall_ns, struct otlp_answer *out)
{
    *out = (struct otlp_answer){0};
    assert(answer->failure == CLIENT_OK || answer->failure_text);
    if (answer->failure != CLIENT_OK)
        out->verdict = otlp_answer_failed(answer);
    else if (is_success(answer->status))
        read_http_success(answer, signal, out);
    else
        read_http_error(answer, url, wall_ns, out);
}

/* ---- gRPC ---- */

/* What does not fit is cut off. */
static void percent_decode(struct slice in, char *out, size_t size)
{
    size_t written;
    assert(size > 0);
    text_decode_percent(in, TEXT_PERCENT_KEEP_BROKEN, (uint8_t *)out, size - 1, &written);
    out[written] = '\0';
}

static int64_t read_retry_delay(const struct client_answer *answer)
{
    struct slice details = http_header_get(&answer->headers, "grpc-status-details-bin");
    if (details.size == 0)
        return -1;
    uint8_t *bytes = memory_alloc(details.size);
    struct rpc_status status;
    size_t size;
    int64_t delay = -1;
    if (text_decode_base64(details, bytes, &size)) {
        delay = read_status(slice_of(bytes, size), &status) ? status.retry_delay_ns : -1;
        text_deinit(&status.types);
    }
    free(bytes);
    return delay;
}

static enum grpc_code parse_code(struct slice value)
{
    unsigned code = 0;
    for (size_t i = 0; i < value.size; i++) {
        if (!isdigit(value.data[i]) || code > GRPC_UNAUTHENTICATED)
            return GRPC_UNKNOWN;
        code = code * 10 + (unsigned)(value.data[i] - '0');
    }
    return code <= GRPC_UNAUTHENTICATED ? (enum grpc_code)code : GRPC_UNKNOWN;
}

static void read_grpc_message(const struct client_answer *answer, struct otlp_answer *out)
{
    struct slice body = answer->body;
    if (body.size < 5 || answer->body_cut)
        return;
    struct slice message = slice_of(body.data + 5, body.size - 5);
    if (body.data[0] == 0) {
        read_response(message, out);
        return;
    }
    int compression = compression_by_name(http_header_get(&answer->headers, "grpc-encoding"));
    struct buffer *plain = NULL;
    struct error err;
    if (compression > 0 && decompress((enum compression)compression, message, CLIENT_BODY_MAX, NULL,
                                      &plain, &err) == DECOMPRESS_OK)
        read_response(buffer_slice(plain), out);
    buffer_unref(plain);
}

static void read_grpc_status(const struct client_answer *answer, struct slice status,
                             struct otlp_answer *out)
{
    enum grpc_code code = parse_code(status);
    if (code == GRPC_OK) {
        out->verdict = verdict_ok;
        read_grpc_message(answer, out);
        return;
    }
    out->verdict = verdict_try_later(code, read_retry_delay(answer), "%s", "");
    percent_decode(http_header_get(&answer->headers, "grpc-message"), out->verdict.text,
                   sizeof out->verdict.text);
}

void otlp_answer_grpc(const struct client_answer *answer, struct otlp_answer *out)
{
    *out = (struct otlp_answer){0};
    assert(answer->failure == CLIENT_OK || answer->failure_text);
    if (answer->failure == CLIENT_TIMEOUT) {
        out->verdict = verdict_of(GRPC_DEADLINE_EXCEEDED, "context deadline exceeded: %s",
                                  answer->failure_text);
        return;
    }
    if (answer->failure != CLIENT_OK) {
        out->verdict = verdict_of(GRPC_UNAVAILABLE, "connection error: %s", answer->failure_text);
        return;
    }
    struct slice status = http_header_get(&answer->headers, "grpc-status");
    struct slice type = http_header_get(&answer->headers, "content-type");
    if (status.size > 0)
        read_grpc_status(answer, status, out);
    else if (answer->status != 200)
        out->verdict =
            verdict_of(grpc_code_from_http(answer->status),
                       "unexpected HTTP status code received from server: %d", answer->status);
    else if (!has_type(answer, "application/grpc") && !has_type(answer, "application/grpc+proto"))
        out->verdict =
            verdict_of(GRPC_UNKNOWN, "received unexpected content-type \"%.*s\"",
                       (int)(type.size < 100 ? type.size : 100), (const char *)type.data);
    else
        out->verdict =
            verdict_of(GRPC_INTERNAL, "server closed the stream without sending trailers");
}

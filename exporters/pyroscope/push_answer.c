#include "exporters/pyroscope/push_answer.h"

#include "core/data/json_reader.h"
#include "core/net/compression.h"
#include "core/pipeline/otlp_answer.h"

#include <stdio.h>

enum { TEXT_MAX = 512 };

static enum grpc_code code_of_status(int status)
{
    switch (status) {
    case 400:
    case 413:
    case 415:
    case 422:
        return GRPC_INVALID_ARGUMENT;
    case 401:
        return GRPC_UNAUTHENTICATED;
    case 403:
        return GRPC_PERMISSION_DENIED;
    case 404:
        return GRPC_NOT_FOUND;
    case 408:
    case 429:
    case 499:
        return GRPC_UNAVAILABLE;
    case 501:
        return GRPC_UNIMPLEMENTED;
    default:
        return status >= 500 ? GRPC_UNAVAILABLE : GRPC_UNKNOWN;
    }
}

/* Copies the "message" of a Connect error, or the body if it is not one. Returns the size of the
 * text. */
static size_t read_message(struct slice body, uint8_t text[TEXT_MAX])
{
    struct json_reader reader = json_reader(body);
    struct slice key, raw;
    bool first = true, has_escapes;
    if (json_peek(&reader) == JSON_OBJECT)
        while (json_next_member(&reader, &first, &key, &has_escapes)) {
            if (!slice_is(key, "message") || json_peek(&reader) != JSON_STRING) {
                if (!json_skip(&reader, 16))
                    break;
                continue;
            }
            if (!json_take_string(&reader, &raw, &has_escapes) || raw.size > TEXT_MAX)
                break;
            return json_unescape(raw, text);
        }
    size_t size = body.size < TEXT_MAX ? body.size : TEXT_MAX;
    memcpy(text, body.data, size);
    return size;
}

static void add_body(struct verdict *verdict, size_t at, struct slice body)
{
    uint8_t text[TEXT_MAX];
    if (body.size > 0)
        snprintf(verdict->text + at, sizeof verdict->text - at, ": %.*s",
                 (int)read_message(body, text), (const char *)text);
}

static void add_compressed_body(struct verdict *verdict, size_t at, struct slice body)
{
    struct buffer *plain;
    struct error err;
    if (decompress(COMPRESSION_GZIP, body, CLIENT_BODY_MAX, NULL, &plain, &err) != DECOMPRESS_OK)
        return;
    add_body(verdict, at, buffer_slice(plain));
    buffer_unref(plain);
}

struct verdict push_answer(const struct client_answer *answer, const char *url, uint64_t wall_ns)
{
    if (answer->failure != CLIENT_OK)
        return otlp_answer_failed(answer);
    if (answer->status >= 200 && answer->status < 300)
        return verdict_ok;
    struct verdict verdict = {.code = code_of_status(answer->status),
                              .retry_after_ns = http_retry_after_ns(&answer->headers, wall_ns)};
    int size =
        snprintf(verdict.text, sizeof verdict.text,
                 "request to %.100s responded with HTTP Status Code %d", url, answer->status);
    if (slice_is(http_header_get(&answer->headers, "content-encoding"), "gzip"))
        add_compressed_body(&verdict, (size_t)size, answer->body);
    else
        add_body(&verdict, (size_t)size, answer->body);
    return verdict;
}

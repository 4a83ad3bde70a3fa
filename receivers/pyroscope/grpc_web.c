#include "receivers/pyroscope/grpc_web.h"

#include "core/net/grpc_status.h"
#include "core/net/server.h"

#include <assert.h>
#include <stdio.h>

enum {
    PREFIX_BYTES = 5,
    FLAG_COMPRESSED = 1,
    FLAG_TRAILERS = 0x80,
};

bool grpc_web_is(struct slice content_type)
{
    return http_is_media_type(content_type, "application/grpc-web") ||
           http_is_media_type(content_type, "application/grpc-web+proto");
}

static bool refuse(struct verdict *why, enum grpc_code code, const char *text)
{
    *why = verdict_of(code, "grpc: %s", text);
    return false;
}

bool grpc_web_read(struct upload *upload, struct slice body, struct plain *message,
                   struct verdict *why)
{
    struct slice encoding = http_header_get(upload->headers, "grpc-encoding");
    if (body.size < PREFIX_BYTES)
        return refuse(why, GRPC_INVALID_ARGUMENT, "unexpected EOF");
    const uint8_t *prefix = body.data;
    uint32_t size = (uint32_t)prefix[1] << 24 | (uint32_t)prefix[2] << 16 |
                    (uint32_t)prefix[3] << 8 | prefix[4];
    if (prefix[0] & ~FLAG_COMPRESSED)
        return refuse(why, GRPC_INVALID_ARGUMENT, "received unexpected payload format");
    if (size > body.size - PREFIX_BYTES)
        return refuse(why, GRPC_INVALID_ARGUMENT, "unexpected EOF");
    if (size < body.size - PREFIX_BYTES)
        return refuse(why, GRPC_INVALID_ARGUMENT, "more than one message in a unary call");
    bool is_compressed = prefix[0] & FLAG_COMPRESSED;
    int compression = is_compressed ? compression_by_name(encoding) : COMPRESSION_NONE;
    if (compression < 0 || !compression_in_grpc((enum compression)compression))
        return refuse(why, GRPC_UNIMPLEMENTED, "the grpc-encoding is not understood");
    if (is_compressed && compression == COMPRESSION_NONE)
        return refuse(why, GRPC_INVALID_ARGUMENT,
                      "compressed flag set with identity or empty encoding");
    return upload_decompress(upload, (enum compression)compression,
                             slice_of(body.data + PREFIX_BYTES, size), message, why);
}

static uint8_t *put_prefix(uint8_t *to, uint8_t flag, size_t size)
{
    *to++ = flag;
    for (int shift = 24; shift >= 0; shift -= 8)
        *to++ = (uint8_t)(size >> shift);
    return to;
}

void grpc_web_respond(struct exchange *exchange, const struct verdict *verdict)
{
    char trailers[64 + GRPC_MESSAGE_MAX_BYTES];
    size_t size = (size_t)snprintf(trailers, sizeof trailers,
                                   "grpc-status: %d\r\ngrpc-message: ", (int)verdict->code);
    size += grpc_percent_encode(slice_of_string(verdict->text), trailers + size);
    trailers[size++] = '\r';
    trailers[size++] = '\n';
    assert(size <= sizeof trailers);
    uint8_t body[PREFIX_BYTES + PREFIX_BYTES + sizeof trailers];
    uint8_t *to = body;
    if (verdict_is_ok(verdict))
        to = put_prefix(to, 0, 0);
    to = put_prefix(to, FLAG_TRAILERS, size);
    assert(size <= sizeof body - (size_t)(to - body));
    memcpy(to, trailers, size);
    exchange_respond(exchange, 200, "application/grpc-web+proto",
                     slice_of(body, (size_t)(to - body) + size), NULL, 0);
}

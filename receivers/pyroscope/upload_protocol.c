#include "receivers/pyroscope/upload_protocol.h"

#include "core/data/signals.h"
#include "core/pipeline/otlp_request.h"
#include "receivers/pyroscope/grpc_web.h"

#define PUSH_PATH "/push.v1.PusherService/Push"

static struct slice content_type_of(const struct exchange *exchange)
{
    return http_header_get(exchange_headers(exchange), "content-type");
}

static bool is_ingest_path(struct slice path)
{
    return slice_is(path, "/ingest") || slice_is(path, "/pyroscope/ingest");
}

static enum protocol protocol_of_push(const struct exchange *exchange)
{
    struct slice type = content_type_of(exchange);
    if (exchange_dialect(exchange) == SERVER_GRPC)
        return PROTOCOL_GRPC;
    if (http_is_media_type(type, "application/proto"))
        return PROTOCOL_CONNECT_PROTO;
    if (http_is_media_type(type, "application/json"))
        return PROTOCOL_CONNECT_JSON;
    return grpc_web_is(type) ? PROTOCOL_GRPC_WEB : PROTOCOL_NONE;
}

static enum protocol protocol_of_otlp(const struct exchange *exchange)
{
    struct slice type = content_type_of(exchange);
    if (http_is_media_type(type, "application/json"))
        return PROTOCOL_OTLP_JSON;
    bool is_proto = exchange_dialect(exchange) == SERVER_GRPC ||
                    http_is_media_type(type, "application/x-protobuf") ||
                    http_is_media_type(type, "application/protobuf");
    return is_proto ? PROTOCOL_OTLP_PROTO : PROTOCOL_NONE;
}

static bool is_otlp(const struct exchange *exchange)
{
    return slice_is(exchange_path(exchange), exchange_dialect(exchange) == SERVER_GRPC
                                                 ? OTLP_PROFILES_SERVICE "Export"
                                                 : OTLP_PROFILES_URL_PATH);
}

bool protocol_path_is_known(const struct exchange *exchange)
{
    struct slice path = exchange_path(exchange);
    return slice_is(path, PUSH_PATH) || is_otlp(exchange) ||
           (exchange_dialect(exchange) == SERVER_HTTP && is_ingest_path(path));
}

enum protocol protocol_of(const struct exchange *exchange)
{
    if (!protocol_path_is_known(exchange))
        return PROTOCOL_NONE;
    if (is_otlp(exchange))
        return protocol_of_otlp(exchange);
    return is_ingest_path(exchange_path(exchange)) ? PROTOCOL_INGEST : protocol_of_push(exchange);
}

bool protocol_path_is_method(struct slice path)
{
    if (path.size < 2 || path.data[0] != '/')
        return false;
    struct slice rest = slice_of(path.data + 1, path.size - 1);
    const uint8_t *slash = memchr(rest.data, '/', rest.size);
    if (!slash || slash + 1 == path.data + path.size)
        return false;
    struct slice service = slice_of(rest.data, (size_t)(slash - rest.data));
    struct slice method = slice_of(slash + 1, rest.size - service.size - 1);
    return memchr(service.data, '.', service.size) && !memchr(method.data, '/', method.size);
}

bool protocol_is_otlp(enum protocol protocol)
{
    return protocol == PROTOCOL_OTLP_PROTO || protocol == PROTOCOL_OTLP_JSON;
}

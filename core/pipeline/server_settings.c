#include "core/pipeline/server_settings.h"

#include "config/diff.h"
#include "config/node.h"
#include "config/value.h"
#include "core/pipeline/component.h"

#include <assert.h>
#include <strings.h>

enum {
    CONNECTION_SHARE_BYTES = 256 * 1024, /* of the memory limit; see server_max_connections */
    CONNECTIONS_LEAST = 64,
    CONNECTIONS_MOST = 65536,
    RESPONSE_HEADERS_MAX = 40,
    RESPONSE_NAME_MAX_BYTES = 128,
    RESPONSE_VALUE_MAX_BYTES = 8192,
};

#define SECOND INT64_C(1000000000)
#define PING_MIN_TIME_NS (SECOND * 60 * 5)
#define KEEPALIVE_TIME_NS (SECOND * 60 * 60 * 2)

#define MIDDLEWARES_HELP                                                                           \
    "Must be empty: profcol has no extensions that change requests on their way."

static const char *const transports[] = {"tcp", "tcp4", "tcp6", "unix", NULL};

static const struct field server_parameters_fields[] = {
    FIELD_DURATION(
        keepalive_server_parameters, max_connection_idle,
        "A connection without requests is closed after this long; 0: after five minutes.",
        .min = "0s"),
    FIELD_DURATION(keepalive_server_parameters, max_connection_age,
                   "A connection is asked to close (GOAWAY) after this long, which spreads clients "
                   "over replicas; 0: never.",
                   .min = "0s"),
    FIELD_DURATION(
        keepalive_server_parameters, max_connection_age_grace,
        "How much longer requests may take on a connection that was asked to close; 0: no limit.",
        .min = "0s"),
    FIELD_DURATION(keepalive_server_parameters, time,
                   "Ping after this long without traffic, at least 1s; 0: 2h.", .fallback = "2h",
                   .min = "0s"),
    FIELD_DURATION(keepalive_server_parameters, timeout,
                   "Close the connection when a ping is not answered within this time; 0: 20s.",
                   .fallback = "20s", .min = "0s"),
    FIELD_END,
};

static const struct field enforcement_fields[] = {
    FIELD_DURATION(keepalive_enforcement, min_time,
                   "Shortest time between two pings of a client; the third one that comes earlier, "
                   "without an answer in between, closes the connection (too_many_pings); 0: 5m.",
                   .fallback = "5m", .min = "0s"),
    FIELD_BOOL(keepalive_enforcement, permit_without_stream,
               "Whether min_time also holds while no request is open; otherwise 2h do."),
    FIELD_END,
};

static const struct field keepalive_fields[] = {
    FIELD_BLOCK(grpc_keepalive_settings, server_parameters, keepalive_server_parameters,
                server_parameters_fields, "How long connections live."),
    FIELD_BLOCK(grpc_keepalive_settings, enforcement_policy, keepalive_enforcement,
                enforcement_fields, "Limits on clients' pings."),
    FIELD_END,
};

const struct field grpc_server_fields[] = {
    FIELD_STRING(grpc_server_settings, endpoint,
                 "Address to listen on, host:port; with transport unix, a path.",
                 .fallback = "localhost:4317"),
    FIELD_ENUM(grpc_server_settings, transport, "Type of the address.", transports,
               .fallback = "tcp"),
    FIELD_OPTIONAL(grpc_server_settings, tls, tls_server_settings, tls_server_fields,
                   "TLS; without it the listener is cleartext."),
    FIELD_UINT(grpc_server_settings, max_recv_msg_size_mib,
               "Largest message in MiB, before and after decompression; 0: 4.", .fallback = "4",
               .max = "1024"),
    FIELD_UINT(grpc_server_settings, max_concurrent_streams,
               "Most concurrent requests on one connection; 0: 100.", .max = "100000"),
    FIELD_UINT(grpc_server_settings, read_buffer_size,
               "Bytes of a connection, apart from large messages, that are read at once; a worker "
               "has a buffer of this size, from 8192 to 65536.",
               .fallback = "524288"),
    FIELD_UINT(grpc_server_settings, write_buffer_size,
               "Bytes of answers that are collected for one write to a connection; 0: 65536.",
               .max = "16777216"),
    FIELD_OPTIONAL(grpc_server_settings, keepalive, grpc_keepalive_settings, keepalive_fields,
                   "Keepalive and lifetime of connections.", .fallback = "true"),
    FIELD_OPTIONAL(grpc_server_settings, auth, auth_settings, auth_fields,
                   "Requests need credentials that an extension accepts."),
    FIELD_BOOL(grpc_server_settings, include_metadata,
               "Keeps the request's headers with the data, for processors that read them "
               "(from_context, metadata_keys)."),
    FIELD_UINT(grpc_server_settings, max_connections, MAX_CONNECTIONS_HELP),
    FIELD_UINT(grpc_server_settings, max_connections_per_ip,
               "Most connections at once from one address, or one /64 of IPv6; further ones are "
               "closed; 0: no limit.",
               .max = "1000000"),
    FIELD_NODE(grpc_server_settings, middlewares, MIDDLEWARES_HELP),
    FIELD_NODE(grpc_server_settings, dialer, "Settings of outgoing sockets.", .ignored = true,
               .unlisted = true),
    FIELD_END,
};

const struct field http_server_fields[] = {
    FIELD_ENUM(http_server_settings, transport, "Type of the address.", transports,
               .fallback = "tcp"),
    FIELD_OPTIONAL(http_server_settings, tls, tls_server_settings, tls_server_fields,
                   "TLS; without it the listener is cleartext."),
    FIELD_OPTIONAL(http_server_settings, auth, http_auth_settings, http_auth_fields,
                   "Requests need credentials that an extension accepts."),
    FIELD_UINT(
        http_server_settings, max_request_body_size,
        "Largest body in bytes, before and after decompression; larger ones are answered with 413; "
        "0: 20971520.",
        .fallback = "20971520", .max = "1073741824"),
    FIELD_BOOL(http_server_settings, include_metadata,
               "Keeps the request's headers with the data, for processors that read them "
               "(from_context, metadata_keys)."),
    FIELD_PAIRS(http_server_settings, response_headers, "Headers added to every response."),
    FIELD_STRINGS(http_server_settings, compression_algorithms,
                  "Accepted content encodings; an empty name means none.",
                  .fallback = ",gzip,zstd,zlib,snappy,deflate,lz4,x-snappy-framed"),
    FIELD_DURATION(http_server_settings, read_timeout,
                   "Time limit for a whole request to arrive; 0: profcol's own limits.",
                   .min = "0s"),
    FIELD_DURATION(http_server_settings, read_header_timeout,
                   "Time limit for the request's headers to arrive; 0: 10s.", .min = "0s"),
    FIELD_DURATION(http_server_settings, write_timeout,
                   "Time limit for the client to read the response; 0: 30s.", .min = "0s"),
    FIELD_DURATION(http_server_settings, idle_timeout,
                   "A connection without requests is closed after this long; 0: 60s.", .min = "0s"),
    FIELD_BOOL(http_server_settings, keep_alives_enabled,
               "Whether HTTP/1.1 connections are kept for the next request.", .fallback = "true"),
    FIELD_UINT(http_server_settings, max_connections, MAX_CONNECTIONS_HELP),
    FIELD_UINT(http_server_settings, max_connections_per_ip,
               "Most connections at once from one address, or one /64 of IPv6; further ones are "
               "closed; 0: no limit.",
               .max = "1000000"),
    FIELD_OPTIONAL(http_server_settings, cors, cors_settings, cors_fields,
                   "Lets pages of other origins send data from browsers."),
    FIELD_NODE(http_server_settings, middlewares, MIDDLEWARES_HELP),
    FIELD_NODE(http_server_settings, dialer, "Settings of outgoing sockets.", .ignored = true,
               .unlisted = true),
    FIELD_END,
};

static void check_endpoint(const char *endpoint, int transport, struct config_check *check,
                           const char *key)
{
    const char *path = config_check_key(check, key, "endpoint");
    char host[256], why[128];
    uint16_t port;
    if (strcmp(transports[transport], "unix") == 0) {
        if (!endpoint[0])
            config_check_error(check, path, "the path of the socket is missing");
        return;
    }
    if (endpoint[0] == '/' || endpoint[0] == '@' || strncmp(endpoint, "unix:", 5) == 0) {
        config_check_error(check, path,
                           "\"%s\": for a Unix socket, write transport: unix, and its path as the "
                           "endpoint",
                           endpoint);
        return;
    }
    if (!config_parse_endpoint(slice_of_string(endpoint), host, sizeof host, &port, why,
                               sizeof why))
        config_check_error(check, path, "%s", why);
    else
        config_check_listens(check, path, host, port);
}

static void check_tls(const struct tls_server_settings *tls, struct config_check *check,
                      const char *key)
{
    if (tls->enabled)
        tls_server_check(tls, check, config_check_key(check, key, "tls"));
}

static void check_auth(bool enabled, const char *authenticator, struct config_check *check,
                       const char *key)
{
    if (enabled)
        auth_check(check, config_check_key(check, key, "auth::authenticator"), authenticator,
                   AUTH_SERVER);
}

static void check_middlewares(const struct config_node *middlewares, struct config_check *check,
                              const char *key)
{
    if (middlewares && config_node_count(middlewares) > 0)
        config_check_error(check, config_check_key(check, key, "middlewares"),
                           "profcol has no middleware extensions: remove the list. Sizes are "
                           "limited by max_request_body_size, max_recv_msg_size_mib and the "
                           "processor memory_limiter, clients by auth");
}

void grpc_server_check(const struct grpc_server_settings *settings, struct config_check *check,
                       const char *key)
{
    if (!settings->enabled)
        return;
    check_endpoint(settings->endpoint, settings->transport, check, key);
    check_tls(&settings->tls, check, key);
    check_auth(settings->auth.enabled, settings->auth.authenticator, check, key);
    check_middlewares(settings->middlewares, check, key);
}

/* Returns a bit per enum compression; the Collector's "" is none. Returns 0, with *unknown_out set,
 * if a name is unknown. */
static uint32_t compression_mask(const struct config_strings *names, const char **unknown_out)
{
    uint32_t mask = 0;
    for (size_t i = 0; i < names->count; i++) {
        int compression = names->items[i][0] ? compression_by_name(slice_of_string(names->items[i]))
                                             : COMPRESSION_NONE;
        if (compression < 0) {
            *unknown_out = names->items[i];
            return 0;
        }
        mask |= 1u << compression;
    }
    return mask;
}

static bool is_framing(const char *name)
{
    static const char *const names[] = {
        "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade",
        "date",           "trailer",           "te"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

static void check_response_headers(const struct config_pairs *headers, struct config_check *check,
                                   const char *key)
{
    const char *path = config_check_key(check, key, "response_headers");
    if (headers->count > RESPONSE_HEADERS_MAX)
        config_check_error(check, path, "more than %d headers", RESPONSE_HEADERS_MAX);
    for (size_t i = 0; i < headers->count; i++) {
        const struct config_pair *pair = &headers->items[i];
        if (!http_is_field_name(slice_of_string(pair->name)) ||
            strlen(pair->name) > RESPONSE_NAME_MAX_BYTES)
            config_check_error(check, path, "\"%s\" cannot be the name of a header", pair->name);
        else if (is_framing(pair->name))
            config_check_error(check, path, "the header \"%s\" is set by profcol", pair->name);
        if (!http_is_field_value(slice_of_string(pair->value)) ||
            strlen(pair->value) > RESPONSE_VALUE_MAX_BYTES)
            config_check_error(check, path,
                               "the value of the header \"%s\" has control characters or more "
                               "than %d bytes",
                               pair->name, RESPONSE_VALUE_MAX_BYTES);
    }
}

void http_server_check(const struct http_server_settings *settings, const char *endpoint,
                       struct config_check *check, const char *key)
{
    check_endpoint(endpoint, settings->transport, check, key);
    check_tls(&settings->tls, check, key);
    check_auth(settings->auth.enabled, settings->auth.authenticator, check, key);
    check_response_headers(&settings->response_headers, check, key);
    cors_check(&settings->cors, check, config_check_key(check, key, "cors"));
    check_middlewares(settings->middlewares, check, key);
    const char *unknown = NULL;
    compression_mask(&settings->compression_algorithms, &unknown);
    if (unknown)
        config_check_error(check, config_check_key(check, key, "compression_algorithms"),
                           "unknown encoding \"%s\"; the encodings are \"\", gzip, zstd, zlib, "
                           "snappy, deflate, lz4 and x-snappy-framed",
                           unknown);
}

const char *http_server_transport(const struct http_server_settings *settings)
{
    return transports[settings->transport];
}

static bool are_equal(const struct field *fields, const void *one, const void *other)
{
    struct arena arena = {0};
    bool differ = config_fields_differ(&arena, fields, true, one, other) != NULL;
    arena_deinit(&arena);
    return !differ;
}

bool grpc_server_is_same(const struct grpc_server_settings *one,
                         const struct grpc_server_settings *other)
{
    return one->enabled && other->enabled && are_equal(grpc_server_fields, one, other);
}

bool http_server_is_same(const struct http_server_settings *one, const char *endpoint,
                         const struct http_server_settings *other, const char *other_endpoint)
{
    return strcmp(endpoint, other_endpoint) == 0 && are_equal(http_server_fields, one, other);
}

struct config_same_listener grpc_server_listener(const char *name,
                                                 const struct grpc_server_settings *settings)
{
    return (struct config_same_listener){name, settings->auth.enabled ? settings->auth.authenticator
                                                                      : NULL};
}

struct config_same_listener http_server_listener(const char *name,
                                                 const struct http_server_settings *settings)
{
    return (struct config_same_listener){name, settings->auth.enabled ? settings->auth.authenticator
                                                                      : NULL};
}

static struct server_options common_options(struct process *process, const char *label)
{
    return (struct server_options){.label = label,
                                   .budget = process->budget,
                                   .accounts = process->accounts,
                                   .metrics = process->metrics,
                                   .measures_requests = metrics_are_detailed(process->metrics)};
}

/* An idle connection takes 1 KiB over HTTP/1.1, 16 KiB over HTTP/2 and 38 KiB over HTTP/2 with TLS,
 * so those of a listener take at most 15 % of the memory limit, outside of the budget. */
uint32_t server_max_connections(uint64_t setting, const struct process *process)
{
    if (setting > 0)
        return setting < UINT32_MAX ? (uint32_t)setting : UINT32_MAX;
    size_t count = process->memory_limit_bytes / CONNECTION_SHARE_BYTES;
    if (count < CONNECTIONS_LEAST)
        return CONNECTIONS_LEAST;
    return count < CONNECTIONS_MOST ? (uint32_t)count : CONNECTIONS_MOST;
}

/* 0 stands for gRPC's default, and times below a second for a second. */
static int64_t keepalive_time(int64_t configured_ns)
{
    if (configured_ns == 0)
        return KEEPALIVE_TIME_NS;
    return configured_ns < SECOND ? SECOND : configured_ns;
}

struct server_options grpc_server_options(const struct grpc_server_settings *settings,
                                          struct process *process, const char *label)
{
    const struct keepalive_server_parameters *parameters = &settings->keepalive.server_parameters;
    const struct keepalive_enforcement *policy = &settings->keepalive.enforcement_policy;
    struct server_options options = common_options(process, label);
    options.endpoint = settings->endpoint;
    options.transport = transports[settings->transport];
    options.tls = settings->tls.enabled ? &settings->tls : NULL;
    options.auth =
        auth_server(process, settings->auth.enabled ? settings->auth.authenticator : NULL, NULL);
    options.accept_grpc = true;
    options.max_message_bytes = (size_t)settings->max_recv_msg_size_mib << 20;
    options.max_concurrent_streams = (uint32_t)settings->max_concurrent_streams;
    options.include_metadata = settings->include_metadata;
    options.max_connections = server_max_connections(settings->max_connections, process);
    options.max_connections_per_ip = (uint32_t)settings->max_connections_per_ip;
    options.read_buffer_bytes = (size_t)settings->read_buffer_size;
    options.write_buffer_bytes = (size_t)settings->write_buffer_size;
    if (settings->keepalive.enabled) {
        options.max_connection_idle_ns = parameters->max_connection_idle;
        options.max_connection_age_ns = parameters->max_connection_age;
        options.max_connection_age_grace_ns = parameters->max_connection_age_grace;
        options.keepalive_time_ns = keepalive_time(parameters->time);
        options.keepalive_timeout_ns = parameters->timeout;
        options.ping_min_time_ns = policy->min_time > 0 ? policy->min_time : PING_MIN_TIME_NS;
        options.ping_without_stream = policy->permit_without_stream;
    }
    return options;
}

struct server_options http_server_options(const struct http_server_settings *settings,
                                          const char *endpoint, struct process *process,
                                          const char *label)
{
    const char *unknown;
    struct server_options options = common_options(process, label);
    options.endpoint = endpoint;
    options.transport = transports[settings->transport];
    options.tls = settings->tls.enabled ? &settings->tls : NULL;
    options.auth =
        auth_server(process, settings->auth.enabled ? settings->auth.authenticator : NULL,
                    &settings->auth.request_params);
    options.accept_http = true;
    options.max_body_bytes = (size_t)settings->max_request_body_size;
    options.compression_mask = compression_mask(&settings->compression_algorithms, &unknown);
    assert(options.compression_mask != 0 || settings->compression_algorithms.count == 0);
    options.include_metadata = settings->include_metadata;
    options.response_headers = settings->response_headers;
    options.cors = settings->cors.enabled ? &settings->cors : NULL;
    options.max_connections = server_max_connections(settings->max_connections, process);
    options.max_connections_per_ip = (uint32_t)settings->max_connections_per_ip;
    options.read_timeout_ns = settings->read_timeout;
    options.read_header_timeout_ns = settings->read_header_timeout;
    options.write_timeout_ns = settings->write_timeout;
    options.idle_timeout_ns = settings->idle_timeout;
    options.no_keep_alive = !settings->keep_alives_enabled;
    return options;
}

void node_drain_server(const struct node *node, struct server *server,
                       void (*on_drained)(void *context), void *context)
{
    const struct process *process = node->component->process;
    bool ends = atomic_load_explicit(&process->phase, memory_order_acquire) == PROCESS_DRAINING;
    (ends ? server_drain : server_retire)(server, node->worker, on_drained, context);
}

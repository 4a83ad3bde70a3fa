/*
 * otlp_receiver: OTLP over gRPC and HTTP, in protobuf and JSON.
 *
 * https://opentelemetry.io/docs/specs/otlp/ . The network side (framing, compression, limits) is
 * core/net/server.h; here a request is recognised, checked once (core/data/scan.h), brought into
 * the one form that the rest reads, and handed on with a receipt; when that settles, the client
 * gets its answer.
 *
 * Owner: an `otlp_request` lives from the whole request to the answer.
 *
 * Thread: the exchange's worker.
 */
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/data/json.h"
#include "core/data/normalise.h"
#include "core/data/scan.h"
#include "core/pipeline/received.h"
#include "core/pipeline/server_settings.h"

#include <assert.h>
#include <stdio.h>

#define PROFILES_VERSION_HEADER "otlp-profiles-development-version"

struct otlp_http_settings {
    bool enabled;
    const char *endpoint;
    struct http_server_settings server;
    const char *traces_url_path;
};

struct otlp_protocols {
    struct grpc_server_settings grpc;
    struct otlp_http_settings http;
};

struct otlp_settings {
    struct otlp_protocols protocols;
};

static const struct field http_fields[] = {
    FIELD_STRING(otlp_http_settings, endpoint, HTTP_SERVER_ENDPOINT_HELP,
                 .fallback = "localhost:4318"),
    FIELD_BLOCK(otlp_http_settings, server, http_server_settings, http_server_fields,
                "The listener.", .inlined = true),
    FIELD_STRING(otlp_http_settings, traces_url_path, "Path of traces.", .fallback = "/v1/traces"),
    FIELD_END,
};

static const struct field protocols_fields[] = {
    FIELD_OPTIONAL(otlp_protocols, grpc, grpc_server_settings, grpc_server_fields, "OTLP/gRPC."),
    FIELD_OPTIONAL(otlp_protocols, http, otlp_http_settings, http_fields,
                   "OTLP/HTTP, in protobuf and JSON, over HTTP/1.1 and HTTP/2."),
    FIELD_END,
};

static const struct field otlp_fields[] = {
    FIELD_BLOCK(otlp_settings, protocols, otlp_protocols, protocols_fields,
                "At least one protocol."),
    FIELD_END,
};

enum transport { TRANSPORT_GRPC, TRANSPORT_HTTP, TRANSPORT_COUNT };
static const char *const transport_names[] = {"grpc", "http"};

struct otlp_receiver {
    struct component component;
    struct server *servers[TRANSPORT_COUNT];
    struct received_counters counters[TRANSPORT_COUNT][SIGNAL_COUNT];
    struct node *nodes[WORKERS_MAX];
    bool started; /* the servers; written by the last worker before it answers main, so all others
                     see it */
};

struct otlp_node {
    struct node node;
    size_t undrained_servers;
};

/* A request on its way to its answer. */
struct otlp_request {
    struct receipt receipt; /* first */
    struct otlp_receiver *receiver;
    struct exchange *exchange;
    enum transport transport;
    enum signal signal;
    bool is_json;
    uint32_t items;
};

/* ---- recognising ---- */

static const char *const grpc_services[SIGNAL_COUNT] = {
    "/opentelemetry.proto.collector.trace.v1.TraceService/",
    "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/",
};
#define PROFILES_URL_PATH "/v1development/profiles"

static bool has_prefix(struct slice text, const char *prefix)
{
    size_t size = strlen(prefix);
    return text.size >= size && memcmp(text.data, prefix, size) == 0;
}

static const struct otlp_settings *settings_of(const struct otlp_receiver *receiver)
{
    return receiver->component.settings;
}

static bool is_used(const struct otlp_receiver *receiver, enum signal signal)
{
    return receiver->component.pipeline_count[signal] > 0;
}

/* With the slash that a user may have left out. */
static bool is_traces_path(const struct otlp_receiver *receiver, struct slice path)
{
    const char *configured = settings_of(receiver)->protocols.http.traces_url_path;
    if (configured[0] != '/' && path.size > 0)
        path = slice_of(path.data + 1, path.size - 1);
    return slice_is(path, configured);
}

/* -1: none of ours. */
static int signal_of_http_path(const struct otlp_receiver *receiver, struct slice path)
{
    if (is_used(receiver, SIGNAL_TRACES) && is_traces_path(receiver, path))
        return SIGNAL_TRACES;
    if (is_used(receiver, SIGNAL_PROFILES) && slice_is(path, PROFILES_URL_PATH))
        return SIGNAL_PROFILES;
    return -1;
}

static int signal_of_grpc_path(const struct otlp_receiver *receiver, struct slice path)
{
    for (int signal = 0; signal < SIGNAL_COUNT; signal++)
        if (is_used(receiver, (enum signal)signal) && has_prefix(path, grpc_services[signal]))
            return signal;
    return -1;
}

static bool is_json_request(const struct exchange *exchange)
{
    return http_is_media_type(http_header_get(exchange_headers(exchange), "content-type"),
                              "application/json");
}

/* ---- answers ---- */

static size_t write_varint_field(uint8_t *to, uint32_t number, uint64_t value)
{
    return (size_t)(wire_write_varint(wire_write_tag(to, number, WIRE_VARINT), value) - to);
}

/* google.rpc.Status in the request's encoding. */
static void respond_status(struct exchange *exchange, bool is_json, int http_status,
                           const struct verdict *verdict)
{
    uint8_t status[16 + sizeof(verdict->text)];
    size_t size = write_varint_field(status, 1, (uint64_t)verdict->code);
    size = (size_t)(wire_write_bytes(status + size, 2, slice_of_string(verdict->text)) - status);
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

/* An empty partial_success, as the Collector says it. */
static const uint8_t success_message[] = {0x0a, 0x00};

static void respond_success(struct exchange *exchange, bool is_json)
{
    if (is_json)
        exchange_respond(exchange, 200, "application/json", SLICE("{\"partialSuccess\":{}}"), NULL,
                         0);
    else
        exchange_respond(exchange, 200, "application/x-protobuf",
                         slice_of(success_message, sizeof(success_message)), NULL, 0);
}

static void respond(struct exchange *exchange, bool is_json, const struct verdict *verdict)
{
    if (exchange_dialect(exchange) == SERVER_GRPC)
        exchange_respond_grpc(exchange, verdict,
                              slice_of(success_message, sizeof(success_message)));
    else if (verdict_is_ok(verdict))
        respond_success(exchange, is_json);
    else
        respond_status(exchange, is_json, verdict_http_status(verdict), verdict);
}

static void respond_text(struct exchange *exchange, int status, const char *text)
{
    exchange_respond(exchange, status, status == 404 ? "text/plain; charset=utf-8" : "text/plain",
                     slice_of_string(text), NULL, 0);
}

/* ---- the head ---- */

/* OTLP profiles are in development: the layout that a client speaks is named by a header, absent
 * means version 1. */
static bool check_profiles_version(struct exchange *exchange, struct verdict *why)
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

static bool accept_grpc_head(struct otlp_receiver *receiver, struct exchange *exchange)
{
    struct slice path = exchange_path(exchange);
    int signal = signal_of_grpc_path(receiver, path);
    struct verdict verdict;
    const uint8_t *slash = path.size > 1 ? memrchr(path.data, '/', path.size) : NULL;
    if (signal < 0) {
        struct slice service =
            slash > path.data ? slice_of(path.data + 1, (size_t)(slash - path.data) - 1) : path;
        verdict = verdict_of(GRPC_UNIMPLEMENTED, "unknown service %.*s", SLICE_ARG(service));
    } else if (path.size != strlen(grpc_services[signal]) + 6 ||
               memcmp(path.data + path.size - 6, "Export", 6) != 0) {
        struct slice method = slice_of(slash + 1, path.size - (size_t)(slash + 1 - path.data));
        struct slice service = slice_of(path.data + 1, (size_t)(slash - path.data) - 1);
        verdict = verdict_of(GRPC_UNIMPLEMENTED, "unknown method %.*s for service %.*s",
                             SLICE_ARG(method), SLICE_ARG(service));
    } else if (signal != SIGNAL_PROFILES || check_profiles_version(exchange, &verdict)) {
        return true;
    }
    exchange_respond_grpc(exchange, &verdict, (struct slice){0});
    return false;
}

static bool accept_http_head(struct otlp_receiver *receiver, struct exchange *exchange)
{
    int signal = signal_of_http_path(receiver, exchange_path(exchange));
    struct slice content_type = http_header_get(exchange_headers(exchange), "content-type");
    bool is_json = http_is_media_type(content_type, "application/json");
    struct verdict why;
    if (signal < 0)
        respond_text(exchange, 404, "404 page not found\n");
    else if (!slice_is(exchange_method(exchange), "POST"))
        respond_text(exchange, 405, "405 method not allowed, supported: [POST]");
    else if (!is_json && !http_is_media_type(content_type, "application/x-protobuf"))
        respond_text(
            exchange, 415,
            "415 unsupported media type, supported: [application/json, application/x-protobuf]");
    else if (signal == SIGNAL_PROFILES && !check_profiles_version(exchange, &why))
        respond_status(exchange, is_json, 400, &why);
    else
        return true;
    return false;
}

static bool on_head(void *context, struct exchange *exchange)
{
    return exchange_dialect(exchange) == SERVER_GRPC ? accept_grpc_head(context, exchange)
                                                     : accept_http_head(context, exchange);
}

/* What the server itself refuses (a body too large, a broken encoding), said in the terms of OTLP.
 */
static void on_error(void *context, struct exchange *exchange, int http_status,
                     const struct verdict *verdict)
{
    (void)context;
    respond_status(exchange, is_json_request(exchange), http_status, verdict);
}

/* ---- the whole request ---- */

static void on_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct otlp_request *request = (struct otlp_request *)receipt;
    struct received_counters *counters =
        &request->receiver->counters[request->transport][request->signal];
    unsigned worker = exchange_worker(request->exchange)->index;
    counter_add(verdict_is_ok(verdict) ? counters->accepted : counters->refused, worker,
                request->items);
    respond(request->exchange, request->is_json, verdict);
    free(request);
}

/* JSON to protobuf; takes over the body. NULL: *why says so. */
static struct buffer *transcode(struct buffer *body, enum signal signal, struct budget *budget,
                                struct verdict *why)
{
    struct error err;
    bool is_over_budget = false;
    struct buffer *protobuf =
        json_to_protobuf(signal == SIGNAL_TRACES ? JSON_TRACES_REQUEST : JSON_PROFILES_REQUEST,
                         buffer_slice(body), budget, &is_over_budget, &err);
    buffer_unref(body);
    if (!protobuf)
        *why = is_over_budget ? received_over_budget
                              : verdict_of(GRPC_INVALID_ARGUMENT, "%s", err.text);
    return protobuf;
}

/* Checks the request; an odd one is brought into the common form. Takes over the body. NULL: *why
 * says why. */
static struct buffer *examine(struct buffer *body, enum signal signal, struct budget *budget,
                              uint32_t *items_out, struct verdict *why)
{
    struct scan_result scan;
    struct error err;
    bool fine = signal == SIGNAL_TRACES
                    ? scan_traces(buffer_slice(body), &scan_limits_default, &scan, &err)
                    : scan_profiles(buffer_slice(body), &scan_limits_default, &scan, &err);
    if (!fine) {
        *why = verdict_of(GRPC_INVALID_ARGUMENT, "%s", err.text);
        buffer_unref(body);
        return NULL;
    }
    *items_out = scan.items;
    if (signal != SIGNAL_PROFILES || !normalise_needed(&scan))
        return body;
    struct buffer *normal = normalise_profiles(buffer_slice(body), &scan, budget);
    buffer_unref(body);
    if (!normal)
        *why = received_over_budget;
    return normal;
}

static bool includes_metadata(const struct otlp_receiver *receiver, enum transport transport)
{
    const struct otlp_protocols *protocols = &settings_of(receiver)->protocols;
    return transport == TRANSPORT_GRPC ? protocols->grpc.include_metadata
                                       : protocols->http.server.include_metadata;
}

static void forward(struct otlp_receiver *receiver, struct exchange *exchange,
                    struct otlp_request **request_io, struct buffer *body)
{
    struct otlp_request *request = *request_io;
    struct worker *worker = exchange_worker(exchange);
    struct context *metadata =
        includes_metadata(receiver, request->transport) ? received_metadata(exchange) : NULL;
    receipt_init(&request->receipt, on_settled);
    struct batch *batch =
        batch_new(worker, request->signal, body, request->items, &request->receipt, metadata);
    *request_io = NULL; /* the receipt's from here on */
    node_forward(receiver->nodes[worker->index], batch);
}

static void on_request(void *context, struct exchange *exchange)
{
    struct otlp_receiver *receiver = context;
    struct budget *budget = receiver->component.process->budget;
    bool is_grpc = exchange_dialect(exchange) == SERVER_GRPC;
    struct otlp_request *request = memory_zalloc(sizeof(*request));
    *request = (struct otlp_request){
        .receiver = receiver,
        .exchange = exchange,
        .transport = is_grpc ? TRANSPORT_GRPC : TRANSPORT_HTTP,
        .signal = (enum signal)(is_grpc ? signal_of_grpc_path(receiver, exchange_path(exchange))
                                        : signal_of_http_path(receiver, exchange_path(exchange))),
        .is_json = !is_grpc && is_json_request(exchange),
    };
    struct verdict why = verdict_ok;
    struct buffer *body = exchange_take_body(exchange);
    if (request->is_json)
        body = transcode(body, request->signal, budget, &why);
    if (body)
        body = examine(body, request->signal, budget, &request->items, &why);
    if (body && request->items > 0) {
        forward(receiver, exchange, &request, body);
        return;
    }
    /* Refused, or nothing in it: no pipeline is bothered. */
    buffer_unref(body);
    if (why.code == GRPC_INVALID_ARGUMENT) /* not what only came at a bad time */
        counter_add(receiver->counters[request->transport][request->signal].invalid,
                    exchange_worker(exchange)->index, 1);
    respond(exchange, request->is_json, &why);
    free(request);
}

static const struct server_handler handler = {
    .on_head = on_head, .on_request = on_request, .on_error = on_error};

/* ---- life ---- */

static bool open_server(struct otlp_receiver *receiver, enum transport transport,
                        const struct server_options *options, struct error *err)
{
    struct process *process = receiver->component.process;
    receiver->servers[transport] =
        server_new(options, &handler, receiver, process->workers, process->worker_count, err);
    for (int signal = 0; signal < SIGNAL_COUNT; signal++)
        if (is_used(receiver, (enum signal)signal))
            received_counters_init(&receiver->counters[transport][signal], &receiver->component,
                                   transport_names[transport], (enum signal)signal);
    return receiver->servers[transport] != NULL;
}

static void otlp_deinit(struct component *component)
{
    struct otlp_receiver *receiver = (struct otlp_receiver *)component;
    for (int i = 0; i < TRANSPORT_COUNT; i++)
        if (receiver->servers[i])
            server_free(receiver->servers[i]);
}

static bool otlp_init(struct component *component, struct error *err)
{
    struct otlp_receiver *receiver = (struct otlp_receiver *)component;
    const struct otlp_protocols *protocols = &settings_of(receiver)->protocols;
    struct server_options grpc =
        grpc_server_options(&protocols->grpc, component->process, component->label);
    struct server_options http = http_server_options(
        &protocols->http.server, protocols->http.endpoint, component->process, component->label);
    bool fine = (!protocols->grpc.enabled || open_server(receiver, TRANSPORT_GRPC, &grpc, err)) &&
                (!protocols->http.enabled || open_server(receiver, TRANSPORT_HTTP, &http, err));
    if (!fine)
        otlp_deinit(component);
    return fine;
}

static bool otlp_node_start(struct node *node, struct error *err)
{
    (void)err;
    struct otlp_receiver *receiver = (struct otlp_receiver *)node->component;
    receiver->nodes[node->worker->index] = node;
    /* Workers start one after the other: only when the last has its node may a connection arrive
     * anywhere. */
    if (node->worker->index + 1 < receiver->component.process->worker_count)
        return true;
    static const char *const starting[] = {"Starting GRPC server", "Starting HTTP server"};
    const struct otlp_protocols *protocols = &settings_of(receiver)->protocols;
    const char *const endpoints[] = {protocols->grpc.endpoint, protocols->http.endpoint};
    receiver->started = true;
    for (int i = 0; i < TRANSPORT_COUNT; i++)
        if (receiver->servers[i]) {
            server_start(receiver->servers[i]);
            log_info(node->component->label, "%s, endpoint: %s", starting[i], endpoints[i]);
        }
    return true;
}

static void on_server_drained(void *context)
{
    struct otlp_node *node = context;
    assert(node->undrained_servers > 0);
    if (--node->undrained_servers == 0)
        node_drained(&node->node);
}

static void otlp_node_drain(struct node *node)
{
    struct otlp_receiver *receiver = (struct otlp_receiver *)node->component;
    struct otlp_node *self = (struct otlp_node *)node;
    self->undrained_servers = 1; /* ours, while the loop runs */
    for (int i = 0; i < TRANSPORT_COUNT; i++)
        if (receiver->servers[i]) {
            self->undrained_servers++;
            server_drain(receiver->servers[i], node->worker, on_server_drained, self);
        }
    on_server_drained(self);
}

static void otlp_node_stop(struct node *node)
{
    struct otlp_receiver *receiver = (struct otlp_receiver *)node->component;
    /* Never started when another worker could not start its nodes. */
    for (int i = 0; i < TRANSPORT_COUNT && receiver->started; i++)
        if (receiver->servers[i])
            server_stop(receiver->servers[i], node->worker);
}

static void otlp_check(void *config, struct config_check *check)
{
    const struct otlp_settings *settings = config;
    const struct otlp_protocols *protocols = &settings->protocols;
    if (!protocols->grpc.enabled && !protocols->http.enabled)
        config_check_error(
            check, "protocols",
            "must specify at least one protocol (grpc or http) when using the OTLP receiver");
    grpc_server_check(&protocols->grpc, check, "protocols::grpc");
    if (protocols->http.enabled)
        http_server_check(&protocols->http.server, protocols->http.endpoint, check,
                          "protocols::http");
}

const struct component_type otlp_receiver_type = {
    .config =
        {
            .name = "otlp",
            .section = CONFIG_RECEIVERS,
            .stability = {[CONFIG_TRACES] = STABILITY_BETA, [CONFIG_PROFILES] = STABILITY_ALPHA},
            .help = "Receives OTLP traces and profiles over gRPC and HTTP, in protobuf and JSON, "
                    "uncompressed or in any of OTLP's encodings. Profiles of the 1.9 layout and "
                    "reference "
                    "attributes are understood and brought into the current form.",
            .fields = otlp_fields,
            .config_size = sizeof(struct otlp_settings),
            .check = otlp_check,
        },
    .component_size = sizeof(struct otlp_receiver),
    .init = otlp_init,
    .deinit = otlp_deinit,
    .node_size = sizeof(struct otlp_node),
    .node_start = otlp_node_start,
    .node_drain = otlp_node_drain,
    .node_stop = otlp_node_stop,
};

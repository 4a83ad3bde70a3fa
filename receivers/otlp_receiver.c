/*
 * otlp_receiver: receives OTLP over gRPC and HTTP, in protobuf and JSON.
 *
 * https://opentelemetry.io/docs/specs/otlp/ . core/net/server.h does framing, decompression and
 * limits. This file recognises a request, has it checked and normalised
 * (core/pipeline/otlp_request.h), and passes it on with a receipt. When the receipt is settled, the
 * client gets its answer.
 *
 * Owner: an `otlp_request` lives from the complete request to the answer.
 *
 * Thread: the exchange's worker.
 */
#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/data/signals.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/empty_profiles.h"
#include "core/pipeline/otlp_request.h"
#include "core/pipeline/reading.h"
#include "core/pipeline/received.h"
#include "core/pipeline/receiver_server.h"
#include "core/pipeline/server_settings.h"

#include <assert.h>
#include <stdio.h>

struct otlp_http_settings {
    bool enabled;
    const char *endpoint;
    struct http_server_settings server;
    const char *traces_url_path;
    const char *metrics_url_path;
    const char *logs_url_path;
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
    FIELD_STRING(otlp_http_settings, traces_url_path, "URL path for traces.",
                 .fallback = "/v1/traces"),
    FIELD_STRING(otlp_http_settings, metrics_url_path, "URL path for metrics.",
                 .fallback = "/v1/metrics"),
    FIELD_STRING(otlp_http_settings, logs_url_path, "URL path for logs.", .fallback = "/v1/logs"),
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
                "The protocols to serve; at least one is required."),
    FIELD_END,
};

enum transport { TRANSPORT_GRPC, TRANSPORT_HTTP, TRANSPORT_COUNT };
static const char *const transport_names[] = {"grpc", "http"};

struct otlp_receiver {
    struct component component;
    struct receiver_server servers[TRANSPORT_COUNT];
    struct received_counters counters[TRANSPORT_COUNT][SIGNAL_COUNT];
    struct node *nodes[WORKERS_MAX];
};

struct otlp_node {
    struct node node;
    size_t undrained_servers;
};

extern const struct component_type otlp_receiver_type;

static struct otlp_receiver *receiver_of(struct component *component)
{
    return component_as(struct otlp_receiver, component, &otlp_receiver_type);
}

static struct otlp_node *node_of(struct node *node)
{
    return node_as(struct otlp_node, node, &otlp_receiver_type);
}

/* A request without an answer yet. */
struct otlp_request {
    struct received received;
    struct otlp_receiver *receiver;
    enum transport transport;
    enum signal signal;
    bool is_json;
    struct otlp_request_content content;
};

/* ---- recognising ---- */

static const struct otlp_settings *settings_of(const struct otlp_receiver *receiver)
{
    return receiver->component.settings;
}

static bool is_used(const struct otlp_receiver *receiver, enum signal signal)
{
    return receiver->component.pipeline_count[signal] > 0;
}

/* Returns the path of a signal. */
static const char *http_path_of(const struct otlp_receiver *receiver, enum signal signal)
{
    const struct otlp_http_settings *http = &settings_of(receiver)->protocols.http;
    switch (signal) {
    case SIGNAL_TRACES:
        return http->traces_url_path;
    case SIGNAL_METRICS:
        return http->metrics_url_path;
    case SIGNAL_LOGS:
        return http->logs_url_path;
    default:
        return signal_traits(signal)->url_path; /* in development, so nobody may change it */
    }
}

/* Whether it is the configured path, whose first slash users may leave out. */
static bool is_path(const char *configured, struct slice path)
{
    if (configured[0] != '/' && path.size > 0)
        path = slice_of(path.data + 1, path.size - 1);
    return slice_is(path, configured);
}

/* Returns the signal of a path; -1 if the path is unknown. */
static int signal_of_http_path(const struct otlp_receiver *receiver, struct slice path)
{
    for (int signal = 0; signal < SIGNAL_COUNT; signal++)
        if (is_used(receiver, (enum signal)signal) &&
            is_path(http_path_of(receiver, (enum signal)signal), path))
            return signal;
    return -1;
}

static const char *grpc_service_of(int signal)
{
    return signal_traits((enum signal)signal)->grpc_service;
}

static int signal_of_grpc_path(const struct otlp_receiver *receiver, struct slice path)
{
    for (int signal = 0; signal < SIGNAL_COUNT; signal++)
        if (is_used(receiver, (enum signal)signal) &&
            slice_begins_with(path, slice_of_string(grpc_service_of(signal))))
            return signal;
    return -1;
}

static bool is_json_request(const struct exchange *exchange)
{
    return http_is_media_type(http_header_get(exchange_headers(exchange), "content-type"),
                              "application/json");
}

/* ---- answers ---- */

static void respond_text(struct exchange *exchange, int status, const char *text)
{
    exchange_respond(exchange, status, status == 404 ? "text/plain; charset=utf-8" : "text/plain",
                     slice_of_string(text), NULL, 0);
}

/* ---- the head ---- */

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
    } else if (path.size != strlen(grpc_service_of(signal)) + 6 ||
               memcmp(path.data + path.size - 6, "Export", 6) != 0) {
        struct slice method = slice_of(slash + 1, path.size - (size_t)(slash + 1 - path.data));
        struct slice service = slice_of(path.data + 1, (size_t)(slash - path.data) - 1);
        verdict = verdict_of(GRPC_UNIMPLEMENTED, "unknown method %.*s for service %.*s",
                             SLICE_ARG(method), SLICE_ARG(service));
    } else if (signal != SIGNAL_PROFILES ||
               otlp_request_check_profiles_version(exchange, &verdict)) {
        return true;
    }
    exchange_respond_grpc(exchange, &verdict, (struct slice){0});
    return false;
}

/* The Collector's mux answers "//v1/traces" with a redirect, known or not. */
static void refuse_path(struct exchange *exchange)
{
    if (!exchange_redirect(exchange))
        respond_text(exchange, 404, "404 page not found\n");
}

static bool accept_http_head(struct otlp_receiver *receiver, struct exchange *exchange)
{
    int signal = signal_of_http_path(receiver, exchange_path(exchange));
    struct slice content_type = http_header_get(exchange_headers(exchange), "content-type");
    bool is_json = http_is_media_type(content_type, "application/json");
    struct verdict why;
    if (signal >= 0)
        exchange_match_route(exchange);
    if (signal < 0)
        refuse_path(exchange);
    else if (!slice_is(exchange_method(exchange), "POST"))
        respond_text(exchange, 405, "405 method not allowed, supported: [POST]");
    else if (!is_json && !http_is_media_type(content_type, "application/x-protobuf"))
        respond_text(
            exchange, 415,
            "415 unsupported media type, supported: [application/json, application/x-protobuf]");
    else if (signal == SIGNAL_PROFILES && !otlp_request_check_profiles_version(exchange, &why))
        otlp_request_refuse(exchange, is_json, 400, &why);
    else
        return true;
    return false;
}

static bool on_head(void *context, struct exchange *exchange)
{
    return exchange_dialect(exchange) == SERVER_GRPC ? accept_grpc_head(context, exchange)
                                                     : accept_http_head(context, exchange);
}

/* Answers requests that the server itself refuses (a body too large, invalid compression), in the
 * form of OTLP. */
static void on_error(void *context, struct exchange *exchange, int http_status,
                     const struct verdict *verdict)
{
    assert(exchange_dialect(exchange) == SERVER_HTTP);
    (void)context;
    otlp_request_refuse(exchange, is_json_request(exchange), http_status, verdict);
}

/* ---- the whole request ---- */

static void on_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct otlp_request *request = container_of(receipt, struct otlp_request, received.receipt);
    struct exchange *exchange = request->received.exchange;
    assert(worker_is_current(exchange_worker(exchange)));
    struct received_counters *counters =
        &request->receiver->counters[request->transport][request->signal];
    counter_add(verdict_is_ok(verdict) ? counters->accepted : counters->refused,
                exchange_worker(exchange)->index, request->content.items);
    otlp_request_respond(exchange, request->is_json, verdict);
    free(request);
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
    assert(receiver->nodes[worker->index]->worker == worker);
    struct context *context =
        received_context(exchange, includes_metadata(receiver, request->transport));
    received_init(&request->received, exchange, on_settled);
    struct batch *batch = batch_new(worker, request->signal, body, request->content.items,
                                    &request->received.receipt, context);
    batch->peer = exchange_peer_key(exchange);
    batch->arrived_empty = request->content.items == 0;
    batch->layout = request->content.layout;
    *request_io = NULL; /* the receipt owns it from here on */
    node_forward(receiver->nodes[worker->index], batch);
}

static bool is_wanted(const struct otlp_request *request, const struct exchange *exchange,
                      const struct buffer *body)
{
    const struct node *node = request->receiver->nodes[exchange_worker(exchange)->index];
    if (request->signal != SIGNAL_PROFILES || body->size == 0)
        return request->content.items > 0;
    return profiles_are_wanted(node, request->content.items);
}

/* body: the request for the pipelines; NULL: it is refused, see *why. */
static void finish_reading(struct otlp_request *request, struct exchange *exchange,
                           struct buffer *body, const struct verdict *why)
{
    assert(body || !verdict_is_ok(why));
    struct otlp_receiver *receiver = request->receiver;
    struct received_counters *counters = &receiver->counters[request->transport][request->signal];
    if (body && is_wanted(request, exchange, body)) {
        forward(receiver, exchange, &request, body);
        return;
    }
    /* Refused or empty: answer without passing it on. */
    buffer_unref(body);
    received_count_unread(counters, exchange, why);
    otlp_request_respond(exchange, request->is_json, why);
    free(request);
}

/* ---- a large request, which a job reads ---- */

struct otlp_reading {
    struct reading reading;
    struct otlp_request *request;
};

static void read_large(struct reading *reading)
{
    struct otlp_request *request = container_of(reading, struct otlp_reading, reading)->request;
    reading->request =
        otlp_request_read(reading->body, request->signal, request->is_json,
                          exchange_budget(reading->exchange), &request->content, &reading->why);
    reading->items = request->content.items;
}

static void on_large_read(struct reading *reading)
{
    struct otlp_reading *self = container_of(reading, struct otlp_reading, reading);
    struct otlp_request *request = self->request;
    reading_drop_abandoned(
        reading, request->receiver->counters[request->transport][request->signal].refused);
    finish_reading(request, reading->exchange, reading->request, &reading->why);
    free(self);
}

static void start_reading(struct otlp_request *request, struct exchange *exchange,
                          struct buffer *body)
{
    struct otlp_reading *self = memory_zalloc(sizeof *self);
    self->request = request;
    self->reading = (struct reading){
        .exchange = exchange, .body = body, .read = read_large, .done = on_large_read};
    reading_start(&self->reading);
}

static void refuse_removed_signal(struct exchange *exchange, bool is_grpc)
{
    struct verdict verdict = verdict_of(GRPC_UNIMPLEMENTED, "no pipeline takes this signal");
    if (is_grpc)
        exchange_respond_grpc(exchange, &verdict, (struct slice){0});
    else
        respond_text(exchange, 404, "404 page not found\n");
}

static int signal_of(const struct otlp_receiver *receiver, const struct exchange *exchange)
{
    return exchange_dialect(exchange) == SERVER_GRPC
               ? signal_of_grpc_path(receiver, exchange_path(exchange))
               : signal_of_http_path(receiver, exchange_path(exchange));
}

static void on_request(void *context, struct exchange *exchange)
{
    struct otlp_receiver *receiver = context;
    struct budget *budget = exchange_budget(exchange);
    bool is_grpc = exchange_dialect(exchange) == SERVER_GRPC;
    if (signal_of(receiver, exchange) < 0) { /* a reload came between the head and the body */
        refuse_removed_signal(exchange, is_grpc);
        return;
    }
    struct otlp_request *request = memory_zalloc(sizeof *request);
    *request = (struct otlp_request){
        .receiver = receiver,
        .transport = is_grpc ? TRANSPORT_GRPC : TRANSPORT_HTTP,
        .signal = (enum signal)signal_of(receiver, exchange),
        .is_json = !is_grpc && is_json_request(exchange),
    };
    struct buffer *body = exchange_take_body(exchange);
    if (otlp_request_is_large(body->size, request->is_json)) {
        start_reading(request, exchange, body);
        return;
    }
    struct verdict why = verdict_ok;
    body =
        otlp_request_read(body, request->signal, request->is_json, budget, &request->content, &why);
    finish_reading(request, exchange, body, &why);
}

static const struct server_handler handler = {
    .on_head = on_head, .on_request = on_request, .on_error = on_error};

/* ---- start and stop ---- */

static bool is_same_listener(const struct otlp_settings *one, const struct otlp_settings *other,
                             enum transport transport)
{
    const struct otlp_http_settings *http = &one->protocols.http;
    const struct otlp_http_settings *other_http = &other->protocols.http;
    if (transport == TRANSPORT_GRPC)
        return grpc_server_is_same(&one->protocols.grpc, &other->protocols.grpc);
    return http->enabled && other_http->enabled &&
           http_server_is_same(&http->server, http->endpoint, &other_http->server,
                               other_http->endpoint);
}

static bool open_server(struct otlp_receiver *receiver, enum transport transport,
                        const struct server_options *options, struct error *err)
{
    struct component *component = &receiver->component;
    struct otlp_receiver *former =
        component->predecessor ? receiver_of(component->predecessor) : NULL;
    bool is_same =
        former && is_same_listener(settings_of(former), settings_of(receiver), transport);
    return receiver_server_open(&receiver->servers[transport], component, options, &handler,
                                receiver, is_same ? &former->servers[transport] : NULL, err);
}

/* Counters that exist already stay the same. */
static void make_counters(struct component *component)
{
    struct otlp_receiver *receiver = receiver_of(component);
    for (int transport = 0; transport < TRANSPORT_COUNT; transport++)
        for (int signal = 0; signal < SIGNAL_COUNT; signal++)
            if (receiver_server_is_used(&receiver->servers[transport]) &&
                is_used(receiver, (enum signal)signal))
                received_counters_init(&receiver->counters[transport][signal], component,
                                       transport_names[transport], (enum signal)signal);
}

static void otlp_deinit(struct component *component)
{
    struct otlp_receiver *receiver = receiver_of(component);
    for (int i = 0; i < TRANSPORT_COUNT; i++)
        receiver_server_close(&receiver->servers[i]);
}

static bool otlp_init(struct component *component, struct error *err)
{
    struct otlp_receiver *receiver = receiver_of(component);
    const struct otlp_protocols *protocols = &settings_of(receiver)->protocols;
    struct server_options grpc = {0}, http = {0};
    if (protocols->grpc.enabled)
        grpc = grpc_server_options(&protocols->grpc, component->process, component->label);
    if (protocols->http.enabled)
        http = http_server_options(&protocols->http.server, protocols->http.endpoint,
                                   component->process, component->label);
    bool fine = (!protocols->grpc.enabled || open_server(receiver, TRANSPORT_GRPC, &grpc, err)) &&
                (!protocols->http.enabled || open_server(receiver, TRANSPORT_HTTP, &http, err));
    if (fine)
        make_counters(component);
    else
        otlp_deinit(component);
    return fine;
}

static void otlp_take_over(struct component *component)
{
    struct otlp_receiver *receiver = receiver_of(component);
    for (int i = 0; i < TRANSPORT_COUNT; i++)
        receiver_server_take_over(&receiver->servers[i]);
}

static bool otlp_node_start(struct node *node, struct error *err)
{
    (void)err;
    struct otlp_receiver *receiver = receiver_of(node->component);
    const struct otlp_protocols *protocols = &settings_of(receiver)->protocols;
    assert(node->worker->index < WORKERS_MAX);
    receiver->nodes[node->worker->index] = node;
    if (receiver_server_start(&receiver->servers[TRANSPORT_GRPC], node))
        log_info(node->origin, "Starting GRPC server",
                 LOG_TEXT("endpoint", protocols->grpc.endpoint));
    if (receiver_server_start(&receiver->servers[TRANSPORT_HTTP], node))
        log_info(node->origin, "Starting HTTP server",
                 LOG_TEXT("endpoint", protocols->http.endpoint));
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
    struct otlp_receiver *receiver = receiver_of(node->component);
    struct otlp_node *self = node_of(node);
    assert(self->undrained_servers == 0);
    self->undrained_servers = 1 + TRANSPORT_COUNT; /* one for this function, while the loop runs */
    for (int i = 0; i < TRANSPORT_COUNT; i++)
        if (!receiver_server_drain(&receiver->servers[i], node, on_server_drained, self))
            on_server_drained(self);
    on_server_drained(self);
}

static void otlp_node_stop(struct node *node)
{
    struct otlp_receiver *receiver = receiver_of(node->component);
    for (int i = 0; i < TRANSPORT_COUNT; i++)
        receiver_server_stop(&receiver->servers[i], node);
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

static size_t otlp_same_listeners(const void *before, const void *after,
                                  struct config_same_listener listeners_out[CONFIG_LISTENERS_MAX])
{
    const struct otlp_protocols *protocols = &((const struct otlp_settings *)after)->protocols;
    size_t count = 0;
    if (is_same_listener(before, after, TRANSPORT_GRPC))
        listeners_out[count++] =
            grpc_server_listener(transport_names[TRANSPORT_GRPC], &protocols->grpc);
    if (is_same_listener(before, after, TRANSPORT_HTTP))
        listeners_out[count++] =
            http_server_listener(transport_names[TRANSPORT_HTTP], &protocols->http.server);
    return count;
}

/* One of the listeners is enough. */
static bool otlp_passes_header(const void *config, const char *name)
{
    const struct otlp_protocols *protocols = &((const struct otlp_settings *)config)->protocols;
    (void)name;
    return (protocols->grpc.enabled && protocols->grpc.include_metadata) ||
           (protocols->http.enabled && protocols->http.server.include_metadata);
}

const struct component_type otlp_receiver_type = {
    .config =
        {
            .name = "otlp",
            .section = CONFIG_RECEIVERS,
            .stability = {[CONFIG_TRACES] = STABILITY_BETA,
                          [CONFIG_PROFILES] = STABILITY_ALPHA,
                          [CONFIG_METRICS] = STABILITY_ALPHA,
                          [CONFIG_LOGS] = STABILITY_ALPHA},
            .help = "Receives OTLP over gRPC and HTTP, in protobuf and JSON, "
                    "with or without compression. Profiles with the 1.9 layout or with reference "
                    "attributes are converted to the current form.",
            .fields = otlp_fields,
            .config_size = sizeof(struct otlp_settings),
            .check = otlp_check,
            .same_listeners = otlp_same_listeners,
            .passes_header = otlp_passes_header,
        },
    .component_size = sizeof(struct otlp_receiver),
    .init = otlp_init,
    .deinit = otlp_deinit,
    .take_over = otlp_take_over,
    .pipelines_changed = make_counters,
    .node_size = sizeof(struct otlp_node),
    .node_start = otlp_node_start,
    .node_drain = otlp_node_drain,
    .node_stop = otlp_node_stop,
};

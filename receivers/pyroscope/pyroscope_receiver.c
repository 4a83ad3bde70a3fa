/*
 * pyroscope_receiver: accepts the requests of Pyroscope's SDKs, on Pyroscope's port.
 *
 * POST /ingest (ingest.c), push.v1.PusherService/Push (push.c) over Connect, gRPC and gRPC-Web, and
 * OTLP profiles, which Pyroscope accepts, too. One upload becomes one OTLP profiles request
 * (docs/pyroscope.md) with one receipt. When the receipt is settled, the client gets its answer in
 * its own protocol.
 *
 * Owner: a `pyroscope_request` lives from the complete request to the answer.
 *
 * Thread: the exchange's worker.
 */
#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/data/signals.h"
#include "core/data/utf8.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/empty_profiles.h"
#include "core/pipeline/otlp_request.h"
#include "core/pipeline/reading.h"
#include "core/pipeline/received.h"
#include "core/pipeline/received_profiles.h"
#include "core/pipeline/receiver_server.h"
#include "core/pipeline/threads_behind.h"
#include "receivers/pyroscope/connect_error.h"
#include "receivers/pyroscope/grpc_web.h"
#include "receivers/pyroscope/ingest.h"
#include "receivers/pyroscope/push.h"
#include "receivers/pyroscope/service_names.h"
#include "receivers/pyroscope/upload_protocol.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>

static const struct field pyroscope_fields[] = {
    FIELD_STRING(pyroscope_settings, endpoint, HTTP_SERVER_ENDPOINT_HELP,
                 .fallback = "localhost:4040"),
    FIELD_BLOCK(pyroscope_settings, server, http_server_settings, http_server_fields,
                "The listener.", .inlined = true),
    FIELD_STRING(pyroscope_settings, service_name_header,
                 "A request header that names the service when the upload does not."),
    FIELD_STRING(pyroscope_settings, default_service_name,
                 "The service when neither the upload nor a header names one.",
                 .fallback = "unknown_service"),
    FIELD_END,
};

enum transport { TRANSPORT_GRPC, TRANSPORT_HTTP, TRANSPORT_COUNT };
static const char *const transport_names[] = {"grpc", "http"};

struct pyroscope_receiver {
    struct component component;
    struct receiver_server server;
    struct received_counters counters[TRANSPORT_COUNT];
    struct node *nodes[WORKERS_MAX];
};

extern const struct component_type pyroscope_receiver_type;

static struct pyroscope_receiver *receiver_of(struct component *component)
{
    return component_as(struct pyroscope_receiver, component, &pyroscope_receiver_type);
}

/* A request without an answer yet. */
struct pyroscope_request {
    struct received received;
    struct pyroscope_receiver *receiver;
    enum protocol protocol;
    uint32_t samples;
};

static const struct pyroscope_settings *settings_of(const struct pyroscope_receiver *receiver)
{
    return receiver->component.settings;
}

static enum transport transport_of(const struct exchange *exchange)
{
    return exchange_dialect(exchange) == SERVER_GRPC ? TRANSPORT_GRPC : TRANSPORT_HTTP;
}

/* ---- answers ---- */

/* At /ingest, an invalid body gives 422 and an invalid query 400, as in Pyroscope. */
static int ingest_http_status(const struct verdict *verdict, const struct verdict *said)
{
    if (verdict->code == GRPC_RESOURCE_EXHAUSTED && !verdict_is_retryable(verdict))
        return 413;
    int status = connect_http_status(said->code);
    return status == 400 ? 422 : status;
}

static void respond_success(struct exchange *exchange, enum protocol protocol)
{
    switch (protocol) {
    case PROTOCOL_CONNECT_PROTO:
        exchange_respond(exchange, 200, "application/proto", (struct slice){0}, NULL, 0);
        break;
    case PROTOCOL_CONNECT_JSON:
        exchange_respond(exchange, 200, "application/json", SLICE("{}"), NULL, 0);
        break;
    default:
        assert(protocol == PROTOCOL_INGEST); /* other protocols were answered above */
        exchange_respond(exchange, 200, NULL, (struct slice){0}, NULL, 0);
        break;
    }
}

static void respond(struct exchange *exchange, enum protocol protocol,
                    const struct verdict *verdict)
{
    struct verdict said = connect_verdict(verdict);
    if (protocol_is_otlp(protocol))
        otlp_request_respond(exchange, protocol == PROTOCOL_OTLP_JSON, verdict);
    else if (protocol == PROTOCOL_GRPC)
        exchange_respond_grpc(exchange, verdict, (struct slice){0});
    else if (protocol == PROTOCOL_GRPC_WEB)
        grpc_web_respond(exchange, verdict);
    else if (verdict_is_ok(verdict))
        respond_success(exchange, protocol);
    else
        connect_respond_error(exchange,
                              protocol == PROTOCOL_INGEST ? ingest_http_status(verdict, &said)
                                                          : connect_http_status(said.code),
                              &said);
}

/* ---- the head ---- */

/* Most such requests are queries of a Grafana or a browser that still has Pyroscope's old port. */
#define NO_QUERIES                                                                                 \
    "this is profcol, which takes uploads of profiles and answers no queries: in Grafana's data "  \
    "source, use the address of Pyroscope itself, as in `endpoint` of profcol's exporter "         \
    "pyroscope"

static void refuse_path(struct exchange *exchange)
{
    struct slice type = http_header_get(exchange_headers(exchange), "content-type");
    struct verdict verdict = verdict_of(GRPC_UNIMPLEMENTED, "%s", NO_QUERIES);
    if (exchange_dialect(exchange) == SERVER_GRPC)
        exchange_respond_grpc(exchange, &verdict, (struct slice){0});
    else if (grpc_web_is(type))
        grpc_web_respond(exchange, &verdict);
    else if (protocol_path_is_method(exchange_path(exchange)))
        connect_respond_error(exchange, connect_http_status(verdict.code), &verdict);
    else
        exchange_respond(exchange, 404, "text/plain; charset=utf-8",
                         SLICE("404 page not found: " NO_QUERIES "\n"), NULL, 0);
}

static void refuse_method(struct exchange *exchange)
{
    struct http_header allow = {SLICE("allow"), SLICE("POST")};
    exchange_respond(exchange, 405, "text/plain; charset=utf-8", SLICE("405 only POST\n"), &allow,
                     1);
}

static void refuse_content_type(struct exchange *exchange)
{
    struct http_header accepted = {
        SLICE("accept-post"), slice_is(exchange_path(exchange), OTLP_PROFILES_URL_PATH)
                                  ? SLICE("application/x-protobuf, application/json")
                                  : SLICE("application/proto, application/json, application/grpc, "
                                          "application/grpc-web, application/grpc-web+proto")};
    exchange_respond(exchange, 415, NULL, (struct slice){0}, &accepted, 1);
}

static void count_invalid(struct pyroscope_receiver *receiver, const struct exchange *exchange)
{
    counter_add(receiver->counters[transport_of(exchange)].invalid,
                exchange_worker(exchange)->index, 1);
}

/* Refuses an invalid query before the body is read. */
static bool check_query(struct pyroscope_receiver *receiver, struct exchange *exchange)
{
    struct arena arena = {0};
    struct ingest_query query;
    struct error err;
    bool fine = ingest_query_parse(exchange_query(exchange), clock_wall_ns(), &arena, &query, &err);
    if (!fine) {
        struct verdict verdict = verdict_of(GRPC_INVALID_ARGUMENT, "%s", err.text);
        count_invalid(receiver, exchange);
        connect_respond_error(exchange, 400, &verdict);
    }
    arena_deinit(&arena);
    return fine;
}

static bool check_connect(struct exchange *exchange)
{
    struct slice version = http_header_get(exchange_headers(exchange), "connect-protocol-version");
    if (!version.data || slice_is(version, "1"))
        return true;
    struct verdict verdict =
        verdict_of(GRPC_INVALID_ARGUMENT, "connect-protocol-version must be \"1\"");
    connect_respond_error(exchange, 400, &verdict);
    return false;
}

static bool check_otlp(struct exchange *exchange, enum protocol protocol)
{
    struct verdict why;
    if (otlp_request_check_profiles_version(exchange, &why))
        return true;
    otlp_request_respond(exchange, protocol == PROTOCOL_OTLP_JSON, &why);
    return false;
}

static bool check_head(struct pyroscope_receiver *receiver, struct exchange *exchange,
                       enum protocol protocol)
{
    switch (protocol) {
    case PROTOCOL_INGEST:
        return check_query(receiver, exchange);
    case PROTOCOL_CONNECT_PROTO:
    case PROTOCOL_CONNECT_JSON:
        return check_connect(exchange);
    case PROTOCOL_OTLP_PROTO:
    case PROTOCOL_OTLP_JSON:
        return check_otlp(exchange, protocol);
    default:
        assert(protocol == PROTOCOL_GRPC || protocol == PROTOCOL_GRPC_WEB);
        return true;
    }
}

static bool on_head(void *context, struct exchange *exchange)
{
    enum protocol protocol = protocol_of(exchange);
    bool is_known = protocol_path_is_known(exchange);
    if (is_known && exchange_dialect(exchange) == SERVER_HTTP)
        exchange_match_route(exchange);
    if (!is_known)
        refuse_path(exchange);
    else if (!slice_is(exchange_method(exchange), "POST"))
        refuse_method(exchange);
    else if (protocol == PROTOCOL_NONE)
        refuse_content_type(exchange);
    else
        return check_head(context, exchange, protocol);
    return false;
}

/* Answers requests that the server itself refuses: a body too large, invalid compression, missing
 * credentials (at any path). */
static void on_error(void *context, struct exchange *exchange, int http_status,
                     const struct verdict *verdict)
{
    (void)context;
    enum protocol protocol = protocol_of(exchange);
    assert(exchange_dialect(exchange) == SERVER_HTTP);
    struct verdict said = *verdict;
    if (http_status == 413)
        said.code = GRPC_RESOURCE_EXHAUSTED; /* for protocols that do not show the HTTP status */
    if (protocol == PROTOCOL_GRPC_WEB)
        grpc_web_respond(exchange, &said);
    else if (protocol_is_otlp(protocol))
        otlp_request_refuse(exchange, protocol == PROTOCOL_OTLP_JSON, http_status, verdict);
    else
        connect_respond_error(exchange, http_status, verdict);
}

/* ---- the whole request ---- */

static void on_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct pyroscope_request *request =
        container_of(receipt, struct pyroscope_request, received.receipt);
    struct exchange *exchange = request->received.exchange;
    assert(worker_is_current(exchange_worker(exchange)));
    struct received_counters *counters = &request->receiver->counters[transport_of(exchange)];
    counter_add(verdict_is_ok(verdict) ? counters->accepted : counters->refused,
                exchange_worker(exchange)->index, request->samples);
    respond(exchange, request->protocol, verdict);
    free(request);
}

static bool read_ingest(struct upload *upload, const struct exchange *exchange, struct slice body,
                        struct verdict *why)
{
    struct ingest_query query;
    struct error err;
    if (ingest_query_parse(exchange_query(exchange), upload->now_ns, &upload->arena, &query, &err))
        return ingest_read(upload, &query, body, why);
    *why = verdict_of(GRPC_INVALID_ARGUMENT, "%s", err.text);
    return false;
}

static bool read_grpc_web(struct upload *upload, struct slice body, struct verdict *why)
{
    struct plain message = {0};
    bool fine = grpc_web_read(upload, body, &message, why) && push_read(upload, message.bytes, why);
    plain_close(&message);
    return fine;
}

static bool read_upload(struct upload *upload, enum protocol protocol,
                        const struct exchange *exchange, struct slice body, struct verdict *why)
{
    switch (protocol) {
    case PROTOCOL_INGEST:
        return read_ingest(upload, exchange, body, why);
    case PROTOCOL_CONNECT_JSON:
        return push_read_json(upload, body, why);
    case PROTOCOL_GRPC_WEB:
        return read_grpc_web(upload, body, why);
    default:
        assert(protocol == PROTOCOL_CONNECT_PROTO || protocol == PROTOCOL_GRPC);
        return push_read(upload, body, why);
    }
}

/* How a body is converted. */
struct conversion {
    enum protocol protocol;
    unsigned added_threads; /* as in struct upload */
    bool with_empty;        /* profiles without samples are kept */
    size_t plain_max;       /* limit for all decompressed parts */
};

/* *unfolds_out: the parts exceed plain_max. */
static struct buffer *convert_upload(const struct pyroscope_receiver *receiver,
                                     const struct conversion *conversion,
                                     const struct exchange *exchange, struct slice body,
                                     bool *unfolds_out, uint32_t *samples_out, struct verdict *why)
{
    struct upload upload;
    struct buffer *result = NULL;
    size_t limit = decompress_limit(exchange_received_bytes(exchange));
    upload_init(&upload, settings_of(receiver), exchange_headers(exchange),
                limit < conversion->plain_max ? limit : conversion->plain_max,
                exchange_budget(exchange));
    upload.added_threads = conversion->added_threads;
    if (conversion->with_empty)
        profiles_builder_keep_empty(upload.builder);
    if (read_upload(&upload, conversion->protocol, exchange, body, why))
        result = received_profiles_finish(upload.builder, samples_out, why);
    *unfolds_out = upload.unfolds;
    upload_deinit(&upload);
    return result;
}

/* A header may contain any bytes; OTLP's strings must be UTF-8. */
static struct slice otlp_service(const struct pyroscope_settings *settings,
                                 const struct http_headers *headers)
{
    struct slice name = upload_default_service(settings, headers);
    return utf8_is_valid(name) ? name : slice_of_string(settings->default_service_name);
}

static struct buffer *read_otlp(const struct pyroscope_receiver *receiver, bool is_json,
                                const struct exchange *exchange, struct buffer *body,
                                uint32_t *samples_out, struct verdict *why)
{
    struct otlp_request_content content;
    struct buffer *request =
        otlp_request_read(body, SIGNAL_PROFILES, is_json, exchange_budget(exchange), &content, why);
    *samples_out = content.items;
    struct slice name = otlp_service(settings_of(receiver), exchange_headers(exchange));
    if (!request || service_names_fit(buffer_slice(request), name))
        return request;
    *why = verdict_of(GRPC_RESOURCE_EXHAUSTED, "there are too many resources without a service");
    buffer_unref(request);
    return NULL;
}

static const char tenant_header[] = "x-scope-orgid";

/* Without include_metadata, the context still has the tenant, so that profiles of different tenants
 * are never mixed. */
static struct context *context_of(const struct pyroscope_receiver *receiver,
                                  const struct exchange *exchange)
{
    bool with_headers = settings_of(receiver)->server.include_metadata;
    struct context *context = received_context(exchange, with_headers);
    struct slice tenant = http_header_get(exchange_headers(exchange), tenant_header);
    if (tenant.size == 0 || with_headers)
        return context;
    if (!context) {
        context = context_new();
        arena_init(&context->arena, exchange_budget(exchange));
    }
    context->entries = arena_array(&context->arena, 1, sizeof *context->entries);
    context->entries[context->entry_count++] =
        (struct context_entry){tenant_header, arena_string(&context->arena, tenant)};
    return context;
}

static void forward(struct pyroscope_receiver *receiver, struct exchange *exchange,
                    const struct conversion *conversion, struct buffer *profiles, uint32_t samples)
{
    enum protocol protocol = conversion->protocol;
    struct worker *worker = exchange_worker(exchange);
    assert(receiver->nodes[worker->index]->worker == worker);
    struct pyroscope_request *request = memory_zalloc(sizeof *request);
    *request =
        (struct pyroscope_request){.receiver = receiver, .protocol = protocol, .samples = samples};
    const struct pyroscope_settings *settings = settings_of(receiver);
    received_init(&request->received, exchange, on_settled);
    struct batch *batch = batch_new(worker, SIGNAL_PROFILES, profiles, samples,
                                    &request->received.receipt, context_of(receiver, exchange));
    batch->peer = exchange_peer_key(exchange);
    batch->links_are_labels = !protocol_is_otlp(protocol);
    batch->arrived_empty = samples == 0;
    batch->has_added_threads = conversion->added_threads != 0;
    if (protocol_is_otlp(protocol))
        service_names_set(&batch->parts[0].root, &batch->arena,
                          otlp_service(settings, exchange_headers(exchange)));
    node_forward(receiver->nodes[worker->index], batch);
}

/* profiles: the request for the pipelines; NULL: it is refused, see *why. */
static void finish_reading(struct pyroscope_receiver *receiver, struct exchange *exchange,
                           const struct conversion *conversion, struct buffer *profiles,
                           uint32_t samples, const struct verdict *why)
{
    assert(profiles || !verdict_is_ok(why));
    const struct node *node = receiver->nodes[exchange_worker(exchange)->index];
    if (profiles && profiles_are_wanted(node, samples)) {
        forward(receiver, exchange, conversion, profiles, samples);
        return;
    }
    /* Refused or empty: answer without passing it on. */
    buffer_unref(profiles);
    received_count_unread(&receiver->counters[transport_of(exchange)], exchange, why);
    respond(exchange, conversion->protocol, why);
}

/* ---- a large request, which a job reads ---- */

struct upload_reading {
    struct reading reading;
    struct pyroscope_receiver *receiver;
    struct conversion conversion;
};

static void read_large(struct reading *reading)
{
    const struct upload_reading *self = container_of(reading, struct upload_reading, reading);
    enum protocol protocol = self->conversion.protocol;
    bool unfolds;
    if (protocol_is_otlp(protocol)) {
        reading->request =
            read_otlp(self->receiver, protocol == PROTOCOL_OTLP_JSON, reading->exchange,
                      reading->body, &reading->items, &reading->why);
        return;
    }
    reading->request =
        convert_upload(self->receiver, &self->conversion, reading->exchange,
                       buffer_slice(reading->body), &unfolds, &reading->items, &reading->why);
    buffer_unref(reading->body);
}

static void on_large_read(struct reading *reading)
{
    struct upload_reading *self = container_of(reading, struct upload_reading, reading);
    struct pyroscope_receiver *receiver = self->receiver;
    reading_drop_abandoned(reading, receiver->counters[transport_of(reading->exchange)].refused);
    finish_reading(receiver, reading->exchange, &self->conversion, reading->request, reading->items,
                   &reading->why);
    free(self);
}

static void start_reading(struct pyroscope_receiver *receiver, struct exchange *exchange,
                          struct conversion conversion, struct buffer *body)
{
    conversion.plain_max = SIZE_MAX;
    struct upload_reading *self = memory_zalloc(sizeof *self);
    *self = (struct upload_reading){
        .reading = {.exchange = exchange, .body = body, .read = read_large, .done = on_large_read},
        .receiver = receiver,
        .conversion = conversion};
    reading_start(&self->reading);
}

/* ---- any request ---- */

static void on_otlp(struct pyroscope_receiver *receiver, struct exchange *exchange,
                    enum protocol protocol, struct buffer *body)
{
    bool is_json = protocol == PROTOCOL_OTLP_JSON;
    struct conversion conversion = {.protocol = protocol};
    if (otlp_request_is_large(body->size, is_json)) {
        start_reading(receiver, exchange, conversion, body);
        return;
    }
    struct verdict why = verdict_ok;
    uint32_t samples = 0;
    struct buffer *profiles = read_otlp(receiver, is_json, exchange, body, &samples, &why);
    finish_reading(receiver, exchange, &conversion, profiles, samples, &why);
}

static void on_upload(struct pyroscope_receiver *receiver, struct exchange *exchange,
                      enum protocol protocol, struct buffer *body)
{
    struct verdict why = verdict_ok;
    uint32_t samples = 0;
    struct buffer *profiles = NULL;
    bool is_large = body->size >= READING_PACKED_BYTES;
    const struct node *node = receiver->nodes[exchange_worker(exchange)->index];
    struct conversion conversion = {.protocol = protocol,
                                    .added_threads = threads_behind_receiver(node),
                                    .with_empty = empty_profiles_are_removed(node),
                                    .plain_max = READING_UNPACKED_BYTES};
    if (!is_large)
        profiles = convert_upload(receiver, &conversion, exchange, buffer_slice(body), &is_large,
                                  &samples, &why);
    if (is_large) {
        assert(!profiles); /* the first try is abandoned */
        start_reading(receiver, exchange, conversion, body);
        return;
    }
    buffer_unref(body);
    finish_reading(receiver, exchange, &conversion, profiles, samples, &why);
}

static void on_request(void *context, struct exchange *exchange)
{
    enum protocol protocol = protocol_of(exchange);
    struct buffer *body = exchange_take_body(exchange);
    (protocol_is_otlp(protocol) ? on_otlp : on_upload)(context, exchange, protocol, body);
}

static const struct server_handler handler = {
    .on_head = on_head, .on_request = on_request, .on_error = on_error};

/* ---- start and stop ---- */

/* The first error of users who run profcol and Pyroscope on one machine. */
static void explain_taken_port(struct error *err)
{
    size_t size = strlen(err->text);
    if (err->system == EADDRINUSE)
        snprintf(err->text + size, sizeof err->text - size,
                 "; if Pyroscope listens there, give one of the two another port (endpoint)");
}

static size_t
pyroscope_same_listeners(const void *before, const void *after,
                         struct config_same_listener listeners_out[CONFIG_LISTENERS_MAX])
{
    const struct pyroscope_settings *one = before, *other = after;
    if (!http_server_is_same(&one->server, one->endpoint, &other->server, other->endpoint))
        return 0;
    listeners_out[0] = http_server_listener(NULL, &other->server);
    return 1;
}

/* Returns the server of the receiver that this one replaces, if its settings are equal. */
static struct receiver_server *former_server(const struct component *component)
{
    struct config_same_listener unused[CONFIG_LISTENERS_MAX];
    const struct component *former = component->predecessor;
    if (!former || pyroscope_same_listeners(former->settings, component->settings, unused) == 0)
        return NULL;
    return &receiver_of(component->predecessor)->server;
}

static bool pyroscope_init(struct component *component, struct error *err)
{
    struct pyroscope_receiver *receiver = receiver_of(component);
    const struct pyroscope_settings *settings = settings_of(receiver);
    struct process *process = component->process;
    struct server_options options =
        http_server_options(&settings->server, settings->endpoint, process, component->label);
    options.accept_grpc = true;
    options.max_message_bytes = options.max_body_bytes;
    if (!receiver_server_open(&receiver->server, component, &options, &handler, receiver,
                              former_server(component), err)) {
        explain_taken_port(err);
        return false;
    }
    for (int i = 0; i < TRANSPORT_COUNT; i++)
        received_counters_init(&receiver->counters[i], component, transport_names[i],
                               SIGNAL_PROFILES);
    return true;
}

static void pyroscope_deinit(struct component *component)
{
    struct pyroscope_receiver *receiver = receiver_of(component);
    receiver_server_close(&receiver->server);
}

static void pyroscope_take_over(struct component *component)
{
    receiver_server_take_over(&receiver_of(component)->server);
}

static bool pyroscope_node_start(struct node *node, struct error *err)
{
    (void)err;
    struct pyroscope_receiver *receiver = receiver_of(node->component);
    assert(node->worker->index < WORKERS_MAX);
    receiver->nodes[node->worker->index] = node;
    if (receiver_server_start(&receiver->server, node))
        log_info(node->origin, "Starting HTTP server",
                 LOG_TEXT("endpoint", settings_of(receiver)->endpoint));
    return true;
}

static void on_server_drained(void *context)
{
    node_drained(context);
}

static void pyroscope_node_drain(struct node *node)
{
    struct pyroscope_receiver *receiver = receiver_of(node->component);
    receiver_server_drain(&receiver->server, node, on_server_drained, node);
}

static void pyroscope_node_stop(struct node *node)
{
    struct pyroscope_receiver *receiver = receiver_of(node->component);
    receiver_server_stop(&receiver->server, node);
}

static void pyroscope_check(void *config, struct config_check *check)
{
    struct pyroscope_settings *settings = config;
    http_server_check(&settings->server, settings->endpoint, check, "");
    if (settings->service_name_header && settings->service_name_header[0]) {
        char *lower = arena_strdup(config_check_arena(check), settings->service_name_header);
        for (char *c = lower; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        settings->service_name_header_lower = lower;
    }
}

static bool pyroscope_passes_header(const void *config, const char *name)
{
    const struct pyroscope_settings *settings = config;
    return settings->server.include_metadata || strcmp(name, tenant_header) == 0;
}

const struct component_type pyroscope_receiver_type = {
    .config =
        {
            .name = "pyroscope",
            .section = CONFIG_RECEIVERS,
            .stability = {[CONFIG_PROFILES] = STABILITY_ALPHA},
            .help =
                "Receives profiles from Pyroscope's SDKs and Alloy, on the port where they look "
                "for Pyroscope: /ingest in all its formats, push.v1 by Connect, gRPC and gRPC-Web, "
                "and OTLP profiles. docs/pyroscope.md describes the conversion to OTLP.",
            .fields = pyroscope_fields,
            .config_size = sizeof(struct pyroscope_settings),
            .check = pyroscope_check,
            .same_listeners = pyroscope_same_listeners,
            .passes_header = pyroscope_passes_header,
        },
    .component_size = sizeof(struct pyroscope_receiver),
    .init = pyroscope_init,
    .deinit = pyroscope_deinit,
    .take_over = pyroscope_take_over,
    .node_size = sizeof(struct node),
    .node_start = pyroscope_node_start,
    .node_drain = pyroscope_node_drain,
    .node_stop = pyroscope_node_stop,
};

#include "core/net/server_measures.h"

#include "core/base/memory.h"
#include "core/net/measure_histogram.h"
#include "core/net/server_private.h"

#include <assert.h>
#include <stdio.h>

/* A handler may take any path, so a list is bounded. Requests beyond it are not measured. Clients
 * make up paths: only those that the handler knows are a route. */
enum { MEASURES_MAX = 100 };

/* The histograms of requests with the same route, method and code. */
struct server_measure {
    struct server_measure *next;
    char *route; /* "": none */
    const char *method;
    int code;
    struct histogram *duration;
    struct histogram *request_bytes; /* NULL for gRPC, like the next one */
    struct histogram *response_bytes;
};

static const char *const grpc_names[] = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

static const char *method_of(const struct exchange *exchange)
{
    static const char *const known[] = {"POST", "GET", "PUT", "HEAD", "OPTIONS"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (slice_is(exchange->method, known[i]))
            return known[i];
    return "_OTHER";
}

static void make_grpc(const struct server *server, struct server_measure *measure)
{
    struct text labels = {0};
    assert((size_t)measure->code < sizeof grpc_names / sizeof grpc_names[0]);
    metrics_label(&labels, "rpc_method", measure->route + (measure->route[0] == '/'));
    metrics_label(&labels, "rpc_response_status_code", grpc_names[measure->code]);
    metrics_label(&labels, "rpc_system_name", "grpc");
    measure->duration =
        measure_histogram_seconds(server->options.metrics, "rpc_server_call_duration",
                                  "Measures the duration of an incoming Remote Procedure Call "
                                  "(RPC).",
                                  text_string(&labels));
    text_deinit(&labels);
}

/* The address is the listener's. The Collector takes it from the request, which a client can make
 * up. */
static void label_address(struct text *labels, const struct server *server)
{
    char host[256], port[8];
    const char *endpoint = server->options.endpoint, *colon = strrchr(endpoint, ':');
    snprintf(host, sizeof host, "%.*s", colon ? (int)(colon - endpoint) : (int)strlen(endpoint),
             endpoint);
    snprintf(port, sizeof port, "%u", (unsigned)server->port);
    metrics_label(labels, "server_address", host);
    if (server->port > 0)
        metrics_label(labels, "server_port", port);
}

static void make_http(const struct exchange *exchange, struct server_measure *measure)
{
    const struct server *server = exchange->part->server;
    struct text labels = {0};
    char status[12];
    snprintf(status, sizeof status, "%d", measure->code);
    metrics_label(&labels, "http_request_method", measure->method);
    metrics_label(&labels, "http_response_status_code", status);
    if (measure->route[0])
        metrics_label(&labels, "http_route", measure->route);
    metrics_label(&labels, "network_protocol_name", "http");
    metrics_label(&labels, "network_protocol_version", exchange->stream_id > 0 ? "2.0" : "1.1");
    label_address(&labels, server);
    metrics_label(&labels, "url_scheme", exchange_is_secure(exchange) ? "https" : "http");
    const char *text = text_string(&labels);
    measure->duration =
        measure_histogram_seconds(server->options.metrics, "http_server_request_duration",
                                  "Duration of HTTP server requests.", text);
    measure->request_bytes =
        measure_histogram_bytes(server->options.metrics, "http_server_request_body_size",
                                "Size of HTTP server request bodies.", text);
    measure->response_bytes =
        measure_histogram_bytes(server->options.metrics, "http_server_response_body_size",
                                "Size of HTTP server response bodies.", text);
    text_deinit(&labels);
}

static struct slice route_of(const struct exchange *exchange)
{
    return exchange->has_route ? exchange->path : slice_of("", 0);
}

static bool is_for(const struct server_measure *measure, const struct exchange *exchange, int code)
{
    bool is_grpc = !measure->request_bytes;
    return measure->code == code && is_grpc == (exchange->dialect == SERVER_GRPC) &&
           slice_is(route_of(exchange), measure->route) && measure->method == method_of(exchange);
}

static struct server_measure *add(struct exchange *exchange, int code)
{
    struct server_measure *measure = memory_zalloc(sizeof *measure);
    measure->next = exchange->part->measures;
    exchange->part->measures = measure;
    struct slice route = route_of(exchange);
    measure->route = memory_strndup(route.data, route.size);
    measure->method = method_of(exchange);
    measure->code = code;
    if (exchange->dialect == SERVER_GRPC)
        make_grpc(exchange->part->server, measure);
    else
        make_http(exchange, measure);
    return measure;
}

/* Returns NULL if there are too many. */
static struct server_measure *find(struct exchange *exchange, int code)
{
    size_t count = 0;
    struct server_measure *measure = exchange->part->measures;
    for (; measure && !is_for(measure, exchange, code); measure = measure->next)
        count++;
    if (measure)
        return measure;
    return count < MEASURES_MAX ? add(exchange, code) : NULL;
}

/* Whether the path can be a label: Prometheus refuses a page that is not UTF-8. */
static bool is_printable(struct slice path)
{
    for (size_t i = 0; i < path.size; i++)
        if (path.data[i] < ' ' || path.data[i] > '~')
            return false;
    return true;
}

void server_measure(struct exchange *exchange, int code, size_t response_bytes)
{
    bool is_call = exchange->dialect == SERVER_GRPC;
    if (!exchange->is_measured || !exchange->connection || exchange->state == EXCHANGE_ANSWERED ||
        (is_call && !exchange->has_route) || !is_printable(route_of(exchange)))
        return;
    const struct server_measure *measure = find(exchange, code);
    if (!measure)
        return;
    struct worker *worker = exchange->part->worker;
    uint64_t elapsed_ns = worker_now(worker) - exchange->since_ns;
    histogram_record(measure->duration, worker->index, (double)elapsed_ns / 1e9);
    if (!measure->request_bytes)
        return;
    histogram_record(measure->request_bytes, worker->index, (double)exchange->body_received);
    histogram_record(measure->response_bytes, worker->index, (double)response_bytes);
}

void server_measures_free(struct server_measure *first)
{
    while (first) {
        struct server_measure *next = first->next;
        free(first->route);
        free(first);
        first = next;
    }
}

#include "core/net/client_measures.h"

#include "core/base/memory.h"
#include "core/net/grpc_status.h"
#include "core/net/measure_histogram.h"

#include <assert.h>
#include <stdio.h>

/* A server may answer with any status, so a list is bounded. Requests beyond it are not measured.
 */
enum { MEASURES_MAX = 100 };

/* The histograms of requests with the same method and outcome. */
struct client_measure {
    struct client_measure *next;
    char *method; /* of gRPC: "package.Service/Method"; of HTTP: "POST" */
    enum client_failure failure;
    int code; /* gRPC code, or HTTP status; 0 after a failure of HTTP */
    struct histogram *duration;
    struct histogram *request_bytes; /* NULL for gRPC */
};

static bool is_grpc(const struct client *client)
{
    return client->options.protocol == CLIENT_H2;
}

static const char *method_of(const struct client *client, const struct client_request *request)
{
    return is_grpc(client) ? request->path + (request->path[0] == '/') : request->method;
}

static int grpc_code_of(const struct client_answer *answer)
{
    if (answer->failure != CLIENT_OK)
        return answer->failure == CLIENT_TIMEOUT ? GRPC_DEADLINE_EXCEEDED : GRPC_UNAVAILABLE;
    struct slice text = http_header_get(&answer->headers, "grpc-status");
    int code = 0;
    if (text.size == 0)
        return grpc_code_from_http(answer->status);
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return GRPC_UNKNOWN;
        code = code * 10 + (text.data[i] - '0');
        if (code > GRPC_UNAUTHENTICATED)
            return GRPC_UNKNOWN;
    }
    return code;
}

/* The types of Go's errors, which the Collector shows. */
static const char *error_type(enum client_failure failure)
{
    assert(failure != CLIENT_OK);
    if (failure == CLIENT_CONNECT_FAILED)
        return "net.OpError";
    return failure == CLIENT_TIMEOUT ? "context.deadlineExceededError" : "_OTHER";
}

static void label_host(const struct client *client, struct text *labels)
{
    metrics_label(labels, "server_address", client->options.host);
}

static void label_port(const struct client *client, struct text *labels)
{
    char port[8];
    snprintf(port, sizeof port, "%u", (unsigned)client->options.port);
    if (!client->options.unix_socket)
        metrics_label(labels, "server_port", port);
}

static void make_grpc(const struct client *client, struct client_measure *measure)
{
    struct text labels = {0};
    metrics_label(&labels, "rpc_method", measure->method);
    metrics_label(&labels, "rpc_response_status_code",
                  grpc_code_name((enum grpc_code)measure->code));
    metrics_label(&labels, "rpc_system_name", "grpc");
    label_host(client, &labels);
    label_port(client, &labels);
    measure->duration =
        measure_histogram_seconds(client->options.metrics, "rpc_client_call_duration",
                                  "Measures the duration of an outgoing Remote Procedure Call "
                                  "(RPC).",
                                  text_string(&labels));
    text_deinit(&labels);
}

static void label_address(const struct client *client, struct text *labels)
{
    enum { HTTP_PORT = 80, HTTPS_PORT = 443 };
    const struct client_options *options = &client->options;
    label_host(client, labels);
    if (options->port != (options->tls ? HTTPS_PORT : HTTP_PORT))
        label_port(client, labels);
    metrics_label(labels, "url_scheme", options->tls ? "https" : "http");
}

static void make_http(const struct client *client, struct client_measure *measure)
{
    struct text labels = {0};
    char status[12];
    snprintf(status, sizeof status, "%d", measure->code);
    if (measure->failure != CLIENT_OK)
        metrics_label(&labels, "error_type", error_type(measure->failure));
    metrics_label(&labels, "http_request_method", measure->method);
    if (measure->failure == CLIENT_OK)
        metrics_label(&labels, "http_response_status_code", status);
    metrics_label(&labels, "network_protocol_name", "http");
    metrics_label(&labels, "network_protocol_version", "1.1"); /* Go's, also for HTTP/2 */
    label_address(client, &labels);
    const char *text = text_string(&labels);
    measure->duration =
        measure_histogram_seconds(client->options.metrics, "http_client_request_duration",
                                  "Duration of HTTP client requests.", text);
    measure->request_bytes =
        measure_histogram_bytes(client->options.metrics, "http_client_request_body_size",
                                "Size of HTTP client request bodies.", text);
    text_deinit(&labels);
}

static struct client_measure *add(struct client *client, const char *method,
                                  enum client_failure failure, int code)
{
    struct client_measure *measure = memory_zalloc(sizeof *measure);
    measure->next = client->measures;
    client->measures = measure;
    measure->method = memory_strdup(method);
    measure->failure = failure;
    measure->code = code;
    if (is_grpc(client))
        make_grpc(client, measure);
    else
        make_http(client, measure);
    return measure;
}

/* Returns NULL if there are too many. */
static struct client_measure *find(struct client *client, const char *method,
                                   enum client_failure failure, int code)
{
    size_t count = 0;
    struct client_measure *measure = client->measures;
    for (; measure; measure = measure->next, count++)
        if (measure->code == code && measure->failure == failure &&
            strcmp(measure->method, method) == 0)
            return measure;
    return count < MEASURES_MAX ? add(client, method, failure, code) : NULL;
}

void client_measure(const struct client_exchange *exchange, const struct client_answer *answer)
{
    struct client *client = exchange->client;
    const struct client_request *request = exchange->request;
    if (!client->options.metrics)
        return;
    int code = is_grpc(client) ? grpc_code_of(answer) : answer->status;
    const struct client_measure *measure =
        find(client, method_of(client, request), answer->failure, code);
    if (!measure)
        return;
    unsigned worker = client->worker->index;
    uint64_t elapsed_ns = worker_now(client->worker) - exchange->begun_ns;
    histogram_record(measure->duration, worker, (double)elapsed_ns / 1e9);
    if (measure->request_bytes)
        histogram_record(
            measure->request_bytes, worker,
            (double)(request->content_bytes ? request->content_bytes : request->body_size));
}

void client_measures_free(struct client_measure *first)
{
    while (first) {
        struct client_measure *next = first->next;
        free(first->method);
        free(first);
        first = next;
    }
}

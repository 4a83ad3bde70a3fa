#include "core/pipeline/probe_server.h"

#include "config/value.h"

#include <assert.h>
#include <string.h>

#define IDLE_NS INT64_C(5000000000)

/* Answers may wait for a client that reads slowly; these limit how many one connection has. */
enum { STREAMS_MAX = 4 };

static void lower(int64_t *limit_ns)
{
    if (*limit_ns == 0 || *limit_ns > IDLE_NS)
        *limit_ns = IDLE_NS;
}

bool probe_server_open(struct probe_server *probe, const struct component *component,
                       const struct server_options *options, const struct server_handler *handler,
                       void *context, struct error *err)
{
    struct process *process = component->process;
    struct server_options own = *options;
    own.budget = NULL;
    own.accounts = NULL;
    own.uses_reserve = true;
    own.makes_room = true;
    lower(&own.read_header_timeout_ns);
    lower(&own.idle_timeout_ns);
    lower(&own.max_connection_idle_ns);
    if (own.accept_http)
        own.max_concurrent_streams = STREAMS_MAX;
    if (own.max_body_bytes > 1024)
        own.max_body_bytes = 1024;
    assert(!probe->server);
    assert(options->accept_http != options->accept_grpc); /* the protocol has one name */
    probe->endpoint = options->endpoint;
    probe->protocol = options->accept_grpc ? "GRPC" : "HTTP";
    probe->server =
        server_new(&own, handler, context, process->workers, process->worker_count, err);
    return probe->server != NULL;
}

void probe_server_host(const struct server_options *options, char *host_out, size_t size)
{
    char why[128];
    uint16_t port;
    bool is_path = strcmp(options->transport, "unix") == 0;
    if (is_path || !config_parse_endpoint(slice_of_string(options->endpoint), host_out, size, &port,
                                          why, sizeof why))
        host_out[0] = '\0';
}

/* Workers start one after the other: only when the last has its node may a connection arrive
 * anywhere. */
void probe_server_start(struct probe_server *probe, const struct node *node)
{
    if (!probe->server || node->worker->index + 1 < node->component->process->worker_count)
        return;
    assert(!probe->is_started); /* only the node of the last worker starts it */
    probe->is_started = true;
    server_start(probe->server);
    if (strcmp(probe->protocol, "GRPC") == 0)
        log_info(node->origin, "Starting GRPC server", LOG_TEXT("endpoint", probe->endpoint));
    else
        log_info(node->origin, "Starting HTTP server", LOG_TEXT("endpoint", probe->endpoint));
}

void probe_server_stop(struct probe_server *probe, const struct node *node)
{
    assert(probe->server || !probe->is_started);
    if (probe->is_started)
        server_stop(probe->server, node->worker);
}

void probe_server_close(struct probe_server *probe)
{
    if (probe->server)
        server_free(probe->server);
    probe->server = NULL;
}

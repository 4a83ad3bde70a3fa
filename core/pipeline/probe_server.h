/*
 * probe_server: the listener of an extension that answers small questions: health checks, zpages.
 *
 * It has to answer above all when nothing else may: it charges no budget, may use the reserve of
 * descriptors, and closes idle connections after 5 s, or for a new one if there are too many. It
 * answers until the end of the process, because the drain is what a load balancer has to see.
 *
 * Owner: the component, which embeds one or more.
 *
 * Thread: open and close on main; start and stop on each node's worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_PROBE_SERVER_H
#define PROFCOL_CORE_PIPELINE_PROBE_SERVER_H

#include "core/pipeline/component.h"
#include "core/pipeline/server_settings.h"

struct probe_server {
    struct server *server; /* NULL: not open */
    const char *endpoint;
    const char *protocol; /* for the log: "HTTP" */
    bool is_started;
};

/* Binds the listener. options: of http_server_options or grpc_server_options; the limits above
 * replace theirs. Returns false, with err set, if the address cannot be used. */
bool probe_server_open(struct probe_server *probe, const struct component *component,
                       const struct server_options *options, const struct server_handler *handler,
                       void *context, struct error *err);
/* Writes the host of the endpoint, for own_host.h; "" (any) for a Unix socket. */
void probe_server_host(const struct server_options *options, char *host_out, size_t size);
/* In the component's node_start and node_stop. */
void probe_server_start(struct probe_server *probe, const struct node *node);
void probe_server_stop(struct probe_server *probe, const struct node *node);
/* In the component's deinit, also if it is not open. */
void probe_server_close(struct probe_server *probe);

#endif

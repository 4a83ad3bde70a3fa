/*
 * server_settings: the settings of listeners, shared by all receivers.
 *
 * They are the Collector's confighttp.ServerConfig and configgrpc.ServerConfig, with its keys and
 * defaults, and are converted to the options of core/net/server.h. Each receiver has its own field
 * for the endpoint of HTTP, because the defaults differ, and inlines the rest.
 *
 * Owner: the tables are constant; settings belong to the configuration.
 *
 * Thread: read-only after parsing.
 */
#ifndef PROFCOL_CORE_PIPELINE_SERVER_SETTINGS_H
#define PROFCOL_CORE_PIPELINE_SERVER_SETTINGS_H

#include "core/pipeline/auth.h"

struct keepalive_server_parameters {
    int64_t max_connection_idle, max_connection_age, max_connection_age_grace, time, timeout;
};

struct keepalive_enforcement {
    int64_t min_time;
    bool permit_without_stream;
};

struct grpc_keepalive_settings {
    bool enabled;
    struct keepalive_server_parameters server_parameters;
    struct keepalive_enforcement enforcement_policy;
};

struct grpc_server_settings {
    bool enabled;
    const char *endpoint;
    int transport;
    struct tls_server_settings tls;
    uint64_t max_recv_msg_size_mib;
    uint64_t max_concurrent_streams;
    uint64_t read_buffer_size;
    uint64_t write_buffer_size;
    struct grpc_keepalive_settings keepalive;
    struct auth_settings auth;
    bool include_metadata;
    uint64_t max_connections;
    uint64_t max_connections_per_ip;
    const struct config_node *middlewares;
    const struct config_node *dialer;
};

struct http_server_settings {
    int transport;
    struct tls_server_settings tls;
    struct http_auth_settings auth;
    uint64_t max_request_body_size;
    bool include_metadata;
    struct config_pairs response_headers;
    struct config_strings compression_algorithms;
    int64_t read_timeout, read_header_timeout, write_timeout, idle_timeout;
    bool keep_alives_enabled;
    uint64_t max_connections;
    uint64_t max_connections_per_ip;
    struct cors_settings cors;
    const struct config_node *middlewares;
    const struct config_node *dialer;
};

extern const struct field grpc_server_fields[]; /* default endpoint: localhost:4317 */
extern const struct field http_server_fields[];
/* Help for the receiver's own field `endpoint`. */
#define HTTP_SERVER_ENDPOINT_HELP "Address to listen on, host:port; with transport unix, a path."
/* Help for max_connections. */
#define MAX_CONNECTIONS_HELP                                                                       \
    "Most connections at once; further ones wait in the kernel's queue; 0: one for each 256 KiB "  \
    "of the memory limit, from 64 to 65536."

/* Check the settings and report errors. key: path of the block, "protocols::grpc"; "" for the
 * component itself. */
void grpc_server_check(const struct grpc_server_settings *settings, struct config_check *check,
                       const char *key);
void http_server_check(const struct http_server_settings *settings, const char *endpoint,
                       struct config_check *check, const char *key);

/* Whether a listener with these settings can go on with the others: nothing differs. */
bool grpc_server_is_same(const struct grpc_server_settings *one,
                         const struct grpc_server_settings *other);
bool http_server_is_same(const struct http_server_settings *one, const char *endpoint,
                         const struct http_server_settings *other, const char *other_endpoint);

/* Return the listener for config_type.same_listeners. */
struct config_same_listener grpc_server_listener(const char *name,
                                                 const struct grpc_server_settings *settings);
struct config_same_listener http_server_listener(const char *name,
                                                 const struct http_server_settings *settings);

/* Returns the transport of a listener: "tcp", "unix" and so on. */
const char *http_server_transport(const struct http_server_settings *settings);
/* Returns how many connections a listener accepts: the setting, or if that is 0, a number that
 * follows the memory limit. */
uint32_t server_max_connections(uint64_t setting, const struct process *process);
/* Return the server's options for these settings. The text of `label` must exist as long as the
 * server. */
struct server_options grpc_server_options(const struct grpc_server_settings *settings,
                                          struct process *process, const char *label);
struct server_options http_server_options(const struct http_server_settings *settings,
                                          const char *endpoint, struct process *process,
                                          const char *label);

/* Drains a server in node_drain: at the end of the process, or because a reload retires it. */
void node_drain_server(const struct node *node, struct server *server,
                       void (*on_drained)(void *context), void *context);

#endif

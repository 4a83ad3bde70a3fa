/*
 * otlp_grpc_exporter: sends traces and profiles to an OTLP backend over gRPC, like the Collector's
 * exporter of the same name.
 *
 * core/pipeline/otlp_sender.h sends requests; core/pipeline/delivery.h queues and retries them.
 *
 * Owner: the component owns targets and, per worker, one HTTP/2 client that the nodes of both
 * signals share.
 *
 * Thread: only its worker uses a client.
 */
#include "core/data/signals.h"
#include "core/pipeline/auth.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/otlp_sender.h"

#include <assert.h>

#define SECOND_NS INT64_C(1000000000)

struct keepalive_settings {
    bool enabled;
    int64_t time;
    int64_t timeout;
    bool permit_without_stream;
};

struct grpc_settings {
    const char *endpoint;
    int compression;
    struct tls_client_settings tls;
    struct config_pairs headers;
    int64_t timeout;
    struct sending_queue_settings sending_queue;
    struct retry_settings retry_on_failure;
    struct keepalive_settings keepalive;
    const char *user_agent;
    const char *authority;
    int balancer_name;
    uint64_t read_buffer_size;
    uint64_t write_buffer_size;
    bool wait_for_ready;
    struct auth_settings auth;
    const struct config_node *middlewares;
    struct endpoint place; /* derived from endpoint */
    struct proxy proxy;    /* of the environment */
};

struct grpc_exporter {
    struct component component;
    struct arena arena;
    struct otlp_target targets[SIGNAL_COUNT];
    struct worker_client {
        struct client *client;
        unsigned users;
    } clients[WORKERS_MAX];
};

struct grpc_node {
    struct node node;
    struct otlp_sender sender;
};

extern const struct component_type otlp_grpc_exporter_type;

static struct grpc_exporter *exporter_of(struct component *component)
{
    return component_as(struct grpc_exporter, component, &otlp_grpc_exporter_type);
}

static struct grpc_node *node_of(struct node *node)
{
    return node_as(struct grpc_node, node, &otlp_grpc_exporter_type);
}

/* ---- settings ---- */

static const struct field keepalive_fields[] = {
    FIELD_DURATION(keepalive_settings, time,
                   "Ping after this long without traffic; less than 10s counts as 10s.",
                   .fallback = "10s", .min = "0s"),
    FIELD_DURATION(keepalive_settings, timeout,
                   "Close the connection when a ping is not answered within this time.",
                   .fallback = "10s", .min = "0s"),
    FIELD_BOOL(keepalive_settings, permit_without_stream,
               "Ping even while no request is in progress.", .fallback = "false"),
    FIELD_END,
};

static const char *const balancer_names[] = {"pick_first", "round_robin", NULL};

static const struct field grpc_fields[] = {
    FIELD_STRING(grpc_settings, endpoint,
                 "Where to send: host:port, http://host:port for cleartext, https://host:port for "
                 "TLS, or unix:///path.",
                 .required = true),
    FIELD_ENUM(grpc_settings, compression,
               "How requests are compressed; gRPC has none, gzip, snappy and zstd of these.",
               otlp_compression_names, .fallback = "gzip"),
    FIELD_BLOCK(grpc_settings, tls, tls_client_settings, tls_client_fields,
                "TLS, used unless `insecure` or the endpoint says otherwise."),
    FIELD_PAIRS(grpc_settings, headers, "Headers added to every request."),
    FIELD_DURATION(grpc_settings, timeout,
                   "Time limit for one attempt, connecting included; 0: none.", .fallback = "5s",
                   .min = "0s"),
    FIELD_OPTIONAL(grpc_settings, sending_queue, sending_queue_settings, sending_queue_fields,
                   "The queue of requests that wait to be sent.", .fallback = "true"),
    FIELD_OPTIONAL(grpc_settings, retry_on_failure, retry_settings, retry_fields,
                   "Retries of requests that failed with a retryable error.", .fallback = "true"),
    FIELD_OPTIONAL(grpc_settings, keepalive, keepalive_settings, keepalive_fields,
                   "Pings that detect dead connections."),
    FIELD_STRING(grpc_settings, user_agent, "Sent as `user-agent`, instead of profcol/VERSION."),
    FIELD_STRING(grpc_settings, authority, "Value of `:authority`; by default the endpoint's."),
    FIELD_ENUM(
        grpc_settings, balancer_name,
        "With several addresses of a name: each worker connects to all of the first one's "
        "family and sends requests to one after the other (round_robin), or to the first that can "
        "be reached (pick_first).",
        balancer_names, .fallback = "round_robin"),
    FIELD_UINT(grpc_settings, read_buffer_size, OTLP_READ_BUFFER_HELP),
    FIELD_UINT(grpc_settings, write_buffer_size, OTLP_WRITE_BUFFER_HELP, .fallback = "524288"),
    FIELD_BOOL(grpc_settings, wait_for_ready,
               "While the backend cannot be connected to, requests wait within their timeout "
               "instead of failing."),
    FIELD_OPTIONAL(grpc_settings, auth, auth_settings, auth_fields,
                   "An extension sets headers of every request, such as credentials."),
    FIELD_NODE(grpc_settings, middlewares, "Not supported."),
    FIELD_END,
};

/* Whether TLS is used, by the rules of grpc-go and configtls. */
static bool uses_tls(const struct grpc_settings *settings)
{
    if (settings->place.scheme != ENDPOINT_NO_SCHEME)
        return settings->place.scheme == ENDPOINT_HTTPS;
    const struct tls_client_settings *tls = &settings->tls;
    bool has_ca = (tls->ca_file && tls->ca_file[0]) || (tls->ca_pem && tls->ca_pem[0]);
    return !tls->insecure || has_ca;
}

static void check_way_back(const struct endpoint *place, struct config_check *check)
{
    struct config_target target = {
        .host = place->host, .port = place->port, .receiver = "otlp", .protocol = "grpc"};
    for (int signal = 0; signal < CONFIG_SIGNAL_COUNT && !place->unix_socket; signal++) {
        target.signal = (enum config_signal)signal;
        if (config_check_sends(check, "endpoint", &target))
            return;
    }
}

static void check_grpc(void *config, struct config_check *check)
{
    struct grpc_settings *settings = config;
    struct error err;
    if (settings->endpoint &&
        !endpoint_parse_grpc(config_check_arena(check), settings->endpoint, &settings->place, &err))
        config_check_error(check, "endpoint", "%s", err.text);
    if (!compression_in_grpc(otlp_compression(settings->compression)))
        config_check_error(check, "compression",
                           "gRPC supports none, gzip, snappy and zstd, not \"%s\"",
                           otlp_compression_names[settings->compression]);
    check_way_back(&settings->place, check);
    otlp_proxy_check(&settings->place, true, NULL, check, "endpoint", &settings->proxy);
    tls_client_check(&settings->tls, check, "tls");
    otlp_headers_check(&settings->headers, true, check, "headers");
    sending_queue_check(&settings->sending_queue, check, "sending_queue");
    retry_check(&settings->retry_on_failure, check, "retry_on_failure");
    auth_client_check(&settings->auth, !uses_tls(settings), check);
    config_check_refuse(check, settings->middlewares, "middlewares",
                        "middlewares are not supported");
}

/* ---- component ---- */

static void init_target(struct grpc_exporter *exporter, enum signal signal)
{
    const struct grpc_settings *settings = exporter->component.settings;
    struct otlp_target *target = &exporter->targets[signal];
    *target = (struct otlp_target){
        .signal = signal,
        .grpc = true,
        .path = arena_printf(&exporter->arena, "%sExport", signal_traits(signal)->grpc_service),
        .url = settings->endpoint,
        .compression = otlp_compression(settings->compression),
        .timeout_ns = settings->timeout,
        .queue = &settings->sending_queue,
        .retry = &settings->retry_on_failure,
    };
    if (settings->auth.enabled)
        target->auth = auth_find(exporter->component.process, settings->auth.authenticator);
    const char *agent =
        settings->user_agent && settings->user_agent[0]
            ? settings->user_agent
            : arena_printf(&exporter->arena, "profcol/%s", exporter->component.process->version);
    otlp_target_set_headers(target, &exporter->arena, agent, &settings->headers);
    struct text labels = {0};
    otlp_place_labels(&settings->place, &labels);
    delivery_shared_init(&target->shared, &exporter->component, signal, target->queue,
                         text_string(&labels));
    text_deinit(&labels);
}

static bool grpc_init(struct component *component, struct error *err)
{
    struct grpc_exporter *exporter = exporter_of(component);
    (void)err;
    arena_init(&exporter->arena, NULL);
    for (int signal = 0; signal < SIGNAL_COUNT; signal++)
        if (component->pipeline_count[signal] > 0)
            init_target(exporter, (enum signal)signal);
    return true;
}

static void grpc_deinit(struct component *component)
{
    struct grpc_exporter *exporter = exporter_of(component);
    for (int signal = 0; signal < SIGNAL_COUNT; signal++)
        delivery_shared_deinit(&exporter->targets[signal].shared);
    arena_deinit(&exporter->arena);
}

static struct client *make_client(const struct grpc_exporter *exporter, struct worker *worker,
                                  struct error *err)
{
    const struct grpc_settings *settings = exporter->component.settings;
    struct client_options options = otlp_client_options(&settings->place, &exporter->component);
    options.protocol = CLIENT_H2;
    options.proxy = settings->proxy;
    options.balance =
        settings->balancer_name == 0 ? CLIENT_BALANCE_PICK_FIRST : CLIENT_BALANCE_ROUND_ROBIN;
    options.wait_for_ready = settings->wait_for_ready;
    otlp_set_buffers(&options, settings->read_buffer_size, settings->write_buffer_size);
    if (uses_tls(settings)) {
        options.tls = &settings->tls;
        if (settings->tls.server_name_override && settings->tls.server_name_override[0])
            options.authority = settings->tls.server_name_override;
    }
    if (settings->authority && settings->authority[0])
        options.authority = settings->authority;
    if (settings->keepalive.enabled) {
        int64_t time = settings->keepalive.time;
        options.keepalive_time_ns = time < 10 * SECOND_NS ? 10 * SECOND_NS : time;
        options.keepalive_timeout_ns = settings->keepalive.timeout;
        options.keepalive_without_stream = settings->keepalive.permit_without_stream;
    }
    return client_new(worker, &options, err);
}

/* ---- node ---- */

static bool grpc_node_start(struct node *node, struct error *err)
{
    struct grpc_exporter *exporter = exporter_of(node->component);
    struct worker_client *mine = &exporter->clients[node->worker->index];
    assert(mine->users > 0 || !mine->client); /* the last user frees it */
    assert(exporter->targets[node->signal].queue);
    if (!mine->client)
        mine->client = make_client(exporter, node->worker, err);
    if (!mine->client)
        return false;
    mine->users++;
    otlp_sender_start(&node_of(node)->sender, node, &exporter->targets[node->signal], mine->client);
    return true;
}

static void grpc_consume(struct node *node, struct batch *batch)
{
    otlp_sender_consume(&node_of(node)->sender, batch);
}

static void grpc_node_drain(struct node *node)
{
    otlp_sender_drain(&node_of(node)->sender);
}

static void grpc_node_stop(struct node *node)
{
    struct grpc_exporter *exporter = exporter_of(node->component);
    struct worker_client *mine = &exporter->clients[node->worker->index];
    otlp_sender_stop(&node_of(node)->sender);
    assert(mine->users > 0);
    if (--mine->users > 0)
        return;
    client_free(mine->client);
    mine->client = NULL;
}

const struct component_type otlp_grpc_exporter_type = {
    .config = {.name = "otlp_grpc",
               .alias = "otlp",
               .section = CONFIG_EXPORTERS,
               .stability = {[CONFIG_TRACES] = STABILITY_BETA,
                             [CONFIG_PROFILES] = STABILITY_ALPHA,
                             [CONFIG_METRICS] = STABILITY_ALPHA,
                             [CONFIG_LOGS] = STABILITY_ALPHA},
               .help = "Sends data to an OTLP backend over gRPC, with a queue and "
                       "retries.",
               .fields = grpc_fields,
               .config_size = sizeof(struct grpc_settings),
               .check = check_grpc},
    .component_size = sizeof(struct grpc_exporter),
    .init = grpc_init,
    .deinit = grpc_deinit,
    .node_size = sizeof(struct grpc_node),
    .node_start = grpc_node_start,
    .consume = grpc_consume,
    .node_drain = grpc_node_drain,
    .is_idle = delivery_is_idle,
    .node_stop = grpc_node_stop,
};

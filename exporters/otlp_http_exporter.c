/*
 * otlp_http_exporter: sends traces and profiles to an OTLP backend over HTTP, as protobuf or JSON,
 * like the Collector's exporter of the same name.
 *
 * core/pipeline/otlp_sender.h sends requests; core/pipeline/delivery.h queues and retries them.
 *
 * Owner: the component owns targets, each node its client.
 *
 * Thread: each node on its worker.
 */
#include "core/data/signals.h"
#include "core/pipeline/auth.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/otlp_sender.h"

#include <assert.h>
#include <limits.h>

enum { CONNECTIONS_MAX = 100 };
#define PING_TIMEOUT_NS (INT64_C(15) * 1000000000)

static const char *const encoding_names[] = {"proto", "json", NULL};

struct compression_params {
    int64_t level;
};

struct cookie_settings {
    bool enabled;
};

struct http_settings {
    const char *endpoint;
    const char *traces_endpoint;
    const char *profiles_endpoint;
    const char *metrics_endpoint;
    const char *logs_endpoint;
    int encoding;
    int compression;
    struct compression_params compression_params;
    struct tls_client_settings tls;
    struct config_pairs headers;
    int64_t timeout;
    struct sending_queue_settings sending_queue;
    struct retry_settings retry_on_failure;
    uint64_t read_buffer_size;
    uint64_t write_buffer_size;
    uint64_t max_idle_conns;
    uint64_t max_idle_conns_per_host;
    uint64_t max_conns_per_host;
    int64_t idle_conn_timeout;
    bool disable_keep_alives;
    int64_t http2_read_idle_timeout;
    int64_t http2_ping_timeout;
    bool force_attempt_http2;
    const char *proxy_url;
    struct auth_settings auth;
    struct cookie_settings cookies;
    const struct config_node *middlewares;
    struct endpoint places[SIGNAL_COUNT]; /* derived from the endpoints; url NULL: none */
    struct proxy proxies[SIGNAL_COUNT];   /* of `places` */
};

struct http_exporter {
    struct component component;
    struct arena arena;
    struct otlp_target targets[SIGNAL_COUNT];
};

struct http_node {
    struct node node;
    struct otlp_sender sender;
};

extern const struct component_type otlp_http_exporter_type;

static struct http_exporter *exporter_of(struct component *component)
{
    return component_as(struct http_exporter, component, &otlp_http_exporter_type);
}

static struct http_node *node_of(struct node *node)
{
    return node_as(struct http_node, node, &otlp_http_exporter_type);
}

/* ---- settings ---- */

static const struct field compression_params_fields[] = {
    FIELD_INT(compression_params, level,
              "Compression level. gzip, zlib, deflate: -2 to 9; zstd: any; 0: the default of the "
              "encoding.",
              .fallback = "0", .min = "-100", .max = "100"),
    FIELD_END,
};

static const struct field cookie_fields[] = {
    FIELD_END,
};

static const struct field http_fields[] = {
    FIELD_STRING(
        http_settings, endpoint,
        "Base URL; /v1/traces, /v1development/profiles, /v1/metrics or /v1/logs is appended."),
    FIELD_STRING(http_settings, traces_endpoint, "Whole URL for traces."),
    FIELD_STRING(http_settings, profiles_endpoint, "Whole URL for profiles."),
    FIELD_STRING(http_settings, metrics_endpoint, "Whole URL for metrics."),
    FIELD_STRING(http_settings, logs_endpoint, "Whole URL for logs."),
    FIELD_ENUM(http_settings, encoding, "Binary protobuf or JSON.", encoding_names,
               .fallback = "proto"),
    FIELD_ENUM(http_settings, compression, "How requests are compressed.", otlp_compression_names,
               .fallback = "gzip"),
    FIELD_BLOCK(http_settings, compression_params, compression_params, compression_params_fields,
                "Settings of the compression."),
    FIELD_BLOCK(http_settings, tls, tls_client_settings, tls_client_fields,
                "TLS, used when the URL starts with https://."),
    FIELD_PAIRS(http_settings, headers,
                "Headers added to every request; `Host` replaces the URL's."),
    FIELD_DURATION(http_settings, timeout,
                   "Time limit for one attempt, connecting included; 0: none.", .fallback = "30s",
                   .min = "0s"),
    FIELD_OPTIONAL(http_settings, sending_queue, sending_queue_settings, sending_queue_fields,
                   "The queue of requests that wait to be sent.", .fallback = "true"),
    FIELD_OPTIONAL(http_settings, retry_on_failure, retry_settings, retry_fields,
                   "Retries of requests that failed with a retryable error.", .fallback = "true"),
    FIELD_UINT(http_settings, read_buffer_size, OTLP_READ_BUFFER_HELP),
    FIELD_UINT(http_settings, write_buffer_size, OTLP_WRITE_BUFFER_HELP, .fallback = "524288"),
    FIELD_UINT(http_settings, max_idle_conns,
               "Most HTTP/1.1 connections per worker and signal that are kept without requests; "
               "0: all.",
               .fallback = "100"),
    FIELD_UINT(
        http_settings, max_idle_conns_per_host,
        "Lowers `max_idle_conns`: the smaller of the two applies, because an exporter has one "
        "host; 0: `max_idle_conns` applies."),
    FIELD_UINT(http_settings, max_conns_per_host,
               "Most HTTP/1.1 connections per worker and signal; 0: 100.", .max = "10000"),
    FIELD_DURATION(http_settings, idle_conn_timeout,
                   "A connection without requests is closed after this long; 0: never.",
                   .fallback = "90s", .min = "0s"),
    FIELD_BOOL(http_settings, disable_keep_alives, "Use a connection for one request only.",
               .fallback = "false"),
    FIELD_DURATION(http_settings, http2_read_idle_timeout,
                   "Ping an HTTP/2 connection after this long without traffic; 0: never.",
                   .min = "0s"),
    FIELD_DURATION(http_settings, http2_ping_timeout,
                   "Close the connection when a ping is not answered within this time; 0: 15s.",
                   .min = "0s"),
    FIELD_BOOL(http_settings, force_attempt_http2, "Offer HTTP/2 over TLS.", .fallback = "true"),
    FIELD_SECRET(http_settings, proxy_url,
                 "The proxy, http://user:password@host:port; by default that of the environment "
                 "(HTTP_PROXY, HTTPS_PROXY, NO_PROXY)."),
    FIELD_OPTIONAL(http_settings, auth, auth_settings, auth_fields,
                   "An extension sets headers of every request, such as credentials."),
    FIELD_OPTIONAL(http_settings, cookies, cookie_settings, cookie_fields,
                   "Keep the backend's cookies and send them, for each worker and signal."),
    FIELD_NODE(http_settings, middlewares, "Not supported."),
    FIELD_END,
};

static bool is_given(const char *text)
{
    return text && text[0];
}

static void check_level(const struct http_settings *settings, struct config_check *check)
{
    enum compression compression = otlp_compression(settings->compression);
    int64_t level = settings->compression_params.level;
    bool valid = level == 0 || compression == COMPRESSION_ZSTD;
    if (compression == COMPRESSION_GZIP || compression == COMPRESSION_ZLIB ||
        compression == COMPRESSION_DEFLATE)
        valid = level >= -2 && level <= 9;
    if (!valid)
        config_check_error(check, "compression_params::level", "%lld is not a level of \"%s\"",
                           (long long)level, compression_names[compression]);
}

/* Returns the base URL with OTLP's path for the signal. */
static const char *join_url(struct arena *arena, const char *base, enum signal signal)
{
    assert(base[0]); /* is_given */
    bool slash = base[strlen(base) - 1] == '/';
    return arena_printf(arena, "%s%s", base, signal_traits(signal)->url_path + slash);
}

static void check_url(struct endpoint *place, struct config_check *check, const char *url,
                      const char *key)
{
    struct error err;
    if (endpoint_parse_url(config_check_arena(check), url, place, &err))
        return;
    config_check_error(check, key, "%s", err.text);
    *place = (struct endpoint){0};
}

/* OTLP's paths are appended to what is written. */
static void warn_of_path(struct config_check *check, const char *base)
{
    for (int signal = 0; signal < SIGNAL_COUNT; signal++) {
        const char *path = signal_traits((enum signal)signal)->url_path;
        if (endpoint_ends_with(base, path))
            config_check_warn(check, "endpoint", ENDPOINT_HAS_PATH ", or as %s_endpoint", path,
                              path, path, path, signal_name((enum signal)signal));
    }
}

static void check_way_back(const struct http_settings *settings, struct config_check *check)
{
    for (int signal = 0; signal < SIGNAL_COUNT && !is_given(settings->proxy_url); signal++) {
        const struct endpoint *place = &settings->places[signal];
        struct config_target target = {.host = place->host,
                                       .port = place->port,
                                       .signal = (enum config_signal)signal,
                                       .receiver = "otlp",
                                       .protocol = "http"};
        if (config_check_sends(check, "", &target))
            return; /* reported once */
    }
}

static void check_urls(struct http_settings *settings, struct config_check *check)
{
    static const char *const keys[SIGNAL_COUNT] = {"traces_endpoint", "profiles_endpoint",
                                                   "metrics_endpoint", "logs_endpoint"};
    const char *own[SIGNAL_COUNT] = {settings->traces_endpoint, settings->profiles_endpoint,
                                     settings->metrics_endpoint, settings->logs_endpoint};
    struct endpoint base = {0};
    if (is_given(settings->endpoint))
        check_url(&base, check, settings->endpoint, "endpoint");
    if (base.url)
        warn_of_path(check, settings->endpoint);
    for (int signal = 0; signal < SIGNAL_COUNT; signal++) {
        struct endpoint *place = &settings->places[signal];
        if (is_given(own[signal]))
            check_url(place, check, own[signal], keys[signal]);
        else if (base.url)
            check_url(place, check,
                      join_url(config_check_arena(check), settings->endpoint, (enum signal)signal),
                      "endpoint");
    }
}

/* Returns the key of the first endpoint that is written, though empty; "" if none is. */
static const char *written_key(const struct config_check *check)
{
    static const char *const keys[] = {"endpoint", "traces_endpoint", "profiles_endpoint",
                                       "metrics_endpoint", "logs_endpoint"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (config_check_is_written(check, keys[i]))
            return keys[i];
    return "";
}

/* Each signal of the exporter's pipelines needs a URL. */
static void check_signals(const struct http_settings *settings, struct config_check *check)
{
    if (is_given(settings->endpoint))
        return; /* for all signals, or reported */
    const char *own[SIGNAL_COUNT] = {settings->traces_endpoint, settings->profiles_endpoint,
                                     settings->metrics_endpoint, settings->logs_endpoint};
    for (int signal = 0; signal < SIGNAL_COUNT; signal++) {
        const char *pipeline = config_check_pipeline(check, (enum config_signal)signal);
        if (pipeline && !is_given(own[signal]))
            config_check_error(check, config_check_is_written(check, "endpoint") ? "endpoint" : "",
                               "either endpoint or %s_endpoint must be specified, for the "
                               "pipeline \"%s\"",
                               signal_name((enum signal)signal), pipeline);
    }
}

static void check_proxies(struct http_settings *settings, struct config_check *check)
{
    const char *key = is_given(settings->proxy_url) ? "proxy_url" : "endpoint";
    for (int signal = 0; signal < SIGNAL_COUNT; signal++) {
        const struct endpoint *place = &settings->places[signal];
        if (!otlp_proxy_check(place, place->scheme == ENDPOINT_HTTPS, settings->proxy_url, check,
                              key, &settings->proxies[signal]))
            return; /* reported once */
    }
}

static void check_http(void *config, struct config_check *check)
{
    struct http_settings *settings = config;
    if (!is_given(settings->endpoint) && !is_given(settings->traces_endpoint) &&
        !is_given(settings->profiles_endpoint) && !is_given(settings->metrics_endpoint) &&
        !is_given(settings->logs_endpoint))
        config_check_error(check, written_key(check), "at least one endpoint must be specified");
    else
        check_signals(settings, check);
    check_urls(settings, check);
    check_way_back(settings, check);
    check_proxies(settings, check);
    check_level(settings, check);
    tls_client_check(&settings->tls, check, "tls");
    otlp_headers_check(&settings->headers, false, check, "headers");
    sending_queue_check(&settings->sending_queue, check, "sending_queue");
    retry_check(&settings->retry_on_failure, check, "retry_on_failure");
    auth_client_check(&settings->auth, false, check);
    config_check_refuse(check, settings->middlewares, "middlewares",
                        "middlewares are not supported");
}

/* ---- component ---- */

static void init_target(struct http_exporter *exporter, enum signal signal)
{
    const struct http_settings *settings = exporter->component.settings;
    const struct endpoint *place = &settings->places[signal];
    assert(place->url && place->path); /* check_signals refuses a signal without URL */
    struct otlp_target *target = &exporter->targets[signal];
    *target = (struct otlp_target){
        .signal = signal,
        .json = settings->encoding == 1,
        .path = place->path,
        .url = place->url,
        .place = place,
        .keeps_cookies = settings->cookies.enabled,
        .compression = otlp_compression(settings->compression),
        .level = (int)settings->compression_params.level,
        .timeout_ns = settings->timeout,
        .queue = &settings->sending_queue,
        .retry = &settings->retry_on_failure,
    };
    if (settings->auth.enabled)
        target->auth = auth_find(exporter->component.process, settings->auth.authenticator);
    const char *agent =
        arena_printf(&exporter->arena, "profcol/%s", exporter->component.process->version);
    otlp_target_set_headers(target, &exporter->arena, agent, &settings->headers);
    struct text labels = {0};
    otlp_place_labels(place, &labels);
    metrics_label(
        &labels, "url_path",
        arena_printf(&exporter->arena, "%.*s", (int)strcspn(place->path, "?"), place->path));
    delivery_shared_init(&target->shared, &exporter->component, signal, target->queue,
                         text_string(&labels));
    text_deinit(&labels);
}

static bool http_init(struct component *component, struct error *err)
{
    (void)err;
    struct http_exporter *exporter = exporter_of(component);
    arena_init(&exporter->arena, NULL);
    for (int signal = 0; signal < SIGNAL_COUNT; signal++)
        if (component->pipeline_count[signal] > 0)
            init_target(exporter, (enum signal)signal);
    return true;
}

static void http_deinit(struct component *component)
{
    struct http_exporter *exporter = exporter_of(component);
    for (int signal = 0; signal < SIGNAL_COUNT; signal++)
        delivery_shared_deinit(&exporter->targets[signal].shared);
    arena_deinit(&exporter->arena);
}

/* ---- node ---- */

/* Returns the lower of two limits, of which 0 is none. */
static unsigned lower_limit(uint64_t one, uint64_t other)
{
    uint64_t lower = other > 0 && (one == 0 || other < one) ? other : one;
    return lower < UINT_MAX ? (unsigned)lower : 0;
}

static struct client *make_client(const struct node *node, struct error *err)
{
    const struct http_settings *settings = node->component->settings;
    const struct endpoint *place = &settings->places[node->signal];
    struct client_options options = otlp_client_options(place, node->component);
    options.protocol = CLIENT_HTTP1;
    options.allow_h2 = settings->force_attempt_http2;
    options.tls = place->scheme == ENDPOINT_HTTPS ? &settings->tls : NULL;
    options.max_connections =
        settings->max_conns_per_host ? (unsigned)settings->max_conns_per_host : CONNECTIONS_MAX;
    options.max_idle = lower_limit(settings->max_idle_conns, settings->max_idle_conns_per_host);
    options.proxy = settings->proxies[node->signal];
    otlp_set_buffers(&options, settings->read_buffer_size, settings->write_buffer_size);
    options.idle_timeout_ns = settings->idle_conn_timeout;
    options.close_after_answer = settings->disable_keep_alives;
    options.keepalive_time_ns = settings->http2_read_idle_timeout;
    options.keepalive_timeout_ns =
        settings->http2_ping_timeout ? settings->http2_ping_timeout : PING_TIMEOUT_NS;
    return client_new(node->worker, &options, err);
}

static bool http_node_start(struct node *node, struct error *err)
{
    struct http_exporter *exporter = exporter_of(node->component);
    assert(exporter->targets[node->signal].queue); /* a pipeline of this signal has this exporter */
    struct client *client = make_client(node, err);
    if (!client)
        return false;
    otlp_sender_start(&node_of(node)->sender, node, &exporter->targets[node->signal], client);
    return true;
}

static void http_consume(struct node *node, struct batch *batch)
{
    otlp_sender_consume(&node_of(node)->sender, batch);
}

static void http_node_drain(struct node *node)
{
    otlp_sender_drain(&node_of(node)->sender);
}

static void http_node_stop(struct node *node)
{
    struct otlp_sender *sender = &node_of(node)->sender;
    otlp_sender_stop(sender);
    client_free(sender->client);
    sender->client = NULL;
}

const struct component_type otlp_http_exporter_type = {
    .config = {.name = "otlp_http",
               .alias = "otlphttp",
               .section = CONFIG_EXPORTERS,
               .stability = {[CONFIG_TRACES] = STABILITY_BETA,
                             [CONFIG_PROFILES] = STABILITY_ALPHA,
                             [CONFIG_METRICS] = STABILITY_ALPHA,
                             [CONFIG_LOGS] = STABILITY_ALPHA},
               .help = "Sends data to an OTLP backend over HTTP, as protobuf or "
                       "JSON, with a queue and retries.",
               .fields = http_fields,
               .config_size = sizeof(struct http_settings),
               .check = check_http},
    .component_size = sizeof(struct http_exporter),
    .init = http_init,
    .deinit = http_deinit,
    .node_size = sizeof(struct http_node),
    .node_start = http_node_start,
    .consume = http_consume,
    .node_drain = http_node_drain,
    .is_idle = delivery_is_idle,
    .node_stop = http_node_stop,
};

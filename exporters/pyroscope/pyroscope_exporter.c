/*
 * pyroscope_exporter: sends profiles to Pyroscope the way its SDKs do, by push.v1.PusherService.
 *
 * docs/pyroscope.md describes the conversion of profiles, and when to use this instead of
 * otlp_http. Queue and retries are in core/pipeline/delivery.h; an attempt is one HTTP request for
 * each pprof of the batch, several at once, because Pyroscope answers only when it has stored the
 * data. A retry sends only pprofs that were not accepted.
 *
 * Owner: the component owns the data that all workers share; each node owns its client.
 *
 * Thread: each node on its worker.
 */
#include "core/pipeline/auth.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/endpoint.h"
#include "core/pipeline/otlp_sender.h"
#include "exporters/pyroscope/push_sender.h"

#include <assert.h>
#include <ctype.h>
#include <openssl/evp.h>

enum { CONNECTIONS_MAX = 100 };
#define IDLE_TIMEOUT_NS (INT64_C(90) * 1000000000)

static const char *const compressions[] = {"none", "gzip", NULL};

struct basic_auth {
    bool enabled;
    const char *username;
    const char *password;
};

struct pyroscope_settings {
    const char *endpoint;
    int compression;
    struct tls_client_settings tls;
    struct config_pairs headers;
    const char *tenant;
    bool forward_tenant;
    struct basic_auth basic_auth;
    const char *bearer_token;
    struct auth_settings auth;
    int64_t timeout;
    const char *proxy_url;
    uint64_t max_requests;
    struct label_settings labels;
    uint64_t max_profile_bytes;
    uint64_t max_samples;
    struct sending_queue_settings sending_queue;
    struct retry_settings retry_on_failure;
    struct endpoint place; /* derived from endpoint */
    struct proxy proxy;
};

struct pyroscope_exporter {
    struct component component;
    struct arena arena;
    struct delivery_shared shared;
    struct label_limits *limits;
    struct push_target target;
};

struct pyroscope_node {
    struct node node;
    struct push_sender sender;
};

extern const struct component_type pyroscope_exporter_type;

static struct pyroscope_exporter *exporter_of(struct component *component)
{
    return component_as(struct pyroscope_exporter, component, &pyroscope_exporter_type);
}

static struct pyroscope_node *node_of(struct node *node)
{
    return node_as(struct pyroscope_node, node, &pyroscope_exporter_type);
}

/* ---- settings ---- */

static const struct field basic_auth_fields[] = {
    FIELD_STRING(basic_auth, username, "User name.", .required = true),
    FIELD_SECRET(basic_auth, password, "Password.", .required = true),
    FIELD_END,
};

static const struct field pyroscope_fields[] = {
    FIELD_STRING(pyroscope_settings, endpoint,
                 "Base URL of Pyroscope; /push.v1.PusherService/Push is appended.",
                 .required = true),
    FIELD_ENUM(pyroscope_settings, compression,
               "How requests of 1,200 bytes and more are compressed.", compressions,
               .fallback = "gzip"),
    FIELD_BLOCK(pyroscope_settings, tls, tls_client_settings, tls_client_fields,
                "TLS, used when the URL starts with https://."),
    FIELD_PAIRS(pyroscope_settings, headers,
                "Headers added to every request; `Host` replaces the URL's."),
    FIELD_STRING(pyroscope_settings, tenant, "Tenant: the header X-Scope-OrgID."),
    FIELD_BOOL(pyroscope_settings, forward_tenant,
               "The X-Scope-OrgID that came with the profiles takes precedence over `tenant` (the "
               "receiver "
               "`otlp` needs `include_metadata`, `batch` needs it among its `metadata_keys`).",
               .fallback = "true"),
    FIELD_OPTIONAL(pyroscope_settings, basic_auth, basic_auth, basic_auth_fields,
                   "User name and password, as Grafana Cloud requires."),
    FIELD_SECRET(pyroscope_settings, bearer_token, "Token of an Authorization: Bearer header."),
    FIELD_OPTIONAL(pyroscope_settings, auth, auth_settings, auth_fields,
                   "An extension sets headers of every request, such as credentials."),
    FIELD_DURATION(pyroscope_settings, timeout,
                   "Time limit for one request, connecting included; 0: none.", .fallback = "30s",
                   .min = "0s"),
    FIELD_SECRET(pyroscope_settings, proxy_url,
                 "The proxy, http://user:password@host:port; by default that of the environment "
                 "(HTTP_PROXY, HTTPS_PROXY, NO_PROXY)."),
    FIELD_UINT(pyroscope_settings, max_requests,
               "Most requests in progress at once for one batch; Pyroscope takes half a second to "
               "answer each.",
               .fallback = "16", .min = "1", .max = "1000"),
    FIELD_BLOCK(pyroscope_settings, labels, label_settings, label_fields,
                "Which attributes become labels: Pyroscope keeps a series for each set of them."),
    FIELD_UINT(pyroscope_settings, max_profile_bytes,
               "Largest pprof in bytes, uncompressed; larger ones are split (Pyroscope's "
               "`validation.max-profile-size-bytes`).",
               .fallback = "4194304", .min = "65536"),
    FIELD_UINT(pyroscope_settings, max_samples,
               "Most samples in a pprof (Pyroscope's `validation.max-profile-stacktrace-samples`).",
               .fallback = "16000", .min = "1", .max = "4000000"),
    FIELD_OPTIONAL(pyroscope_settings, sending_queue, sending_queue_settings, sending_queue_fields,
                   "The queue of requests that wait to be sent.", .fallback = "true"),
    FIELD_OPTIONAL(pyroscope_settings, retry_on_failure, retry_settings, retry_fields,
                   "Retries of requests that failed with a retryable error.", .fallback = "true"),
    FIELD_END,
};

static void check_auth(const struct pyroscope_settings *settings, struct config_check *check)
{
    bool has_header = false;
    for (size_t i = 0; i < settings->headers.count; i++)
        has_header |= strcasecmp(settings->headers.items[i].name, "authorization") == 0;
    if (settings->basic_auth.enabled + (settings->bearer_token != NULL) + has_header > 1)
        config_check_error(check, "basic_auth",
                           "only one of basic_auth, bearer_token and an Authorization header");
}

#define PUSH_PATH "/push.v1.PusherService/Push"

/* The path is appended to what is written. */
static void warn_of_path(struct config_check *check, const char *base)
{
    static const char *const paths[] = {"/ingest", PUSH_PATH, "/api/v1/push"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (endpoint_ends_with(base, paths[i]))
            config_check_warn(check, "endpoint", ENDPOINT_HAS_PATH, paths[i], paths[i], PUSH_PATH,
                              paths[i]);
}

static void check_endpoint(struct pyroscope_settings *settings, struct config_check *check)
{
    struct arena *arena = config_check_arena(check);
    struct error err;
    const char *base = settings->endpoint ? settings->endpoint : "";
    size_t size = strlen(base);
    while (size > 0 && base[size - 1] == '/')
        size--;
    const char *url = arena_printf(arena, "%.*s" PUSH_PATH, (int)size, base);
    if (size == 0)
        return; /* a required field, whose absence was reported */
    warn_of_path(check, base);
    if (strchr(base, '?'))
        config_check_error(check, "endpoint", "must not contain a query: a path is appended to it");
    else if (!endpoint_parse_url(arena, base, &settings->place, &err) ||
             !endpoint_parse_url(arena, url, &settings->place, &err))
        config_check_error(check, "endpoint", "%s", err.text);
    else if (!settings->proxy_url)
        config_check_sends(check, "endpoint",
                           &(struct config_target){.host = settings->place.host,
                                                   .port = settings->place.port,
                                                   .signal = CONFIG_PROFILES,
                                                   .receiver = "pyroscope",
                                                   .protocol = ""});
}

static void check_pyroscope(void *config, struct config_check *check)
{
    struct pyroscope_settings *settings = config;
    check_endpoint(settings, check);
    tls_client_check(&settings->tls, check, "tls");
    otlp_headers_check(&settings->headers, false, check, "headers");
    label_check(&settings->labels, check);
    otlp_proxy_check(&settings->place, settings->place.scheme == ENDPOINT_HTTPS,
                     settings->proxy_url, check, settings->proxy_url ? "proxy_url" : "endpoint",
                     &settings->proxy);
    sending_queue_check(&settings->sending_queue, check, "sending_queue");
    retry_check(&settings->retry_on_failure, check, "retry_on_failure");
    check_auth(settings, check);
    auth_client_check(&settings->auth, false, check);
}

/* ---- component ---- */

static const char *basic_authorization(struct arena *arena, const struct basic_auth *auth)
{
    assert(auth->username && auth->password); /* both are required fields */
    const char *plain = arena_printf(arena, "%s:%s", auth->username, auth->password);
    size_t size = strlen(plain);
    unsigned char *coded = arena_alloc(arena, size / 3 * 4 + 5);
    EVP_EncodeBlock(coded, (const unsigned char *)plain, (int)size);
    return arena_printf(arena, "Basic %s", (const char *)coded);
}

static void set_header(struct push_target *target, struct http_header *headers, const char *name,
                       const char *value)
{
    if (value)
        headers[target->header_count++] = (struct http_header){
            slice_of_string(name), slice_trim(slice_of_string(value), SLICE_BLANKS)};
}

static void set_headers(struct pyroscope_exporter *exporter)
{
    const struct pyroscope_settings *settings = exporter->component.settings;
    struct push_target *target = &exporter->target;
    struct arena *arena = &exporter->arena;
    struct http_header *headers = arena_array(arena, settings->headers.count + 8, sizeof *headers);
    set_header(target, headers, "content-type", "application/proto");
    set_header(target, headers, "connect-protocol-version", "1");
    set_header(target, headers, "user-agent",
               arena_printf(arena, "profcol/%s", exporter->component.process->version));
    set_header(target, headers, "x-scope-orgid", settings->tenant);
    if (settings->basic_auth.enabled)
        set_header(target, headers, "authorization",
                   basic_authorization(arena, &settings->basic_auth));
    if (settings->bearer_token)
        set_header(target, headers, "authorization",
                   arena_printf(arena, "Bearer %s", settings->bearer_token));
    for (size_t i = 0; i < settings->headers.count; i++)
        set_header(target, headers, arena_lower_case(arena, settings->headers.items[i].name),
                   settings->headers.items[i].value);
    assert(target->header_count <= settings->headers.count + 8);
    target->headers = headers;
}

static void set_target(struct pyroscope_exporter *exporter)
{
    const struct pyroscope_settings *settings = exporter->component.settings;
    assert(settings->max_requests > 0 && settings->max_samples <= UINT32_MAX); /* see the fields */
    exporter->target = (struct push_target){
        .path = settings->place.path,
        .url = settings->place.url,
        .forward_tenant = settings->forward_tenant,
        .max_requests = (unsigned)settings->max_requests,
        .timeout_ns = settings->timeout,
        .options = {.labels = &settings->labels,
                    .limits = exporter->limits,
                    .label = exporter->component.label,
                    .max_profile_bytes = settings->max_profile_bytes,
                    .max_samples = (uint32_t)settings->max_samples,
                    .gzip = settings->compression == 1},
    };
    if (settings->auth.enabled)
        exporter->target.auth =
            auth_find(exporter->component.process, settings->auth.authenticator);
    set_headers(exporter);
}

static struct counter *folded_counter(const struct component *component)
{
    struct text labels = {0};
    metrics_label(&labels, "exporter", component->id);
    struct counter *counter = metrics_counter(
        component->process->metrics, "profcol_exporter_folded_label_values",
        "Values of labels beyond labels::max_values, sent as `other`.", text_string(&labels));
    text_deinit(&labels);
    return counter;
}

static bool pyroscope_init(struct component *component, struct error *err)
{
    (void)err;
    struct pyroscope_exporter *exporter = exporter_of(component);
    const struct pyroscope_settings *settings = component->settings;
    struct text labels = {0};
    arena_init(&exporter->arena, NULL);
    exporter->limits =
        label_limits_new(settings->labels.max_values, folded_counter(component), component->label);
    set_target(exporter);
    otlp_place_labels(&settings->place, &labels);
    delivery_shared_init(&exporter->shared, component, SIGNAL_PROFILES, &settings->sending_queue,
                         text_string(&labels));
    text_deinit(&labels);
    return true;
}

static void pyroscope_deinit(struct component *component)
{
    struct pyroscope_exporter *exporter = exporter_of(component);
    delivery_shared_deinit(&exporter->shared);
    label_limits_free(exporter->limits);
    arena_deinit(&exporter->arena);
}

/* ---- node ---- */

static bool pyroscope_node_start(struct node *node, struct error *err)
{
    struct pyroscope_exporter *exporter = exporter_of(node->component);
    const struct pyroscope_settings *settings = node->component->settings;
    assert(exporter->target.headers && exporter->limits); /* init was called before */
    struct client_options options = otlp_client_options(&settings->place, node->component);
    options.protocol = CLIENT_HTTP1;
    options.allow_h2 = true;
    options.proxy = settings->proxy;
    options.tls = settings->place.scheme == ENDPOINT_HTTPS ? &settings->tls : NULL;
    options.max_connections = CONNECTIONS_MAX;
    options.idle_timeout_ns = IDLE_TIMEOUT_NS;
    struct client *client = client_new(node->worker, &options, err);
    if (!client)
        return false;
    push_sender_start(&node_of(node)->sender, node, &exporter->target, &settings->sending_queue,
                      &settings->retry_on_failure, &exporter->shared, client);
    return true;
}

static void pyroscope_consume(struct node *node, struct batch *batch)
{
    delivery_consume(&node_of(node)->sender.delivery, batch);
}

static void pyroscope_node_drain(struct node *node)
{
    delivery_drain(&node_of(node)->sender.delivery);
}

static void pyroscope_node_stop(struct node *node)
{
    push_sender_stop(&node_of(node)->sender);
}

const struct component_type pyroscope_exporter_type = {
    .config = {.name = "pyroscope",
               .section = CONFIG_EXPORTERS,
               .stability = {[CONFIG_PROFILES] = STABILITY_ALPHA},
               .help = "Sends profiles to Pyroscope as its SDKs do (push.v1), with span and trace "
                       "ids where Grafana looks for them, with few series, a queue and retries.",
               .fields = pyroscope_fields,
               .config_size = sizeof(struct pyroscope_settings),
               .check = check_pyroscope},
    .component_size = sizeof(struct pyroscope_exporter),
    .init = pyroscope_init,
    .deinit = pyroscope_deinit,
    .node_size = sizeof(struct pyroscope_node),
    .node_start = pyroscope_node_start,
    .consume = pyroscope_consume,
    .node_drain = pyroscope_node_drain,
    .is_idle = delivery_is_idle,
    .node_stop = pyroscope_node_stop,
};

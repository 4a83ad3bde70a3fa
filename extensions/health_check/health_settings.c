#include "extensions/health_check/health_settings.h"

static const char *const transports[] = {"tcp", "tcp4", "tcp6", "unix", NULL};

static const struct field response_body_fields[] = {
    FIELD_STRING(response_body, healthy, "The body of an answer with status 200."),
    FIELD_STRING(response_body, unhealthy, "The body of an answer with status 503."),
    FIELD_END,
};

static const struct field check_collector_pipeline_fields[] = {
    FIELD_BOOL(check_collector_pipeline, enabled,
               "Whether failures of exporters count; the Collector's documentation advises against "
               "it.",
               .ignored = true),
    FIELD_STRING(check_collector_pipeline, interval, "Over which time failures count.",
                 .fallback = "5m", .ignored = true),
    FIELD_UINT(check_collector_pipeline, exporter_failure_threshold, "How many failures count.",
               .fallback = "5", .ignored = true),
    FIELD_END,
};

static const struct field status_fields[] = {
    FIELD_BOOL(health_page, enabled, "Whether the status is answered.", .fallback = "true"),
    FIELD_STRING(health_page, path, "The path of the status.", .fallback = "/status"),
    FIELD_BOOL(health_page, verbose,
               "Answer with the status of every pipeline and component, as with `?verbose`."),
    FIELD_BOOL(health_page, include_attributes,
               "Answer with the attributes of a status; in profcol, none has any.",
               .ignored = true),
    FIELD_END,
};

static const struct field config_fields[] = {
    FIELD_BOOL(health_page, enabled,
               "Whether the configuration is answered, as JSON with secrets masked.",
               .fallback = "false"),
    FIELD_STRING(health_page, path, "The path of the configuration.", .fallback = "/config"),
    FIELD_END,
};

static const struct field http_fields[] = {
    FIELD_STRING(health_http_settings, endpoint, HTTP_SERVER_ENDPOINT_HELP,
                 .fallback = "localhost:13133"),
    FIELD_BLOCK(health_http_settings, server, http_server_settings, http_server_fields,
                "The listener. Idle connections are closed after 5 s.", .inlined = true),
    FIELD_BLOCK(health_http_settings, status, health_page, status_fields,
                "The status of the process, or of one pipeline (`?pipeline=traces`)."),
    FIELD_BLOCK(health_http_settings, config, health_page, config_fields, "The configuration."),
    FIELD_END,
};

static const struct field grpc_fields[] = {
    FIELD_STRING(grpc_server_settings, endpoint,
                 "Address to listen on, host:port; with transport unix, a path.",
                 .fallback = "localhost:13132"),
    FIELD_ENUM(grpc_server_settings, transport, "Type of the address.", transports,
               .fallback = "tcp"),
    FIELD_OPTIONAL(grpc_server_settings, tls, tls_server_settings, tls_server_fields,
                   "TLS; without it the listener is cleartext."),
    FIELD_UINT(grpc_server_settings, max_recv_msg_size_mib, "Largest message in MiB.",
               .fallback = "4", .min = "1", .max = "1024"),
    FIELD_UINT(grpc_server_settings, max_concurrent_streams,
               "Most concurrent requests on one connection; 0: 100.", .max = "100000"),
    FIELD_UINT(grpc_server_settings, max_connections, MAX_CONNECTIONS_HELP),
    FIELD_UINT(grpc_server_settings, max_connections_per_ip,
               "Most connections at once from one address, or one /64 of IPv6; further ones are "
               "closed; 0: no limit.",
               .max = "1000000"),
    FIELD_END,
};

static const struct field component_health_fields[] = {
    FIELD_BOOL(component_health_settings, include_permanent_errors,
               "A permanent error of a component is answered with 500, NOT_SERVING."),
    FIELD_BOOL(component_health_settings, include_recoverable_errors,
               "So is a recoverable error, once it has lasted for `recovery_duration`. A backend "
               "that is down is one: with this setting, a liveness probe restarts profcol for it, "
               "which does not help and loses queued data."),
    FIELD_DURATION(component_health_settings, recovery_duration,
                   "How long a recoverable error may last.", .fallback = "0s", .min = "0s"),
    FIELD_END,
};

const struct field health_check_fields[] = {
    FIELD_STRING(health_check_settings, endpoint, HTTP_SERVER_ENDPOINT_HELP,
                 .fallback = "localhost:13133"),
    FIELD_STRING(health_check_settings, path, "The path that is answered; \"/\": every path.",
                 .fallback = "/"),
    FIELD_BLOCK(health_check_settings, server, http_server_settings, http_server_fields,
                "The listener. Idle connections are closed after 5 s.", .inlined = true),
    FIELD_BLOCK(health_check_settings, response_body, response_body, response_body_fields,
                "What is answered in place of a JSON object with the status and the uptime."),
    FIELD_BLOCK(health_check_settings, check_collector_pipeline, check_collector_pipeline,
                check_collector_pipeline_fields, "Failures of exporters."),
    FIELD_BOOL(health_check_settings, use_v2,
               "Answer with the status of components; `http`, `grpc` or both are then needed, and "
               "the settings above have no effect. `http` or `grpc` alone also selects this form."),
    FIELD_OPTIONAL(health_check_settings, http, health_http_settings, http_fields,
                   "The status over HTTP: 200; 503 before everything has started and while "
                   "profcol shuts down; 500 after a fatal error, or by `component_health`."),
    FIELD_OPTIONAL(health_check_settings, grpc, grpc_server_settings, grpc_fields,
                   "The service `grpc.health.v1.Health`: `Check` of \"\" for the process, or of a "
                   "pipeline. `Watch` is not supported."),
    FIELD_OPTIONAL(health_check_settings, component_health, component_health_settings,
                   component_health_fields,
                   "Which errors of components make the answer unhealthy. Without this block, "
                   "errors are only shown."),
    FIELD_END,
};

bool health_check_is_v2(const struct health_check_settings *settings)
{
    return settings->use_v2 || settings->http.enabled || settings->grpc.enabled;
}

static void check_path(const char *path, const char *key, struct config_check *check)
{
    if (path[0] != '/')
        config_check_error(check, key, "must begin with \"/\"");
}

static void check_v2(const struct health_check_settings *settings, struct config_check *check)
{
    const struct health_http_settings *http = &settings->http;
    if (!http->enabled && !settings->grpc.enabled)
        config_check_error(check, "use_v2", "needs http, grpc or both");
    if (http->enabled)
        http_server_check(&http->server, http->endpoint, check, "http");
    if (http->enabled && http->status.enabled)
        check_path(http->status.path, "http::status::path", check);
    if (http->enabled && http->config.enabled)
        check_path(http->config.path, "http::config::path", check);
    if (http->enabled && http->status.enabled && http->config.enabled &&
        strcmp(http->status.path, http->config.path) == 0)
        config_check_error(check, "http::config::path", "is the same as http::status::path");
    grpc_server_check(&settings->grpc, check, "grpc");
}

void health_check_check(void *config, struct config_check *check)
{
    const struct health_check_settings *settings = config;
    if (health_check_is_v2(settings)) {
        check_v2(settings, check);
        return;
    }
    http_server_check(&settings->server, settings->endpoint, check, "");
    check_path(settings->path, "path", check);
}

/*
 * health_check: tells a load balancer or Kubernetes whether profcol takes data.
 *
 * The Collector's extension of the same name, in its first form: 200 once all pipelines have
 * started, 503 before that and while the process shuts down. It says nothing about backends, so a
 * liveness probe never restarts profcol because one of them is down. Path "/" stands for every
 * path, any other for itself; the method does not matter.
 *
 * Owner: the component owns the server.
 *
 * Thread: made on main; each answer on its connection's worker.
 */
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/server_settings.h"

#include <assert.h>
#include <inttypes.h>

#define IDLE_NS INT64_C(5000000000)

struct response_body {
    const char *healthy, *unhealthy; /* NULL: not set */
};

struct check_collector_pipeline {
    bool enabled;
    const char *interval;
    uint64_t exporter_failure_threshold;
};

struct health_check_settings {
    const char *endpoint;
    const char *path;
    struct http_server_settings server;
    struct response_body response_body;
    struct check_collector_pipeline check_collector_pipeline;
};

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

static const struct field health_check_fields[] = {
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
    FIELD_END,
};

static void check_settings(void *config, struct config_check *check)
{
    const struct health_check_settings *settings = config;
    http_server_check(&settings->server, settings->endpoint, check, "");
    if (settings->path[0] != '/')
        config_check_error(check, "path", "must begin with \"/\"");
}

struct health_check {
    struct component component;
    struct server *server;
    bool started;
};

extern const struct component_type health_check_extension_type;

static struct health_check *health_check_of(struct component *component)
{
    return component_as(struct health_check, component, &health_check_extension_type);
}

/* ---- answers ---- */

static const struct health_check_settings *settings_of(const struct health_check *health)
{
    return health->component.settings;
}

static bool is_ready(const struct health_check *health)
{
    return atomic_load_explicit(&health->component.process->phase, memory_order_acquire) ==
           PROCESS_RUNNING;
}

/* The Collector's words. */
static void print_status(const struct health_check *health, bool ready, struct text *out)
{
    const struct process *process = health->component.process;
    if (!ready) {
        text_append(out,
                    "{\"status\":\"Server not available\",\"upSince\":\"0001-01-01T00:00:00Z\","
                    "\"uptime\":\"\"}");
        return;
    }
    uint64_t up_ns = clock_monotonic_ns() - process->running_since_ns;
    text_append(out, "{\"status\":\"Server available\",\"upSince\":\"");
    text_append_utc(out, clock_wall_ns() - up_ns);
    text_append(out, "\",\"uptime\":\"");
    text_append_duration(out, up_ns);
    text_append(out, "\"}");
}

static bool on_head(void *context, struct exchange *exchange)
{
    const char *path = settings_of(context)->path;
    if (strcmp(path, "/") == 0 || slice_is(exchange_path(exchange), path))
        return true;
    exchange_respond(exchange, 404, "text/plain; charset=utf-8", SLICE("404 page not found\n"),
                     NULL, 0);
    return false;
}

static void on_request(void *context, struct exchange *exchange)
{
    const struct health_check *health = context;
    const struct response_body *bodies = &settings_of(health)->response_body;
    bool ready = is_ready(health);
    const char *body = ready ? bodies->healthy : bodies->unhealthy;
    bool is_set = bodies->healthy || bodies->unhealthy;
    struct text status = {0};
    if (!is_set)
        print_status(health, ready, &status);
    buffer_unref(exchange_take_body(exchange));
    exchange_respond(
        exchange, ready ? 200 : 503, is_set ? "text/plain; charset=utf-8" : "application/json",
        is_set ? slice_of_string(body ? body : "") : slice_of(status.data, status.size), NULL, 0);
    text_deinit(&status);
}

static const struct server_handler handler = {.on_head = on_head, .on_request = on_request};

/* ---- life ---- */

static bool health_check_init(struct component *component, struct error *err)
{
    struct health_check *health = health_check_of(component);
    const struct health_check_settings *settings = component->settings;
    struct process *process = component->process;
    struct server_options options =
        http_server_options(&settings->server, settings->endpoint, process, component->label);
    options.budget = NULL; /* it has to answer above all when nothing else may */
    options.accounts = NULL;
    options.uses_reserve = true;
    /* A probe asks as soon as it is connected. Idle connections must not keep others waiting. */
    if (options.read_header_timeout_ns == 0 || options.read_header_timeout_ns > IDLE_NS)
        options.read_header_timeout_ns = IDLE_NS;
    if (options.idle_timeout_ns == 0 || options.idle_timeout_ns > IDLE_NS)
        options.idle_timeout_ns = IDLE_NS;
    if (options.max_body_bytes > 1024)
        options.max_body_bytes = 1024;
    assert(!health->server);
    health->server =
        server_new(&options, &handler, health, process->workers, process->worker_count, err);
    return health->server != NULL;
}

static void health_check_deinit(struct component *component)
{
    server_free(health_check_of(component)->server);
}

/* Workers start one after the other: only when the last has its node may a connection arrive
 * anywhere. */
static bool health_check_node_start(struct node *node, struct error *err)
{
    (void)err;
    struct health_check *health = health_check_of(node->component);
    if (node->worker->index + 1 < node->component->process->worker_count)
        return true;
    assert(health->server && !health->started); /* only the node of the last worker starts it */
    health->started = true;
    server_start(health->server);
    log_info(node->component->label, "Starting HTTP server, endpoint: %s",
             settings_of(health)->endpoint);
    return true;
}

/* Answers until the end of the process: the drain is what a load balancer has to see. */
static void health_check_node_stop(struct node *node)
{
    struct health_check *health = health_check_of(node->component);
    if (health->started)
        server_stop(health->server, node->worker);
}

const struct component_type health_check_extension_type = {
    .config = {.name = "health_check",
               .section = CONFIG_EXTENSIONS,
               .stability = {STABILITY_BETA},
               .help = "Answers over HTTP whether profcol takes data: 200 once everything has "
                       "started, 503 before that and while it shuts down. It does not depend on "
                       "backends. `profcol healthcheck` asks it.",
               .fields = health_check_fields,
               .config_size = sizeof(struct health_check_settings),
               .check = check_settings},
    .component_size = sizeof(struct health_check),
    .init = health_check_init,
    .deinit = health_check_deinit,
    .node_start = health_check_node_start,
    .node_stop = health_check_node_stop,
};

/*
 * health_check: tells a load balancer or Kubernetes whether profcol takes data.
 *
 * The Collector's extension of the same name. In its first form: 200 once all pipelines have
 * started, 503 before that and while the process shuts down. It says nothing about backends, so a
 * liveness probe never restarts profcol because one of them is down. Path "/" stands for every
 * path, any other for itself; the method does not matter. In its second form (healthcheckv2) it
 * answers with the status of components, over HTTP and gRPC; an error of a component changes the
 * answer's status only if component_health says so.
 *
 * Owner: the component owns its servers and the printed configuration.
 *
 * Thread: made on main; each answer on its connection's worker.
 */
#include "config/config.h"
#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/base/verdict.h"
#include "core/net/own_host.h"
#include "core/net/url_query.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/probe_server.h"
#include "extensions/health_check/health_answer.h"
#include "extensions/health_check/health_settings.h"

#include <assert.h>
#include <stdatomic.h>

struct health_check {
    struct component component;
    struct probe_server http, grpc;
    char host[256];                    /* that `http` listens on */
    atomic_uint_least64_t up_since_ns; /* since 1970; 0: nobody has asked yet */
};

extern const struct component_type health_check_extension_type;

static struct health_check *health_check_of(struct component *component)
{
    return component_as(struct health_check, component, &health_check_extension_type);
}

static const struct health_check_settings *settings_of(const struct health_check *health)
{
    return health->component.settings;
}

static void respond(struct exchange *exchange, int status, const char *type, struct slice body)
{
    const struct http_header no_sniff = {SLICE("x-content-type-options"), SLICE("nosniff")};
    exchange_respond(exchange, status, type, body, &no_sniff, 1);
}

static bool refuse(struct exchange *exchange, int status, struct slice why)
{
    respond(exchange, status, "text/plain; charset=utf-8", why);
    return false;
}

/* ---- the first form ---- */

static bool is_ready(const struct health_check *health)
{
    return atomic_load_explicit(&health->component.process->phase, memory_order_acquire) ==
           PROCESS_RUNNING;
}

/* Returns the same time for every answer, though the clock may be set. */
static uint64_t up_since(struct health_check *health, uint64_t up_ns)
{
    uint_least64_t known = 0, since = clock_wall_ns() - up_ns;
    return atomic_compare_exchange_strong(&health->up_since_ns, &known, since) ? since : known;
}

/* The Collector's words. */
static void print_status(struct health_check *health, bool ready, struct text *out)
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
    text_append_utc(out, up_since(health, up_ns));
    text_append(out, "\",\"uptime\":\"");
    text_append_duration(out, up_ns);
    text_append(out, "\"}");
}

static bool on_head_v1(void *context, struct exchange *exchange)
{
    const char *path = settings_of(context)->path;
    if (strcmp(path, "/") == 0 || slice_is(exchange_path(exchange), path))
        return true;
    return refuse(exchange, 404, SLICE("404 page not found\n"));
}

static void on_request_v1(void *context, struct exchange *exchange)
{
    struct health_check *health = context;
    const struct response_body *bodies = &settings_of(health)->response_body;
    bool ready = is_ready(health);
    const char *body = ready ? bodies->healthy : bodies->unhealthy;
    bool is_set = bodies->healthy || bodies->unhealthy;
    struct text status = {0};
    if (!is_set)
        print_status(health, ready, &status);
    buffer_unref(exchange_take_body(exchange));
    respond(exchange, ready ? 200 : 503, is_set ? "text/plain; charset=utf-8" : "application/json",
            is_set ? slice_of_string(body ? body : "") : slice_of(status.data, status.size));
    text_deinit(&status);
}

static const struct server_handler handler_v1 = {.on_head = on_head_v1,
                                                 .on_request = on_request_v1};

/* ---- the second form ---- */

static const struct health *read_health(const struct health_check *health, struct arena *arena)
{
    const struct component_health_settings *counts = &settings_of(health)->component_health;
    assert(health_check_is_v2(settings_of(health)));
    return health_read(arena, health->component.process,
                       counts->include_recoverable_errors && !counts->include_permanent_errors);
}

static bool is_page(const struct health_page *page, struct exchange *exchange)
{
    return page->enabled && slice_is(exchange_path(exchange), page->path);
}

/* The configuration is for people at this machine; probes ask for the status by any name. */
static bool on_head_v2(void *context, struct exchange *exchange)
{
    const struct health_check *health = context;
    const struct health_http_settings *http = &settings_of(health)->http;
    if (is_page(&http->status, exchange))
        return true;
    if (!is_page(&http->config, exchange))
        return refuse(exchange, 404, SLICE("404 page not found\n"));
    if (own_host_is(health->host, http_header_get(exchange_headers(exchange), "host")))
        return true;
    return refuse(exchange, 403, SLICE("403 the Host header does not name this server\n"));
}

static bool is_verbose(const struct health_page *page, struct slice query)
{
    char value[8];
    bool is_asked = url_query_get(query, "verbose", value, sizeof value);
    return page->verbose || (is_asked && strcmp(value, "false") != 0);
}

static void answer_status(const struct health_check *health, struct exchange *exchange,
                          const struct health *scope)
{
    const struct health_check_settings *settings = settings_of(health);
    uint64_t now_ns = clock_wall_ns();
    struct text body = {0};
    health_print_json(scope, &settings->component_health, health->component.process->started_ns,
                      now_ns, is_verbose(&settings->http.status, exchange_query(exchange)), &body);
    respond(exchange, health_http_status(scope, &settings->component_health, now_ns),
            "application/json", slice_of(body.data, body.size));
    text_deinit(&body);
}

static void find_and_answer(const struct health_check *health, struct exchange *exchange)
{
    char pipeline[256];
    struct arena arena;
    arena_init(&arena, NULL);
    const struct health *scope = read_health(health, &arena);
    url_query_get(exchange_query(exchange), "pipeline", pipeline, sizeof pipeline);
    if (pipeline[0])
        scope = health_find(scope, pipeline);
    if (scope)
        answer_status(health, exchange, scope);
    else
        refuse(exchange, 404, SLICE("404 there is no such pipeline\n"));
    arena_deinit(&arena);
}

static void show_configuration(const struct health_check *health, struct exchange *exchange)
{
    struct text json = {0};
    if (config_print_json(health->component.process->config, &json))
        respond(exchange, 200, "application/json", slice_of(json.data, json.size));
    else
        refuse(exchange, 500, SLICE("500 the configuration is too large to be shown\n"));
    text_deinit(&json);
}

static void on_request_v2(void *context, struct exchange *exchange)
{
    const struct health_check *health = context;
    buffer_unref(exchange_take_body(exchange));
    assert(is_page(&settings_of(health)->http.status, exchange) ||
           is_page(&settings_of(health)->http.config, exchange)); /* on_head_v2 */
    if (is_page(&settings_of(health)->http.status, exchange))
        find_and_answer(health, exchange);
    else
        show_configuration(health, exchange);
}

static const struct server_handler handler_v2 = {.on_head = on_head_v2,
                                                 .on_request = on_request_v2};

/* ---- grpc.health.v1 ---- */

static void refuse_grpc(struct exchange *exchange, enum grpc_code code, const char *why)
{
    struct verdict verdict = verdict_of(code, "%s", why);
    exchange_respond_grpc(exchange, &verdict, SLICE(""));
}

static bool on_head_grpc(void *context, struct exchange *exchange)
{
    (void)context;
    if (slice_is(exchange_path(exchange), "/grpc.health.v1.Health/Check"))
        return true;
    refuse_grpc(exchange, GRPC_UNIMPLEMENTED,
                "profcol serves the method Check of grpc.health.v1.Health");
    return false;
}

static void check_service(const struct health_check *health, struct exchange *exchange,
                          struct slice service)
{
    const struct component_health_settings *counts = &settings_of(health)->component_health;
    uint8_t response[HEALTH_GRPC_RESPONSE_MAX];
    struct arena arena;
    arena_init(&arena, NULL);
    const struct health *scope = read_health(health, &arena);
    if (service.size > 0)
        scope = health_find(scope, arena_string(&arena, service));
    if (scope) {
        size_t size = health_grpc_write_response(scope, counts, clock_wall_ns(), response);
        exchange_respond_grpc(exchange, &verdict_ok, slice_of(response, size));
    } else {
        refuse_grpc(exchange, GRPC_NOT_FOUND, "Service not found.");
    }
    arena_deinit(&arena);
}

static void on_request_grpc(void *context, struct exchange *exchange)
{
    struct buffer *request = exchange_take_body(exchange);
    struct slice service;
    if (health_grpc_read_service(buffer_slice(request), &service))
        check_service(context, exchange, service);
    else
        refuse_grpc(exchange, GRPC_INTERNAL, "the request is not a HealthCheckRequest");
    buffer_unref(request);
}

static const struct server_handler handler_grpc = {.on_head = on_head_grpc,
                                                   .on_request = on_request_grpc};

/* ---- life ---- */

static bool open_v1(struct health_check *health, struct error *err)
{
    struct component *component = &health->component;
    const struct health_check_settings *settings = settings_of(health);
    struct server_options options = http_server_options(&settings->server, settings->endpoint,
                                                        component->process, component->label);
    return probe_server_open(&health->http, component, &options, &handler_v1, health, err);
}

static bool open_http(struct health_check *health, struct error *err)
{
    struct component *component = &health->component;
    const struct health_http_settings *http = &settings_of(health)->http;
    struct server_options options =
        http_server_options(&http->server, http->endpoint, component->process, component->label);
    struct text shown = {0};
    bool can_be_shown =
        !http->config.enabled || config_print_json(component->process->config, &shown);
    text_deinit(&shown);
    if (!can_be_shown)
        return error_set(err, "http::config: the configuration is too large to be shown");
    probe_server_host(&options, health->host, sizeof health->host);
    return probe_server_open(&health->http, component, &options, &handler_v2, health, err);
}

static bool open_grpc(struct health_check *health, struct error *err)
{
    struct component *component = &health->component;
    const struct server_options options =
        grpc_server_options(&settings_of(health)->grpc, component->process, component->label);
    return probe_server_open(&health->grpc, component, &options, &handler_grpc, health, err);
}

static void health_check_deinit(struct component *component)
{
    struct health_check *health = health_check_of(component);
    probe_server_close(&health->http);
    probe_server_close(&health->grpc);
}

static bool health_check_init(struct component *component, struct error *err)
{
    struct health_check *health = health_check_of(component);
    const struct health_check_settings *settings = settings_of(health);
    if (!health_check_is_v2(settings))
        return open_v1(health, err);
    assert(settings->http.enabled || settings->grpc.enabled); /* health_check_check */
    if ((!settings->http.enabled || open_http(health, err)) &&
        (!settings->grpc.enabled || open_grpc(health, err)))
        return true;
    health_check_deinit(component);
    return false;
}

static bool health_check_node_start(struct node *node, struct error *err)
{
    (void)err;
    struct health_check *health = health_check_of(node->component);
    probe_server_start(&health->http, node);
    probe_server_start(&health->grpc, node);
    return true;
}

static void health_check_node_stop(struct node *node)
{
    struct health_check *health = health_check_of(node->component);
    probe_server_stop(&health->http, node);
    probe_server_stop(&health->grpc, node);
}

const struct component_type health_check_extension_type = {
    .config = {.name = "health_check",
               .alias = "healthcheckv2",
               .section = CONFIG_EXTENSIONS,
               .stability = {STABILITY_BETA},
               .help = "Answers over HTTP whether profcol takes data: 200 once everything has "
                       "started, 503 before that and while it shuts down. It does not depend on "
                       "backends. `profcol healthcheck` asks it. With `http` or `grpc` it answers "
                       "with the status of components, too, as the Collector's extension "
                       "healthcheckv2 does.",
               .fields = health_check_fields,
               .config_size = sizeof(struct health_check_settings),
               .check = health_check_check},
    .component_size = sizeof(struct health_check),
    .init = health_check_init,
    .deinit = health_check_deinit,
    .node_start = health_check_node_start,
    .node_stop = health_check_node_stop,
};

/*
 * zpages: pages for a person who wants to see what profcol does: pipelines, queues, errors, the
 * configuration.
 *
 * The Collector's extension of the same name, with its paths (/debug/servicez, /debug/pipelinez,
 * /debug/extensionz, /debug/featurez) and two more (/debug/logz, /debug/configz). `?format=json`
 * gives the same as JSON. The pages change nothing.
 *
 * Owner: the component owns its server and the printed configuration.
 *
 * Thread: made on main; each answer on its connection's worker.
 */
#include "config/config.h"
#include "core/net/own_host.h"
#include "core/net/url_query.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/probe_server.h"
#include "extensions/zpages/pages.h"

#include <assert.h>

/* A page may have 100 KiB, and a client may read it slowly. */
enum { CONNECTIONS_MAX = 64 };

struct expvar_settings {
    bool enabled;
};

struct zpages_settings {
    const char *endpoint;
    struct http_server_settings server;
    struct expvar_settings expvar;
};

static const struct field expvar_fields[] = {
    FIELD_BOOL(expvar_settings, enabled, "Whether /debug/expvarz is served.", .fallback = "false"),
    FIELD_END,
};

static const struct field zpages_fields[] = {
    FIELD_STRING(zpages_settings, endpoint, HTTP_SERVER_ENDPOINT_HELP,
                 .fallback = "localhost:55679"),
    FIELD_BLOCK(zpages_settings, server, http_server_settings, http_server_fields,
                "The listener. Idle connections are closed after 5 s; there are at most 64.",
                .inlined = true),
    FIELD_BLOCK(zpages_settings, expvar, expvar_settings, expvar_fields,
                "Figures of the process at /debug/expvarz."),
    FIELD_END,
};

static void check_settings(void *config, struct config_check *check)
{
    const struct zpages_settings *settings = config;
    http_server_check(&settings->server, settings->endpoint, check, "");
}

struct zpages {
    struct component component;
    struct probe_server http;
    char host[256];
};

extern const struct component_type zpages_extension_type;

static struct zpages *zpages_of(struct component *component)
{
    return component_as(struct zpages, component, &zpages_extension_type);
}

/* ---- answers ---- */

/* The pages need nothing from elsewhere, and nobody else may embed them. */
static const struct http_header safety[] = {
    {SLICE("content-security-policy"),
     SLICE("default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; "
           "base-uri 'none'; form-action 'none'")},
    {SLICE("x-content-type-options"), SLICE("nosniff")},
    {SLICE("cache-control"), SLICE("no-store")},
    {SLICE("referrer-policy"), SLICE("no-referrer")},
};

static void respond(struct exchange *exchange, int status, const char *type, struct slice body)
{
    exchange_respond(exchange, status, type, body, safety, sizeof safety / sizeof safety[0]);
}

static bool refuse(struct exchange *exchange, int status, struct slice why)
{
    respond(exchange, status, "text/plain; charset=utf-8", why);
    return false;
}

static const struct page *page_of(const struct zpages *zpages, const struct exchange *exchange)
{
    const struct zpages_settings *settings = zpages->component.settings;
    return page_at(exchange_path(exchange), settings->expvar.enabled);
}

static bool on_head(void *context, struct exchange *exchange)
{
    const struct zpages *zpages = context;
    struct slice method = exchange_method(exchange);
    if (!own_host_is(zpages->host, http_header_get(exchange_headers(exchange), "host")))
        return refuse(exchange, 403, SLICE("403 the Host header does not name this server\n"));
    if (!page_of(zpages, exchange))
        return refuse(exchange, 404, SLICE("404 page not found; try /debug/servicez\n"));
    if (!slice_is(method, "GET") && !slice_is(method, "HEAD"))
        return refuse(exchange, 405, SLICE("405 method not allowed, supported: [GET]\n"));
    return true;
}

static void on_request(void *context, struct exchange *exchange)
{
    const struct zpages *zpages = context;
    const struct process *process = zpages->component.process;
    char format[8];
    struct text out = {0};
    struct arena arena;
    assert(page_of(zpages, exchange)); /* on_head has found it */
    arena_init(&arena, NULL);
    url_query_get(exchange_query(exchange), "format", format, sizeof format);
    bool is_json = strcmp(format, "json") == 0;
    const struct page_source source = {
        .process = process,
        .arena = &arena,
        .health = health_read(&arena, process, false),
    };
    page_print(page_of(zpages, exchange), &source, is_json, &out);
    buffer_unref(exchange_take_body(exchange));
    respond(exchange, 200, is_json ? "application/json" : "text/html; charset=utf-8",
            slice_of(out.data, out.size));
    text_deinit(&out);
    arena_deinit(&arena);
}

static const struct server_handler handler = {.on_head = on_head, .on_request = on_request};

/* ---- life ---- */

static void zpages_deinit(struct component *component)
{
    struct zpages *zpages = zpages_of(component);
    probe_server_close(&zpages->http);
}

static bool zpages_init(struct component *component, struct error *err)
{
    struct zpages *zpages = zpages_of(component);
    const struct zpages_settings *settings = component->settings;
    struct server_options options = http_server_options(&settings->server, settings->endpoint,
                                                        component->process, component->label);
    if (options.max_connections == 0 || options.max_connections > CONNECTIONS_MAX)
        options.max_connections = CONNECTIONS_MAX;
    probe_server_host(&options, zpages->host, sizeof zpages->host);
    if (probe_server_open(&zpages->http, component, &options, &handler, zpages, err))
        return true;
    zpages_deinit(component);
    return false;
}

static bool zpages_node_start(struct node *node, struct error *err)
{
    (void)err;
    probe_server_start(&zpages_of(node->component)->http, node);
    return true;
}

static void zpages_node_stop(struct node *node)
{
    probe_server_stop(&zpages_of(node->component)->http, node);
}

const struct component_type zpages_extension_type = {
    .config = {.name = "zpages",
               .section = CONFIG_EXTENSIONS,
               .stability = {STABILITY_BETA},
               .help = "Pages for people, at /debug/servicez: pipelines with what passed each "
                       "component, exporters with their queues and last errors, recent errors and "
                       "warnings, the configuration with secrets masked. `?format=json` gives the "
                       "same as JSON. Keep the endpoint local: the pages show the state of the "
                       "process to whoever reaches it.",
               .fields = zpages_fields,
               .config_size = sizeof(struct zpages_settings),
               .check = check_settings},
    .component_size = sizeof(struct zpages),
    .init = zpages_init,
    .deinit = zpages_deinit,
    .node_start = zpages_node_start,
    .node_stop = zpages_node_stop,
};

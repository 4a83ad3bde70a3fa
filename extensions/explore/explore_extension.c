/*
 * explore: shows in a browser what the join saw: slow requests, their flame graphs, what is
 * different about them.
 *
 * docs/explore.md is the contract. The files of the page are in the binary; everything that they
 * show is JSON under /api/, from the store of the engine (explore_engine.h), or from the process
 * itself (api_operations.h).
 *
 * Owner: the component owns its server and holds a reference to the engine; queries own themselves
 * while they are asked.
 *
 * Thread: made on main; requests and answers on the worker of their connection.
 */
#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/net/own_host.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/probe_server.h"
#include "extensions/explore/api_operations.h"
#include "extensions/explore/explore_engine.h"
#include "extensions/explore/page_files.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <stdio.h>

/* An answer may have some MiB, and a client may read it slowly. */
enum { CONNECTIONS_MAX = 64 };

enum { MEMORY_PART = 8, BUDGET_MIN = 1 << 20 };

struct links_settings {
    const char *grafana, *tempo, *pyroscope, *datasource, *pyroscope_datasource;
};

struct explore_settings {
    const char *endpoint;
    struct http_server_settings server;
    const char *token;
    uint64_t max_memory_mib;
    struct links_settings links;
};

static const struct field links_fields[] = {
    FIELD_STRING(links_settings, grafana, "URL of Grafana, for links to Explore."),
    FIELD_STRING(links_settings, tempo,
                 "URL that shows a trace when its id is appended, such as "
                 "http://tempo:3200/api/traces/."),
    FIELD_STRING(links_settings, pyroscope,
                 "URL of Pyroscope up to 1.19. The page of later ones takes no query from a link; "
                 "use pyroscope_datasource."),
    FIELD_STRING(links_settings, datasource,
                 "UID or name of the data source of type Tempo in Grafana.", .fallback = "tempo"),
    FIELD_STRING(links_settings, pyroscope_datasource,
                 "UID or name of the data source of type Pyroscope in Grafana. Links to profiles "
                 "then open the profile of the span in Grafana."),
    FIELD_END,
};

static const struct field explore_fields[] = {
    FIELD_STRING(explore_settings, endpoint,
                 HTTP_SERVER_ENDPOINT_HELP " Other addresses than loopback need `auth` or `token`.",
                 .fallback = "localhost:4319"),
    FIELD_BLOCK(
        explore_settings, server, http_server_settings, http_server_fields,
        "The listener. Idle connections are closed after 5 s; there are at most 64, and an idle "
        "one gives way to a new one.",
        .inlined = true),
    FIELD_SECRET(explore_settings, token,
                 "What the paths under /api/ want as `Authorization: Bearer`."),
    FIELD_UINT(explore_settings, max_memory_mib,
               "Memory for what it remembers. When it is used up, details of what is old or rare "
               "are merged; totals stay exact. At most an eighth of the memory limit is used.",
               .fallback = "64", .min = "1", .max = "65536"),
    FIELD_BLOCK(explore_settings, links, links_settings, links_fields,
                "Where the page links to; http or https."),
    FIELD_END,
};

static bool has_text(const char *text)
{
    return text && text[0];
}

static bool has_token(const struct explore_settings *settings)
{
    return has_text(settings->token);
}

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcasecmp(host, "localhost") == 0;
}

/* A link with another scheme, such as javascript:, would run in the page. */
static void check_link(struct config_check *check, const char *path, const char *url)
{
    bool is_web = !has_text(url) || strncasecmp(url, "http://", 7) == 0 ||
                  strncasecmp(url, "https://", 8) == 0;
    if (!is_web)
        config_check_error(check, path, "the URL must begin with http:// or https://");
}

/* Whoever reaches it sees the names and attributes of all requests. */
static void check_settings(void *config, struct config_check *check)
{
    const struct explore_settings *settings = config;
    char host[256];
    http_server_check(&settings->server, settings->endpoint, check, "");
    check_link(check, "links::grafana", settings->links.grafana);
    check_link(check, "links::tempo", settings->links.tempo);
    check_link(check, "links::pyroscope", settings->links.pyroscope);
    if (has_text(settings->links.pyroscope_datasource) && !has_text(settings->links.grafana))
        config_check_error(check, "links::pyroscope_datasource", "needs `links.grafana`");
    const struct server_options options = {
        .endpoint = settings->endpoint,
        .transport = http_server_transport(&settings->server),
    };
    probe_server_host(&options, host, sizeof host);
    bool is_local = strcmp(options.transport, "unix") == 0 || is_loopback(host);
    if (has_token(settings) && settings->token[strcspn(settings->token, " \t\r\n")])
        config_check_error(check, "token", "must have no blanks");
    if (!is_local && !has_token(settings) && !settings->server.auth.enabled)
        config_check_error(check, "endpoint",
                           "%s is not a loopback address, so it needs auth or token: whoever "
                           "reaches explore sees the names and attributes of all requests",
                           settings->endpoint);
}

struct explore {
    struct component component;
    struct probe_server http;
    char host[256];
    struct explore_engine *engine;
    struct api_context context;
    struct list asked[WORKERS_MAX]; /* of struct asked, one for each worker */
};

extern const struct component_type explore_extension_type;

static struct explore *explore_of(struct component *component)
{
    return component_as(struct explore, component, &explore_extension_type);
}

static const struct explore_settings *settings_of(const struct explore *explore)
{
    return explore->component.settings;
}

/* ---- answers ---- */

static void respond(struct exchange *exchange, int status, const char *type, struct slice body,
                    const struct http_header *more)
{
    static const struct http_header challenge = {SLICE("www-authenticate"), SLICE("Bearer")};
    static const struct http_header retry_after = {SLICE("retry-after"), SLICE("1")};
    struct http_header headers[7] = {
        {SLICE("content-security-policy"), SLICE(EXPLORE_PAGE_POLICY)},
        {SLICE("x-content-type-options"), SLICE("nosniff")},
        {SLICE("referrer-policy"), SLICE("no-referrer")},
        {SLICE("cross-origin-resource-policy"), SLICE("same-origin")},
        {SLICE("cache-control"), SLICE("no-store")},
    };
    size_t count = 5;
    if (status == 401)
        headers[count++] = challenge;
    if (status == 503)
        headers[count++] = retry_after;
    if (more)
        headers[count++] = *more;
    exchange_respond(exchange, status, type, body, headers, count);
}

static void respond_json(struct exchange *exchange, struct api_request *request)
{
    char disposition[128];
    struct http_header download = {SLICE("content-disposition"), {0}};
    if (request->file_name) {
        int size = snprintf(disposition, sizeof disposition, "attachment; filename=\"%s\"",
                            request->file_name);
        download.value = slice_of(disposition, (size_t)size);
    }
    respond(exchange, request->status, request->type,
            slice_of(request->body.data, request->body.size),
            request->file_name ? &download : NULL);
}

static bool refuse(struct exchange *exchange, int status, const char *code, const char *why)
{
    struct api_request request = {.status = status};
    api_refuse(&request, status, code, "%s", why);
    respond(exchange, status, request.type, slice_of(request.body.data, request.body.size), NULL);
    text_deinit(&request.body);
    return false;
}

/* ---- requests ---- */

/* Answers that need no store. */
static const struct {
    const char *path;
    void (*write)(const struct process *process, const struct join_late *late, struct text *out);
} operations[] = {
    {"pipelines", api_write_pipelines}, {"join", api_write_join}, {"config", api_write_config}};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static int operation_index(struct slice path)
{
    int i = 0;
    while (i < OPERATIONS && !slice_is(path, operations[i].path))
        i++;
    return i;
}

/* Returns the path after "/api/"; data is NULL if it is another one. */
static struct slice api_path(const struct exchange *exchange)
{
    static const struct slice prefix = SLICE("/api/");
    struct slice path = exchange_path(exchange);
    if (path.size < prefix.size || memcmp(path.data, prefix.data, prefix.size) != 0)
        return slice_of(NULL, 0);
    return slice_of(path.data + prefix.size, path.size - prefix.size);
}

static bool may_ask(const struct explore *explore, const struct exchange *exchange)
{
    static const struct slice scheme = SLICE("Bearer ");
    const struct explore_settings *settings = settings_of(explore);
    if (!has_token(settings))
        return true;
    struct slice value = http_header_get(exchange_headers(exchange), "authorization");
    size_t size = strlen(settings->token);
    return value.size == scheme.size + size &&
           strncasecmp((const char *)value.data, "Bearer ", scheme.size) == 0 &&
           CRYPTO_memcmp(value.data + scheme.size, settings->token, size) == 0;
}

static bool refuse_token(struct exchange *exchange)
{
    struct slice value = http_header_get(exchange_headers(exchange), "authorization");
    return refuse(exchange, 401, "unauthorized",
                  value.size > 0 ? "Authorization has another token than the configuration"
                                 : "Authorization: Bearer TOKEN is missing");
}

static bool on_head(void *context, struct exchange *exchange)
{
    const struct explore *explore = context;
    struct slice path = api_path(exchange);
    const char *type;
    bool is_api = path.data && (api_has_path(path) || operation_index(path) < OPERATIONS);
    if (!own_host_is(explore->host, http_header_get(exchange_headers(exchange), "host")))
        return refuse(exchange, 403, "wrong_host", "the Host header does not name this server");
    if (path.data && !may_ask(explore, exchange))
        return refuse_token(exchange);
    if (!is_api && !explore_page_file(exchange_path(exchange), &type).data)
        return refuse(exchange, 404, "not_found", "there is no such path");
    if (!slice_is(exchange_method(exchange), "GET") && !slice_is(exchange_method(exchange), "HEAD"))
        return refuse(exchange, 405, "method_not_allowed", "use GET");
    return true;
}

/* A query, and whom it is for. */
struct asked {
    struct explore_query query; /* first */
    struct list_link link;
    struct explore *explore; /* NULL: it is stopped */
    struct exchange *exchange;
};

static void free_asked(struct asked *asked)
{
    api_deinit(&asked->query.request);
    free(asked->query.path);
    free(asked->query.query);
    free(asked);
}

static void on_answer(struct worker *worker, struct post *post)
{
    struct asked *asked =
        container_of(container_of(post, struct explore_query, post), struct asked, query);
    if (asked->explore) {
        list_remove(&asked->explore->asked[worker->index], &asked->link);
        respond_json(asked->exchange, &asked->query.request);
    }
    free_asked(asked);
}

static void ask(struct explore *explore, struct exchange *exchange, struct slice path)
{
    struct slice query = exchange_query(exchange);
    struct worker *worker = exchange_worker(exchange);
    struct asked *asked = memory_zalloc(sizeof *asked);
    asked->explore = explore;
    asked->exchange = exchange;
    asked->query.post.on_post = on_answer;
    asked->query.worker = worker;
    asked->query.owner = explore;
    asked->query.path = memory_strndup(path.data, path.size);
    asked->query.query = memory_strndup(query.data, query.size);
    exchange_set_data(exchange, asked);
    list_append(&explore->asked[worker->index], &asked->link);
    if (explore_engine_ask(explore->engine, &asked->query, &explore->context))
        return;
    list_remove(&explore->asked[worker->index], &asked->link);
    free_asked(asked);
    exchange_set_data(exchange, NULL);
    refuse(exchange, 503, "busy", "too many queries wait for their answers; try again");
}

static void on_request(void *context, struct exchange *exchange)
{
    struct explore *explore = context;
    struct slice path = api_path(exchange);
    buffer_unref(exchange_take_body(exchange));
    exchange_set_data(exchange, NULL);
    if (path.data && api_has_path(path)) {
        ask(explore, exchange, path);
    } else if (path.data) {
        struct api_request request = {.store = NULL};
        if (api_begin_plain(&request, exchange_query(exchange)))
            operations[operation_index(path)].write(
                explore->component.process, explore_engine_late(explore->engine), &request.body);
        respond_json(exchange, &request);
        api_deinit(&request);
    } else {
        const char *type = NULL;
        struct slice file = explore_page_file(exchange_path(exchange), &type);
        respond(exchange, 200, type, file, NULL);
    }
}

/* The answer comes all the same, and then only frees the exchange. */
static void on_gone(void *context, struct exchange *exchange)
{
    (void)context;
    struct asked *asked = exchange_data(exchange);
    if (asked)
        atomic_store_explicit(&asked->query.is_given_up, true, memory_order_relaxed);
}

static const struct server_handler handler = {
    .on_head = on_head, .on_request = on_request, .on_gone = on_gone};

/* ---- life ---- */

static void explore_deinit(struct component *component)
{
    struct explore *explore = explore_of(component);
    metrics_forget(component->process->metrics, explore);
    probe_server_close(&explore->http);
    if (explore->engine)
        explore_engine_forget(explore->engine, explore);
    explore_engine_unref(explore->engine);
    explore->engine = NULL;
}

/* The setting, but no more than a part of the memory limit: the built-in configuration has explore,
 * wherever it runs. */
static size_t budget_of(const struct explore *explore)
{
    size_t limit = explore->component.process->memory_limit_bytes / MEMORY_PART;
    size_t budget = (size_t)settings_of(explore)->max_memory_mib << 20;
    if (limit > 0 && budget > limit)
        budget = limit > BUDGET_MIN ? limit : BUDGET_MIN;
    return budget;
}

/* After a reload, the store stays as long as its size does. */
static bool open_engine(struct explore *explore, struct error *err)
{
    struct component *component = &explore->component;
    size_t budget = budget_of(explore);
    struct explore_engine *before =
        component->predecessor ? explore_of(component->predecessor)->engine : NULL;
    if (before && explore_engine_budget(before) == budget) {
        explore->engine = explore_engine_ref(before);
        return true;
    }
    explore->engine = explore_engine_new(budget, component->process->join_feed, err);
    if (!explore->engine || before)
        return explore->engine; /* it listens once the one before it does not any more */
    return !component->process->join_feed || explore_engine_listen(explore->engine) ||
           error_set(err, "only one extension explore can run");
}

static bool open_server(struct explore *explore, struct error *err)
{
    struct component *component = &explore->component;
    const struct explore_settings *settings = settings_of(explore);
    struct server_options options = http_server_options(&settings->server, settings->endpoint,
                                                        component->process, component->label);
    if (options.max_connections == 0 || options.max_connections > CONNECTIONS_MAX)
        options.max_connections = CONNECTIONS_MAX;
    probe_server_host(&options, explore->host, sizeof explore->host);
    return probe_server_open(&explore->http, component, &options, &handler, explore, err);
}

static double read_dropped(void *context)
{
    const struct explore *explore = context;
    struct join_feed *feed = explore->component.process->join_feed;
    return feed ? (double)join_feed_stats(feed).dropped : 0;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static bool explore_init(struct component *component, struct error *err)
{
    struct explore *explore = explore_of(component);
    const struct explore_settings *settings = component->settings;
    explore->context = (struct api_context){
        .version = or_empty(component->process->version),
        .links = {or_empty(settings->links.grafana), or_empty(settings->links.tempo),
                  or_empty(settings->links.pyroscope), or_empty(settings->links.datasource),
                  or_empty(settings->links.pyroscope_datasource)},
        .limit_bytes = budget_of(explore),
        .feed = component->process->join_feed,
    };
    metrics_gauge_from(component->process->metrics, "profcol_explore_dropped_requests",
                       "Requests that explore did not see, because its mailbox was full.", "",
                       read_dropped, explore);
    if (open_engine(explore, err) && open_server(explore, err))
        return true;
    explore_deinit(component);
    return false;
}

static void explore_take_over(struct component *component)
{
    struct explore *explore = explore_of(component);
    struct explore *before = explore_of(component->predecessor);
    if (before->engine == explore->engine)
        return;
    explore_engine_stop_listening(before->engine);
    bool listens = explore_engine_listen(explore->engine);
    assert(listens || !component->process->join_feed);
    (void)listens;
}

static bool explore_node_start(struct node *node, struct error *err)
{
    (void)err;
    probe_server_start(&explore_of(node->component)->http, node);
    return true;
}

static void explore_node_stop(struct node *node)
{
    struct explore *explore = explore_of(node->component);
    struct list *list = &explore->asked[node->worker->index];
    for (struct list_link *link; (link = list_pop(list));) {
        struct asked *asked = container_of(link, struct asked, link);
        struct exchange *exchange = asked->exchange;
        asked->explore = NULL;
        exchange_set_data(exchange, NULL);
        atomic_store_explicit(&asked->query.is_given_up, true, memory_order_relaxed);
        refuse(exchange, 503, "stopped", "profcol ends, or is configured anew");
    }
    probe_server_stop(&explore->http, node);
}

const struct component_type explore_extension_type = {
    .config = {.name = "explore",
               .section = CONFIG_EXTENSIONS,
               .stability = {STABILITY_ALPHA},
               .help = "A page for people: slow requests, their flame graphs, what is different "
                       "about them, from what `spanjoin` joined. It keeps this in memory, within "
                       "`max_memory_mib`. docs/explore.md.",
               .fields = explore_fields,
               .config_size = sizeof(struct explore_settings),
               .check = check_settings},
    .component_size = sizeof(struct explore),
    .init = explore_init,
    .deinit = explore_deinit,
    .take_over = explore_take_over,
    .node_start = explore_node_start,
    .node_stop = explore_node_stop,
};

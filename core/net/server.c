#include "core/net/server.h"

#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/net/server_measures.h"
#include "core/net/server_private.h"

#include <assert.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

enum {
    DEFAULT_MAX_CONNECTIONS = 1024,
    DEFAULT_MAX_STREAMS = 100,
    DEFAULT_MAX_BODY_BYTES = 20 * 1024 * 1024,
    DEFAULT_MAX_MESSAGE_BYTES = 4 * 1024 * 1024,
    RETIRED_WAIT_S = 5,
    DESCRIPTORS_KEPT = 64, /* reserved for everything else */
};

/* ---- creating the server ---- */

static void set_buffer_sizes(struct server_options *options)
{
    if (options->read_buffer_bytes == 0 || options->read_buffer_bytes > SERVER_READ_BYTES)
        options->read_buffer_bytes = SERVER_READ_BYTES;
    if (options->read_buffer_bytes < SERVER_READ_LEAST_BYTES)
        options->read_buffer_bytes = SERVER_READ_LEAST_BYTES;
    if (options->write_buffer_bytes == 0)
        options->write_buffer_bytes = SERVER_WRITE_BYTES;
}

void server_options_complete(struct server_options *options)
{
    if (options->max_body_bytes == 0)
        options->max_body_bytes = DEFAULT_MAX_BODY_BYTES;
    if (options->max_message_bytes == 0)
        options->max_message_bytes = DEFAULT_MAX_MESSAGE_BYTES;
    if (options->max_concurrent_streams == 0)
        options->max_concurrent_streams = DEFAULT_MAX_STREAMS;
    set_buffer_sizes(options);
    if (options->compression_mask == 0)
        options->compression_mask = (1u << COMPRESSION_COUNT) - 1;
}

/* Returns the limit below which descriptors may become connections, of all servers together. A new
 * descriptor is always the lowest free one; the rest is for files and outgoing connections. */
static int descriptor_limit(const struct server_options *options)
{
    struct rlimit files;
    if (options->uses_reserve || getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur > INT_MAX)
        return INT_MAX;
    int all = (int)files.rlim_cur;
    return all / 2 > DESCRIPTORS_KEPT ? all - DESCRIPTORS_KEPT : all / 2;
}

static unsigned connection_limit(const struct server_options *options)
{
    unsigned limit = options->max_connections ? options->max_connections : DEFAULT_MAX_CONNECTIONS;
    unsigned usable = (unsigned)descriptor_limit(options);
    return limit < usable ? limit : usable;
}

static bool make_tls(struct server *server, struct error *err)
{
    static const char *const with_h2[] = {"h2", "http/1.1", NULL};
    if (!server->options.tls || !server->options.tls->enabled)
        return true;
    server->tls = tls_context_server(server->options.tls, with_h2, err);
    if (server->tls)
        tls_context_set_label(server->tls, server->label);
    return server->tls != NULL;
}

static void make_metrics(struct server *server)
{
    if (!server->options.metrics)
        return;
    struct text labels = {0};
    metrics_label(&labels, "server", server->label);
    server->open_gauge = metrics_gauge(server->options.metrics, "profcol_server_connections",
                                       "Open connections.", text_string(&labels));
    server->limit_gauge =
        metrics_gauge(server->options.metrics, "profcol_server_connections_limit",
                      "Most connections that may be open at once.", text_string(&labels));
    server->over_budget = metrics_counter(
        server->options.metrics, "profcol_server_requests_over_budget",
        "Requests refused because their client, or all clients together, had used up their memory.",
        text_string(&labels));
    if (server->options.auth.begin)
        server->unauthenticated =
            metrics_counter(server->options.metrics, "profcol_server_unauthenticated_requests",
                            "Requests that the authenticator refused.", text_string(&labels));
    text_deinit(&labels);
}

/* The gauge has the sum of the listeners that are started, as that of open connections. */
static void show_limit(const struct server *server, int64_t sign)
{
    if (server->limit_gauge)
        gauge_add(server->limit_gauge, sign * (int64_t)server->max_connections);
}

void server_set_limits(struct server *server)
{
    bool is_shown = server->parts[0].started;
    if (is_shown)
        show_limit(server, -1);
    server->max_connections = connection_limit(&server->options);
    server->descriptor_limit = descriptor_limit(&server->options);
    if (is_shown)
        show_limit(server, 1);
}

struct server *server_new(const struct server_options *options,
                          const struct server_handler *handler, void *context,
                          struct worker *workers, unsigned worker_count, struct error *err)
{
    assert(handler->on_head && handler->on_request && worker_count > 0);
    struct server *server = memory_zalloc(sizeof *server);
    server->options = *options;
    server_options_complete(&server->options);
    server->label = memory_strdup(options->label ? options->label : "server");
    server->workers = workers;
    server->part_count = worker_count;
    server->parts = memory_zalloc(worker_count * sizeof *server->parts);
    server->listen_fd = server->reserve_fd = -1;
    server->cors = cors_new(options->cors);
    server_set_limits(server);
    if (options->max_connections_per_ip > 0)
        server->peers = peer_counts_new(options->max_connections_per_ip);
    atomic_init(&server->references, 1);
    for (unsigned i = 0; i < worker_count; i++) {
        server->parts[i].server = server;
        server->parts[i].worker = &workers[i];
    }
    server_users_init(server, handler, context);
    /* Without an endpoint there is no listener: tests open connections themselves. */
    if (!make_tls(server, err) || (options->endpoint && !listener_open(server, err))) {
        server_unref(server);
        return NULL;
    }
    make_metrics(server);
    return server;
}

void server_unref(struct server *server)
{
    unsigned references = atomic_fetch_sub_explicit(&server->references, 1, memory_order_acq_rel);
    assert(references > 0);
    if (references > 1)
        return;
    if (server->parts[0].started)
        show_limit(server, -1);
    listener_close(server);
    tls_context_free(server->tls);
    cors_free(server->cors);
    peer_counts_free(server->peers);
    server_users_deinit(server);
    free(server->parts);
    free(server->label);
    free(server);
}

void server_free(struct server *server)
{
    if (server)
        server_unref(server);
}

uint16_t server_port(const struct server *server)
{
    return server->port;
}

/* ---- parts ---- */

static struct server_part *part_of(struct server *server, const struct worker *worker)
{
    assert(worker >= server->workers && worker < server->workers + server->part_count);
    return &server->parts[worker - server->workers];
}

static bool is_first(const struct server_part *part)
{
    return part == part->server->parts;
}

static void on_prepare(uv_prepare_t *prepare)
{
    server_part_round(prepare->data);
}

static void part_start(struct server_part *part)
{
    assert(worker_is_current(part->worker) && !part->read_buffer);
    part->read_buffer = memory_alloc(part->server->options.read_buffer_bytes);
    if (part->server->tls)
        part->plain_buffer = memory_alloc(part->server->options.read_buffer_bytes);
    if (part->worker->manual)
        return;
    uv_prepare_init(&part->worker->loop, &part->prepare);
    part->prepare.data = part;
    uv_prepare_start(&part->prepare, on_prepare);
    uv_unref((uv_handle_t *)&part->prepare);
    part->live++;
}

static void on_start(struct worker *worker, struct post *post)
{
    struct server_part *part = container_of(post, struct server_part, start_post);
    assert(worker == part->worker && part->started);
    if (!part->stopped) {
        part_start(part);
        if (is_first(part) && !part->draining)
            listener_start(part->server);
    }
    part->live--;
    server_part_unlive(part);
}

void server_start(struct server *server)
{
    show_limit(server, 1);
    /* The first worker starts last, because it then sends connections to the others. */
    for (unsigned i = server->part_count; i-- > 0;) {
        struct server_part *part = &server->parts[i];
        atomic_fetch_add_explicit(&server->references, 1, memory_order_relaxed);
        part->started = true;
        part->live++;
        part->start_post.on_post = on_start;
        worker_post(part->worker, &part->start_post);
    }
}

void server_part_unlive(struct server_part *part)
{
    if (part->live > 0 || !part->stopped)
        return;
    assert(part->connections.count == 0 && part->connection_count == 0);
    assert(part->dirty.count == 0 && part->buried.count == 0);
    server_measures_free(part->measures);
    free(part->read_buffer);
    free(part->plain_buffer);
    outgoing_deinit(&part->scratch);
    outgoing_deinit(&part->batch);
    part->read_buffer = part->plain_buffer = NULL;
    server_unref(part->server);
}

static struct connection *connection_of_link(struct list_link *link)
{
    return container_of(link, struct connection, link);
}

static void free_buried(struct server_part *part)
{
    for (struct list_link *link; (link = list_pop(&part->buried));) {
        struct connection *connection = connection_of_link(link);
        assert(connection->phase == CONNECTION_CLOSED);
        free(connection);
        part->live--;
    }
}

void server_part_round(struct server_part *part)
{
    part->handshakes = 0;
    for (struct list_link *link; (link = list_pop(&part->dirty));) {
        struct connection *connection = container_of(link, struct connection, dirty);
        assert(connection->part == part);
        if (connection->phase == CONNECTION_OPEN && !connection->broken)
            connection->protocol->output(connection);
        server_connection_settle(connection);
    }
    server_part_check_drained(part);
    server_users_let_go(part);
    bool has_buried = part->buried.count > 0;
    free_buried(part);
    if (has_buried)
        server_part_unlive(part);
}

const char *server_date(struct server_part *part)
{
    uint64_t now = part->worker->now_ns;
    if (part->date[0] == '\0' || now - part->date_ns >= SECOND_NS) {
        time_t wall = (time_t)(clock_wall_ns() / SECOND_NS);
        struct tm parts;
        strftime(part->date, sizeof part->date, "%a, %d %b %Y %H:%M:%S GMT",
                 gmtime_r(&wall, &parts));
        part->date_ns = now;
    }
    return part->date;
}

/* ---- closing ---- */

void server_part_check_drained(struct server_part *part)
{
    if (!part->draining || part->connection_count > 0 || !part->on_drained)
        return;
    if (is_first(part) && part->server->lingering)
        return;
    void (*on_drained)(void *context) = part->on_drained;
    part->on_drained = NULL;
    on_drained(part->drained_context);
}

static void drain_connection(struct connection *connection)
{
    switch ((enum connection_phase)connection->phase) {
    case CONNECTION_HANDSHAKE:
    case CONNECTION_DETECT:
        if (connection->part->waits_until_ns == 0)
            server_connection_break(connection, CLOSE_SHUTDOWN);
        break;
    case CONNECTION_OPEN:
        connection->protocol->drain(connection);
        break;
    case CONNECTION_CLOSING:
    case CONNECTION_LINGERING:
    case CONNECTION_CLOSED:
        break;
    }
}

static void drain(struct server *server, struct worker *worker, uint64_t waits_until_ns,
                  void (*on_drained)(void *context), void *context)
{
    struct server_part *part = part_of(server, worker);
    assert(worker_is_current(worker));
    assert(!part->stopped && !part->draining);
    part->draining = true;
    part->waits_until_ns = waits_until_ns;
    part->on_drained = on_drained;
    part->drained_context = context;
    if (is_first(part))
        (waits_until_ns > 0 ? listener_retire : listener_stop)(server);
    for (struct list_link *link = part->connections.first; link; link = link->next)
        drain_connection(connection_of_link(link));
    server_part_check_drained(part);
}

void server_drain(struct server *server, struct worker *worker, void (*on_drained)(void *context),
                  void *context)
{
    drain(server, worker, 0, on_drained, context);
}

void server_retire(struct server *server, struct worker *worker, void (*on_drained)(void *context),
                   void *context)
{
    drain(server, worker, worker_now(worker) + RETIRED_WAIT_S * SECOND_NS, on_drained, context);
}

static void on_prepare_closed(uv_handle_t *handle)
{
    struct server_part *part = handle->data;
    assert(part->stopped && part->live > 0);
    part->live--;
    server_part_unlive(part);
}

void server_stop(struct server *server, struct worker *worker)
{
    struct server_part *part = part_of(server, worker);
    assert(worker_is_current(worker));
    assert(!part->stopped);
    if (is_first(part))
        listener_stop(server);
    if (!part->started)
        return;
    part->live++; /* until the end of this function */
    part->stopped = true;
    part->on_drained = NULL;
    server_users_stop(part);
    while (part->connections.first)
        server_connection_close(connection_of_link(part->connections.first), CLOSE_SHUTDOWN);
    free_buried(part);
    if (part->prepare.data)
        uv_close((uv_handle_t *)&part->prepare, on_prepare_closed);
    part->live--;
    server_part_unlive(part);
}

/* ---- metrics ---- */

static const char *const reason_names[CLOSE_REASON_COUNT] = {
    [CLOSE_CLIENT] = "client",
    [CLOSE_RESET] = "reset",
    [CLOSE_DONE] = "done",
    [CLOSE_REFUSED] = "refused",
    [CLOSE_BAD_REQUEST] = "bad_request",
    [CLOSE_PROTOCOL_ERROR] = "protocol_error",
    [CLOSE_FLOOD] = "flood",
    [CLOSE_HEADER_LIST] = "header_list",
    [CLOSE_TLS_FAILED] = "tls_failed",
    [CLOSE_HANDSHAKE_TIMEOUT] = "handshake_timeout",
    [CLOSE_HEAD_TIMEOUT] = "head_timeout",
    [CLOSE_BODY_TIMEOUT] = "body_timeout",
    [CLOSE_WRITE_TIMEOUT] = "write_timeout",
    [CLOSE_IDLE] = "idle",
    [CLOSE_AGE] = "age",
    [CLOSE_KEEPALIVE] = "keepalive",
    [CLOSE_TOO_MANY_PINGS] = "too_many_pings",
    [CLOSE_NO_DESCRIPTOR] = "no_descriptor",
    [CLOSE_PER_IP] = "per_ip",
    [CLOSE_MADE_ROOM] = "made_room",
    [CLOSE_SHUTDOWN] = "shutdown",
};

static struct counter *make_counter(struct server *server, enum close_reason reason)
{
    assert(reason_names[reason]); /* the table has a name for each reason */
    struct text labels = {0};
    metrics_label(&labels, "server", server->label);
    metrics_label(&labels, "reason", reason_names[reason]);
    struct counter *counter =
        metrics_counter(server->options.metrics, "profcol_server_connections_closed",
                        "Connections that were closed, by reason.", text_string(&labels));
    text_deinit(&labels);
    atomic_store_explicit(&server->closed[reason], counter, memory_order_release);
    return counter;
}

void server_count_over_budget(struct server_part *part)
{
    if (part->server->over_budget)
        counter_add(part->server->over_budget, part->worker->index, 1);
}

void server_count_closed(struct server *server, unsigned worker, enum close_reason reason)
{
    if (!server->options.metrics)
        return;
    struct counter *counter = atomic_load_explicit(&server->closed[reason], memory_order_acquire);
    if (!counter)
        counter = make_counter(server, reason);
    counter_add(counter, worker, 1);
}

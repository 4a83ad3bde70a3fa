#include "core/net/client.h"

#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/net/client_measures.h"
#include "core/net/client_private.h"

#include <assert.h>
#include <stdio.h>
#include <sys/un.h>

#define BACKOFF_FIRST_NS UINT64_C(100000000)
#define BACKOFF_LAST_NS UINT64_C(2000000000)
#define SPREAD_AGAIN_NS UINT64_C(5000000000)

enum {
    CONNECTIONS_DEFAULT = 16,
    REFUSED_MAX = 3,
    WRITE_BYTES = 256 * 1024 /* frames are created only while fewer bytes wait for the socket */
};

/* ---- start and end of a client ---- */

void client_ref(struct client *client)
{
    assert(client->references > 0);
    client->references++;
}

void client_unref(struct client *client)
{
    assert(client->references > 0);
    if (--client->references > 0)
        return;
    assert(client->freed && client->connections.count == 0 && client->waiting.count == 0);
    assert(client->open_count == 0 && client->connecting_count == 0);
    free(client->read_buffer);
    free(client->plain_buffer);
    client_measures_free(client->measures);
    arena_deinit(&client->arena);
    free(client);
}

static void copy_options(struct client *client, const struct client_options *options)
{
    struct arena *arena = &client->arena;
    client->options = *options;
    client->options.host = arena_strdup(arena, options->host);
    client->options.label = options->label ? arena_strdup(arena, options->label) : NULL;
    const struct proxy *proxy = &options->proxy;
    if (proxy->host)
        client->options.proxy.host = arena_strdup(arena, proxy->host);
    if (proxy->authorization)
        client->options.proxy.authorization = arena_strdup(arena, proxy->authorization);
    if (options->read_bytes == 0)
        client->options.read_bytes = CLIENT_READ_BYTES;
    if (options->write_bytes == 0)
        client->options.write_bytes = WRITE_BYTES;
    bool v6 = strchr(options->host, ':') != NULL && !options->unix_socket;
    client->address_text = options->unix_socket ? arena_printf(arena, "unix:%s", options->host)
                                                : arena_printf(arena, v6 ? "[%s]:%u" : "%s:%u",
                                                               options->host, options->port);
    const char *authority = options->unix_socket ? "localhost" : client->address_text;
    client->options.authority =
        arena_strdup(arena, options->authority ? options->authority : authority);
    if (options->max_connections == 0)
        client->options.max_connections = CONNECTIONS_DEFAULT;
}

static const char *const *alpn_of(const struct client_options *options)
{
    static const char *const only_h2[] = {"h2", NULL};
    static const char *const only_h1[] = {"http/1.1", NULL};
    static const char *const both[] = {"h2", "http/1.1", NULL};
    if (options->protocol == CLIENT_H2)
        return only_h2;
    return options->allow_h2 ? both : only_h1;
}

static void on_kick(struct timer *timer);
static void on_reconnect(struct timer *timer);
static void on_resolved(struct client_resolver *resolver);

struct client *client_new(struct worker *worker, const struct client_options *options,
                          struct error *err)
{
    if (options->unix_socket &&
        strlen(options->host) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        error_set(err, "%s: the path of the socket is too long", options->host);
        return NULL;
    }
    struct tls_context *tls = NULL;
    if (options->tls) {
        tls = tls_context_client(options->tls, alpn_of(options), err);
        if (!tls)
            return NULL;
    }
    struct client *client = memory_zalloc(sizeof *client);
    client->worker = worker;
    client->references = 1;
    client->tls = tls;
    arena_init(&client->arena, NULL);
    copy_options(client, options);
    if (tls)
        tls_context_set_label(tls, client->options.label);
    client->kick.on_timer = on_kick;
    client->reconnect.on_timer = on_reconnect;
    client->read_buffer = memory_alloc(client->options.read_bytes);
    if (tls)
        client->plain_buffer = memory_alloc(CLIENT_PLAIN_BYTES);
    client->protocol_known = !tls || options->protocol == CLIENT_H2 || !options->allow_h2;
    client->h2_agreed = options->protocol == CLIENT_H2;
    const struct proxy *proxy = &client->options.proxy;
    assert(!proxy->host || !options->unix_socket);
    client->tunnels = proxy->host && (tls || options->protocol == CLIENT_H2);
    client->resolver =
        (struct client_resolver){.worker = worker,
                                 .host = proxy->host ? proxy->host : client->options.host,
                                 .port = proxy->host ? proxy->port : client->options.port,
                                 .is_unix = client->options.unix_socket,
                                 .on_resolved = on_resolved};
    client_resolver_init(&client->resolver);
    return client;
}

void client_free(struct client *client)
{
    if (!client)
        return;
    assert(!client->freed && client->waiting.count == 0);
    assert(worker_is_current(client->worker));
    client->freed = true;
    worker_cancel_timer(client->worker, &client->kick);
    worker_cancel_timer(client->worker, &client->reconnect);
    while (client->connections.first) {
        struct client_connection *connection = client_connection_of_link(client->connections.first);
        assert(connection->exchanges.count == 0);
        client_connection_close(connection, "closed");
    }
    client_resolver_cancel(&client->resolver);
    tls_context_free(client->tls);
    client->tls = NULL;
    client_unref(client);
}

/* ---- receiving the answer ---- */

bool client_exchange_count_header(struct client_exchange *exchange, size_t size)
{
    exchange->header_bytes += size + 32; /* counted as in HTTP/2 */
    return exchange->header_bytes <= CLIENT_HEADERS_MAX;
}

bool client_exchange_add_header(struct client_exchange *exchange, struct slice name,
                                struct slice value)
{
    if (!client_exchange_count_header(exchange, name.size + value.size))
        return false;
    struct http_headers *headers = &exchange->headers;
    if (headers->count == exchange->header_capacity) {
        exchange->header_capacity = exchange->header_capacity ? exchange->header_capacity * 2 : 16;
        headers->items =
            memory_grow(headers->items, exchange->header_capacity, sizeof *headers->items);
    }
    assert(headers->count < exchange->header_capacity);
    struct http_header *header = &headers->items[headers->count++];
    header->name = arena_copy(&exchange->arena, name);
    header->value = arena_copy(&exchange->arena, value);
    return true;
}

void client_exchange_begin_answer(struct client_exchange *exchange, int status)
{
    exchange->status = status;
    exchange->headers.count = 0;
    arena_deinit(&exchange->arena);
    arena_init(&exchange->arena, NULL);
}

bool client_exchange_add_body(struct client_exchange *exchange, struct slice bytes)
{
    const struct client_request *request = exchange->request;
    assert(exchange->body.size <= (request->body_max ? request->body_max : CLIENT_BODY_MAX));
    size_t room = (request->body_max ? request->body_max : CLIENT_BODY_MAX) - exchange->body.size;
    if (bytes.size > room) {
        exchange->body_cut = true;
        bytes.size = room;
    }
    if (!budget_reserve(exchange->budget, bytes.size)) {
        exchange->body_cut = true;
        return false;
    }
    text_append_slice(&exchange->body, bytes);
    return !exchange->body_cut;
}

struct slice client_exchange_authority(const struct client_exchange *exchange)
{
    const struct client_request *request = exchange->request;
    for (size_t i = 0; i < request->header_count; i++)
        if (slice_is(request->headers[i].name, "host"))
            return request->headers[i].value;
    return slice_of_string(exchange->client->options.authority);
}

/* ---- start and end of an exchange ---- */

static void take_off(struct client_exchange *exchange)
{
    struct client_connection *connection = exchange->connection;
    if (!connection) {
        list_remove(&exchange->client->waiting, &exchange->link);
        return;
    }
    list_remove(&connection->exchanges, &exchange->link);
    exchange->connection = NULL;
    if (connection->hang_up) {
        client_connection_close(connection, "hung up");
        return;
    }
    client_output_disown(&connection->output, exchange);
    client_connection_rest(connection);
}

static void free_exchange(struct client_exchange *exchange)
{
    assert(!exchange->connection); /* take_off was called before */
    budget_release(exchange->budget, exchange->body.size);
    arena_deinit(&exchange->arena);
    free(exchange->headers.items);
    text_deinit(&exchange->body);
    free(exchange);
}

void client_exchange_finish(struct client_exchange *exchange, enum client_failure failure,
                            const char *why)
{
    struct client *client = exchange->client;
    struct client_request *request = exchange->request;
    assert(request->exchange == exchange && (failure == CLIENT_OK || why));
    client_ref(client);
    take_off(exchange);
    worker_cancel_timer(client->worker, &request->timer);
    request->exchange = NULL;
    struct client_answer answer = {
        .failure = failure,
        .failure_text = why,
        .status = failure == CLIENT_OK ? exchange->status : 0,
        .headers = exchange->headers,
        .body = slice_of(exchange->body.data, exchange->body.size),
        .body_cut = exchange->body_cut,
    };
    client_measure(exchange, &answer);
    request->on_done(request, &answer);
    free_exchange(exchange);
    if (!client->freed)
        client_kick(client);
    client_unref(client);
}

static void forget_answer(struct client_exchange *exchange)
{
    client_exchange_begin_answer(exchange, 0);
    exchange->header_bytes = 0;
    exchange->body_cut = false;
    budget_release(exchange->budget, exchange->body.size);
    text_clear(&exchange->body);
    exchange->stream_id = 0;
    exchange->body_slice = exchange->body_offset = 0;
    exchange->body_left = exchange->request->body_size;
}

void client_exchange_give_back(struct client_exchange *exchange, const char *why)
{
    assert(exchange->connection);
    struct client *client = exchange->client;
    if (exchange->refused++ >= REFUSED_MAX) {
        client_exchange_finish(exchange, CLIENT_BROKEN, why);
        return;
    }
    take_off(exchange);
    forget_answer(exchange);
    list_prepend(&client->waiting, &exchange->link);
    client_kick(client);
}

static const char *describe_timeout(const struct client_exchange *exchange, char *out, size_t size)
{
    const struct client *client = exchange->client;
    double seconds = (double)exchange->request->timeout_ns / 1e9;
    if (!exchange->connection && client->open_count == 0)
        snprintf(out, size, "connect to %s: no success within %gs%s%s", client->address_text,
                 seconds, client->connect_error[0] ? "; last error: " : "", client->connect_error);
    else
        snprintf(out, size, "no answer from %s within %gs", client->address_text, seconds);
    return out;
}

static void on_request_timeout(struct timer *timer)
{
    struct client_request *request = container_of(timer, struct client_request, timer);
    struct client_exchange *exchange = request->exchange;
    assert(exchange->request == request);
    struct client_connection *connection = exchange->connection;
    char why[512];
    describe_timeout(exchange, why, sizeof why);
    if (connection) {
        /* Nothing was received since it was sent: the peer may be gone, so further requests use
         * other connections. */
        if (connection->read_ns < exchange->sent_ns)
            connection->retiring = true;
        connection->codec->cancel(connection, exchange);
    }
    client_exchange_finish(exchange, CLIENT_TIMEOUT, why);
}

void client_send(struct client *client, struct client_request *request)
{
    assert(!client->freed && request->on_done);
    assert(worker_is_current(client->worker));
    struct client_exchange *exchange = memory_zalloc(sizeof *exchange);
    exchange->client = client;
    exchange->request = request;
    exchange->body_left = request->body_size;
    exchange->budget = request->budget;
    arena_init(&exchange->arena, NULL);
    request->exchange = exchange;
    request->timer = (struct timer){.on_timer = on_request_timeout};
    exchange->begun_ns = worker_now(client->worker);
    if (request->timeout_ns > 0)
        worker_set_timer(client->worker, &request->timer, (uint64_t)request->timeout_ns);
    list_append(&client->waiting, &exchange->link);
    client_kick(client);
}

void client_cancel(struct client_request *request)
{
    struct client_exchange *exchange = request->exchange;
    assert(exchange);
    struct client *client = exchange->client;
    assert(worker_is_current(client->worker) && exchange->request == request);
    struct client_connection *connection = exchange->connection;
    if (connection)
        connection->codec->cancel(connection, exchange);
    take_off(exchange);
    worker_cancel_timer(client->worker, &request->timer);
    request->exchange = NULL;
    free_exchange(exchange);
    client_kick(client);
}

/* ---- assigning exchanges to connections ---- */

void client_kick(struct client *client)
{
    if (!client->freed && !timer_is_set(&client->kick))
        worker_set_timer(client->worker, &client->kick, 0);
}

static struct client_connection *find_room(struct client *client)
{
    for (struct list_link *link = client->connections.first; link; link = link->next) {
        struct client_connection *c = client_connection_of_link(link);
        if (c->state == CLIENT_CONNECTION_OPEN && !c->retiring && c->codec->room(c) > 0)
            return c;
    }
    return NULL;
}

/* The next request goes to another connection. */
static void take_turns(struct client *client, struct client_connection *connection)
{
    if (client->options.balance != CLIENT_BALANCE_ROUND_ROBIN || client->connections.count == 1 ||
        connection->state == CLIENT_CONNECTION_CLOSED)
        return;
    list_remove(&client->connections, &connection->link);
    list_append(&client->connections, &connection->link);
}

/* Returns whether it sent any. */
static bool hand_out(struct client *client)
{
    bool has_sent = false;
    while (client->waiting.first) {
        struct client_connection *connection = find_room(client);
        if (!connection)
            break;
        struct client_exchange *exchange = client_exchange_of_link(list_pop(&client->waiting));
        exchange->doomed = false;
        take_turns(client, connection);
        client_connection_send(connection, exchange);
        has_sent = true;
    }
    return has_sent;
}

static size_t retiring_count(const struct client *client)
{
    size_t count = 0;
    for (struct list_link *link = client->connections.first; link; link = link->next)
        count += client_connection_of_link(link)->retiring;
    return count;
}

/* Returns the number of addresses that requests are spread over: those of the first one's
 * family. */
static size_t alike_count(const struct client_resolver *resolver)
{
    size_t alike = resolver->count > 0;
    while (alike < resolver->count &&
           resolver->addresses[alike].storage.ss_family == resolver->addresses[0].storage.ss_family)
        alike++;
    return alike;
}

static size_t connection_limit(const struct client *client)
{
    if (client->protocol_known && !client->h2_agreed)
        return client->options.max_connections;
    size_t alike = alike_count(&client->resolver);
    return client->options.balance == CLIENT_BALANCE_ROUND_ROBIN && alike > 1 ? alike : 1;
}

static bool wants_connection(const struct client *client)
{
    if (client->waiting.count <= client->connecting_count)
        return false;
    return client->connections.count < connection_limit(client) + retiring_count(client);
}

static bool is_same_address(const struct client_address *one, const struct client_address *other)
{
    return one->size == other->size && memcmp(&one->storage, &other->storage, one->size) == 0;
}

static size_t connections_to(const struct client *client, const struct client_address *address)
{
    size_t count = 0;
    for (struct list_link *link = client->connections.first; link; link = link->next) {
        const struct client_connection *connection = client_connection_of_link(link);
        count += !connection->retiring && is_same_address(&connection->peer, address);
    }
    return count;
}

/* Returns the first address to try: one with the fewest connections. Among equals, each worker and
 * each connection begins with another one. */
static size_t pick_address(const struct client *client)
{
    const struct client_resolver *resolver = &client->resolver;
    size_t alike = alike_count(resolver);
    assert(alike > 0);
    if (alike == 1 || client->options.balance == CLIENT_BALANCE_PICK_FIRST)
        return 0;
    size_t best = 0, fewest = SIZE_MAX, begin = (size_t)(random_u64() % alike);
    for (size_t i = 0; i < alike; i++) {
        size_t address = (begin + i) % alike;
        size_t count = connections_to(client, &resolver->addresses[address]);
        if (count < fewest) {
            fewest = count;
            best = address;
        }
    }
    return best;
}

static bool has_addresses(struct client *client)
{
    enum client_resolution resolution = client_resolve(&client->resolver);
    if (resolution == RESOLUTION_BEGUN)
        client_ref(client); /* until on_resolved */
    else if (resolution == RESOLUTION_FAILED)
        client_connect_failed(client, client->resolver.error);
    return resolution == RESOLUTION_READY;
}

static void connect_more(struct client *client)
{
    while (wants_connection(client)) {
        uint64_t now = client->worker->now_ns;
        if (now < client->connect_after_ns) {
            worker_set_timer(client->worker, &client->reconnect, client->connect_after_ns - now);
            return;
        }
        if (!has_addresses(client))
            return;
        client_connection_start(client, pick_address(client), client->resolver.count, false);
    }
}

/* Opens a connection to an address that has none, although no request waits. */
static void spread(struct client *client)
{
    const struct client_resolver *resolver = &client->resolver;
    if (client->options.balance != CLIENT_BALANCE_ROUND_ROBIN || client->connecting_count > 0 ||
        client->connections.count >= connection_limit(client) + retiring_count(client) ||
        client->worker->now_ns < client->spread_after_ns || !has_addresses(client))
        return;
    size_t address = pick_address(client);
    if (connections_to(client, &resolver->addresses[address]) == 0)
        client_connection_start(client, address, 1, true);
}

static void close_idle(struct client *client)
{
    size_t idle = 0;
    if (client->options.max_idle == 0 || client->h2_agreed ||
        client->open_count <= client->options.max_idle)
        return;
    for (struct list_link *link = client->connections.first, *next; link; link = next) {
        struct client_connection *connection = client_connection_of_link(link);
        next = link->next;
        if (connection->state == CLIENT_CONNECTION_OPEN && connection->exchanges.count == 0 &&
            ++idle > client->options.max_idle)
            client_connection_close(connection, "idle");
    }
}

static void on_reconnect(struct timer *timer)
{
    client_kick(container_of(timer, struct client, reconnect));
}

static void fail_doomed(struct client *client)
{
    while (client->waiting.first && client_exchange_of_link(client->waiting.first)->doomed)
        client_exchange_finish(client_exchange_of_link(client->waiting.first),
                               CLIENT_CONNECT_FAILED, client->connect_error);
}

static void flush_all(struct client *client)
{
    for (struct list_link *link = client->connections.first, *next; link; link = next) {
        next = link->next;
        client_connection_flush(client_connection_of_link(link));
    }
}

static void on_kick(struct timer *timer)
{
    struct client *client = container_of(timer, struct client, kick);
    client_ref(client);
    fail_doomed(client);
    if (!client->freed) {
        bool has_sent = hand_out(client);
        connect_more(client);
        if (has_sent)
            spread(client);
        flush_all(client);
        close_idle(client);
    }
    client_unref(client);
}

/* Connections to addresses that the name no longer has carry no further requests. */
static void leave_old_addresses(struct client *client)
{
    const struct client_resolver *resolver = &client->resolver;
    if (client->options.balance != CLIENT_BALANCE_ROUND_ROBIN ||
        resolver->count == RESOLVER_ADDRESSES_MAX) /* there may be more */
        return;
    for (struct list_link *link = client->connections.first; link; link = link->next) {
        struct client_connection *connection = client_connection_of_link(link);
        size_t i = 0;
        while (i < resolver->count && !is_same_address(&connection->peer, &resolver->addresses[i]))
            i++;
        if (i == resolver->count && connection->state == CLIENT_CONNECTION_OPEN)
            connection->retiring = true;
    }
}

static void on_resolved(struct client_resolver *resolver)
{
    struct client *client = container_of(resolver, struct client, resolver);
    if (client->freed) {
        ; /* no request waits any more */
    } else if (resolver->count > 0) {
        leave_old_addresses(client);
        client_kick(client); /* addresses from an earlier look-up may still be valid */
    } else {
        client_connect_failed(client, resolver->error);
    }
    client_unref(client);
}

void client_connection_used(struct client *client)
{
    client->connect_failures = 0;
    client->connect_after_ns = 0;
    client->connect_error[0] = '\0';
}

void client_spread_failed(struct client *client)
{
    if (client->freed)
        return;
    client->spread_after_ns = worker_now(client->worker) + SPREAD_AGAIN_NS;
    client_resolver_doubt(&client->resolver);
    client_kick(client); /* a request may wait by now */
}

void client_connect_failed(struct client *client, const char *why)
{
    if (client->freed)
        return;
    snprintf(client->connect_error, sizeof client->connect_error, "%s", why);
    uint64_t wait = BACKOFF_FIRST_NS
                    << (client->connect_failures < 10 ? client->connect_failures : 10);
    if (wait > BACKOFF_LAST_NS)
        wait = BACKOFF_LAST_NS;
    client->connect_failures++;
    client->connect_after_ns = worker_now(client->worker) + wait;
    client_resolver_doubt(&client->resolver);
    /* Requests continue to wait only if another connection can carry them. */
    if (client->open_count == 0 && client->connecting_count == 0 && !client->options.wait_for_ready)
        for (struct list_link *link = client->waiting.first; link; link = link->next)
            client_exchange_of_link(link)->doomed = true;
    client_kick(client);
}

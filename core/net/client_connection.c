#include "core/base/memory.h"
#include "core/net/client_private.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <unistd.h>

#define CONNECT_TIMEOUT_NS UINT64_C(10000000000)
#define CONNECT_NEXT_NS UINT64_C(1000000000) /* if there is another address to try */
#define PING_TIMEOUT_NS INT64_C(20000000000)

enum { TLS_AHEAD_BYTES = 64 * 1024, TLS_RECORD_BYTES = 16 * 1024, READS_PER_TURN = 8 };

static void try_address(struct client_connection *connection);
static void connect_failed(struct client_connection *connection, const char *why);
static enum output_result write_some(struct client_connection *connection);

static void set_why(struct client_connection *connection, const char *text)
{
    if (connection->why[0] == '\0')
        snprintf(connection->why, sizeof connection->why, "%.200s", text);
}

/* ---- start and end ---- */

static void free_connection(struct client_connection *connection)
{
    assert(connection->state == CLIENT_CONNECTION_CLOSED && connection->exchanges.count == 0);
    struct client *client = connection->client;
    if (connection->session)
        connection->codec->free(connection);
    tls_stream_free(connection->tls);
    client_tunnel_deinit(&connection->tunnel);
    client_output_deinit(&connection->output);
    free(connection);
    client_unref(client);
}

static void on_poll_closed(uv_handle_t *handle)
{
    if (handle->data)
        free_connection(handle->data);
    free(handle);
}

static void close_socket(struct client_connection *connection)
{
    if (connection->socket >= 0)
        close(connection->socket);
    connection->socket = -1;
}

static void count_state(struct client_connection *connection, size_t by)
{
    if (connection->state == CLIENT_CONNECTION_OPEN)
        connection->client->open_count += by;
    else if (connection->state != CLIENT_CONNECTION_CLOSED)
        connection->client->connecting_count += by;
}

static void set_state(struct client_connection *connection, enum client_connection_state state)
{
    assert(connection->state != CLIENT_CONNECTION_CLOSED);
    count_state(connection, (size_t)-1);
    connection->state = state;
    count_state(connection, 1);
    assert(connection->client->open_count + connection->client->connecting_count <=
           connection->client->connections.count);
}

static void detach(struct client_connection *connection)
{
    struct client *client = connection->client;
    set_state(connection, CLIENT_CONNECTION_CLOSED);
    list_remove(&connection->client->connections, &connection->link);
    worker_cancel_timer(client->worker, &connection->deadline);
    worker_cancel_timer(client->worker, &connection->keepalive);
}

/* Removes the poll handle from the loop, which frees it later. */
static void leave_loop(struct client_connection *connection)
{
    assert(connection->state == CLIENT_CONNECTION_CLOSED);
    uv_close((uv_handle_t *)connection->poll, on_poll_closed);
    close_socket(connection);
}

void client_connection_close(struct client_connection *connection, const char *why)
{
    if (connection->state == CLIENT_CONNECTION_CLOSED)
        return;
    set_why(connection, why);
    if (connection->state != CLIENT_CONNECTION_OPEN) {
        connect_failed(connection, connection->why);
        return;
    }
    struct client *client = connection->client;
    char text[400];
    bool is_extra = connection->is_extra;
    snprintf(text, sizeof text, "%s: %s", client->address_text, connection->why);
    client_ref(client);
    detach(connection);
    leave_loop(connection);
    while (connection->exchanges.first)
        client_exchange_finish(client_exchange_of_link(connection->exchanges.first), CLIENT_BROKEN,
                               text);
    assert(connection->exchanges.count == 0);
    /* Treated like a refused connection: otherwise a peer that closes at once would be connected to
     * again at once. */
    if (!connection->used && client->waiting.count > 0)
        client_connect_failed(client, text);
    else if (!connection->used && is_extra)
        client_spread_failed(client);
    client_kick(client);
    client_unref(client);
}

/* ---- reading ---- */

static void choose_codec(struct client_connection *connection)
{
    assert(!connection->codec && connection->state < CLIENT_CONNECTION_OPEN);
    struct client *client = connection->client;
    bool h2 = client->options.protocol == CLIENT_H2;
    if (connection->tls) {
        bool agreed = slice_is(tls_stream_alpn(connection->tls), "h2");
        if (h2 && !agreed) {
            client_connection_close(connection,
                                    "the server does not offer HTTP/2 (ALPN h2) over TLS");
            return;
        }
        h2 = agreed;
    }
    client->protocol_known = true;
    client->h2_agreed = h2;
    connection->codec = h2 ? &client_h2 : &client_h1;
    worker_cancel_timer(client->worker, &connection->deadline);
    set_state(connection, CLIENT_CONNECTION_OPEN);
    connection->read_ns = client->worker->now_ns;
    connection->codec->start(connection);
    client_connection_rest(connection);
    client_kick(client);
}

static void feed_codec(struct client_connection *connection, struct slice bytes)
{
    assert(connection->state == CLIENT_CONNECTION_OPEN);
    connection->read_ns = connection->client->worker->now_ns;
    if (!connection->codec->feed(connection, bytes))
        client_connection_close(connection, "the peer violated the protocol");
}

static void fail_tls(struct client_connection *connection)
{
    char why[300];
    snprintf(why, sizeof why, "TLS: %s", tls_stream_error(connection->tls));
    set_why(connection, why);
    write_some(connection); /* sends the alert */
    client_connection_close(connection, why);
}

static void end_of_input(struct client_connection *connection)
{
    if (connection->state == CLIENT_CONNECTION_OPEN)
        connection->codec->end(connection);
    client_connection_close(connection, connection->state == CLIENT_CONNECTION_HANDSHAKING
                                            ? "closed during the TLS handshake"
                                        : connection->state == CLIENT_CONNECTION_TUNNELLING
                                            ? "the proxy closed the connection"
                                            : "the connection was closed");
}

static void feed_tls(struct client_connection *connection, struct slice bytes)
{
    struct client *client = connection->client;
    tls_stream_feed(connection->tls, bytes);
    while (connection->state != CLIENT_CONNECTION_CLOSED) {
        size_t size = 0;
        enum tls_status status =
            tls_stream_read(connection->tls, client->plain_buffer, CLIENT_PLAIN_BYTES, &size);
        if (connection->state == CLIENT_CONNECTION_HANDSHAKING && status != TLS_STATUS_FAILED &&
            tls_stream_ready(connection->tls))
            choose_codec(connection);
        if (connection->state == CLIENT_CONNECTION_CLOSED)
            return;
        if (status == TLS_STATUS_OK)
            feed_codec(connection, slice_of(client->plain_buffer, size));
        else if (status == TLS_STATUS_FAILED)
            fail_tls(connection);
        else if (status == TLS_STATUS_CLOSED)
            end_of_input(connection);
        else
            return;
    }
}

static void begin_protocol(struct client_connection *connection);

/* Passes bytes to the endpoint's protocol: TLS or the codec. */
static void feed_endpoint(struct client_connection *connection, struct slice bytes)
{
    if (connection->tls)
        feed_tls(connection, bytes);
    else
        feed_codec(connection, bytes);
}

static void feed_tunnel(struct client_connection *connection, struct slice bytes)
{
    struct slice rest = SLICE("");
    char why[200];
    switch (client_tunnel_feed(&connection->tunnel, bytes, &rest, why, sizeof why)) {
    case TUNNEL_UNFINISHED:
        return;
    case TUNNEL_REFUSED:
        client_connection_close(connection, why);
        return;
    case TUNNEL_OPEN:
        break;
    }
    client_tunnel_deinit(&connection->tunnel);
    if (connection->output.bytes > 0) {
        client_connection_close(connection, "the proxy answered CONNECT before it had read it");
        return;
    }
    begin_protocol(connection);
    if (rest.size > 0 && connection->state != CLIENT_CONNECTION_CLOSED)
        feed_endpoint(connection, rest);
}

static void read_socket(struct client_connection *connection)
{
    const struct client *client = connection->client;
    size_t room = client->options.read_bytes;
    for (int i = 0; i < READS_PER_TURN && connection->state != CLIENT_CONNECTION_CLOSED; i++) {
        ssize_t size = recv(connection->socket, client->read_buffer, room, 0);
        if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return;
        if (size < 0)
            client_connection_close(connection, uv_strerror(-errno));
        else if (size == 0)
            end_of_input(connection);
        else if (connection->state == CLIENT_CONNECTION_TUNNELLING)
            feed_tunnel(connection, slice_of(client->read_buffer, (size_t)size));
        else
            feed_endpoint(connection, slice_of(client->read_buffer, (size_t)size));
        if (size < (ssize_t)room)
            return;
    }
}

/* ---- writing ---- */

static enum output_result write_tls(struct client_connection *connection)
{
    struct client_output *output = &connection->output;
    for (;;) {
        while (connection->state == CLIENT_CONNECTION_OPEN && output->bytes > 0 &&
               tls_stream_output(connection->tls).size < TLS_AHEAD_BYTES) {
            struct slice plain = client_output_first(output);
            if (plain.size > TLS_RECORD_BYTES)
                plain.size = TLS_RECORD_BYTES;
            if (!tls_stream_write(connection->tls, plain)) {
                set_why(connection, tls_stream_error(connection->tls));
                return OUTPUT_FAILED;
            }
            client_output_drop(output, plain.size);
        }
        struct slice cipher = tls_stream_output(connection->tls);
        if (cipher.size == 0)
            return OUTPUT_DONE;
        ssize_t written =
            send(connection->socket, cipher.data, cipher.size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (written >= 0)
            tls_stream_sent(connection->tls, (size_t)written);
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return OUTPUT_BLOCKED;
        else if (errno != EINTR)
            return OUTPUT_FAILED;
    }
}

static enum output_result write_some(struct client_connection *connection)
{
    return connection->tls ? write_tls(connection)
                           : client_output_write(&connection->output, connection->socket);
}

static void on_poll(uv_poll_t *poll, int status, int events);

/* Sets the events to poll for. Only changes are passed to the loop, because each costs two system
 * calls. */
static void watch(struct client_connection *connection, int events)
{
    if (connection->watched == events)
        return;
    connection->watched = events;
    uv_poll_start(connection->poll, events, on_poll);
}

void client_connection_flush(struct client_connection *connection)
{
    if (connection->state == CLIENT_CONNECTION_CONNECTING ||
        connection->state == CLIENT_CONNECTION_CLOSED)
        return;
    enum output_result result = OUTPUT_DONE;
    do {
        if (connection->state == CLIENT_CONNECTION_OPEN && !connection->codec->fill(connection)) {
            client_connection_close(connection, "the peer violated the protocol");
            return;
        }
        bool empty = connection->output.bytes == 0;
        result = write_some(connection);
        if (empty)
            break;
    } while (result == OUTPUT_DONE);
    if (result != OUTPUT_FAILED) {
        watch(connection, UV_READABLE | (result == OUTPUT_BLOCKED ? UV_WRITABLE : 0));
        if (connection->retiring && connection->exchanges.count == 0 && result == OUTPUT_DONE)
            client_connection_close(connection, "no longer used");
        return;
    }
    /* The peer may have answered before it closed, so its answer is read first. */
    int error = errno;
    read_socket(connection);
    client_connection_close(connection, uv_strerror(-error));
}

void client_connection_send(struct client_connection *connection, struct client_exchange *exchange)
{
    assert(connection->state == CLIENT_CONNECTION_OPEN && !exchange->connection);
    worker_cancel_timer(connection->client->worker, &connection->deadline);
    if (!connection->used)
        client_connection_used(connection->client);
    connection->used = true;
    exchange->connection = connection;
    exchange->sent_ns = connection->client->worker->now_ns;
    list_append(&connection->exchanges, &exchange->link);
    connection->codec->send(connection, exchange);
}

/* ---- idle connections ---- */

static void on_deadline(struct timer *timer)
{
    struct client_connection *connection = container_of(timer, struct client_connection, deadline);
    if (connection->state == CLIENT_CONNECTION_OPEN)
        client_connection_close(connection, "idle");
    else if (connection->state == CLIENT_CONNECTION_CONNECTING && connection->addresses_left > 0)
        try_address(connection);
    else
        client_connection_close(connection, connection->state == CLIENT_CONNECTION_TUNNELLING
                                                ? "the proxy does not answer CONNECT"
                                                : "timed out");
}

static void on_keepalive(struct timer *timer)
{
    struct client_connection *connection = container_of(timer, struct client_connection, keepalive);
    struct client *client = connection->client;
    const struct client_options *options = &client->options;
    uint64_t now = client->worker->now_ns;
    uint64_t time = (uint64_t)options->keepalive_time_ns;
    uint64_t patience = (uint64_t)(options->keepalive_timeout_ns > 0 ? options->keepalive_timeout_ns
                                                                     : PING_TIMEOUT_NS);
    uint64_t silence = now - connection->read_ns;
    if (connection->ping_ns > connection->read_ns && now - connection->ping_ns >= patience) {
        client_connection_close(connection, "no answer to a keepalive ping");
        return;
    }
    uint64_t wait = silence < time ? time - silence : time;
    if (silence >= time && (connection->exchanges.count > 0 || options->keepalive_without_stream)) {
        connection->codec->ping(connection);
        connection->ping_ns = now;
        wait = patience;
        client_kick(client);
    }
    worker_set_timer(client->worker, &connection->keepalive, wait);
}

void client_connection_rest(struct client_connection *connection)
{
    struct client *client = connection->client;
    const struct client_options *options = &client->options;
    if (connection->state != CLIENT_CONNECTION_OPEN)
        return;
    if (connection->exchanges.count == 0 && options->idle_timeout_ns > 0)
        worker_set_timer(client->worker, &connection->deadline, (uint64_t)options->idle_timeout_ns);
    if (options->keepalive_time_ns > 0 && connection->codec->ping &&
        !timer_is_set(&connection->keepalive))
        worker_set_timer(client->worker, &connection->keepalive,
                         (uint64_t)options->keepalive_time_ns);
    if (connection->retiring)
        client_kick(client);
}

/* ---- connecting ---- */

static void connect_failed(struct client_connection *connection, const char *why)
{
    struct client *client = connection->client;
    char place[160],
        text[sizeof client->connect_error]; /* a path of a socket has up to 108 bytes */
    bool is_extra = connection->is_extra;
    client_address_print(&connection->peer, place, sizeof place);
    snprintf(text, sizeof text, "connect to %s%.130s: %.200s",
             client->options.proxy.host ? "the proxy " : "", place, why);
    client_ref(client);
    detach(connection);
    if (connection->poll)
        leave_loop(connection);
    else
        free_connection(connection); /* it never had a socket */
    if (is_extra)
        client_spread_failed(client);
    else
        client_connect_failed(client, text);
    client_unref(client);
}

static void shake_hands(struct client_connection *connection)
{
    struct client *client = connection->client;
    struct error err;
    set_state(connection, CLIENT_CONNECTION_HANDSHAKING);
    worker_set_timer(client->worker, &connection->deadline, CONNECT_TIMEOUT_NS);
    const char *name = client->options.unix_socket ? "localhost" : client->options.host;
    connection->tls = tls_stream_new(client->tls, name, &err);
    if (!connection->tls) {
        client_connection_close(connection, err.text);
        return;
    }
    client_connection_flush(connection);
}

/* Begins to speak with the endpoint. */
static void begin_protocol(struct client_connection *connection)
{
    if (connection->client->tls)
        shake_hands(connection);
    else
        choose_codec(connection);
}

static void ask_for_tunnel(struct client_connection *connection)
{
    struct client *client = connection->client;
    struct text request = {0};
    client_tunnel_print(&request, client->address_text, client->options.proxy.authorization);
    client_output_copy(&connection->output, slice_of(request.data, request.size));
    text_deinit(&request);
    set_state(connection, CLIENT_CONNECTION_TUNNELLING);
    worker_set_timer(client->worker, &connection->deadline, CONNECT_TIMEOUT_NS);
}

static int socket_error(const struct client_connection *connection)
{
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(connection->socket, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

static void finish_connect(struct client_connection *connection)
{
    int error = socket_error(connection);
    if (error != 0) {
        if (connection->addresses_left > 0)
            try_address(connection);
        else
            client_connection_close(connection, uv_strerror(-error));
        return;
    }
    if (connection->client->tunnels)
        ask_for_tunnel(connection);
    else
        begin_protocol(connection);
    client_connection_flush(connection);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct client_connection *connection = poll->data;
    struct client *client = connection->client;
    worker_now(client->worker);
    client_ref(client);
    if (connection->state == CLIENT_CONNECTION_CONNECTING) {
        finish_connect(connection);
    } else {
        if (status < 0 || (events & UV_READABLE))
            read_socket(connection);
        if (status < 0 && connection->state != CLIENT_CONNECTION_CLOSED)
            client_connection_close(connection, uv_strerror(-socket_error(connection)));
        else if (connection->state != CLIENT_CONNECTION_CLOSED)
            client_connection_flush(connection);
    }
    client_unref(client);
}

static int open_socket(const struct client_address *address)
{
    int family = address->storage.ss_family;
    int s = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    if (s >= 0 && family != AF_UNIX) {
        setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    return s;
}

/* Begins to connect. Returns the socket, or -1 with errno set. */
static int begin_connect(const struct client_address *address)
{
    int s = open_socket(address);
    if (s < 0)
        return -1;
    if (connect(s, (const struct sockaddr *)&address->storage, address->size) == 0 ||
        errno == EINPROGRESS)
        return s;
    int error = errno;
    close(s);
    errno = error;
    return -1;
}

/* Creates a handle for a socket: libuv's handles cannot change their descriptor. */
static void watch_socket(struct client_connection *connection, int s)
{
    assert(s >= 0);
    if (connection->poll) {
        connection->poll->data = NULL;
        uv_close((uv_handle_t *)connection->poll, on_poll_closed);
        close_socket(connection);
    }
    connection->socket = s;
    connection->poll = memory_zalloc(sizeof *connection->poll);
    int rc = uv_poll_init_socket(&connection->client->worker->loop, connection->poll, s);
    assert(rc == 0);
    connection->poll->data = connection;
    connection->watched = 0;
    watch(connection, UV_WRITABLE);
}

/* Tries addresses until one does not fail at once. */
static void try_address(struct client_connection *connection)
{
    struct client *client = connection->client;
    const struct client_resolver *resolver = &client->resolver;
    while (connection->addresses_left > 0 && resolver->count > 0) {
        connection->addresses_left--;
        connection->address = (connection->address + 1) % resolver->count;
        connection->peer = resolver->addresses[connection->address];
        int s = begin_connect(&connection->peer);
        if (s < 0)
            continue;
        watch_socket(connection, s);
        worker_set_timer(client->worker, &connection->deadline,
                         connection->addresses_left > 0 ? CONNECT_NEXT_NS : CONNECT_TIMEOUT_NS);
        return;
    }
    client_connection_close(connection, uv_strerror(-errno));
}

static struct client_connection *new_connection(struct client *client)
{
    struct client_connection *connection = memory_zalloc(sizeof *connection);
    client_ref(client);
    connection->client = client;
    connection->socket = -1;
    connection->deadline.on_timer = on_deadline;
    connection->keepalive.on_timer = on_keepalive;
    list_prepend(&client->connections, &connection->link);
    count_state(connection, 1);
    return connection;
}

void client_connection_start(struct client *client, size_t address, size_t addresses, bool is_extra)
{
    size_t count = client->resolver.count;
    assert(address < count && addresses <= count);
    struct client_connection *connection = new_connection(client);
    connection->is_extra = is_extra;
    connection->address = address + count - 1;
    connection->addresses_left = addresses;
    try_address(connection);
}

void client_connection_adopt(struct client *client, int socket)
{
    watch_socket(new_connection(client), socket);
}

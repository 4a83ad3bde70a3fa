/*
 * Receives and sends the bytes of a connection, over a socket or TLS; applies time limits, and
 * closes connections.
 */
#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/base/source_accounts.h"
#include "core/net/peer_key.h"
#include "core/net/server_private.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READS_PER_EVENT = 4, /* then other connections are served */
    HANDSHAKES_PER_TURN =
        4, /* turns of the loop; an RSA signature takes 1 ms, with 4,096 bits 5 ms */
    READ_BEHIND_BYTES = 4 * 1024,
    HANDSHAKE_S = 10,
    WRITE_STALL_S = 30,
    LINGER_S = 2,
    LINGER_MAX_BYTES = 1024 * 1024,
    OUT_KEPT_BYTES = 4 * 1024, /* the most that an idle connection keeps */
};

void outgoing_add(struct outgoing *out, const void *data, size_t size)
{
    if (size == 0)
        return;
    memcpy(outgoing_room(out, size), data, size);
    out->size += size;
}

uint8_t *outgoing_room(struct outgoing *out, size_t size)
{
    assert(out->sent <= out->size && out->size <= out->capacity);
    if (out->capacity - out->size < size) {
        size_t capacity = out->capacity * 2 + size;
        out->data = memory_realloc(out->data, capacity);
        out->capacity = capacity;
    }
    return out->data + out->size;
}

void outgoing_deinit(struct outgoing *out)
{
    free(out->data);
    *out = (struct outgoing){0};
}

static void outgoing_sent(struct outgoing *out, size_t size)
{
    assert(size > 0 && size <= out->size - out->sent);
    out->sent += size;
    if (out->sent < out->size)
        return;
    out->sent = out->size = 0;
    if (out->capacity > OUT_KEPT_BYTES)
        outgoing_deinit(out);
}

/* ---- sending ---- */

bool server_connection_has_unsent(const struct connection *connection)
{
    if (connection->tls)
        return tls_stream_output(connection->tls).size > 0;
    return connection->out.sent < connection->out.size;
}

/* Writes to the socket, and returns the number of bytes accepted. Marks the connection as broken on
 * an error. */
static size_t write_socket(struct connection *connection, struct slice data)
{
    if (connection->broken)
        return 0;
    ssize_t n;
    if (connection->sink)
        n = connection->sink(connection->sink_context, data);
    else
        do
            n = send(connection->fd, data.data, data.size, MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
    if (n > 0) {
        connection->stalled_ns = 0;
        return (size_t)n;
    }
    if (n < 0 && (connection->sink || (errno != EAGAIN && errno != EWOULDBLOCK)))
        server_connection_break(connection, CLOSE_RESET);
    return 0;
}

static void flush_tls(struct connection *connection)
{
    for (;;) {
        struct slice output = tls_stream_output(connection->tls);
        if (output.size == 0)
            return;
        size_t sent = write_socket(connection, output);
        if (sent == 0)
            return;
        tls_stream_sent(connection->tls, sent);
    }
}

static void flush_plain(struct connection *connection)
{
    struct outgoing *out = &connection->out;
    while (out->sent < out->size) {
        size_t sent =
            write_socket(connection, slice_of(out->data + out->sent, out->size - out->sent));
        if (sent == 0)
            return;
        outgoing_sent(out, sent);
    }
}

static uint64_t stall_deadline(const struct connection *connection)
{
    return connection->stalled_ns +
           server_limit(connection->part->server->options.write_timeout_ns, WRITE_STALL_S);
}

static void note_stall(struct connection *connection)
{
    if (!server_connection_has_unsent(connection)) {
        connection->stalled_ns = 0;
    } else if (connection->stalled_ns == 0) {
        connection->stalled_ns = connection->part->worker->now_ns;
        server_connection_watch(connection, stall_deadline(connection));
    }
}

void server_connection_flush(struct connection *connection)
{
    if (connection->tls)
        flush_tls(connection);
    else
        flush_plain(connection);
    note_stall(connection);
    if (!server_connection_has_unsent(connection))
        server_connection_mark_dirty(connection); /* the protocol may have more */
}

void server_connection_send(struct connection *connection, struct slice data)
{
    if (connection->broken || connection->phase > CONNECTION_CLOSING || data.size == 0)
        return;
    assert(connection->protocol); /* only a protocol sends */
    if (connection->tls) {
        if (tls_stream_write(connection->tls, data))
            flush_tls(connection);
        else
            server_connection_break(connection, CLOSE_TLS_FAILED);
    } else {
        size_t sent = server_connection_has_unsent(connection) ? 0 : write_socket(connection, data);
        outgoing_add(&connection->out, data.data + sent, data.size - sent);
    }
    note_stall(connection);
}

/* ---- closing ---- */

void server_connection_mark_dirty(struct connection *connection)
{
    struct list *dirty = &connection->part->dirty;
    if (!list_has(dirty, &connection->dirty) && connection->phase != CONNECTION_CLOSED)
        list_prepend(dirty, &connection->dirty);
}

void server_connection_break(struct connection *connection, enum close_reason reason)
{
    if (connection->broken)
        return;
    connection->broken = true;
    connection->reason = (uint8_t)reason;
    server_connection_mark_dirty(connection);
}

static void stop_counting(struct connection *connection)
{
    if (!connection->counted)
        return;
    connection->counted = false;
    assert(connection->part->connection_count > 0);
    connection->part->connection_count--;
}

void server_connection_finish(struct connection *connection, enum close_reason reason, bool linger)
{
    if (connection->phase >= CONNECTION_CLOSING)
        return;
    assert(connection->phase == CONNECTION_OPEN); /* other phases have nothing to send */
    connection->phase = CONNECTION_CLOSING;
    connection->reason = (uint8_t)reason;
    connection->linger = linger;
    connection->reading = false;
    if (connection->tls)
        tls_stream_shutdown(connection->tls);
    server_connection_mark_dirty(connection);
}

static void enter_account(struct connection *connection)
{
    const struct server_options *options = &connection->part->server->options;
    connection->budget = options->accounts
                             ? source_accounts_enter(options->accounts, connection->peer_key)
                             : options->budget;
}

static void leave_account(struct connection *connection)
{
    const struct server_options *options = &connection->part->server->options;
    if (options->accounts)
        source_accounts_leave(options->accounts, connection->budget);
    connection->budget = NULL;
}

static void bury(struct connection *connection)
{
    assert(connection->phase == CONNECTION_CLOSED && !connection->dirty.list);
    struct server_part *part = connection->part;
    free(connection);
    assert(part->live > 0);
    part->live--;
    server_part_unlive(part);
}

static void on_poll_closed(uv_handle_t *handle)
{
    bury(handle->data);
}

void server_connection_close(struct connection *connection, enum close_reason reason)
{
    struct server_part *part = connection->part;
    assert(!connection->in_input);
    if (connection->phase == CONNECTION_CLOSED)
        return;
    if (list_has(&part->dirty, &connection->dirty))
        list_remove(&part->dirty, &connection->dirty);
    connection->phase = CONNECTION_CLOSED;
    stop_counting(connection);
    server_count_closed(part->server, part->worker->index, reason);
    worker_cancel_timer(part->worker, &connection->timer);
    if (connection->session)
        connection->protocol->close(connection);
    assert(!connection->session && !connection->dirty.list);
    tls_stream_free(connection->tls);
    outgoing_deinit(&connection->out);
    leave_account(connection);
    list_remove(&part->connections, &connection->link);
    if (connection->sink) {
        list_prepend(&part->buried, &connection->link);
    } else {
        unsigned load = atomic_fetch_sub_explicit(&part->load, 1, memory_order_relaxed);
        assert(load > 0);
        listener_connection_ended(part->server, connection->peer_key);
        uv_close((uv_handle_t *)&connection->poll, on_poll_closed);
        close(connection->fd);
    }
}

/* Whether the next thing to happen is up to the client. */
static bool waits_for_client(const struct connection *connection)
{
    switch ((enum connection_phase)connection->phase) {
    case CONNECTION_HANDSHAKE:
    case CONNECTION_DETECT:
    case CONNECTION_LINGERING:
        return true;
    case CONNECTION_OPEN:
        return connection->protocol->is_idle(connection);
    case CONNECTION_CLOSING:
    case CONNECTION_CLOSED:
        break;
    }
    return false;
}

void server_connection_make_room(struct server_part *part, const struct connection *newest)
{
    for (struct list_link *link = part->connections.last; link; link = link->previous) {
        struct connection *connection = container_of(link, struct connection, link);
        if (connection != newest && waits_for_client(connection)) {
            server_connection_close(connection, CLOSE_MADE_ROOM);
            return;
        }
    }
}

static void begin_lingering(struct connection *connection)
{
    assert(connection->phase == CONNECTION_CLOSING && !connection->broken);
    if (!connection->linger || connection->eof || connection->sink) {
        server_connection_close(connection, (enum close_reason)connection->reason);
        return;
    }
    shutdown(connection->fd, SHUT_WR);
    connection->phase = CONNECTION_LINGERING;
    connection->linger_ns = connection->part->worker->now_ns;
    connection->reading = true;
    stop_counting(connection);
    server_connection_watch(connection, connection->linger_ns + LINGER_S * SECOND_NS);
}

static void on_poll(uv_poll_t *handle, int status, int events);

static void update_poll(struct connection *connection)
{
    assert(connection->phase != CONNECTION_CLOSED && !connection->broken);
    if (connection->sink)
        return;
    int wanted = connection->reading ? UV_READABLE : 0;
    if (server_connection_has_unsent(connection))
        wanted |= UV_WRITABLE;
    /* While the handler works on a request, poll only for the end of the connection. After the end
     * of input, UV_READABLE would be reported all the time; UV_DISCONNECT is reported only when the
     * connection breaks. */
    if (!connection->reading)
        wanted |= connection->eof || connection->eof_waits ? UV_PRIORITIZED : UV_DISCONNECT;
    if (wanted == connection->polled)
        return;
    connection->polled = wanted;
    if (wanted)
        uv_poll_start(&connection->poll, wanted, on_poll);
    else
        uv_poll_stop(&connection->poll);
}

void server_connection_settle(struct connection *connection)
{
    if (connection->phase == CONNECTION_CLOSED)
        return;
    if (connection->broken) {
        server_connection_close(connection, (enum close_reason)connection->reason);
        return;
    }
    if (connection->phase == CONNECTION_CLOSING && !server_connection_has_unsent(connection)) {
        begin_lingering(connection);
        if (connection->phase == CONNECTION_CLOSED)
            return;
    }
    update_poll(connection);
}

/* ---- receiving ---- */

static const uint8_t h2_preface[] = {'P', 'R', 'I', ' '};

static void choose_protocol(struct connection *connection, const struct protocol *protocol)
{
    assert(connection->phase == CONNECTION_DETECT && !connection->session);
    connection->protocol = protocol;
    connection->phase = CONNECTION_OPEN;
    connection->opened_ns = connection->part->worker->now_ns;
    protocol->open(connection);
    if (connection->part->draining)
        protocol->drain(connection);
}

/* HTTP/2 with prior knowledge begins with a word that is not a method. */
static void detect_protocol(struct connection *connection, struct slice data)
{
    while (data.size > 0 && connection->detect_size < sizeof connection->detect) {
        uint8_t c = *data.data;
        if (c != h2_preface[connection->detect_size])
            break;
        connection->detect[connection->detect_size++] = c;
        data = slice_of(data.data + 1, data.size - 1);
    }
    bool is_h2 = connection->detect_size == sizeof connection->detect;
    if (!is_h2 && data.size == 0)
        return;
    choose_protocol(connection, is_h2 ? &h2_protocol : &http1_protocol);
    struct slice seen = slice_of(connection->detect, connection->detect_size);
    if (seen.size > 0)
        connection->protocol->input(connection, seen);
    if (data.size > 0 && connection->phase == CONNECTION_OPEN)
        connection->protocol->input(connection, data);
}

static void plain_input(struct connection *connection, struct slice data)
{
    if (connection->phase == CONNECTION_DETECT)
        detect_protocol(connection, data);
    else if (connection->phase == CONNECTION_OPEN)
        connection->protocol->input(connection, data);
}

static void end_handshake(struct connection *connection)
{
    connection->phase = CONNECTION_DETECT;
    struct slice alpn = tls_stream_alpn(connection->tls);
    if (slice_is(alpn, "h2"))
        choose_protocol(connection, &h2_protocol);
    else if (slice_is(alpn, "http/1.1"))
        choose_protocol(connection, &http1_protocol);
}

/* Anybody can cause these, so one line stands for all of an interval. */
static void log_failed_handshake(struct connection *connection)
{
    struct server_part *part = connection->part;
    uint64_t count = log_interval_add(&part->failed_handshakes, 1, part->worker->now_ns);
    if (count == 0)
        return;
    char peer[INET6_ADDRSTRLEN];
    peer_print((const struct sockaddr *)&connection->address, peer);
    log_warn(log_component(part->server->label), "TLS handshakes of clients failed",
             LOG_TEXT("error", tls_stream_error(connection->tls)),
             LOG_U64("failed_handshakes", count), LOG_TEXT("last_address", peer));
}

static void fail_handshake(struct connection *connection)
{
    log_failed_handshake(connection);
    if (tls_stream_got_http(connection->tls)) /* Go's answer */
        write_socket(connection, SLICE("HTTP/1.0 400 Bad Request\r\n\r\n"
                                       "Client sent an HTTP request to an HTTPS server.\n"));
}

static void tls_input(struct connection *connection, struct slice data)
{
    enum tls_status status;
    const size_t read_bytes = connection->part->server->options.read_buffer_bytes;
    tls_stream_feed(connection->tls, data);
    do {
        size_t size;
        uint8_t *plain = connection->part->plain_buffer;
        status = tls_stream_read(connection->tls, plain, read_bytes, &size);
        if (connection->phase == CONNECTION_HANDSHAKE && tls_stream_ready(connection->tls))
            end_handshake(connection);
        if (size > 0)
            plain_input(connection, slice_of(plain, size));
    } while (status == TLS_STATUS_OK);
    server_connection_flush(connection); /* output that the protocol delayed during the handshake */
    if (status == TLS_STATUS_FAILED && connection->phase == CONNECTION_HANDSHAKE)
        fail_handshake(connection);
    if (status == TLS_STATUS_CLOSED)
        server_connection_end_of_input(connection);
    else if (status == TLS_STATUS_FAILED)
        server_connection_break(connection, CLOSE_TLS_FAILED);
}

void server_connection_input(struct connection *connection, struct slice data)
{
    assert(!connection->in_input && connection->phase != CONNECTION_CLOSED);
    connection->read_ns = connection->part->worker->now_ns;
    connection->in_input = true;
    if (connection->tls)
        tls_input(connection, data);
    else
        plain_input(connection, data);
    connection->in_input = false;
}

void server_connection_end_of_input(struct connection *connection)
{
    if (connection->eof)
        return;
    connection->eof = true;
    connection->reading = false;
    if (connection->phase == CONNECTION_OPEN)
        connection->protocol->eof(connection);
    else if (connection->phase < CONNECTION_OPEN)
        server_connection_break(connection, CLOSE_CLIENT);
}

size_t server_connection_body_places(struct connection *connection, struct iovec *places,
                                     size_t *room_out)
{
    const struct protocol *protocol = connection->protocol;
    *room_out = 0;
    if (connection->phase != CONNECTION_OPEN || connection->tls || !protocol->body_places)
        return 0;
    assert(!connection->in_input);
    connection->in_input = true;
    size_t count = protocol->body_places(connection, places);
    connection->in_input = false;
    assert(count <= BODY_PLACES_MAX);
    for (size_t i = 0; i < count; i++)
        *room_out += places[i].iov_len;
    return count;
}

void server_connection_body_filled(struct connection *connection, const struct iovec *places,
                                   size_t size)
{
    assert(connection->phase == CONNECTION_OPEN && !connection->in_input);
    connection->read_ns = connection->part->worker->now_ns;
    connection->in_input = true;
    connection->protocol->body_filled(connection, places, size);
    connection->in_input = false;
}

/* Limits the bytes to read after a large body: they may begin the next body, and would have to be
 * copied there. */
static size_t room_behind_body(const struct server_part *part, size_t room)
{
    size_t most = part->server->options.read_buffer_bytes;
    return room < most - READ_BEHIND_BYTES ? most - room : READ_BEHIND_BYTES;
}

/* Reads directly into the body where possible, and the rest into the worker's buffer. */
static ssize_t read_socket(struct connection *connection)
{
    struct server_part *part = connection->part;
    struct iovec places[BODY_PLACES_MAX + 1];
    size_t room;
    size_t count = server_connection_body_places(connection, places, &room);
    size_t behind = room_behind_body(part, room);
    places[count++] = (struct iovec){part->read_buffer, behind};
    ssize_t n;
    do
        n = readv(connection->fd, places, (int)count);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n;
    size_t got = (size_t)n;
    size_t direct = got < room ? got : room;
    if (direct > 0)
        server_connection_body_filled(connection, places, direct);
    if (got > direct)
        server_connection_input(connection, slice_of(part->read_buffer, got - direct));
    return got == room + behind ? 1 : -2;
}

/* Reads once. Returns false if there is nothing more now. */
static bool read_once(struct connection *connection)
{
    ssize_t n = read_socket(connection);
    if (n == 0)
        server_connection_end_of_input(connection);
    else if (n == -1 && errno != EAGAIN && errno != EWOULDBLOCK)
        server_connection_break(connection, CLOSE_RESET);
    return n > 0;
}

static void throw_away(struct connection *connection)
{
    uint8_t *buffer = connection->part->read_buffer;
    ssize_t n =
        recv(connection->fd, buffer, connection->part->server->options.read_buffer_bytes, 0);
    if (n > 0)
        connection->lingered_bytes += (size_t)n;
    bool is_over = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) ||
                   connection->lingered_bytes > LINGER_MAX_BYTES;
    if (is_over)
        server_connection_break(connection, (enum close_reason)connection->reason);
}

/* Handles an event while not reading: a reset, or the end of the client's side. */
static void look_whether_gone(struct connection *connection)
{
    char byte;
    ssize_t n = recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        server_connection_break(connection, CLOSE_RESET);
    else if (n > 0)
        connection->eof_waits = true;
    else
        server_connection_end_of_input(connection);
}

/* Whether the connection may read in this turn. Otherwise it stays readable, and is polled again in
 * the next turn. */
static bool may_read(struct connection *connection)
{
    if (connection->phase != CONNECTION_HANDSHAKE)
        return true;
    return connection->part->handshakes++ < HANDSHAKES_PER_TURN;
}

static void read_input(struct connection *connection)
{
    if (!may_read(connection))
        return;
    for (int i = 0; i < READS_PER_EVENT && connection->reading && !connection->broken; i++)
        if (!read_once(connection))
            break;
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct connection *connection = handle->data;
    assert(connection->phase != CONNECTION_CLOSED); /* closing removes the handle */
    worker_now(connection->part->worker);           /* time limits begin with what is read now */
    if (status < 0) {
        server_connection_close(connection, CLOSE_RESET);
        return;
    }
    if (events & UV_WRITABLE) {
        server_connection_flush(connection);
    }
    if (connection->phase == CONNECTION_LINGERING) {
        if (events & UV_READABLE)
            throw_away(connection);
    } else if (connection->reading && (events & UV_READABLE)) {
        read_input(connection);
    } else if (events & UV_DISCONNECT) {
        look_whether_gone(connection);
    } else if (events & UV_PRIORITIZED) {
        server_connection_break(connection, CLOSE_RESET);
    }
    server_connection_settle(connection);
}

/* ---- time limits ---- */

void server_connection_watch(struct connection *connection, uint64_t deadline_ns)
{
    struct worker *worker = connection->part->worker;
    if (deadline_ns == UINT64_MAX || connection->phase == CONNECTION_CLOSED ||
        (timer_is_set(&connection->timer) && connection->timer.deadline_ns <= deadline_ns))
        return;
    uint64_t now = worker->now_ns;
    worker_set_timer(worker, &connection->timer, deadline_ns > now ? deadline_ns - now : 0);
}

static uint64_t check_stall(struct connection *connection, uint64_t now_ns)
{
    if (connection->stalled_ns == 0)
        return UINT64_MAX;
    uint64_t deadline = stall_deadline(connection);
    if (now_ns >= deadline)
        server_connection_break(connection, CLOSE_WRITE_TIMEOUT);
    return deadline;
}

static uint64_t first_head_deadline(const struct connection *connection)
{
    return connection->opened_ns +
           server_limit(connection->part->server->options.read_header_timeout_ns, HANDSHAKE_S);
}

static uint64_t check_phase(struct connection *connection, uint64_t now_ns)
{
    uint64_t deadline;
    switch ((enum connection_phase)connection->phase) {
    case CONNECTION_HANDSHAKE:
        deadline = connection->opened_ns + HANDSHAKE_S * SECOND_NS;
        if (now_ns >= deadline)
            server_connection_break(connection, CLOSE_HANDSHAKE_TIMEOUT);
        return deadline;
    case CONNECTION_DETECT:
        deadline = first_head_deadline(connection);
        if (now_ns >= deadline)
            server_connection_break(connection, CLOSE_HEAD_TIMEOUT);
        return deadline;
    case CONNECTION_LINGERING:
        deadline = connection->linger_ns + LINGER_S * SECOND_NS;
        if (now_ns >= deadline)
            server_connection_break(connection, (enum close_reason)connection->reason);
        return deadline;
    case CONNECTION_OPEN:
        return connection->protocol->check(connection, now_ns);
    case CONNECTION_CLOSING:
    case CONNECTION_CLOSED:
        break;
    }
    return UINT64_MAX;
}

static void on_timer(struct timer *timer)
{
    struct connection *connection = container_of(timer, struct connection, timer);
    assert(connection->phase != CONNECTION_CLOSED); /* closing cancels the timer */
    uint64_t now = connection->part->worker->now_ns;
    uint64_t next = check_phase(connection, now);
    uint64_t stall = check_stall(connection, now);
    if (stall < next)
        next = stall;
    if (!connection->broken)
        server_connection_watch(connection, next > now ? next : now + SECOND_NS);
    server_connection_settle(connection);
}

/* ---- opening ---- */

static bool begin_tls(struct connection *connection)
{
    struct server *server = connection->part->server;
    if (!server->tls) {
        connection->phase = CONNECTION_DETECT;
        return true;
    }
    struct error err;
    connection->phase = CONNECTION_HANDSHAKE;
    connection->tls = tls_stream_new(server->tls, NULL, &err);
    return connection->tls != NULL;
}

static bool begin_polling(struct connection *connection)
{
    if (connection->sink)
        return true;
    if (uv_poll_init(&connection->part->worker->loop, &connection->poll, connection->fd) != 0)
        return false;
    connection->poll.data = connection;
    return true;
}

struct connection *server_connection_open(struct server_part *part, int fd,
                                          const struct sockaddr *address,
                                          ssize_t (*sink)(void *context, struct slice data),
                                          void *sink_context)
{
    assert((fd >= 0) != (sink != NULL) && !part->stopped);
    assert(worker_is_current(part->worker));
    struct connection *connection = memory_zalloc(sizeof *connection);
    connection->part = part;
    connection->fd = fd;
    connection->sink = sink;
    connection->sink_context = sink_context;
    connection->reading = true;
    connection->opened_ns = connection->read_ns = part->worker->now_ns;
    connection->timer.on_timer = on_timer;
    connection->peer_key = peer_key(address);
    if (address && address->sa_family == AF_INET6)
        memcpy(&connection->address, address, sizeof(struct sockaddr_in6));
    else if (address && address->sa_family == AF_INET)
        memcpy(&connection->address, address, sizeof(struct sockaddr_in));
    if (!begin_tls(connection) || !begin_polling(connection)) {
        tls_stream_free(connection->tls);
        free(connection);
        return NULL;
    }
    enter_account(connection);
    list_prepend(&part->connections, &connection->link);
    connection->counted = true;
    part->connection_count++;
    part->live++;
    server_connection_watch(connection, first_head_deadline(connection));
    update_poll(connection);
    return connection;
}

#include "core/base/memory.h"
#include "core/net/client_private.h"
#include "core/net/h2_guard.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>

enum {
    HEADERS_PER_REQUEST_MAX = 64,
};

struct h2_session {
    nghttp2_session *nghttp2;
    struct h2_guard guard;
};

static nghttp2_session *session_of(const struct client_connection *connection)
{
    const struct h2_session *session = connection->session;
    assert(connection->codec == &client_h2);
    return session->nghttp2;
}

static struct h2_limits *limits_of(const struct client_connection *connection)
{
    struct h2_session *session = connection->session;
    assert(connection->codec == &client_h2);
    return &session->guard.limits;
}

static uint64_t now_of(const struct client_connection *connection)
{
    return connection->client->worker->now_ns;
}

static void set_why(struct client_connection *connection, const char *text)
{
    if (connection->why[0] == '\0')
        snprintf(connection->why, sizeof connection->why, "%.200s", text);
}

static struct client_exchange *exchange_of(nghttp2_session *session, int32_t stream_id)
{
    return nghttp2_session_get_stream_user_data(session, stream_id);
}

/* Detaches the stream from its exchange. */
static void forget_stream(nghttp2_session *session, struct client_exchange *exchange)
{
    assert(exchange->stream_id > 0);
    nghttp2_session_set_stream_user_data(session, exchange->stream_id, NULL);
}

/* ---- sending ---- */

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t size, int flags,
                       void *context)
{
    struct client_connection *connection = context;
    (void)session, (void)flags;
    if (connection->output.bytes > connection->client->options.write_bytes)
        return NGHTTP2_ERR_WOULDBLOCK;
    client_output_copy(&connection->output, slice_of(data, size));
    return (ssize_t)size;
}

/* Returns only the size: on_send_data passes the bytes to the socket without copying them. */
static ssize_t on_read_body(nghttp2_session *session, int32_t stream_id, uint8_t *to, size_t size,
                            uint32_t *flags, nghttp2_data_source *source, void *context)
{
    const struct client_exchange *exchange = exchange_of(session, stream_id);
    (void)to, (void)source, (void)context;
    if (!exchange)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (size > exchange->body_left)
        size = exchange->body_left;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (size == exchange->body_left)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)size;
}

static void add_body(struct client_connection *connection, struct client_exchange *exchange,
                     size_t size)
{
    assert(size <= exchange->body_left);
    exchange->body_left -= size;
    while (size > 0) {
        assert(exchange->body_slice < exchange->request->body_count);
        struct slice whole = exchange->request->body[exchange->body_slice];
        size_t part = whole.size - exchange->body_offset;
        if (part > size)
            part = size;
        client_output_add(&connection->output, slice_of(whole.data + exchange->body_offset, part),
                          exchange);
        exchange->body_offset += part;
        size -= part;
        if (exchange->body_offset == whole.size) {
            exchange->body_slice++;
            exchange->body_offset = 0;
        }
    }
}

static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                        size_t size, nghttp2_data_source *source, void *context)
{
    struct client_connection *connection = context;
    (void)source;
    assert(frame->data.padlen == 0);
    if (connection->output.bytes > connection->client->options.write_bytes)
        return NGHTTP2_ERR_WOULDBLOCK;
    struct client_exchange *exchange = exchange_of(session, frame->hd.stream_id);
    if (!exchange)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    client_output_copy(&connection->output, slice_of(head, 9));
    add_body(connection, exchange, size);
    return 0;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    (void)session;
    h2_limits_on_sent(limits_of(context), frame->hd.type);
    return 0;
}

/* ---- receiving ---- */

static const char too_much[] = "the peer sends too many frames without payload";

/* Counts a header of a request that has ended. */
static int ignore_header(struct client_connection *connection, size_t size)
{
    if (h2_limits_on_excess(limits_of(connection), size, now_of(connection)))
        return 0;
    set_why(connection, too_much);
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *context)
{
    struct client_connection *connection = context;
    struct client_exchange *exchange = exchange_of(session, frame->hd.stream_id);
    (void)flags;
    if (!exchange)
        return ignore_header(connection, name_size + value_size);
    struct slice name_slice = slice_of(name, name_size), value_slice = slice_of(value, value_size);
    bool fits;
    if (slice_is(name_slice, ":status")) {
        /* nghttp2 has checked that it has three digits. */
        client_exchange_begin_answer(exchange, (int)strtol((const char *)value, NULL, 10));
        fits = client_exchange_count_header(exchange, name_size + value_size);
    } else {
        fits = client_exchange_add_header(exchange, name_slice, value_slice);
    }
    if (fits)
        return 0;
    set_why(connection, "the response headers are too large");
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* Resets the stream and detaches its exchange. */
static void reset_stream(nghttp2_session *session, struct client_exchange *exchange)
{
    forget_stream(session, exchange);
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, exchange->stream_id, NGHTTP2_CANCEL);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
                   size_t size, void *context)
{
    struct client_exchange *exchange = exchange_of(session, stream_id);
    (void)flags;
    h2_limits_on_payload(limits_of(context), size);
    if (!exchange || client_exchange_add_body(exchange, slice_of(data, size)))
        return 0;
    reset_stream(session, exchange);
    client_exchange_finish(exchange, CLIENT_OK, NULL);
    return 0;
}

/* Requests that the server has not processed can be sent again on another connection. */
static void on_goaway(struct client_connection *connection, const nghttp2_goaway *goaway)
{
    char why[256];
    snprintf(why, sizeof why, "%s: GOAWAY, %s%s%.*s", connection->client->address_text,
             nghttp2_http2_strerror(goaway->error_code), goaway->opaque_data_len > 0 ? ": " : "",
             (int)(goaway->opaque_data_len < 100 ? goaway->opaque_data_len : 100),
             (const char *)goaway->opaque_data);
    connection->retiring = true;
    for (struct list_link *link = connection->exchanges.first, *next; link; link = next) {
        struct client_exchange *e = client_exchange_of_link(link);
        next = link->next;
        if (e->stream_id <= goaway->last_stream_id)
            continue;
        forget_stream(session_of(connection), e);
        client_exchange_give_back(e, why);
        next = connection->exchanges.first; /* on_done may have removed others */
    }
    if (goaway->error_code != NGHTTP2_NO_ERROR)
        set_why(connection, why);
    client_kick(connection->client);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct client_connection *connection = context;
    if (frame->hd.type == NGHTTP2_GOAWAY)
        on_goaway(connection, &frame->goaway);
    if (frame->hd.type == NGHTTP2_SETTINGS)
        client_kick(connection->client); /* there may be more room */
    if (frame->hd.type == NGHTTP2_HEADERS)
        h2_limits_on_block(limits_of(connection), frame->hd.length);
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    struct client_exchange *exchange = exchange_of(session, frame->hd.stream_id);
    if (!exchange || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    if (exchange->body_left > 0) /* the server has answered before reading the whole body */
        reset_stream(session, exchange);
    else
        forget_stream(session, exchange);
    client_exchange_finish(exchange, CLIENT_OK, NULL);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t code,
                           void *context)
{
    struct client_connection *connection = context;
    struct client_exchange *exchange = exchange_of(session, stream_id);
    if (!exchange)
        return 0;
    char why[256];
    snprintf(why, sizeof why, "%s: the stream was reset: %s", connection->client->address_text,
             nghttp2_http2_strerror(code));
    forget_stream(session, exchange);
    if (code == NGHTTP2_REFUSED_STREAM)
        client_exchange_give_back(exchange, why);
    else
        client_exchange_finish(exchange, CLIENT_BROKEN, why);
    return 0;
}

/* Called for a request that waited in the session when a GOAWAY arrived. */
static int on_frame_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int error,
                             void *context)
{
    struct client_connection *connection = context;
    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    struct list_link *link = connection->exchanges.first;
    while (link && client_exchange_of_link(link)->stream_id != frame->hd.stream_id)
        link = link->next;
    if (!link)
        return 0;
    struct client_exchange *exchange = client_exchange_of_link(link);
    connection->retiring = true;
    forget_stream(session, exchange);
    client_exchange_give_back(exchange, nghttp2_strerror(error));
    return 0;
}

/* ---- the codec ---- */

static nghttp2_session *new_session(struct client_connection *connection)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *session;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, on_send_data);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_sent);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    int rc = nghttp2_session_client_new(&session, callbacks, connection);
    assert(rc == 0);
    nghttp2_session_callbacks_del(callbacks);
    return session;
}

static void h2_start(struct client_connection *connection)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, CLIENT_HEADERS_MAX},
    };
    struct h2_session *session = memory_zalloc(sizeof *session);
    connection->session = session;
    session->nghttp2 = new_session(connection);
    h2_guard_init(&session->guard, H2_CLIENT, now_of(connection));
    int rc = nghttp2_submit_settings(session_of(connection), NGHTTP2_FLAG_NONE, settings, 2);
    assert(rc == 0);
}

static size_t h2_room(struct client_connection *connection)
{
    nghttp2_session *session = session_of(connection);
    uint32_t allowed =
        nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    if (!nghttp2_session_check_request_allowed(session))
        return 0;
    return allowed > connection->exchanges.count ? allowed - connection->exchanges.count : 0;
}

static nghttp2_nv nv_of(struct slice name, struct slice value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name.data, (uint8_t *)(uintptr_t)value.data,
                        name.size, value.size, NGHTTP2_NV_FLAG_NONE};
}

static size_t make_head(const struct client_exchange *exchange, nghttp2_nv *head, char *length,
                        size_t length_size)
{
    const struct client_request *request = exchange->request;
    size_t count = 0;
    assert(request->header_count + 5 <= HEADERS_PER_REQUEST_MAX);
    head[count++] = nv_of(SLICE(":method"), slice_of_string(request->method));
    head[count++] = nv_of(SLICE(":scheme"), exchange->client->tls ? SLICE("https") : SLICE("http"));
    head[count++] = nv_of(SLICE(":path"), slice_of_string(request->path));
    head[count++] = nv_of(SLICE(":authority"), client_exchange_authority(exchange));
    for (size_t i = 0; i < request->header_count; i++)
        if (!slice_is(request->headers[i].name, "host"))
            head[count++] = nv_of(request->headers[i].name, request->headers[i].value);
    if (exchange->client->options.protocol != CLIENT_H2) {
        int size = snprintf(length, length_size, "%zu", request->body_size);
        head[count++] = nv_of(SLICE("content-length"), slice_of(length, (size_t)size));
    }
    return count;
}

static void h2_send(struct client_connection *connection, struct client_exchange *exchange)
{
    nghttp2_nv head[HEADERS_PER_REQUEST_MAX];
    char length[24];
    size_t count = make_head(exchange, head, length, sizeof length);
    nghttp2_data_provider body = {.read_callback = on_read_body};
    int32_t id = nghttp2_submit_request(session_of(connection), NULL, head, count,
                                        exchange->request->body_size > 0 ? &body : NULL, exchange);
    if (id > 0) {
        struct h2_session *session = connection->session;
        exchange->stream_id = id;
        h2_guard_opened(&session->guard, id);
        return;
    }
    /* Probably no stream ids are left. */
    connection->retiring = true;
    client_exchange_give_back(exchange, nghttp2_strerror(id));
}

static void h2_cancel(struct client_connection *connection, struct client_exchange *exchange)
{
    reset_stream(session_of(connection), exchange);
}

static bool feed(struct client_connection *connection, struct slice bytes)
{
    ssize_t used = nghttp2_session_mem_recv(session_of(connection), bytes.data, bytes.size);
    if (used < 0)
        set_why(connection, nghttp2_strerror((int)used));
    return used >= 0;
}

/* Processes input. Frames before one that ends the connection still count. */
static bool h2_feed(struct client_connection *connection, struct slice bytes)
{
    struct h2_session *session = connection->session;
    uint32_t code = NGHTTP2_NO_ERROR;
    size_t good = h2_guard_input(&session->guard, bytes, now_of(connection), &code);
    if (!feed(connection, slice_of(bytes.data, good)))
        return false;
    if (good == bytes.size || connection->state == CLIENT_CONNECTION_CLOSED)
        return true;
    set_why(connection,
            code == NGHTTP2_ENHANCE_YOUR_CALM ? too_much : nghttp2_http2_strerror(code));
    return false;
}

static void h2_end(struct client_connection *connection)
{
    (void)connection;
}

static bool h2_fill(struct client_connection *connection)
{
    nghttp2_session *session = session_of(connection);
    int rc = nghttp2_session_send(session);
    if (rc != 0) {
        set_why(connection, nghttp2_strerror(rc));
        return false;
    }
    if (nghttp2_session_want_read(session) || nghttp2_session_want_write(session))
        return true;
    /* After we sent a GOAWAY for an error of the peer, no more answers arrive. */
    connection->retiring = true;
    return connection->exchanges.count == 0;
}

static void h2_ping(struct client_connection *connection)
{
    nghttp2_submit_ping(session_of(connection), NGHTTP2_FLAG_NONE, NULL);
}

static void h2_free(struct client_connection *connection)
{
    nghttp2_session_del(session_of(connection));
    free(connection->session);
}

const struct client_codec client_h2 = {
    .start = h2_start,
    .room = h2_room,
    .send = h2_send,
    .cancel = h2_cancel,
    .feed = h2_feed,
    .end = h2_end,
    .fill = h2_fill,
    .ping = h2_ping,
    .free = h2_free,
};

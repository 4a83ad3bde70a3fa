/*
 * HTTP/2 on a connection, and gRPC answers on it. nghttp2 does the framing; this file applies
 * limits and collects requests.
 */
#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/net/grpc_status.h"
#include "core/net/h2_guard.h"
#include "core/net/h2_message.h"
#include "core/net/h2_refusals.h"
#include "core/net/server_private.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <stdio.h>

enum {
    STREAM_WINDOW_BYTES = 1024 * 1024,
    CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024,
    FRAME_BYTES = 256 * 1024, /* longer frames let more of the body be read directly */
    FIRST_SETTINGS_S = 10,
    HEADER_BLOCK_S = 10,
    IDLE_S = 300,
    WRITE_S = 30,
    RESET_DELAY_MS = 50,
    DRAIN_NOTICE_S = 1,
    ANSWER_HEADERS_MAX = 64, /* server_settings.c limits the configured ones */
    PING_STRIKES_MAX = 2,
    PING_WITHOUT_STREAM_S = 2 * 60 * 60,
};

struct h2 {
    nghttp2_session *session;
    struct list exchanges;
    struct h2_guard guard;
    struct h2_refusals refusals;
    struct exchange *block_exchange; /* whose head is being received; NULL: none */
    size_t block_bytes;              /* of the header block being received */
    size_t block_fields;
    struct h2_message block; /* what its fields say */
    bool block_refused;      /* it exceeds the limits of a head */
    bool block_has_no_room;  /* there is no memory for the head of its request */
    bool block_is_grpc;      /* valid then */
    uint64_t block_ns;       /* when the block began; 0: none */
    uint32_t data_length;    /* of the current DATA frame; 0: another frame, or padded */
    uint32_t next_length;    /* of the frames that probably follow it; 0: it ends its stream */
    uint32_t data_left;      /* rest of data_length, once a part was received */
    int32_t data_stream;
    const uint8_t *direct; /* input that was read directly into the body */
    uint64_t idle_ns;      /* when the last stream ended */
    uint64_t ping_ns;      /* when our unanswered keepalive PING was sent; 0: none */
    uint64_t pinged_ns;    /* when the client's last PING arrived; 0: none yet */
    uint8_t ping_strikes;  /* PINGs that came too early since our last answer */
    bool has_answered;     /* HEADERS or DATA were sent since the client's last PING */
    uint64_t drain_ns;     /* when draining began; 0: not draining */
    bool settled;          /* the client's SETTINGS have arrived */
    bool goaway_sent;      /* the last GOAWAY was sent: no more streams */
    bool terminated;       /* no more input is processed */
    uint8_t reason;        /* enum close_reason */
};

static const uint8_t drain_ping[8] = "drained?";

static uint64_t now_of(const struct connection *connection)
{
    return connection->part->worker->now_ns;
}

/* Sends a GOAWAY and ends the connection. */
static void terminate(struct connection *connection, uint32_t code, enum close_reason reason)
{
    struct h2 *h2 = connection->session;
    if (h2->terminated)
        return;
    h2->terminated = true;
    h2->reason = (uint8_t)reason;
    nghttp2_session_terminate_session(h2->session, code);
    server_connection_mark_dirty(connection);
}

static int flooded(struct connection *connection)
{
    terminate(connection, NGHTTP2_ENHANCE_YOUR_CALM, CLOSE_FLOOD);
    return NGHTTP2_ERR_CALLBACK_FAILURE; /* makes nghttp2 stop in the middle of its input */
}

/* ---- exchanges of the connection ---- */

static struct exchange *exchange_of_link(struct list_link *link)
{
    return container_of(link, struct exchange, link);
}

static struct exchange *exchange_of(nghttp2_session *session, int32_t stream_id)
{
    return nghttp2_session_get_stream_user_data(session, stream_id);
}

/* ---- input ---- */

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *user_data)
{
    (void)session;
    struct connection *connection = user_data;
    struct h2 *h2 = connection->session;
    bool plain = hd->type == NGHTTP2_DATA && !(hd->flags & NGHTTP2_FLAG_PADDED);
    h2->data_length = plain ? (uint32_t)hd->length : 0;
    h2->next_length = hd->flags & NGHTTP2_FLAG_END_STREAM ? 0 : h2->data_length;
    h2->data_left = 0;
    h2->data_stream = hd->stream_id;
    return 0;
}

/* Refuses a request because there is no room for its head. The client may send it again. */
static void refuse_without_exchange(struct connection *connection, int32_t stream_id)
{
    struct h2 *h2 = connection->session;
    h2->idle_ns = now_of(connection);
    if (!h2_refusals_answer(&h2->refusals, &connection->part->h2_refusals, h2->session, stream_id,
                            h2->block_is_grpc))
        nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, stream_id,
                                  NGHTTP2_REFUSED_STREAM);
}

static void begin_without_room(struct connection *connection)
{
    struct h2 *h2 = connection->session;
    server_count_over_budget(connection->part);
    h2->block_has_no_room = true;
    h2->block_exchange = NULL;
}

/* Frees the exchange whose head is being received. */
static void drop_head(struct connection *connection)
{
    struct h2 *h2 = connection->session;
    struct exchange *exchange = h2->block_exchange;
    assert(exchange->state == EXCHANGE_HEAD);
    begin_without_room(connection);
    h2->block_is_grpc = server_is_grpc(http_header_get(&exchange->headers, "content-type"));
    nghttp2_session_set_stream_user_data(h2->session, exchange->stream_id, NULL);
    list_remove(&h2->exchanges, &exchange->link);
    server_exchange_free(exchange);
}

/* Resets the stream of a malformed request (RFC 9113, section 8.1.1). The exchange goes when the
 * stream closes, because input may be under way that was read directly into its body. */
static void refuse_malformed(struct connection *connection, struct exchange *exchange)
{
    struct h2 *h2 = connection->session;
    if (exchange->malformed)
        return;
    exchange->malformed = true;
    if (h2->block_exchange == exchange)
        h2->block_exchange = NULL;
    nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, exchange->stream_id,
                              NGHTTP2_PROTOCOL_ERROR);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct connection *connection = user_data;
    struct h2 *h2 = connection->session;
    h2->block_bytes = h2->block_fields = 0;
    h2->block_refused = h2->block_has_no_room = h2->block_is_grpc = false;
    h2->block_exchange = NULL;
    h2_message_begin(&h2->block, frame->headers.cat != NGHTTP2_HCAT_REQUEST);
    h2->block_ns = now_of(connection);
    server_connection_watch(connection, h2->block_ns + HEADER_BLOCK_S * SECOND_NS);
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct exchange *exchange = server_exchange_new(connection);
    if (!exchange) {
        begin_without_room(connection);
        return 0;
    }
    assert(!exchange_of(session, frame->hd.stream_id)); /* one exchange for each stream */
    exchange->stream_id = frame->hd.stream_id;
    h2->block_exchange = exchange;
    list_prepend(&h2->exchanges, &exchange->link);
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, exchange);
    return 0;
}

static bool is_pseudo(struct slice name)
{
    return name.size > 0 && name.data[0] == ':';
}

/* Handles a field beyond the limits of a head. The block is decoded to its end, because later
 * blocks depend on it, and its stream is refused. Because a block of references to large entries
 * costs the sender almost nothing, excess fields are limited, too. Returns true if the field is
 * kept anyway, because it decides the form of the refusal. */
static bool refuse_field(struct connection *connection, struct slice name, size_t size)
{
    struct h2 *h2 = connection->session;
    h2->block_refused = true;
    if (!h2_limits_on_excess(&h2->guard.limits, size + 32, now_of(connection)))
        terminate(connection, NGHTTP2_ENHANCE_YOUR_CALM, CLOSE_HEADER_LIST);
    return slice_is(name, "content-type") && size <= 256;
}

static bool admit_field(struct connection *connection, struct slice name, struct slice value)
{
    struct h2 *h2 = connection->session;
    size_t size = name.size + value.size;
    h2->block_bytes += size + 32;
    h2->block_fields += !is_pseudo(name);
    if (size <= HTTP_FIELD_MAX_BYTES && h2->block_bytes <= HTTP_HEAD_MAX_BYTES &&
        h2->block_fields <= HTTP_FIELDS_MAX && !h2->block_refused)
        return true;
    return refuse_field(connection, name, size);
}

static bool store_path(struct exchange *exchange, struct slice value)
{
    if (!server_exchange_store(exchange, value, &exchange->path))
        return false;
    const uint8_t *mark =
        value.size > 0 ? memchr(exchange->path.data, '?', exchange->path.size) : NULL;
    if (mark) {
        size_t size = (size_t)(mark - exchange->path.data);
        exchange->query = slice_of(mark + 1, exchange->path.size - size - 1);
        exchange->path.size = size;
    }
    return true;
}

static bool store_field(struct exchange *exchange, struct slice name, struct slice value)
{
    if (!is_pseudo(name))
        return server_exchange_add_header(exchange, name, value);
    if (slice_is(name, ":method"))
        return server_exchange_store(exchange, value, &exchange->method);
    if (slice_is(name, ":path"))
        return store_path(exchange, value);
    if (slice_is(name, ":authority"))
        return server_exchange_add_header(exchange, SLICE("host"), value);
    return true;
}

static int take_field(struct connection *connection, struct slice name, struct slice value)
{
    struct h2 *h2 = connection->session;
    bool keep = admit_field(connection, name, value);
    if (h2->terminated)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (h2->block_has_no_room && slice_is(name, "content-type"))
        h2->block_is_grpc = server_is_grpc(value);
    if (!keep || !h2->block_exchange)
        return 0;
    /* The block is within the limits, so only the budget can have no room. */
    if (!store_field(h2->block_exchange, name, value))
        drop_head(connection);
    return 0;
}

/* Handles a field that is not kept. It counts like the others. */
static int skip_field(struct connection *connection, struct slice name, struct slice value)
{
    struct h2 *h2 = connection->session;
    admit_field(connection, name, value);
    return h2->terminated ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name_data,
                     size_t name_size, const uint8_t *value_data, size_t value_size, uint8_t flags,
                     void *user_data)
{
    (void)flags;
    struct connection *connection = user_data;
    struct h2 *h2 = connection->session;
    struct slice name = slice_of(name_data, name_size), value = slice_of(value_data, value_size);
    switch (h2_message_field(&h2->block, name, value)) {
    case H2_FIELD_GOOD:
        break;
    case H2_FIELD_IGNORED: /* except grpc-timeout: an invalid one gets an error */
        return slice_is(name, "grpc-timeout") ? take_field(connection, name, value)
                                              : skip_field(connection, name, value);
    case H2_FIELD_MALFORMED: {
        struct exchange *exchange = exchange_of(session, frame->hd.stream_id);
        if (exchange)
            refuse_malformed(connection, exchange);
        return skip_field(connection, name, value);
    }
    }
    return take_field(connection, name, value);
}

static void refuse_head(struct exchange *exchange)
{
    struct verdict verdict = verdict_of(
        GRPC_RESOURCE_EXHAUSTED, "the headers exceed %d KiB in all, %d KiB in a field or %d fields",
        HTTP_HEAD_MAX_BYTES / 1024, HTTP_FIELD_MAX_BYTES / 1024, HTTP_FIELDS_MAX);
    if (exchange->state <= EXCHANGE_BODY)
        server_exchange_refuse_head(exchange, 431, &verdict);
}

/* Whether the authority names a user, which is forbidden (RFC 9113, section 8.3.1). nghttp2 only
 * checks the characters. */
static bool names_a_user(const struct exchange *exchange)
{
    struct slice host = http_header_get(&exchange->headers, "host");
    return host.size > 0 && memchr(host.data, '@', host.size);
}

static void on_request_head(struct connection *connection, struct exchange *exchange)
{
    if (names_a_user(exchange)) {
        struct verdict verdict = verdict_of(GRPC_INTERNAL, "malformed :authority");
        server_exchange_refuse_head(exchange, 400, &verdict);
        return;
    }
    server_exchange_head_done(exchange, exchange->announced);
    if (exchange->state == EXCHANGE_BODY)
        server_connection_watch(connection, server_exchange_body_deadline(exchange));
}

/* Whether the frames so far add up to a request. */
static bool is_well_formed(const struct h2 *h2, const nghttp2_frame *frame,
                           struct exchange *exchange)
{
    bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (h2->block.is_trailers) {
        if (!ends)
            return false;
    } else {
        if (!h2_message_is_complete(&h2->block))
            return false;
        exchange->announced = h2->block.content_length;
    }
    return !ends || exchange->announced < 0 || exchange->announced == exchange->arrived;
}

static void on_headers_received(struct connection *connection, const nghttp2_frame *frame,
                                struct exchange *exchange)
{
    struct h2 *h2 = connection->session;
    h2->block_ns = 0;
    h2->block_exchange = NULL;
    h2_limits_on_block(&h2->guard.limits, frame->hd.length);
    if (h2->block_has_no_room)
        refuse_without_exchange(connection, frame->hd.stream_id);
    if (!exchange || exchange->malformed)
        return;
    if (!is_well_formed(h2, frame, exchange)) {
        refuse_malformed(connection, exchange);
        return;
    }
    bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    exchange->body_complete = ends;
    if (h2->block_refused)
        refuse_head(exchange);
    else if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        on_request_head(connection, exchange);
    if (ends && exchange->state == EXCHANGE_BODY)
        server_exchange_finish(exchange);
}

static void on_data_received(struct connection *connection, const nghttp2_frame *frame,
                             struct exchange *exchange)
{
    if (!exchange || exchange->malformed || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return;
    if (exchange->announced >= 0 && exchange->announced != exchange->arrived) {
        refuse_malformed(connection, exchange);
        return;
    }
    exchange->body_complete = true;
    if (exchange->state == EXCHANGE_BODY)
        server_exchange_finish(exchange);
}

static void say_last_word(struct h2 *h2)
{
    if (h2->goaway_sent)
        return;
    h2->goaway_sent = true;
    nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(h2->session), NGHTTP2_NO_ERROR,
                          NULL, 0);
}

/* The policy of gRPC-Go (internal/transport/http2_server.go, handlePing): a PING is too early if it
 * comes less than the configured time after the last one. An answer in between forgives all,
 * because clients measure the network with a PING for each answer. Returns false if there were too
 * many. */
static bool admit_ping(const struct server_options *options, struct h2 *h2, uint64_t now_ns)
{
    bool is_idle = h2->exchanges.count == 0 && !options->ping_without_stream;
    uint64_t least_ns =
        is_idle ? PING_WITHOUT_STREAM_S * SECOND_NS : (uint64_t)options->ping_min_time_ns;
    bool is_early = h2->pinged_ns > 0 && now_ns < h2->pinged_ns + least_ns;
    if (h2->has_answered)
        h2->ping_strikes = 0;
    else if (is_early)
        h2->ping_strikes++;
    h2->has_answered = false;
    h2->pinged_ns = now_ns;
    return h2->ping_strikes <= PING_STRIKES_MAX;
}

/* gRPC clients know this text, and then ping half as often. */
static void refuse_pings(struct connection *connection)
{
    static const uint8_t why[] = "too_many_pings";
    struct h2 *h2 = connection->session;
    if (h2->terminated)
        return;
    h2->terminated = true;
    h2->reason = CLOSE_TOO_MANY_PINGS;
    nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(h2->session),
                          NGHTTP2_ENHANCE_YOUR_CALM, why, sizeof why - 1);
    server_connection_mark_dirty(connection);
}

static void on_ping(struct connection *connection)
{
    struct h2 *h2 = connection->session;
    const struct server_options *options = &connection->part->server->options;
    h2->idle_ns = now_of(connection); /* a PING keeps the connection from being idle */
    if (options->ping_min_time_ns > 0 && !admit_ping(options, h2, now_of(connection)))
        refuse_pings(connection);
}

static void on_ping_received(struct connection *connection, const nghttp2_frame *frame)
{
    struct h2 *h2 = connection->session;
    if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
        on_ping(connection);
    else if (h2->drain_ns && memcmp(frame->ping.opaque_data, drain_ping, sizeof drain_ping) == 0)
        say_last_word(h2);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct connection *connection = user_data;
    struct h2 *h2 = connection->session;
    struct exchange *exchange =
        frame->hd.stream_id ? exchange_of(session, frame->hd.stream_id) : NULL;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        on_headers_received(connection, frame, exchange);
        break;
    case NGHTTP2_DATA:
        on_data_received(connection, frame, exchange);
        break;
    case NGHTTP2_SETTINGS:
        h2->settled = true;
        break;
    case NGHTTP2_PING:
        on_ping_received(connection, frame);
        break;
    case NGHTTP2_GOAWAY:
        h2->reason = CLOSE_CLIENT;
        break;
    default:
        break;
    }
    return h2->terminated ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_data_chunk_recv(nghttp2_session *session, uint8_t flags, int32_t stream_id,
                              const uint8_t *data, size_t size, void *user_data)
{
    (void)flags;
    struct connection *connection = user_data;
    struct h2 *h2 = connection->session;
    if (h2->data_length > 0) { /* the first chunk shows that the frame is not ignored */
        assert(size <= (h2->data_left ? h2->data_left : h2->data_length));
        h2->data_left = (h2->data_left ? h2->data_left : h2->data_length) - (uint32_t)size;
        if (h2->data_left == 0)
            h2->data_length = 0;
    }
    h2_limits_on_payload(&h2->guard.limits, size);
    struct exchange *exchange = exchange_of(session, stream_id);
    if (!exchange)
        return 0;
    exchange->arrived += (int64_t)size;
    if (exchange->announced >= 0 && exchange->arrived > exchange->announced)
        refuse_malformed(connection, exchange);
    if (exchange->malformed || exchange->state != EXCHANGE_BODY)
        return 0;
    if (data == h2->direct)
        server_exchange_body_filled(exchange, size);
    else
        server_exchange_body(exchange, slice_of(data, size));
    return 0;
}

static int on_invalid_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, int error,
                                 void *user_data)
{
    (void)session;
    (void)frame;
    (void)error;
    struct connection *connection = user_data;
    struct h2 *h2 = connection->session;
    bool ok = h2_limits_spend(&h2->guard.limits, H2_COST_STREAM, now_of(connection));
    return ok ? 0 : flooded(connection);
}

static uint64_t idle_deadline(const struct connection *connection)
{
    const struct h2 *h2 = connection->session;
    const struct server_options *options = &connection->part->server->options;
    int64_t limit = options->max_connection_idle_ns > 0 ? options->max_connection_idle_ns
                                                        : options->idle_timeout_ns;
    return h2->idle_ns + server_limit(limit, IDLE_S);
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code,
                           void *user_data)
{
    (void)error_code;
    struct connection *connection = user_data;
    struct h2 *h2 = connection->session;
    struct exchange *exchange = exchange_of(session, stream_id);
    if (!exchange) {
        h2_refusals_closed(&h2->refusals, &connection->part->h2_refusals, stream_id);
        return 0;
    }
    assert(exchange->stream_id == stream_id && exchange->connection == connection);
    nghttp2_session_set_stream_user_data(session, stream_id, NULL);
    if (h2->block_exchange == exchange)
        h2->block_exchange = NULL;
    list_remove(&h2->exchanges, &exchange->link);
    server_exchange_gone(exchange);
    if (h2->exchanges.count == 0) {
        h2->idle_ns = now_of(connection);
        server_connection_watch(connection, idle_deadline(connection));
    }
    return 0;
}

/* ---- output ---- */

static bool ends_stream(const nghttp2_frame *frame)
{
    return (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
           (frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
}

/* If the answer was sent before the whole request has arrived, the stream is reset, so that the
 * client stops (RFC 9113, section 8.1). Over gRPC this happens at once: gRPC-Go counts the stream
 * as over, but may send neither its end nor a reset, and opens others. Otherwise it happens a
 * little later, because curl 7 loses an answer that arrives together with the reset. */
static void begin_reset(struct connection *connection, struct exchange *exchange)
{
    assert(exchange->state == EXCHANGE_ANSWERED && !exchange->body_complete);
    exchange->reset_ns = now_of(connection) + RESET_DELAY_MS * (SECOND_NS / 1000);
    server_connection_watch(connection, exchange->reset_ns);
}

/* exchange: NULL for a request without room for its head. */
static void on_early_answer(struct connection *connection, int32_t stream_id,
                            struct exchange *exchange)
{
    struct h2 *h2 = connection->session;
    h2_limits_on_early_answer(&h2->guard.limits);
    if (exchange ? exchange->dialect == SERVER_GRPC : h2_refusals_is_grpc(&h2->refusals, stream_id))
        nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_NO_ERROR);
    else if (exchange)
        begin_reset(connection, exchange);
    else
        server_connection_watch(connection, h2_refusals_sent(&h2->refusals, now_of(connection)));
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct connection *connection = user_data;
    struct h2 *h2 = connection->session;
    h2_limits_on_sent(&h2->guard.limits, frame->hd.type);
    h2->has_answered |= frame->hd.type <= NGHTTP2_HEADERS; /* DATA is 0 */
    if (ends_stream(frame)) {
        struct exchange *exchange = exchange_of(session, frame->hd.stream_id);
        if (nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) == 0)
            on_early_answer(connection, frame->hd.stream_id, exchange);
    } else if (frame->hd.type == NGHTTP2_RST_STREAM) {
        /* Resets that the client caused count like its own. */
        if (frame->rst_stream.error_code != NGHTTP2_NO_ERROR &&
            !h2_limits_spend(&h2->guard.limits, H2_COST_STREAM, now_of(connection)))
            terminate(connection, NGHTTP2_ENHANCE_YOUR_CALM, CLOSE_FLOOD);
    } else if (frame->hd.type == NGHTTP2_GOAWAY && !h2->terminated) {
        if (frame->goaway.error_code == NGHTTP2_NO_ERROR)
            return 0;
        /* An error of nghttp2. INTERNAL_ERROR is its own limit on resets, which ours allowed. */
        h2->reason =
            frame->goaway.error_code == NGHTTP2_INTERNAL_ERROR ? CLOSE_FLOOD : CLOSE_PROTOCOL_ERROR;
    }
    return 0;
}

static void h2_output(struct connection *connection)
{
    struct h2 *h2 = connection->session;
    struct outgoing *batch = &connection->part->batch;
    while (!server_connection_has_unsent(connection) && !connection->broken) {
        batch->size = 0;
        ssize_t n = 0;
        const uint8_t *frame;
        while (batch->size < connection->part->server->options.write_buffer_bytes &&
               (n = nghttp2_session_mem_send(h2->session, &frame)) > 0)
            outgoing_add(batch, frame, (size_t)n);
        if (n < 0)
            server_connection_break(connection, CLOSE_PROTOCOL_ERROR);
        if (batch->size == 0)
            break;
        server_connection_send(connection, slice_of(batch->data, batch->size));
    }
    if (server_connection_has_unsent(connection))
        return;
    bool has_ended =
        connection->eof ? h2->exchanges.count == 0 : !nghttp2_session_want_read(h2->session);
    bool is_over = h2->terminated || (has_ended && !nghttp2_session_want_write(h2->session));
    if (is_over)
        server_connection_finish(connection, (enum close_reason)h2->reason, true);
}

static void feed(struct connection *connection, struct slice data)
{
    struct h2 *h2 = connection->session;
    ssize_t n = nghttp2_session_mem_recv(h2->session, data.data, data.size);
    if (n >= 0 || h2->terminated)
        return;
    if (n == NGHTTP2_ERR_BAD_CLIENT_MAGIC)
        terminate(connection, NGHTTP2_PROTOCOL_ERROR, CLOSE_BAD_REQUEST);
    else if (n == NGHTTP2_ERR_FLOODED)
        terminate(connection, NGHTTP2_ENHANCE_YOUR_CALM, CLOSE_FLOOD);
    else
        terminate(connection, NGHTTP2_INTERNAL_ERROR, CLOSE_PROTOCOL_ERROR);
}

/* Processes input. Frames before one that ends the connection still count. */
static void h2_input(struct connection *connection, struct slice data)
{
    struct h2 *h2 = connection->session;
    if (h2->terminated)
        return;
    uint32_t code = NGHTTP2_NO_ERROR;
    size_t good = h2_guard_input(&h2->guard, data, now_of(connection), &code);
    assert(good <= data.size);
    if (good > 0)
        feed(connection, slice_of(data.data, good));
    if (good < data.size && nghttp2_session_want_read(h2->session))
        terminate(connection, code,
                  code == NGHTTP2_ENHANCE_YOUR_CALM ? CLOSE_FLOOD : CLOSE_PROTOCOL_ERROR);
    server_connection_mark_dirty(connection);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* In the middle of a DATA frame, the next bytes belong to the body. Probably, frames of the same
 * length with more of the body follow; the odd places are for their heads. */
static size_t h2_body_places(struct connection *connection, struct iovec *places)
{
    struct h2 *h2 = connection->session;
    if (h2->terminated || h2->data_left == 0)
        return 0;
    assert(h2->data_left <= h2->data_length);
    uint8_t *place;
    struct exchange *exchange = exchange_of(h2->session, h2->data_stream);
    size_t room = exchange ? server_exchange_body_room(exchange, &place) : 0;
    if (room == 0)
        return 0;
    size_t count = 0;
    size_t size = smaller(room, h2->data_left);
    places[count++] = (struct iovec){place, size};
    for (int ahead = 0; ahead < FRAMES_AHEAD_MAX && room > size && h2->next_length > 0; ahead++) {
        place += size;
        room -= size;
        size = smaller(room, h2->next_length);
        places[count++] = (struct iovec){connection->part->frame_heads[ahead], H2_FRAME_HEAD_BYTES};
        places[count++] = (struct iovec){place, size};
    }
    assert(count <= BODY_PLACES_MAX);
    return count;
}

/* Whether this head is as expected, so that the payload after it was read into the right place. */
static bool is_foreseen(const struct h2 *h2, const uint8_t *head, const void *place)
{
    const struct exchange *exchange = exchange_of(h2->session, h2->data_stream);
    if (!exchange || exchange->state != EXCHANGE_BODY ||
        place != exchange->body->data + exchange->body->size)
        return false;
    size_t missing = (size_t)exchange->body_expected - exchange->body->size;
    size_t length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    uint32_t stream =
        (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8];
    bool ends = head[4] & NGHTTP2_FLAG_END_STREAM;
    return head[3] == NGHTTP2_DATA && (head[4] & ~NGHTTP2_FLAG_END_STREAM) == 0 &&
           stream == (uint32_t)h2->data_stream && length == smaller(missing, h2->next_length) &&
           (!ends || length == missing);
}

/* Processes bytes that were read into the wrong place. They are copied first, because the place
 * belongs to a body that may grow, or end, meanwhile. */
static void take_misplaced(struct connection *connection, const struct iovec *places, size_t size)
{
    uint8_t *copy = memory_alloc(size);
    for (size_t done = 0; done < size; places++) {
        size_t piece = smaller(places->iov_len, size - done);
        memcpy(copy + done, places->iov_base, piece);
        done += piece;
    }
    h2_input(connection, slice_of(copy, size));
    free(copy);
}

/* Passes bytes that were read directly into a body to nghttp2, which does not copy them. */
static void h2_body_filled(struct connection *connection, const struct iovec *places, size_t size)
{
    struct h2 *h2 = connection->session;
    for (size_t i = 0; size > 0; i++) {
        assert(i < BODY_PLACES_MAX);
        bool is_head = i % 2 == 1;
        if (is_head && size > H2_FRAME_HEAD_BYTES &&
            !is_foreseen(h2, places[i].iov_base, places[i + 1].iov_base)) {
            take_misplaced(connection, places + i, size);
            return;
        }
        struct slice piece = slice_of(places[i].iov_base, smaller(places[i].iov_len, size));
        h2->direct = is_head ? NULL : piece.data;
        h2_input(connection, piece);
        h2->direct = NULL;
        size -= piece.size;
    }
}

/* A client that ended only its side still waits for its answers; an incomplete request stays
 * incomplete. A PING provokes a reset from a client that has closed the connection, like the
 * interim answer of HTTP/1.1. */
static void h2_eof(struct connection *connection)
{
    struct h2 *h2 = connection->session;
    assert(connection->eof);
    if (!h2->terminated)
        h2->reason = CLOSE_CLIENT;
    for (struct list_link *link = h2->exchanges.first; link; link = link->next) {
        const struct exchange *exchange = exchange_of_link(link);
        if (!exchange->body_complete)
            nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, exchange->stream_id,
                                      NGHTTP2_CANCEL);
    }
    if (h2->exchanges.count > 0)
        nghttp2_submit_ping(h2->session, NGHTTP2_FLAG_NONE, NULL);
    server_connection_mark_dirty(connection); /* h2_output ends it */
}

/* ---- answers ---- */

static nghttp2_nv field(struct slice name, struct slice value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name.data, (uint8_t *)(uintptr_t)value.data,
                        name.size, value.size, NGHTTP2_NV_FLAG_NONE};
}

/* Returns a field whose texts outlive the session, and so are not copied. */
static nghttp2_nv constant_field(struct slice name, struct slice value)
{
    nghttp2_nv nv = field(name, value);
    nv.flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
    return nv;
}

static ssize_t read_answer(nghttp2_session *session, int32_t stream_id, uint8_t *out, size_t size,
                           uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    (void)user_data;
    struct exchange *exchange = source->ptr;
    assert(exchange->answer_sent <= exchange->answer_size);
    size_t left = exchange->answer_size - exchange->answer_sent;
    size_t take = left < size ? left : size;
    memcpy(out, exchange->answer + exchange->answer_sent, take);
    exchange->answer_sent += take;
    if (take < left)
        return (ssize_t)take;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (exchange->has_trailers) {
        nghttp2_nv ok = constant_field(SLICE("grpc-status"), SLICE("0"));
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(session, stream_id, &ok, 1);
    }
    return (ssize_t)take;
}

static uint8_t *answer_room(struct exchange *exchange, size_t size)
{
    assert(!exchange->answer); /* an exchange has one answer */
    exchange->answer_size = size;
    exchange->answer =
        size <= sizeof exchange->answer_inline ? exchange->answer_inline : memory_alloc(size);
    return exchange->answer;
}

static uint64_t answer_deadline(const struct exchange *exchange)
{
    return exchange->since_ns +
           server_limit(exchange->part->server->options.write_timeout_ns, WRITE_S);
}

static void submit(struct exchange *exchange, const nghttp2_nv *fields, size_t count, bool has_data)
{
    assert(exchange->state == EXCHANGE_ANSWERED && count <= ANSWER_HEADERS_MAX);
    struct connection *connection = exchange->connection;
    struct h2 *h2 = connection->session;
    nghttp2_data_provider provider = {.source.ptr = exchange, .read_callback = read_answer};
    if (!h2->terminated && nghttp2_submit_response(h2->session, exchange->stream_id, fields, count,
                                                   has_data ? &provider : NULL) != 0)
        server_connection_break(connection, CLOSE_PROTOCOL_ERROR);
    server_connection_watch(connection, answer_deadline(exchange));
    server_connection_mark_dirty(connection);
}

/* Adds headers with lower-case names, which are stored in the scratch memory of the answer. */
static size_t add_fields(struct outgoing *names, nghttp2_nv *fields, size_t count,
                         struct slice name, struct slice value)
{
    assert(count < ANSWER_HEADERS_MAX && names->capacity - names->size >= name.size);
    uint8_t *lower = names->data + names->size;
    for (size_t i = 0; i < name.size; i++) {
        uint8_t c = name.data[i];
        lower[i] = c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
    }
    names->size += name.size;
    fields[count] = field(slice_of(lower, name.size), value);
    return count + 1;
}

static void h2_answer(struct exchange *exchange, const struct answer *answer)
{
    assert(answer->status >= 200); /* HTTP/2 needs no interim answers */
    enum { NAME_BYTES = 8192 };
    struct server_part *part = exchange->part;
    const struct config_pairs *pairs = &part->server->options.response_headers;
    struct outgoing *names = &part->scratch;
    names->size = 0;
    outgoing_room(names, NAME_BYTES); /* the memory must not move below */
    nghttp2_nv fields[ANSWER_HEADERS_MAX];
    char status[8], length[24];
    int status_size = snprintf(status, sizeof status, "%03d", answer->status % 1000);
    int length_size = snprintf(length, sizeof length, "%zu", answer->body.size);
    size_t count = 0;
    fields[count++] = field(SLICE(":status"), slice_of(status, (size_t)status_size));
    fields[count++] = field(SLICE("date"), slice_of_string(server_date(part)));
    if (answer->content_type)
        fields[count++] = field(SLICE("content-type"), slice_of_string(answer->content_type));
    if (answer->status != 204 && answer->status != 304)
        fields[count++] = field(SLICE("content-length"), slice_of(length, (size_t)length_size));
    for (size_t i = 0; i < answer->extra_count; i++)
        count = add_fields(names, fields, count, answer->extra[i].name, answer->extra[i].value);
    for (size_t i = 0; i < answer->cors_count; i++)
        count = add_fields(names, fields, count, answer->cors[i].name, answer->cors[i].value);
    for (size_t i = 0; i < pairs->count; i++)
        if (!server_answer_has(answer, pairs->items[i].name))
            count = add_fields(names, fields, count, slice_of_string(pairs->items[i].name),
                               slice_trim(slice_of_string(pairs->items[i].value), SLICE_BLANKS));
    bool has_data = answer->body.size > 0 && !exchange->method_is_head;
    if (has_data)
        memcpy(answer_room(exchange, answer->body.size), answer->body.data, answer->body.size);
    submit(exchange, fields, count, has_data);
}

static void answer_grpc_ok(struct exchange *exchange, struct slice message)
{
    const nghttp2_nv fields[] = {
        constant_field(SLICE(":status"), SLICE("200")),
        constant_field(SLICE("content-type"), SLICE("application/grpc")),
    };
    uint8_t *out = answer_room(exchange, 5 + message.size);
    out[0] = 0;
    for (int i = 0; i < 4; i++)
        out[1 + i] = (uint8_t)(message.size >> (24 - 8 * i));
    if (message.size > 0)
        memcpy(out + 5, message.data, message.size);
    exchange->has_trailers = true;
    submit(exchange, fields, 2, true);
}

/* Answers with one header block that ends the stream ("Trailers-Only"). */
static void answer_grpc_error(struct exchange *exchange, int http_status,
                              const struct verdict *verdict)
{
    char http[8], status[8], message[GRPC_MESSAGE_MAX_BYTES], details[GRPC_DETAILS_MAX_BYTES];
    int http_size = snprintf(http, sizeof http, "%03d", http_status % 1000);
    int status_size = snprintf(status, sizeof status, "%d", (int)verdict->code);
    size_t message_size = grpc_percent_encode(slice_of_string(verdict->text), message);
    assert(message_size <= sizeof message);
    size_t details_size = grpc_encode_details(verdict, details);
    nghttp2_nv fields[5] = {
        field(SLICE(":status"), slice_of(http, (size_t)http_size)),
        constant_field(SLICE("content-type"), SLICE("application/grpc")),
        field(SLICE("grpc-status"), slice_of(status, (size_t)status_size)),
        field(SLICE("grpc-message"), slice_of(message, message_size)),
    };
    size_t count = 4;
    if (details_size > 0)
        fields[count++] = field(SLICE("grpc-status-details-bin"), slice_of(details, details_size));
    submit(exchange, fields, count, false);
}

static void h2_answer_grpc(struct exchange *exchange, int http_status,
                           const struct verdict *verdict, struct slice message)
{
    if (verdict_is_ok(verdict))
        answer_grpc_ok(exchange, message);
    else
        answer_grpc_error(exchange, http_status, verdict);
}

/* ---- time limits ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t check_exchange(struct connection *connection, struct exchange *exchange,
                               uint64_t now_ns)
{
    assert(exchange->connection == connection);
    struct h2 *h2 = connection->session;
    uint64_t deadline = UINT64_MAX;
    if (exchange->state == EXCHANGE_BODY) {
        deadline = server_exchange_body_deadline(exchange);
        if (now_ns >= deadline)
            nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, exchange->stream_id,
                                      NGHTTP2_CANCEL);
    } else if (exchange->reset_ns) {
        deadline = exchange->reset_ns;
        if (now_ns >= deadline)
            nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, exchange->stream_id,
                                      NGHTTP2_NO_ERROR);
    } else if (exchange->state == EXCHANGE_ANSWERED) {
        /* The client grants no window. */
        deadline = answer_deadline(exchange);
        if (now_ns >= deadline)
            server_connection_break(connection, CLOSE_WRITE_TIMEOUT);
    }
    return deadline;
}

static uint64_t check_idle(struct connection *connection, uint64_t now_ns)
{
    struct h2 *h2 = connection->session;
    if (h2->exchanges.count > 0)
        return UINT64_MAX;
    uint64_t deadline = idle_deadline(connection);
    if (now_ns >= deadline)
        terminate(connection, NGHTTP2_NO_ERROR, CLOSE_IDLE);
    return deadline;
}

static void begin_drain(struct connection *connection, enum close_reason reason)
{
    struct h2 *h2 = connection->session;
    if (h2->drain_ns || h2->terminated)
        return;
    h2->drain_ns = now_of(connection) | 1;
    h2->reason = (uint8_t)reason;
    /* First announce the end of new streams; send the number of the last stream when the client has
     * read that. */
    nghttp2_submit_shutdown_notice(h2->session);
    nghttp2_submit_ping(h2->session, NGHTTP2_FLAG_NONE, drain_ping);
    server_connection_watch(connection, now_of(connection) + DRAIN_NOTICE_S * SECOND_NS);
    server_connection_mark_dirty(connection);
}

static uint64_t check_age(struct connection *connection, uint64_t now_ns)
{
    const struct server_options *options = &connection->part->server->options;
    if (options->max_connection_age_ns <= 0)
        return UINT64_MAX;
    uint64_t age_end = connection->opened_ns + (uint64_t)options->max_connection_age_ns;
    if (now_ns < age_end)
        return age_end;
    begin_drain(connection, CLOSE_AGE);
    if (options->max_connection_age_grace_ns <= 0)
        return UINT64_MAX;
    uint64_t grace_end = age_end + (uint64_t)options->max_connection_age_grace_ns;
    if (now_ns >= grace_end)
        server_connection_break(connection, CLOSE_AGE);
    return grace_end;
}

static uint64_t check_keepalive(struct connection *connection, uint64_t now_ns)
{
    struct h2 *h2 = connection->session;
    const struct server_options *options = &connection->part->server->options;
    if (options->keepalive_time_ns <= 0 ||
        connection->eof) /* the client cannot answer a PING any more */
        return UINT64_MAX;
    if (connection->read_ns >= h2->ping_ns)
        h2->ping_ns = 0;
    if (h2->ping_ns) {
        uint64_t limit = options->keepalive_timeout_ns > 0 ? (uint64_t)options->keepalive_timeout_ns
                                                           : 20 * SECOND_NS;
        if (now_ns >= h2->ping_ns + limit)
            server_connection_break(connection, CLOSE_KEEPALIVE);
        return h2->ping_ns + limit;
    }
    uint64_t due = connection->read_ns + (uint64_t)options->keepalive_time_ns;
    if (now_ns < due)
        return due;
    nghttp2_submit_ping(h2->session, NGHTTP2_FLAG_NONE, NULL);
    h2->ping_ns = now_ns;
    return now_ns + SECOND_NS;
}

static uint64_t check_start(struct connection *connection, uint64_t now_ns)
{
    struct h2 *h2 = connection->session;
    uint64_t deadline = UINT64_MAX;
    if (!h2->settled) {
        deadline = connection->opened_ns + FIRST_SETTINGS_S * SECOND_NS;
        if (now_ns >= deadline)
            terminate(connection, NGHTTP2_SETTINGS_TIMEOUT, CLOSE_HEAD_TIMEOUT);
    }
    if (h2->block_ns) {
        uint64_t block_end = h2->block_ns + HEADER_BLOCK_S * SECOND_NS;
        if (now_ns >= block_end)
            terminate(connection, NGHTTP2_ENHANCE_YOUR_CALM, CLOSE_HEAD_TIMEOUT);
        deadline = earlier(deadline, block_end);
    }
    if (h2->drain_ns && !h2->goaway_sent) {
        uint64_t notice_end = h2->drain_ns + DRAIN_NOTICE_S * SECOND_NS;
        if (now_ns >= notice_end)
            say_last_word(h2);
        deadline = earlier(deadline, notice_end);
    }
    return deadline;
}

static uint64_t h2_check(struct connection *connection, uint64_t now_ns)
{
    struct h2 *h2 = connection->session;
    uint64_t next = check_start(connection, now_ns);
    for (struct list_link *link = h2->exchanges.first; link; link = link->next)
        next = earlier(next, check_exchange(connection, exchange_of_link(link), now_ns));
    next = earlier(next, h2_refusals_check(&h2->refusals, h2->session, now_ns));
    next = earlier(next, check_idle(connection, now_ns));
    next = earlier(next, check_age(connection, now_ns));
    next = earlier(next, check_keepalive(connection, now_ns));
    server_connection_mark_dirty(connection);
    return next;
}

static void h2_drain(struct connection *connection)
{
    begin_drain(connection, CLOSE_SHUTDOWN);
}

/* ---- start and end ---- */

static nghttp2_session_callbacks *callbacks;
static nghttp2_option *option;

static void make_shared(void)
{
    int rc = nghttp2_session_callbacks_new(&callbacks);
    rc |= nghttp2_option_new(&option);
    assert(rc == 0);
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk_recv);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame_recv);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_no_http_messaging(option, 1); /* h2_message.h has the rules */
    nghttp2_option_set_max_reserved_remote_streams(option, 0);
#ifdef PROFCOL_HAVE_NGHTTP2_RESET_LIMIT
    /* h2_limits.h limits resets, and knows which ones an early answer explains. */
    nghttp2_option_set_stream_reset_rate_limit(option, UINT64_MAX, UINT64_MAX);
#endif
}

static void h2_open(struct connection *connection)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_shared);
    assert(!connection->session);
    struct h2 *h2 = memory_zalloc(sizeof *h2);
    connection->session = h2;
    h2->idle_ns = now_of(connection);
    h2->reason = CLOSE_PROTOCOL_ERROR;
    h2_guard_init(&h2->guard, H2_SERVER, h2->idle_ns);
    int rc = nghttp2_session_server_new2(&h2->session, callbacks, connection, option);
    assert(rc == 0);
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
         connection->part->server->options.max_concurrent_streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, FRAME_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_HEAD_MAX_BYTES},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, settings,
                            sizeof settings / sizeof settings[0]);
    nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE, 0,
                                          CONNECTION_WINDOW_BYTES);
    server_connection_watch(connection, h2_check(connection, h2->idle_ns));
}

static void h2_close(struct connection *connection)
{
    struct h2 *h2 = connection->session;
    assert(!connection->in_input && !h2->direct); /* input ends its connection in the next round */
    connection->session = NULL;
    for (struct list_link *link; (link = list_pop(&h2->exchanges));)
        server_exchange_gone(exchange_of_link(link));
    h2_refusals_deinit(&h2->refusals, &connection->part->h2_refusals);
    nghttp2_session_del(h2->session);
    free(h2);
}

static bool h2_is_idle(const struct connection *connection)
{
    const struct h2 *h2 = connection->session;
    for (struct list_link *link = h2->exchanges.first; link; link = link->next)
        if (exchange_of_link(link)->state > EXCHANGE_BODY)
            return false;
    return !server_connection_has_unsent(connection);
}

const struct protocol h2_protocol = {
    .name = "h2",
    .open = h2_open,
    .input = h2_input,
    .body_places = h2_body_places,
    .body_filled = h2_body_filled,
    .eof = h2_eof,
    .output = h2_output,
    .answer = h2_answer,
    .answer_grpc = h2_answer_grpc,
    .check = h2_check,
    .is_idle = h2_is_idle,
    .drain = h2_drain,
    .close = h2_close,
};

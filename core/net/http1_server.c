/*
 * HTTP/1.1 on a connection: one request at a time. Further input waits in `pending` until the
 * request is answered.
 */
#include "core/base/budget.h"
#include "core/base/memory.h"
#include "core/net/http1_chunked.h"
#include "core/net/http1_head.h"
#include "core/net/server_private.h"

#include <assert.h>
#include <stdio.h>

enum {
    FIRST_HEAD_S = 10,
    KEEP_ALIVE_S = 60,
    EMPTY_LINES_MAX = 4, /* allowed before a request line (RFC 9112, section 2.2) */
    /* The rest of a refused request's body is read and thrown away up to here, as net/http does, so
     * that the connection can be used again. */
    SKIP_MAX_BYTES = 256 * 1024,
    SKIP_S = 5,
};

enum http1_state {
    HTTP1_HEAD,
    HTTP1_BODY, /* a body with Content-Length */
    HTTP1_CHUNKED,
    HTTP1_WAITING, /* waiting for the answer */
    HTTP1_SKIP,    /* the request was answered before its body had arrived; the body is skipped */
    HTTP1_SKIP_CHUNKED,
    HTTP1_OVER, /* no more input is processed */
};

struct http1 {
    struct exchange *exchange;
    uint8_t state;
    uint8_t empty_lines;
    bool keep_alive;    /* as requested by the client */
    bool old_version;   /* HTTP/1.0 */
    bool is_chunked;    /* the body of this request */
    bool has_begun;     /* PROTOCOL of the answer has been sent */
    bool may_hold_body; /* the client waits for "100 Continue", and perhaps never sends the body */
    bool processing;
    struct http1_scan scan;
    struct http1_chunked chunked;
    uint64_t remaining; /* of the body */
    size_t skip_left;   /* bytes of a chunked body that may still be skipped */
    uint64_t skip_ns;   /* time by which the body must be skipped */
    uint64_t head_ns;   /* time of the first byte of this head; 0: none yet */
    uint64_t idle_ns;   /* time of the end of the last request; 0: there was none */
    struct outgoing pending;
    size_t pending_charged; /* bytes charged to the client's budget */
};

static void http1_open(struct connection *connection)
{
    connection->session = memory_zalloc(sizeof(struct http1));
}

static const char *reason_phrase(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } phrases[] = {
        {200, "OK"},
        {204, "No Content"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
        if (phrases[i].status == status)
            return phrases[i].phrase;
    return "Status";
}

static void put(struct outgoing *out, const char *text)
{
    outgoing_add(out, text, strlen(text));
}

static void put_header(struct outgoing *out, struct slice name, struct slice value)
{
    outgoing_add(out, name.data, name.size);
    put(out, ": ");
    outgoing_add(out, value.data, value.size);
    put(out, "\r\n");
}

/* What each answer begins with. */
#define PROTOCOL "HTTP/1.1 "

static void put_status(struct connection *connection, struct outgoing *out, int status)
{
    struct http1 *http1 = connection->session;
    char line[128];
    int size =
        snprintf(line, sizeof line, "%s%d %s\r\nDate: %s\r\n", http1->has_begun ? "" : PROTOCOL,
                 status, reason_phrase(status), server_date(connection->part));
    outgoing_add(out, line, (size_t)size);
    http1->has_begun = false;
}

static void put_length(struct outgoing *out, size_t length)
{
    char line[48];
    int size = snprintf(line, sizeof line, "Content-Length: %zu\r\n", length);
    outgoing_add(out, line, (size_t)size);
}

static void put_configured(const struct server *server, const struct answer *answer,
                           struct outgoing *out)
{
    const struct config_pairs *pairs = &server->options.response_headers;
    for (size_t i = 0; i < pairs->count; i++)
        if (!server_answer_has(answer, pairs->items[i].name))
            put_header(out, slice_of_string(pairs->items[i].name),
                       slice_trim(slice_of_string(pairs->items[i].value), SLICE_BLANKS));
}

static void write_answer(struct connection *connection, const struct answer *answer,
                         const char *persistence, bool without_body)
{
    struct outgoing *out = &connection->part->scratch;
    out->size = 0;
    put_status(connection, out, answer->status);
    if (answer->content_type)
        put_header(out, SLICE("Content-Type"), slice_of_string(answer->content_type));
    if (answer->status != 204 && answer->status != 304)
        put_length(out, answer->body.size);
    for (size_t i = 0; i < answer->extra_count; i++)
        put_header(out, answer->extra[i].name, answer->extra[i].value);
    for (size_t i = 0; i < answer->cors_count; i++)
        put_header(out, answer->cors[i].name, answer->cors[i].value);
    put_configured(connection->part->server, answer, out);
    put(out, persistence);
    put(out, "\r\n");
    if (!without_body)
        outgoing_add(out, answer->body.data, answer->body.size);
    server_connection_send(connection, slice_of(out->data, out->size));
}

/* Whether the connection can serve another request after this one. Whether a chunked body is too
 * long shows later. */
static bool is_skippable(const struct http1 *http1)
{
    return http1->exchange->body_complete ||
           (!http1->may_hold_body && (http1->is_chunked || http1->remaining <= SKIP_MAX_BYTES));
}

static void http1_answer(struct exchange *exchange, const struct answer *answer)
{
    struct connection *connection = exchange->connection;
    struct http1 *http1 = connection->session;
    assert(http1->exchange == exchange); /* one request at a time */
    if (!is_skippable(http1) || answer->status == 413 || connection->eof ||
        connection->part->draining || connection->part->server->options.no_keep_alive)
        http1->keep_alive = false;
    const char *persistence = "";
    if (!http1->keep_alive)
        persistence = "Connection: close\r\n";
    else if (http1->old_version)
        persistence = "Connection: keep-alive\r\n";
    bool without_body = exchange->method_is_head || answer->status == 204 || answer->status == 304;
    write_answer(connection, answer, persistence, without_body);
    if (!http1->processing)
        server_connection_mark_dirty(connection);
}

/* Refuses invalid or late input for which there is no exchange. */
static void refuse(struct connection *connection, int status, enum close_reason reason)
{
    struct http1 *http1 = connection->session;
    assert(!http1->exchange);
    char text[64];
    int size = snprintf(text, sizeof text, "%d %s", status, reason_phrase(status));
    struct answer answer = {.status = status,
                            .content_type = "text/plain; charset=utf-8",
                            .body = slice_of(text, (size_t)size)};
    http1->state = HTTP1_OVER;
    write_answer(connection, &answer, "Connection: close\r\n", false);
    server_connection_finish(connection, reason, true);
}

static void refuse_over_budget(struct connection *connection)
{
    struct http1 *http1 = connection->session;
    assert(!http1->exchange);
    static const struct http_header retry = {SLICE("Retry-After"), SLICE("1")};
    struct answer answer = {.status = 503,
                            .content_type = "text/plain; charset=utf-8",
                            .body = slice_of_string(verdict_over_budget.text),
                            .extra = &retry,
                            .extra_count = 1};
    http1->state = HTTP1_OVER;
    server_count_over_budget(connection->part);
    write_answer(connection, &answer, "Connection: close\r\n", false);
    server_connection_finish(connection, CLOSE_REFUSED, true);
}

static void drop_exchange(struct http1 *http1)
{
    struct exchange *exchange = http1->exchange;
    http1->exchange = NULL;
    server_exchange_free(exchange);
}

/* Returns the time by which the head must be complete, or between requests, the next one must
 * begin. */
static uint64_t head_deadline(const struct connection *connection)
{
    const struct http1 *http1 = connection->session;
    const struct server_options *options = &connection->part->server->options;
    if (http1->head_ns == 0 && connection->part->waits_until_ns > 0)
        return connection->part->waits_until_ns;
    if (http1->head_ns == 0 && http1->idle_ns != 0)
        return http1->idle_ns + server_limit(options->idle_timeout_ns, KEEP_ALIVE_S);
    uint64_t since = http1->head_ns ? http1->head_ns : connection->opened_ns;
    return since + server_limit(options->read_header_timeout_ns, FIRST_HEAD_S);
}

static void expect_head(struct connection *connection)
{
    struct http1 *http1 = connection->session;
    http1->state = HTTP1_HEAD;
    http1->scan = (struct http1_scan){0};
    http1->head_ns = 0;
    http1->idle_ns = connection->part->worker->now_ns;
    http1->empty_lines = 0;
    server_connection_watch(connection, head_deadline(connection));
}

/* Skips the rest of the body of a request that was answered. */
static void begin_skipping(struct connection *connection)
{
    struct http1 *http1 = connection->session;
    assert(!http1->exchange && (http1->is_chunked || http1->remaining <= SKIP_MAX_BYTES));
    if (!http1->is_chunked && http1->remaining == 0) {
        expect_head(connection);
        return;
    }
    http1->state = http1->is_chunked ? HTTP1_SKIP_CHUNKED : HTTP1_SKIP;
    http1->skip_left = SKIP_MAX_BYTES;
    http1->skip_ns = connection->part->worker->now_ns + SKIP_S * SECOND_NS;
    server_connection_watch(connection, http1->skip_ns);
}

static bool is_skipping(const struct http1 *http1)
{
    return http1->state == HTTP1_SKIP || http1->state == HTTP1_SKIP_CHUNKED;
}

/* Ends a connection whose body is not worth skipping any further. Its request has its answer. */
static void stop_skipping(struct connection *connection, enum close_reason reason)
{
    struct http1 *http1 = connection->session;
    assert(is_skipping(http1));
    http1->state = HTTP1_OVER;
    server_connection_finish(connection, reason, true);
}

/* After an answer: continues with the next request, or ends the connection. */
static void leave_exchange(struct connection *connection)
{
    struct http1 *http1 = connection->session;
    assert(http1->exchange->state == EXCHANGE_ANSWERED);
    bool body_was_read = http1->exchange->body_complete;
    drop_exchange(http1);
    if (!http1->keep_alive) {
        http1->state = HTTP1_OVER;
        server_connection_finish(connection, body_was_read ? CLOSE_DONE : CLOSE_REFUSED, true);
    } else if (body_was_read) {
        expect_head(connection);
    } else {
        begin_skipping(connection);
    }
}

static bool was_answered(const struct http1 *http1)
{
    return http1->exchange && http1->exchange->state == EXCHANGE_ANSWERED;
}

static void begin_body(struct connection *connection)
{
    struct http1 *http1 = connection->session;
    assert(http1->exchange->state == EXCHANGE_BODY);
    http1->state = http1->is_chunked ? HTTP1_CHUNKED : HTTP1_BODY;
    server_connection_watch(connection, server_exchange_body_deadline(http1->exchange));
}

static void finish_body(struct http1 *http1)
{
    http1->state = HTTP1_WAITING;
    server_exchange_finish(http1->exchange);
}

/* Sets the headers, whose texts are in the exchange's store. Returns false if the budget has no
 * room. */
static bool set_headers(struct exchange *exchange, const struct http_headers *headers)
{
    if (!server_exchange_headers_room(exchange, headers->count))
        return false;
    assert(headers->count <= exchange->header_capacity);
    memcpy(exchange->headers.items, headers->items, headers->count * sizeof(struct http_header));
    exchange->headers.count = headers->count;
    return true;
}

static void begin_exchange(struct connection *connection, const struct http1_head *head)
{
    assert(!(head->chunked && head->has_length)); /* decide_framing refuses both */
    struct http1 *http1 = connection->session;
    struct exchange *exchange = http1->exchange;
    exchange->method = head->method;
    exchange->path = head->path;
    exchange->query = head->query;
    bool has_body = head->chunked || head->content_length > 0;
    exchange->body_complete = !has_body;
    http1->keep_alive = head->keep_alive;
    http1->old_version = head->minor == 0;
    http1->is_chunked = head->chunked;
    http1->chunked = (struct http1_chunked){0};
    http1->remaining = head->content_length;
    http1->may_hold_body = head->expect_continue;
    http1->state = HTTP1_WAITING;
    server_exchange_head_done(exchange, head->chunked ? -1 : (int64_t)head->content_length);
    if (was_answered(http1))
        return;
    if (!has_body) {
        finish_body(http1);
        return;
    }
    begin_body(connection);
    http1->may_hold_body = false;
    if (head->expect_continue)
        server_connection_send(connection, SLICE("HTTP/1.1 100 Continue\r\n\r\n"));
}

/* Parses a complete head. Returns the status to refuse it with; 0 if it is accepted.
 * *over_budget_out: the budget has no room. */
static int read_whole_head(struct exchange *exchange, struct slice bytes, struct http1_head *head,
                           bool *over_budget_out)
{
    struct http_header items[HTTP_FIELDS_MAX];
    struct http_headers headers = {items, 0};
    uint8_t *room = server_exchange_head_room(exchange, bytes.size);
    *over_budget_out = !room;
    if (!room)
        return 0;
    memcpy(room, bytes.data, bytes.size);
    int status = http1_head_parse(room, bytes.size, head, &headers);
    if (status == 0)
        *over_budget_out = !set_headers(exchange, &headers);
    return status;
}

/* Handles a complete head. */
static void on_head(struct connection *connection, struct slice bytes)
{
    struct http1 *http1 = connection->session;
    assert(!http1->exchange && http1->state == HTTP1_HEAD);
    struct http1_head head;
    bool is_over_budget = true;
    struct exchange *exchange = server_exchange_new(connection);
    int status = exchange ? read_whole_head(exchange, bytes, &head, &is_over_budget) : 0;
    if (status == 0 && !is_over_budget) {
        http1->exchange = exchange;
        begin_exchange(connection, &head);
        return;
    }
    if (exchange)
        server_exchange_free(exchange);
    if (is_over_budget)
        refuse_over_budget(connection);
    else
        refuse(connection, status, CLOSE_BAD_REQUEST);
}

/* The read_ functions remove bytes from *data. They return false if they need more bytes. */
static bool read_head(struct connection *connection, struct slice *data)
{
    struct http1 *http1 = connection->session;
    size_t size;
    int status;
    if (data->size == 0)
        return false;
    if (http1->head_ns == 0) {
        http1->head_ns = connection->part->worker->now_ns;
        server_connection_watch(connection, head_deadline(connection));
    }
    switch (http1_scan(&http1->scan, *data, &size, &status)) {
    case HTTP1_SCAN_MORE:
        return false;
    case HTTP1_SCAN_BAD:
        refuse(connection, status, CLOSE_BAD_REQUEST);
        return true;
    case HTTP1_SCAN_WHOLE:
        break;
    }
    http1->scan = (struct http1_scan){0};
    assert(size <= data->size);
    struct slice head = slice_of(data->data, size);
    *data = slice_of(data->data + size, data->size - size);
    if (size > 2)
        on_head(connection, head);
    else if (++http1->empty_lines > EMPTY_LINES_MAX)
        refuse(connection, 400, CLOSE_BAD_REQUEST);
    return true;
}

static bool read_body(struct http1 *http1, struct slice *data)
{
    size_t size = data->size < http1->remaining ? data->size : (size_t)http1->remaining;
    if (size == 0)
        return false;
    http1->remaining -= size;
    server_exchange_body(http1->exchange, slice_of(data->data, size));
    *data = slice_of(data->data + size, data->size - size);
    if (http1->remaining == 0 && !was_answered(http1))
        finish_body(http1);
    return true;
}

static bool read_chunked(struct connection *connection, struct slice *data)
{
    struct http1 *http1 = connection->session;
    if (data->size == 0)
        return false;
    struct slice payload;
    switch (http1_chunked_step(&http1->chunked, data, &payload)) {
    case HTTP1_CHUNKED_MORE:
        if (payload.size > 0)
            server_exchange_body(http1->exchange, payload);
        break;
    case HTTP1_CHUNKED_DONE:
        finish_body(http1);
        break;
    case HTTP1_CHUNKED_BAD:
        drop_exchange(http1);
        refuse(connection, 400, CLOSE_BAD_REQUEST);
        break;
    }
    return true;
}

static bool skip_body(struct connection *connection, struct slice *data)
{
    struct http1 *http1 = connection->session;
    size_t size = data->size < http1->remaining ? data->size : (size_t)http1->remaining;
    if (size == 0)
        return false;
    http1->remaining -= size;
    *data = slice_of(data->data + size, data->size - size);
    if (http1->remaining == 0)
        expect_head(connection);
    return true;
}

static bool skip_chunked(struct connection *connection, struct slice *data)
{
    struct http1 *http1 = connection->session;
    struct slice payload;
    size_t before = data->size;
    if (before == 0)
        return false;
    enum http1_chunked_result result = http1_chunked_step(&http1->chunked, data, &payload);
    size_t size = before - data->size;
    if (result == HTTP1_CHUNKED_BAD)
        stop_skipping(connection, CLOSE_BAD_REQUEST);
    else if (size > http1->skip_left)
        stop_skipping(connection, CLOSE_REFUSED);
    else if (result == HTTP1_CHUNKED_DONE)
        expect_head(connection);
    else
        http1->skip_left -= size;
    return true;
}

static bool read_step(struct connection *connection, struct slice *data)
{
    struct http1 *http1 = connection->session;
    switch ((enum http1_state)http1->state) {
    case HTTP1_HEAD:
        return read_head(connection, data);
    case HTTP1_BODY:
        return read_body(http1, data);
    case HTTP1_CHUNKED:
        return read_chunked(connection, data);
    case HTTP1_SKIP:
        return skip_body(connection, data);
    case HTTP1_SKIP_CHUNKED:
        return skip_chunked(connection, data);
    case HTTP1_OVER:
        *data = slice_of(data->data, 0);
        return false;
    case HTTP1_WAITING:
        break;
    }
    return false;
}

/* Processes as many bytes as possible, and returns the rest. */
static struct slice process(struct connection *connection, struct slice data)
{
    struct http1 *http1 = connection->session;
    assert(!http1->processing);
    http1->processing = true;
    for (;;) {
        if (was_answered(http1)) {
            leave_exchange(connection);
            /* The next answer waits until this one is sent. */
            if (server_connection_has_unsent(connection))
                break;
        }
        if (!read_step(connection, &data) && !was_answered(http1))
            break;
    }
    http1->processing = false;
    return data;
}

static void drop_pending(struct connection *connection)
{
    struct http1 *http1 = connection->session;
    if (!http1->pending.data)
        return;
    outgoing_deinit(&http1->pending);
    budget_release(connection->budget, http1->pending_charged);
    http1->pending_charged = 0;
}

/* Charges `pending`. If the budget has no room, a partial request is refused; if complete requests
 * wait after an unanswered one, that one is the last of the connection. */
static void charge_pending(struct connection *connection)
{
    struct http1 *http1 = connection->session;
    size_t more = http1->pending.capacity - http1->pending_charged;
    assert(http1->pending.capacity >= http1->pending_charged);
    if (budget_reserve(connection->budget, more)) {
        http1->pending_charged += more;
        return;
    }
    drop_pending(connection);
    if (connection->phase != CONNECTION_OPEN)
        return;
    if (http1->state == HTTP1_BODY || http1->state == HTTP1_CHUNKED)
        drop_exchange(http1);
    if (is_skipping(http1))
        stop_skipping(connection, CLOSE_REFUSED);
    else if (http1->state != HTTP1_WAITING)
        refuse_over_budget(connection);
    http1->keep_alive = false;
    connection->reading = false;
}

/* The last answer may not be sent yet: the next request waits for that. */
static bool is_between_requests(const struct http1 *http1)
{
    return http1->state == HTTP1_HEAD || is_skipping(http1);
}

static void keep_rest(struct connection *connection, struct slice rest)
{
    struct http1 *http1 = connection->session;
    if (rest.size == 0) {
        drop_pending(connection);
    } else if (http1->pending.data) {
        assert(rest.data + rest.size == http1->pending.data + http1->pending.size);
        memmove(http1->pending.data, rest.data, rest.size);
        http1->pending.size = rest.size;
    } else {
        outgoing_add(&http1->pending, rest.data, rest.size);
    }
    bool is_stuck = http1->state != HTTP1_HEAD || server_connection_has_unsent(connection);
    if (connection->phase == CONNECTION_OPEN)
        connection->reading =
            !connection->eof && !(is_stuck && rest.size > SERVER_PIPELINE_MAX_BYTES);
    if (rest.size > 0)
        charge_pending(connection);
}

static void http1_input(struct connection *connection, struct slice data)
{
    struct http1 *http1 = connection->session;
    if (http1->pending.size > 0) {
        outgoing_add(&http1->pending, data.data, data.size);
        data = slice_of(http1->pending.data, http1->pending.size);
    }
    if (server_connection_has_unsent(connection) && is_between_requests(http1))
        keep_rest(connection, data);
    else
        keep_rest(connection, process(connection, data));
}

static size_t http1_body_places(struct connection *connection, struct iovec *places)
{
    struct http1 *http1 = connection->session;
    if (http1->state != HTTP1_BODY || http1->pending.size > 0)
        return 0;
    uint8_t *place;
    http1->processing = true;
    size_t room = server_exchange_body_room(http1->exchange, &place);
    http1->processing = false;
    if (was_answered(http1))
        leave_exchange(connection);
    if (room == 0)
        return 0;
    assert(room <= http1->remaining);
    places[0] = (struct iovec){place, room};
    return 1;
}

static void http1_body_filled(struct connection *connection, const struct iovec *places,
                              size_t size)
{
    (void)places;
    struct http1 *http1 = connection->session;
    assert(http1->state == HTTP1_BODY);
    assert(size <= http1->remaining);
    http1->remaining -= size;
    server_exchange_body_filled(http1->exchange, size);
    if (http1->remaining > 0)
        return;
    http1->processing = true;
    finish_body(http1);
    http1->processing = false;
    if (was_answered(http1))
        leave_exchange(connection);
}

/* Sends the first bytes of the answer. A client that ended only its side waits for the rest; if the
 * client closed the connection, its kernel answers with a reset. There is no other way to
 * distinguish the two. */
static void probe(struct connection *connection)
{
    struct http1 *http1 = connection->session;
    assert(http1->state == HTTP1_WAITING);
    if (was_answered(http1) || http1->has_begun)
        return;
    http1->has_begun = true;
    server_connection_send(connection, SLICE(PROTOCOL));
}

/* A client that has ended its side may still wait for its answer. */
static void http1_eof(struct connection *connection)
{
    struct http1 *http1 = connection->session;
    bool is_idle = http1->state == HTTP1_HEAD;
    if (http1->state == HTTP1_WAITING) {
        probe(connection);
        return;
    }
    if (is_skipping(http1)) {
        stop_skipping(connection, CLOSE_CLIENT);
        return;
    }
    if (is_idle && server_connection_has_unsent(connection))
        return; /* http1_output ends it */
    server_connection_break(connection,
                            is_idle && http1->pending.size == 0 ? CLOSE_CLIENT : CLOSE_RESET);
}

static void http1_output(struct connection *connection)
{
    struct http1 *http1 = connection->session;
    if (!was_answered(http1) &&
        (!is_between_requests(http1) || server_connection_has_unsent(connection)))
        return;
    struct slice pending = slice_of(http1->pending.data, http1->pending.size);
    connection->in_input = true;
    keep_rest(connection, process(connection, pending));
    connection->in_input = false;
    if (connection->eof && http1->state == HTTP1_HEAD)
        server_connection_finish(connection, CLOSE_CLIENT, false);
}

/* Ends a connection whose client sends nothing, or only a part of a request. */
static void end_waiting(struct connection *connection)
{
    const struct http1 *http1 = connection->session;
    if (http1->head_ns != 0)
        refuse(connection, 408, CLOSE_HEAD_TIMEOUT);
    else
        server_connection_finish(connection, http1->idle_ns ? CLOSE_IDLE : CLOSE_HEAD_TIMEOUT,
                                 false);
}

static uint64_t http1_check(struct connection *connection, uint64_t now_ns)
{
    struct http1 *http1 = connection->session;
    uint64_t deadline = UINT64_MAX;
    switch ((enum http1_state)http1->state) {
    case HTTP1_HEAD:
        deadline = head_deadline(connection);
        if (now_ns >= deadline)
            end_waiting(connection);
        break;
    case HTTP1_BODY:
    case HTTP1_CHUNKED:
        if (was_answered(http1)) /* refused by a job; http1_output goes on */
            break;
        deadline = server_exchange_body_deadline(http1->exchange);
        if (now_ns >= deadline) {
            drop_exchange(http1);
            refuse(connection, 408, CLOSE_BODY_TIMEOUT);
        }
        break;
    case HTTP1_SKIP:
    case HTTP1_SKIP_CHUNKED:
        deadline = http1->skip_ns;
        if (now_ns >= deadline)
            stop_skipping(connection, CLOSE_BODY_TIMEOUT);
        break;
    case HTTP1_WAITING:
    case HTTP1_OVER:
        break;
    }
    return deadline;
}

static bool http1_is_idle(const struct connection *connection)
{
    const struct http1 *http1 = connection->session;
    bool is_complete = http1->exchange && http1->exchange->state > EXCHANGE_BODY;
    return !is_complete && !server_connection_has_unsent(connection);
}

static void http1_drain(struct connection *connection)
{
    struct http1 *http1 = connection->session;
    if (http1->state == HTTP1_HEAD && connection->part->waits_until_ns > 0)
        server_connection_watch(connection, head_deadline(connection));
    else if (http1->state == HTTP1_HEAD && http1->pending.size == 0)
        server_connection_finish(connection, CLOSE_SHUTDOWN, false);
    else if (is_skipping(http1))
        stop_skipping(connection, CLOSE_SHUTDOWN);
}

static void http1_close(struct connection *connection)
{
    struct http1 *http1 = connection->session;
    drop_pending(connection);
    connection->session = NULL;
    if (http1->exchange)
        server_exchange_gone(http1->exchange);
    free(http1);
}

const struct protocol http1_protocol = {
    .name = "http/1.1",
    .open = http1_open,
    .input = http1_input,
    .body_places = http1_body_places,
    .body_filled = http1_body_filled,
    .eof = http1_eof,
    .output = http1_output,
    .answer = http1_answer,
    .check = http1_check,
    .is_idle = http1_is_idle,
    .drain = http1_drain,
    .close = http1_close,
};

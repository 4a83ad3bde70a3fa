#include "core/base/budget.h"
#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/net/grpc_status.h"
#include "core/net/http_path.h"
#include "core/net/peer_key.h"
#include "core/net/server_measures.h"
#include "core/net/server_private.h"

#include <assert.h>
#include <stdio.h>
#include <strings.h>

/* Includes the memory of nghttp2 for a stream. */
enum { EXCHANGE_COST_BYTES = sizeof(struct exchange) + 1024 };

static const struct verdict deadline_exceeded = {
    .code = GRPC_DEADLINE_EXCEEDED, .retry_after_ns = -1, .text = "context deadline exceeded"};

struct exchange_store {
    struct exchange_store *next;
    uint8_t data[];
};

static void on_deadline(struct timer *timer);

struct exchange *server_exchange_new(struct connection *connection)
{
    assert(connection->phase == CONNECTION_OPEN);
    struct server_part *part = connection->part;
    if (!budget_reserve(connection->budget, EXCHANGE_COST_BYTES))
        return NULL;
    struct exchange *exchange = memory_alloc(sizeof *exchange);
    memset(exchange, 0, offsetof(struct exchange, answer_inline));
    exchange->part = part;
    exchange->connection = connection;
    exchange->budget = connection->budget;
    exchange->headers.items = exchange->inline_items;
    exchange->header_capacity = EXCHANGE_INLINE_HEADERS;
    exchange->store = exchange->inline_store;
    exchange->store_capacity = sizeof exchange->inline_store;
    exchange->body_expected = exchange->announced = -1;
    exchange->since_ns = part->worker->now_ns;
    exchange->deadline_ns = UINT64_MAX;
    exchange->deadline.on_timer = on_deadline;
    exchange->charged_bytes = EXCHANGE_COST_BYTES;
    part->live++;
    return exchange;
}

static void cancel_deadline(struct exchange *exchange)
{
    if (timer_is_set(&exchange->deadline))
        worker_cancel_timer(exchange->part->worker, &exchange->deadline);
}

static void free_store(struct exchange *exchange)
{
    while (exchange->more_store) {
        struct exchange_store *first = exchange->more_store;
        exchange->more_store = first->next;
        free(first);
    }
}

/* Ends the wait for exchange_authenticated, if there is one. */
static void cancel_auth(struct exchange *exchange)
{
    const struct server_auth *auth = &exchange->part->server->options.auth;
    if (!exchange->auth_waits)
        return;
    exchange->auth_waits = false;
    auth->cancel(auth, exchange);
    exchange->identity = NULL;
}

void server_exchange_free(struct exchange *exchange)
{
    struct server_part *part = exchange->part;
    assert(!exchange->held);
    server_user_release(exchange);
    cancel_auth(exchange);
    if (exchange->identity)
        part->server->options.auth.release(exchange->identity);
    cancel_deadline(exchange);
    budget_release(exchange->budget, exchange->charged_bytes);
    buffer_unref(exchange->body);
    if (exchange->headers.items != exchange->inline_items)
        free(exchange->headers.items);
    free_store(exchange);
    if (exchange->answer != exchange->answer_inline)
        free(exchange->answer);
    free(exchange);
    assert(part->live > 0);
    part->live--;
    server_part_unlive(part);
}

/* Calls on_gone, which may respond and so free the exchange. */
static void tell_gone(struct exchange *exchange)
{
    const struct server_user *user = server_user_of(exchange);
    assert(exchange->held);
    if (user->handler->on_gone)
        user->handler->on_gone(user->context, exchange);
}

void server_exchange_gone(struct exchange *exchange)
{
    assert(exchange->connection); /* called once only */
    exchange->connection = NULL;
    cancel_deadline(exchange);
    server_turn_leave(exchange);
    if (!exchange->held)
        server_exchange_free(exchange);
    else if (exchange->state == EXCHANGE_WAITING) /* otherwise the handler was called already, when
                                                     the deadline passed */
        tell_gone(exchange);
}

static bool charge(struct exchange *exchange, size_t size)
{
    if (!budget_reserve(exchange->budget, size))
        return false;
    exchange->charged_bytes += size;
    return true;
}

/* Adds memory to the store. Existing memory does not move, because slices point into it. */
static bool grow_store(struct exchange *exchange, size_t size)
{
    assert(size <= HTTP_HEAD_MAX_BYTES);
    if (!charge(exchange, sizeof(struct exchange_store) + size))
        return false;
    struct exchange_store *more = memory_alloc(sizeof *more + size);
    more->next = exchange->more_store;
    exchange->more_store = more;
    exchange->store = more->data;
    exchange->store_capacity = size;
    exchange->store_used = 0;
    return true;
}

uint8_t *server_exchange_head_room(struct exchange *exchange, size_t size)
{
    assert(exchange->store_used == 0);
    if (size > exchange->store_capacity && !grow_store(exchange, size))
        return NULL;
    exchange->store_used = size;
    return exchange->store;
}

bool server_exchange_store(struct exchange *exchange, struct slice bytes, struct slice *out)
{
    enum { STORE_BYTES = 4 * 1024 };
    if (bytes.size > exchange->store_capacity - exchange->store_used &&
        !grow_store(exchange, bytes.size > STORE_BYTES ? bytes.size : STORE_BYTES))
        return false;
    uint8_t *to = exchange->store + exchange->store_used;
    if (bytes.size > 0)
        memcpy(to, bytes.data, bytes.size);
    exchange->store_used += bytes.size;
    *out = slice_of(to, bytes.size);
    return true;
}

static bool grow_headers(struct exchange *exchange, size_t capacity)
{
    struct http_headers *headers = &exchange->headers;
    assert(headers->items == exchange->inline_items && headers->count < capacity);
    if (!charge(exchange, capacity * sizeof(struct http_header)))
        return false;
    headers->items = memory_array(capacity, sizeof(struct http_header));
    memcpy(headers->items, exchange->inline_items, sizeof exchange->inline_items);
    exchange->header_capacity = capacity;
    return true;
}

bool server_exchange_headers_room(struct exchange *exchange, size_t count)
{
    assert(exchange->headers.count == 0);
    return count <= exchange->header_capacity || grow_headers(exchange, count);
}

bool server_exchange_add_header(struct exchange *exchange, struct slice name, struct slice value)
{
    struct http_headers *headers = &exchange->headers;
    if (headers->count == exchange->header_capacity) {
        enum { MORE_HEADERS = HTTP_FIELDS_MAX + 2 }; /* :authority, content-type */
        if (headers->items != exchange->inline_items || !grow_headers(exchange, MORE_HEADERS))
            return false;
    }
    assert(headers->count < exchange->header_capacity);
    struct http_header *header = &headers->items[headers->count];
    if (!server_exchange_store(exchange, name, &header->name) ||
        !server_exchange_store(exchange, value, &header->value))
        return false;
    headers->count++;
    return true;
}

static void mark_answered(struct exchange *exchange)
{
    assert(exchange->connection && exchange->state != EXCHANGE_ANSWERED);
    cancel_deadline(exchange);
    cancel_auth(exchange);
    exchange->state = EXCHANGE_ANSWERED;
    exchange->since_ns = exchange->part->worker->now_ns;
}

/* Begins an answer. Returns false, and frees the exchange, if the client is gone. */
static bool begin_answer(struct exchange *exchange)
{
    bool was_answered = exchange->state == EXCHANGE_ANSWERED; /* by server_exchange_expire */
    assert(exchange->held || !was_answered);
    exchange->held = false;
    server_user_release(exchange);
    if (!exchange->connection) {
        server_exchange_free(exchange);
        return false;
    }
    if (!was_answered)
        mark_answered(exchange);
    return !was_answered;
}

/* Called after the answer was written, because it may point into the body. */
void server_exchange_release_body(struct exchange *exchange)
{
    buffer_unref(exchange->body);
    exchange->body = NULL;
}

static void respond_grpc(struct exchange *exchange, int http_status, const struct verdict *verdict,
                         struct slice message)
{
    assert(exchange->dialect == SERVER_GRPC);
    server_measure(exchange, (int)verdict->code, message.size);
    if (!begin_answer(exchange))
        return;
    exchange->connection->protocol->answer_grpc(exchange, http_status, verdict, message);
    server_exchange_release_body(exchange);
}

/* Answers for the server itself. */
void server_exchange_refuse(struct exchange *exchange, int status, const struct verdict *verdict)
{
    assert(exchange->connection && exchange->state != EXCHANGE_ANSWERED);
    const struct server_user *user = server_user_of(exchange);
    if (exchange->dialect == SERVER_GRPC) {
        exchange_respond_grpc(exchange, verdict, (struct slice){NULL, 0});
    } else if (user->handler->on_error) {
        user->handler->on_error(user->context, exchange, status, verdict);
        assert(exchange->state == EXCHANGE_ANSWERED);
    } else {
        struct http_header retry = {SLICE("retry-after"), SLICE("1")};
        exchange_respond(exchange, status, "text/plain; charset=utf-8",
                         slice_of_string(verdict->text), &retry, verdict->retry_after_ns >= 0);
    }
}

bool server_is_grpc(struct slice type)
{
    static const char name[] = "application/grpc";
    size_t size = sizeof name - 1;
    if (type.size < size || memcmp(type.data, name, size) != 0)
        return false;
    struct slice rest = slice_of(type.data + size, type.size - size);
    return rest.size == 0 || rest.data[0] == ';' || slice_is(rest, "+proto") ||
           (rest.size > 6 && memcmp(rest.data, "+proto;", 7) == 0);
}

/* Sets the deadline, which counts from now. As in gRPC-Go, the last of several headers counts, and
 * all must be valid. Returns false after answering. */
static bool read_grpc_timeout(struct exchange *exchange)
{
    const struct http_headers *headers = &exchange->headers;
    int64_t timeout_ns = -1;
    for (size_t i = 0; i < headers->count; i++) {
        struct error err;
        if (!slice_is(headers->items[i].name, "grpc-timeout") ||
            grpc_parse_timeout(headers->items[i].value, &timeout_ns, &err))
            continue;
        struct verdict verdict = verdict_of(GRPC_INTERNAL, "malformed grpc-timeout: %s", err.text);
        respond_grpc(exchange, 400, &verdict, (struct slice){NULL, 0});
        return false;
    }
    if (timeout_ns >= 0)
        exchange->deadline_ns = worker_now(exchange->part->worker) + (uint64_t)timeout_ns;
    return true;
}

bool server_exchange_has_expired(const struct exchange *exchange)
{
    return exchange->part->worker->now_ns >= exchange->deadline_ns;
}

/* Answers the client. A later answer of the handler only frees the exchange. */
void server_exchange_expire(struct exchange *exchange)
{
    assert(exchange->dialect == SERVER_GRPC && exchange->connection);
    bool is_handlers = exchange->state == EXCHANGE_WAITING;
    server_turn_leave(exchange);
    mark_answered(exchange);
    exchange->connection->protocol->answer_grpc(exchange, 200, &deadline_exceeded,
                                                (struct slice){NULL, 0});
    if (is_handlers)
        tell_gone(exchange);
    else if (!exchange->held)
        server_exchange_release_body(exchange);
}

static void on_deadline(struct timer *timer)
{
    server_exchange_expire(container_of(timer, struct exchange, deadline));
}

/* False after having answered. */
static bool start_deadline(struct exchange *exchange)
{
    if (exchange->deadline_ns == UINT64_MAX)
        return true;
    if (server_exchange_has_expired(exchange)) {
        server_exchange_expire(exchange);
        return false;
    }
    worker_set_timer(exchange->part->worker, &exchange->deadline,
                     exchange->deadline_ns - exchange->part->worker->now_ns);
    return true;
}

static bool is_grpc(const struct exchange *exchange)
{
    return exchange->part->server->options.accept_grpc &&
           exchange->connection->protocol == &h2_protocol &&
           server_is_grpc(http_header_get(&exchange->headers, "content-type"));
}

/* Checks the compression of a gRPC request, with the answers of gRPC-Go. Returns false after
 * answering. */
static bool check_grpc_encoding(struct exchange *exchange)
{
    struct slice name = http_header_get(&exchange->headers, "grpc-encoding");
    int compression =
        slice_is(name, compression_names[COMPRESSION_NONE]) ? -1 : compression_by_name(name);
    if (compression >= 0 && compression_in_grpc((enum compression)compression)) {
        exchange->compression = (uint8_t)compression;
        return true;
    }
    struct verdict verdict = verdict_of(
        GRPC_UNIMPLEMENTED, "grpc: Decompressor is not installed for grpc-encoding \"%.*s\"",
        SLICE_ARG(name));
    server_exchange_refuse(exchange, 415, &verdict);
    return false;
}

/* Checks Content-Encoding as the Collector does: "identity" is not a name, and "" must be in the
 * list to allow an uncompressed body. */
static bool check_content_encoding(struct exchange *exchange)
{
    struct slice name = http_header_get(&exchange->headers, "content-encoding");
    int compression = compression_by_name(name);
    if (name.size > 0 && compression == COMPRESSION_NONE)
        compression = -1;
    bool one = http_header_count(&exchange->headers, "content-encoding") <= 1;
    if (one && compression >= 0 &&
        (exchange->part->server->options.compression_mask & 1u << compression)) {
        exchange->compression = (uint8_t)compression;
        return true;
    }
    struct verdict verdict =
        verdict_of(GRPC_INVALID_ARGUMENT, "unsupported Content-Encoding: %.*s", SLICE_ARG(name));
    server_exchange_refuse(exchange, 400, &verdict);
    return false;
}

void server_exchange_refuse_head(struct exchange *exchange, int status,
                                 const struct verdict *verdict)
{
    assert(exchange->state == EXCHANGE_HEAD || exchange->state == EXCHANGE_BODY);
    exchange->method_is_head = slice_is(exchange->method, "HEAD");
    exchange->dialect = is_grpc(exchange) ? SERVER_GRPC : SERVER_HTTP;
    if (exchange->dialect == SERVER_GRPC)
        exchange_respond_grpc(exchange, verdict, (struct slice){NULL, 0});
    else
        exchange_respond(exchange, status, "text/plain; charset=utf-8",
                         slice_of_string(verdict->text), NULL, 0);
}

/* Refuses a request if the listener accepts only plain HTTP or only gRPC. */
static bool check_dialect(struct exchange *exchange)
{
    const struct server_options *options = &exchange->part->server->options;
    if (is_grpc(exchange)) {
        exchange->dialect = SERVER_GRPC;
        if (!read_grpc_timeout(exchange))
            return false;
        if (slice_is(exchange->method, "POST"))
            return start_deadline(exchange);
        struct verdict verdict = verdict_of(
            GRPC_INTERNAL, "Received a HEADERS frame with :method \"%.*s\" which should be POST",
            SLICE_ARG(exchange->method));
        respond_grpc(exchange, 405, &verdict, (struct slice){NULL, 0});
        return false;
    }
    exchange->dialect = SERVER_HTTP;
    if (options->accept_http)
        return true;
    struct slice type = http_header_get(&exchange->headers, "content-type");
    bool is_h2 = exchange->connection->protocol == &h2_protocol;
    char text[192];
    int size = snprintf(text, sizeof text, "invalid gRPC request content-type \"%.*s\"%s\n",
                        (int)(type.size > 64 ? 64 : type.size), (const char *)type.data,
                        is_h2 ? "" : ": this endpoint speaks gRPC, which needs HTTP/2");
    exchange_respond(exchange, 415, "text/plain; charset=utf-8", slice_of(text, (size_t)size), NULL,
                     0);
    return false;
}

/* ---- authentication ---- */

static void refuse_unauthenticated(struct exchange *exchange, const struct verdict *verdict)
{
    assert(!verdict_is_ok(verdict) && !exchange->auth_waits);
    struct server_part *part = exchange->part;
    exchange->is_challenged = verdict->code == GRPC_UNAUTHENTICATED;
    if (part->server->unauthenticated)
        counter_add(part->server->unauthenticated, part->worker->index, 1);
    server_exchange_refuse(exchange, verdict_http_status(verdict), verdict);
}

/* False after having answered. */
static bool authenticate(struct exchange *exchange)
{
    const struct server_auth *auth = &exchange->part->server->options.auth;
    struct verdict why;
    if (!auth->begin)
        return true;
    switch (auth->begin(auth, exchange, &why)) {
    case SERVER_AUTH_ACCEPTED:
        return true;
    case SERVER_AUTH_LATER:
        exchange->auth_waits = true;
        return true;
    case SERVER_AUTH_REFUSED:
        break;
    }
    refuse_unauthenticated(exchange, &why);
    return false;
}

void exchange_authenticated(struct exchange *exchange, const struct verdict *verdict)
{
    assert(exchange->auth_waits && exchange->connection);
    exchange->auth_waits = false;
    if (!verdict_is_ok(verdict)) {
        refuse_unauthenticated(exchange, verdict);
        return;
    }
    if (exchange->state != EXCHANGE_AUTHENTICATING)
        return; /* its body still arrives */
    exchange->state = EXCHANGE_BODY;
    server_exchange_finish_authenticated(exchange);
}

void exchange_set_identity(struct exchange *exchange, void *identity)
{
    exchange->identity = identity;
}

void *exchange_identity(const struct exchange *exchange)
{
    assert(!exchange->auth_waits);
    return exchange->identity;
}

/* Whether the handler wants the request. False after having answered. */
static bool ask_handler(struct exchange *exchange)
{
    server_user_take(exchange);
    const struct server_user *user = exchange->user;
    bool is_wanted = user->handler->on_head(user->context, exchange);
    assert(is_wanted == (exchange->state == EXCHANGE_HEAD));
    return is_wanted;
}

/* A browser asks before its request, and without its credentials, so no handler sees this. */
static void answer_preflight(struct exchange *exchange)
{
    struct http_header headers[CORS_HEADERS_MAX];
    const struct cors *cors = exchange->part->server->cors;
    struct answer answer = {.status = 204, .cors = headers};
    answer.cors_count = cors_preflight(cors, &exchange->headers, headers);
    server_measure(exchange, answer.status, 0);
    if (begin_answer(exchange))
        exchange->connection->protocol->answer(exchange, &answer);
}

void server_exchange_head_done(struct exchange *exchange, int64_t length)
{
    assert(exchange->connection && exchange->state == EXCHANGE_HEAD);
    exchange->method_is_head = slice_is(exchange->method, "HEAD");
    exchange->since_ns = exchange->part->worker->now_ns;
    exchange->is_measured = exchange->part->server->options.measures_requests;
    if (!check_dialect(exchange))
        return;
    const struct server *server = exchange->part->server;
    if (server->cors && exchange->dialect == SERVER_HTTP &&
        cors_is_preflight(exchange->method, &exchange->headers)) {
        answer_preflight(exchange);
        return;
    }
    bool is_grpc_call = exchange->dialect == SERVER_GRPC;
    if ((!is_grpc_call && !authenticate(exchange)) || !ask_handler(exchange) ||
        (is_grpc_call && !authenticate(exchange)))
        return;
    if (is_grpc_call ? !check_grpc_encoding(exchange) : !check_content_encoding(exchange))
        return;
    exchange->has_route = true;
    server_exchange_begin_body(exchange, length);
}

bool server_answer_has(const struct answer *answer, const char *name)
{
    return answer->content_type && strcasecmp(name, "content-type") == 0;
}

/* ---- public functions ---- */

enum server_dialect exchange_dialect(const struct exchange *exchange)
{
    return (enum server_dialect)exchange->dialect;
}

struct worker *exchange_worker(const struct exchange *exchange)
{
    return exchange->part->worker;
}

struct slice exchange_method(const struct exchange *exchange)
{
    return exchange->method;
}

struct slice exchange_path(const struct exchange *exchange)
{
    return exchange->path;
}

struct slice exchange_query(const struct exchange *exchange)
{
    return exchange->query;
}

const struct http_headers *exchange_headers(const struct exchange *exchange)
{
    return &exchange->headers;
}

const char *exchange_peer(const struct exchange *exchange)
{
    struct connection *connection = exchange->connection;
    if (!connection)
        return "";
    if (connection->peer[0] == '\0')
        peer_print((const struct sockaddr *)&connection->address, connection->peer);
    return connection->peer;
}

uint64_t exchange_peer_key(const struct exchange *exchange)
{
    return exchange->connection ? exchange->connection->peer_key : 0;
}

struct budget *exchange_budget(const struct exchange *exchange)
{
    return exchange->budget;
}

bool exchange_is_secure(const struct exchange *exchange)
{
    return exchange->part->server->tls != NULL;
}

bool exchange_is_abandoned(const struct exchange *exchange)
{
    assert(exchange->held);
    return !exchange->connection || exchange->state == EXCHANGE_ANSWERED ||
           server_exchange_has_expired(exchange);
}

void exchange_match_route(struct exchange *exchange)
{
    exchange->has_route = true;
}

void exchange_set_data(struct exchange *exchange, void *data)
{
    exchange->data = data;
}

void *exchange_data(const struct exchange *exchange)
{
    return exchange->data;
}

uint64_t exchange_received_bytes(const struct exchange *exchange)
{
    return exchange->body_received;
}

struct buffer *exchange_take_body(struct exchange *exchange)
{
    assert(exchange->body && exchange->held);
    struct buffer *body = exchange->body;
    exchange->body = NULL;
    return body;
}

void exchange_respond(struct exchange *exchange, int status, const char *content_type,
                      struct slice body, const struct http_header *extra, size_t extra_count)
{
    enum { EXTRA_MAX = 8 };
    server_measure(exchange, status, body.size);
    if (!begin_answer(exchange))
        return;
    const char *challenge = exchange->part->server->options.auth.challenge;
    struct http_header more[EXTRA_MAX + 1];
    if (exchange->is_challenged && challenge) {
        assert(extra_count <= EXTRA_MAX);
        if (extra_count > 0)
            memcpy(more, extra, extra_count * sizeof *more);
        more[extra_count++] =
            (struct http_header){SLICE("www-authenticate"), slice_of_string(challenge)};
        extra = more;
    }
    const struct cors *cors = exchange->part->server->cors;
    struct http_header cors_items[CORS_HEADERS_MAX];
    struct answer answer = {status, content_type, body, extra, extra_count, cors_items, 0};
    if (cors)
        answer.cors_count = cors_headers(cors, exchange->method, &exchange->headers, cors_items);
    exchange->connection->protocol->answer(exchange, &answer);
    server_exchange_release_body(exchange);
}

bool exchange_redirect(struct exchange *exchange)
{
    char room[HTTP_PATH_MAX_BYTES];
    struct http_header location = {.name = SLICE("location")};
    if (!http_path_redirect(exchange->path, exchange->query, room, &location.value))
        return false;
    exchange_respond(exchange, 307, NULL, slice_of("", 0), &location, 1);
    return true;
}

void exchange_respond_grpc(struct exchange *exchange, const struct verdict *verdict,
                           struct slice message)
{
    bool is_late = !verdict_is_ok(verdict) && server_exchange_has_expired(exchange);
    respond_grpc(exchange, 200, is_late ? &deadline_exceeded : verdict, message);
}

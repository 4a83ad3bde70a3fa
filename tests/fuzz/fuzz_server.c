/*
 * The receiver's request path: HTTP/1 and HTTP/2 bytes against a server without sockets, split at
 * boundaries that the input chooses.
 *
 * The first byte has flags (see the enum), the second is the seed of the splits, the rest is the
 * input of the client. A header `authorization` that begins with n is refused, one that begins with
 * l decided later.
 */
#include "core/base/container_of.h"
#include "core/base/source_accounts.h"
#include "core/net/server_private.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    ANSWER_LATER = 1,
    SMALL_BUDGET = 2,
    WITH_PREFACE =
        4, /* sends HTTP/2's preface and SETTINGS, so that mutations need not find them */
    SLOW_SOCKET = 8,
    BYTE_BY_BYTE = 16,
    TIME_PASSES = 32,
    DRAIN_MIDWAY = 64,
    HALF_CLOSE = 128, /* at the end */
};

enum { HELD_MAX = 256 };

struct target {
    struct worker worker;
    struct budget budget;
    struct source_accounts accounts;
    struct server *server;
    struct exchange *held[HELD_MAX];
    size_t held_count;
    struct exchange *asked[HELD_MAX]; /* wait for their authentication */
    size_t asked_count;
    uint8_t flags;
    uint32_t random;
    size_t accepts; /* the socket's room */
};

static uint32_t next_random(struct target *target)
{
    target->random ^= target->random << 13;
    target->random ^= target->random >> 17;
    target->random ^= target->random << 5;
    return target->random;
}

static void answer(struct exchange *exchange)
{
    static const struct http_header extra = {SLICE("Retry-After"), SLICE("1")};
    struct buffer *body = exchange_take_body(exchange);
    struct verdict verdict = verdict_try_later(GRPC_UNAVAILABLE, 5, "not now");
    if (exchange_dialect(exchange) == SERVER_GRPC)
        exchange_respond_grpc(exchange, body->size % 2 ? &verdict_ok : &verdict,
                              buffer_slice(body));
    else
        exchange_respond(exchange, 200, "text/plain", buffer_slice(body), &extra, body->size % 2);
    buffer_unref(body);
}

static bool on_head(void *context, struct exchange *exchange)
{
    (void)context;
    (void)exchange_peer(exchange);
    if (exchange_dialect(exchange) == SERVER_HTTP && exchange_redirect(exchange))
        return false;
    if (exchange_path(exchange).size != 2)
        return true;
    if (exchange_dialect(exchange) == SERVER_GRPC)
        exchange_respond_grpc(exchange,
                              &(struct verdict){.code = GRPC_UNIMPLEMENTED, .retry_after_ns = -1},
                              (struct slice){NULL, 0});
    else
        exchange_respond(exchange, 404, NULL, SLICE("no"), NULL, 0);
    return false;
}

static void on_request(void *context, struct exchange *exchange)
{
    struct target *target = context;
    if ((target->flags & ANSWER_LATER) && target->held_count < HELD_MAX)
        target->held[target->held_count++] = exchange;
    else
        answer(exchange);
}

static void on_gone(void *context, struct exchange *exchange)
{
    struct target *target = context;
    for (size_t i = 0; i < target->held_count; i++)
        if (target->held[i] == exchange)
            return;
    abort(); /* on_gone before on_request */
}

/* ---- authentication ---- */

static const struct verdict unauthenticated = {
    .code = GRPC_UNAUTHENTICATED, .retry_after_ns = -1, .text = "no"};

static enum server_auth_result begin_auth(const struct server_auth *auth, struct exchange *exchange,
                                          struct verdict *why)
{
    struct target *target = auth->context;
    struct slice value = http_header_get(exchange_headers(exchange), "authorization");
    *why = unauthenticated;
    if (value.size > 0 && value.data[0] == 'n')
        return SERVER_AUTH_REFUSED;
    if (value.size == 0 || value.data[0] != 'l' || target->asked_count == HELD_MAX)
        return SERVER_AUTH_ACCEPTED;
    target->asked[target->asked_count++] = exchange;
    return SERVER_AUTH_LATER;
}

static void forget(struct target *target, size_t which)
{
    target->asked[which] = target->asked[--target->asked_count];
}

static void cancel_auth(const struct server_auth *auth, struct exchange *exchange)
{
    struct target *target = auth->context;
    size_t i = 0;
    while (i < target->asked_count && target->asked[i] != exchange)
        i++;
    assert(i < target->asked_count); /* it has not been told before */
    forget(target, i);
}

static void decide_one(struct target *target)
{
    if (target->asked_count == 0)
        return;
    size_t which = next_random(target) % target->asked_count;
    struct exchange *exchange = target->asked[which];
    forget(target, which);
    exchange_authenticated(exchange, next_random(target) % 2 ? &verdict_ok : &unauthenticated);
}

static const struct server_handler handler = {
    .on_head = on_head, .on_request = on_request, .on_gone = on_gone};

static ssize_t sink(void *context, struct slice data)
{
    struct target *target = context;
    size_t take = data.size < target->accepts ? data.size : target->accepts;
    target->accepts -= take;
    return (ssize_t)take;
}

static void answer_one(struct target *target)
{
    if (target->held_count == 0)
        return;
    size_t which = next_random(target) % target->held_count;
    struct exchange *exchange = target->held[which];
    target->held[which] = target->held[--target->held_count];
    answer(exchange);
}

/* Returns the only connection; NULL if the server has closed it. */
static struct connection *only_connection(struct target *target)
{
    struct list_link *link = target->server->parts->connections.first;
    return link ? container_of(link, struct connection, link) : NULL;
}

/* Copies bytes directly into the places that the server offers. Returns the rest. */
static struct slice send_to_place(struct connection *connection, struct slice piece)
{
    struct iovec places[BODY_PLACES_MAX];
    size_t room;
    server_connection_body_places(connection, places, &room);
    size_t size = room < piece.size ? room : piece.size;
    if (size == 0)
        return piece;
    for (size_t i = 0, done = 0; done < size; i++) {
        size_t part = places[i].iov_len < size - done ? places[i].iov_len : size - done;
        memcpy(places[i].iov_base, piece.data + done, part);
        done += part;
    }
    server_connection_body_filled(connection, places, size);
    return slice_of(piece.data + size, piece.size - size);
}

static void send_piece(struct target *target, struct slice piece)
{
    struct connection *connection = only_connection(target);
    if (!connection || !connection->reading)
        return;
    piece = send_to_place(connection, piece);
    /* In separate memory, so that a read past it is detected. */
    uint8_t *copy = malloc(piece.size ? piece.size : 1);
    assert(copy);
    memcpy(copy, piece.data, piece.size);
    if (piece.size > 0)
        server_connection_input(connection, slice_of(copy, piece.size));
    free(copy);
    server_connection_settle(connection);
    server_part_round(target->server->parts);
}

static void between_pieces(struct target *target)
{
    if (target->flags & SLOW_SOCKET) {
        target->accepts = next_random(target) % 64;
        struct connection *connection = only_connection(target);
        if (connection) {
            server_connection_flush(connection);
            server_connection_settle(connection);
        }
    }
    if (next_random(target) % 4 == 0)
        answer_one(target);
    if (target->asked_count > 0 && next_random(target) % 2 == 0)
        decide_one(target);
    if (target->flags & TIME_PASSES)
        worker_advance(&target->worker, target->worker.now_ns + next_random(target));
    server_part_round(target->server->parts);
}

static void on_drained(void *context)
{
    (void)context;
}

static void send_all(struct target *target, struct slice rest)
{
    size_t half = rest.size / 2;
    while (rest.size > 0 && only_connection(target)) {
        size_t size = target->flags & BYTE_BY_BYTE ? 1 : 1 + next_random(target) % (2 * rest.size);
        if (size > rest.size)
            size = rest.size;
        send_piece(target, slice_of(rest.data, size));
        rest = slice_of(rest.data + size, rest.size - size);
        between_pieces(target);
        if ((target->flags & DRAIN_MIDWAY) && rest.size <= half && !target->server->parts->draining)
            server_drain(target->server, &target->worker, on_drained, NULL);
    }
}

static void half_close(struct target *target)
{
    struct connection *connection = only_connection(target);
    if (!connection)
        return;
    server_connection_end_of_input(connection);
    server_connection_settle(connection);
    server_part_round(target->server->parts);
}

static void begin(struct target *target)
{
    target->budget.limit_bytes = target->flags & SMALL_BUDGET ? 12 << 10 : 16 << 20;
    source_accounts_init(&target->accounts, &target->budget);
    worker_init_manual(&target->worker, 0, 1000 * SECOND_NS);
    static const char *origins[] = {"https://*.a", "http://b"};
    static const struct cors_settings cors = {.enabled = true, .allowed_origins = {origins, 2}};
    const struct server_options options = {.accept_http = true,
                                           .cors = &cors,
                                           .ping_min_time_ns = 1000,
                                           .accept_grpc = true,
                                           .max_body_bytes = 64 << 10,
                                           .max_message_bytes = 64 << 10,
                                           .max_concurrent_streams = 10,
                                           .auth = {.context = target,
                                                    .begin = begin_auth,
                                                    .cancel = cancel_auth,
                                                    .challenge = "Basic"},
                                           .budget = &target->budget,
                                           .accounts = &target->accounts};
    struct error err;
    target->server = server_new(&options, &handler, target, &target->worker, 1, &err);
    server_start(target->server);
    worker_advance(&target->worker, target->worker.now_ns);
    target->accepts = SIZE_MAX;
    struct connection *connection =
        server_connection_open(target->server->parts, -1, NULL, sink, target);
    assert(connection);
    if (target->flags & WITH_PREFACE)
        send_piece(target, SLICE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"));
}

static void end(struct target *target)
{
    if (target->random % 2)
        while (target->held_count > 0)
            answer_one(target);
    server_stop(target->server, &target->worker);
    server_free(target->server);
    while (target->held_count > 0)
        answer_one(target);
    worker_deinit(&target->worker);
    assert(budget_used(&target->budget) == 0);
    assert(source_accounts_most_used(&target->accounts) == 0);
    source_accounts_deinit(&target->accounts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    static struct target target;
    memset(&target, 0, sizeof target);
    target.flags = data[0];
    target.random = data[1] + 1u;
    begin(&target);
    send_all(&target, slice_of(data + 2, size - 2));
    if (target.flags & HALF_CLOSE)
        half_close(&target);
    end(&target);
    return 0;
}

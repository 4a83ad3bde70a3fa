/*
 * server: accepts connections and delivers complete requests: HTTP/1.1 and HTTP/2 on one listener,
 * cleartext or TLS, with gRPC on top.
 *
 * One worker polls the listening descriptor and posts accepted descriptors to the least loaded
 * worker; a connection stays on its worker. Limits, timeouts and framing rules are in
 * docs/architecture.md. A request is announced when its head has arrived (so that a wrong path,
 * method, media type or a missing credential is answered before the body is read), and delivered
 * when it is complete, decompressed, in one buffer.
 *
 * Owner: the receiver owns the server, and may pass it on to its successor; the server owns an
 * exchange until exchange_respond.
 *
 * Thread: server_new/free on main; handlers and exchange_ functions on the exchange's worker.
 */
#ifndef PROFCOL_CORE_NET_SERVER_H
#define PROFCOL_CORE_NET_SERVER_H

#include "core/base/buffer.h"
#include "core/base/metrics.h"
#include "core/base/worker.h"
#include "core/net/compression.h"
#include "core/net/cors.h"
#include "core/net/http_types.h"
#include "core/net/tls.h"

struct server;
struct exchange;
struct verdict;

enum server_dialect { SERVER_HTTP, SERVER_GRPC }; /* of an exchange */

enum server_auth_result { SERVER_AUTH_ACCEPTED, SERVER_AUTH_REFUSED, SERVER_AUTH_LATER };

/* Decides by its head whether a request may be served. Plain HTTP is asked before on_head, so
 * unknown paths are refused, too; gRPC after on_head, as in gRPC-Go. The server answers what is
 * refused. While the result is awaited, the body may arrive, but is not delivered. */
struct server_auth {
    void *context;
    const struct config_strings *request_params; /* for `begin`; may be NULL */
    /* REFUSED: sets *why. LATER: calls exchange_authenticated when it knows, never inside. NULL:
     * every request may be served. */
    enum server_auth_result (*begin)(const struct server_auth *auth, struct exchange *exchange,
                                     struct verdict *why);
    /* The exchange ends before exchange_authenticated, which must not be called any more. */
    void (*cancel)(const struct server_auth *auth, struct exchange *exchange);
    /* Drops the identity of an accepted exchange (exchange_set_identity). */
    void (*release)(void *identity);
    const char *challenge; /* WWW-Authenticate of a refusal; NULL: none */
};

struct server_options {
    const char *endpoint;  /* host:port; with transport unix, a path, or @ and an abstract name */
    const char *transport; /* tcp, tcp4, tcp6, unix */
    const struct tls_server_settings *tls;
    bool accept_http;         /* plain HTTP requests (1.1 and 2) */
    bool accept_grpc;         /* application/grpc over HTTP/2 */
    size_t max_body_bytes;    /* before and after decompression, of plain HTTP */
    size_t max_message_bytes; /* of gRPC */
    uint32_t max_concurrent_streams;
    size_t read_buffer_bytes;  /* the most to read at once, except directly into a body; 0: 64 KiB,
                                  which is also the most */
    size_t write_buffer_bytes; /* HTTP/2 frames are collected up to here for a write; 0: 64 KiB */
    uint32_t compression_mask; /* of plain HTTP: bit per enum compression, set if accepted */
    bool include_metadata;
    bool no_keep_alive;       /* HTTP/1.1: a connection serves one request */
    uint32_t max_connections; /* 0: 1024 */
    bool makes_room; /* at max_connections, an old connection without a complete request gives
                        way to a new one */
    uint32_t max_connections_per_ip; /* 0: no limit */
    int64_t read_timeout_ns, read_header_timeout_ns, write_timeout_ns,
        idle_timeout_ns; /* 0: the server's own limits */
    int64_t max_connection_age_ns, max_connection_age_grace_ns, max_connection_idle_ns,
        keepalive_time_ns, keepalive_timeout_ns; /* 0: off */
    /* Of HTTP/2: the shortest time between a client's PING frames; 0: the server's own limits. */
    int64_t ping_min_time_ns;
    bool ping_without_stream; /* ping_min_time_ns counts while no stream is open, too; otherwise two
                                 hours do */
    struct config_pairs response_headers;
    struct server_auth auth;
    const struct cors_settings *cors; /* of plain HTTP; NULL: off */
    const char *label;                /* for logs: "receiver otlp" */
    struct budget *budget;            /* for data that connections receive; NULL: none */
    struct source_accounts *accounts; /* accounts of clients, children of the budget; NULL: none */
    struct metrics *metrics;
    bool measures_requests; /* their durations and sizes (server_measures.h) */
    bool uses_reserve; /* may use the descriptors that connections of other servers must leave free
                        */
};

/* Functions of the receiver that the server calls. */
struct server_handler {
    /* The head has arrived: path without query, method, headers. Return true to read the body, or
     * false after exchange_respond or exchange_respond_grpc. If the exchange ends before
     * on_request, nothing more is called, so exchange_set_data must not own anything here. */
    bool (*on_head)(void *context, struct exchange *exchange);
    /* The complete request has arrived (exchange_take_body). Answer now or later, exactly once. */
    void (*on_request)(void *context, struct exchange *exchange);
    /* Between on_request and the answer, the client went away or its deadline (grpc-timeout)
     * passed. exchange_respond must still be called, and then only frees the exchange. May be NULL.
     */
    void (*on_gone)(void *context, struct exchange *exchange);
    /* The server refuses a plain HTTP request that on_head accepted (too large, cannot be
     * decompressed, over budget). Respond at once, with `status`, a body with verdict->text
     * in the request's encoding, and Retry-After if verdict->retry_after_ns >= 0. NULL: the server
     * answers in text/plain. The server itself answers gRPC requests. */
    void (*on_error)(void *context, struct exchange *exchange, int status,
                     const struct verdict *verdict);
};

/* Creates a server that is bound and listens, but accepts only after server_start. Returns NULL,
 * with err set, if the address cannot be used. */
struct server *server_new(const struct server_options *options,
                          const struct server_handler *handler, void *context,
                          struct worker *workers, unsigned worker_count, struct error *err);
/* For a reload: lets servers that are created from now on have the address of a server with this
 * label, whose descriptor they share, so that no connection is refused when that one drains. Main.
 */
void server_offer_addresses(const char *label);
/* Ends that for all addresses that nobody has taken. */
void server_withdraw_addresses(void);
/* For a reload: whether the server can go on with other options whose settings are equal: the
 * authenticator must be the same one. */
bool server_can_pass(const struct server *server, const struct server_options *options);
/* Ends the offer for the address of a server that will be passed on. */
void server_keep_address(struct server *server);
/* Passes the server, with its listener and connections, on to another user, whose options are equal
 * but in memory that lives as long as that user. New requests are for the new handler. Those whose
 * head has been accepted stay with the former one until they are answered. Main, while all workers
 * wait. The new user stops and frees the server. */
void server_pass(struct server *server, const struct server_options *options,
                 const struct server_handler *handler, void *context);
/* Call it on each worker for the former user, with its context. Calls on_left, perhaps inside this
 * call, when all requests that it has taken on that worker are answered, and its handler is not
 * called any more; not after server_stop. */
void server_leave(struct server *server, struct worker *worker, const void *context,
                  void (*on_left)(void *context), void *left_context);
/* Begins to accept connections. */
void server_start(struct server *server);
/* Returns the port that the server listens on; 0 for a Unix socket. */
uint16_t server_port(const struct server *server);
/* Call it on each worker. Accepts no new requests (GOAWAY, Connection: close) and lets open
 * exchanges finish. Calls on_drained, perhaps inside this call, when none is left on that worker.
 * The first worker also closes the listener. */
void server_drain(struct server *server, struct worker *worker, void (*on_drained)(void *context),
                  void *context);
/* The same while the process goes on: connections without a request wait up to 5 s for the next
 * one, whose answer ends them, because a client may just be sending it. The first worker accepts
 * clients whose handshake has begun, so call it there first, and elsewhere when that has returned.
 */
void server_retire(struct server *server, struct worker *worker, void (*on_drained)(void *context),
                   void *context);
/* Closes all connections of that worker at once; unanswered exchanges end. After this has run on
 * every worker, call server_free on main (the loops free the memory that libuv still uses). */
void server_stop(struct server *server, struct worker *worker);
/* Frees the server; see server_stop. */
void server_free(struct server *server);

/* Returns whether the exchange is plain HTTP or gRPC. */
enum server_dialect exchange_dialect(const struct exchange *exchange);
/* Returns the worker that the exchange belongs to. */
struct worker *exchange_worker(const struct exchange *exchange);
/* Returns the method, such as "POST". */
struct slice exchange_method(const struct exchange *exchange);
/* Return the path without the query, and the query after the '?'. */
struct slice exchange_path(const struct exchange *exchange);
struct slice exchange_query(const struct exchange *exchange);
/* Returns the headers of the request, with names in lower case. */
const struct http_headers *exchange_headers(const struct exchange *exchange);
/* Returns the client's address without the port. */
const char *exchange_peer(const struct exchange *exchange);
/* Returns the client's number (core/net/peer_key.h). 0 if it has no address, or is gone. */
uint64_t exchange_peer_key(const struct exchange *exchange);
/* Returns the budget to charge for data made from the request: its client's account, or the
 * server's budget. It outlives the exchange. */
struct budget *exchange_budget(const struct exchange *exchange);
/* Whether the connection is TLS. */
bool exchange_is_secure(const struct exchange *exchange);
/* In on_head: says that the path is one of the handler's, so that a refusal is measured with it.
 * Accepting the request says the same. */
void exchange_match_route(struct exchange *exchange);
/* Set and return a pointer of the handler's own. */
void exchange_set_data(struct exchange *exchange, void *data);
void *exchange_data(const struct exchange *exchange);
/* After SERVER_AUTH_LATER: the result, with which the request goes on or is refused. */
void exchange_authenticated(struct exchange *exchange, const struct verdict *verdict);
/* Set and return what the authenticator knows of the client: a pointer of its own, which the
 * exchange releases. While the result is awaited, it may be anything. */
void exchange_set_identity(struct exchange *exchange, void *identity);
void *exchange_identity(const struct exchange *exchange);
/* From on_request to the answer: whether the client no longer waits for it, because it went away
 * or its deadline has passed. */
bool exchange_is_abandoned(const struct exchange *exchange);
/* From on_request on: returns the size in bytes of the body (gRPC: the message) as it was sent,
 * compressed or not. */
uint64_t exchange_received_bytes(const struct exchange *exchange);
/* In on_request: returns the decompressed body (gRPC: the message); the caller gets the reference.
 */
struct buffer *exchange_take_body(struct exchange *exchange);

/* Counts a request that its receiver refuses because there is no memory for what is in it, in
 * profcol_server_requests_over_budget. */
void exchange_count_over_budget(const struct exchange *exchange);

/* Answers a plain HTTP request. content_type may be NULL; body is copied. extra: more headers, may
 * be NULL. Closes the connection afterwards if the request's body was not read. */
void exchange_respond(struct exchange *exchange, int status, const char *content_type,
                      struct slice body, const struct http_header *extra, size_t extra_count);
/* Answers a plain HTTP request whose path is not clean (core/net/http_path.h) with 307 and the
 * clean path, as Go's ServeMux does. Returns false, without answering, for any other path. */
bool exchange_redirect(struct exchange *exchange);
/* Answers a gRPC request: OK with a message, or a status with text and, if retry_after_ns >= 0,
 * RetryInfo in grpc-status-details-bin. After the deadline, any status other than OK becomes
 * DEADLINE_EXCEEDED. */
void exchange_respond_grpc(struct exchange *exchange, const struct verdict *verdict,
                           struct slice message);

#endif

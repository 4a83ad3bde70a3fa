/*
 * server_private: what the files of the server share. Only server_*.c, http1_server.c and
 * h2_server.c include it.
 *
 * server_listener.c accepts, server_connection.c moves bytes, a protocol (http1_server.c,
 * h2_server.c) finds requests in them, server_exchange.c handles one request, server.c starts and
 * stops the server, server_users.c passes it on.
 *
 * Owner: a connection belongs to the part of the server on its worker. An exchange belongs to its
 * connection, and from on_request until the answer to the handler, too. A part is freed when
 * nothing on its worker refers to it any more; the server, when server_free was called and the last
 * part is freed.
 *
 * Thread: a part and everything that it owns stay on their worker; the server's atomics are shared.
 */
#ifndef PROFCOL_CORE_NET_SERVER_PRIVATE_H
#define PROFCOL_CORE_NET_SERVER_PRIVATE_H

#include "core/base/list.h"
#include "core/base/log.h"
#include "core/base/verdict.h"
#include "core/net/h2_guard.h"
#include "core/net/peer_counts.h"
#include "core/net/server.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/uio.h>

#define SECOND_NS ((uint64_t)1000000000)

enum {
    SERVER_READ_BYTES = 64 * 1024,
    SERVER_READ_LEAST_BYTES = 8 * 1024,
    SERVER_WRITE_BYTES = 64 * 1024,
    SERVER_PIPELINE_MAX_BYTES = 16 * 1024, /* kept of requests after the one being answered */
    EXCHANGE_INLINE_BYTES = 1024,
    EXCHANGE_INLINE_HEADERS = 20,
    FRAMES_AHEAD_MAX = 16, /* read together with the current one */
    BODY_PLACES_MAX = 1 + 2 * FRAMES_AHEAD_MAX,
};

/* Why a connection was closed; a label of profcol_server_connections_closed. */
enum close_reason {
    CLOSE_CLIENT,         /* the client ended the connection */
    CLOSE_RESET,          /* the client reset the connection */
    CLOSE_DONE,           /* after an answer, as one of both sides requested */
    CLOSE_REFUSED,        /* answered before the body was read */
    CLOSE_BAD_REQUEST,    /* not HTTP, or ambiguous HTTP */
    CLOSE_PROTOCOL_ERROR, /* of HTTP/2 */
    CLOSE_FLOOD,          /* too many useless HTTP/2 frames (h2_limits.h) */
    CLOSE_HEADER_LIST,    /* HTTP/2 headers over the limit */
    CLOSE_TLS_FAILED,
    CLOSE_HANDSHAKE_TIMEOUT,
    CLOSE_HEAD_TIMEOUT,
    CLOSE_BODY_TIMEOUT,
    CLOSE_WRITE_TIMEOUT,
    CLOSE_IDLE,
    CLOSE_AGE,
    CLOSE_KEEPALIVE,      /* no answer to our PING */
    CLOSE_TOO_MANY_PINGS, /* more often than ping_min_time_ns allows */
    CLOSE_NO_DESCRIPTOR,
    CLOSE_PER_IP,    /* its address has reached max_connections_per_ip */
    CLOSE_MADE_ROOM, /* for a new connection (options.makes_room) */
    CLOSE_SHUTDOWN,
    CLOSE_REASON_COUNT,
};

struct connection;
struct bound_address;

/* A growing buffer for bytes to send. */
struct outgoing {
    uint8_t *data;
    size_t size;
    size_t sent;
    size_t capacity;
};
/* Appends bytes. */
void outgoing_add(struct outgoing *out, const void *data, size_t size);
/* Returns where the next `size` bytes may be written. The caller adds the number of bytes it wrote
 * to out->size. */
uint8_t *outgoing_room(struct outgoing *out, size_t size);
/* Frees the memory. */
void outgoing_deinit(struct outgoing *out);

/* An answer to a plain HTTP request, before a protocol has encoded it. */
struct answer {
    int status;
    const char *content_type;
    struct slice body;
    const struct http_header *extra;
    size_t extra_count;
    const struct http_header *cors;
    size_t cors_count;
};

struct protocol {
    const char *name;
    void (*open)(struct connection *connection);
    /* Processes received bytes; keeps a copy of those that it cannot use yet. */
    void (*input)(struct connection *connection, struct slice data);
    /* Returns the memory into which the next bytes can be read directly, as an array of at most
     * BODY_PLACES_MAX iovecs; 0 if there is none. body_filled is called afterwards with the number
     * of bytes read. May be NULL. */
    size_t (*body_places)(struct connection *connection, struct iovec *places);
    void (*body_filled)(struct connection *connection, const struct iovec *places, size_t size);
    /* Called when the client has ended its side of the connection. */
    void (*eof)(struct connection *connection);
    /* Sends answers. Called once per round for a dirty connection, and whenever everything queued
     * was sent. */
    void (*output)(struct connection *connection);
    void (*answer)(struct exchange *exchange, const struct answer *answer);
    /* http_status: 200, unless the head was refused. NULL for a protocol without gRPC. */
    void (*answer_grpc)(struct exchange *exchange, int http_status, const struct verdict *verdict,
                        struct slice message);
    /* Checks time limits, and may close the connection. Returns the time of the next check
     * (monotonic). */
    uint64_t (*check)(struct connection *connection, uint64_t now_ns);
    /* Whether it has no complete request whose answer is still to be sent. */
    bool (*is_idle)(const struct connection *connection);
    void (*drain)(struct connection *connection);
    /* Ends its exchanges and frees the session. */
    void (*close)(struct connection *connection);
};
extern const struct protocol http1_protocol;
extern const struct protocol h2_protocol;

/* Who takes the requests of a part: the handler and its context. After server_pass, requests that
 * were taken before stay with the former user. */
struct server_user {
    struct list_link link; /* of part->former_users */
    const struct server_handler *handler;
    void *context;
    size_t exchanges;               /* that it has taken, and the handler may still be called for */
    void (*on_left)(void *context); /* NULL: server_leave was not called yet */
    void *left_context;
};

struct server_part {
    struct server *server;
    struct server_user *user;
    struct list former_users; /* since server_pass; few, and usually none */
    struct worker *worker;
    atomic_uint load; /* connections, including those posted to the worker */
    size_t live;      /* references from connections, exchanges and handles */
    bool started;
    bool draining;
    uint64_t waits_until_ns; /* while draining, connections without a request may wait; 0: no */
    bool stopped;
    struct list connections;
    size_t connection_count; /* connections that server_drain waits for */
    struct list dirty;       /* connections with something to send */
    unsigned handshakes;     /* TLS handshakes that continued in this turn of the loop */
    struct log_interval failed_handshakes;
    struct list buried;      /* closed, without a libuv handle; freed next round */
    struct list ready;       /* exchanges that wait for a later turn, oldest first */
    struct timer turn_timer; /* set while `ready` has any */
    uint64_t turn;           /* the turn of the loop that turn_bytes counts */
    size_t turn_bytes;       /* bytes of requests delivered to the handler in `turn` */
    unsigned h2_refusals;    /* open streams that were answered without an exchange */
    uint8_t *read_buffer;    /* options.read_buffer_bytes; valid for one call of `input` */
    uint8_t *plain_buffer;   /* decrypted */
    struct outgoing scratch; /* an answer while it is encoded */
    struct outgoing batch;   /* HTTP/2 frames that are sent together */
    uint8_t frame_heads[FRAMES_AHEAD_MAX][H2_FRAME_HEAD_BYTES]; /* valid as long as read_buffer */
    uv_prepare_t prepare;
    uint64_t date_ns; /* time of `date`, monotonic */
    char date[40];
    struct server_measure *measures; /* newest first */
    void (*on_drained)(void *context);
    void *drained_context;
    struct post start_post;
};

struct server {
    struct server_options options;
    char *label;
    struct worker *workers;
    struct server_part *parts;
    unsigned part_count;
    struct tls_context *tls;
    struct cors *cors; /* NULL: off */

    int listen_fd;
    struct bound_address *bound; /* of listen_fd; NULL: not bound */
    struct list_link bound_link; /* of its servers */
    int descriptor_limit;        /* connections get lower descriptors only */
    int reserve_fd; /* closed briefly to refuse a connection if no descriptors are left */
    bool is_unix;
    uint16_t port;
    uv_poll_t listen_poll;
    bool listening; /* listen_poll is open; first worker only */
    bool lingering; /* of `listening`: only handshakes that had begun go on (listener_retire) */
    struct timer accept_timer;
    struct post resume_post;
    atomic_bool resume_posted;
    atomic_bool accept_paused; /* by max_connections */
    atomic_uint connections;
    unsigned max_connections;
    struct peer_counts *peers;          /* NULL: max_connections_per_ip is off */
    struct log_interval refused_per_ip; /* first worker only */
    struct log_interval times_full;     /* first worker only */

    atomic_uint references; /* of the owner and each started part */
    struct gauge *open_gauge;
    struct gauge *limit_gauge;
    struct counter *over_budget;     /* NULL, like the gauges: no metrics */
    struct counter *unauthenticated; /* NULL also without options.auth */
    _Atomic(struct counter *) closed[CLOSE_REASON_COUNT];
};

/* Returns a time limit in nanoseconds: the configured one, or `seconds` if that is 0. */
static inline uint64_t server_limit(int64_t configured_ns, unsigned seconds)
{
    return configured_ns > 0 ? (uint64_t)configured_ns : seconds * SECOND_NS;
}

/* Drops a reference; the last one frees the server. */
void server_unref(struct server *server);
/* Count a closed connection, or a request refused because the budget has no room. */
void server_count_closed(struct server *server, unsigned worker, enum close_reason reason);
void server_count_over_budget(struct server_part *part);
/* Call it after decrementing `live`: may end the part. */
void server_part_unlive(struct server_part *part);
/* Runs once per turn of the loop, before polling: sends the answers of dirty connections, and frees
 * closed ones. */
void server_part_round(struct server_part *part);
/* Calls on_drained if the part drains and has no connections left. */
void server_part_check_drained(struct server_part *part);
/* Returns the value of the Date header. */
const char *server_date(struct server_part *part);

/* ---- server_users.c ---- */

/* Sets the user of each part, before the server starts; frees all users at its end. */
void server_users_init(struct server *server, const struct server_handler *handler, void *context);
void server_users_deinit(struct server *server);
/* Returns the user that an exchange belongs to; before one has taken it, the current one. */
struct server_user *server_user_of(const struct exchange *exchange);
/* The current user takes the exchange: its head is complete. */
void server_user_take(struct exchange *exchange);
/* The handler will not be called any more. May be called again. */
void server_user_release(struct exchange *exchange);
/* Tells former users that have no exchanges left, and frees them. */
void server_users_let_go(struct server_part *part);
/* At the stop: tells no former user any more. */
void server_users_stop(struct server_part *part);

/* ---- server.c ---- */

/* Sets the members that are 0 to their defaults, and limits others. */
void server_options_complete(struct server_options *options);
/* Computes the limits of the options for a server that has started, or has not. */
void server_set_limits(struct server *server);

/* ---- server_listener.c ---- */

/* Binds the listening descriptor. Returns false, with err set, if the address cannot be used. */
bool listener_open(struct server *server, struct error *err);
void listener_start(struct server *server); /* on the first worker */
/* Ends it, on the first worker. Clients that are in the middle of TCP's handshake get some time,
 * and part 0 is not drained before. They go to the server that has the port on other addresses now,
 * or to this one. If another server has the same address now, this one ends at once. */
void listener_retire(struct server *server);
void listener_stop(struct server *server);  /* at once; on the first worker; may be called again */
void listener_close(struct server *server); /* the descriptors; on main or first worker */
/* Call it when a connection has ended, on any worker. key: the client's (peer_key). */
void listener_connection_ended(struct server *server, uint64_t key);

/* ---- server_connection.c ---- */

enum connection_phase {
    CONNECTION_HANDSHAKE, /* TLS */
    CONNECTION_DETECT,    /* the first bytes decide the protocol */
    CONNECTION_OPEN,
    CONNECTION_CLOSING,   /* sends queued bytes, then closes */
    CONNECTION_LINGERING, /* everything is sent; input is discarded, because closing now would reset
                             the connection and could destroy the answer */
    CONNECTION_CLOSED,
};

struct connection {
    struct server_part *part;
    struct list_link link;  /* of part->connections or part->buried */
    struct list_link dirty; /* of part->dirty */
    const struct protocol *protocol;
    void *session; /* of the protocol */
    struct tls_stream *tls;
    int fd;
    uint8_t phase;
    uint8_t reason; /* enum close_reason, counted when it closes */
    bool counted;   /* in connection_count */
    bool reading;   /* the protocol wants input */
    bool eof_waits; /* the input has ended, after bytes that are not read yet */
    bool eof;
    bool broken; /* writing or reading failed */
    bool linger;
    bool in_input;
    int polled; /* what the poll handle waits for */
    uv_poll_t poll;
    struct timer timer;
    uint64_t opened_ns;
    uint64_t read_ns;    /* time of the last read */
    uint64_t stalled_ns; /* when sending began to stall; 0: nothing waits */
    uint64_t linger_ns;
    size_t lingered_bytes;
    struct outgoing out; /* waits for the socket (of cleartext) */
    uint8_t detect[4];
    uint8_t detect_size;
    struct sockaddr_in6 address; /* or sockaddr_in */
    char peer[INET6_ADDRSTRLEN];
    uint64_t peer_key;     /* of the address */
    struct budget *budget; /* of the client; may be NULL */
    /* For tests and fuzzing: replaces the socket. Returns the number of bytes accepted, or -1. */
    ssize_t (*sink)(void *context, struct slice data);
    void *sink_context;
};

/* Opens a connection, and takes over fd. fd is -1 with a sink: the caller then plays the socket
 * with server_connection_input, server_connection_end_of_input and server_part_round. */
struct connection *server_connection_open(struct server_part *part, int fd,
                                          const struct sockaddr *address,
                                          ssize_t (*sink)(void *context, struct slice data),
                                          void *sink_context);
/* Processes received bytes. */
void server_connection_input(struct connection *connection, struct slice data);
/* Returns the memory into which input may be read directly (at most BODY_PLACES_MAX places) and its
 * size; 0 if there is none. Then call server_connection_body_filled with the number of bytes
 * read. */
size_t server_connection_body_places(struct connection *connection, struct iovec *places,
                                     size_t *room_out);
void server_connection_body_filled(struct connection *connection, const struct iovec *places,
                                   size_t size);
/* Call it when the client has ended its side. */
void server_connection_end_of_input(struct connection *connection);
/* Queues bytes and tries to send them. An error sets `broken`. */
void server_connection_send(struct connection *connection, struct slice data);
/* Sends queued bytes when the socket is writable again. */
void server_connection_flush(struct connection *connection);
/* Whether bytes are queued, here or in TLS. */
bool server_connection_has_unsent(const struct connection *connection);
/* Makes the next round call the protocol's output. */
void server_connection_mark_dirty(struct connection *connection);
/* Closes the connection when all queued bytes are sent. linger: the client may still be sending. */
void server_connection_finish(struct connection *connection, enum close_reason reason, bool linger);
/* Closes the connection at once. Protocol functions call server_connection_break instead. */
void server_connection_close(struct connection *connection, enum close_reason reason);
/* Closes the oldest connection of a part that waits for its client, if there is one; not `newest`.
 * Not from protocol functions. */
void server_connection_make_room(struct server_part *part, const struct connection *newest);
/* Closes the connection in the next round. */
void server_connection_break(struct connection *connection, enum close_reason reason);
/* Makes sure that `check` runs at this time or earlier. */
void server_connection_watch(struct connection *connection, uint64_t deadline_ns);
/* Closes a broken connection, or one with nothing left to send; otherwise updates the events to
 * poll for. */
void server_connection_settle(struct connection *connection);

/* ---- server_exchange.c ---- */

enum exchange_state {
    EXCHANGE_HEAD,
    EXCHANGE_BODY,
    EXCHANGE_AUTHENTICATING, /* complete, and waits for exchange_authenticated */
    EXCHANGE_READY,          /* complete, in part->ready */
    EXCHANGE_DECOMPRESSING,  /* in a job */
    EXCHANGE_WAITING,        /* on_request was called */
    EXCHANGE_ANSWERED,
};

struct exchange {
    struct server_part *part;
    struct connection *connection; /* NULL: gone */
    struct server_user *user;      /* that has taken it; NULL: none yet, or its handler is done */
    struct list_link link;         /* of an HTTP/2 connection */
    struct budget *budget;         /* the connection's */
    struct list_link ready;        /* of part->ready */
    int32_t stream_id;
    uint8_t state;
    uint8_t dialect;
    uint8_t compression;
    bool held;          /* by a job, or by the handler from on_request to exchange_respond */
    bool body_complete; /* the client has sent everything */
    bool method_is_head;
    bool has_trailers;
    bool auth_waits;    /* for exchange_authenticated */
    bool is_measured;   /* its head is complete */
    bool has_route;     /* its path is one of the handler's */
    bool is_challenged; /* its answer has WWW-Authenticate */
    void *identity;
    bool malformed; /* HTTP/2: its stream is being reset */
    void *data;
    struct slice method, path, query;
    struct http_headers headers;
    size_t header_capacity;
    size_t store_used;
    uint8_t *store; /* memory for the next name or value: inline_store, or in more_store */
    size_t store_capacity;
    struct exchange_store *more_store; /* newest first */
    struct buffer *body;
    int64_t body_expected; /* size in bytes, -1 if unknown */
    uint64_t body_received;
    uint64_t since_ns;     /* start of the body; once answered, of the answer */
    uint64_t deadline_ns;  /* of grpc-timeout; UINT64_MAX: none */
    struct timer deadline; /* for deadline_ns, set from the end of the head to the answer */
    uint8_t prefix[5];     /* of the gRPC message */
    uint8_t prefix_size;
    size_t charged_bytes;
    int64_t announced; /* HTTP/2: content-length; -1: none */
    int64_t arrived;   /* HTTP/2: bytes of DATA, even after the answer */
    uint64_t reset_ns; /* HTTP/2: when to tell the client to stop sending; 0: no need */
    /* Of HTTP/2: the answer while it is sent. */
    uint8_t *answer;
    size_t answer_size, answer_sent;
    uint8_t answer_inline[64];
    struct http_header inline_items[EXCHANGE_INLINE_HEADERS];
    uint8_t inline_store[EXCHANGE_INLINE_BYTES];
};

/* Creates an exchange. Returns NULL if the budget has no room. */
struct exchange *server_exchange_new(struct connection *connection);
/* Frees an exchange. */
void server_exchange_free(struct exchange *exchange);
/* Call it when the client is gone: frees the exchange, unless it is held. */
void server_exchange_gone(struct exchange *exchange);
/* Returns memory for a whole HTTP/1 head and its headers; NULL if the budget has no room. */
uint8_t *server_exchange_head_room(struct exchange *exchange, size_t size);
/* Makes room for this number of headers, before the first is added. Returns false if the budget has
 * no room. */
bool server_exchange_headers_room(struct exchange *exchange, size_t count);
/* Copy a header, or bytes. Return false if the budget has no room. */
bool server_exchange_add_header(struct exchange *exchange, struct slice name, struct slice value);
bool server_exchange_store(struct exchange *exchange, struct slice bytes, struct slice *out);

/* Call it instead of head_done to refuse the head: answers with the status, or over gRPC with the
 * verdict. */
void server_exchange_refuse_head(struct exchange *exchange, int status,
                                 const struct verdict *verdict);
/* Checks the complete head. May answer the exchange: check `state` afterwards. length: of the body
 * in bytes, -1 if unknown. */
void server_exchange_head_done(struct exchange *exchange, int64_t length);
/* Whether the content type is one of gRPC. */
bool server_is_grpc(struct slice type);
/* Answers for the server itself: in the request's protocol, with the status or the verdict. */
void server_exchange_refuse(struct exchange *exchange, int status, const struct verdict *verdict);
/* Whether the deadline of grpc-timeout has passed. */
bool server_exchange_has_expired(const struct exchange *exchange);
/* Answers DEADLINE_EXCEEDED. A later answer of the handler only frees the exchange. */
void server_exchange_expire(struct exchange *exchange);
/* Frees the body. */
void server_exchange_release_body(struct exchange *exchange);

/* Whether the answer itself sets this header, so that a configured one does not count. */
bool server_answer_has(const struct answer *answer, const char *name);

/* ---- server_body.c ---- */

/* The functions for the body may answer the exchange: check `state` afterwards. length: -1 if
 * unknown. */
void server_exchange_begin_body(struct exchange *exchange, int64_t length);
void server_exchange_body(struct exchange *exchange, struct slice data);
size_t server_exchange_body_room(struct exchange *exchange, uint8_t **data_out);
void server_exchange_body_filled(struct exchange *exchange, size_t size);
/* Call it when the client has sent everything. The request is delivered to the handler: at once,
 * after a job has decompressed its body, or when its turn comes. */
void server_exchange_finish(struct exchange *exchange);
/* The same, once the client is authenticated. */
void server_exchange_finish_authenticated(struct exchange *exchange);
/* Delivers the request to the handler. */
void server_exchange_deliver(struct exchange *exchange);
/* Returns the time by which more of the body must have arrived, by its minimum rate. */
uint64_t server_exchange_body_deadline(const struct exchange *exchange);

/* ---- server_turn.c ---- */

/* Many requests may be complete at once. One turn of the loop delivers requests until they add up
 * to 1 MiB; the rest waits, oldest first, for the next turns. Small requests do not wait, so that
 * they are not delayed by large ones of other clients. */
bool server_turn_is_over(struct server_part *part);
/* Counts a delivered request with its decompressed size. */
void server_turn_count(struct server_part *part, size_t size_bytes);
/* Makes the exchange wait for a later turn. */
void server_turn_wait(struct exchange *exchange);
/* Call it when the client is gone or was answered. Does nothing if the exchange does not wait. */
void server_turn_leave(struct exchange *exchange);

#endif

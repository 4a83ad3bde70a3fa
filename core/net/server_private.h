/*
 * server_private: what the files of the server share; for server_*.c, http1_server.c and
 * h2_server.c only.
 *
 * server_listener.c accepts, server_connection.c moves bytes, a protocol (http1_server.c,
 * h2_server.c) finds requests in them, server_exchange.c is one request, server.c starts and ends
 * it all.
 *
 * Owner: a connection belongs to its part of the server; an exchange to its connection, until the
 * handler has it, then to both. A part lives until nothing on its worker points at it any more;
 * the server until the last part and server_free let go.
 *
 * Thread: a part and everything below it stay on their worker; the server's atomics are shared.
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
    SERVER_PIPELINE_MAX_BYTES = 16 * 1024, /* kept of the requests behind the one being answered */
    EXCHANGE_INLINE_BYTES = 1024,
    EXCHANGE_INLINE_HEADERS = 20,
    FRAMES_AHEAD_MAX = 16, /* read in one go with the one that has begun */
    BODY_PLACES_MAX = 1 + 2 * FRAMES_AHEAD_MAX,
};

/* Why a connection was closed, for people who look at profcol_server_connections_closed. */
enum close_reason {
    CLOSE_CLIENT,         /* it ended the connection */
    CLOSE_RESET,          /* it broke the connection */
    CLOSE_DONE,           /* answered, and one of both wanted no more */
    CLOSE_REFUSED,        /* answered before the body was read */
    CLOSE_BAD_REQUEST,    /* not HTTP, or HTTP that we refuse to guess about */
    CLOSE_PROTOCOL_ERROR, /* HTTP/2 */
    CLOSE_FLOOD,          /* frames that cost us and bring nothing */
    CLOSE_HEADER_LIST,    /* HTTP/2 headers over the limit */
    CLOSE_TLS_FAILED,
    CLOSE_HANDSHAKE_TIMEOUT,
    CLOSE_HEAD_TIMEOUT,
    CLOSE_BODY_TIMEOUT,
    CLOSE_WRITE_TIMEOUT,
    CLOSE_IDLE,
    CLOSE_AGE,
    CLOSE_KEEPALIVE, /* no answer to our PING */
    CLOSE_NO_DESCRIPTOR,
    CLOSE_PER_IP, /* its address has as many as it may have */
    CLOSE_SHUTDOWN,
    CLOSE_REASON_COUNT,
};

struct connection;

/* A buffer that grows; for bytes on their way out. */
struct outgoing {
    uint8_t *data;
    size_t size;
    size_t sent;
    size_t capacity;
};
void outgoing_add(struct outgoing *out, const void *data, size_t size);
uint8_t *outgoing_room(struct outgoing *out, size_t size); /* then add to out->size */
void outgoing_deinit(struct outgoing *out);

/* A plain answer, before a protocol has written it. */
struct answer {
    int status;
    const char *content_type;
    struct slice body;
    const struct http_header *extra;
    size_t extra_count;
};

struct protocol {
    const char *name;
    void (*open)(struct connection *connection);
    /* Uses all of it, or keeps what it cannot use yet. */
    void (*input)(struct connection *connection, struct slice data);
    /* Where the next bytes may be read to directly, one place after the other: how many places (of
     * BODY_PLACES_MAX); 0: nowhere. `filled` after that, with how many bytes came. May be NULL. */
    size_t (*body_places)(struct connection *connection, struct iovec *places);
    void (*body_filled)(struct connection *connection, const struct iovec *places, size_t size);
    /* The client will send no more. */
    void (*eof)(struct connection *connection);
    /* Once per round when marked dirty, and whenever everything before was sent: goes on with what
     * was answered, sends. */
    void (*output)(struct connection *connection);
    void (*answer)(struct exchange *exchange, const struct answer *answer);
    /* http_status: 200, unless the head was refused. May be NULL where there is no gRPC. */
    void (*answer_grpc)(struct exchange *exchange, int http_status, const struct verdict *verdict,
                        struct slice message);
    /* Looks at the time (may close), and says when to look again. */
    uint64_t (*check)(struct connection *connection, uint64_t now_ns);
    void (*drain)(struct connection *connection);
    /* Lets go of its exchanges, frees. */
    void (*close)(struct connection *connection);
};
extern const struct protocol http1_protocol;
extern const struct protocol h2_protocol;

struct server_part {
    struct server *server;
    struct worker *worker;
    atomic_uint load; /* connections, with those on their way */
    size_t live;      /* what still points here: connections, exchanges, handles */
    bool started;
    bool draining;
    bool stopped;
    struct list connections;
    size_t connection_count; /* those that drain waits for */
    struct list dirty;       /* connections with something to send */
    unsigned handshakes;     /* TLS, that went on in this turn of the loop */
    struct list buried;      /* closed ones without a libuv handle, freed next round */
    struct list ready;       /* exchanges that wait for a turn, oldest first */
    struct timer turn_timer; /* set while there are some */
    uint64_t turn;           /* of the loop, in which... */
    size_t turn_bytes;       /* ...so much was handed to the handler */
    uint8_t *read_buffer;    /* SERVER_READ_BYTES; contents last for one input */
    uint8_t *plain_buffer;   /* decrypted */
    struct outgoing scratch; /* an answer while it is put together */
    struct outgoing batch;   /* HTTP/2 frames that leave together */
    uint8_t frame_heads[FRAMES_AHEAD_MAX][H2_FRAME_HEAD_BYTES]; /* as read_buffer */
    uv_prepare_t prepare;
    uint64_t date_ns; /* of date, monotonic */
    char date[40];
    void (*on_drained)(void *context);
    void *drained_context;
    struct post start_post;
};

struct server {
    struct server_options options;
    char *label;
    const struct server_handler *handler;
    void *context;
    struct worker *workers;
    struct server_part *parts;
    unsigned part_count;
    struct tls_context *tls;

    int listen_fd;
    int descriptor_limit; /* connections have lower ones */
    int reserve_fd;       /* closed for a moment when there are no descriptors left */
    char *unix_path;      /* to remove */
    uint16_t port;
    uv_poll_t listen_poll;
    bool listening; /* listen_poll is open; first worker only */
    struct timer accept_timer;
    struct post resume_post;
    atomic_bool resume_posted;
    atomic_bool accept_paused; /* by max_connections */
    atomic_uint connections;
    unsigned max_connections;
    struct peer_counts *peers;          /* NULL: no limit for each */
    struct log_interval refused_per_ip; /* first worker only */

    atomic_uint references; /* server_free, each started part */
    struct gauge *open_gauge;
    struct counter *over_budget; /* NULL, like the gauge: without metrics */
    _Atomic(struct counter *) closed[CLOSE_REASON_COUNT];
};

/* A time limit: as configured, or our own. */
static inline uint64_t server_limit(int64_t configured_ns, unsigned seconds)
{
    return configured_ns > 0 ? (uint64_t)configured_ns : seconds * SECOND_NS;
}

void server_unref(struct server *server);
void server_count_closed(struct server *server, unsigned worker, enum close_reason reason);
void server_count_over_budget(struct server_part *part);
void server_part_unlive(
    struct server_part *part); /* after live was decremented: may end the part */
void server_part_round(struct server_part *part);
void server_part_check_drained(struct server_part *part);
const char *server_date(struct server_part *part);

/* server_listener.c */
bool listener_open(struct server *server, struct error *err);
void listener_start(struct server *server); /* on the first worker */
void listener_stop(struct server *server);  /* on the first worker; again is allowed */
void listener_close(struct server *server); /* the descriptors, on main or the first worker */
/* key: of its address (peer_key). */
void listener_connection_ended(struct server *server, uint64_t key);

/* server_connection.c */
enum connection_phase {
    CONNECTION_HANDSHAKE, /* TLS */
    CONNECTION_DETECT,    /* first bytes: which protocol? */
    CONNECTION_OPEN,
    CONNECTION_CLOSING,   /* what is to be sent is sent, then closed */
    CONNECTION_LINGERING, /* ours is said; the rest of theirs is thrown away so that they get to
                             read it */
    CONNECTION_CLOSED,
};

struct connection {
    struct server_part *part;
    struct list_link link;  /* of part->connections or part->buried */
    struct list_link dirty; /* of part->dirty */
    const struct protocol *protocol;
    void *session; /* the protocol's */
    struct tls_stream *tls;
    int fd;
    uint8_t phase;
    uint8_t reason; /* enum close_reason, for when it closes */
    bool counted;   /* in connection_count */
    bool reading;   /* wanted by the protocol */
    bool eof_waits; /* the end of input has come, behind bytes that are not read yet */
    bool eof;
    bool broken; /* writing or reading failed */
    bool linger;
    bool in_input;
    int polled; /* what the poll handle waits for */
    uv_poll_t poll;
    struct timer timer;
    uint64_t opened_ns;
    uint64_t read_ns;    /* last time something came */
    uint64_t stalled_ns; /* since when nothing could be sent; 0: nothing waits */
    uint64_t linger_ns;
    size_t lingered_bytes;
    struct outgoing out; /* waits for the socket (cleartext) */
    uint8_t detect[4];
    uint8_t detect_size;
    struct sockaddr_in6 address; /* or sockaddr_in */
    char peer[INET6_ADDRSTRLEN];
    uint64_t peer_key;     /* of the address */
    struct budget *budget; /* of the client; may be NULL */
    /* Tests and fuzzing: instead of a socket. Returns how many bytes it took, or -1. */
    ssize_t (*sink)(void *context, struct slice data);
    void *sink_context;
};

/* fd: taken over; -1 with a sink, then the caller is the socket: connection_input,
 * connection_end_of_input, server_part_round. */
struct connection *server_connection_open(struct server_part *part, int fd,
                                          const struct sockaddr *address,
                                          ssize_t (*sink)(void *context, struct slice data),
                                          void *sink_context);
void server_connection_input(struct connection *connection, struct slice data);
/* Where input may be put instead (BODY_PLACES_MAX), and how much; 0: nowhere. Then how much was. */
size_t server_connection_body_places(struct connection *connection, struct iovec *places,
                                     size_t *room_out);
void server_connection_body_filled(struct connection *connection, const struct iovec *places,
                                   size_t size);
void server_connection_end_of_input(struct connection *connection);
/* Queues and tries to send. Errors show later, as broken. */
void server_connection_send(struct connection *connection, struct slice data);
/* The socket may take more of what is queued. */
void server_connection_flush(struct connection *connection);
bool server_connection_has_unsent(const struct connection *connection);
void server_connection_mark_dirty(struct connection *connection);
/* After what is queued was sent; linger when the client may still be sending. */
void server_connection_finish(struct connection *connection, enum close_reason reason, bool linger);
/* Now. Not from inside protocol functions other than by connection_break. */
void server_connection_close(struct connection *connection, enum close_reason reason);
/* The same, in the next round. */
void server_connection_break(struct connection *connection, enum close_reason reason);
/* Makes sure that `check` runs at this time or before. */
void server_connection_watch(struct connection *connection, uint64_t deadline_ns);
void server_connection_settle(struct connection *connection);

/* server_exchange.c */
enum exchange_state {
    EXCHANGE_HEAD,
    EXCHANGE_BODY,
    EXCHANGE_READY,         /* complete, in part->ready */
    EXCHANGE_DECOMPRESSING, /* beside the loop */
    EXCHANGE_WAITING,       /* the handler has it */
    EXCHANGE_ANSWERED,
};

struct exchange {
    struct server_part *part;
    struct connection *connection; /* NULL: gone */
    struct list_link link;         /* of an HTTP/2 connection */
    struct budget *budget;         /* the connection's */
    struct list_link ready;        /* of part->ready */
    int32_t stream_id;
    uint8_t state;
    uint8_t dialect;
    uint8_t compression;
    bool held; /* by the handler, from on_request to exchange_respond; by a job before that */
    bool body_complete; /* the client has said everything */
    bool method_is_head;
    bool has_trailers;
    void *data;
    struct slice method, path, query;
    struct http_headers headers;
    size_t header_capacity;
    size_t store_used;
    uint8_t *store; /* where the next name or value goes: inline, or in more_store */
    size_t store_capacity;
    struct exchange_store *more_store; /* the last one first */
    struct buffer *body;
    int64_t body_expected; /* size, when it is known; -1 */
    uint64_t body_received;
    uint64_t since_ns;     /* start of the body; of the answer, once answered */
    uint64_t deadline_ns;  /* of grpc-timeout; UINT64_MAX: none */
    struct timer deadline; /* set from the end of the head to the answer */
    uint8_t prefix[5];     /* of the gRPC message */
    uint8_t prefix_size;
    size_t charged_bytes;
    uint64_t reset_ns; /* HTTP/2: when to tell the client to stop sending; 0: no need */
    /* HTTP/2: the answer while it is sent. */
    uint8_t *answer;
    size_t answer_size, answer_sent;
    uint8_t answer_inline[64];
    struct http_header inline_items[EXCHANGE_INLINE_HEADERS];
    uint8_t inline_store[EXCHANGE_INLINE_BYTES];
};

/* NULL: over budget. */
struct exchange *server_exchange_new(struct connection *connection);
void server_exchange_free(struct exchange *exchange);
/* The client is gone: frees it, or leaves it to the handler. */
void server_exchange_gone(struct exchange *exchange);
/* Room for a whole HTTP/1 head and its headers; NULL when over budget. */
uint8_t *server_exchange_head_room(struct exchange *exchange, size_t size);
/* Room for that many headers in all, while there is none yet; false when over budget. */
bool server_exchange_headers_room(struct exchange *exchange, size_t count);
/* Copies; false when over budget. */
bool server_exchange_add_header(struct exchange *exchange, struct slice name, struct slice value);
bool server_exchange_store(struct exchange *exchange, struct slice bytes, struct slice *out);

/* Instead of head_done: answers with the status; gRPC gets the verdict. */
void server_exchange_refuse_head(struct exchange *exchange, int status,
                                 const struct verdict *verdict);
/* Each may end in an answer: look at state afterwards. length: -1 unknown. */
void server_exchange_head_done(struct exchange *exchange, int64_t length);
/* Answers for the server itself: in the request's protocol, with the status or the verdict. */
void server_exchange_refuse(struct exchange *exchange, int status, const struct verdict *verdict);
/* Whether the deadline of grpc-timeout has passed. */
bool server_exchange_has_expired(const struct exchange *exchange);
/* Answers so; what the handler says later only frees the exchange. */
void server_exchange_expire(struct exchange *exchange);
void server_exchange_release_body(struct exchange *exchange);

/* server_body.c. Each may end in an answer: look at state afterwards. length: -1 unknown. */
void server_exchange_begin_body(struct exchange *exchange, int64_t length);
void server_exchange_body(struct exchange *exchange, struct slice data);
size_t server_exchange_body_room(struct exchange *exchange, uint8_t **data_out);
void server_exchange_body_filled(struct exchange *exchange, size_t size);
/* The client has said everything: the request is handed to the handler, now, after its body was
 * decompressed beside the loop, or when its turn comes. */
void server_exchange_finish(struct exchange *exchange);
/* Its turn has come. */
void server_exchange_deliver(struct exchange *exchange);
/* When the body has to have come further, by its pace. */
uint64_t server_exchange_body_deadline(const struct exchange *exchange);

/* server_turn.c: many requests may be complete at once. A turn of the loop hands over a MiB of them
 * and one; the rest waits, oldest first, for the next turns. Small requests do not wait, so that no
 * client's small request stands behind others' large ones. */
bool server_turn_is_over(struct server_part *part);
void server_turn_count(struct server_part *part, size_t size_bytes); /* handed over, decompressed */
void server_turn_wait(struct exchange *exchange);
/* The client has gone, or was answered. Does nothing if it does not wait. */
void server_turn_leave(struct exchange *exchange);

#endif

/*
 * client_private: what client.c, its connections and its two protocols share; nobody else includes
 * it.
 *
 * client.c keeps requests and decides where they go; client_connection.c moves bytes (socket,
 * TLS); client_h1.c and client_h2.c turn exchanges into bytes and back. Nothing here calls on_done
 * while the caller of client_send is on the stack.
 *
 * Owner: an exchange belongs to its client until exchange_finish; a connection frees itself after
 * connection_close.
 *
 * Thread: the client's worker.
 */
#ifndef PROFCOL_CORE_NET_CLIENT_PRIVATE_H
#define PROFCOL_CORE_NET_CLIENT_PRIVATE_H

#include "core/base/arena.h"
#include "core/base/container_of.h"
#include "core/base/list.h"
#include "core/base/text.h"
#include "core/net/client.h"
#include "core/net/client_output.h"
#include "core/net/client_resolver.h"

struct client_connection;

/* A request on its way, and the answer as it comes in. */
struct client_exchange {
    struct list_link link; /* of client->waiting or connection->exchanges */
    struct client *client;
    struct client_request *request;
    struct client_connection *connection; /* NULL: waiting for one */
    int32_t stream_id;                    /* h2 */
    unsigned refused;                     /* how often a server gave it back without having begun */
    bool doomed;                          /* connecting failed while it waited */
    uint64_t sent_ns;
    size_t body_slice; /* what was handed to the output so far */
    size_t body_offset;
    size_t body_left;
    struct arena arena; /* of the answer's headers */
    struct http_headers headers;
    size_t header_capacity;
    size_t header_bytes; /* of all that came, with what 1xx answers and trailers had */
    int status;
    struct text body;
    struct budget *budget; /* of the request, which may be gone when this is freed */
    bool body_cut;
};

/* One of the two protocols. */
struct client_codec {
    void (*start)(struct client_connection *connection);
    /* How many more exchanges it can take now. */
    size_t (*room)(struct client_connection *connection);
    /* exchange->connection is set already. */
    void (*send)(struct client_connection *connection, struct client_exchange *exchange);
    /* The exchange is about to leave before its answer is whole: tells the peer, or sets hang_up.
     */
    void (*cancel)(struct client_connection *connection, struct client_exchange *exchange);
    /* False: broken, connection->why says how. */
    bool (*feed)(struct client_connection *connection, struct slice bytes);
    /* The peer will send nothing more. */
    void (*end)(struct client_connection *connection);
    /* Puts what is to be sent into the output. False: broken. */
    bool (*fill)(struct client_connection *connection);
    /* Asks the peer whether it is still there; NULL: not possible. */
    void (*ping)(struct client_connection *connection);
    void (*free)(struct client_connection *connection);
};
extern const struct client_codec client_h1;
extern const struct client_codec client_h2;

enum connection_state {
    CONNECTION_CONNECTING,
    CONNECTION_HANDSHAKING,
    CONNECTION_OPEN,
    CONNECTION_CLOSED
};

struct client_connection {
    struct list_link link; /* of client->connections */
    struct client *client;
    enum connection_state state;
    const struct client_codec *codec;
    void *session;   /* the codec's */
    uv_poll_t *poll; /* of the socket; NULL: none yet */
    int watched;     /* UV_READABLE, UV_WRITABLE */
    int socket;
    struct tls_stream *tls;
    struct client_output output;
    struct timer deadline;  /* of connecting and shaking hands, then of being idle */
    struct timer keepalive; /* h2 PING */
    uint64_t ping_ns;       /* when the last was sent; 0: none */
    size_t address;         /* which one is being tried */
    size_t addresses_left;
    struct list exchanges;
    bool used;        /* an exchange was on it */
    bool retiring;    /* takes no more, ends with its last exchange */
    bool hang_up;     /* ends as soon as its exchange has left */
    uint64_t read_ns; /* when something was read last */
    char why[256];    /* it broke */
};

struct client {
    struct worker *worker;
    struct client_options options; /* strings are copies, in the arena */
    struct arena arena;
    struct tls_context *tls;
    const char *address_text; /* "host:port", for messages */
    struct client_resolver resolver;
    unsigned references; /* the owner, each connection, a look-up, whoever calls out */
    bool freed;
    struct list waiting; /* exchanges */
    struct list connections;
    size_t connecting_count;
    size_t open_count;
    bool h2_agreed; /* by ALPN, the last time */
    bool protocol_known;
    struct timer kick;
    struct timer reconnect;
    unsigned connect_failures;
    uint64_t connect_after_ns;
    char connect_error[256];
    uint8_t *read_buffer;
    uint8_t *plain_buffer;
};

enum { CLIENT_READ_BYTES = 64 * 1024, CLIENT_PLAIN_BYTES = 16 * 1024 };

static inline struct client_exchange *exchange_of_link(struct list_link *link)
{
    return container_of(link, struct client_exchange, link);
}

static inline struct client_connection *connection_of_link(struct list_link *link)
{
    return container_of(link, struct client_connection, link);
}

void client_ref(struct client *client);
void client_unref(struct client *client);
/* Hands out waiting exchanges and writes, soon. */
void client_kick(struct client *client);
/* The first exchange is on a connection: being open is not enough, a proxy without a backend
 * accepts and hangs up. */
void client_connection_used(struct client *client);
void client_connect_failed(struct client *client, const char *why);

/* The answer as it comes in. False: over the limit of headers. */
bool exchange_add_header(struct client_exchange *exchange, struct slice name, struct slice value);
/* For what is not kept. */
bool exchange_count_header(struct client_exchange *exchange, size_t size);
/* A new head: what an informational answer said is forgotten. */
void exchange_begin_answer(struct client_exchange *exchange, int status);
/* False: it is full now, what comes after is not wanted. */
bool exchange_add_body(struct client_exchange *exchange, struct slice bytes);
/* Takes it off its connection, calls on_done, frees it. */
void exchange_finish(struct client_exchange *exchange, enum client_failure failure,
                     const char *why);
/* Takes it off its connection and lets it wait for another; finishes it when that happened too
 * often. */
void exchange_give_back(struct client_exchange *exchange, const char *why);
/* Value of the request's own "host" header, else the authority. */
struct slice exchange_authority(const struct client_exchange *exchange);

/* client_connection.c */
/* Tries all addresses, beginning with this one. */
void connection_start(struct client *client, size_t address, size_t addresses);
/* Begins with a socket that is connected already: for tests. */
void connection_adopt(struct client *client, int socket);
void connection_send(struct client_connection *connection, struct client_exchange *exchange);
void connection_flush(struct client_connection *connection);
/* Its exchanges end as CLIENT_BROKEN with this text. */
void connection_close(struct client_connection *connection, const char *why);
/* After an exchange left: idle from now on, or over. */
void connection_rest(struct client_connection *connection);

#endif

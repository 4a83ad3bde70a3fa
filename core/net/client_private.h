/*
 * client_private: what client.c, its connections and its two protocols share; no other file
 * includes it.
 *
 * client.c keeps requests and decides where they go; client_connection.c moves bytes (socket, TLS);
 * client_h1.c and client_h2.c convert exchanges to bytes and back. No function calls on_done while
 * client_send is on the stack.
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
#include "core/net/client_tunnel.h"

struct client_connection;

/* A request in progress, and the part of its answer that has arrived. */
struct client_exchange {
    struct list_link link; /* of client->waiting or connection->exchanges */
    struct client *client;
    struct client_request *request;
    struct client_connection *connection; /* NULL: it waits for one */
    int32_t stream_id;                    /* h2 */
    unsigned refused;                     /* how often a server refused it without processing it */
    bool doomed;                          /* connecting failed while it waited */
    uint64_t begun_ns;                    /* client_send */
    uint64_t sent_ns;
    size_t body_slice; /* body_slice, body_offset: position of the body's first byte that is not in
                          the output yet */
    size_t body_offset;
    size_t body_left;
    struct arena arena; /* for the answer's headers */
    struct http_headers headers;
    size_t header_capacity;
    size_t header_bytes; /* of all headers received, including 1xx answers and trailers */
    int status;
    struct text body;
    struct budget *budget; /* the request's; kept here because the request may be freed first */
    bool body_cut;
};

/* The functions of one of the two protocols. */
struct client_codec {
    void (*start)(struct client_connection *connection);
    /* Returns how many more exchanges it can accept now. */
    size_t (*room)(struct client_connection *connection);
    /* Sends an exchange whose `connection` is set already. */
    void (*send)(struct client_connection *connection, struct client_exchange *exchange);
    /* Called before an exchange is removed whose answer is incomplete: resets the stream, or sets
     * hang_up. */
    void (*cancel)(struct client_connection *connection, struct client_exchange *exchange);
    /* Processes received bytes. Returns false, with connection->why set, if the peer violated the
     * protocol. */
    bool (*feed)(struct client_connection *connection, struct slice bytes);
    /* Called when the peer has ended its side of the connection. */
    void (*end)(struct client_connection *connection);
    /* Adds bytes to send to the output. Returns false, with connection->why set, on a protocol
     * error. */
    bool (*fill)(struct client_connection *connection);
    /* Sends a PING. NULL: the protocol has none. */
    void (*ping)(struct client_connection *connection);
    void (*free)(struct client_connection *connection);
};
extern const struct client_codec client_h1;
extern const struct client_codec client_h2;

enum client_connection_state {
    CLIENT_CONNECTION_CONNECTING,
    CLIENT_CONNECTION_TUNNELLING, /* waits for the proxy's answer to CONNECT */
    CLIENT_CONNECTION_HANDSHAKING,
    CLIENT_CONNECTION_OPEN,
    CLIENT_CONNECTION_CLOSED
};

struct client_connection {
    struct list_link link; /* of client->connections */
    struct client *client;
    enum client_connection_state state;
    const struct client_codec *codec;
    void *session;   /* of the codec */
    uv_poll_t *poll; /* of the socket; NULL: none yet */
    int watched;     /* UV_READABLE, UV_WRITABLE */
    int socket;
    struct tls_stream *tls;
    struct client_tunnel tunnel;
    struct client_output output;
    struct timer deadline;  /* for connecting, tunnel and TLS handshake, later for being idle */
    struct timer keepalive; /* h2 PING */
    uint64_t ping_ns;       /* when the last was sent; 0: none */
    size_t address;         /* index of the one being tried */
    size_t addresses_left;
    struct client_address peer; /* the address at that index */
    struct list exchanges;
    bool used;        /* it has carried an exchange */
    bool is_extra;    /* opened to spread requests, not because one waited */
    bool retiring;    /* accepts no more exchanges, closes after the last one */
    bool hang_up;     /* closes as soon as its exchange is removed */
    uint64_t read_ns; /* time of the last read */
    char why[256];    /* the reason for closing */
};

struct client {
    struct worker *worker;
    struct client_options options; /* strings are copies, in the arena */
    struct arena arena;
    struct tls_context *tls;
    const char *address_text; /* "host:port", for messages and the proxy */
    bool tunnels;             /* connections are tunnels through the proxy */
    struct client_resolver resolver;
    unsigned
        references; /* of the owner, each connection, a look-up, a function that calls on_done */
    bool freed;
    struct list waiting; /* exchanges */
    struct list connections;
    size_t connecting_count;
    size_t open_count;
    bool h2_agreed; /* by ALPN, on the last connection */
    bool protocol_known;
    struct timer kick;
    struct timer reconnect;
    unsigned connect_failures;
    uint64_t connect_after_ns;
    uint64_t spread_after_ns; /* when to try the other addresses again */
    char connect_error[384];
    uint8_t *read_buffer;
    uint8_t *plain_buffer;
    struct client_measure *measures;
};

enum {
    CLIENT_READ_BYTES = 64 * 1024, /* unless options.read_bytes says otherwise */
    CLIENT_PLAIN_BYTES = 16 * 1024
};

static inline struct client_exchange *client_exchange_of_link(struct list_link *link)
{
    return container_of(link, struct client_exchange, link);
}

static inline struct client_connection *client_connection_of_link(struct list_link *link)
{
    return container_of(link, struct client_connection, link);
}

/* Take and drop a reference. The last one frees a client for which client_free was called. */
void client_ref(struct client *client);
void client_unref(struct client *client);
/* Schedules client.c to assign waiting exchanges to connections and write them. */
void client_kick(struct client *client);
/* Call it when a connection carries its first exchange. Only this ends the back-off: a proxy
 * without a backend accepts connections, too, and closes them. */
void client_connection_used(struct client *client);
/* Notes that a connection could not be opened. why: for messages. */
void client_connect_failed(struct client *client, const char *why);
/* Notes that a connection that no request waited for could not be opened. */
void client_spread_failed(struct client *client);

/* Adds a header of the answer. Returns false if the headers exceed the limit. */
bool client_exchange_add_header(struct client_exchange *exchange, struct slice name,
                                struct slice value);
/* Counts the size of a header that is not kept. Returns false if the headers exceed the limit. */
bool client_exchange_count_header(struct client_exchange *exchange, size_t size);
/* Begins a new head, and drops the headers of an informational answer (1xx). */
void client_exchange_begin_answer(struct client_exchange *exchange, int status);
/* Adds bytes of the body. Returns false if the body is full and the rest is not needed. */
bool client_exchange_add_body(struct client_exchange *exchange, struct slice bytes);
/* Removes the exchange from its connection, calls on_done and frees the exchange. */
void client_exchange_finish(struct client_exchange *exchange, enum client_failure failure,
                            const char *why);
/* Removes the exchange from its connection, so that it waits for another one. Finishes it if this
 * has happened too often. */
void client_exchange_give_back(struct client_exchange *exchange, const char *why);
/* Returns the value of the request's own "host" header, otherwise the client's authority. */
struct slice client_exchange_authority(const struct client_exchange *exchange);

/* ---- client_connection.c ---- */

/* Opens a connection: tries `addresses` addresses, beginning with index `address`. is_extra: see
 * struct client_connection. */
void client_connection_start(struct client *client, size_t address, size_t addresses,
                             bool is_extra);
/* Opens a connection with a connected socket. For tests. */
void client_connection_adopt(struct client *client, int socket);
/* Passes an exchange to the connection's protocol. */
void client_connection_send(struct client_connection *connection, struct client_exchange *exchange);
/* Writes the output, and changes the events to poll for. */
void client_connection_flush(struct client_connection *connection);
/* Closes the connection. Its exchanges end as CLIENT_BROKEN with this text. */
void client_connection_close(struct client_connection *connection, const char *why);
/* Call it when an exchange has been removed: the connection becomes idle, or closes. */
void client_connection_rest(struct client_connection *connection);

#endif

/*
 * client: outgoing requests over HTTP/1.1 and HTTP/2 (prior knowledge or ALPN), cleartext or TLS,
 * to one endpoint from one worker.
 *
 * A client keeps connections, reconnects with back-off, caches resolved names, never follows
 * redirects, and reads at most 64 KiB of an answer's body (unless the request allows more) and 32
 * KiB of its headers. Through a proxy, it asks for a tunnel (TLS, HTTP/2), or sends whole URLs
 * (HTTP/1.1 in cleartext). What the proxy refuses is CLIENT_CONNECT_FAILED. The slices of a body
 * must stay valid until on_done; in cleartext they are written without being copied. A request that
 * the server certainly did not process (REFUSED_STREAM, or after a GOAWAY) is sent again on another
 * connection, a few times; any other loss is CLIENT_BROKEN.
 *
 * Owner: the component's node.
 *
 * Thread: its worker.
 */
#ifndef PROFCOL_CORE_NET_CLIENT_H
#define PROFCOL_CORE_NET_CLIENT_H

#include "core/base/error.h"
#include "core/base/worker.h"
#include "core/net/http_types.h"
#include "core/net/proxy.h"
#include "core/net/tls.h"

#define CLIENT_BODY_MAX ((size_t)64 * 1024)
#define CLIENT_HEADERS_MAX ((size_t)32 * 1024)

struct budget;
struct client;
struct metrics;
struct client_exchange;

enum client_protocol {
    CLIENT_HTTP1, /* and h2 by ALPN when TLS is used and client_options.allow_h2 */
    CLIENT_H2,    /* prior knowledge in cleartext, ALPN h2 required over TLS: gRPC */
};

/* Which addresses of a name HTTP/2 with prior knowledge uses. HTTP/1.1 opens connections to those
 * with the fewest. */
enum client_balance {
    CLIENT_BALANCE_ANY,         /* one connection, to a random address */
    CLIENT_BALANCE_PICK_FIRST,  /* one connection, to the first address that can be reached */
    CLIENT_BALANCE_ROUND_ROBIN, /* a connection to each address, requests by turns */
};

struct client_options {
    enum client_protocol protocol;
    bool allow_h2;
    const char *host; /* name or address, without brackets; or a path for unix */
    uint16_t port;
    bool unix_socket;
    struct proxy proxy; /* copied; host NULL: none */
    enum client_balance balance;
    bool wait_for_ready; /* requests wait until timeout_ns while nothing can be connected to */
    const struct tls_client_settings *tls; /* NULL: cleartext; must live as long as the client */
    const char *authority;     /* Host / :authority; a "host" header of a request takes precedence.
                                  NULL:     host:port */
    unsigned max_connections;  /* of HTTP/1.1; 0: 16. HTTP/2 uses 1, or one for each address */
    unsigned max_idle;         /* HTTP/1.1: connections kept without requests; 0: all */
    size_t read_bytes;         /* read from a socket at once; 0: 64 KiB */
    size_t write_bytes;        /* HTTP/2: frames prepared while the socket is busy; 0: 256 KiB */
    bool close_after_answer;   /* HTTP/1.1: no keep-alive */
    int64_t idle_timeout_ns;   /* 0: never */
    int64_t keepalive_time_ns; /* h2 PING after this much silence; 0: off */
    int64_t keepalive_timeout_ns;  /* 0: 20 s */
    bool keepalive_without_stream; /* also while no request is in progress */
    const char *label;             /* for logs */
    struct metrics *metrics; /* every request is measured (client_measures.h); NULL: none is */
};

enum client_failure {
    CLIENT_OK, /* an answer arrived */
    CLIENT_CONNECT_FAILED,
    CLIENT_TIMEOUT,
    CLIENT_BROKEN, /* the connection ended or the peer violated the protocol before the answer was
                      complete */
};

struct client_answer {
    enum client_failure failure;
    const char *failure_text; /* "connect to 127.0.0.1:4317: connection refused" */
    int status;
    struct http_headers headers; /* including h2 trailers, in order */
    struct slice body;           /* at most 64 KiB, or the request's body_max */
    bool body_cut;
};

struct client_request {
    /* Set by the caller, valid until on_done: */
    const char *method; /* "POST" */
    const char *path;
    const struct http_header *headers; /* without host and content-length, which the client adds */
    size_t header_count;
    const struct slice *body;
    size_t body_count;
    size_t body_size;
    size_t content_bytes;  /* of the body before compression, for metrics; 0: body_size */
    size_t body_max;       /* of the answer; 0: 64 KiB */
    struct budget *budget; /* charged for the answer's body, which is truncated if there is no room;
                              NULL: none */
    int64_t timeout_ns; /* from client_send to the complete answer, including connecting; 0: none */
    void (*on_done)(struct client_request *request,
                    const struct client_answer *answer); /* once, never inside client_send; the
                                                            answer is valid during the call */
    /* Set by the client: */
    struct client_exchange *exchange;
    struct timer timer;
};

/* Creates a client; copies the strings of the options. Returns NULL, with err set, if the options
 * are invalid. Connects when there is something to send. */
struct client *client_new(struct worker *worker, const struct client_options *options,
                          struct error *err);
/* Sends the request, which must exist until on_done or client_cancel. Connects if necessary. */
void client_send(struct client *client, struct client_request *request);
/* Cancels the request: on_done will not be called. */
void client_cancel(struct client_request *request);
/* Frees the client. All requests must be done or cancelled before (it may be called from an
 * on_done). The loop finishes closing the connections later. NULL is allowed. */
void client_free(struct client *client);

#endif

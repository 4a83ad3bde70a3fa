/*
 * loopback_peer: a server for tests of outgoing requests, on a port of its own, with a thread per
 * connection.
 *
 * It speaks HTTP/1.1 or HTTP/2 (nghttp2) in cleartext, records each request, and answers as the
 * test specifies: also wrongly, late, or not at all.
 *
 * Owner: the test; peer_free closes everything and waits for the threads.
 *
 * Thread: the answer callback runs on a connection's thread.
 */
#ifndef PROFCOL_TESTS_LOOPBACK_PEER_H
#define PROFCOL_TESTS_LOOPBACK_PEER_H

#include "core/base/text.h"

enum peer_protocol { PEER_HTTP1, PEER_HTTP2, PEER_RAW };

enum peer_action {
    PEER_ANSWER,
    PEER_SILENT,  /* never answers */
    PEER_CLOSE,   /* closes the connection */
    PEER_RESET,   /* HTTP/2: RST_STREAM with peer_answer.code */
    PEER_GOAWAY,  /* HTTP/2: GOAWAY that excludes this request */
    PEER_HALF,    /* the head and half of the body, then closes (HTTP/2: resets) */
    PEER_DRIP,    /* HTTP/1.1: sends one byte of the answer every 20 ms */
    PEER_RAW_TEXT /* HTTP/1.1: sends the body unchanged, then closes unless keep is set */
};

struct peer_header {
    const char *name;
    const char *value;
};

enum { PEER_HEADERS_MAX = 16 };

struct peer_answer {
    enum peer_action action;
    int status; /* 200 */
    struct peer_header headers[PEER_HEADERS_MAX];
    struct peer_header trailers[PEER_HEADERS_MAX];
    struct slice body; /* must outlive the peer */
    bool no_body;      /* HTTP/2: the head ends the stream (trailers-only) */
    bool keep;
    uint32_t code;
};

struct peer_request {
    unsigned connection; /* from 0 */
    struct text head;    /* "name: value\n", lower case, pseudo headers too; HTTP/1.1: ":method",
                            ":path" and "host" */
    struct text body;
};

struct peer;

struct peer_options {
    enum peer_protocol protocol;
    const char *unix_path; /* NULL: TCP on 127.0.0.1 */
    uint32_t max_streams;  /* HTTP/2; 0: 100 */
    bool any_address;      /* TCP on all addresses of the loopback interface */
    bool slow_reader;      /* a small receive buffer and pauses */
    /* Sets the answer to a request. number: of the request, from 0. */
    void (*answer)(void *context, unsigned number, const struct peer_request *request,
                   struct peer_answer *answer);
    /* PEER_RAW: handles a connection. */
    void (*serve)(void *context, int socket, unsigned connection);
    void *context;
};

struct peer *peer_new(const struct peer_options *options);
uint16_t peer_port(const struct peer *peer);
void peer_free(struct peer *peer);
unsigned peer_connections(struct peer *peer);
size_t peer_requests(struct peer *peer);
/* Returns a request, valid until peer_free. */
const struct peer_request *peer_request(struct peer *peer, size_t number);
/* Returns the value of a header, in a static buffer; "" if it is absent. */
const char *peer_header(const struct peer_request *request, const char *name);
/* Returns a port of 127.0.0.1 without a listener. */
uint16_t peer_unused_port(void);

#endif

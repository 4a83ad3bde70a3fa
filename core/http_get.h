/*
 * http_get: asks an HTTP server for something, for commands that do one thing and end: `profcol
 * healthcheck`, `profcol redact --dry-run URL`.
 *
 * Owner: it frees everything before it returns, but for the body of the answer.
 *
 * Thread: main, without workers. Blocks for timeout_s at most per address, and then per receive.
 */
#ifndef PROFCOL_CORE_HTTP_GET_H
#define PROFCOL_CORE_HTTP_GET_H

#include "core/base/buffer.h"
#include "core/base/error.h"

struct http_get_options {
    const char *ca_file; /* of https://; NULL: the system's authorities */
    bool skip_verify;    /* accept any certificate */
    unsigned timeout_s;
    size_t body_max;          /* bytes; 0: the body is not read */
    const char *bearer_token; /* of an Authorization header; NULL: none */
};

struct http_answer {
    char version[sizeof "HTTP/1.1"];
    char status[128]; /* such as "404 Not Found" */
    bool is_https;
    struct buffer *body; /* the caller's; NULL if it was not asked for */
};

/* Sends GET to an http:// or https:// URL, to host:port, or to a Unix socket: unix:///run/a.sock,
 * or unix:///run/a.sock:/path. User and password of a URL, http://user:password@host, go into an
 * Authorization header instead of the bearer token. Returns false with err set, which names the
 * URL, if there is no complete answer. */
bool http_get(const char *url, const struct http_get_options *options, struct http_answer *answer,
              struct error *err);
/* Returns the part of a URL that messages may show: from the host on if it has a password. */
const char *http_get_shown(const char *url);

#endif

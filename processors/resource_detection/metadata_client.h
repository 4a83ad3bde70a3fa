/*
 * metadata_client: requests to a metadata service, one after the other.
 *
 * Services answer over HTTP/1.1 in cleartext, at an address of the link, a port of the host, or a
 * Unix socket. An answer of more than METADATA_ANSWER_MAX bytes counts as none.
 *
 * Owner: the detector's state; metadata_client_deinit cancels the request in progress, and may be
 * called from on_answer.
 *
 * Thread: the worker.
 */
#ifndef PROFCOL_PROCESSORS_RESOURCE_DETECTION_METADATA_CLIENT_H
#define PROFCOL_PROCESSORS_RESOURCE_DETECTION_METADATA_CLIENT_H

#include "core/base/arena.h"
#include "core/net/client.h"

enum { METADATA_ANSWER_MAX = 256 * 1024 };

struct metadata_client;

struct metadata_answer {
    int status;          /* 0: there is no answer */
    struct slice body;   /* valid during on_answer */
    const char *problem; /* why it is no success, "" if it is */
    const struct http_headers *headers;
};

struct metadata_client {
    /* Set by the caller before metadata_client_init: */
    struct worker *worker;
    const char *label;
    struct http_header headers[2]; /* of every request; the texts stay valid */
    size_t header_count;
    unsigned max_attempts; /* while there is no answer, or one with 5xx; 0: 1 */
    uint64_t max_backoff_ns;
    void (*on_answer)(struct metadata_client *client, const struct metadata_answer *answer);
    /* Set by metadata_client.c: */
    struct client *client;
    struct client_request request;
    struct arena arena; /* the address and paths */
    const char *base;   /* path of the address, without a slash at the end */
    struct timer retry;
    unsigned attempts;
    bool is_sent;
};

/* Takes the address: http://HOST[:PORT][/PATH] or unix:///PATH. Returns false, with err set, if it
 * is neither. */
bool metadata_client_init(struct metadata_client *client, const char *address, struct error *err);
void metadata_client_deinit(struct metadata_client *client);
/* Sends a request; on_answer is called once, later. path: from "/". */
void metadata_client_send(struct metadata_client *client, const char *method, const char *path);

/* Returns the value of an environment variable; `fallback` if it is not set or empty. */
const char *metadata_environment(const char *name, const char *fallback);

#endif

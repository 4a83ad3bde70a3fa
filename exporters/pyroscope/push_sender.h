/*
 * push_sender: sends batches to Pyroscope from one worker.
 *
 * An attempt sends the pprofs of a batch that have not been accepted yet, several requests at once.
 * It ends when all of them are answered. A pprof that was refused permanently is logged and not
 * sent again; one that was refused for now is sent again with the next attempt.
 *
 * Owner: the exporter's node.
 *
 * Thread: its worker.
 */
#ifndef PROFCOL_PYROSCOPE_PUSH_SENDER_H
#define PROFCOL_PYROSCOPE_PUSH_SENDER_H

#include "core/net/client.h"
#include "core/pipeline/delivery.h"
#include "exporters/pyroscope/pushes.h"

/* Read-only, and shared by all workers. */
struct push_target {
    const char *path, *url;
    const struct http_header *headers;
    size_t header_count;
    struct component *auth; /* the extension that changes the headers; NULL: none */
    bool forward_tenant;    /* send the X-Scope-OrgID of the batch's context instead of that in
                               `headers` */
    unsigned max_requests;
    int64_t timeout_ns;
    struct push_options options; /* now_ns is set for each batch */
};

struct push_sender {
    struct delivery delivery;
    const struct push_target *target;
    struct client *client;
};

/* Starts a sender. client: of the node's worker; it must live until push_sender_stop. */
void push_sender_start(struct push_sender *sender, struct node *node,
                       const struct push_target *target, const struct sending_queue_settings *queue,
                       const struct retry_settings *retry, struct delivery_shared *shared,
                       struct client *client);
/* Cancels all requests and stops the delivery. */
void push_sender_stop(struct push_sender *sender);

#endif

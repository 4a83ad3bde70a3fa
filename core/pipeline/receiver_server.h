/*
 * receiver_server: a server of a receiver, which a reload may pass on to the receiver's successor.
 *
 * A receiver that a reload makes takes over the servers of the one that it replaces whose settings
 * are equal, with their listeners and connections. Requests that the former receiver has taken stay
 * with it until they are answered. docs/architecture.md, Reload.
 *
 * Owner: a member of the receiver. The server belongs to the last receiver that has taken it over.
 *
 * Thread: open, take_over and close on main, take_over while all workers wait; the rest on the
 * node's worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_RECEIVER_SERVER_H
#define PROFCOL_CORE_PIPELINE_RECEIVER_SERVER_H

#include "core/net/server.h"
#include "core/pipeline/component.h"

struct receiver_server {
    struct server *server; /* NULL: not open, or passed on */
    struct server_options options;
    const struct server_handler *handler;
    void *context;
    struct receiver_server *former; /* from open to take_over: whose server this one gets */
    struct server *passed;          /* to a successor; for receiver_server_drain */
    bool is_started;                /* set by the last worker before it answers main */
};

/* Opens a server, or if `former` can pass its server on, waits for receiver_server_take_over.
 * former: of component->predecessor if its settings are equal; NULL: there is none. Returns false,
 * with err set, if the address cannot be used. */
bool receiver_server_open(struct receiver_server *self, const struct component *component,
                          const struct server_options *options,
                          const struct server_handler *handler, void *context,
                          struct receiver_server *former, struct error *err);
/* Whether it is open, or will be. */
bool receiver_server_is_used(const struct receiver_server *self);
/* Takes the former one's server over, if there is one. */
void receiver_server_take_over(struct receiver_server *self);
/* Starts the server when the last worker has its node: connections may arrive only then. Returns
 * whether this call has started it. */
bool receiver_server_start(struct receiver_server *self, const struct node *node);
/* Drains it, or what is left of the requests if the server is passed on. Calls on_drained, perhaps
 * inside this call. Does nothing, and returns false, if the server is not used. */
bool receiver_server_drain(struct receiver_server *self, const struct node *node,
                           void (*on_drained)(void *context), void *context);
/* Stops the node's part of the server, unless it is passed on. */
void receiver_server_stop(struct receiver_server *self, const struct node *node);
/* Frees the server, unless it is passed on. */
void receiver_server_close(struct receiver_server *self);

#endif

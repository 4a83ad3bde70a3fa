/*
 * push: a listener for clients that post pprofs: POST /v1/pprof, answered with 204, like the
 * Collector's receiver of this name.
 *
 * Owner: the component.
 *
 * Thread: pusher_new and pusher_free on main, the rest on the node's worker.
 */
#ifndef PROFCOL_PUSH_H
#define PROFCOL_PUSH_H

#include "core/pipeline/component.h"
#include "receivers/pprof/pprof_settings.h"

struct pusher;

/* Creates a listener and binds it, or waits for that of `former` if its settings are equal. Returns
 * NULL, with err set, if it cannot. former: of the component that a reload replaces; may be NULL.
 */
struct pusher *pusher_new(struct component *component, const struct push_settings *settings,
                          struct pusher *former, struct error *err);
/* Takes over the listener of the former one. */
void pusher_take_over(struct pusher *pusher);
void pusher_free(struct pusher *pusher); /* NULL is allowed */

/* Starts the node's part; the listener accepts connections once the last worker has its node. */
void pusher_start(struct pusher *pusher, struct node *node);
/* Drain and stop the node's part, like server_drain and server_stop. */
void pusher_drain(struct pusher *pusher, struct node *node, void (*on_drained)(void *context),
                  void *context);
void pusher_stop(struct pusher *pusher, struct node *node);

#endif

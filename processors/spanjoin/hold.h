/*
 * hold: the requests that wait for spans or samples, on the worker that received them.
 *
 * A held request was already answered. It is sent on when nothing is missing any more, when its
 * wait is over, when memory is short, or when the node drains. It then counts as held until the
 * next nodes have accepted it (core/pipeline/outlet.h). A large request is enriched in a job;
 * others may be sent on meanwhile.
 *
 * Owner: the node owns its holds; a hold owns its receipt, and the kept batch until it is sent on.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_SPANJOIN_HOLD_H
#define PROFCOL_SPANJOIN_HOLD_H

#include "processors/spanjoin/spanjoin.h"

/* Initialises the holds; call it in node_start. */
void holds_init(struct spanjoin_node *node);

/* Returns an id under which a request that may be held can wait in the index. Call either hold_new
 * or holds_return_id with it. */
uint64_t holds_take_id(struct spanjoin_node *node);
/* Returns an id that was not used. */
void holds_return_id(struct spanjoin_node *node, uint64_t id);

/* Charges the memory for holding the batch. If memory is short, sends on as many of the node's
 * oldest requests as necessary. Returns HOLD_NO_ROOM if the next nodes do not accept them, so that
 * sending on more would not help. */
enum hold_room holds_make_room(struct spanjoin_node *node, const struct batch *kept, size_t waiters,
                               size_t *charged_out);

/* Creates a hold, which takes over the batch. The batch must not have a receipt. Call hold_wait or
 * hold_leave next. */
struct hold *hold_new(struct spanjoin_node *node, uint64_t id, struct batch *kept, size_t charged);
/* Begins to wait for `missing` keys, at most wait_ns. */
void hold_wait(struct hold *hold, uint32_t missing, int64_t wait_ns);
/* Sends the request on after those that are being sent on already, now or in a later turn of the
 * loop. The hold may be freed when this returns. */
void hold_leave(struct hold *hold);
/* Notes that something the request waited for has arrived, and sends the request on if it was the
 * last. May be called between holds_take_id and hold_wait, for a request that a job works on.
 * Ignores ids that are not held any more. */
void holds_wake(struct spanjoin_node *node, uint64_t id);

/* Sends on all held requests. */
void holds_drain(struct spanjoin_node *node);
/* Whether nothing is held, and nothing sent on still counts as held. */
bool holds_are_idle(const struct spanjoin_node *node);
/* Drops all held requests, and those sent on but not accepted. Returns the number of their
 * items. */
uint64_t holds_give_up(struct spanjoin_node *node);

#endif

/*
 * hold: the requests that wait, on the worker that received them.
 *
 * A held request is answered already. It leaves when nothing is missing any more, when its wait is
 * over, when memory runs short, or when the node drains; once it has left, what comes next keeps it
 * until it is taken (core/pipeline/outlet.h), and until then it counts as held. A large one takes
 * what it gains in a job; others may leave meanwhile.
 *
 * Owner: the node owns its holds; a hold owns the kept batch until it leaves, and its receipt.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_SPANJOIN_HOLD_H
#define PROFCOL_SPANJOIN_HOLD_H

#include "processors/spanjoin/spanjoin.h"

/* In node_start. */
void holds_init(struct spanjoin_node *node);

/* An id for a request that may be held, under which the index can know it; either hold_new or
 * holds_return_id follows. */
uint64_t holds_take_id(struct spanjoin_node *node);
void holds_return_id(struct spanjoin_node *node, uint64_t id);

/* Charges what it takes to hold the batch. When memory is short, the oldest of this node leave
 * first, as many as are needed. HOLD_NO_ROOM: what has left is not taken, so more would not help.
 */
enum hold_room holds_make_room(struct spanjoin_node *node, const struct batch *kept, size_t waiters,
                               size_t *charged_out);

/* Takes over the batch, which has no receipt. hold_wait or hold_leave follows. */
struct hold *hold_new(struct spanjoin_node *node, uint64_t id, struct batch *kept, size_t charged);
void hold_wait(struct hold *hold, uint32_t missing, int64_t wait_ns);
/* It leaves behind those that are leaving already, now or in a later turn of the loop; it may be
 * gone when this returns. */
void hold_leave(struct hold *hold);
/* Something that the request waited for came; it leaves when it was the last. May come between
 * holds_take_id and hold_wait, for a request that is worked on beside the loop. An id that is not
 * held any more, or has left, is ignored. */
void holds_wake(struct spanjoin_node *node, uint64_t id);

/* All leave. */
void holds_drain(struct spanjoin_node *node);
bool holds_are_idle(const struct spanjoin_node *node);
/* Gives up what is left; returns the items of it, and of what had left and was not taken. */
uint64_t holds_give_up(struct spanjoin_node *node);

#endif

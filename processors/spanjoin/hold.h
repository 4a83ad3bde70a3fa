/*
 * hold: the requests that wait, on the worker that received them.
 *
 * A held request is answered already, so it is kept as it came until what comes next has taken a
 * copy of it: leaving is an offer. It leaves when nothing is missing any more, when its wait is
 * over, when memory runs short, or when the node drains; refused, it is offered again.
 *
 * Owner: the node owns its holds; a hold owns the kept batch and the receipt of its offer.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_SPANJOIN_HOLD_H
#define PROFCOL_SPANJOIN_HOLD_H

#include "core/base/timer.h"
#include "core/pipeline/batch.h"

struct spanjoin_node;

/* What became of the items of one request. */
struct join_counts {
    uint64_t joined;
    uint64_t no_id;
    uint64_t not_found;
    uint64_t expired;
    uint64_t overflow;
    uint64_t ambiguous;
    uint64_t spans_enriched;
};

enum hold_state {
    HOLD_WAITS,   /* for what is missing */
    HOLD_OFFERED, /* to what comes next, which has not answered yet */
    HOLD_REFUSED, /* offered again when the timer fires */
};

struct hold {
    struct receipt receipt; /* of the offer; first */
    struct timer timer;
    struct spanjoin_node *node; /* NULL: given up while it was offered */
    struct batch *kept;
    uint64_t id;
    size_t charged;
    enum hold_state state;
    uint32_t missing;
    int64_t backoff_ns;
    bool was_offered;
    bool overflow;             /* left early because of memory */
    struct join_counts counts; /* of the offer */
    struct hold *next;
    struct hold *previous;
};

struct hold_slot {
    struct hold *hold;
    uint32_t generation;
    uint32_t next_free; /* + 1 */
};

/* All-zero is empty. */
struct holds {
    struct hold_slot *slots;
    uint32_t slot_count;
    uint32_t free_slot; /* + 1; 0: none */
    struct hold *first; /* oldest */
    struct hold *last;
    size_t count;
};

/* An id for a request that may be held, under which the index can know it; either hold_new or
 * holds_return_id follows. */
uint64_t holds_take_id(struct spanjoin_node *node);
void holds_return_id(struct spanjoin_node *node, uint64_t id);

enum hold_room { HOLD_ROOM, HOLD_NO_ROOM, HOLD_NEVER /* larger than all that may be held */ };
/* Charges what it takes to hold the batch; when memory is short, older requests leave first. */
enum hold_room holds_make_room(struct spanjoin_node *node, const struct batch *kept, size_t waiters,
                               size_t *charged_out);

/* Takes over the batch, which has no receipt. hold_wait or hold_leave follows. */
struct hold *hold_new(struct spanjoin_node *node, uint64_t id, struct batch *kept, size_t charged);
void hold_wait(struct hold *hold, uint32_t missing, int64_t wait_ns);
/* Offers it; it may be gone when this returns. */
void hold_leave(struct hold *hold);
/* Something that the request waited for came; it leaves when it was the last. An id that is not
 * held any more is ignored. */
void holds_wake(struct spanjoin_node *node, uint64_t id);

/* All leave; node_drained is called when nothing is left, perhaps at once. */
void holds_drain(struct spanjoin_node *node);
/* Gives up what is left; returns the items of it. */
uint64_t holds_give_up(struct spanjoin_node *node);

#endif

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

#include "core/base/list.h"
#include "core/base/timer.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/offer.h"

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

/* Which keys of a request the index knows a waiter for, and where it stands. All-zero is empty. */
struct waiting_keys {
    struct waiting_key {
        uint32_t key; /* the number of the key in the request */
        uint32_t place;
    } * items;
    uint32_t count;
    uint32_t next; /* of waiting_keys_place */
};
/* In the order of the keys. */
void waiting_keys_add(struct waiting_keys *keys, uint32_t key, uint32_t place);
/* The place of this key, 0: it does not wait. Asked for in the order of the keys. */
uint32_t waiting_keys_place(struct waiting_keys *keys, uint32_t key);
void waiting_keys_deinit(struct waiting_keys *keys);

struct hold {
    struct offer offer;    /* when it has left; first */
    struct list_link link; /* of waiting or leaving; in neither while a job has it, and once it has
                              left */
    struct timer timer;
    struct spanjoin_node *node;
    struct batch *kept; /* NULL once it has left */
    uint64_t id;
    size_t charged;
    uint32_t items;
    uint32_t missing;
    struct waiting_keys keys;
    bool overflow;             /* left early because of memory */
    struct join_counts counts; /* when it has left */
};

struct hold_slot {
    struct hold *hold; /* NULL: it is not known yet whether the request is held */
    uint32_t early;    /* wake-ups that came meanwhile */
    uint32_t generation;
    uint32_t next_free; /* + 1 */
};

struct holds {
    struct hold_slot *slots;
    uint32_t slot_count;
    uint32_t free_slot;   /* + 1; 0: none */
    struct list waiting;  /* for what is missing, oldest first */
    struct list leaving;  /* in the order in which they leave */
    struct list working;  /* of struct leaving_job: large ones, on their way from `leaving` to the
                             next node */
    size_t leaving_bytes; /* of both */
    struct offers offers;
    uint64_t lost; /* items that were given up at the stop */
};

/* In node_start. */
void holds_init(struct spanjoin_node *node);

/* An id for a request that may be held, under which the index can know it; either hold_new or
 * holds_return_id follows. */
uint64_t holds_take_id(struct spanjoin_node *node);
void holds_return_id(struct spanjoin_node *node, uint64_t id);

enum hold_room { HOLD_ROOM, HOLD_NO_ROOM, HOLD_NEVER /* larger than all that may be held */ };
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

/*
 * hold_state: what a node knows of the requests that it holds. hold.h says what happens to them.
 *
 * Owner: the node.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_SPANJOIN_HOLD_STATE_H
#define PROFCOL_SPANJOIN_HOLD_STATE_H

#include "core/base/list.h"
#include "core/base/timer.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/offer.h"
#include "processors/spanjoin/waiting_keys.h"

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

enum hold_room { HOLD_ROOM, HOLD_NO_ROOM, HOLD_NEVER /* larger than all that may be held */ };

#endif

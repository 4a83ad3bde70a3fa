/*
 * hold_state: the state of the requests that a node holds (hold.h).
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
#include "processors/spanjoin/join_lags.h"
#include "processors/spanjoin/keep_settings.h"
#include "processors/spanjoin/sample_ids.h"
#include "processors/spanjoin/upload_times.h"
#include "processors/spanjoin/waiting_keys.h"

struct instance_waiter;
struct join_report;
struct spanjoin_node;

/* Numbers of samples: what became of them, or would with dry_run. */
struct keep_counts {
    uint64_t kept;
    uint64_t folded; /* became `combined` */
    uint64_t combined;
    uint64_t dropped;
    uint64_t late; /* left without their detail before their span turned out to be worth it */
    uint32_t by[KEEP_BY_END]; /* with the span's detail, by what keeps it; 0: without it */
};

/* Numbers of samples by what became of the service of their profiles. */
struct service_counts {
    uint64_t renamed;
    uint64_t conflicts; /* keep their names, because their process has spans of several services */
};

/* The results of the join for the items of one request. */
struct join_counts {
    uint64_t joined;
    uint64_t by_thread;   /* of these, by thread and time */
    uint64_t to_children; /* of these, from their local root */
    uint64_t no_id;
    struct unnamed_samples unnamed;
    uint64_t not_split;
    uint64_t not_found;
    uint64_t span_open; /* by thread: left before; their span has arrived meanwhile */
    uint64_t expired;
    uint64_t overflow;
    uint64_t ambiguous;
    uint64_t spans_enriched;
    struct keep_counts keep;
    struct service_counts service;
};

struct hold {
    struct offer offer;    /* used once it is sent on; must be the first member */
    struct list_link link; /* of `waiting` or `leaving`; of neither while a job works on it, and
                              once it is sent on */
    struct timer timer;
    struct spanjoin_node *node;
    struct batch *kept; /* NULL once it is sent on */
    uint64_t id;
    uint64_t request;          /* number of the request, of profiles */
    uint64_t arrived_ns;       /* likewise, since 1970 */
    uint64_t since_ns;         /* likewise, monotonic */
    struct plan_before before; /* likewise */
    size_t charged;
    uint32_t items;
    uint32_t missing;
    struct waiting_keys keys;        /* of profiles */
    struct held_uploads uploads;     /* likewise; none when it is sent on */
    struct instance_waiter *waiters; /* of traces: the profiles that it waits for */
    bool overflow;                   /* sent on early because memory was short */
    struct join_counts counts;       /* set when it is sent on */
    struct join_lags lags;           /* likewise, until they are recorded */
    struct join_report *report;      /* likewise, for the join feed; NULL: none */
};

struct hold_slot {
    struct hold *hold; /* NULL: not decided yet whether the request is held */
    uint32_t early;    /* wake-ups that arrived before the hold */
    uint32_t generation;
    uint32_t next_free; /* index + 1 */
};

struct holds {
    struct hold_slot *slots;
    uint32_t slot_count;
    uint32_t free_slot;        /* index + 1; 0: none */
    uint32_t first_generation; /* of slots */
    struct list waiting;       /* those that wait, oldest first */
    struct list leaving;       /* those to be sent on, in this order */
    struct list working;  /* of struct leaving_job: large ones that jobs enrich, between `leaving`
                             and the next node */
    size_t leaving_bytes; /* of `leaving` and `working` */
    struct offers offers;
    uint64_t lost; /* items dropped at the stop */
};

enum hold_room { HOLD_ROOM, HOLD_NO_ROOM, HOLD_NEVER /* larger than the limit for all */ };

#endif

/*
 * offer: passes held data on, a bounded number of times per turn of the loop, with pauses
 * that double while it is refused.
 *
 * `struct offers` paces one holder (a partition of batch, a node of spanjoin, a branch
 * of an outlet). Its `next` passes on one item that is due. `struct offer` is one item in progress,
 * with the receipt that says when responsibility for it has passed on. `struct backoff` is the
 * pause after a refusal, for every component that retries.
 *
 * Owner: `struct offers` and `struct offer` are members of the holder's structs.
 *
 * Thread: that of the node.
 */
#ifndef PROFCOL_CORE_PIPELINE_OFFER_H
#define PROFCOL_CORE_PIPELINE_OFFER_H

#include "core/base/timer.h"
#include "core/pipeline/receipt.h"

struct batch;
struct node;
struct offers;

/* After this many offers of one holder, a worker serves its connections again. Each OFFER_BYTES of
 * data count as one more offer. */
enum { OFFERS_PER_TURN = 16, OFFER_BYTES = 256 * 1024 };

/* The longest wait that a backend or a node can ask for (Retry-After, RetryInfo). */
#define RETRY_AFTER_MAX_NS (INT64_C(300) * 1000000000)

/* Returns the pause that the verdict asks for, in nanoseconds: at most RETRY_AFTER_MAX_NS, 0 if it
 * asks for none. */
int64_t retry_after_of(const struct verdict *verdict);

/* All-zero starts with the shortest pause. */
struct backoff {
    int64_t next_ns;
};

/* Returns the next pause in nanoseconds. It doubles from min_ns to max_ns, and is never shorter
 * than `asked_ns`. */
int64_t backoff_next(struct backoff *backoff, int64_t min_ns, int64_t max_ns, int64_t asked_ns);
/* Starts again with the shortest pause. */
void backoff_reset(struct backoff *backoff);

struct offers {
    struct node *node;
    /* Passes on the next item that is due; false if none is. */
    bool (*next)(struct offers *offers);
    struct timer timer; /* the next turn of the loop, or the end of a pause */
    uint64_t turn;      /* of the loop, in which the last ones were handed on */
    size_t in_turn;     /* how many, and what their bytes count */
    bool pumping;
    size_t under_way; /* offers that are not settled */
};

/* Initialises the pacing of a holder, on the node's worker. */
void offers_init(struct offers *offers, struct node *node, bool (*next)(struct offers *offers));
/* Calls `next` until it returns false, a pause begins, or the limit for this turn is reached; the
 * rest follows in the next turn. Does nothing in a pause, or when called from within `next`. */
void offers_pump(struct offers *offers);
/* Passes nothing on for delay_ns. Replaces an earlier pause. */
void offers_pause(struct offers *offers, int64_t delay_ns);
/* Whether a pause is in effect. */
bool offers_are_paused(const struct offers *offers);
/* Ends a pause and calls offers_pump. */
void offers_resume(struct offers *offers);
/* For use in `next`, which worked on so many bytes. They count four times, because work costs more
 * than passing on. */
void offers_count_work(struct offers *offers, size_t bytes);
/* Cancels the timer. No offer may be in progress. */
void offers_stop(struct offers *offers);

/* One item in progress. */
struct offer {
    struct receipt receipt; /* first */
    struct offers *offers;
    const struct receipt *senders; /* of those who wait for its outcome; NULL: nobody does. Set
                                      before offer_send; the holder's */
    /* The last call for this offer: it was accepted, refused permanently, or given up at the stop.
     * May run inside offer_send. */
    void (*on_settled)(struct offer *offer, const struct verdict *verdict);
};

/* Passes the batch, which has no receipt, to the next node. acknowledged: a sender was told that
 * its data is safe, so the outlet keeps a batch that the next node cannot accept yet (outlet.h),
 * and the verdict is never "try later" before the stop. */
void offer_send(struct offer *offer, struct offers *offers, struct batch *batch, bool acknowledged,
                void (*on_settled)(struct offer *offer, const struct verdict *verdict));

#endif

/*
 * offer: how held data is handed on: a bounded number of times per turn of the loop, with pauses
 * that double while it is refused.
 *
 * `struct offers` is the pacing of one holder (a partition of batch, a node of spanjoin, a branch
 * of an outlet). Its `next` hands on one thing that is due. `struct offer` is one thing under way:
 * the receipt that tells when responsibility for it has passed on. `struct backoff` is the pause
 * after a refusal, for every component that tries again.
 *
 * Owner: both structs are members of the holder's.
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

/* A worker serves its connections again after this many offers of one holder; so many bytes
 * count as one more. */
enum { OFFERS_PER_TURN = 16, OFFER_BYTES = 256 * 1024 };

/* The longest wait that a backend or a node can ask for (Retry-After, RetryInfo). */
#define RETRY_AFTER_MAX_NS (INT64_C(300) * 1000000000)

/* What the verdict asks for: nanoseconds, 0 when it says nothing, RETRY_AFTER_MAX_NS at most. */
int64_t retry_after_of(const struct verdict *verdict);

/* All-zero starts with the shortest pause. */
struct backoff {
    int64_t next_ns;
};

/* The next pause: doubles from min_ns to max_ns. Never shorter than `asked_ns`. */
int64_t backoff_next(struct backoff *backoff, int64_t min_ns, int64_t max_ns, int64_t asked_ns);
void backoff_reset(struct backoff *backoff);

struct offers {
    struct node *node;
    /* Hands on the next thing that is due; false when none is. */
    bool (*next)(struct offers *offers);
    struct timer timer; /* the next turn of the loop, or the end of a pause */
    uint64_t turn;      /* of the loop, in which the last ones were handed on */
    size_t in_turn;     /* how many, and what their bytes count */
    bool pumping;
    size_t under_way; /* offers that are not settled */
};

void offers_init(struct offers *offers, struct node *node, bool (*next)(struct offers *offers));
/* Calls `next` until it returns false, a pause begins, or the turn has had its share; the rest
 * follows in the next turn. Does nothing in a pause, or when called from within `next`. */
void offers_pump(struct offers *offers);
/* Nothing is handed on for this long. Replaces an earlier pause. */
void offers_pause(struct offers *offers, int64_t delay_ns);
bool offers_are_paused(const struct offers *offers);
/* Ends a pause and pumps. */
void offers_resume(struct offers *offers);
/* In `next`: work on so many bytes, which is dearer than to hand them on, counts four times as
 * much. */
void offers_count_work(struct offers *offers, size_t bytes);
/* Cancels the timer. Nothing may be under way. */
void offers_stop(struct offers *offers);

/* One thing under way. */
struct offer {
    struct receipt receipt; /* first */
    struct offers *offers;
    const struct receipt *senders; /* of those who wait for its outcome; NULL: nobody does. Set
                                      before offer_send; the holder's */
    /* The last call for this offer: it was taken, refused for good, or given up at the stop. May
     * run inside offer_send. */
    void (*on_settled)(struct offer *offer, const struct verdict *verdict);
};

/* Hands the batch, which has no receipt, to what comes next. acknowledged: a sender was told that
 * its data is safe, so what comes next keeps a batch that it cannot place yet (outlet.h), and the
 * verdict is never "try later" before the stop. */
void offer_send(struct offer *offer, struct offers *offers, struct batch *batch, bool acknowledged,
                void (*on_settled)(struct offer *offer, const struct verdict *verdict));

#endif

/*
 * offer: passes held data on, a limited amount per turn, and gets the verdicts.
 *
 * `struct offers` belongs to one holder (a shard of batch, a node of spanjoin): its `next` passes
 * on one item that is due. `struct offer` is one item in progress, whose receipt is settled when
 * another component has accepted responsibility for it.
 *
 * Owner: `struct offers` and `struct offer` are members of the holder's structs.
 *
 * Thread: that of the node.
 */
#ifndef PROFCOL_CORE_PIPELINE_OFFER_H
#define PROFCOL_CORE_PIPELINE_OFFER_H

#include "core/pipeline/pace.h"
#include "core/pipeline/receipt.h"

struct batch;
struct node;

struct offers {
    struct node *node;
    /* Passes on the next item that is due. Returns false if none is due. */
    bool (*next)(struct offers *offers);
    struct pace pace;
    size_t under_way; /* offers that are not settled */
};

/* Initialises the offers of a holder, on the node's worker. */
void offers_init(struct offers *offers, struct node *node, bool (*next)(struct offers *offers));
/* Calls `next` until it returns false or the limit for this turn of the loop is reached (pace.h);
 * the rest follows in the next turn. */
void offers_pump(struct offers *offers);
/* Call it in `next`: counts bytes that are processed (pace_count_work). */
void offers_count_work(struct offers *offers, size_t bytes);
/* Stops calling `next`. No offer may be in progress. */
void offers_stop(struct offers *offers);

/* One item in progress. */
struct offer {
    struct receipt receipt; /* first */
    struct offers *offers;
    const struct receipt *senders; /* receipt of the senders if they wait for the outcome; else
                                    * NULL. Set before offer_send; the holder's */
    /* The last call for this offer: it was accepted, refused permanently, or given up at the stop.
     * May run inside offer_send. */
    void (*on_settled)(struct offer *offer, const struct verdict *verdict);
};

/* Passes the batch, which has no receipt, to the next node. acknowledged: a sender already got
 * success, so the outlet keeps a batch that the next node cannot accept yet (outlet.h), and the
 * verdict is never "try later" before the stop. */
void offer_send(struct offer *offer, struct offers *offers, struct batch *batch, bool acknowledged,
                void (*on_settled)(struct offer *offer, const struct verdict *verdict));

#endif

/*
 * receipt: the obligation to answer for a request.
 *
 * A receiver creates one for each request, and answers its client when it is settled. A receipt has
 * parts; a fan-out adds some. Each part is settled once, by the code that takes responsibility for
 * the data (a queue that accepted it, a holder that admitted it, a backend that accepted it) or
 * that refuses it. The whole receipt is settled with the first verdict that is not OK, otherwise
 * with OK. A permanent refusal takes precedence over "try later", because sending again would not
 * help.
 *
 * Owner: the code that created it; the receipt must exist until on_settled has been called.
 *
 * Thread: the worker that created it. Other threads post a message to it (worker.h).
 */
#ifndef PROFCOL_CORE_PIPELINE_RECEIPT_H
#define PROFCOL_CORE_PIPELINE_RECEIPT_H

#include "core/base/verdict.h"

/* Somebody who wants to know how a receipt is settled. */
struct receipt_watch {
    struct receipt_watch *next;
    /* Called once, before on_settled of the receipt; may free the watch. */
    void (*on_verdict)(struct receipt_watch *watch, const struct verdict *verdict);
};

struct receipt {
    uint32_t open; /* parts not yet settled */
    struct verdict worst;
    bool taken; /* a part was settled with OK */
    /* The last call on the receipt; it may free the receipt. May run inside receipt_settle, and so
     * inside `consume`. */
    void (*on_settled)(struct receipt *receipt, const struct verdict *verdict);
    /* Whether the client no longer waits for the answer: it timed out, reset its stream or closed
     * its connection, and will send the data again. NULL: never. Set it after receipt_init. */
    bool (*is_abandoned)(const struct receipt *receipt);
    struct receipt_watch *watches;
};

/* Initialises a receipt with one open part. */
void receipt_init(struct receipt *receipt,
                  void (*on_settled)(struct receipt *receipt, const struct verdict *verdict));
/* Tells the watch how the receipt is settled, which has an open part. */
void receipt_add_watch(struct receipt *receipt, struct receipt_watch *watch);
/* Adds parts to a receipt that still has an open one. */
void receipt_add_parts(struct receipt *receipt, uint32_t parts);
/* Settles one open part. With the last one, calls on_settled with the receipt's verdict. */
void receipt_settle(struct receipt *receipt, const struct verdict *verdict);
/* Whether the client no longer waits for the answer and no component has accepted any of the data.
 * Check this before sending held data with an open part: the client sends abandoned data again, so
 * delivering it would duplicate it. False for NULL. */
bool receipt_is_abandoned(const struct receipt *receipt);

/* One receipt for data joined from the requests of several senders. Settling it settles an open
 * part of each of their receipts. It is abandoned when all of them are. */
struct receipt_group;
/* Adds a receipt to the group; if group is NULL, creates a new one. Returns the group, which frees
 * itself when it is settled. */
struct receipt_group *receipt_group_add(struct receipt_group *group, struct receipt *receipt);
/* Returns the receipt of the group. */
struct receipt *receipt_of_group(struct receipt_group *group);
/* Calls `visit` for the receipt, or for each member if it is the receipt of a group. Does nothing
 * for NULL. */
void receipt_visit(const struct receipt *receipt,
                   void (*visit)(const struct receipt *receipt, void *context), void *context);

#endif

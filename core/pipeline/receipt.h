/*
 * receipt: the promise behind an answer of success.
 *
 * A receiver makes one for each request and answers its client when it settles. It is counted:
 * fan-out takes more parts, each part is settled once by whoever takes responsibility for the data
 * (a queue that has it, a holder that admitted it, a backend that took it) or refuses it. Settled
 * as a whole with the first verdict that is not OK, else OK (a permanent refusal outweighs a "try
 * later": sending again would not help).
 *
 * Owner: the maker; it must live until on_settled was called.
 *
 * Thread: the worker that made it. Others post back (worker.h).
 */
#ifndef PROFCOL_CORE_PIPELINE_RECEIPT_H
#define PROFCOL_CORE_PIPELINE_RECEIPT_H

#include "core/base/verdict.h"

struct receipt {
    uint32_t open; /* parts not yet settled */
    struct verdict worst;
    bool taken; /* a part was settled with OK */
    /* Last call on the receipt; may free it. May run inside receipt_settle, so inside `consume`. */
    void (*on_settled)(struct receipt *receipt, const struct verdict *verdict);
    /* Whether nobody waits for the answer any more: the client timed out, reset its stream or
     * closed its connection, and will send the data again. NULL: never. Set by the maker after
     * receipt_init. */
    bool (*is_abandoned)(const struct receipt *receipt);
};

/* With one part open. */
void receipt_init(struct receipt *receipt,
                  void (*on_settled)(struct receipt *receipt, const struct verdict *verdict));
void receipt_add_parts(struct receipt *receipt, uint32_t parts);
void receipt_settle(struct receipt *receipt, const struct verdict *verdict);
/* Whether nobody waits for the answer any more and nobody has taken any of the data. Whoever holds
 * unsent data with an open part asks this before it sends: delivering what its client has given up
 * would duplicate it, because the client sends it again. False for NULL. */
bool receipt_is_abandoned(const struct receipt *receipt);

/* One receipt that stands for several: data that was joined from the requests of several senders.
 * Settling it settles an open part of each. It is abandoned when all of them are. */
struct receipt_group;
/* Adds a receipt to the group; NULL makes a new one. Returns the group, which frees itself when it
 * is settled. */
struct receipt_group *receipt_group_add(struct receipt_group *group, struct receipt *receipt);
struct receipt *receipt_of_group(struct receipt_group *group);
/* Calls `visit` for the receipt, or for each that it stands for when it is a group's. NULL has
 * none. */
void receipt_visit(const struct receipt *receipt,
                   void (*visit)(const struct receipt *receipt, void *context), void *context);

#endif

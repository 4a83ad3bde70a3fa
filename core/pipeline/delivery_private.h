/*
 * delivery_private: what the files of delivery share.
 *
 * A `struct shipment` is first in delivery->waiting (delivery_queue.c), then in delivery->active
 * (delivery_attempts.c), and is then freed.
 *
 * Owner: the delivery owns its shipments.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_DELIVERY_PRIVATE_H
#define PROFCOL_CORE_PIPELINE_DELIVERY_PRIVATE_H

#include "core/base/container_of.h"
#include "core/pipeline/delivery.h"

static inline struct shipment *shipment_of(struct list_link *link)
{
    return link ? container_of(link, struct shipment, link) : NULL;
}

/* Whether the client has given up before any backend received the data. */
static inline bool shipment_is_abandoned(const struct shipment *shipment)
{
    return receipt_is_abandoned(shipment->batch->receipt);
}

/* ---- counting and logging (delivery.c) ---- */

/* Counts items on the node's worker. */
void delivery_count(struct delivery *delivery, struct counter *counter, uint64_t items);
/* Counts items that were not sent. error_type: as of verdict_error_type, or "Shutdown". */
void delivery_count_failed(struct delivery *delivery, const char *error_type, bool is_permanent,
                           uint64_t items);
/* Logs items that were given up, at most once in 10 s, with their sum. acknowledged: they are
 * dropped; else their sender is told. */
void delivery_log_failed(struct delivery *delivery, bool acknowledged, const char *error,
                         uint64_t items);

/* ---- waiting requests (delivery_queue.c) ---- */

/* Appends the batch, split if it is too large. */
void delivery_enqueue(struct delivery *delivery, struct batch *batch, const struct room *room);
/* Sends requests that are due, while consumers are free. */
void delivery_pump(struct delivery *delivery);
void delivery_on_flush(struct timer *timer);
/* Cancels the splitting of a request, which then stays whole. Does nothing if it is not being
 * split. */
void delivery_end_cutting(struct shipment *shipment);

/* Moves a request to the successor of its delivery. Returns false, and does nothing, if there is
 * none or if it has no room. */
bool delivery_pass_on(struct shipment *shipment);

/* ---- attempts (delivery_attempts.c) ---- */

/* Creates a request that is in no list. Takes ownership of the batch and the room. */
struct shipment *delivery_shipment_new(struct delivery *delivery, struct batch *batch,
                                       const struct room *room);
/* Begins the first attempt of a request that is in no list. */
void delivery_activate(struct shipment *shipment);
/* Frees a request that is in no list. Returns its batch, whose room in the queue is released. */
struct batch *delivery_shipment_release(struct shipment *shipment);

#endif

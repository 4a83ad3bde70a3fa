/*
 * delivery_private: what the files of delivery share.
 *
 * A shipment is either in delivery->waiting (delivery_queue.c) or in delivery->active
 * (delivery_attempts.c), and then it is gone.
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

/* Whether nobody waits for the answer any more, and nobody has the data yet. */
static inline bool shipment_is_abandoned(const struct shipment *shipment)
{
    return receipt_is_abandoned(shipment->batch->receipt);
}

/* ---- counting and logging (delivery.c) ---- */

/* Counts items on the node's worker. */
void delivery_count(struct delivery *delivery, struct counter *counter, uint64_t items);
/* Nobody is left who would send the items again. why, error: two halves of the reason. */
void delivery_log_dropped(const struct delivery *delivery, const char *why, const char *error,
                          uint64_t items);
/* Their sender is told. */
void delivery_log_rejected(const struct delivery *delivery, const char *why, const char *error,
                           uint64_t items);

/* ---- what waits (delivery_queue.c) ---- */

/* Appends the batch, split if it is too large. */
void delivery_enqueue(struct delivery *delivery, struct batch *batch, const struct room *room);
/* Sends what is due as far as there are consumers. */
void delivery_pump(struct delivery *delivery);
void delivery_on_flush(struct timer *timer);
/* Ends the splitting of a shipment, which then stays whole. */
void delivery_end_cutting(struct shipment *shipment);

/* ---- what is being sent (delivery_attempts.c) ---- */

/* Creates a shipment that is in no list. Takes ownership of the batch and the room. */
struct shipment *delivery_shipment_new(struct delivery *delivery, struct batch *batch,
                                       const struct room *room);
/* Begins the first attempt of a shipment that is in no list. */
void delivery_activate(struct shipment *shipment);
/* Frees a shipment that is out of all lists. Returns its batch, which has no room any more. */
struct batch *delivery_shipment_release(struct shipment *shipment);

#endif

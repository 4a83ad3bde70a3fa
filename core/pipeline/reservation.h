/*
 * reservation: room for one batch in every queue with block_on_overflow that it reaches, before
 * any of them gets it.
 *
 * The outlet where the batch starts makes it, the batch and its clones carry it
 * through the pipelines, and the queues use it (delivery.h). Reservations do not extend beyond
 * nodes that hold what they consume, which have their own limits.
 *
 * Owner: reference counted. reservation_close gives back room that no queue used.
 *
 * Thread: the worker of its nodes.
 */
#ifndef PROFCOL_CORE_PIPELINE_RESERVATION_H
#define PROFCOL_CORE_PIPELINE_RESERVATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch;
struct delivery;
struct node;
struct outlet;
struct reservation;

/* What is reserved in one queue. */
struct room {
    struct delivery *delivery;
    uint64_t queued_size; /* in the unit of its sizer */
    size_t bytes;
};

/* Returns a reservation with one reference. NULL: a queue has no room; then *full_out is its node,
 * and nothing is reserved. If a queue is reached twice and has room for one batch only, room is
 * reserved once. */
struct reservation *reservation_new(const struct outlet *outlet, struct batch *batch,
                                    struct node **full_out);
/* reservation_ref adds a reference and returns it, reservation_unref drops one. NULL is allowed. */
struct reservation *reservation_ref(struct reservation *reservation);
void reservation_unref(struct reservation *reservation);
/* Hands over the room reserved for one batch in the queue of `delivery`; false if nothing is
 * reserved there, or nothing is left. NULL has nothing. */
bool reservation_take(struct reservation *reservation, struct delivery *delivery,
                      struct room *room_out);
/* Gives back the room that was not taken, once nobody keeps the reservation. Does nothing for NULL.
 */
void reservation_close(struct reservation *reservation);
/* For a node that hands its batch on later, not within `consume`: what is reserved stays until
 * then. Each with a reference; NULL is allowed. */
struct reservation *reservation_keep(struct reservation *reservation);
void reservation_end_keep(struct reservation *reservation);
/* Whether a queue with block_on_overflow is behind the outlet. */
bool reservation_is_needed(const struct outlet *outlet);

#endif

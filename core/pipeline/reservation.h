/*
 * reservation: room for one batch in every queue with block_on_overflow that it reaches, before
 * any of them gets it.
 *
 * The outlet where the batch starts makes it (queues_behind.h), the batch and its clones carry it
 * through the pipelines, and the queues use it (delivery.h).
 *
 * Owner: reference counted. reservation_close gives back room that no queue used.
 *
 * Thread: the worker of its nodes.
 */
#ifndef PROFCOL_CORE_PIPELINE_RESERVATION_H
#define PROFCOL_CORE_PIPELINE_RESERVATION_H

#include <stdbool.h>

struct queue;
struct reservation;
struct room;

/* Returns a reservation of no room with one reference. */
struct reservation *reservation_new(void);
/* Adds room, which the reservation then owns. It must not be closed. */
void reservation_add(struct reservation *reservation, const struct room *room);
/* Whether the queue holds nothing but what is reserved here, and something is. */
bool reservation_has_all_of(const struct reservation *reservation, struct queue *queue);
/* reservation_ref adds a reference and returns it, reservation_unref drops one. NULL is allowed. */
struct reservation *reservation_ref(struct reservation *reservation);
void reservation_unref(struct reservation *reservation);
/* Hands over the room reserved for one batch in the queue; false if nothing is reserved there, or
 * nothing is left. NULL has nothing. */
bool reservation_take(struct reservation *reservation, const struct queue *queue,
                      struct room *room_out);
/* Gives back the room that was not taken, once nobody keeps the reservation. Does nothing for NULL.
 */
void reservation_close(struct reservation *reservation);
/* For a node that hands its batch on later, not within `consume`: what is reserved stays until
 * then. Each with a reference; NULL is allowed. */
struct reservation *reservation_keep(struct reservation *reservation);
void reservation_end_keep(struct reservation *reservation);

#endif

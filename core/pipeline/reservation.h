/*
 * reservation: room for one batch in every queue with block_on_overflow that it reaches, reserved
 * before any of them gets the batch.
 *
 * The outlet at which the batch starts creates it (queues_behind.h), the batch and its clones carry
 * it through the pipelines, and the queues use it (delivery.h).
 *
 * Owner: reference counted. reservation_close releases room that no queue used.
 *
 * Thread: the worker of its nodes.
 */
#ifndef PROFCOL_CORE_PIPELINE_RESERVATION_H
#define PROFCOL_CORE_PIPELINE_RESERVATION_H

#include <stdbool.h>

struct queue;
struct reservation;
struct room;

/* Returns an empty reservation with one reference. */
struct reservation *reservation_new(void);
/* Adds room, which the reservation then owns. It must not be closed. */
void reservation_add(struct reservation *reservation, const struct room *room);
/* Whether everything in the queue is reserved by this reservation, and at least one batch is. */
bool reservation_has_all_of(const struct reservation *reservation, struct queue *queue);
/* reservation_ref adds a reference and returns it, reservation_unref drops one. NULL is allowed. */
struct reservation *reservation_ref(struct reservation *reservation);
void reservation_unref(struct reservation *reservation);
/* Moves the room reserved for one batch in the queue to *room_out. Returns false if nothing is
 * reserved there, or nothing is left, or if the reservation is NULL. */
bool reservation_take(struct reservation *reservation, const struct queue *queue,
                      struct room *room_out);
/* Releases the room that was not taken, as soon as no node keeps the reservation. Does nothing
 * for NULL. */
void reservation_close(struct reservation *reservation);
/* For a node that passes its batch on after `consume` has returned: reservation_keep keeps the
 * room reserved until reservation_end_keep. They also add and drop a reference. NULL is allowed. */
struct reservation *reservation_keep(struct reservation *reservation);
void reservation_end_keep(struct reservation *reservation);

#endif

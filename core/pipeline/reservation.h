/*
 * reservation: room for one batch in every queue with block_on_overflow that it reaches, before
 * any of them gets it.
 *
 * Made by the outlet where the batch starts, carried by the batch and its clones while they pass
 * through the pipelines, used by the queues (delivery.h). Nodes that hold what they consume end
 * the way: their own bounds count there.
 *
 * Owner: counted. What no queue used is given back by reservation_close.
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

/* With one reference. NULL: a queue has no room; *full_out is its node, and nothing is reserved. A
 * queue that is reached twice and has room for one only is reserved once. */
struct reservation *reservation_new(const struct outlet *outlet, struct batch *batch,
                                    struct node **full_out);
struct reservation *reservation_ref(struct reservation *reservation);
void reservation_unref(struct reservation *reservation);
/* Hands over what is reserved for one batch in the queue of `delivery`; false when there is nothing
 * (left). NULL has nothing. */
bool reservation_take(struct reservation *reservation, struct delivery *delivery,
                      struct room *room_out);
/* Gives back what was not taken, once nobody keeps it. Of NULL: nothing. */
void reservation_close(struct reservation *reservation);
/* For a node that hands its batch on later, not within `consume`: what is reserved stays until
 * then. Each with a reference; NULL is allowed. */
struct reservation *reservation_keep(struct reservation *reservation);
void reservation_end_keep(struct reservation *reservation);
/* Whether a queue with block_on_overflow is behind the outlet. */
bool reservation_is_needed(const struct outlet *outlet);

#endif

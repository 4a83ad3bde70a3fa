/*
 * queues_behind: the queues that a batch reaches from an outlet without being held on the way.
 *
 * The search ends at nodes that hold what they consume (`holds` in component.h), which have their
 * own limits.
 *
 * Owner: the caller owns the reservation; nothing else is allocated.
 *
 * Thread: the worker of the nodes.
 */
#ifndef PROFCOL_CORE_PIPELINE_QUEUES_BEHIND_H
#define PROFCOL_CORE_PIPELINE_QUEUES_BEHIND_H

#include <stdbool.h>

struct batch;
struct outlet;
struct queue;

/* Whether one of the queues has block_on_overflow. */
bool queues_behind_block(const struct outlet *outlet);
/* Reserves room for the batch in each queue with block_on_overflow. Returns a reservation with
 * one reference. If a queue has no room, sets *full_out to it, reserves nothing and returns
 * NULL. If a queue is reached twice and has room for one batch only, room is reserved once. */
struct reservation *queues_behind_reserve(const struct outlet *outlet, struct batch *batch,
                                          struct queue **full_out);

#endif

/*
 * queue: how much an exporter has queued and is sending, over all workers, and how much room it
 * has left.
 *
 * Room is limited twice: in the unit of sending_queue.sizer, by queue_size, and in bytes, by the
 * exporter's share of the memory for requests. An exporter without sending_queue has only the
 * second limit. What is queued, and when it is sent, is in delivery.h.
 *
 * Owner: the exporter's component, one for each signal.
 *
 * Thread: any; the figures are atomics.
 */
#ifndef PROFCOL_CORE_PIPELINE_QUEUE_H
#define PROFCOL_CORE_PIPELINE_QUEUE_H

#include "core/base/budget.h"

#include <stdint.h>

struct counter;
struct queue;

/* The unit of sending_queue.queue_size; the first three in the order of its names. */
enum queue_sizer {
    QUEUE_SIZER_REQUESTS,
    QUEUE_SIZER_ITEMS,
    QUEUE_SIZER_BYTES,
    QUEUE_SIZER_NONE /* there is no sending_queue */
};

struct queue {
    _Atomic uint64_t queued; /* in the sizer's unit, what is being sent included */
    uint64_t capacity;
    enum queue_sizer sizer;
    bool blocks;                 /* when it is full, senders wait for room (block_on_overflow) */
    struct budget *held;         /* of the component: bytes of what is queued, being sent or kept */
    atomic_size_t sending_bytes; /* of that: what is queued or being sent */
    struct budget waiting;       /* bytes of requests whose senders wait for room */
    struct counter *enqueue_failed;
};

/* What is reserved in one queue. */
struct room {
    struct queue *queue;
    uint64_t queued_size; /* in the unit of its sizer */
    size_t bytes;
};

/* Reserves room for a request of a batch with so many bytes; false: there is none now. One request
 * always has room when nothing is queued or being sent, however large it is in bytes. */
bool queue_reserve(struct queue *queue, uint64_t queued_size, size_t bytes, struct room *room_out);
/* Gives back what was reserved. */
void queue_release(const struct room *room);
/* Whether nothing is queued or being sent but this. */
bool queue_has_only(const struct room *room);
/* Whether queue_size leaves room for so much; else the share of memory may still be used up. */
bool queue_has_capacity(const struct queue *queue, uint64_t queued_size);
/* Counts items for which there was no room and which are not offered again. worker: its index. */
void queue_count_overflow(struct queue *queue, unsigned worker, uint64_t items);

#endif

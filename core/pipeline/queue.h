/*
 * queue: how much an exporter has queued and is sending, over all workers, and how much room it
 * has left.
 *
 * Room is limited twice: in the unit of sending_queue.sizer, by queue_size, and in bytes, by the
 * exporter's share of the memory for requests and what it can borrow (share.h). An exporter without
 * sending_queue has only the second limit. What is queued, and when it is sent, is in delivery.h.
 *
 * Owner: the exporter's component, one for each signal.
 *
 * Thread: any; the figures are atomics.
 */
#ifndef PROFCOL_CORE_PIPELINE_QUEUE_H
#define PROFCOL_CORE_PIPELINE_QUEUE_H

#include "core/pipeline/share.h"

#include <stdint.h>

struct counter;
struct queue;

/* The unit of sending_queue.queue_size. The first three have the order of the setting's names. */
enum queue_sizer {
    QUEUE_SIZER_REQUESTS,
    QUEUE_SIZER_ITEMS,
    QUEUE_SIZER_BYTES,
    QUEUE_SIZER_NONE /* there is no sending_queue */
};

struct queue {
    _Atomic uint64_t queued; /* in the sizer's unit, including what is being sent */
    uint64_t capacity;
    enum queue_sizer sizer;
    bool blocks;                 /* block_on_overflow: when full, senders wait */
    struct share *held;          /* the component's: bytes queued, being sent or kept */
    atomic_size_t sending_bytes; /* the part that is queued or being sent */
    struct budget waiting;       /* bytes of requests whose senders wait for room */
    struct counter *enqueue_failed;
};

/* A reservation in one queue. */
struct room {
    struct queue *queue;
    uint64_t queued_size; /* in the unit of its sizer */
    size_t bytes;
    size_t lent_bytes; /* the part of them that is borrowed */
};

/* Reserves room for a batch of `bytes` bytes. Returns false if there is none now. If nothing is
 * queued or being sent, one request has room however many bytes it has. */
bool queue_reserve(struct queue *queue, uint64_t queued_size, size_t bytes, struct room *room_out);
/* Releases the reservation. */
void queue_release(const struct room *room);
/* Whether nothing else is queued or being sent. */
bool queue_has_only(const struct room *room);
/* Whether queue_size leaves room for `queued_size`. The limit in bytes is not tested. */
bool queue_has_capacity(const struct queue *queue, uint64_t queued_size);
/* Counts items for which there was no room and which are not offered again. worker: the worker's
 * index. */
void queue_count_overflow(struct queue *queue, unsigned worker, uint64_t items);

#endif

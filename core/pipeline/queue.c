#include "core/pipeline/queue.h"

#include "core/base/metrics.h"

#include <assert.h>

/* About how much memory a request takes besides its batch. It is counted so that many tiny
 * requests cannot exceed the limit. */
enum { REQUEST_BYTES = 1024 };

static bool reserve_capacity(struct queue *queue, uint64_t size)
{
    uint64_t queued = atomic_load_explicit(&queue->queued, memory_order_relaxed);
    do {
        if (size > queue->capacity || queued > queue->capacity - size)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&queue->queued, &queued, queued + size,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* If nothing is queued or being sent, one request always has room: kept batches do not count
 * then, because they may be waiting for this one. */
static bool reserve_bytes(struct queue *queue, size_t size, size_t *lent_out)
{
    size_t nothing = 0;
    if (share_reserve(queue->held, size, lent_out)) {
        atomic_fetch_add_explicit(&queue->sending_bytes, size, memory_order_relaxed);
        return true;
    }
    if (!atomic_compare_exchange_strong_explicit(&queue->sending_bytes, &nothing, size,
                                                 memory_order_relaxed, memory_order_relaxed))
        return false;
    budget_charge(&queue->held->own, size);
    return true;
}

static void release_bytes(struct queue *queue, size_t size, size_t lent)
{
    share_release(queue->held, size, lent);
    size_t before = atomic_fetch_sub_explicit(&queue->sending_bytes, size, memory_order_relaxed);
    assert(before >= size);
}

bool queue_reserve(struct queue *queue, uint64_t queued_size, size_t bytes, struct room *room_out)
{
    size_t lent;
    bytes += REQUEST_BYTES;
    if (!reserve_bytes(queue, bytes, &lent))
        return false;
    if (!reserve_capacity(queue, queued_size)) {
        release_bytes(queue, bytes, lent);
        return false;
    }
    *room_out = (struct room){queue, queued_size, bytes, lent};
    return true;
}

void queue_release(const struct room *room)
{
    struct queue *queue = room->queue;
    release_bytes(queue, room->bytes, room->lent_bytes);
    uint64_t before =
        atomic_fetch_sub_explicit(&queue->queued, room->queued_size, memory_order_relaxed);
    assert(before >= room->queued_size);
}

bool queue_has_only(const struct room *room)
{
    const struct queue *queue = room->queue;
    return atomic_load_explicit(&queue->queued, memory_order_relaxed) == room->queued_size &&
           atomic_load_explicit(&queue->sending_bytes, memory_order_relaxed) == room->bytes;
}

bool queue_has_capacity(const struct queue *queue, uint64_t queued_size)
{
    return atomic_load_explicit(&queue->queued, memory_order_relaxed) + queued_size <=
           queue->capacity;
}

void queue_count_overflow(struct queue *queue, unsigned worker, uint64_t items)
{
    counter_add(queue->enqueue_failed, worker, items);
}

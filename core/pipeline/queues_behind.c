#include "core/pipeline/queues_behind.h"

#include "core/base/container_of.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/node.h"
#include "core/pipeline/queue.h"
#include "core/pipeline/reservation.h"

#include <assert.h>

/* Calls `visit` for every queue until it returns false. */
struct visitor {
    bool (*visit)(struct visitor *visitor, struct queue *queue);
};

static bool visit_outlet(struct visitor *visitor, const struct outlet *outlet);

static bool visit_node(struct visitor *visitor, const struct node *node, enum signal signal)
{
    if (node->queue)
        return visitor->visit(visitor, node->queue);
    return node->holds || visit_outlet(visitor, &node->outlets[signal]);
}

static bool visit_outlet(struct visitor *visitor, const struct outlet *outlet)
{
    for (size_t i = 0; i < outlet->count; i++)
        if (!visit_node(visitor, outlet->branches[i]->to, outlet->signal))
            return false;
    return true;
}

static bool is_unblocked(struct visitor *visitor, struct queue *queue)
{
    (void)visitor;
    return !queue->blocks;
}

bool queues_behind_block(const struct outlet *outlet)
{
    struct visitor visitor = {is_unblocked};
    return !visit_outlet(&visitor, outlet);
}

struct reserving {
    struct visitor visitor;
    struct reservation *reservation;
    struct batch *batch;
    struct queue *full;
};

static bool reserve(struct visitor *visitor, struct queue *queue)
{
    struct reserving *reserving = container_of(visitor, struct reserving, visitor);
    struct room room = {.queue = queue};
    if (!queue->blocks)
        return true;
    uint64_t size = batch_queued_size(reserving->batch, queue);
    bool never_fits = size > queue->capacity; /* the queue will refuse it */
    if (!never_fits && !queue_reserve(queue, size, batch_memory(reserving->batch), &room)) {
        reserving->full = queue;
        /* If the batch reaches the queue twice and is all that the queue contains, waiting would
         * not help. */
        return reservation_has_all_of(reserving->reservation, queue);
    }
    reservation_add(reserving->reservation, &room);
    return true;
}

struct reservation *queues_behind_reserve(const struct outlet *outlet, struct batch *batch,
                                          struct queue **full_out)
{
    struct reserving reserving = {
        .visitor = {reserve}, .reservation = reservation_new(), .batch = batch};
    if (visit_outlet(&reserving.visitor, outlet))
        return reserving.reservation;
    assert(reserving.full); /* only reserve() says no */
    *full_out = reserving.full;
    reservation_close(reserving.reservation);
    reservation_unref(reserving.reservation);
    return NULL;
}

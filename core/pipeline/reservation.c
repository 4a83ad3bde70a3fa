#include "core/pipeline/reservation.h"

#include "core/base/memory.h"
#include "core/pipeline/delivery.h"

#include <assert.h>

struct reservation {
    unsigned references;
    unsigned keepers;
    bool is_closed; /* but for the keepers */
    struct room *rooms;
    size_t count;
};

/* Calls `visit` for every queue that a batch reaches from here without being held before. Ends with
 * the first that says no. */
struct visitor {
    bool (*visit)(struct visitor *visitor, struct delivery *delivery);
};

static bool visit_outlet(struct visitor *visitor, const struct outlet *outlet);

static bool visit_node(struct visitor *visitor, const struct node *node, enum signal signal)
{
    if (node->delivery)
        return visitor->visit(visitor, node->delivery);
    return node->component->type->holds || visit_outlet(visitor, &node->outlets[signal]);
}

static bool visit_outlet(struct visitor *visitor, const struct outlet *outlet)
{
    for (size_t i = 0; i < outlet->count; i++)
        if (!visit_node(visitor, outlet->branches[i]->to, outlet->signal))
            return false;
    return true;
}

static bool is_unblocked(struct visitor *visitor, struct delivery *delivery)
{
    (void)visitor;
    return !delivery_blocks(delivery);
}

bool reservation_is_needed(const struct outlet *outlet)
{
    struct visitor visitor = {is_unblocked};
    return !visit_outlet(&visitor, outlet);
}

struct reserving {
    struct visitor visitor; /* first */
    struct reservation *reservation;
    struct batch *batch;
    struct node *full;
};

/* Whether a queue that is reached twice is full of this batch alone: waiting would not help. */
static bool is_in_its_own_way(const struct reservation *reservation, struct delivery *delivery)
{
    struct room own = {.delivery = delivery};
    for (size_t i = 0; i < reservation->count; i++)
        if (reservation->rooms[i].delivery == delivery) {
            own.queued_size += reservation->rooms[i].queued_size;
            own.bytes += reservation->rooms[i].bytes;
        }
    return own.bytes > 0 && delivery_has_only(&own);
}

static bool reserve(struct visitor *visitor, struct delivery *delivery)
{
    struct reserving *reserving = (struct reserving *)visitor;
    struct reservation *reservation = reserving->reservation;
    struct room room = {.delivery = delivery};
    if (!delivery_blocks(delivery))
        return true;
    if (!delivery_reserve(delivery, reserving->batch, &room)) {
        reserving->full = delivery->node;
        return is_in_its_own_way(reservation, delivery);
    }
    reservation->rooms =
        memory_grow(reservation->rooms, reservation->count + 1, sizeof *reservation->rooms);
    reservation->rooms[reservation->count++] = room;
    return true;
}

struct reservation *reservation_new(const struct outlet *outlet, struct batch *batch,
                                    struct node **full_out)
{
    struct reserving reserving = {.visitor = {reserve}, .batch = batch};
    reserving.reservation = memory_zalloc(sizeof *reserving.reservation);
    reserving.reservation->references = 1;
    if (visit_outlet(&reserving.visitor, outlet))
        return reserving.reservation;
    *full_out = reserving.full;
    reservation_close(reserving.reservation);
    reservation_unref(reserving.reservation);
    return NULL;
}

struct reservation *reservation_ref(struct reservation *reservation)
{
    if (reservation)
        reservation->references++;
    return reservation;
}

void reservation_unref(struct reservation *reservation)
{
    if (!reservation || --reservation->references > 0)
        return;
    assert(reservation->count == 0);
    free(reservation->rooms);
    free(reservation);
}

bool reservation_take(struct reservation *reservation, struct delivery *delivery,
                      struct room *room_out)
{
    for (size_t i = 0; reservation && i < reservation->count; i++) {
        if (reservation->rooms[i].delivery != delivery)
            continue;
        *room_out = reservation->rooms[i];
        reservation->rooms[i] = reservation->rooms[--reservation->count];
        return true;
    }
    return false;
}

void reservation_close(struct reservation *reservation)
{
    if (!reservation)
        return;
    reservation->is_closed = true;
    while (reservation->keepers == 0 && reservation->count > 0)
        delivery_release(&reservation->rooms[--reservation->count]);
}

struct reservation *reservation_keep(struct reservation *reservation)
{
    if (reservation)
        reservation->keepers++;
    return reservation_ref(reservation);
}

void reservation_end_keep(struct reservation *reservation)
{
    if (!reservation)
        return;
    assert(reservation->keepers > 0);
    reservation->keepers--;
    if (reservation->is_closed)
        reservation_close(reservation);
    reservation_unref(reservation);
}

#include "core/pipeline/reservation.h"

#include "core/base/memory.h"
#include "core/pipeline/queue.h"

#include <assert.h>

struct reservation {
    unsigned references;
    unsigned keepers;
    bool is_closed; /* except to nodes that keep it */
    struct room *rooms;
    size_t count;
};

struct reservation *reservation_new(void)
{
    struct reservation *reservation = memory_zalloc(sizeof *reservation);
    reservation->references = 1;
    return reservation;
}

void reservation_add(struct reservation *reservation, const struct room *room)
{
    assert(!reservation->is_closed);
    reservation->rooms =
        memory_grow(reservation->rooms, reservation->count + 1, sizeof *reservation->rooms);
    reservation->rooms[reservation->count++] = *room;
}

bool reservation_has_all_of(const struct reservation *reservation, struct queue *queue)
{
    struct room own = {.queue = queue};
    for (size_t i = 0; i < reservation->count; i++)
        if (reservation->rooms[i].queue == queue) {
            own.queued_size += reservation->rooms[i].queued_size;
            own.bytes += reservation->rooms[i].bytes;
        }
    return own.bytes > 0 && queue_has_only(&own);
}

struct reservation *reservation_ref(struct reservation *reservation)
{
    if (reservation)
        reservation->references++;
    return reservation;
}

void reservation_unref(struct reservation *reservation)
{
    if (!reservation)
        return;
    assert(reservation->references > 0);
    if (--reservation->references > 0)
        return;
    assert(reservation->count == 0);
    free(reservation->rooms);
    free(reservation);
}

bool reservation_take(struct reservation *reservation, const struct queue *queue,
                      struct room *room_out)
{
    for (size_t i = 0; reservation && i < reservation->count; i++) {
        if (reservation->rooms[i].queue != queue)
            continue;
        assert(reservation->references > 0);
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
        queue_release(&reservation->rooms[--reservation->count]);
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

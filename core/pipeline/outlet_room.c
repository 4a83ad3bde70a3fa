#include "core/base/memory.h"
#include "core/pipeline/outlet_private.h"
#include "core/pipeline/queues_behind.h"
#include "core/pipeline/reservation.h"

#include <assert.h>

#define ROOM_POLL_NS INT64_C(20000000)
#define TRY_LATER_NS INT64_C(500000000) /* for a sender refused without room */

const struct verdict outlet_no_room = {
    .code = GRPC_UNAVAILABLE, .retry_after_ns = TRY_LATER_NS, .text = "sending queue is full"};

/* Refuses a batch whose sender has waited for ROOM_WAIT_NS, or for which too many bytes wait
 * already. */
static void refuse_waiting(struct kept *kept)
{
    struct outlet *outlet = kept->outlet;
    assert(!kept->branch);
    struct batch *batch = kept_take(kept);
    if (outlet->full) /* the queue without room; a reload forgets it */
        queue_count_overflow(outlet->full, outlet_worker(outlet)->index, batch->items);
    outlet_log_rejected(outlet, &outlet_no_room, batch->items);
    batch_drop(batch, &outlet_no_room);
}

static void on_waited_enough(struct timer *timer)
{
    refuse_waiting(container_of(timer, struct kept, timer));
}

/* Charges a batch of a waiting sender to the full queue's limit for such batches. Returns false
 * if it is reached. */
static bool charge_waiting(struct kept *kept)
{
    assert(!kept->charged && !timer_is_set(&kept->timer));
    struct budget *waiting = &kept->outlet->full->waiting;
    size_t size = kept_memory_of(kept->batch);
    if (!budget_reserve(waiting, size))
        return false;
    kept->charged = waiting;
    kept->charged_bytes = size;
    worker_set_timer(outlet_worker(kept->outlet), &kept->timer, ROOM_WAIT_NS);
    return true;
}

static void wait_for_room(struct outlet *outlet, struct batch *batch)
{
    struct kept *kept = memory_zalloc(sizeof *kept);
    batch_compact(batch);
    kept->outlet = outlet;
    kept->batch = batch;
    kept->timer.on_timer = on_waited_enough;
    list_append(&outlet->waiting, &kept->link);
    if (!batch->acknowledged && !charge_waiting(kept))
        refuse_waiting(kept);
    else if (!pace_is_paused(&outlet->rooms))
        pace_pause(&outlet->rooms, ROOM_POLL_NS);
}

/* Whether the batch can be passed on now; *reservation_out may then be NULL. During the drain,
 * no branch waits for another. */
static bool find_room(struct outlet *outlet, struct batch *batch,
                      struct reservation **reservation_out)
{
    *reservation_out = NULL;
    if (outlet->draining && batch->acknowledged)
        return true;
    *reservation_out = queues_behind_reserve(outlet, batch, &outlet->full);
    return *reservation_out != NULL;
}

static void forward_into(struct outlet *outlet, struct batch *batch,
                         struct reservation *reservation)
{
    batch->reservation = reservation_ref(reservation);
    outlet_forward_now(outlet, batch);
    reservation_close(reservation);
    reservation_unref(reservation);
}

bool outlet_forward_waiting(struct pace *pace)
{
    struct outlet *outlet = container_of(pace, struct outlet, rooms);
    struct reservation *reservation;
    if (!outlet->waiting.first)
        return false;
    struct kept *kept = container_of(outlet->waiting.first, struct kept, link);
    assert(!kept->branch); /* no branch has received it yet */
    if (receipt_is_abandoned(kept->batch->receipt)) {
        batch_drop(kept_take(kept), &verdict_sender_is_gone);
        return true;
    }
    if (!find_room(outlet, kept->batch, &reservation)) {
        pace_pause(pace, ROOM_POLL_NS);
        return false;
    }
    forward_into(outlet, kept_take(kept), reservation);
    return true;
}

void outlet_forward_reserved(struct outlet *outlet, struct batch *batch)
{
    struct reservation *reservation;
    if (outlet->waiting.count == 0 && find_room(outlet, batch, &reservation))
        forward_into(outlet, batch, reservation);
    else
        wait_for_room(outlet, batch);
}

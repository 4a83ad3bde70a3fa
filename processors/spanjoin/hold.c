#include "processors/spanjoin/hold.h"

#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "processors/spanjoin/spanjoin.h"

#include <assert.h>
#include <inttypes.h>

#define BACKOFF_MIN_NS 100000000
#define BACKOFF_MAX_NS 5000000000
enum { WAITER_BYTES = 32 }; /* of the index, for each key that a request waits for */

/* --- ids --- */

static struct hold_slot *slot_of(struct holds *holds, uint64_t id)
{
    uint32_t slot = (uint32_t)id;
    if (slot >= holds->slot_count || holds->slots[slot].generation != id >> 32)
        return NULL;
    return &holds->slots[slot];
}

static void grow_slots(struct holds *holds)
{
    uint32_t count = holds->slot_count ? holds->slot_count * 2 : 16;
    holds->slots = memory_grow(holds->slots, count, sizeof *holds->slots);
    for (uint32_t i = holds->slot_count; i < count; i++)
        holds->slots[i] =
            (struct hold_slot){.generation = 1, .next_free = i + 1 < count ? i + 2 : 0};
    holds->free_slot = holds->slot_count + 1;
    holds->slot_count = count;
}

uint64_t holds_take_id(struct spanjoin_node *node)
{
    struct holds *holds = &node->holds;
    if (holds->free_slot == 0)
        grow_slots(holds);
    uint32_t slot = holds->free_slot - 1;
    holds->free_slot = holds->slots[slot].next_free;
    return (uint64_t)holds->slots[slot].generation << 32 | slot;
}

void holds_return_id(struct spanjoin_node *node, uint64_t id)
{
    struct hold_slot *slot = slot_of(&node->holds, id);
    assert(slot);
    slot->hold = NULL;
    slot->generation++;
    slot->next_free = node->holds.free_slot;
    node->holds.free_slot = (uint32_t)id + 1;
}

/* --- life --- */

static void link_hold(struct holds *holds, struct hold *hold)
{
    hold->previous = holds->last;
    if (holds->last)
        holds->last->next = hold;
    else
        holds->first = hold;
    holds->last = hold;
    holds->count++;
}

static void unlink_hold(struct holds *holds, struct hold *hold)
{
    if (hold->previous)
        hold->previous->next = hold->next;
    else
        holds->first = hold->next;
    if (hold->next)
        hold->next->previous = hold->previous;
    else
        holds->last = hold->previous;
    holds->count--;
}

/* Takes it off the node's books; the struct stays. */
static void detach(struct hold *hold)
{
    struct spanjoin_node *node = hold->node;
    worker_cancel_timer(node->node.worker, &hold->timer);
    unlink_hold(&node->holds, hold);
    holds_return_id(node, hold->id);
    budget_release(&node->join->held, hold->charged);
    gauge_add(node->join->metrics.held_requests, -1);
    batch_free(hold->kept);
    hold->kept = NULL;
    hold->node = NULL;
}

static void drained_if_empty(struct spanjoin_node *node)
{
    if (node->node.draining && !node->node.drained && node->holds.count == 0)
        node_drained(&node->node);
}

static void end(struct hold *hold)
{
    struct spanjoin_node *node = hold->node;
    detach(hold);
    free(hold);
    drained_if_empty(node);
}

static void on_hold_timer(struct timer *timer)
{
    hold_leave(container_of(timer, struct hold, timer));
}

struct hold *hold_new(struct spanjoin_node *node, uint64_t id, struct batch *kept, size_t charged)
{
    assert(!kept->receipt);
    struct hold *hold = memory_zalloc(sizeof *hold);
    hold->node = node;
    hold->id = id;
    hold->kept = kept;
    hold->charged = charged;
    hold->backoff_ns = BACKOFF_MIN_NS;
    hold->timer.on_timer = on_hold_timer;
    slot_of(&node->holds, id)->hold = hold;
    link_hold(&node->holds, hold);
    gauge_add(node->join->metrics.held_requests, 1);
    return hold;
}

void hold_wait(struct hold *hold, uint32_t missing, int64_t wait_ns)
{
    assert(hold->state == HOLD_WAITS && missing > 0);
    hold->missing = missing;
    worker_set_timer(hold->node->node.worker, &hold->timer, (uint64_t)wait_ns);
}

/* --- leaving --- */

static void offer_later(struct hold *hold, const struct verdict *verdict)
{
    int64_t delay =
        verdict->retry_after_ns > hold->backoff_ns ? verdict->retry_after_ns : hold->backoff_ns;
    if (delay > BACKOFF_MAX_NS)
        delay = BACKOFF_MAX_NS;
    hold->backoff_ns =
        hold->backoff_ns * 2 < BACKOFF_MAX_NS ? hold->backoff_ns * 2 : BACKOFF_MAX_NS;
    hold->state = HOLD_REFUSED;
    worker_set_timer(hold->node->node.worker, &hold->timer, (uint64_t)delay);
}

static void refused_for_good(struct hold *hold, const struct verdict *verdict)
{
    struct spanjoin_node *node = hold->node;
    counter_add(node->join->metrics.dropped_refused, node->node.worker->index, hold->kept->items);
    log_error(node->node.component->label, "%" PRIu32 " %s that were held are lost: %s: %s",
              hold->kept->items, signal_item_name(node->node.signal), grpc_code_name(verdict->code),
              verdict->text);
    end(hold);
}

static void on_offer_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct hold *hold = (struct hold *)receipt;
    if (!hold->node) {
        free(hold);
        return;
    }
    assert(hold->state == HOLD_OFFERED);
    if (verdict_is_ok(verdict)) {
        spanjoin_count(hold->node, &hold->counts);
        end(hold);
    } else if (verdict_is_retryable(verdict)) {
        offer_later(hold, verdict);
    } else {
        refused_for_good(hold, verdict);
    }
}

void hold_leave(struct hold *hold)
{
    struct spanjoin_node *node = hold->node;
    assert(hold->state != HOLD_OFFERED);
    worker_cancel_timer(node->node.worker, &hold->timer);
    hold->state = HOLD_OFFERED;
    hold->counts = (struct join_counts){0};
    struct batch *offer = batch_clone(hold->kept);
    spanjoin_enrich_held(node, hold, offer);
    hold->was_offered = true;
    receipt_init(&hold->receipt, on_offer_settled);
    offer->receipt = &hold->receipt;
    node_forward(&node->node, offer);
}

void holds_wake(struct spanjoin_node *node, uint64_t id)
{
    struct hold_slot *slot = slot_of(&node->holds, id);
    struct hold *hold = slot ? slot->hold : NULL;
    if (!hold || hold->state != HOLD_WAITS)
        return;
    assert(hold->missing > 0);
    if (--hold->missing == 0)
        hold_leave(hold);
}

/* --- memory --- */

static struct hold *oldest_waiting(struct holds *holds)
{
    struct hold *hold = holds->first;
    while (hold && hold->state != HOLD_WAITS)
        hold = hold->next;
    return hold;
}

enum hold_room holds_make_room(struct spanjoin_node *node, const struct batch *kept, size_t waiters,
                               size_t *charged_out)
{
    struct budget *held = &node->join->held;
    size_t size = batch_memory(kept) + sizeof(struct hold) + waiters * WAITER_BYTES;
    *charged_out = size;
    if (size > held->limit_bytes)
        return HOLD_NEVER;
    while (!budget_reserve(held, size)) {
        struct hold *oldest = oldest_waiting(&node->holds);
        if (!oldest)
            return HOLD_NO_ROOM;
        oldest->overflow = true;
        hold_leave(oldest);
    }
    return HOLD_ROOM;
}

/* --- the end --- */

void holds_drain(struct spanjoin_node *node)
{
    struct holds *holds = &node->holds;
    size_t count = holds->count, i = 0;
    uint64_t *ids = memory_array(count + 1, sizeof *ids);
    for (struct hold *hold = holds->first; hold; hold = hold->next)
        ids[i++] = hold->id;
    for (i = 0; i < count; i++) {
        struct hold_slot *slot = slot_of(holds, ids[i]);
        if (slot && slot->hold->state != HOLD_OFFERED)
            hold_leave(slot->hold);
    }
    free(ids);
    drained_if_empty(node);
}

uint64_t holds_give_up(struct spanjoin_node *node)
{
    uint64_t items = 0;
    while (node->holds.first) {
        struct hold *hold = node->holds.first;
        items += hold->kept->items;
        bool is_offered = hold->state == HOLD_OFFERED;
        detach(hold);
        if (!is_offered) /* else its receipt is still to be settled */
            free(hold);
    }
    free(node->holds.slots);
    node->holds = (struct holds){0};
    return items;
}

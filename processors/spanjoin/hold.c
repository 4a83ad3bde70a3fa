#include "processors/spanjoin/hold.h"

#include "core/base/container_of.h"
#include "core/base/job.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/data/instances.h"
#include "core/data/span_index.h"
#include "processors/spanjoin/join_offer.h"

#include <assert.h>
#include <inttypes.h>

/* Approximate memory of a held request without its bytes, here and in the next nodes. */
enum { HOLD_BYTES = 1536 };
enum {
    WAITER_BYTES = 128
}; /* memory for each thing that a request waits for, in the index and here */
enum { LEAVING_PART = 4 }; /* at most a quarter of the limit is sent on early at a time */

/* ---- ids ---- */

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
        holds->slots[i] = (struct hold_slot){.generation = holds->first_generation,
                                             .next_free = i + 1 < count ? i + 2 : 0};
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
    holds->slots[slot].early = 0;
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

/* ---- start and end ---- */

static bool has_left(const struct hold *hold)
{
    return !hold->kept;
}

/* Frees a hold without a batch. */
static void end(struct hold *hold)
{
    struct spanjoin_node *node = hold->node;
    assert(has_left(hold) && !hold->link.list);
    worker_cancel_timer(node->node.worker, &hold->timer);
    holds_return_id(node, hold->id);
    budget_release(&node->join->held, hold->charged);
    budget_release(&node->join->leaving, hold->charged);
    gauge_add(node->join->metrics.held_requests, -1);
    waiting_keys_deinit(&hold->keys);
    assert(hold->uploads.count == 0);
    instances_stop_waiting(span_index_instances(node->join->index), hold->waiters);
    free(hold->report);
    join_lags_deinit(&hold->lags);
    free(hold);
}

/* Ends the wait of a request. */
static void end_wait(struct hold *hold, enum spans_wait_end how)
{
    struct spanjoin_node *node = hold->node;
    if (node->node.signal == SIGNAL_TRACES)
        counter_add(node->join->metrics.spans_waited[how], node->node.worker->index, hold->items);
    hold_leave(hold);
}

static void on_hold_timer(struct timer *timer)
{
    end_wait(container_of(timer, struct hold, timer), SPANS_WAIT_TIMED_OUT);
}

struct hold *hold_new(struct spanjoin_node *node, uint64_t id, struct batch *kept, size_t charged)
{
    assert(!kept->receipt);
    struct hold *hold = memory_zalloc(sizeof *hold);
    hold->node = node;
    hold->id = id;
    hold->kept = kept;
    hold->items = kept->items;
    hold->charged = charged;
    hold->timer.on_timer = on_hold_timer;
    slot_of(&node->holds, id)->hold = hold;
    list_append(&node->holds.waiting, &hold->link);
    gauge_add(node->join->metrics.held_requests, 1);
    return hold;
}

void hold_wait(struct hold *hold, uint32_t missing, int64_t wait_ns)
{
    uint32_t early = slot_of(&hold->node->holds, hold->id)->early;
    assert(hold->link.list == &hold->node->holds.waiting && missing > 0 && early <= missing);
    hold->missing = missing - early;
    if (hold->missing == 0) {
        end_wait(hold, SPANS_WAIT_COVERED);
        return;
    }
    worker_set_timer(hold->node->node.worker, &hold->timer, (uint64_t)wait_ns);
}

/* ---- sending on ---- */

/* Acknowledged data is refused with "try later" only at the stop. */
static void count_lost(struct hold *hold, const struct verdict *verdict)
{
    struct spanjoin_node *node = hold->node;
    if (verdict_is_retryable(verdict)) {
        node->holds.lost += hold->items;
        return;
    }
    counter_add(node->join->metrics.dropped_refused, node->node.worker->index, hold->items);
    char error[VERDICT_ERROR_MAX];
    log_error(node->node.origin, "Held data is lost: the next component refused it.",
              LOG_TEXT("error", verdict_print(verdict, error)),
              LOG_U64("dropped_items", hold->items));
}

static void on_offer_settled(struct offer *offer, const struct verdict *verdict)
{
    struct hold *hold = container_of(offer, struct hold, offer);
    if (verdict_is_ok(verdict))
        spanjoin_count(hold->node, &hold->counts);
    else
        count_lost(hold, verdict);
    end(hold);
}

static void enrich(struct hold *hold, struct batch *batch)
{
    struct node *node = &hold->node->node;
    struct worker_piece piece;
    node_begin_piece(node, batch, &piece);
    spanjoin_enrich_held(hold->node, hold, batch, node->worker->now_ns);
    worker_end_piece(node->worker, &piece);
}

/* Sends a request on, after it was enriched. */
static void hand_on(struct hold *hold)
{
    struct holds *holds = &hold->node->holds;
    struct batch *batch = hold->kept;
    assert(holds->leaving_bytes >= hold->charged);
    holds->leaving_bytes -= hold->charged;
    hold->kept = NULL;
    join_lags_record(&hold->lags, hold->node->join->metrics.lag, hold->node->node.worker->index);
    spanjoin_settle(hold->node);
    join_offer_make(hold->node, batch, hold->report);
    hold->report = NULL;
    if (batch->items == 0) {
        batch_free(batch);
        spanjoin_count(hold->node, &hold->counts);
        end(hold);
        return;
    }
    offer_send(&hold->offer, &holds->offers, batch, true, on_offer_settled);
}

/* A job that enriches a large request. */
struct leaving_job {
    struct job job;
    struct list_link link;
    struct hold *hold;
    uint64_t now_ns;
};

static void run_leaving(struct job *job)
{
    struct leaving_job *leaving = container_of(job, struct leaving_job, job);
    struct hold *hold = leaving->hold;
    spanjoin_enrich_held(hold->node, hold, hold->kept, leaving->now_ns);
    batch_flatten(hold->kept); /* here, because the next node would do it on the loop */
}

/* Frees the job, which is not in a list any more, and returns its hold. */
static struct hold *end_leaving_job(struct leaving_job *leaving)
{
    struct hold *hold = leaving->hold;
    assert(!leaving->link.list);
    batch_take_back(hold->kept, hold->node->node.worker);
    free(leaving);
    return hold;
}

static void on_left(struct job *job, bool did_run)
{
    struct leaving_job *leaving = container_of(job, struct leaving_job, job);
    assert(did_run);
    list_remove(&leaving->hold->node->holds.working, &leaving->link);
    hand_on(end_leaving_job(leaving));
}

static void begin_leaving_job(struct hold *hold)
{
    struct worker *worker = hold->node->node.worker;
    struct leaving_job *leaving = memory_zalloc(sizeof *leaving);
    leaving->hold = hold;
    leaving->now_ns = worker->now_ns;
    leaving->job = (struct job){.run = run_leaving, .on_done = on_left};
    list_append(&hold->node->holds.working, &leaving->link);
    batch_lend(hold->kept);
    job_start(worker, &leaving->job);
}

static bool send_next(struct offers *offers)
{
    struct holds *holds = container_of(offers, struct holds, offers);
    struct list_link *first = list_pop(&holds->leaving);
    if (!first)
        return false;
    struct hold *hold = container_of(first, struct hold, link);
    if (spanjoin_is_large(hold->node->join, hold->kept)) {
        begin_leaving_job(hold);
        return true;
    }
    enrich(hold, hold->kept);
    hand_on(hold);
    return true;
}

/* Appends a hold to `leaving`. */
static void line_up(struct hold *hold)
{
    struct spanjoin_node *node = hold->node;
    worker_cancel_timer(node->node.worker, &hold->timer);
    list_remove(&node->holds.waiting, &hold->link);
    list_append(&node->holds.leaving, &hold->link);
    node->holds.leaving_bytes += hold->charged;
    budget_charge(&node->join->leaving, hold->charged);
}

void hold_leave(struct hold *hold)
{
    struct spanjoin_node *node = hold->node;
    line_up(hold);
    offers_pump(&node->holds.offers);
}

void holds_wake(struct spanjoin_node *node, uint64_t id)
{
    struct hold_slot *slot = slot_of(&node->holds, id);
    struct hold *hold = slot ? slot->hold : NULL;
    if (slot && !hold)
        slot->early++;
    if (!hold || hold->link.list != &node->holds.waiting)
        return;
    assert(hold->missing > 0);
    if (--hold->missing == 0)
        end_wait(hold, SPANS_WAIT_COVERED);
}

/* ---- memory ---- */

/* Charges memory. Requests that will be sent on in the next turns of the loop count as free, up to
 * a quarter of the limit. */
static bool reserve(struct spanjoin_node *node, size_t size)
{
    struct budget *held = &node->join->held;
    size_t most = held->limit_bytes / LEAVING_PART, leaving = node->holds.leaving_bytes;
    size_t limit = held->limit_bytes + (leaving < most ? leaving : most);
    return budget_reserve_within(held, size, limit);
}

static bool let_oldest_leave(struct spanjoin_node *node)
{
    struct list_link *oldest = node->holds.waiting.first;
    if (!oldest)
        return false;
    struct hold *hold = container_of(oldest, struct hold, link);
    hold->overflow = true;
    end_wait(hold, SPANS_WAIT_OVERFLOW);
    return true;
}

enum hold_room holds_make_room(struct spanjoin_node *node, const struct batch *kept, size_t waiters,
                               size_t *charged_out)
{
    struct spanjoin *join = node->join;
    size_t limit = join->held.limit_bytes;
    size_t size = batch_memory(kept) + HOLD_BYTES + waiters * WAITER_BYTES;
    *charged_out = size;
    if (size > limit)
        return HOLD_NEVER;
    while (!reserve(node, size))
        if (budget_used(&join->leaving) >= limit / LEAVING_PART || !let_oldest_leave(node))
            return HOLD_NO_ROOM;
    return HOLD_ROOM;
}

/* ---- start and end ---- */

void holds_init(struct spanjoin_node *node)
{
    offers_init(&node->holds.offers, &node->node, send_next);
    node->holds.first_generation = node->join->first_hold_generation;
}

static void line_up_all(struct holds *holds)
{
    while (holds->waiting.first)
        line_up(container_of(holds->waiting.first, struct hold, link));
}

void holds_drain(struct spanjoin_node *node)
{
    line_up_all(&node->holds);
    offers_pump(&node->holds.offers);
}

bool holds_are_idle(const struct spanjoin_node *node)
{
    const struct holds *holds = &node->holds;
    return holds->waiting.count == 0 && holds->leaving.count == 0 && holds->working.count == 0 &&
           holds->offers.under_way == 0;
}

static void give_up(struct hold *hold)
{
    upload_times_give_up_hold(&hold->uploads, hold->node->join->index,
                              hold->node->node.worker->now_ns);
    hold->node->holds.lost += hold->items;
    batch_free(hold->kept);
    hold->kept = NULL;
    end(hold);
}

static void cancel_leaving_jobs(struct holds *holds)
{
    for (struct list_link *link; (link = list_pop(&holds->working));) {
        struct leaving_job *leaving = container_of(link, struct leaving_job, link);
        job_cancel(&leaving->job);
        give_up(end_leaving_job(leaving));
    }
}

uint64_t holds_give_up(struct spanjoin_node *node)
{
    struct holds *holds = &node->holds;
    offers_stop(&holds->offers);
    cancel_leaving_jobs(holds);
    line_up_all(holds);
    for (struct list_link *link; (link = list_pop(&holds->leaving));)
        give_up(container_of(link, struct hold, link));
    free(holds->slots);
    uint64_t lost = holds->lost;
    *holds = (struct holds){.offers = holds->offers};
    return lost;
}

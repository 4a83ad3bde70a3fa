#include "core/base/memory.h"
#include "core/pipeline/empty_profiles.h"
#include "core/pipeline/outlet_private.h"
#include "core/pipeline/reservation.h"
#include "core/pipeline/threads_behind.h"

#include <assert.h>
#include <inttypes.h>

/* The retry intervals of a full queue are short, because it frees room often. */
#define FULL_MIN_NS INT64_C(20000000)
#define FULL_MAX_NS INT64_C(200000000)
#define FAILED_MIN_NS INT64_C(100000000)
#define FAILED_MAX_NS INT64_C(5000000000)
#define DRAINING_MAX_NS INT64_C(1000000000)

/* About how much memory a kept batch takes besides the batch itself. */
enum { KEPT_BYTES = 1024 };

/* ---- kept batches ---- */

size_t kept_memory_of(const struct batch *batch)
{
    return batch_memory(batch) + KEPT_BYTES;
}

static void on_later(struct timer *timer)
{
    struct kept *kept = container_of(timer, struct kept, timer);
    struct branch *branch = kept->branch;
    list_remove(&branch->later, &kept->link);
    list_append(&branch->ready, &kept->link);
    pace_pump(&branch->pace);
}

static struct kept *keep(struct branch *branch, struct batch *batch, enum kept_reason reason)
{
    struct list *kept_of_part = fanout_kept_of(batch);
    struct kept *kept = memory_zalloc(sizeof *kept);
    batch_compact(batch);
    kept->outlet = branch->outlet;
    kept->branch = branch;
    kept->batch = batch;
    kept->reason = reason;
    kept->timer.on_timer = on_later;
    if (kept_of_part)
        list_append(kept_of_part, &kept->part);
    gauge_add(branch->kept, 1);
    return kept;
}

static void kept_free(struct kept *kept)
{
    struct worker *worker = outlet_worker(kept->outlet);
    worker_cancel_timer(worker, &kept->timer);
    if (kept->link.list)
        list_remove(kept->link.list, &kept->link);
    if (kept->part.list)
        list_remove(kept->part.list, &kept->part);
    if (kept->charged)
        budget_release(kept->charged, kept->charged_bytes);
    if (kept->share)
        share_release(kept->share, kept->charged_bytes, kept->lent_bytes);
    if (kept->branch)
        gauge_add(kept->branch->kept, -1);
    free(kept);
}

struct batch *kept_take(struct kept *kept)
{
    struct batch *batch = kept->batch;
    kept_free(kept);
    return batch;
}

/* ---- lost batches ---- */

void branch_log_lost(struct branch *branch, uint64_t items)
{
    uint64_t now = outlet_worker(branch->outlet)->now_ns;
    uint64_t count = log_interval_add(&branch->losses, items, now);
    char error[VERDICT_ERROR_MAX];
    if (count > 0)
        log_error(branch->to->origin, "Dropping data that another branch accepted.",
                  LOG_TEXT("error", verdict_print(&branch->loss, error)),
                  LOG_U64("dropped_items", count));
}

/* Charges the share of the branch's exporter. Returns false if it has no room, or if the batch is
 * too old. */
static bool charge_branch(struct kept *kept)
{
    struct batch *batch = kept->batch;
    struct node *to = kept->branch->to;
    struct share *held = &to->component->held[batch->signal];
    size_t size = kept_memory_of(batch);
    uint64_t now = outlet_worker(kept->outlet)->now_ns;
    assert(!kept->charged && !kept->share);
    if (batch->refused_ns > 0 && now - batch->refused_ns > BRANCH_AGE_MAX_NS)
        return false;
    if (!share_reserve(held, size, &kept->lent_bytes))
        return false;
    kept->share = held;
    kept->charged_bytes = size;
    return true;
}

/* A full branch keeps nothing that another branch accepted, except during the drain, when there
 * is time to wait for it. */
bool branch_keeps(struct kept *kept)
{
    return (kept->reason != KEPT_FULL || kept->outlet->draining) && charge_branch(kept);
}

void kept_lose(struct kept *kept)
{
    struct branch *branch = kept->branch;
    bool had_room = kept->reason == KEPT_FAILED;
    struct batch *batch = kept_take(kept);
    if (!had_room && branch->to->queue)
        queue_count_overflow(branch->to->queue, branch->to->worker->index, batch->items);
    if (branch->to->stopped)
        atomic_fetch_add(&branch->to->component->process->lost_items, batch->items);
    struct verdict verdict = branch->refusal;
    batch_drop(batch, &verdict);
}

/* ---- offering ---- */

/* Refuses a batch whose sender still waits, because it may not overtake the batches that wait
 * for room. */
static void refuse_behind_others(struct branch *branch, struct batch *batch)
{
    struct verdict verdict = branch->refusal;
    batch_drop(batch, &verdict);
}

/* Another branch reads it, or a reload has taken away who did. */
static bool is_empty_for(const struct node *to, const struct batch *batch)
{
    return batch->arrived_empty && !node_takes_empty_profiles(to);
}

static void offer(struct branch *branch, struct batch *batch)
{
    struct node *to = branch->to;
    struct worker_piece piece;
    if (is_empty_for(to, batch)) {
        batch_drop(batch, &verdict_ok);
        return;
    }
    threads_leave_at(branch, batch);
    batch_set_branch(batch, branch, &branch->users);
    node_count_items(&to->items, batch->items);
    if (to->incoming)
        counter_add(to->incoming, to->worker->index, batch->items);
    if (to->stopped) {
        node_refuse(to, batch, REFUSED_FULL, &verdict_shutting_down);
        return;
    }
    node_begin_piece(to, batch, &piece);
    node_begin_duration(to);
    to->consume(to, batch);
    node_end_duration(to);
    worker_end_piece(to->worker, &piece);
}

void branch_offer_in_order(struct branch *branch, struct batch *batch)
{
    if (branch->ready.count == 0) {
        offer(branch, batch);
        return;
    }
    if (!batch->acknowledged) {
        refuse_behind_others(branch, batch);
        return;
    }
    struct kept *kept = keep(branch, batch, KEPT_BEHIND);
    list_append(&branch->ready, &kept->link);
    if (fanout_is_settled_elsewhere(batch) && !charge_branch(kept))
        kept_lose(kept);
    else
        pace_pump(&branch->pace);
}

/* ---- batches that are handed back ---- */

static const enum kept_reason reasons[] = {
    [REFUSED_FAILED] = KEPT_FAILED, [REFUSED_FULL] = KEPT_FULL, [REFUSED_BLOCKED] = KEPT_BLOCKED};

static void wait_alone(struct kept *kept, const struct verdict *verdict)
{
    struct backoff backoff = {kept->batch->backoff_ns};
    int64_t delay = backoff_next(&backoff, FAILED_MIN_NS, FAILED_MAX_NS, retry_after_of(verdict));
    kept->batch->backoff_ns = backoff.next_ns;
    if (kept->outlet->draining && delay > DRAINING_MAX_NS)
        delay = DRAINING_MAX_NS;
    list_append(&kept->branch->later, &kept->link);
    worker_set_timer(outlet_worker(kept->outlet), &kept->timer, (uint64_t)delay);
}

static void wait_in_front(struct kept *kept)
{
    struct branch *branch = kept->branch;
    list_prepend(&branch->ready, &kept->link);
    pace_pause(&branch->pace, backoff_next(&branch->backoff, FULL_MIN_NS, FULL_MAX_NS, 0));
}

static void take_back(struct branch *branch, struct batch *batch, enum refusal refusal,
                      const struct verdict *verdict)
{
    struct outlet *outlet = branch->outlet;
    assert(!outlet->stopped && branch->to->worker == outlet_worker(outlet));
    branch->refusal = *verdict;
    reservation_unref(batch->reservation);
    batch->reservation = NULL;
    if (batch->refused_ns == 0)
        batch->refused_ns = outlet_worker(outlet)->now_ns;
    struct kept *kept = keep(branch, batch, reasons[refusal]);
    if (fanout_is_settled_elsewhere(batch) && !branch_keeps(kept))
        kept_lose(kept);
    else if (refusal == REFUSED_FAILED)
        wait_alone(kept, verdict);
    else
        wait_in_front(kept);
}

bool node_refuse(struct node *node, struct batch *batch, enum refusal refusal,
                 const struct verdict *verdict)
{
    struct branch *branch = batch->branch; /* NULL: the node itself had acknowledged it */
    assert(!verdict_is_ok(verdict));
    if (!branch || branch->to == node)
        node_count_items(&node->items, 0 - (uint64_t)batch->items);
    if (branch && branch->to == node && batch->acknowledged && batch->receipt &&
        verdict_is_retryable(verdict)) {
        take_back(branch, batch, refusal, verdict);
        return true;
    }
    batch_drop(batch, verdict);
    return false;
}

bool branch_offer_next(struct pace *pace)
{
    struct branch *branch = container_of(pace, struct branch, pace);
    struct list_link *first = branch->ready.first;
    if (!first)
        return false;
    offer(branch, kept_take(container_of(first, struct kept, link)));
    if (!pace_is_paused(pace))
        backoff_reset(&branch->backoff);
    return true;
}

#include "core/pipeline/outlet.h"

#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/base/metrics.h"
#include "core/base/worker.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/queue.h"
#include "core/pipeline/queues_behind.h"
#include "core/pipeline/reservation.h"

#include <assert.h>
#include <inttypes.h>

/* A full queue frees room often, so it is asked often. */
#define FULL_MIN_NS INT64_C(20000000)
#define FULL_MAX_NS INT64_C(200000000)
#define FAILED_MIN_NS INT64_C(100000000)
#define FAILED_MAX_NS INT64_C(5000000000)
#define DRAINING_MAX_NS INT64_C(1000000000)
#define ROOM_POLL_NS INT64_C(20000000)
#define TRY_LATER_NS INT64_C(500000000) /* for a sender that found no room */

/* What a kept batch takes beside its own memory, about. */
enum { KEPT_BYTES = 1024 };

/* --- what is kept --- */

enum kept_reason { KEPT_FAILED, KEPT_FULL, KEPT_BLOCKED, KEPT_BEHIND /* not offered yet */ };

/* A batch that waits at a branch, or for room in all branches. */
struct kept {
    struct list_link link; /* of ready, later or waiting */
    struct list_link part; /* of its part's list, in a fan-out */
    struct timer timer;
    struct outlet *outlet;
    struct branch *branch; /* NULL: waits for room */
    struct batch *batch;
    enum kept_reason reason;
    struct budget *charged; /* NULL: whoever holds it bounds it */
    size_t charged_bytes;
};

/* A batch that went to several branches. */
struct fanout {
    struct outlet *outlet;
    struct receipt *outer;  /* NULL: settled */
    struct verdict refusal; /* what its sender is told when no branch takes it */
    uint32_t open;          /* parts that are not settled */
    uint32_t items;
    bool acknowledged;
    bool offering; /* the branches are getting theirs */
    bool taken;    /* by one branch at least */
    size_t part_count;
    struct part {
        struct receipt receipt; /* first */
        struct fanout *fanout;
        struct branch *branch;
        struct list kept;
        bool refused; /* for good */
        bool counted; /* as lost */
    } parts[];
};

static struct worker *worker_of(const struct outlet *outlet)
{
    return outlet->from->worker;
}

static void on_part_settled(struct receipt *receipt, const struct verdict *verdict);

/* NULL: the outlet has one branch, or the batch was joined from several. */
static struct part *part_of(const struct branch *branch, const struct batch *batch)
{
    if (!batch->receipt || batch->receipt->on_settled != on_part_settled)
        return NULL;
    struct part *part = container_of(batch->receipt, struct part, receipt);
    return part->branch == branch ? part : NULL;
}

/* What other branches did with a batch, or with all that was joined to it. */
struct elsewhere {
    bool settled; /* another one took each, and its sender was told */
    bool taken;   /* another one took some of it */
};

static void look_elsewhere(const struct receipt *receipt, void *context)
{
    struct elsewhere *elsewhere = context;
    bool is_part = receipt->on_settled == on_part_settled;
    const struct fanout *fanout =
        is_part ? container_of(receipt, struct part, receipt)->fanout : NULL;
    elsewhere->settled &= fanout && !fanout->outer;
    elsewhere->taken |= fanout && fanout->taken;
}

static struct elsewhere elsewhere_of(const struct branch *branch, const struct batch *batch)
{
    struct elsewhere elsewhere = {.settled = branch->outlet->count > 1};
    if (elsewhere.settled)
        receipt_visit(batch->receipt, look_elsewhere, &elsewhere);
    return elsewhere;
}

/* Whether the branch alone answers for the batch, because another one took it. */
static bool stands_alone(const struct branch *branch, const struct batch *batch)
{
    return elsewhere_of(branch, batch).settled;
}

static size_t memory_of(const struct batch *batch)
{
    return batch_memory(batch) + KEPT_BYTES;
}

static void kept_free(struct kept *kept)
{
    struct worker *worker = worker_of(kept->outlet);
    worker_cancel_timer(worker, &kept->timer);
    if (kept->link.list)
        list_remove(kept->link.list, &kept->link);
    if (kept->part.list)
        list_remove(kept->part.list, &kept->part);
    if (kept->charged)
        budget_release(kept->charged, kept->charged_bytes);
    if (kept->branch)
        gauge_add(kept->branch->kept, -1);
    free(kept);
}

static struct batch *kept_take(struct kept *kept)
{
    struct batch *batch = kept->batch;
    kept_free(kept);
    return batch;
}

/* --- losing --- */

static void log_lost(struct branch *branch, uint64_t items)
{
    uint64_t now = worker_of(branch->outlet)->now_ns;
    uint64_t count = log_interval_add(&branch->losses, items, now);
    if (count > 0)
        log_error(branch->to->component->label,
                  "Dropping data that another branch accepted. (error: code = %s desc = %s, "
                  "dropped_items: %" PRIu64 ")",
                  grpc_code_go_name(branch->loss.code), branch->loss.text, count);
}

/* Of parts that were refused permanently while another one was accepted. */
static void count_lost_parts(struct fanout *fanout)
{
    for (size_t i = 0; i < fanout->part_count; i++) {
        struct part *part = &fanout->parts[i];
        if (!part->refused || part->counted)
            continue;
        part->counted = true;
        counter_add(part->branch->lost, worker_of(fanout->outlet)->index, fanout->items);
        log_lost(part->branch, fanout->items);
    }
}

/* --- the outcome of a fan-out --- */

/* Not of a client that has given up: nobody refused its data. */
static void log_rejected(struct outlet *outlet, const struct verdict *why, uint32_t items)
{
    if (why->code == GRPC_CANCELLED)
        return;
    uint64_t now = worker_of(outlet)->now_ns;
    uint64_t count = log_interval_add(&outlet->rejections, items, now);
    if (count > 0)
        log_error(outlet->from->component->label,
                  "Rejecting data: every exporter or pipeline refused it. (error: code = %s desc = "
                  "%s, rejected_items: %" PRIu64 ")",
                  grpc_code_go_name(why->code), why->text, count);
}

static void fanout_release(struct fanout *fanout)
{
    assert(fanout->open > 0);
    if (--fanout->open > 0)
        return;
    struct receipt *outer = fanout->outer;
    struct verdict verdict = fanout->taken ? verdict_ok : fanout->refusal;
    if (!fanout->taken && !fanout->acknowledged)
        log_rejected(fanout->outlet, &fanout->refusal, fanout->items);
    fanout->outlet->fanouts--;
    free(fanout);
    if (outer)
        receipt_settle(outer, &verdict);
}

/* Charges the branch's own bound; false: it has no room, or the batch is too old. */
static bool charge_branch(struct kept *kept)
{
    struct batch *batch = kept->batch;
    struct node *to = kept->branch->to;
    struct budget *held = &to->component->held[batch->signal];
    size_t size = memory_of(batch);
    uint64_t now = worker_of(kept->outlet)->now_ns;
    assert(!kept->charged);
    if (batch->refused_ns > 0 && now - batch->refused_ns > BRANCH_AGE_MAX_NS)
        return false;
    if (!budget_reserve(held, size))
        return false;
    kept->charged = held;
    kept->charged_bytes = size;
    return true;
}

/* What a branch that is full may keep of a batch that another one took: nothing, but at the end,
 * when there is time to wait for it. */
static bool branch_keeps(struct kept *kept)
{
    return (kept->reason != KEPT_FULL || kept->outlet->draining) && charge_branch(kept);
}

/* The branch goes without the batch: by its own policy, or because it is stopped. */
static void lose(struct kept *kept)
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

/* Whether its queue wants whoever offers to wait, as every full one does at the end. What has not
 * been offered yet waits like the one before it. */
static bool waits_for_queue(const struct kept *kept)
{
    const struct queue *queue = kept->branch->to->queue;
    if (kept->outlet->draining)
        return kept->reason != KEPT_FAILED;
    return kept->reason == KEPT_BLOCKED || (kept->reason == KEPT_BEHIND && queue && queue->blocks);
}

static bool is_blocked(const struct fanout *fanout)
{
    for (size_t i = 0; i < fanout->part_count; i++)
        for (struct list_link *link = fanout->parts[i].kept.first; link; link = link->next)
            if (waits_for_queue(container_of(link, struct kept, part)))
                return true;
    return false;
}

/* An acknowledged batch was taken by one branch: from here on every branch answers for its own
 * part. Not while a queue wants whoever offers to wait. The caller has not released its part. */
static void end_common_part(struct fanout *fanout)
{
    struct receipt *outer = fanout->outer;
    if (!outer || fanout->offering || is_blocked(fanout))
        return;
    assert(fanout->open > 0);
    fanout->outer = NULL;
    for (size_t i = 0; i < fanout->part_count; i++)
        for (struct list_link *link = fanout->parts[i].kept.first, *next; link; link = next) {
            struct kept *kept = container_of(link, struct kept, part);
            next = link->next;
            if (!branch_keeps(kept))
                lose(kept);
        }
    receipt_settle(outer, &verdict_ok);
}

/* A retryable refusal outweighs a permanent one: one branch may accept the batch later. */
static void remember_refusal(struct fanout *fanout, const struct verdict *verdict)
{
    if (verdict_is_ok(&fanout->refusal) ||
        (verdict_is_retryable(verdict) && !verdict_is_retryable(&fanout->refusal)))
        fanout->refusal = *verdict;
}

static void on_part_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct part *part = container_of(receipt, struct part, receipt);
    struct fanout *fanout = part->fanout;
    if (verdict_is_ok(verdict)) {
        fanout->taken = true;
    } else {
        part->refused = true;
        part->branch->loss = *verdict;
        remember_refusal(fanout, verdict);
    }
    if (fanout->taken)
        count_lost_parts(fanout);
    if (fanout->taken && fanout->acknowledged)
        end_common_part(fanout);
    fanout_release(fanout);
}

static bool is_fanout_abandoned(const struct receipt *receipt)
{
    const struct fanout *fanout = container_of(receipt, struct part, receipt)->fanout;
    return !fanout->taken && receipt_is_abandoned(fanout->outer);
}

/* --- offering --- */

static struct kept *keep(struct branch *branch, struct batch *batch, enum kept_reason reason);

/* Of a batch whose sender waits: it may not overtake those that wait for room. */
static void refuse_behind_others(struct branch *branch, struct batch *batch)
{
    struct verdict verdict = branch->refusal;
    batch_drop(batch, &verdict);
}

static void offer(struct branch *branch, struct batch *batch)
{
    struct node *to = branch->to;
    struct worker_piece piece;
    batch->branch = branch;
    if (to->stopped) {
        node_refuse(to, batch, REFUSED_FULL, &verdict_shutting_down);
        return;
    }
    node_begin_piece(to, batch, &piece);
    to->consume(to, batch);
    worker_end_piece(to->worker, &piece);
}

static void offer_in_order(struct branch *branch, struct batch *batch)
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
    if (stands_alone(branch, batch) && !charge_branch(kept))
        lose(kept);
    else
        pace_pump(&branch->pace);
}

static struct fanout *fanout_new(struct outlet *outlet, const struct batch *batch)
{
    struct fanout *fanout = memory_zalloc(sizeof *fanout + outlet->count * sizeof fanout->parts[0]);
    fanout->outlet = outlet;
    fanout->outer = batch->receipt;
    fanout->refusal = verdict_ok;
    fanout->items = batch->items;
    fanout->acknowledged = batch->acknowledged;
    fanout->part_count = outlet->count;
    fanout->open = (uint32_t)outlet->count + 1; /* one is ours, while the branches get theirs */
    for (size_t i = 0; i < outlet->count; i++) {
        struct part *part = &fanout->parts[i];
        receipt_init(&part->receipt, on_part_settled);
        part->receipt.is_abandoned = is_fanout_abandoned;
        part->fanout = fanout;
        part->branch = outlet->branches[i];
    }
    outlet->fanouts++;
    return fanout;
}

/* The clones first: the batch itself goes to the last branch, which then finds its buffers shared
 * but its tree its own. */
static void fan_out(struct outlet *outlet, struct batch *batch)
{
    struct fanout *fanout = fanout_new(outlet, batch);
    fanout->offering = true;
    for (size_t i = 0; i < outlet->count; i++) {
        bool is_last = i + 1 == outlet->count;
        struct batch *own = is_last ? batch : batch_clone(batch);
        own->acknowledged = fanout->acknowledged;
        if (!is_last)
            own->reservation = reservation_ref(batch->reservation);
        own->receipt = &fanout->parts[i].receipt;
        offer_in_order(outlet->branches[i], own);
    }
    fanout->offering = false;
    if (fanout->taken && fanout->acknowledged)
        end_common_part(fanout);
    fanout_release(fanout);
}

static void forward_now(struct outlet *outlet, struct batch *batch)
{
    if (outlet->count == 1)
        offer_in_order(outlet->branches[0], batch);
    else
        fan_out(outlet, batch);
}

/* --- handed back --- */

static const enum kept_reason reasons[] = {
    [REFUSED_FAILED] = KEPT_FAILED, [REFUSED_FULL] = KEPT_FULL, [REFUSED_BLOCKED] = KEPT_BLOCKED};

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
    struct part *part = part_of(branch, batch);
    struct kept *kept = memory_zalloc(sizeof *kept);
    batch_compact(batch);
    kept->outlet = branch->outlet;
    kept->branch = branch;
    kept->batch = batch;
    kept->reason = reason;
    kept->timer.on_timer = on_later;
    if (part)
        list_append(&part->kept, &kept->part);
    gauge_add(branch->kept, 1);
    return kept;
}

static void wait_alone(struct kept *kept, const struct verdict *verdict)
{
    struct backoff backoff = {kept->batch->backoff_ns};
    int64_t delay = backoff_next(&backoff, FAILED_MIN_NS, FAILED_MAX_NS, retry_after_of(verdict));
    kept->batch->backoff_ns = backoff.next_ns;
    if (kept->outlet->draining && delay > DRAINING_MAX_NS)
        delay = DRAINING_MAX_NS;
    list_append(&kept->branch->later, &kept->link);
    worker_set_timer(worker_of(kept->outlet), &kept->timer, (uint64_t)delay);
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
    assert(!outlet->stopped && branch->to->worker == worker_of(outlet));
    branch->refusal = *verdict;
    reservation_unref(batch->reservation);
    batch->reservation = NULL;
    if (batch->refused_ns == 0)
        batch->refused_ns = worker_of(outlet)->now_ns;
    struct kept *kept = keep(branch, batch, reasons[refusal]);
    if (stands_alone(branch, batch) && !branch_keeps(kept))
        lose(kept);
    else if (refusal == REFUSED_FAILED)
        wait_alone(kept, verdict);
    else
        wait_in_front(kept);
}

bool node_refuse(struct node *node, struct batch *batch, enum refusal refusal,
                 const struct verdict *verdict)
{
    struct branch *branch = batch->branch;
    assert(!verdict_is_ok(verdict));
    if (branch && branch->to == node && batch->acknowledged && batch->receipt &&
        verdict_is_retryable(verdict)) {
        take_back(branch, batch, refusal, verdict);
        return true;
    }
    batch_drop(batch, verdict);
    return false;
}

/* Offers the first that is ready again. */
static bool offer_next(struct pace *pace)
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

/* --- room --- */

static const struct verdict no_room = {
    .code = GRPC_UNAVAILABLE, .retry_after_ns = TRY_LATER_NS, .text = "sending queue is full"};

/* Its sender has waited long enough, or too many wait. */
static void refuse_waiting(struct kept *kept)
{
    struct outlet *outlet = kept->outlet;
    struct batch *batch = kept_take(kept);
    queue_count_overflow(outlet->full, worker_of(outlet)->index, batch->items);
    log_rejected(outlet, &no_room, batch->items);
    batch_drop(batch, &no_room);
}

static void on_waited_enough(struct timer *timer)
{
    refuse_waiting(container_of(timer, struct kept, timer));
}

/* Of a sender that waits, only as much as the full queue allows; false: nothing more. */
static bool charge_waiting(struct kept *kept)
{
    struct budget *waiting = &kept->outlet->full->waiting;
    size_t size = memory_of(kept->batch);
    if (!budget_reserve(waiting, size))
        return false;
    kept->charged = waiting;
    kept->charged_bytes = size;
    worker_set_timer(worker_of(kept->outlet), &kept->timer, ROOM_WAIT_NS);
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

/* Whether the batch can go on now; *reservation_out may be NULL then. At the end of the process
 * every branch drains by itself: none waits for another. */
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
    forward_now(outlet, batch);
    reservation_close(reservation);
    reservation_unref(reservation);
}

static bool forward_waiting(struct pace *pace)
{
    struct outlet *outlet = container_of(pace, struct outlet, rooms);
    struct reservation *reservation;
    if (!outlet->waiting.first)
        return false;
    struct kept *kept = container_of(outlet->waiting.first, struct kept, link);
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

static void forward(struct outlet *outlet, struct batch *batch)
{
    struct reservation *reservation;
    assert(outlet->count > 0 && batch->owner == worker_of(outlet));
    if (outlet->stopped)
        batch_drop(batch, &verdict_shutting_down);
    else if (!outlet->blocks || batch->reservation)
        forward_now(outlet, batch);
    else if (outlet->waiting.count == 0 && find_room(outlet, batch, &reservation))
        forward_into(outlet, batch, reservation);
    else
        wait_for_room(outlet, batch);
}

void node_forward(struct node *node, struct batch *batch)
{
    assert(worker_is_current(node->worker) && batch->owner == node->worker);
    forward(&node->outlets[batch->signal], batch);
}

/* --- life --- */

void outlet_init(struct outlet *outlet, struct node *from, enum signal signal)
{
    *outlet = (struct outlet){.from = from, .signal = signal};
    pace_init(&outlet->rooms, from->worker, forward_waiting);
}

void outlet_add(struct outlet *outlet, struct node *to)
{
    struct branch *branch = memory_zalloc(sizeof *branch);
    branch->outlet = outlet;
    branch->to = to;
    branch->refusal = no_room;
    pace_init(&branch->pace, outlet->from->worker, offer_next);
    outlet->branches = memory_grow(outlet->branches, outlet->count + 1, sizeof(struct branch *));
    outlet->branches[outlet->count++] = branch;
}

static void make_metrics(struct branch *branch)
{
    const struct node *from = branch->outlet->from, *to = branch->to;
    struct metrics *metrics = from->component->process->metrics;
    const char *item = signal_item_name(branch->outlet->signal);
    struct text labels = {0}, name = {0};
    metrics_label(&labels, "from", from->component->label);
    metrics_label(&labels, "to", to->component->label);
    if (to->pipeline)
        metrics_label(&labels, "pipeline", to->pipeline);
    text_printf(&name, "profcol_branch_lost_%s", item);
    branch->lost = metrics_counter(metrics, text_string(&name),
                                   "Items that this branch of a fan-out refused permanently or had "
                                   "no room for, while another branch accepted them.",
                                   text_string(&labels));
    branch->kept = metrics_gauge(metrics, "profcol_branch_kept_requests",
                                 "Acknowledged requests that this branch refused temporarily and "
                                 "that will be offered to it again.",
                                 text_string(&labels));
    text_deinit(&labels);
    text_deinit(&name);
}

void outlet_start(struct outlet *outlet)
{
    outlet->blocks = queues_behind_block(outlet);
    for (size_t i = 0; i < outlet->count; i++)
        make_metrics(outlet->branches[i]);
}

void outlet_drain(struct outlet *outlet)
{
    outlet->draining = true;
    for (size_t i = 0; i < outlet->count; i++) {
        struct branch *branch = outlet->branches[i];
        for (struct list_link *link = branch->later.first; link; link = link->next)
            worker_set_timer(worker_of(outlet), &container_of(link, struct kept, link)->timer, 0);
    }
}

bool outlet_is_idle(const struct outlet *outlet)
{
    for (size_t i = 0; i < outlet->count; i++)
        if (outlet->branches[i]->ready.count > 0 || outlet->branches[i]->later.count > 0)
            return false;
    return outlet->waiting.count == 0 && outlet->fanouts == 0;
}

/* Whether nobody else will say that the batch is lost. */
static bool is_ours_to_lose(const struct branch *branch, const struct batch *batch)
{
    struct elsewhere elsewhere = elsewhere_of(branch, batch);
    return elsewhere.settled || elsewhere.taken;
}

static void give_up(struct outlet *outlet, struct kept *kept)
{
    if (kept->branch && is_ours_to_lose(kept->branch, kept->batch))
        atomic_fetch_add(&outlet->from->component->process->lost_items, kept->batch->items);
    batch_drop(kept_take(kept), &verdict_shutting_down);
}

static void give_up_list(struct outlet *outlet, struct list *list)
{
    while (list->count > 0)
        give_up(outlet, container_of(list_pop(list), struct kept, link));
}

static void stop_branch(struct branch *branch)
{
    give_up_list(branch->outlet, &branch->ready);
    give_up_list(branch->outlet, &branch->later);
    pace_stop(&branch->pace);
    branch->losses.logged_ns = 0; /* what is not logged yet, is now */
    log_lost(branch, 0);
}

/* What is given up may make the node hand on more: that ends at `stopped`. */
void outlet_stop(struct outlet *outlet)
{
    outlet->stopped = true;
    give_up_list(outlet, &outlet->waiting);
    for (size_t i = 0; i < outlet->count; i++)
        stop_branch(outlet->branches[i]);
    pace_stop(&outlet->rooms);
}

void outlet_deinit(struct outlet *outlet)
{
    assert(outlet->fanouts == 0 && outlet->waiting.count == 0);
    for (size_t i = 0; i < outlet->count; i++)
        free(outlet->branches[i]);
    free(outlet->branches);
}

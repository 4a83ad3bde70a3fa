#include "core/base/memory.h"
#include "core/pipeline/outlet_private.h"
#include "core/pipeline/reservation.h"

#include <assert.h>

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

static void on_part_settled(struct receipt *receipt, const struct verdict *verdict);

struct list *fanout_kept_of(const struct branch *branch, const struct batch *batch)
{
    if (!batch->receipt || batch->receipt->on_settled != on_part_settled)
        return NULL;
    struct part *part = container_of(batch->receipt, struct part, receipt);
    return part->branch == branch ? &part->kept : NULL;
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

bool fanout_is_settled_elsewhere(const struct branch *branch, const struct batch *batch)
{
    return elsewhere_of(branch, batch).settled;
}

bool fanout_is_accepted_elsewhere(const struct branch *branch, const struct batch *batch)
{
    struct elsewhere elsewhere = elsewhere_of(branch, batch);
    return elsewhere.settled || elsewhere.taken;
}

/* ---- the outcome ---- */

/* Of parts that were refused permanently while another one was accepted. */
static void count_lost_parts(struct fanout *fanout)
{
    assert(fanout->taken); /* otherwise the sender is told */
    for (size_t i = 0; i < fanout->part_count; i++) {
        struct part *part = &fanout->parts[i];
        if (!part->refused || part->counted)
            continue;
        part->counted = true;
        counter_add(part->branch->lost, outlet_worker(fanout->outlet)->index, fanout->items);
        branch_log_lost(part->branch, fanout->items);
    }
}

static void fanout_release(struct fanout *fanout)
{
    assert(fanout->open > 0);
    if (--fanout->open > 0)
        return;
    assert(!fanout->offering && fanout->outlet->fanouts > 0);
    struct receipt *outer = fanout->outer;
    struct verdict verdict = fanout->taken ? verdict_ok : fanout->refusal;
    if (!fanout->taken && !fanout->acknowledged)
        outlet_log_rejected(fanout->outlet, &fanout->refusal, fanout->items);
    fanout->outlet->fanouts--;
    free(fanout);
    if (outer)
        receipt_settle(outer, &verdict);
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
    assert(fanout->taken && fanout->acknowledged);
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
                kept_lose(kept);
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
    assert(!part->refused && fanout->open > 0); /* a part is settled once */
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

/* ---- passing on ---- */

static struct fanout *fanout_new(struct outlet *outlet, const struct batch *batch)
{
    assert(outlet->count > 1);
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
void fanout_forward(struct outlet *outlet, struct batch *batch)
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
        branch_offer_in_order(outlet->branches[i], own);
    }
    assert(fanout->open > 0); /* our own part, while branches settle theirs */
    fanout->offering = false;
    if (fanout->taken && fanout->acknowledged)
        end_common_part(fanout);
    fanout_release(fanout);
}

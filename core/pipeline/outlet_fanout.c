#include "core/base/memory.h"
#include "core/pipeline/outlet_private.h"
#include "core/pipeline/reservation.h"

#include <assert.h>

/* A batch that went to several branches. */
struct fanout {
    struct outlet *outlet;
    struct receipt *outer;  /* NULL once it is settled */
    struct verdict refusal; /* verdict if no branch accepts it */
    uint32_t open;          /* number of parts not yet settled */
    uint32_t items;
    bool acknowledged;
    bool offering; /* fanout_forward is running */
    bool taken;    /* at least one branch accepted it */
    size_t part_count;
    struct part {
        struct receipt receipt; /* first */
        struct fanout *fanout;
        struct branch *branch;
        struct list kept;
        bool refused; /* permanently */
        bool counted; /* counted as lost */
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

/* What other branches did with a batch, or with the batches merged into it. */
struct elsewhere {
    const struct outlet *outlet;
    bool settled; /* another branch accepted each, and its receipt is settled */
    bool taken;   /* another branch accepted some */
};

static void look_elsewhere(const struct receipt *receipt, void *context)
{
    struct elsewhere *elsewhere = context;
    bool is_part = receipt->on_settled == on_part_settled;
    const struct fanout *fanout =
        is_part ? container_of(receipt, struct part, receipt)->fanout : NULL;
    if (fanout && fanout->outlet != elsewhere->outlet)
        fanout = NULL; /* of an outlet before this one, which passed it to one branch here */
    elsewhere->settled &= fanout && !fanout->outer;
    elsewhere->taken |= fanout && fanout->taken;
}

static struct elsewhere elsewhere_of(const struct branch *branch, const struct batch *batch)
{
    struct elsewhere elsewhere = {.outlet = branch->outlet,
                                  .settled = branch->outlet->count > 1 && batch->receipt};
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

/* Counts the parts that were refused permanently although another one was accepted. */
static void count_lost_parts(struct fanout *fanout)
{
    assert(fanout->taken); /* otherwise the sender gets the refusal */
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

/* Whether the batch waits for room with block_on_overflow, or in the drain, when every full
 * queue is waited for. A batch that was not offered yet (KEPT_BEHIND) waits for the same reason
 * as the one before it. */
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

/* Settles the receipt of an acknowledged batch that one branch accepted: from now on each branch
 * is responsible for its own part. Does nothing while a part waits for room with
 * block_on_overflow. The caller has not released its part yet. */
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

static struct fanout *fanout_new(struct outlet *outlet, const struct batch *batch,
                                 struct branch *const *branches, size_t count)
{
    assert(count > 1);
    struct fanout *fanout = memory_zalloc(sizeof *fanout + count * sizeof fanout->parts[0]);
    fanout->outlet = outlet;
    fanout->outer = batch->receipt;
    fanout->refusal = verdict_ok;
    fanout->items = batch->items;
    fanout->acknowledged = batch->acknowledged;
    fanout->part_count = count;
    fanout->open = (uint32_t)count + 1; /* one for fanout_forward */
    for (size_t i = 0; i < count; i++) {
        struct part *part = &fanout->parts[i];
        receipt_init(&part->receipt, on_part_settled);
        part->receipt.is_abandoned = is_fanout_abandoned;
        part->fanout = fanout;
        part->branch = branches[i];
    }
    outlet->fanouts++;
    return fanout;
}

/* The other branches get clones first. The last branch gets the batch itself: it shares its
 * buffers, but not its tree. */
void fanout_forward(struct outlet *outlet, struct batch *batch, struct branch *const *branches,
                    size_t count)
{
    struct fanout *fanout = fanout_new(outlet, batch, branches, count);
    fanout->offering = true;
    for (size_t i = 0; i < count; i++) {
        bool is_last = i + 1 == count;
        struct batch *own = is_last ? batch : batch_clone(batch);
        own->acknowledged = fanout->acknowledged;
        if (!is_last)
            own->reservation = reservation_ref(batch->reservation);
        own->receipt = &fanout->parts[i].receipt;
        branch_offer_in_order(branches[i], own);
    }
    assert(fanout->open > 0); /* the one of fanout_forward */
    fanout->offering = false;
    if (fanout->taken && fanout->acknowledged)
        end_common_part(fanout);
    fanout_release(fanout);
}

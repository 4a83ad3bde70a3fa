#include "core/base/job.h"
#include "core/base/memory.h"
#include "core/data/signals.h"
#include "core/pipeline/batch_cut.h"
#include "core/pipeline/batch_join.h"
#include "core/pipeline/delivery_private.h"

#include <assert.h>

static struct shipment *first_waiting(const struct delivery *delivery)
{
    return shipment_of(delivery->waiting.first);
}

static uint64_t weight_of(const struct delivery *delivery, struct batch *batch)
{
    return sending_queue_batches_bytes(delivery->queue) ? batch_size(batch) : batch->items;
}

/* How many of its items may be encoded at once. */
static uint32_t items_by_encoding(const struct delivery *delivery, const struct batch *batch)
{
    uint64_t limit = delivery->shared->encoding.limit_bytes;
    uint64_t size = delivery->encoded_size ? delivery->encoded_size(delivery, batch) : 0;
    uint64_t items = limit == 0 || size <= limit ? batch->items : batch->items * limit / size;
    return items > 0 ? (uint32_t)items : 1;
}

/* What max_size allows. */
static struct cut_limits limits_by_size(const struct delivery *delivery)
{
    const struct queue_batch_settings *settings = &delivery->queue->batch;
    if (!settings->enabled || settings->max_size == 0)
        return (struct cut_limits){.max_items = UINT32_MAX};
    if (sending_queue_batches_bytes(delivery->queue))
        return (struct cut_limits){.max_items = UINT32_MAX, .max_bytes = settings->max_size};
    return (struct cut_limits){.max_items = (uint32_t)settings->max_size};
}

/* What a batch becomes in the queue: parts, if it exceeds this. */
static struct cut_limits limits_of(const struct delivery *delivery, struct batch *batch)
{
    struct cut_limits limits = limits_by_size(delivery);
    if (cut_limits_are_exceeded(&limits, batch))
        return limits;
    return (struct cut_limits){.max_items = items_by_encoding(delivery, batch), .is_sparing = true};
}

static struct shipment *append_waiting(struct delivery *delivery, struct batch *batch,
                                       const struct room *room)
{
    struct shipment *shipment = delivery_shipment_new(delivery, batch, room);
    shipment->arrived_ns = worker_now(delivery->node->worker);
    shipment->weight = delivery->queue->batch.enabled ? weight_of(delivery, batch) : 0;
    delivery->waiting_weight += shipment->weight;
    list_append(&delivery->waiting, &shipment->link);
    return shipment;
}

/* Settling may bring the next batch in, from within. */
static void settle_queued(struct delivery *delivery, struct batch *batch)
{
    if (!delivery->queue->wait_for_result)
        batch_settle(batch, &verdict_ok);
}

static struct shipment *take_first(struct delivery *delivery)
{
    struct shipment *shipment = shipment_of(list_pop(&delivery->waiting));
    assert(!shipment->cutting && delivery->waiting_weight >= shipment->weight);
    delivery->waiting_weight -= shipment->weight;
    return shipment;
}

/* ---- cutting beside the loop ---- */

struct cutting {
    struct job job;
    struct batch_cutter cutter;
    struct shipment *shipment; /* waits, with the whole */
};

static void run_cutting(struct job *job)
{
    batch_cutter_run(&container_of(job, struct cutting, job)->cutter);
}

static bool is_cutting_wanted(const struct job *job)
{
    return !shipment_is_abandoned(container_of(job, const struct cutting, job)->shipment);
}

/* The parts in place of the whole, which waits; the first one has the room of all. */
static void replace_by_parts(struct shipment *shipment, struct batch *part)
{
    struct delivery *delivery = shipment->delivery;
    assert(!shipment->cutting && list_has(&delivery->waiting, &shipment->link));
    struct shipment *last = shipment;
    const struct room no_room = {.queue = &delivery->shared->queue};
    uint64_t whole_weight = shipment->weight;
    struct batch *next = part->next;
    shipment->batch = part;
    shipment->weight = weight_of(delivery, part);
    delivery->waiting_weight += shipment->weight;
    for (part->next = NULL; (part = next) != NULL; part->next = NULL) {
        last->is_full = true;
        struct shipment *more = delivery_shipment_new(delivery, part, &no_room);
        next = part->next;
        more->arrived_ns = shipment->arrived_ns;
        more->weight = weight_of(delivery, part);
        delivery->waiting_weight += more->weight;
        list_insert(&delivery->waiting, &more->link, &last->link);
        last = more;
    }
    assert(delivery->waiting_weight >= whole_weight);
    delivery->waiting_weight -= whole_weight;
}

static void on_cut(struct job *job, bool did_run)
{
    struct cutting *cutting = container_of(job, struct cutting, job);
    struct shipment *shipment = cutting->shipment;
    struct delivery *delivery = shipment->delivery;
    assert(shipment->cutting == cutting);
    shipment->cutting = NULL;
    if (did_run) /* else drop_abandoned finds it */
        replace_by_parts(shipment, batch_cutter_finish(&cutting->cutter));
    free(cutting);
    delivery_pump(delivery);
}

static void begin_cutting(struct shipment *shipment, const struct cut_limits *limits)
{
    assert(!shipment->cutting && list_has(&shipment->delivery->waiting, &shipment->link));
    struct cutting *cutting = memory_zalloc(sizeof(*cutting));
    shipment->cutting = cutting;
    cutting->shipment = shipment;
    batch_cutter_init(&cutting->cutter, shipment->batch, limits);
    cutting->job =
        (struct job){.run = run_cutting, .on_done = on_cut, .is_wanted = is_cutting_wanted};
    job_start(shipment->delivery->node->worker, &cutting->job);
}

/* The whole stays. */
void delivery_end_cutting(struct shipment *shipment)
{
    struct cutting *cutting = shipment->cutting;
    if (!cutting)
        return;
    job_cancel(&cutting->job);
    batch_cutter_cancel(&cutting->cutter);
    shipment->cutting = NULL;
    free(cutting);
}

void delivery_enqueue(struct delivery *delivery, struct batch *batch, const struct room *room)
{
    assert(delivery->queue->enabled && room->queue == &delivery->shared->queue);
    struct cut_limits limits = limits_of(delivery, batch);
    if (cut_limits_are_exceeded(&limits, batch) && batch_memory(batch) >= DELIVERY_LARGE_BYTES) {
        begin_cutting(append_waiting(delivery, batch, room), &limits);
        settle_queued(delivery, batch);
        return;
    }
    struct room part_room = *room; /* the first part has that of all */
    struct batch *part = batch_cut(batch, &limits);
    for (struct batch *next; part; part = next) {
        next = part->next;
        part->next = NULL;
        append_waiting(delivery, part, &part_room);
        part_room = (struct room){.queue = room->queue};
        settle_queued(delivery, part);
    }
}

static const char *sent_by(const struct delivery *delivery, const struct shipment *shipment)
{
    const struct context *context = shipment->batch->context;
    const char *value =
        delivery->sent_by && context ? context_get(context, delivery->sent_by) : NULL;
    return value ? value : "";
}

/* Whether what is refused of the two may go back together. */
static bool share_a_way_back(const struct batch *one, const struct batch *other)
{
    if (!one->receipt && !other->receipt)
        return true;
    return one->branch == other->branch && one->acknowledged == other->acknowledged;
}

static bool fits(const struct delivery *delivery, const struct shipment *leader)
{
    assert(!leader->link.list); /* it has left the queue, and what fits is merged into it */
    uint64_t limit = delivery->queue->batch.max_size;
    const struct shipment *next = first_waiting(delivery);
    return next && !next->cutting && !leader->is_full &&
           leader->weight < delivery->queue->batch.min_size &&
           (limit == 0 || leader->weight + next->weight <= limit) &&
           share_a_way_back(leader->batch, next->batch) &&
           strcmp(sent_by(delivery, leader), sent_by(delivery, next)) == 0;
}

static struct receipt_group *move_receipt(struct receipt_group *group, struct batch *batch)
{
    if (!batch->receipt)
        return group;
    group = receipt_group_add(group, batch->receipt);
    batch->receipt = NULL;
    return group;
}

/* Merged profiles may exceed max_size, because indices into a larger dictionary take more bytes.
 * Then they become parts, and the first one is returned. NULL: they are split beside the loop. */
static struct shipment *split_again(struct shipment *merged)
{
    struct delivery *delivery = merged->delivery;
    struct cut_limits limits = limits_by_size(delivery);
    if (!cut_limits_are_exceeded(&limits, merged->batch))
        return merged;
    list_prepend(&delivery->waiting, &merged->link);
    delivery->waiting_weight += merged->weight;
    if (batch_memory(merged->batch) >= DELIVERY_LARGE_BYTES) {
        begin_cutting(merged, &limits);
        return NULL;
    }
    replace_by_parts(merged, batch_cut(merged->batch, &limits));
    return take_first(delivery);
}

/* The first ones as one, until there are enough. NULL: there is none for now. */
static struct shipment *take_group(struct delivery *delivery)
{
    struct shipment *leader = take_first(delivery);
    if (!delivery->queue->batch.enabled || !fits(delivery, leader))
        return leader;
    struct batch *last = leader->batch;
    struct receipt_group *group = move_receipt(NULL, last);
    while (fits(delivery, leader)) {
        struct shipment *other = take_first(delivery);
        group = move_receipt(group, other->batch);
        leader->room.queued_size += other->room.queued_size;
        leader->room.bytes += other->room.bytes;
        leader->weight += other->weight;
        last->next = other->batch;
        last = other->batch;
        free(other);
    }
    leader->batch = batch_join(leader->batch);
    leader->batch->receipt = receipt_of_group(group);
    return split_again(leader);
}

/* The parts of a split request repeat a limited number of bytes; the rest stays in one
 * (batch_cut.h). */
static void log_if_too_large(struct delivery *delivery, const struct shipment *shipment)
{
    const struct queue_batch_settings *settings = &delivery->queue->batch;
    if (!settings->enabled || settings->max_size == 0 || shipment->weight <= settings->max_size ||
        shipment->batch->items == 1)
        return;
    uint64_t now = delivery->node->worker->now_ns;
    uint64_t items = log_interval_add(&delivery->too_large, shipment->batch->items, now);
    const char *why =
        signal_traits(shipment->batch->signal)->is_relayed
            ? "metrics and logs are split only between their resources"
            : "splitting them would repeat their dictionaries and resources too often";
    if (items > 0)
        log_warn(delivery->node->component->label,
                 "Requests larger than sending_queue::batch::max_size are sent: %s (items: %llu)",
                 why, (unsigned long long)items);
}

static bool is_due(const struct delivery *delivery)
{
    assert(delivery->waiting.first);
    const struct queue_batch_settings *batch = &delivery->queue->batch;
    if (!batch->enabled || delivery->draining || delivery->waiting_weight >= batch->min_size)
        return true;
    return first_waiting(delivery)->arrived_ns + (uint64_t)batch->flush_timeout <=
           delivery->node->worker->now_ns;
}

/* One that is being cut is waited for. */
static bool has_first(const struct delivery *delivery)
{
    return delivery->waiting.first && !first_waiting(delivery)->cutting;
}

/* Those whose senders have given up while they waited (wait_for_result). */
static void drop_abandoned(struct delivery *delivery)
{
    while (has_first(delivery) && shipment_is_abandoned(first_waiting(delivery)))
        batch_drop(delivery_shipment_release(take_first(delivery)), &verdict_sender_is_gone);
}

void delivery_pump(struct delivery *delivery)
{
    assert(!delivery->stopped);
    drop_abandoned(delivery);
    while (has_first(delivery) && delivery->active.count < delivery->consumers) {
        if (!is_due(delivery)) {
            uint64_t due = first_waiting(delivery)->arrived_ns +
                           (uint64_t)delivery->queue->batch.flush_timeout;
            assert(due > delivery->node->worker->now_ns); /* see is_due */
            worker_set_timer(delivery->node->worker, &delivery->flush,
                             due - delivery->node->worker->now_ns);
            return;
        }
        struct shipment *next = take_group(delivery);
        if (next) {
            log_if_too_large(delivery, next);
            delivery_activate(next);
        }
        drop_abandoned(delivery);
    }
}

void delivery_on_flush(struct timer *timer)
{
    delivery_pump(container_of(timer, struct delivery, flush));
}

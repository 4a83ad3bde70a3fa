#include "core/base/job.h"
#include "core/base/memory.h"
#include "core/data/signals.h"
#include "core/pipeline/auth.h"
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

/* Returns how many of the batch's items may be encoded in one request. */
static uint32_t items_by_encoding(const struct delivery *delivery, const struct batch *batch)
{
    uint64_t limit = delivery->shared->encoding.limit_bytes;
    uint64_t size = delivery->encoded_size ? delivery->encoded_size(delivery, batch) : 0;
    uint64_t items = limit == 0 || size <= limit ? batch->items : batch->items * limit / size;
    return items > 0 ? (uint32_t)items : 1;
}

/* Returns the limits that max_size sets. */
static struct cut_limits limits_by_size(const struct delivery *delivery)
{
    const struct queue_batch_settings *settings = &delivery->queue->batch;
    if (!settings->enabled || settings->max_size == 0)
        return (struct cut_limits){.max_items = UINT32_MAX};
    if (sending_queue_batches_bytes(delivery->queue))
        return (struct cut_limits){.max_items = UINT32_MAX, .max_bytes = settings->max_size};
    return (struct cut_limits){.max_items = (uint32_t)settings->max_size};
}

/* Returns the limits above which the batch is split in the queue. */
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

/* Settling may deliver the next batch to this node before it returns. */
static void settle_queued(struct delivery *delivery, struct batch *batch)
{
    if (!delivery->queue->wait_for_result)
        batch_settle(batch, &verdict_ok);
}

static void take(struct delivery *delivery, struct shipment *shipment)
{
    list_remove(&delivery->waiting, &shipment->link);
    assert(!shipment->cutting && delivery->waiting_weight >= shipment->weight);
    delivery->waiting_weight -= shipment->weight;
}

static struct shipment *take_first(struct delivery *delivery)
{
    struct shipment *shipment = first_waiting(delivery);
    take(delivery, shipment);
    return shipment;
}

/* ---- splitting in a job ---- */

struct cutting {
    struct job job;
    struct batch_cutter cutter;
    struct shipment *shipment; /* still in the queue, unsplit */
};

static void run_cutting(struct job *job)
{
    batch_cutter_run(&container_of(job, struct cutting, job)->cutter);
}

static bool is_cutting_wanted(const struct job *job)
{
    return !shipment_is_abandoned(container_of(job, const struct cutting, job)->shipment);
}

/* Replaces a queued request by its parts. The first part has the room of all. */
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
    if (did_run) /* otherwise drop_abandoned removes it */
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
    struct room part_room = *room; /* the first part has the room of all */
    struct batch *part = batch_cut(batch, &limits);
    for (struct batch *next; part; part = next) {
        next = part->next;
        part->next = NULL;
        append_waiting(delivery, part, &part_room);
        part_room = (struct room){.queue = room->queue};
        settle_queued(delivery, part);
    }
}

static bool is_same_header(const struct context *one, const struct context *other, const char *name)
{
    const char *value = one ? context_get(one, name) : NULL;
    const char *other_value = other ? context_get(other, name) : NULL;
    return strcmp(value ? value : "", other_value ? other_value : "") == 0;
}

/* Whether requests may differ in what is_same_partition compares. */
static bool is_partitioned(const struct delivery *delivery)
{
    return delivery->sent_by || delivery->auth ||
           delivery->queue->batch.partition.metadata_keys.count > 0;
}

static bool is_same_partition(const struct delivery *delivery, const struct context *one,
                              const struct context *other)
{
    const struct config_strings *keys = &delivery->queue->batch.partition.metadata_keys;
    for (size_t i = 0; i < keys->count; i++)
        if (!is_same_header(one, other, keys->items[i]))
            return false;
    return (!delivery->sent_by || is_same_header(one, other, delivery->sent_by)) &&
           auth_is_same(delivery->auth, one, other);
}

/* Whether the two may be handed back together if they are refused. */
static bool share_a_way_back(const struct batch *one, const struct batch *other)
{
    if (!one->receipt && !other->receipt)
        return true;
    return one->branch == other->branch && one->acknowledged == other->acknowledged;
}

static bool fits(const struct delivery *delivery, const struct shipment *leader,
                 const struct shipment *next)
{
    assert(!leader->link.list); /* it has left the queue */
    uint64_t limit = delivery->queue->batch.max_size;
    return !next->cutting && !leader->is_full && leader->weight < delivery->queue->batch.min_size &&
           (limit == 0 || leader->weight + next->weight <= limit) &&
           share_a_way_back(leader->batch, next->batch) &&
           is_same_partition(delivery, leader->batch->context, next->batch->context);
}

/* Returns the next one that is merged with the leader, beginning at *link; NULL: none is. What is
 * in another partition is passed over, up to a limit. */
static struct shipment *find_fitting(const struct delivery *delivery, const struct shipment *leader,
                                     struct list_link **link, unsigned *passed)
{
    enum { PASSED_MAX = 256 };
    while (*link && *passed < PASSED_MAX) {
        struct shipment *next = shipment_of(*link);
        *link = (*link)->next;
        if (fits(delivery, leader, next))
            return next;
        if (!is_partitioned(delivery) || leader->weight >= delivery->queue->batch.min_size)
            return NULL;
        (*passed)++;
    }
    return NULL;
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
 * They are then split again, and the first part is returned. Returns NULL if a job splits them. */
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

/* Merges the first requests until they reach min_size. Returns NULL if a job first has to split
 * the result. */
static struct shipment *take_group(struct delivery *delivery)
{
    struct shipment *leader = take_first(delivery);
    if (!delivery->queue->batch.enabled)
        return leader;
    unsigned passed = 0;
    struct list_link *link = delivery->waiting.first;
    struct shipment *other = find_fitting(delivery, leader, &link, &passed);
    if (!other)
        return leader;
    struct batch *last = leader->batch;
    struct receipt_group *group = move_receipt(NULL, last);
    for (; other; other = find_fitting(delivery, leader, &link, &passed)) {
        take(delivery, other);
        group = move_receipt(group, other->batch);
        leader->room.queued_size += other->room.queued_size;
        leader->room.bytes += other->room.bytes;
        leader->room.lent_bytes += other->room.lent_bytes;
        leader->weight += other->weight;
        last->next = other->batch;
        last = other->batch;
        free(other);
    }
    leader->batch = batch_join(leader->batch);
    leader->batch->receipt = receipt_of_group(group);
    return split_again(leader);
}

/* The parts of a split request may repeat a limited number of bytes. Beyond that, the rest stays
 * in one part (batch_cut.h), which may exceed max_size. */
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
        log_warn(delivery->node->origin,
                 "Requests larger than sending_queue::batch::max_size are sent",
                 LOG_TEXT("reason", why), LOG_U64("items", items));
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

/* Whether the first request can be taken: it is not being split. */
static bool has_first(const struct delivery *delivery)
{
    return delivery->waiting.first && !first_waiting(delivery)->cutting;
}

/* Drops the first requests as long as their senders have given up (wait_for_result). */
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

/* ---- a successor ---- */

/* Whether the request may get another exporter. One with a receipt is not the queue's alone: its
 * sender, or a component before the exporter, decides what happens to it. */
static bool is_free_to_go(const struct shipment *shipment)
{
    return !shipment->attempting && !shipment->cutting && !shipment->batch->receipt;
}

static void remove_from_list(struct shipment *shipment)
{
    struct delivery *delivery = shipment->delivery;
    worker_cancel_timer(delivery->node->worker, &shipment->timer);
    if (list_has(&delivery->waiting, &shipment->link))
        take(delivery, shipment);
    else
        list_remove(&delivery->active, &shipment->link);
}

/* Returns false if the other queue has no room. */
static bool move_shipment(struct shipment *shipment, struct delivery *to)
{
    struct queue *queue = &to->shared->queue;
    struct room room;
    uint64_t size = batch_queued_size(shipment->batch, queue);
    if (size > queue->capacity || !queue_reserve(queue, size, batch_memory(shipment->batch), &room))
        return false;
    remove_from_list(shipment);
    delivery_enqueue(to, delivery_shipment_release(shipment), &room);
    return true;
}

static size_t move_list(struct list *list, struct delivery *to)
{
    size_t count = 0;
    for (struct list_link *link = list->first, *next; link; link = next) {
        next = link->next;
        if (!is_free_to_go(shipment_of(link)))
            continue;
        if (!move_shipment(shipment_of(link), to))
            break;
        count++;
    }
    return count;
}

bool delivery_pass_on(struct shipment *shipment)
{
    struct delivery *from = shipment->delivery, *to = from->successor;
    if (!to || to->stopped || !is_free_to_go(shipment) || !move_shipment(shipment, to))
        return false;
    delivery_pump(to);
    delivery_pump(from);
    return true;
}

size_t delivery_hand_over(struct delivery *from, struct delivery *to)
{
    assert(from != to && from->node->worker == to->node->worker && !from->stopped && !to->stopped);
    if (!from->queue->enabled || !to->queue->enabled)
        return 0;
    from->successor = to;
    size_t count = move_list(&from->active, to) + move_list(&from->waiting, to);
    if (count > 0)
        delivery_pump(to);
    return count;
}

#include "core/pipeline/delivery.h"

#include "core/base/container_of.h"
#include "core/base/hash.h"
#include "core/base/job.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/pipeline/batch_cut.h"
#include "core/pipeline/batch_join.h"
#include "core/pipeline/reservation.h"

#include <assert.h>
#include <stdio.h>

#define QUEUE_FULL_NS INT64_C(500000000) /* when a client that was refused may come again */
#define BACKOFF_MIN_NS INT64_C(10000000)
#define BACKOFF_DRAINING_NS INT64_C(1000000000)
#define ENCODING_WAIT_NS UINT64_C(5000000) /* between two looks whether there is room to encode */

/* Settings */

static const char *const sizer_names[] = {"requests", "items", "bytes", NULL};

static const char *const batch_sizer_names[] = {"auto", "items", "bytes", NULL};

static const struct field queue_batch_fields[] = {
    FIELD_DURATION(queue_batch_settings, flush_timeout,
                   "Longest time that data waits to be merged.", .fallback = "200ms", .min = "1ns"),
    FIELD_UINT(queue_batch_settings, min_size,
               "Waiting data is sent once there is this much of it.", .fallback = "8192"),
    FIELD_UINT(queue_batch_settings, max_size,
               "Size of the largest request; larger ones are split; 0: no limit.", .fallback = "0"),
    FIELD_ENUM(queue_batch_settings, sizer,
               "Unit of min_size and max_size; auto: the queue's sizer if that is items or bytes, "
               "else items.",
               batch_sizer_names, .fallback = "auto"),
    FIELD_NODE(queue_batch_settings, partition, "Not supported yet."),
    FIELD_END,
};

const struct field sending_queue_fields[] = {
    FIELD_UINT(sending_queue_settings, num_consumers,
               "Most requests being sent at the same time, over all workers.", .fallback = "10",
               .min = "1", .max = "100000"),
    FIELD_UINT(sending_queue_settings, queue_size,
               "Capacity of the queue in the unit of `sizer`, over all workers, within the "
               "exporter's share of the memory for requests (docs/architecture.md, Branches).",
               .fallback = "1000", .min = "1"),
    FIELD_ENUM(sending_queue_settings, sizer, "The unit of `queue_size`.", sizer_names,
               .fallback = "requests"),
    FIELD_BOOL(sending_queue_settings, wait_for_result,
               "Answer the sender once the backend has accepted the data, not once it is queued.",
               .fallback = "false"),
    FIELD_BOOL(sending_queue_settings, block_on_overflow,
               "When the queue is full, let senders wait up to 5 s for room instead of refusing "
               "them. Among several exporters, none gets data until every one with this setting "
               "has room for it.",
               .fallback = "false"),
    FIELD_NODE(sending_queue_settings, storage, "A queue on disk is not supported yet."),
    FIELD_OPTIONAL(sending_queue_settings, batch, queue_batch_settings, queue_batch_fields,
                   "Merge small requests and split large ones."),
    FIELD_END,
};

const struct field retry_fields[] = {
    FIELD_DURATION(retry_settings, initial_interval, "Wait after the first failure.",
                   .fallback = "5s", .min = "0s"),
    FIELD_DOUBLE(retry_settings, randomization_factor,
                 "Each wait is multiplied by a random number between 1 minus this and 1 plus this.",
                 .fallback = "0.5", .min = "0", .max = "1"),
    FIELD_DOUBLE(retry_settings, multiplier, "Factor by which the wait grows after each failure.",
                 .fallback = "1.5", .min = "0", .max = "1000"),
    FIELD_DURATION(retry_settings, max_interval, "Largest wait, before randomization.",
                   .fallback = "30s", .min = "0s"),
    FIELD_DURATION(
        retry_settings, max_elapsed_time,
        "A request is dropped when this long has passed since its first attempt; 0: never.",
        .fallback = "5m", .min = "0s"),
    FIELD_END,
};

static bool batches_bytes(const struct sending_queue_settings *queue)
{
    if (queue->batch.sizer == BATCH_SIZER_AUTO)
        return queue->sizer == QUEUE_SIZER_BYTES;
    return queue->batch.sizer == BATCH_SIZER_BYTES;
}

static void check_batch(const struct sending_queue_settings *queue, struct config_check *check,
                        const char *key)
{
    const struct queue_batch_settings *batch = &queue->batch;
    bool same_unit = batches_bytes(queue) ? queue->sizer == QUEUE_SIZER_BYTES
                                          : queue->sizer == QUEUE_SIZER_ITEMS;
    char path[128];
    snprintf(path, sizeof(path), "%.80s::batch::min_size", key);
    if (same_unit && batch->min_size > queue->queue_size)
        config_check_error(check, path, "must not be greater than queue_size");
    snprintf(path, sizeof(path), "%.80s::batch::max_size", key);
    if (batch->max_size > 0 && batch->max_size < batch->min_size)
        config_check_error(check, path, "must not be less than min_size");
    if (batch->max_size > UINT32_MAX)
        config_check_error(check, path, "must not be greater than %u", UINT32_MAX);
    snprintf(path, sizeof(path), "%.80s::batch::partition", key);
    config_check_refuse(check, batch->partition, path,
                        "separate batches by metadata are not supported yet");
}

void sending_queue_check(const struct sending_queue_settings *queue, struct config_check *check,
                         const char *key)
{
    if (!queue->enabled)
        return;
    char path[128];
    snprintf(path, sizeof(path), "%.80s::storage", key);
    config_check_refuse(check, queue->storage, path, "a queue on disk is not supported yet");
    if (queue->batch.enabled)
        check_batch(queue, check, key);
}

void retry_check(const struct retry_settings *retry, struct config_check *check, const char *key)
{
    char path[128];
    snprintf(path, sizeof(path), "%.80s::max_elapsed_time", key);
    if (!retry->enabled || retry->max_elapsed_time == 0)
        return;
    if (retry->max_elapsed_time < retry->initial_interval)
        config_check_error(check, path, "must not be less than initial_interval");
    if (retry->max_elapsed_time < retry->max_interval)
        config_check_error(check, path, "must not be less than max_interval");
}

/* Shared by all workers */

static double read_queued(void *context)
{
    struct delivery_shared *shared = context;
    return (double)atomic_load_explicit(&shared->queue.queued, memory_order_relaxed);
}

static double read_capacity(void *context)
{
    const struct delivery_shared *shared = context;
    return (double)shared->queue.capacity;
}

static double read_held(void *context)
{
    const struct delivery_shared *shared = context;
    return (double)budget_used(shared->queue.held);
}

static double read_held_limit(void *context)
{
    const struct delivery_shared *shared = context;
    return (double)shared->queue.held->limit_bytes;
}

static struct counter *make_counter(struct delivery_shared *shared, enum signal signal,
                                    const char *what, const char *help, const char *labels)
{
    char name[80], full_help[120];
    const char *item = signal == SIGNAL_TRACES ? "spans" : "profile samples";
    snprintf(name, sizeof(name), "otelcol_exporter_%s_%s", what, signal_item_name(signal));
    snprintf(full_help, sizeof(full_help), "Number of %s %s.", item, help);
    return metrics_counter(shared->metrics, name, full_help, labels);
}

void delivery_shared_init(struct delivery_shared *shared, struct component *component,
                          enum signal signal, const struct sending_queue_settings *queue,
                          const char *extra_labels)
{
    struct text by_exporter = {0}, by_server = {0}, by_type = {0};
    shared->metrics = component->process->metrics;
    shared->queue.capacity = queue->queue_size;
    shared->queue.sizer = queue->enabled ? (enum queue_sizer)queue->sizer : QUEUE_SIZER_NONE;
    shared->queue.blocks = queue->enabled && queue->block_on_overflow;
    shared->queue.held = &component->held[signal];
    shared->queue.waiting.limit_bytes = shared->queue.held->limit_bytes / 4;
    shared->encoding.limit_bytes = shared->queue.held->limit_bytes / 2;
    metrics_label(&by_exporter, "exporter", component->id);
    text_append(&by_server, text_string(&by_exporter));
    text_printf(&by_server, "%s%s", extra_labels[0] ? "," : "", extra_labels);
    text_append(&by_type, text_string(&by_exporter));
    metrics_label(&by_type, "data_type", signal_name(signal));
    const char *type_labels = text_string(&by_type);

    shared->sent = make_counter(shared, signal, "sent", "successfully sent to destination",
                                text_string(&by_server));
    shared->send_failed =
        make_counter(shared, signal, "send_failed", "in failed attempts to send to destination",
                     text_string(&by_server));
    shared->queue.enqueue_failed =
        make_counter(shared, signal, "enqueue_failed", "failed to be added to the sending queue",
                     text_string(&by_exporter));
    shared->in_flight = metrics_gauge(shared->metrics, "otelcol_exporter_in_flight_requests",
                                      "Number of requests currently being sent.", type_labels);
    if (queue->enabled) {
        metrics_gauge_from(shared->metrics, "otelcol_exporter_queue_size",
                           "Current size of the retry queue, in the unit of its sizer.",
                           type_labels, read_queued, shared);
        metrics_gauge_from(shared->metrics, "otelcol_exporter_queue_capacity",
                           "Fixed capacity of the retry queue, in the unit of its sizer.",
                           type_labels, read_capacity, shared);
    }
    metrics_gauge_from(
        shared->metrics, "profcol_exporter_held_bytes",
        "Memory of requests that are queued, being sent or kept for the next attempt.", type_labels,
        read_held, shared);
    metrics_gauge_from(shared->metrics, "profcol_exporter_held_bytes_limit",
                       "The exporter's share of the memory for requests.", type_labels,
                       read_held_limit, shared);
    text_deinit(&by_exporter);
    text_deinit(&by_server);
    text_deinit(&by_type);
}

void delivery_shared_deinit(struct delivery_shared *shared)
{
    if (shared->metrics)
        metrics_forget(shared->metrics, shared);
    shared->metrics = NULL;
}

static struct shipment *shipment_of(struct list_link *link)
{
    return link ? container_of(link, struct shipment, link) : NULL;
}

static struct shipment *first_waiting(const struct delivery *delivery)
{
    return shipment_of(delivery->waiting.first);
}

/* Counting and logging */

/* As the Collector logs a status. */
static const char *describe(const struct verdict *verdict, char *out, size_t size)
{
    snprintf(out, size, "rpc error: code = %s desc = %s", grpc_code_go_name(verdict->code),
             verdict->text);
    return out;
}

static const char *label_of(const struct delivery *delivery)
{
    return delivery->node->component->label;
}

static void count(struct delivery *delivery, struct counter *counter, uint64_t items)
{
    counter_add(counter, delivery->node->worker->index, items);
}

/* Nobody is left who would send it again. */
static void log_dropped(const struct delivery *delivery, const char *why, const char *error,
                        uint64_t items)
{
    log_error(label_of(delivery),
              "Exporting failed. Dropping data. (error: %s%s, dropped_items: %llu)", why, error,
              (unsigned long long)items);
}

/* The sender is told. */
static void log_rejected(const struct delivery *delivery, const char *why, const char *error,
                         uint64_t items)
{
    log_error(label_of(delivery),
              "Exporting failed. Rejecting data.%s (error: %s%s, rejected_items: %llu)",
              delivery->queue->enabled
                  ? ""
                  : " Try enabling sending_queue to survive temporary failures.",
              why, error, (unsigned long long)items);
}

/* The way of a shipment: waiting -> active -> gone */

static void pump(struct delivery *delivery);

/* Nobody waits for the answer any more, and nobody has the data yet. */
static bool is_abandoned(const struct shipment *shipment)
{
    return receipt_is_abandoned(shipment->batch->receipt);
}

static void finish(struct shipment *shipment, const struct verdict *verdict);

/* Who found no room comes first when there is some, so that a large one is not kept waiting by
 * small ones; `wanted` says whether that is still so. */
static void stand_first(struct shipment *shipment, bool wanted)
{
    struct delivery_shared *shared = shipment->delivery->shared;
    const struct shipment *from = wanted ? NULL : shipment;
    atomic_compare_exchange_strong_explicit(&shared->encoding_next, &from, wanted ? shipment : NULL,
                                            memory_order_relaxed, memory_order_relaxed);
}

static bool has_encoding_turn(const struct shipment *shipment)
{
    const struct shipment *next =
        atomic_load_explicit(&shipment->delivery->shared->encoding_next, memory_order_relaxed);
    return !next || next == shipment;
}

/* For the attempt that begins now; false: there is no room. */
static bool reserve_encoding(struct shipment *shipment)
{
    const struct delivery *delivery = shipment->delivery;
    struct budget *encoding = &delivery->shared->encoding;
    assert(shipment->encoding_bytes == 0);
    size_t size = delivery->encoded_size ? delivery->encoded_size(delivery, shipment->batch) : 0;
    if (size == 0)
        return true;
    if (!has_encoding_turn(shipment) ||
        !(budget_reserve(encoding, size) || budget_reserve_alone(encoding, size))) {
        stand_first(shipment, true);
        return false;
    }
    stand_first(shipment, false);
    shipment->encoding_bytes = size;
    return true;
}

/* Others of this worker look at once; those of other workers do when their time has come. */
static void wake_who_waits(struct delivery *delivery)
{
    for (struct list_link *link = delivery->active.first; link; link = link->next)
        if (shipment_of(link)->waits_to_encode)
            worker_set_timer(delivery->node->worker, &shipment_of(link)->timer, 0);
}

/* What was encoded is gone, or the turn is given up. */
static void release_encoding(struct shipment *shipment)
{
    struct delivery *delivery = shipment->delivery;
    if (shipment->encoding_bytes == 0 && !shipment->waits_to_encode)
        return;
    budget_release(&delivery->shared->encoding, shipment->encoding_bytes);
    shipment->encoding_bytes = 0;
    shipment->waits_to_encode = false;
    stand_first(shipment, false);
    wake_who_waits(delivery);
}

static void attempt(struct shipment *shipment)
{
    struct delivery *delivery = shipment->delivery;
    struct worker_piece piece;
    assert(!shipment->attempting);
    shipment->waits_to_encode = !reserve_encoding(shipment);
    if (shipment->waits_to_encode) {
        worker_set_timer(delivery->node->worker, &shipment->timer, ENCODING_WAIT_NS);
        return;
    }
    if (shipment->first_attempt_ns == 0)
        shipment->first_attempt_ns = worker_now(delivery->node->worker);
    shipment->attempting = true;
    gauge_add(delivery->shared->in_flight, 1);
    node_begin_piece(delivery->node, shipment->batch, &piece);
    delivery->send(delivery->node, shipment);
    worker_end_piece(delivery->node->worker, &piece);
}

static void on_retry(struct timer *timer)
{
    struct shipment *shipment = container_of(timer, struct shipment, timer);
    if (is_abandoned(shipment))
        finish(shipment, &verdict_sender_is_gone);
    else
        attempt(shipment);
}

static void activate(struct shipment *shipment)
{
    struct delivery *delivery = shipment->delivery;
    list_append(&delivery->active, &shipment->link);
    attempt(shipment);
}

/* It is out of all lists. Returns its batch, which has no room any more. */
static struct batch *release(struct shipment *shipment)
{
    struct delivery *delivery = shipment->delivery;
    struct batch *batch = shipment->batch;
    if (shipment->exporter_data && delivery->release)
        delivery->release(delivery->node, shipment);
    release_encoding(shipment);
    queue_release(&shipment->room);
    free(shipment);
    return batch;
}

static struct batch *take_active(struct shipment *shipment)
{
    struct delivery *delivery = shipment->delivery;
    list_remove(&delivery->active, &shipment->link);
    return release(shipment);
}

static void finish(struct shipment *shipment, const struct verdict *verdict)
{
    struct delivery *delivery = shipment->delivery;
    batch_drop(take_active(shipment), verdict);
    pump(delivery);
}

static void fail(struct shipment *shipment, const char *why, const struct verdict *verdict)
{
    struct delivery *delivery = shipment->delivery;
    struct batch *batch = take_active(shipment);
    uint32_t items = batch->items;
    bool acknowledged = !batch->receipt; /* by the queue */
    char error[400];
    count(delivery, delivery->shared->send_failed, items);
    describe(verdict, error, sizeof(error));
    if (node_refuse(delivery->node, batch, REFUSED_FAILED, verdict))
        log_info(label_of(delivery), "Exporting failed. Will try again. (error: %s%s, items: %u)",
                 why, error, (unsigned)items);
    else if (acknowledged)
        log_dropped(delivery, why, error, items);
    else
        log_rejected(delivery, why, error, items);
    pump(delivery);
}

static double random_unit(const struct delivery *delivery)
{
    uint64_t bits = delivery->random ? delivery->random() : random_u64();
    return (double)(bits >> 11) / (double)(UINT64_C(1) << 53);
}

/* Exponential, randomized. */
static int64_t next_backoff(struct shipment *shipment)
{
    const struct retry_settings *retry = shipment->delivery->retry;
    if (shipment->backoff_ns == 0)
        shipment->backoff_ns = retry->initial_interval;
    double delay = (double)shipment->backoff_ns;
    double grown = delay * retry->multiplier;
    shipment->backoff_ns =
        grown > (double)retry->max_interval ? retry->max_interval : (int64_t)grown;
    double spread = retry->randomization_factor;
    delay *= 1 - spread + 2 * spread * random_unit(shipment->delivery);
    return delay < (double)BACKOFF_MIN_NS ? BACKOFF_MIN_NS : (int64_t)delay;
}

static int64_t retry_delay(struct shipment *shipment, const struct verdict *verdict)
{
    int64_t delay = next_backoff(shipment);
    if (shipment->delivery->draining && delay > BACKOFF_DRAINING_NS)
        delay = BACKOFF_DRAINING_NS;
    int64_t asked = retry_after_of(verdict);
    return delay < asked ? asked : delay;
}

static void retry_later(struct shipment *shipment, const struct verdict *verdict)
{
    struct delivery *delivery = shipment->delivery;
    struct worker *worker = delivery->node->worker;
    int64_t delay = retry_delay(shipment, verdict);
    uint64_t next = worker_now(worker) + (uint64_t)delay;
    int64_t limit = delivery->retry->max_elapsed_time;
    if (limit > 0 && next > shipment->first_attempt_ns + (uint64_t)limit) {
        fail(shipment, "no more retries left: ", verdict);
        return;
    }
    if (shipment->encoding_bytes > 0) {
        delivery->drop_encoded(shipment);
        release_encoding(shipment);
    }
    char error[400];
    log_info(
        label_of(delivery),
        "Exporting failed. Will retry the request after interval. (error: %s, interval: %.3fs)",
        describe(verdict, error, sizeof(error)), (double)delay / 1e9);
    worker_set_timer(worker, &shipment->timer, (uint64_t)delay);
}

void delivery_done(struct shipment *shipment, const struct verdict *verdict)
{
    struct delivery *delivery = shipment->delivery;
    assert(shipment->attempting);
    shipment->attempting = false;
    gauge_add(delivery->shared->in_flight, -1);
    if (verdict_is_ok(verdict)) {
        count(delivery, delivery->shared->sent, shipment->batch->items);
        finish(shipment, verdict);
    } else if (!verdict_is_retryable(verdict)) {
        fail(shipment, "not retryable error: Permanent error: ", verdict);
    } else if (!delivery->retry->enabled) {
        fail(shipment, "", verdict);
    } else {
        retry_later(shipment, verdict);
    }
}

/* The queue */

static struct shipment *new_shipment(struct delivery *delivery, struct batch *batch,
                                     const struct room *room)
{
    struct shipment *shipment = memory_zalloc(sizeof(*shipment));
    shipment->batch = batch;
    shipment->delivery = delivery;
    shipment->room = *room;
    shipment->timer.on_timer = on_retry;
    return shipment;
}

static uint64_t weight_of(const struct delivery *delivery, struct batch *batch)
{
    return batches_bytes(delivery->queue) ? batch_size(batch) : batch->items;
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
    if (batches_bytes(delivery->queue))
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
    struct shipment *shipment = new_shipment(delivery, batch, room);
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

/* Cutting beside the loop */

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
    return !is_abandoned(container_of(job, const struct cutting, job)->shipment);
}

/* The parts in place of the whole, which waits; the first one has the room of all. */
static void replace_by_parts(struct shipment *shipment, struct batch *part)
{
    struct delivery *delivery = shipment->delivery;
    struct shipment *last = shipment;
    const struct room no_room = {.queue = &delivery->shared->queue};
    uint64_t whole_weight = shipment->weight;
    struct batch *next = part->next;
    shipment->batch = part;
    shipment->weight = weight_of(delivery, part);
    delivery->waiting_weight += shipment->weight;
    for (part->next = NULL; (part = next) != NULL; part->next = NULL) {
        last->is_full = true;
        struct shipment *more = new_shipment(delivery, part, &no_room);
        next = part->next;
        more->arrived_ns = shipment->arrived_ns;
        more->weight = weight_of(delivery, part);
        delivery->waiting_weight += more->weight;
        list_insert(&delivery->waiting, &more->link, &last->link);
        last = more;
    }
    delivery->waiting_weight -= whole_weight;
}

static void on_cut(struct job *job, bool did_run)
{
    struct cutting *cutting = container_of(job, struct cutting, job);
    struct shipment *shipment = cutting->shipment;
    struct delivery *delivery = shipment->delivery;
    shipment->cutting = NULL;
    if (did_run) /* else drop_abandoned finds it */
        replace_by_parts(shipment, batch_cutter_finish(&cutting->cutter));
    free(cutting);
    pump(delivery);
}

static void begin_cutting(struct shipment *shipment, const struct cut_limits *limits)
{
    struct cutting *cutting = memory_zalloc(sizeof(*cutting));
    shipment->cutting = cutting;
    cutting->shipment = shipment;
    batch_cutter_init(&cutting->cutter, shipment->batch, limits);
    cutting->job =
        (struct job){.run = run_cutting, .on_done = on_cut, .is_wanted = is_cutting_wanted};
    job_start(shipment->delivery->node->worker, &cutting->job);
}

/* The whole stays. */
static void end_cutting(struct shipment *shipment)
{
    struct cutting *cutting = shipment->cutting;
    if (!cutting)
        return;
    job_cancel(&cutting->job);
    batch_cutter_cancel(&cutting->cutter);
    shipment->cutting = NULL;
    free(cutting);
}

static void enqueue(struct delivery *delivery, struct batch *batch, const struct room *room)
{
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

static bool is_due(const struct delivery *delivery)
{
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
    while (has_first(delivery) && is_abandoned(first_waiting(delivery)))
        batch_drop(release(take_first(delivery)), &verdict_sender_is_gone);
}

static void pump(struct delivery *delivery)
{
    drop_abandoned(delivery);
    while (has_first(delivery) && delivery->active.count < delivery->consumers) {
        if (!is_due(delivery)) {
            uint64_t due = first_waiting(delivery)->arrived_ns +
                           (uint64_t)delivery->queue->batch.flush_timeout;
            worker_set_timer(delivery->node->worker, &delivery->flush,
                             due - delivery->node->worker->now_ns);
            return;
        }
        struct shipment *next = take_group(delivery);
        if (next)
            activate(next);
        drop_abandoned(delivery);
    }
}

static void on_flush(struct timer *timer)
{
    pump(container_of(timer, struct delivery, flush));
}

/* The outlet logs it where there are several branches. */
static void log_overflow(struct delivery *delivery, const char *error, uint64_t items)
{
    uint64_t now = delivery->node->worker->now_ns;
    uint64_t rejected = log_interval_add(&delivery->rejections, items, now);
    if (rejected > 0)
        log_rejected(delivery, "", error, rejected);
}

static void refuse(struct delivery *delivery, struct batch *batch, const struct verdict *verdict)
{
    uint32_t items = batch->items;
    bool is_alone = !batch->branch || batch->branch->outlet->count == 1;
    enum refusal refusal = delivery->shared->queue.blocks ? REFUSED_BLOCKED : REFUSED_FULL;
    if (node_refuse(delivery->node, batch, refusal, verdict))
        return;
    count(delivery, delivery->shared->queue.enqueue_failed, items);
    if (is_alone)
        log_overflow(delivery, verdict->text, items);
}

void delivery_consume(struct delivery *delivery, struct batch *batch)
{
    struct room room;
    assert(!delivery->stopped);
    if (delivery->queue->enabled && delivery->active.count >= delivery->consumers)
        batch_compact(batch); /* it will wait */
    struct queue *queue = &delivery->shared->queue;
    uint64_t queued_size = batch_queued_size(batch, queue);
    if (queued_size > queue->capacity) {
        /* Sending it again cannot help. */
        struct verdict verdict = verdict_of(GRPC_RESOURCE_EXHAUSTED, "element size too large");
        refuse(delivery, batch, &verdict);
        return;
    }
    if (!reservation_take(batch->reservation, queue, &room) &&
        !queue_reserve(queue, queued_size, batch_memory(batch), &room)) {
        struct verdict verdict =
            verdict_try_later(GRPC_UNAVAILABLE, QUEUE_FULL_NS,
                              queue_has_capacity(queue, queued_size)
                                  ? "the exporter's share of the memory for requests is used up"
                                  : "sending queue is full");
        refuse(delivery, batch, &verdict);
        return;
    }
    if (delivery->queue->enabled)
        enqueue(delivery, batch, &room);
    else
        activate(new_shipment(delivery, batch, &room));
    pump(delivery);
}

/* Beginning and end */

void delivery_start(struct delivery *delivery)
{
    const struct process *process = delivery->node->component->process;
    uint64_t all = delivery->queue->num_consumers;
    uint64_t share = all / process->worker_count;
    if (delivery->node->worker->index < all % process->worker_count)
        share++;
    delivery->consumers = share == 0 ? 1 : (unsigned)share;
    delivery->flush.on_timer = on_flush;
    delivery->node->delivery = delivery;
    delivery->node->queue = &delivery->shared->queue;
}

void delivery_drain(struct delivery *delivery)
{
    delivery->draining = true;
    for (struct list_link *link = delivery->active.first; link; link = link->next)
        if (timer_is_set(&shipment_of(link)->timer))
            worker_set_timer(delivery->node->worker, &shipment_of(link)->timer, 0);
    pump(delivery);
}

bool delivery_is_idle(const struct node *node)
{
    return !node->delivery->waiting.first && !node->delivery->active.first;
}

/* Returns the items that the queue had acknowledged. */
static uint64_t give_up(struct delivery *delivery, struct list *list)
{
    struct verdict verdict = verdict_of(GRPC_UNAVAILABLE, "interrupted due to shutdown");
    uint64_t lost = 0;
    while (list->first) {
        struct shipment *shipment = shipment_of(list_pop(list));
        end_cutting(shipment);
        worker_cancel_timer(delivery->node->worker, &shipment->timer);
        if (shipment->attempting) {
            gauge_add(delivery->shared->in_flight, -1);
            delivery->abort(delivery->node, shipment);
        }
        struct batch *batch = release(shipment);
        uint32_t items = batch->items;
        lost += batch->receipt ? 0 : items;
        if (!node_refuse(delivery->node, batch, REFUSED_FAILED, &verdict))
            count(delivery, delivery->shared->send_failed, items);
    }
    return lost;
}

void delivery_stop(struct delivery *delivery)
{
    worker_cancel_timer(delivery->node->worker, &delivery->flush);
    uint64_t lost = give_up(delivery, &delivery->active) + give_up(delivery, &delivery->waiting);
    delivery->stopped = true;
    delivery->waiting_weight = 0;
    if (lost == 0)
        return;
    atomic_fetch_add(&delivery->node->component->process->lost_items, lost);
    log_dropped(delivery, "", "interrupted due to shutdown", lost);
}

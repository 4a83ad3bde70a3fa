#include "core/pipeline/delivery.h"

#include "core/base/container_of.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/pipeline/batch_join.h"

#include <assert.h>
#include <stdio.h>

#define THROTTLE_MAX_NS (INT64_C(300) * 1000000000)
#define QUEUE_FULL_NS INT64_C(500000000) /* when a client that was refused may come again */
#define BACKOFF_MIN_NS INT64_C(10000000)
#define BACKOFF_DRAINING_NS INT64_C(1000000000)
/* Other workers free room without telling, so the blocked ones look again this often. */
#define UNBLOCK_NS UINT64_C(20000000)

/* Settings */

static const char *const sizer_names[] = {"requests", "items", "bytes", NULL};

static const char *const batch_sizer_names[] = {"auto", "items", "bytes", NULL};

static const struct field queue_batch_fields[] = {
    FIELD_DURATION(queue_batch_settings, flush_timeout,
                   "Time after which what waits is sent, however little it is.",
                   .fallback = "200ms", .min = "1ns"),
    FIELD_UINT(queue_batch_settings, min_size, "What waits is sent once it is this much.",
               .fallback = "8192"),
    FIELD_UINT(queue_batch_settings, max_size,
               "One request is at most this much, larger ones are cut; 0: no limit.",
               .fallback = "0"),
    FIELD_ENUM(queue_batch_settings, sizer,
               "The unit of both; auto: that of the queue if it is items or bytes, else items.",
               batch_sizer_names, .fallback = "auto"),
    FIELD_NODE(queue_batch_settings, partition, "Not supported yet."),
    FIELD_END,
};

const struct field sending_queue_fields[] = {
    FIELD_UINT(sending_queue_settings, num_consumers,
               "Batches that are sent at the same time, over all workers.", .fallback = "10",
               .min = "1", .max = "100000"),
    FIELD_UINT(sending_queue_settings, queue_size,
               "How much the queue holds, in the unit of `sizer`, over all workers.",
               .fallback = "1000", .min = "1"),
    FIELD_ENUM(sending_queue_settings, sizer, "The unit of `queue_size`.", sizer_names,
               .fallback = "requests"),
    FIELD_BOOL(sending_queue_settings, wait_for_result,
               "Answer the sender when the backend has taken the data, not when the queue has.",
               .fallback = "false"),
    FIELD_BOOL(sending_queue_settings, block_on_overflow,
               "Let senders wait for room when the queue is full, instead of refusing them.",
               .fallback = "false"),
    FIELD_NODE(sending_queue_settings, storage, "A queue on disk is not supported yet."),
    FIELD_OPTIONAL(sending_queue_settings, batch, queue_batch_settings, queue_batch_fields,
                   "Make few large requests out of many small ones, and cut too large ones."),
    FIELD_END,
};

const struct field retry_fields[] = {
    FIELD_DURATION(retry_settings, initial_interval, "Wait after the first failure.",
                   .fallback = "5s", .min = "0s"),
    FIELD_DOUBLE(retry_settings, randomization_factor,
                 "Each wait is multiplied by a random number between 1 minus this and 1 plus this.",
                 .fallback = "0.5", .min = "0", .max = "1"),
    FIELD_DOUBLE(retry_settings, multiplier, "By how much the wait grows after each failure.",
                 .fallback = "1.5", .min = "0", .max = "1000"),
    FIELD_DURATION(retry_settings, max_interval, "Largest wait, before randomization.",
                   .fallback = "30s", .min = "0s"),
    FIELD_DURATION(
        retry_settings, max_elapsed_time,
        "A batch is dropped when this long has passed since its first attempt; 0: never.",
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
                        "requests cannot be kept apart by metadata yet");
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
    return (double)atomic_load_explicit(&shared->queued, memory_order_relaxed);
}

static double read_capacity(void *context)
{
    const struct delivery_shared *shared = context;
    return (double)shared->capacity;
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
    shared->capacity = queue->queue_size;
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
    shared->enqueue_failed =
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

static bool reserve(struct delivery_shared *shared, uint64_t size)
{
    uint64_t queued = atomic_load_explicit(&shared->queued, memory_order_relaxed);
    do {
        if (size > shared->capacity || queued > shared->capacity - size)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&shared->queued, &queued, queued + size,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* Lists */

static void append(struct shipment_list *list, struct shipment *shipment)
{
    shipment->next = NULL;
    shipment->previous = list->last;
    if (list->last)
        list->last->next = shipment;
    else
        list->first = shipment;
    list->last = shipment;
}

static void take_out(struct shipment_list *list, struct shipment *shipment)
{
    if (shipment->previous)
        shipment->previous->next = shipment->next;
    else
        list->first = shipment->next;
    if (shipment->next)
        shipment->next->previous = shipment->previous;
    else
        list->last = shipment->previous;
    shipment->previous = shipment->next = NULL;
}

static struct shipment *pop(struct shipment_list *list)
{
    struct shipment *first = list->first;
    assert(first && !first->previous);
    take_out(list, first);
    return first;
}

/* Counting and saying */

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

static void say_dropped(const struct delivery *delivery, const char *why, const char *error,
                        uint64_t items)
{
    if (delivery->queue->enabled)
        log_error(label_of(delivery),
                  "Exporting failed. Dropping data. (error: %s%s, dropped_items: %llu)", why, error,
                  (unsigned long long)items);
    else
        log_error(
            label_of(delivery),
            "Exporting failed. Rejecting data. Try enabling sending_queue to survive temporary "
            "failures. (error: %s%s, rejected_items: %llu)",
            why, error, (unsigned long long)items);
}

/* The way of a shipment: (blocked) -> waiting -> active -> gone */

static void pump(struct delivery *delivery);

static bool holds_nothing(const struct delivery *delivery)
{
    return !delivery->blocked.first && !delivery->waiting.first && !delivery->active.first;
}

static void check_drained(struct delivery *delivery)
{
    if (!delivery->draining || delivery->drained || !holds_nothing(delivery))
        return;
    delivery->drained = true;
    node_drained(delivery->node);
}

static void attempt(struct shipment *shipment)
{
    struct delivery *delivery = shipment->delivery;
    assert(!shipment->attempting);
    if (shipment->first_attempt_ns == 0)
        shipment->first_attempt_ns = worker_now(delivery->node->worker);
    shipment->attempting = true;
    gauge_add(delivery->shared->in_flight, 1);
    delivery->send(delivery->node, shipment);
}

static void on_retry(struct timer *timer)
{
    struct shipment *shipment = container_of(timer, struct shipment, timer);
    attempt(shipment);
}

static void activate(struct shipment *shipment)
{
    struct delivery *delivery = shipment->delivery;
    append(&delivery->active, shipment);
    delivery->active_count++;
    attempt(shipment);
}

/* It is out of all lists. */
static void let_go(struct shipment *shipment, const struct verdict *verdict)
{
    struct delivery *delivery = shipment->delivery;
    if (shipment->exporter_data && delivery->release)
        delivery->release(delivery->node, shipment);
    struct shipment gone = *shipment;
    free(shipment);
    atomic_fetch_sub_explicit(&delivery->shared->queued, gone.queued_size, memory_order_relaxed);
    batch_drop(gone.batch, verdict);
    for (size_t i = 0; i < gone.receipt_count; i++)
        receipt_settle(gone.receipts[i], verdict);
    free(gone.receipts);
}

static void finish(struct shipment *shipment, const struct verdict *verdict)
{
    struct delivery *delivery = shipment->delivery;
    take_out(&delivery->active, shipment);
    delivery->active_count--;
    let_go(shipment, verdict);
    pump(delivery);
    check_drained(delivery);
}

static void fail(struct shipment *shipment, const char *why, const struct verdict *verdict)
{
    struct delivery *delivery = shipment->delivery;
    uint32_t items = shipment->batch->items;
    char error[400];
    count(delivery, delivery->shared->send_failed, items);
    say_dropped(delivery, why, describe(verdict, error, sizeof(error)), items);
    finish(shipment, verdict);
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
    int64_t floor = verdict->retry_after_ns;
    if (floor > THROTTLE_MAX_NS)
        floor = THROTTLE_MAX_NS;
    return delay < floor ? floor : delay;
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

static uint64_t size_of(const struct delivery *delivery, struct batch *batch)
{
    switch ((enum queue_sizer)delivery->queue->sizer) {
    case QUEUE_SIZER_ITEMS:
        return batch->items;
    case QUEUE_SIZER_BYTES:
        return batch_size(batch);
    case QUEUE_SIZER_REQUESTS:
        break;
    }
    return 1;
}

static struct shipment *new_shipment(struct delivery *delivery, struct batch *batch)
{
    struct shipment *shipment = memory_zalloc(sizeof(*shipment));
    shipment->batch = batch;
    shipment->delivery = delivery;
    shipment->timer.on_timer = on_retry;
    return shipment;
}

static uint64_t weight_of(const struct delivery *delivery, struct batch *batch)
{
    return batches_bytes(delivery->queue) ? batch_size(batch) : batch->items;
}

/* One batch, or its parts when it is above max_size. */
static struct batch *cut_to_size(const struct delivery *delivery, struct batch *batch)
{
    uint64_t limit = delivery->queue->batch.max_size;
    if (!delivery->queue->batch.enabled || limit == 0)
        return batch;
    uint64_t weight = weight_of(delivery, batch);
    if (weight <= limit || batch->items < 2)
        return batch;
    uint64_t items = batches_bytes(delivery->queue) ? batch->items * limit / weight : limit;
    return batch_cut(batch, items > 0 ? (uint32_t)items : 1);
}

/* Room is reserved. Settling may bring the next batch in, from within. */
static void enqueue(struct delivery *delivery, struct batch *batch, uint64_t queued_size)
{
    uint64_t now = worker_now(delivery->node->worker);
    struct batch *part = cut_to_size(delivery, batch);
    while (part) {
        struct batch *next = part->next;
        part->next = NULL;
        struct shipment *shipment = new_shipment(delivery, part);
        shipment->queued_size = queued_size; /* of all parts, with the first */
        queued_size = 0;
        shipment->arrived_ns = now;
        shipment->weight = delivery->queue->batch.enabled ? weight_of(delivery, part) : 0;
        delivery->waiting_weight += shipment->weight;
        append(&delivery->waiting, shipment);
        if (!delivery->queue->wait_for_result)
            batch_settle(part, &verdict_ok);
        part = next;
    }
}

static void unblock(struct delivery *delivery)
{
    while (delivery->blocked.first) {
        uint64_t size = size_of(delivery, delivery->blocked.first->batch);
        if (!reserve(delivery->shared, size)) {
            worker_set_timer(delivery->node->worker, &delivery->unblock, UNBLOCK_NS);
            return;
        }
        struct shipment *shipment = pop(&delivery->blocked);
        struct batch *batch = shipment->batch;
        free(shipment);
        enqueue(delivery, batch, size);
    }
}

static struct shipment *take_first(struct delivery *delivery)
{
    struct shipment *shipment = pop(&delivery->waiting);
    delivery->waiting_weight -= shipment->weight;
    return shipment;
}

static void keep_receipt(struct shipment *shipment, struct batch *batch)
{
    if (!batch->receipt)
        return;
    shipment->receipts =
        memory_grow(shipment->receipts, shipment->receipt_count + 1, sizeof(struct receipt *));
    shipment->receipts[shipment->receipt_count++] = batch->receipt;
    batch->receipt = NULL;
}

static const char *sent_by(const struct delivery *delivery, const struct shipment *shipment)
{
    const struct context *context = shipment->batch->context;
    const char *value =
        delivery->sent_by && context ? context_get(context, delivery->sent_by) : NULL;
    return value ? value : "";
}

static bool fits(const struct delivery *delivery, const struct shipment *leader)
{
    uint64_t limit = delivery->queue->batch.max_size;
    const struct shipment *next = delivery->waiting.first;
    return next && leader->weight < delivery->queue->batch.min_size &&
           (limit == 0 || leader->weight + next->weight <= limit) &&
           strcmp(sent_by(delivery, leader), sent_by(delivery, next)) == 0;
}

/* The first ones as one, until there are enough. */
static struct shipment *take_group(struct delivery *delivery)
{
    struct shipment *leader = take_first(delivery);
    struct batch *last = leader->batch;
    while (delivery->queue->batch.enabled && fits(delivery, leader)) {
        struct shipment *other = take_first(delivery);
        keep_receipt(leader, leader->batch);
        keep_receipt(leader, other->batch);
        leader->queued_size += other->queued_size;
        leader->weight += other->weight;
        last->next = other->batch;
        last = other->batch;
        free(other);
    }
    leader->batch = batch_join(leader->batch);
    return leader;
}

static bool is_due(const struct delivery *delivery)
{
    const struct queue_batch_settings *batch = &delivery->queue->batch;
    if (!batch->enabled || delivery->draining || delivery->waiting_weight >= batch->min_size)
        return true;
    return delivery->waiting.first->arrived_ns + (uint64_t)batch->flush_timeout <=
           delivery->node->worker->now_ns;
}

static void pump(struct delivery *delivery)
{
    unblock(delivery);
    while (delivery->waiting.first && delivery->active_count < delivery->consumers) {
        if (!is_due(delivery)) {
            uint64_t due = delivery->waiting.first->arrived_ns +
                           (uint64_t)delivery->queue->batch.flush_timeout;
            worker_set_timer(delivery->node->worker, &delivery->flush,
                             due - delivery->node->worker->now_ns);
            return;
        }
        activate(take_group(delivery));
    }
}

static void on_flush(struct timer *timer)
{
    pump(container_of(timer, struct delivery, flush));
}

static void on_unblock(struct timer *timer)
{
    pump(container_of(timer, struct delivery, unblock));
}

static void refuse(struct delivery *delivery, struct batch *batch, const struct verdict *verdict)
{
    count(delivery, delivery->shared->enqueue_failed, batch->items);
    log_error(label_of(delivery),
              "Exporting failed. Rejecting data. (error: %s, rejected_items: %u)", verdict->text,
              (unsigned)batch->items);
    batch_drop(batch, verdict);
}

void delivery_consume(struct delivery *delivery, struct batch *batch)
{
    if (delivery->stopped) { /* offered again by a holder while its receipts are settled */
        struct verdict verdict = verdict_of(GRPC_UNAVAILABLE, "shutting down");
        refuse(delivery, batch, &verdict);
        return;
    }
    if (!delivery->queue->enabled) {
        activate(new_shipment(delivery, batch));
        return;
    }
    uint64_t size = size_of(delivery, batch);
    if (size > delivery->shared->capacity) {
        /* It would never fit: sending it again cannot help. */
        struct verdict verdict = verdict_of(GRPC_RESOURCE_EXHAUSTED, "element size too large");
        refuse(delivery, batch, &verdict);
        return;
    }
    bool reserved = !delivery->blocked.first && reserve(delivery->shared, size);
    if (!reserved && !delivery->queue->block_on_overflow) {
        struct verdict verdict =
            verdict_try_later(GRPC_UNAVAILABLE, QUEUE_FULL_NS, "sending queue is full");
        refuse(delivery, batch, &verdict);
        return;
    }
    if (reserved)
        enqueue(delivery, batch, size);
    else
        append(&delivery->blocked, new_shipment(delivery, batch));
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
    delivery->unblock.on_timer = on_unblock;
    delivery->flush.on_timer = on_flush;
}

void delivery_drain(struct delivery *delivery)
{
    delivery->draining = true;
    for (struct shipment *s = delivery->active.first; s; s = s->next)
        if (timer_is_set(&s->timer))
            worker_set_timer(delivery->node->worker, &s->timer, 0);
    pump(delivery);
    check_drained(delivery);
}

static uint64_t drop_all(struct delivery *delivery, struct shipment_list *list)
{
    struct verdict verdict = verdict_of(GRPC_UNAVAILABLE, "interrupted due to shutdown");
    uint64_t items = 0;
    while (list->first) {
        struct shipment *shipment = pop(list);
        worker_cancel_timer(delivery->node->worker, &shipment->timer);
        if (shipment->attempting) {
            gauge_add(delivery->shared->in_flight, -1);
            delivery->abort(delivery->node, shipment);
        }
        items += shipment->batch->items;
        let_go(shipment, &verdict);
    }
    return items;
}

void delivery_stop(struct delivery *delivery)
{
    delivery->stopped = true;
    worker_cancel_timer(delivery->node->worker, &delivery->unblock);
    worker_cancel_timer(delivery->node->worker, &delivery->flush);
    uint64_t items = drop_all(delivery, &delivery->active);
    items += drop_all(delivery, &delivery->waiting);
    items += drop_all(delivery, &delivery->blocked);
    delivery->active_count = 0;
    delivery->waiting_weight = 0;
    if (items == 0)
        return;
    count(delivery, delivery->shared->send_failed, items);
    say_dropped(delivery, "", "interrupted due to shutdown", items);
}

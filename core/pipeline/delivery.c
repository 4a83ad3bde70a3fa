#include "core/pipeline/delivery.h"

#include "core/base/memory.h"
#include "core/data/signals.h"
#include "core/pipeline/delivery_private.h"
#include "core/pipeline/reservation.h"
#include "core/pipeline/size_histogram.h"

#include <assert.h>
#include <stdio.h>

#define QUEUE_FULL_NS INT64_C(500000000) /* retry delay for a refused client */

/* ---- the part that all workers share ---- */

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
    return (double)share_used(shared->queue.held);
}

static double read_held_limit(void *context)
{
    const struct delivery_shared *shared = context;
    return (double)share_limit(shared->queue.held);
}

static struct counter *make_counter(struct delivery_shared *shared, enum signal signal,
                                    const char *what, const char *help, const char *labels)
{
    char name[80], full_help[120];
    snprintf(name, sizeof(name), "otelcol_exporter_%s_%s", what, signal_item_name(signal));
    snprintf(full_help, sizeof(full_help), "Number of %s %s.", signal_traits(signal)->items, help);
    return metrics_counter(shared->metrics, name, full_help, labels);
}

void delivery_shared_limit(struct delivery_shared *shared)
{
    shared->queue.waiting.limit_bytes = shared->queue.held->own.limit_bytes / 2;
    shared->encoding.limit_bytes = shared->queue.held->own.limit_bytes;
}

static struct counter *failed_counter(struct delivery_shared *shared, const char *labels)
{
    return make_counter(shared, shared->signal, "send_failed",
                        "in failed attempts to send to destination", labels);
}

/* Metrics of the level `detailed`. */
static void make_detailed(struct delivery_shared *shared, const char *by_exporter,
                          const char *by_server, bool is_queued)
{
    shared->failed_labels = memory_strdup(by_server);
    if (!is_queued)
        return;
    shared->send_size =
        size_histogram_items(shared->metrics, "otelcol_exporter_queue_batch_send_size",
                             "Number of units in the batch.", by_exporter);
    shared->send_bytes =
        size_histogram_bytes(shared->metrics, "otelcol_exporter_queue_batch_send_size_bytes",
                             "Number of bytes in batch that was sent.", by_exporter);
}

void delivery_shared_init(struct delivery_shared *shared, struct component *component,
                          enum signal signal, const struct sending_queue_settings *queue,
                          const char *extra_labels)
{
    struct text by_exporter = {0}, by_server = {0}, by_type = {0};
    assert(!shared->metrics); /* initialised once for all workers */
    shared->metrics = component->process->metrics;
    shared->signal = signal;
    status_source_add(&shared->backend, &component->status, signal);
    shared->queue.capacity = queue->queue_size;
    shared->queue.sizer = queue->enabled ? (enum queue_sizer)queue->sizer : QUEUE_SIZER_NONE;
    shared->queue.blocks = queue->enabled && queue->block_on_overflow;
    shared->queue.held = &component->held[signal];
    delivery_shared_limit(shared);
    metrics_label(&by_exporter, "exporter", component->id);
    text_append(&by_server, text_string(&by_exporter));
    text_printf(&by_server, "%s%s", extra_labels[0] ? "," : "", extra_labels);
    text_append(&by_type, text_string(&by_exporter));
    metrics_label(&by_type, "data_type", signal_name(signal));
    const char *type_labels = text_string(&by_type);

    shared->sent = make_counter(shared, signal, "sent", "successfully sent to destination",
                                text_string(&by_server));
    if (metrics_are_detailed(shared->metrics))
        make_detailed(shared, text_string(&by_exporter), text_string(&by_server), queue->enabled);
    else
        shared->send_failed = failed_counter(shared, text_string(&by_server));
    shared->queue.enqueue_failed =
        make_counter(shared, signal, "enqueue_failed", "failed to be added to the sending queue",
                     text_string(&by_exporter));
    shared->in_flight = metrics_gauge(shared->metrics, "otelcol_exporter_in_flight_requests",
                                      "Number of requests currently being sent.", type_labels);
    if (queue->enabled) {
        metrics_gauge_sum_from(shared->metrics, "otelcol_exporter_queue_size",
                               "Current size of the retry queue, in the unit of its sizer.",
                               type_labels, read_queued, shared);
        metrics_gauge_from(shared->metrics, "otelcol_exporter_queue_capacity",
                           "Fixed capacity of the retry queue, in the unit of its sizer.",
                           type_labels, read_capacity, shared);
    }
    metrics_gauge_sum_from(
        shared->metrics, "profcol_exporter_held_bytes",
        "Memory of requests that are queued, being sent or kept for the next attempt.", type_labels,
        read_held, shared);
    metrics_gauge_from(
        shared->metrics, "profcol_exporter_held_bytes_limit",
        "The memory that they may take now: the exporter's share, and what it can borrow.",
        type_labels, read_held_limit, shared);
    text_deinit(&by_exporter);
    text_deinit(&by_server);
    text_deinit(&by_type);
}

void delivery_shared_deinit(struct delivery_shared *shared)
{
    if (shared->metrics)
        metrics_forget(shared->metrics, shared);
    status_source_remove(&shared->backend);
    free(shared->failed_labels);
    shared->failed_labels = NULL;
    shared->metrics = NULL;
}

/* ---- counting and logging ---- */

void delivery_count(struct delivery *delivery, struct counter *counter, uint64_t items)
{
    counter_add(counter, delivery->node->worker->index, items);
}

/* Each kind of failure has a series of its own if metrics are detailed. Failures are rare enough to
 * look it up each time. */
void delivery_count_failed(struct delivery *delivery, const char *error_type, bool is_permanent,
                           uint64_t items)
{
    struct delivery_shared *shared = delivery->shared;
    struct counter *counter = shared->send_failed;
    if (!counter) {
        struct text labels = {0};
        text_append(&labels, shared->failed_labels);
        metrics_label(&labels, "error_type", error_type);
        metrics_label(&labels, "error_permanent", is_permanent ? "true" : "false");
        counter = failed_counter(shared, text_string(&labels));
        text_deinit(&labels);
    }
    delivery_count(delivery, counter, items);
}

static void log_dropped(const struct delivery *delivery, const char *error, uint64_t items)
{
    log_error(delivery->node->origin, "Exporting failed. Dropping data.", LOG_TEXT("error", error),
              LOG_U64("dropped_items", items));
}

static void log_rejected(const struct delivery *delivery, const char *error, uint64_t items)
{
    if (delivery->queue->enabled)
        log_error(delivery->node->origin, "Exporting failed. Rejecting data.",
                  LOG_TEXT("error", error), LOG_U64("rejected_items", items));
    else
        log_error(delivery->node->origin,
                  "Exporting failed. Rejecting data. Try enabling sending_queue to survive "
                  "temporary failures.",
                  LOG_TEXT("error", error), LOG_U64("rejected_items", items));
}

void delivery_log_failed(struct delivery *delivery, bool acknowledged, const char *error,
                         uint64_t items)
{
    uint64_t now = delivery->node->worker->now_ns;
    struct log_interval *interval = acknowledged ? &delivery->drops : &delivery->failures;
    snprintf(delivery->last_error, sizeof delivery->last_error, "%s", error);
    uint64_t count = log_interval_add(interval, items, now);
    if (count > 0 && acknowledged)
        log_dropped(delivery, error, count);
    else if (count > 0)
        log_rejected(delivery, error, count);
}

/* The items that the last interval has not logged. */
static void log_rest(struct delivery *delivery)
{
    const char *error = delivery->last_error;
    if (delivery->drops.unlogged > 0)
        log_dropped(delivery, error, delivery->drops.unlogged);
    if (delivery->failures.unlogged > 0)
        log_rejected(delivery, error, delivery->failures.unlogged);
    if (delivery->rejections.unlogged > 0)
        log_rejected(delivery, error, delivery->rejections.unlogged);
}

/* ---- a full queue ---- */

/* If there are several branches, the outlet logs it. */
static void log_overflow(struct delivery *delivery, const char *error, uint64_t items)
{
    uint64_t now = delivery->node->worker->now_ns;
    uint64_t rejected = log_interval_add(&delivery->rejections, items, now);
    snprintf(delivery->last_error, sizeof delivery->last_error, "%s", error);
    if (rejected > 0)
        log_rejected(delivery, error, rejected);
}

static void refuse(struct delivery *delivery, struct batch *batch, const struct verdict *verdict)
{
    uint32_t items = batch->items;
    bool is_alone = !batch->branch || batch->branch->outlet->count == 1;
    enum refusal refusal = delivery->shared->queue.blocks ? REFUSED_BLOCKED : REFUSED_FULL;
    if (node_refuse(delivery->node, batch, refusal, verdict))
        return;
    delivery_count(delivery, delivery->shared->queue.enqueue_failed, items);
    if (is_alone)
        log_overflow(delivery, verdict->text, items);
}

/* As the Collector does: each request that the queue is offered, also if it refuses it. */
static void record_size(struct delivery *delivery, struct batch *batch)
{
    struct delivery_shared *shared = delivery->shared;
    unsigned worker = delivery->node->worker->index;
    if (!shared->send_size)
        return;
    histogram_record(shared->send_size, worker, batch->items);
    histogram_record(shared->send_bytes, worker, (double)batch_size(batch));
}

void delivery_consume(struct delivery *delivery, struct batch *batch)
{
    struct room room;
    assert(!delivery->stopped);
    record_size(delivery, batch);
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
        delivery_enqueue(delivery, batch, &room);
    else
        delivery_activate(delivery_shipment_new(delivery, batch, &room));
    delivery_pump(delivery);
}

/* ---- start and stop ---- */

void delivery_start(struct delivery *delivery)
{
    assert(delivery->send && delivery->abort && delivery->queue && delivery->retry);
    const struct process *process = delivery->node->component->process;
    uint64_t all = delivery->queue->num_consumers;
    uint64_t share = all / process->worker_count;
    if (delivery->node->worker->index < all % process->worker_count)
        share++;
    delivery->consumers = share == 0 ? 1 : (unsigned)share;
    delivery->flush.on_timer = delivery_on_flush;
    delivery->node->delivery = delivery;
    delivery->node->queue = &delivery->shared->queue;
}

void delivery_drain(struct delivery *delivery)
{
    delivery->draining = true;
    for (struct list_link *link = delivery->active.first; link; link = link->next)
        if (timer_is_set(&shipment_of(link)->timer))
            worker_set_timer(delivery->node->worker, &shipment_of(link)->timer, 0);
    delivery_pump(delivery);
}

bool delivery_is_idle(const struct node *node)
{
    return !node->delivery->waiting.first && !node->delivery->active.first;
}

/* Gives up all requests of the list. Returns the number of items that the queue had
 * acknowledged. */
static uint64_t give_up(struct delivery *delivery, struct list *list)
{
    struct verdict verdict = verdict_of(GRPC_UNAVAILABLE, "interrupted due to shutdown");
    uint64_t lost = 0;
    while (list->first) {
        struct shipment *shipment = shipment_of(list_pop(list));
        delivery_end_cutting(shipment);
        worker_cancel_timer(delivery->node->worker, &shipment->timer);
        if (shipment->attempting) {
            gauge_add(delivery->shared->in_flight, -1);
            delivery->abort(delivery->node, shipment);
        }
        struct batch *batch = delivery_shipment_release(shipment);
        uint32_t items = batch->items;
        lost += batch->receipt ? 0 : items;
        if (!node_refuse(delivery->node, batch, REFUSED_FAILED, &verdict))
            delivery_count_failed(delivery, "Shutdown", false, items);
    }
    return lost;
}

void delivery_stop(struct delivery *delivery)
{
    assert(!delivery->stopped);
    worker_cancel_timer(delivery->node->worker, &delivery->flush);
    uint64_t lost = give_up(delivery, &delivery->active) + give_up(delivery, &delivery->waiting);
    delivery->stopped = true;
    delivery->waiting_weight = 0;
    log_rest(delivery);
    if (lost == 0)
        return;
    atomic_fetch_add(&delivery->node->component->process->lost_items, lost);
    log_dropped(delivery, "interrupted due to shutdown", lost);
}

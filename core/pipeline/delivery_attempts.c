#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/pipeline/delivery_private.h"

#include <assert.h>
#include <stdio.h>

#define BACKOFF_MIN_NS INT64_C(10000000)
#define BACKOFF_DRAINING_NS INT64_C(1000000000)
#define ENCODING_WAIT_NS UINT64_C(5000000) /* retry interval for room to encode */

/* ---- room to encode ---- */

/* Puts a request that found no room first in line (`wanted`), so that small requests cannot keep
 * a large one waiting, or takes it out of line. */
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

/* Reserves memory for the attempt that begins now. Returns false if there is no room. */
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

/* Lets waiting requests of this worker try again at once. Those of other workers try again when
 * their timers expire. */
static void wake_who_waits(struct delivery *delivery)
{
    for (struct list_link *link = delivery->active.first; link; link = link->next)
        if (shipment_of(link)->waits_to_encode)
            worker_set_timer(delivery->node->worker, &shipment_of(link)->timer, 0);
}

/* Returns the room of a finished attempt, and gives up the place in line of a waiting one. */
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

/* ---- the end of a request ---- */

struct batch *delivery_shipment_release(struct shipment *shipment)
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
    return delivery_shipment_release(shipment);
}

static void finish(struct shipment *shipment, const struct verdict *verdict)
{
    struct delivery *delivery = shipment->delivery;
    batch_drop(take_active(shipment), verdict);
    delivery_pump(delivery);
}

/* A branch that keeps the batch offers it again. */
static void log_kept(const struct delivery *delivery, const char *error, bool is_first)
{
    if (is_first)
        log_warn(delivery->node->origin, "Exporting failed. Will try again.",
                 LOG_TEXT("error", error));
    else
        log_debug(delivery->node->origin, "Exporting failed again. Will try again.",
                  LOG_TEXT("error", error));
}

/* is_first: the backend worked before. */
static void fail(struct shipment *shipment, const char *why, const struct verdict *verdict,
                 bool is_first)
{
    struct delivery *delivery = shipment->delivery;
    struct batch *batch = take_active(shipment);
    uint32_t items = batch->items;
    bool acknowledged = !batch->receipt; /* by the queue */
    char error[VERDICT_ERROR_MAX], text[DELIVERY_ERROR_MAX];
    delivery_count_failed(delivery, verdict_error_type(verdict), !verdict_is_retryable(verdict),
                          items);
    snprintf(text, sizeof text, "%s%s", why, verdict_print(verdict, error));
    if (node_refuse(delivery->node, batch, REFUSED_FAILED, verdict))
        log_kept(delivery, text, is_first);
    else
        delivery_log_failed(delivery, acknowledged, text, items);
    delivery_pump(delivery);
}

/* ---- attempts ---- */

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
    if (shipment_is_abandoned(shipment))
        finish(shipment, &verdict_sender_is_gone);
    else
        attempt(shipment);
}

struct shipment *delivery_shipment_new(struct delivery *delivery, struct batch *batch,
                                       const struct room *room)
{
    struct shipment *shipment = memory_zalloc(sizeof(*shipment));
    shipment->batch = batch;
    shipment->delivery = delivery;
    shipment->room = *room;
    shipment->timer.on_timer = on_retry;
    return shipment;
}

void delivery_activate(struct shipment *shipment)
{
    struct delivery *delivery = shipment->delivery;
    list_append(&delivery->active, &shipment->link);
    attempt(shipment);
}

/* ---- retries ---- */

static double random_unit(const struct delivery *delivery)
{
    uint64_t bits = delivery->random ? delivery->random() : random_u64();
    return (double)(bits >> 11) / (double)(UINT64_C(1) << 53);
}

/* Returns the next pause in nanoseconds: exponential, with jitter. */
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

/* A backend that went away gets one line, not each attempt. */
static void log_retry(const struct delivery *delivery, const struct verdict *verdict, int64_t delay,
                      const struct status_outage *outage)
{
    char error[VERDICT_ERROR_MAX];
    if (outage->change == STATUS_WENT_AWAY)
        log_warn(delivery->node->origin, "Exporting failed. Will retry the request after interval.",
                 LOG_TEXT("error", verdict_print(verdict, error)), LOG_DURATION("interval", delay));
    else
        log_debug(delivery->node->origin,
                  "Exporting failed again. Will retry the request after interval.",
                  LOG_TEXT("error", verdict_print(verdict, error)), LOG_DURATION("interval", delay),
                  LOG_U64("failed_attempts", outage->failures));
}

static void retry_later(struct shipment *shipment, const struct verdict *verdict,
                        const struct status_outage *outage)
{
    struct delivery *delivery = shipment->delivery;
    struct worker *worker = delivery->node->worker;
    int64_t delay = retry_delay(shipment, verdict);
    uint64_t next = worker_now(worker) + (uint64_t)delay;
    int64_t limit = delivery->retry->max_elapsed_time;
    if (limit > 0 && next > shipment->first_attempt_ns + (uint64_t)limit) {
        fail(shipment, "no more retries left: ", verdict, outage->change == STATUS_WENT_AWAY);
        return;
    }
    if (shipment->encoding_bytes > 0) {
        delivery->drop_encoded(shipment);
        release_encoding(shipment);
    }
    log_retry(delivery, verdict, delay, outage);
    if (!delivery_pass_on(shipment))
        worker_set_timer(worker, &shipment->timer, (uint64_t)delay);
}

static void log_back(const struct delivery *delivery, const struct status_outage *outage)
{
    log_info(delivery->node->origin, "Exporting works again.",
             LOG_U64("failed_attempts", outage->failures),
             LOG_DURATION("after", outage->duration_ns));
}

void delivery_done(struct shipment *shipment, const struct verdict *verdict)
{
    struct delivery *delivery = shipment->delivery;
    assert(shipment->attempting);
    shipment->attempting = false;
    gauge_add(delivery->shared->in_flight, -1);
    struct status_outage outage = status_source_settle(&delivery->shared->backend, verdict);
    bool is_first = outage.change == STATUS_WENT_AWAY;
    if (outage.change == STATUS_CAME_BACK)
        log_back(delivery, &outage);
    if (verdict_is_ok(verdict)) {
        delivery_count(delivery, delivery->shared->sent, shipment->batch->items);
        finish(shipment, verdict);
    } else if (!verdict_is_retryable(verdict)) {
        fail(shipment, "not retryable error: Permanent error: ", verdict, is_first);
    } else if (!delivery->retry->enabled) {
        fail(shipment, "", verdict, is_first);
    } else {
        retry_later(shipment, verdict, &outage);
    }
}

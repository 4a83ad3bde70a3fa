/*
 * delivery: sending_queue, retry_on_failure and timeout for any exporter that talks to a backend.
 *
 * An exporter embeds `struct delivery` in its node, puts the three settings blocks into its table and implements `send`; the rest (queue bounds over all
 * workers, consumers, back-off, receipts, metrics, drain) is here. Like the Collector's exporterhelper, see docs/architecture.md "Acknowledgement".
 * Owner: the exporter's node. Thread: the node's worker; the bounds are atomics in struct delivery_shared, one per component and signal.
 */
#ifndef PROFCOL_CORE_PIPELINE_DELIVERY_H
#define PROFCOL_CORE_PIPELINE_DELIVERY_H

#include "core/pipeline/component.h"

/* exporters::X::sending_queue */
struct sending_queue_settings {
    bool enabled;
    uint64_t num_consumers;
    uint64_t queue_size;
    int sizer; /* requests, items, bytes */
    bool wait_for_result;
    bool block_on_overflow;
};
extern const struct field sending_queue_fields[];

/* exporters::X::retry_on_failure */
struct retry_settings {
    bool enabled;
    int64_t initial_interval;
    double randomization_factor;
    double multiplier;
    int64_t max_interval;
    int64_t max_elapsed_time;
};
extern const struct field retry_fields[];
void sending_queue_check(const struct sending_queue_settings *queue, struct config_check *check, const char *key);
void retry_check(const struct retry_settings *retry, struct config_check *check, const char *key);

struct delivery_shared {
    _Atomic uint64_t queued; /* in the sizer's unit, over all workers */
    struct counter *sent;
    struct counter *send_failed;
    struct counter *enqueue_failed;
};

/* One batch on its way out; owned by the delivery, passed to send. */
struct shipment {
    struct batch *batch;
    struct delivery *delivery;
    uint64_t first_attempt_ns;
    int64_t backoff_ns;
    struct timer timer;
    struct shipment *next;
    uint64_t queued_size;
    void *exporter_data; /* for `send` */
};

struct delivery {
    struct node *node;
    const struct sending_queue_settings *queue;
    const struct retry_settings *retry;
    struct delivery_shared *shared;
    /* One attempt. Calls delivery_done exactly once, later, never from within. */
    void (*send)(struct node *node, struct shipment *shipment);
    /* Ends an attempt that is under way, without delivery_done (drain deadline is over). */
    void (*abort)(struct node *node, struct shipment *shipment);
    struct shipment *waiting; /* queue, oldest first */
    struct shipment *waiting_last;
    struct shipment *active;  /* being sent, or waiting for their next attempt */
    unsigned active_count;
    unsigned consumers;       /* this worker's share of num_consumers */
};

void delivery_shared_init(struct delivery_shared *shared, struct component *component, enum signal signal,
                          const struct sending_queue_settings *queue);
void delivery_start(struct delivery *delivery);
/* The exporter's `consume`. */
void delivery_consume(struct delivery *delivery, struct batch *batch);
void delivery_done(struct shipment *shipment, const struct verdict *verdict);
/* The exporter's node_drain / node_stop. */
void delivery_drain(struct delivery *delivery);
void delivery_stop(struct delivery *delivery);

#endif

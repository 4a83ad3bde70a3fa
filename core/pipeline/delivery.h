/*
 * delivery: sending_queue, retry_on_failure and timeout for any exporter that talks to a backend.
 *
 * An exporter embeds `struct delivery` in its node, puts the three settings blocks into its table
 * and implements `send`; the rest (limits of the queue over all workers, consumers, back-off,
 * receipts, metrics, drain) is here. delivery_queue.c has what waits, delivery_attempts.c what is
 * being sent. Like the Collector's exporterhelper, see docs/architecture.md. With a
 * queue, the receipt is settled when the queue has the batch (wait_for_result: when the backend has
 * it); without one, when the backend has it, after retries if necessary. queue_size and, in bytes,
 * component->held limit the data that is queued or being sent; a single request may exceed
 * component->held if no other is queued or being sent. The data that attempts encode is limited
 * separately, to half as much or a single request: other attempts wait, and a request that would
 * encode to more is split. A batch that finds no room, or could not be delivered and has an open
 * receipt, goes back by node_refuse.
 *
 * A large request that has to be split is split beside the loop (core/base/job.h) and keeps its
 * place in the queue: later requests wait behind it.
 *
 * Owner: the exporter's node.
 *
 * Thread: the node's worker; the bounds are atomics in struct delivery_shared, one per component
 * and signal.
 */
#ifndef PROFCOL_CORE_PIPELINE_DELIVERY_H
#define PROFCOL_CORE_PIPELINE_DELIVERY_H

#include "core/base/list.h"
#include "core/base/log.h"
#include "core/pipeline/component.h"
#include "core/pipeline/delivery_settings.h"
#include "core/pipeline/queue.h"

/* The part of a component and signal that all workers share. */
struct delivery_shared {
    struct queue queue;
    struct budget encoding; /* what attempts make of their batches and need while they last */
    _Atomic(const struct shipment *) encoding_next; /* waits for room in it before all others */
    struct metrics *metrics;
    struct counter *sent;
    struct counter *send_failed;
    struct gauge *in_flight;
};

/* extra_labels: `server_address="x",server_port="1"`, or "". In the component's init and deinit. */
void delivery_shared_init(struct delivery_shared *shared, struct component *component,
                          enum signal signal, const struct sending_queue_settings *queue,
                          const char *extra_labels);
/* Of one that was never initialised: nothing. */
void delivery_shared_deinit(struct delivery_shared *shared);

/* One batch on its way out; owned by the delivery, passed to send. */
struct shipment {
    struct batch *batch;
    struct delivery *delivery;
    void *exporter_data; /* for `send`; kept from attempt to attempt, see `release` */
    /* the delivery's */
    struct room room;          /* in the queue */
    size_t encoding_bytes;     /* reserved for this attempt */
    bool waits_to_encode;      /* with its timer set */
    uint64_t weight;           /* in the unit of sending_queue.batch */
    uint64_t arrived_ns;       /* in the queue */
    uint64_t first_attempt_ns; /* 0: none yet */
    int64_t backoff_ns;        /* of the next failure */
    bool attempting;
    bool is_full; /* split off by max_size: not merged with the next one */
    struct timer timer;
    struct list_link link;   /* of waiting or active */
    struct cutting *cutting; /* beside the loop, while it waits; NULL: it is as it will be sent */
};

/* Requests of so many bytes are cut beside the loop. */
#define DELIVERY_LARGE_BYTES ((size_t)1024 * 1024)

struct delivery {
    /* set by the exporter before delivery_start */
    struct node *node;
    const struct sending_queue_settings *queue;
    const struct retry_settings *retry;
    struct delivery_shared *shared;
    /* One attempt. Calls delivery_done exactly once, later, never from within. */
    void (*send)(struct node *node, struct shipment *shipment);
    /* Ends an attempt that is under way, without delivery_done (drain deadline is over). */
    void (*abort)(struct node *node, struct shipment *shipment);
    /* The last call for a shipment that has exporter_data: frees it. May be NULL. */
    void (*release)(struct node *node, struct shipment *shipment);
    /* Memory beside the batch's that an attempt takes, about; 0: not worth counting. NULL: 0 for
     * all. Where there is some, `drop_encoded` gives it back between two attempts. */
    size_t (*encoded_size)(const struct delivery *delivery, const struct batch *batch);
    void (*drop_encoded)(struct shipment *shipment);
    /* A header that requests are sent by (`context`): sending_queue.batch joins only those where it
     * is equal. NULL: all. */
    const char *sent_by;
    struct component *auth;   /* the extension that sets headers of requests; NULL: none. Only those
                                 with equal headers are joined */
    uint64_t (*random)(void); /* NULL: random_u64 */
    /* the delivery's */
    struct list waiting; /* queue, oldest first */
    struct list active;  /* being sent, or waiting for their next attempt */
    unsigned consumers;  /* this worker's share of num_consumers */
    uint64_t waiting_weight;
    struct timer flush; /* of sending_queue.batch */
    struct log_interval rejections;
    struct log_interval too_large; /* requests above max_size */
    bool draining;
    bool stopped;
};

/* In the exporter's node_start. */
void delivery_start(struct delivery *delivery);
/* The exporter's `consume`. */
void delivery_consume(struct delivery *delivery, struct batch *batch);
/* Reports the result of an attempt. If the verdict is retryable and has retry_after_ns, there is no
 * retry before that time (at most 5 minutes). The verdict belongs to the caller and must not be
 * part of exporter_data: it is read after `release`. */
void delivery_done(struct shipment *shipment, const struct verdict *verdict);
/* The exporter's node_drain: sends at once all requests that wait for their next attempt. */
void delivery_drain(struct delivery *delivery);
/* The exporter's is_idle, where node->delivery is set. */
bool delivery_is_idle(const struct node *node);
/* Call it in the exporter's node_stop, before closing anything that `abort` needs. Remaining
 * batches go back; those that the queue has acknowledged are counted, logged and dropped. */
void delivery_stop(struct delivery *delivery);

#endif

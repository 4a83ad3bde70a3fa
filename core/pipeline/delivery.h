/*
 * delivery: sending_queue, retry_on_failure and timeout for any exporter that talks to a backend.
 *
 * An exporter embeds `struct delivery` in its node, puts the three settings blocks into its table
 * and implements `send`; the rest (limits of the queue over all workers, consumers, back-off,
 * receipts, metrics, drain) is here. delivery_queue.c handles waiting requests, delivery_attempts.c
 * those that are being sent. It follows the Collector's exporterhelper; see docs/architecture.md.
 * With a queue, the receipt is settled when the queue has the batch. Without a queue, and with
 * wait_for_result, it is settled when the backend has the batch, after retries if necessary.
 * queue_size and, in bytes, component->held limit the data that is queued or being sent; a single
 * request may exceed component->held if no other is queued or being sent. The encoded data of all
 * attempts is limited separately, to as much as a share or a single request: other attempts wait,
 * and a request whose encoding would exceed the limit is split. If there is no room for a
 * batch, or if it could not be delivered and has an open receipt, the delivery hands it back with
 * node_refuse.
 *
 * A job (core/base/job.h) splits a large request, which keeps its place in the queue: later
 * requests wait behind it.
 *
 * Owner: the exporter's node.
 *
 * Thread: the node's worker; the limits are atomics in struct delivery_shared, of which there is
 * one per component and signal.
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
    struct budget encoding;                         /* encoded data of the current attempts */
    _Atomic(const struct shipment *) encoding_next; /* first in line for room in `encoding` */
    struct metrics *metrics;
    enum signal signal;
    struct counter *sent;
    struct counter *send_failed; /* NULL if metrics are detailed */
    char *failed_labels;         /* then: without those of the error */
    struct histogram *send_size; /* NULL unless metrics are detailed; of exporters with a queue */
    struct histogram *send_bytes;
    struct gauge *in_flight;
    struct status_source backend; /* whether it takes data */
};

/* extra_labels: `server_address="x",server_port="1"`, or "". Call these two in the component's
 * init and deinit. */
void delivery_shared_init(struct delivery_shared *shared, struct component *component,
                          enum signal signal, const struct sending_queue_settings *queue,
                          const char *extra_labels);
/* Sets its limits after component->held got another one, while no worker runs. */
void delivery_shared_limit(struct delivery_shared *shared);
/* Does nothing if it was never initialised. */
void delivery_shared_deinit(struct delivery_shared *shared);

/* A verdict as text, and why it ended the attempts. */
enum { DELIVERY_ERROR_MAX = VERDICT_ERROR_MAX + 64 };

/* A batch that is queued or being sent. The delivery owns it and passes it to `send`. */
struct shipment {
    struct batch *batch;
    struct delivery *delivery;
    void *exporter_data; /* set by `send`, kept between attempts, freed by `release` */
    /* private to the delivery: */
    struct room room;          /* in the queue */
    size_t encoding_bytes;     /* reserved for this attempt */
    bool waits_to_encode;      /* `timer` is set meanwhile */
    uint64_t weight;           /* in the unit of sending_queue.batch */
    uint64_t arrived_ns;       /* in the queue */
    uint64_t first_attempt_ns; /* 0: none yet */
    int64_t backoff_ns;        /* pause after the next failure */
    bool attempting;
    bool is_full; /* split off by max_size: not merged with the next one */
    struct timer timer;
    struct list_link link;   /* of waiting or active */
    struct cutting *cutting; /* the job that splits it; else NULL */
};

/* Requests of this many bytes or more are split by a job. */
#define DELIVERY_LARGE_BYTES ((size_t)1024 * 1024)

struct delivery {
    /* The exporter sets these before delivery_start: */
    struct node *node;
    const struct sending_queue_settings *queue;
    const struct retry_settings *retry;
    struct delivery_shared *shared;
    /* Starts an attempt. The exporter calls delivery_done exactly once, after `send` has
     * returned. */
    void (*send)(struct node *node, struct shipment *shipment);
    /* Ends a running attempt after the drain deadline. The exporter does not call delivery_done
     * for it. */
    void (*abort)(struct node *node, struct shipment *shipment);
    /* Frees exporter_data. It is the last call for a shipment, and is made only if exporter_data
     * is set. May be NULL. */
    void (*release)(struct node *node, struct shipment *shipment);
    /* Returns about how much memory an attempt takes besides the batch's, in bytes; 0 if too
     * little to count. NULL means always 0. `drop_encoded` frees that memory between two
     * attempts; it may be NULL if encoded_size is. */
    size_t (*encoded_size)(const struct delivery *delivery, const struct batch *batch);
    void (*drop_encoded)(struct shipment *shipment);
    /* Name of a header that decides where requests go: sending_queue.batch merges only requests
     * with equal values of it (`context`). NULL: merges all. */
    const char *sent_by;
    struct component *auth;   /* the extension that sets headers of requests; NULL: none. Only those
                                 with equal headers are joined */
    uint64_t (*random)(void); /* NULL: random_u64 */
    /* private to the delivery: */
    struct list waiting; /* queue, oldest first */
    struct list active;  /* being sent, or waiting for their next attempt */
    unsigned consumers;  /* this worker's share of num_consumers */
    uint64_t waiting_weight;
    struct timer flush;             /* of sending_queue.batch */
    struct log_interval rejections; /* by the queue */
    struct log_interval failures;   /* items that the backend refused, and their sender knows it */
    struct log_interval drops;      /* the same, acknowledged */
    struct log_interval too_large;  /* requests above max_size */
    char last_error[DELIVERY_ERROR_MAX]; /* of the first three */
    struct delivery *successor;          /* gets what cannot be sent; NULL: none */
    bool draining;
    bool stopped;
};

/* Call it in the exporter's node_start. */
void delivery_start(struct delivery *delivery);
/* Use it as the exporter's `consume`. */
void delivery_consume(struct delivery *delivery, struct batch *batch);
/* Reports the result of an attempt. If the verdict is retryable and has retry_after_ns, there is no
 * retry before that time (at most 5 minutes). The verdict belongs to the caller and must not be
 * part of exporter_data: it is read after `release`. */
void delivery_done(struct shipment *shipment, const struct verdict *verdict);
/* Call it in the exporter's node_drain. Sends at once all requests that wait for their next
 * attempt. */
void delivery_drain(struct delivery *delivery);
/* Moves requests that are acknowledged, and not being sent just now, to the queue of another
 * delivery of the same worker, as far as it has room, and later those whose attempt fails. Call it,
 * also repeatedly, on a delivery whose exporter a reload has replaced. `to` is stopped after it.
 * Returns the number of requests. */
size_t delivery_hand_over(struct delivery *from, struct delivery *to);
/* Use it as the exporter's is_idle. */
bool delivery_is_idle(const struct node *node);
/* Call it in the exporter's node_stop, before closing anything that `abort` needs. Remaining
 * batches are handed back; those that the queue has acknowledged are counted, logged and
 * dropped. */
void delivery_stop(struct delivery *delivery);

#endif

/*
 * received: what every receiver that listens does with a request of core/net/server.h.
 *
 * Owner: counters belong to the metrics, contexts are counted; a `struct received` lives until its
 * on_settled.
 *
 * Thread: received_counters_init on main, the rest on the exchange's worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_RECEIVED_H
#define PROFCOL_CORE_PIPELINE_RECEIVED_H

#include "core/net/server.h"
#include "core/pipeline/component.h"
#include "core/pipeline/receipt.h"

/* Under the Collector's names, as far as it has them. */
struct received_counters {
    struct counter *accepted; /* items */
    struct counter *refused;
    struct counter *invalid; /* requests whose items nobody could count */
};
/* transport: "grpc", "http". */
void received_counters_init(struct received_counters *counters, const struct component *receiver,
                            const char *transport, enum signal signal);

/* A request on its way to its answer; embedded in a receiver's own. It is the receipt's maker:
 * on_settled answers the exchange. */
struct received {
    struct receipt receipt;
    struct exchange *exchange;
};
/* In on_request. The receipt counts as abandoned once the client has gone or its deadline has
 * passed. */
void received_init(struct received *received, struct exchange *exchange,
                   void (*on_settled)(struct receipt *receipt, const struct verdict *verdict));

/* The request's headers, for include_metadata; one reference. */
struct context *received_metadata(const struct exchange *exchange);

/* Retry-After of an answer, where its status has one and the verdict says when. How many headers
 * that is: 0 or 1; the value is in `seconds`. */
size_t received_retry_after(const struct verdict *verdict, int http_status,
                            struct http_header *header, char seconds[24]);

/* For what finds no room in the process-wide budget. */
extern const struct verdict received_over_budget;

#endif

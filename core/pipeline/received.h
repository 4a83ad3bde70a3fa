/*
 * received: handles requests of core/net/server.h, for all receivers that listen.
 *
 * Owner: counters belong to the metrics; contexts have reference counts; a `struct received` lives
 * until its on_settled.
 *
 * Thread: received_counters_init on main, the rest on the exchange's worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_RECEIVED_H
#define PROFCOL_CORE_PIPELINE_RECEIVED_H

#include "core/net/server.h"
#include "core/pipeline/component.h"
#include "core/pipeline/receipt.h"

/* Counters, under the Collector's names if it has them. */
struct received_counters {
    struct counter *accepted; /* items */
    struct counter *refused;
    struct counter *invalid; /* requests whose items could not be counted */
};
/* Creates the counters. transport: "grpc" or "http". */
void received_counters_init(struct received_counters *counters, const struct component *receiver,
                            const char *transport, enum signal signal);

/* A request without an answer yet, embedded in a receiver's own struct. on_settled of its receipt
 * answers the exchange. */
struct received {
    struct receipt receipt;
    struct exchange *exchange;
};
/* Initialises the receipt; call it in on_request. The receipt is abandoned when the client is gone
 * or its deadline has passed. */
void received_init(struct received *received, struct exchange *exchange,
                   void (*on_settled)(struct receipt *receipt, const struct verdict *verdict));

/* Returns the context of the request: its headers if include_metadata is set, and the identity of
 * an authenticated client. The caller gets one reference. NULL if there is neither. */
struct context *received_context(const struct exchange *exchange, bool include_metadata);

/* Sets *header to the Retry-After of an answer, if its status allows one and the verdict has a
 * delay. Returns the number of headers, 0 or 1. The value is in `seconds`. */
size_t received_retry_after(const struct verdict *verdict, int http_status,
                            struct http_header *header, char seconds[24]);

/* Counts a request that is refused before it has items: invalid ones, and those that found no room.
 * Others were counted when they were refused, or are not counted. */
void received_count_unread(const struct received_counters *counters,
                           const struct exchange *exchange, const struct verdict *why);

#endif

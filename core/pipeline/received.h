/*
 * received: what every receiver that listens does with a request of core/net/server.h.
 *
 * Owner: counters belong to the metrics, contexts are counted.
 *
 * Thread: received_counters_init on main, the rest on the exchange's worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_RECEIVED_H
#define PROFCOL_CORE_PIPELINE_RECEIVED_H

#include "core/net/server.h"
#include "core/pipeline/component.h"

/* Under the Collector's names, as far as it has them. */
struct received_counters {
    struct counter *accepted; /* items */
    struct counter *refused;
    struct counter *invalid; /* requests whose items nobody could count */
};
/* transport: "grpc", "http". */
void received_counters_init(struct received_counters *counters, const struct component *receiver,
                            const char *transport, enum signal signal);

/* The request's headers, for include_metadata; one reference. */
struct context *received_metadata(const struct exchange *exchange);

/* For what finds no room in the process-wide budget. */
extern const struct verdict received_over_budget;

#endif

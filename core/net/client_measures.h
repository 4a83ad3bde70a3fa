/*
 * client_measures: durations and sizes of outgoing requests, under the names of OpenTelemetry's
 * semantic conventions: rpc_client_call_duration, http_client_request_duration and
 * http_client_request_body_size.
 *
 * Every attempt is measured, with the code of its answer or the kind of its failure. The number of
 * series is bounded.
 *
 * Owner: each client has a list of its own; the histograms belong to the registry.
 *
 * Thread: the client's worker.
 */
#ifndef PROFCOL_CORE_NET_CLIENT_MEASURES_H
#define PROFCOL_CORE_NET_CLIENT_MEASURES_H

#include "core/net/client_private.h"

struct client_measure;

/* Counts an exchange that ends with this answer. Does nothing if the client has no metrics. */
void client_measure(const struct client_exchange *exchange, const struct client_answer *answer);
/* Frees a client's list. */
void client_measures_free(struct client_measure *first);

#endif

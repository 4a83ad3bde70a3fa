/*
 * server_measures: durations and sizes of requests, under the names of OpenTelemetry's semantic
 * conventions: rpc_server_call_duration, http_server_request_duration,
 * http_server_request_body_size and http_server_response_body_size.
 *
 * HTTP requests are measured when their head is complete, as by the Collector: also those with a
 * wrong path, credentials or method. Only paths that the handler knows are a label, because clients
 * make up others. The number of series is bounded. Calls of gRPC are measured if the handler knows
 * their method.
 *
 * Owner: each part of a server has a list of its own; the histograms belong to the registry.
 *
 * Thread: the part's worker.
 */
#ifndef PROFCOL_CORE_NET_SERVER_MEASURES_H
#define PROFCOL_CORE_NET_SERVER_MEASURES_H

#include <stddef.h>

struct exchange;
struct server_measure;

/* Counts a request that is about to be answered. code: the gRPC code or the HTTP status. */
void server_measure(struct exchange *exchange, int code, size_t response_bytes);
/* Frees a part's list. */
void server_measures_free(struct server_measure *first);

#endif

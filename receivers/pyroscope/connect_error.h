/*
 * connect_error: a refusal in the words of the Connect protocol.
 *
 * {"code":"invalid_argument","message":"..."}: https://connectrpc.com/docs/protocol, "Error end
 * stream". Pyroscope answers so on all its paths, /ingest included.
 *
 * Owner: nothing is kept.
 *
 * Thread: the exchange's worker.
 */
#ifndef PROFCOL_PYROSCOPE_CONNECT_ERROR_H
#define PROFCOL_PYROSCOPE_CONNECT_ERROR_H

#include "core/base/verdict.h"
#include "core/net/server.h"

/* "invalid_argument" */
const char *connect_code_name(enum grpc_code code);
/* Connect's own table; it has statuses that verdict_http_status does not. */
int connect_http_status(enum grpc_code code);
/* What a client shall understand. Some of these clients judge by the status or the code alone and
 * send again on all of 429 and 5xx, on `internal` and `unknown`: what is refused for good must not
 * look like one of those. */
struct verdict connect_verdict(const struct verdict *verdict);
/* With Retry-After where the verdict says when. */
void connect_respond_error(struct exchange *exchange, int http_status,
                           const struct verdict *verdict);

#endif

/*
 * connect_error: error answers of the Connect protocol.
 *
 * {"code":"invalid_argument","message":"..."}: https://connectrpc.com/docs/protocol, "Error end
 * stream". Pyroscope uses them on all its paths, including /ingest.
 *
 * Owner: nothing is kept.
 *
 * Thread: the exchange's worker.
 */
#ifndef PROFCOL_PYROSCOPE_CONNECT_ERROR_H
#define PROFCOL_PYROSCOPE_CONNECT_ERROR_H

#include "core/base/verdict.h"
#include "core/net/server.h"

/* Returns the name of a code in Connect: "invalid_argument". */
const char *connect_code_name(enum grpc_code code);
/* Returns the HTTP status by Connect's own table, which has statuses that verdict_http_status does
 * not have. */
int connect_http_status(enum grpc_code code);
/* Returns the verdict as the client should see it. Some clients look only at the status or the
 * code, and retry on 429, on any 5xx, on `internal` and `unknown`: a permanent refusal must not
 * have one of those. */
struct verdict connect_verdict(const struct verdict *verdict);
/* Answers with an error, and with Retry-After if the verdict has a delay. */
void connect_respond_error(struct exchange *exchange, int http_status,
                           const struct verdict *verdict);

#endif

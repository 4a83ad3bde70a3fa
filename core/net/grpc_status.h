/*
 * grpc_status: encodes and decodes the headers of gRPC for a status and a timeout.
 *
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 *
 * Owner: results are in the caller's memory.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_NET_GRPC_STATUS_H
#define PROFCOL_CORE_NET_GRPC_STATUS_H

#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/base/verdict.h"

#include <stddef.h>

enum {
    GRPC_MESSAGE_MAX_BYTES = 3 * 256, /* of grpc-message, for a verdict's text */
    GRPC_DETAILS_MAX_BYTES = 640,     /* of grpc-status-details-bin, for a verdict */
};

/* Percent-encodes everything except printable ASCII. Returns the size in bytes. `out` must have
 * room for three times the text. */
size_t grpc_percent_encode(struct slice text, char *out);
/* Writes google.rpc.Status with RetryInfo, in base64, and returns its size in bytes; 0 if the
 * verdict has no delay. */
size_t grpc_encode_details(const struct verdict *verdict, char out[GRPC_DETAILS_MAX_BYTES]);
/* Parses a value of grpc-timeout, such as "100m", to nanoseconds, at most INT64_MAX. Returns false
 * if it is malformed; err then has the text of gRPC-Go. */
bool grpc_parse_timeout(struct slice value, int64_t *ns_out, struct error *err);
/* Converts the HTTP status of an answer that has no gRPC status, by gRPC's own table
 * (http-grpc-status-mapping). OTLP/HTTP has another one: verdict_from_http. */
enum grpc_code grpc_code_from_http(int status);

#endif

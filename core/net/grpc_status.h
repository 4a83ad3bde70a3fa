/*
 * grpc_status: how gRPC writes a status and a time-out into headers.
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
    GRPC_MESSAGE_MAX_BYTES = 3 * 256, /* grpc-message of a verdict's text */
    GRPC_DETAILS_MAX_BYTES = 640,     /* grpc-status-details-bin of a verdict */
};

/* Percent-encodes all but printable ASCII. Returns the size; out has room for three times the text.
 */
size_t grpc_percent_encode(struct slice text, char *out);
/* google.rpc.Status with RetryInfo in base64; 0 when the verdict says nothing about a delay. */
size_t grpc_encode_details(const struct verdict *verdict, char out[GRPC_DETAILS_MAX_BYTES]);
/* The value of grpc-timeout ("100m" and the like) in nanoseconds, at most INT64_MAX. False when it
 * is malformed, with the words of gRPC-Go. */
bool grpc_parse_timeout(struct slice value, int64_t *ns_out, struct error *err);

#endif

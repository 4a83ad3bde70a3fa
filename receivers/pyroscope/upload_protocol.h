/*
 * upload_protocol: recognises which of Pyroscope's protocols a request uses.
 *
 * Owner: nothing is kept.
 *
 * Thread: the exchange's worker.
 */
#ifndef PROFCOL_PYROSCOPE_UPLOAD_PROTOCOL_H
#define PROFCOL_PYROSCOPE_UPLOAD_PROTOCOL_H

#include "core/base/slice.h"

#include <stdbool.h>

struct exchange;

/* It determines how a request is read and how it is answered. */
enum protocol {
    PROTOCOL_NONE,
    PROTOCOL_INGEST,
    PROTOCOL_CONNECT_PROTO,
    PROTOCOL_CONNECT_JSON,
    PROTOCOL_GRPC,
    PROTOCOL_GRPC_WEB,
    PROTOCOL_OTLP_PROTO, /* over HTTP or gRPC */
    PROTOCOL_OTLP_JSON,
};

/* Returns the protocol, by path and Content-Type; PROTOCOL_NONE if one of the two is unknown. */
enum protocol protocol_of(const struct exchange *exchange);
/* Whether the path belongs to one of the protocols. */
bool protocol_path_is_known(const struct exchange *exchange);
/* Whether the path is that of a method, "/querier.v1.QuerierService/ProfileTypes", by which clients
 * of Connect call. */
bool protocol_path_is_method(struct slice path);
/* Whether it is one of OTLP's. */
bool protocol_is_otlp(enum protocol protocol);

#endif

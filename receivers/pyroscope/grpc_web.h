/*
 * grpc_web: unary calls of gRPC-Web: gRPC's frames in a plain HTTP body, and trailers in a frame.
 *
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md. The base64 form (-text), which is
 * for old browsers, is not supported.
 *
 * Owner: nothing is kept.
 *
 * Thread: the exchange's worker.
 */
#ifndef PROFCOL_PYROSCOPE_GRPC_WEB_H
#define PROFCOL_PYROSCOPE_GRPC_WEB_H

#include "receivers/pyroscope/upload.h"

struct exchange;

/* Whether it is application/grpc-web, with or without +proto. */
bool grpc_web_is(struct slice content_type);
/* Reads the single message of the body. Returns false, with *why set, if the body is invalid. */
bool grpc_web_read(struct upload *upload, struct slice body, struct plain *message,
                   struct verdict *why);
/* Answers with an empty message and the status, or on an error with the status alone. */
void grpc_web_respond(struct exchange *exchange, const struct verdict *verdict);

#endif

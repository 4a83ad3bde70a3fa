/*
 * otlp_request: an export request of OTLP as a receiver takes it, and how it is answered.
 *
 * https://opentelemetry.io/docs/specs/otlp/ . Checked once (core/data/scan.h) and brought into the
 * one form that the rest reads.
 *
 * Owner: bodies are taken over, results are the caller's.
 *
 * Thread: otlp_request_read on any; the rest on the exchange's worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_OTLP_REQUEST_H
#define PROFCOL_CORE_PIPELINE_OTLP_REQUEST_H

#include "core/data/otlp.h"
#include "core/net/server.h"

#define OTLP_PROFILES_URL_PATH "/v1development/profiles"
#define OTLP_PROFILES_SERVICE                                                                      \
    "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/"

/* OTLP profiles are in development: the layout that a client speaks is named by a header, absent
 * means version 1. */
bool otlp_request_check_profiles_version(const struct exchange *exchange, struct verdict *why);
/* Whether a body of so many bytes is read beside the loop (reading.h); a protobuf is only scanned,
 * which takes an eighth of what others take. */
bool otlp_request_is_large(size_t size_bytes, bool is_json);
/* NULL: *why says why. *items_out may be 0. */
struct buffer *otlp_request_read(struct buffer *body, enum signal signal, bool is_json,
                                 struct budget *budget, uint32_t *items_out, struct verdict *why);

/* In the request's protocol and encoding. */
void otlp_request_respond(struct exchange *exchange, bool is_json, const struct verdict *verdict);
/* Plain HTTP, with a status of the caller's. */
void otlp_request_refuse(struct exchange *exchange, bool is_json, int http_status,
                         const struct verdict *verdict);

#endif

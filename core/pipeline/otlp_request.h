/*
 * otlp_request: reads an OTLP export request in a receiver, and answers it.
 *
 * https://opentelemetry.io/docs/specs/otlp/ . The request is checked once (core/data/scan.h) and
 * normalised to the form that all other code reads.
 *
 * Owner: otlp_request_read takes over the body; results belong to the caller.
 *
 * Thread: otlp_request_read on any; the rest on the exchange's worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_OTLP_REQUEST_H
#define PROFCOL_CORE_PIPELINE_OTLP_REQUEST_H

#include "core/data/dictionary.h"
#include "core/net/server.h"

/* Checks the version of OTLP profiles, which are in development: a header names the version that
 * the client uses, 1 if it is absent. Returns false, with *why set, for any other version. */
bool otlp_request_check_profiles_version(const struct exchange *exchange, struct verdict *why);
/* Whether a body of this size is read by a job (reading.h). Protobuf is only scanned, which takes
 * an eighth of the time of JSON. */
bool otlp_request_is_large(size_t size_bytes, bool is_json);
/* What is known of a request that was read. */
struct otlp_request_content {
    uint32_t items; /* may be 0 */
    struct dictionary_layout layout;
};
/* Checks and normalises a body, whose reference it takes over. Returns the request. Returns NULL,
 * with *why set, if it is refused. */
struct buffer *otlp_request_read(struct buffer *body, enum signal signal, bool is_json,
                                 struct budget *budget, struct otlp_request_content *content_out,
                                 struct verdict *why);

/* Answers in the request's protocol and encoding. */
void otlp_request_respond(struct exchange *exchange, bool is_json, const struct verdict *verdict);
/* Answers a plain HTTP request with a status that the caller chooses. */
void otlp_request_refuse(struct exchange *exchange, bool is_json, int http_status,
                         const struct verdict *verdict);

#endif

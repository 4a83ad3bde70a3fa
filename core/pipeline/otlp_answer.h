/*
 * otlp_answer: interprets the answer of an OTLP backend, over gRPC and over HTTP.
 *
 * https://opentelemetry.io/docs/specs/otlp/ (failures, throttling, partial success), with the
 * Collector's choices and messages: which codes are retried, RetryInfo and Retry-After as a minimum
 * delay, google.rpc.Status in error bodies, a warning for partial success.
 *
 * Owner: the caller; nothing to free.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_PIPELINE_OTLP_ANSWER_H
#define PROFCOL_CORE_PIPELINE_OTLP_ANSWER_H

#include "core/base/log.h"
#include "core/base/verdict.h"
#include "core/data/otlp.h"
#include "core/net/client.h"

struct otlp_answer {
    struct verdict verdict;
    bool partial;     /* the backend rejected a part, or sent a warning */
    int64_t rejected; /* spans or profiles */
    char partial_message[256];
};

/* Set *out from an answer. wall_ns: the present time since 1970, for a Retry-After that is a date.
 * url: for messages. */
void otlp_answer_http(const struct client_answer *answer, enum signal signal, const char *url,
                      uint64_t wall_ns, struct otlp_answer *out);
void otlp_answer_grpc(const struct client_answer *answer, struct otlp_answer *out);
/* Returns the verdict of a request over HTTP that got no answer. */
struct verdict otlp_answer_failed(const struct client_answer *answer);
/* Logs partial success as the Collector does. */
void otlp_answer_warn(const struct otlp_answer *answer, enum signal signal,
                      struct log_origin origin);

#endif

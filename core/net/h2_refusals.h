/*
 * h2_refusals: answers to HTTP/2 requests for whose heads there is no memory.
 *
 * gRPC clients get UNAVAILABLE with RetryInfo, others 503 with Retry-After. A client that
 * got a reset instead (REFUSED_STREAM) would not know when to try again, and many resets look like
 * a flood. Such an answer needs no exchange. A stream that its client does not end is reset, over
 * gRPC at once (h2_server.c), otherwise a little after the answer was sent.
 *
 * Streams that were answered in this way and are still open are limited, for each connection and
 * each worker, because their memory is not in the budget: some 600 bytes each.
 *
 * Owner: part of the connection. All-zero is empty.
 *
 * Thread: its worker.
 */
#ifndef PROFCOL_CORE_NET_H2_REFUSALS_H
#define PROFCOL_CORE_NET_H2_REFUSALS_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    H2_REFUSALS_MAX = 128,         /* open streams of a connection */
    H2_REFUSALS_WORKER_MAX = 1024, /* of all connections of a worker */
};

struct h2_refusal {
    int32_t stream_id;
    bool is_grpc;
};

struct h2_refusals {
    struct h2_refusal *streams; /* NULL: none yet */
    unsigned count;
    uint64_t reset_ns; /* when those whose answers were sent are reset */
};

/* Answers the stream, whose head is complete. Returns false, without doing anything, if too many
 * such streams are open. worker_count: open ones of the worker, which this and the others update.
 */
bool h2_refusals_answer(struct h2_refusals *refusals, unsigned *worker_count,
                        nghttp2_session *session, int32_t stream_id, bool is_grpc);
/* Whether the stream is one of them, and of gRPC. The caller resets such a stream itself. */
bool h2_refusals_is_grpc(const struct h2_refusals *refusals, int32_t stream_id);
/* Call it when another answer was sent. Returns the time of the next check. */
uint64_t h2_refusals_sent(struct h2_refusals *refusals, uint64_t now_ns);
/* Call it for each stream that closes. */
void h2_refusals_closed(struct h2_refusals *refusals, unsigned *worker_count, int32_t stream_id);
/* Resets streams whose time has come. Returns the time of the next check; UINT64_MAX: none. */
uint64_t h2_refusals_check(const struct h2_refusals *refusals, nghttp2_session *session,
                           uint64_t now_ns);
/* Call it before the session is freed. */
void h2_refusals_deinit(struct h2_refusals *refusals, unsigned *worker_count);

#endif

/*
 * h2_guard: reads the headers of all frames that an HTTP/2 peer sends, before nghttp2 does.
 *
 * nghttp2 calls its callbacks only for frames that it uses. The guard sees all of them: it counts
 * them against h2_limits and refuses what RFC 9113, sections 5.1, 5.1.1 and 6.3, forbids on closed
 * streams. Both servers and clients use it.
 *
 * Owner: part of the connection.
 *
 * Thread: its worker.
 */
#ifndef PROFCOL_CORE_NET_H2_GUARD_H
#define PROFCOL_CORE_NET_H2_GUARD_H

#include "core/base/slice.h"
#include "core/net/h2_limits.h"
#include "core/net/h2_streams.h"

enum { H2_FRAME_HEAD_BYTES = 9 };

struct h2_guard {
    struct h2_limits limits;
    struct h2_streams streams;
    uint32_t payload_left; /* bytes of the current frame that have not arrived yet */
    uint8_t head_size;     /* bytes of the next head that have arrived */
    uint8_t head[H2_FRAME_HEAD_BYTES];
};

/* Initialises the guard of a new connection; `side` is ours. */
void h2_guard_init(struct h2_guard *guard, enum h2_side side, uint64_t now_ns);
/* Returns how many of the bytes may be passed to nghttp2. If fewer than all, the next frame ends
 * the connection, and *code_out is the error code for the GOAWAY. Pass each byte once. */
size_t h2_guard_input(struct h2_guard *guard, struct slice data, uint64_t now_ns,
                      uint32_t *code_out);
/* Notes that we, a client, have opened a stream. A server's guard notices new streams itself. */
void h2_guard_opened(struct h2_guard *guard, int32_t stream_id);

#endif

/*
 * h2_streams: the states of the streams of an HTTP/2 connection, as set by the peer.
 *
 * nghttp2 forgets a stream when it closes. Then it cannot distinguish a frame that crossed our
 * reset on the wire from one that is not allowed (RFC 9113, sections 5.1 and 5.1.1). Two bits for
 * each of the last 1,024 streams of a client make the distinction.
 *
 * Owner: part of the connection. All-zero is empty.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_NET_H2_STREAMS_H
#define PROFCOL_CORE_NET_H2_STREAMS_H

#include <stdint.h>

enum h2_stream_state {
    H2_STREAM_SKIPPED, /* never opened, and a later one was: closed */
    H2_STREAM_OPEN,    /* the peer may send more, even if we have reset it */
    H2_STREAM_ENDED,   /* the peer sent END_STREAM or RST_STREAM */
    H2_STREAM_UNKNOWN, /* too old, or not opened by a client */
    H2_STREAM_IDLE,    /* not opened yet */
};

enum { H2_STREAMS_KEPT = 1024 };

struct h2_streams {
    uint32_t last; /* the highest id that was opened; 0: none */
    uint64_t states[H2_STREAMS_KEPT / 32];
};

/* Notes that the client opened a stream. id: odd, above `last`. */
void h2_streams_open(struct h2_streams *streams, uint32_t id);
/* Notes that the peer ended an open stream. */
void h2_streams_end(struct h2_streams *streams, uint32_t id);
/* Returns the state of a stream. */
enum h2_stream_state h2_streams_state(const struct h2_streams *streams, uint32_t id);

#endif

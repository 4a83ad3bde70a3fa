/*
 * h2_limits: limits the frames of an HTTP/2 peer that cost work without being useful.
 *
 * Each connection has token buckets. Glitches are useless frames (PRIORITY, unknown types, DATA
 * with almost no payload or for a closed stream, more WINDOW_UPDATE than our DATA explains, streams
 * over the limit). Pings are PING and SETTINGS, which have to be answered; gRPC peers send a PING
 * for each message they read, to measure the network, so each frame that we send allows some.
 * Resets are RST_STREAM. Ignored headers are the bytes of header blocks that nghttp2 decodes
 * without a stream. Excess headers are decoded fields beyond the limits of a head.
 *
 * Large DATA frames earn credit for small ones: if the average payload is 270 bytes, none is a
 * glitch.
 *
 * Owner: part of the connection.
 *
 * Thread: its worker.
 */
#ifndef PROFCOL_CORE_NET_H2_LIMITS_H
#define PROFCOL_CORE_NET_H2_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum h2_side { H2_SERVER, H2_CLIENT }; /* our side */

struct h2_bucket {
    uint64_t filled_ns; /* time of the last refill */
    uint64_t token_ns;
    uint32_t tokens;
    uint32_t burst;
};

struct h2_limits {
    enum h2_side side;
    struct h2_bucket glitches;
    struct h2_bucket pings;
    struct h2_bucket resets;
    struct h2_bucket ignored_headers; /* bytes */
    struct h2_bucket excess_headers;  /* in units of 32 bytes */
    uint32_t free_pings;
    uint32_t free_resets;
    uint32_t free_window_updates;
    uint32_t data_credit; /* bytes */
};

struct h2_frame_head {
    uint32_t length;
    uint8_t type;
    uint8_t flags;
    uint32_t stream_id;
    bool ends_stream; /* and this is the first END_STREAM or RST_STREAM of the stream */
};

enum { H2_COST_STREAM = 50 }; /* glitches for a stream that was refused or had to be reset */

/* Initialises the limits of a new connection; `side` is ours. */
void h2_limits_init(struct h2_limits *limits, enum h2_side side, uint64_t now_ns);
/* Counts a frame whose head has arrived. Returns false, here and below, if there are too many. */
bool h2_limits_on_frame(struct h2_limits *limits, const struct h2_frame_head *frame,
                        uint64_t now_ns);
/* Counts `cost` glitches. Returns false if there are too many. */
bool h2_limits_spend(struct h2_limits *limits, uint32_t cost, uint64_t now_ns);
/* Notes that a header block of this length, with all its frames, belonged to a stream. */
void h2_limits_on_block(struct h2_limits *limits, size_t length);
/* Notes that this payload of a DATA frame belonged to a stream. */
void h2_limits_on_payload(struct h2_limits *limits, size_t size);
/* Counts a decoded field beyond the limits of a head. */
bool h2_limits_on_excess(struct h2_limits *limits, size_t size, uint64_t now_ns);
/* Notes that we ended a stream that the client has not ended. It may reset it, and its DATA may be
 * under way. */
void h2_limits_on_early_answer(struct h2_limits *limits);
/* Notes that we sent a frame, which allows the other side some of its own. */
void h2_limits_on_sent(struct h2_limits *limits, uint8_t type);

#endif

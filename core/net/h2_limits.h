/*
 * h2_limits: limits how many frames that cost us work without being useful the other side of an
 * HTTP/2 connection may send.
 *
 * There are token buckets for each connection. Glitches are useless frames (PRIORITY, unknown
 * types, DATA with almost no payload or for a stream that is over, more WINDOW_UPDATE than our DATA
 * explains, streams over the limit). Pings are PING and SETTINGS, which have to be answered; gRPC
 * peers measure the network with a PING per message they read, so each frame that we send allows
 * some. Resets are RST_STREAM. Ignored headers are the bytes of header blocks that nghttp2 decodes
 * without a stream. Excess headers are decoded fields beyond the limits of a head.
 *
 * The payload of earlier DATA frames pays for a DATA frame: with an average of 270 bytes, none is a
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

enum h2_side { H2_SERVER, H2_CLIENT }; /* ours */

struct h2_bucket {
    uint64_t filled_ns; /* when it was last brought up to date */
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
    bool ends_stream; /* the first time for this stream */
};

enum { H2_COST_STREAM = 50 }; /* glitches, of a stream that was refused or had to be reset */

/* Initialises the limits of a new connection; `side` is ours. */
void h2_limits_init(struct h2_limits *limits, enum h2_side side, uint64_t now_ns);
/* Counts a frame whose head has arrived. False, here and below: too many. */
bool h2_limits_on_frame(struct h2_limits *limits, const struct h2_frame_head *frame,
                        uint64_t now_ns);
/* Spends `cost` glitches. False: too many. */
bool h2_limits_spend(struct h2_limits *limits, uint32_t cost, uint64_t now_ns);
/* Notes that a header block of this length, with all its frames, belonged to a stream. */
void h2_limits_on_block(struct h2_limits *limits, size_t length);
/* Notes that this payload of a DATA frame belonged to a stream. */
void h2_limits_on_payload(struct h2_limits *limits, size_t size);
/* Counts a decoded field beyond the limits of a head. */
bool h2_limits_on_excess(struct h2_limits *limits, size_t size, uint64_t now_ns);
/* Notes that we sent a frame, which allows the other side some of its own. */
void h2_limits_on_sent(struct h2_limits *limits, uint8_t type);

#endif

/*
 * h2_limits: how much of what costs us and brings nothing the other side of an HTTP/2 connection
 * may send.
 *
 * Token buckets per connection. Glitches are frames without use (PRIORITY, unknown types, DATA that
 * carries next to nothing or that nobody wants, WINDOW_UPDATE beyond what our DATA explains,
 * streams over the limit). Pings are PING and SETTINGS, which have to be answered; gRPC peers
 * measure the network with a PING per message they read, so everything we send allows some.
 * Resets are RST_STREAM. Ignored headers are the bytes of header blocks that nghttp2 decodes for no
 * stream. Excess headers are decoded fields beyond what a head may have.
 *
 * A DATA frame is paid with the payload of those before it: an average of 270 bytes costs nothing.
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
/* A frame begins. False, here and below: too many. */
bool h2_limits_on_frame(struct h2_limits *limits, const struct h2_frame_head *frame,
                        uint64_t now_ns);
/* Spends `cost` glitches. False: too many. */
bool h2_limits_spend(struct h2_limits *limits, uint32_t cost, uint64_t now_ns);
/* A header block of this length, with all its frames, was for a stream. */
void h2_limits_on_block(struct h2_limits *limits, size_t length);
/* Payload of a DATA frame was for a stream. */
void h2_limits_on_payload(struct h2_limits *limits, size_t size);
/* A decoded field beyond what a head may have. */
bool h2_limits_on_excess(struct h2_limits *limits, size_t size, uint64_t now_ns);
/* We sent a frame. */
void h2_limits_on_sent(struct h2_limits *limits, uint8_t type);

#endif

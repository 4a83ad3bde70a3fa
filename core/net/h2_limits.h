/*
 * h2_limits: how much of what costs us and brings nothing an HTTP/2 client may send.
 *
 * Two token buckets per connection. Glitches are frames without use (PRIORITY, empty DATA, unknown
 * types, WINDOW_UPDATE beyond what our DATA explains, streams over the limit); pings are PING and
 * SETTINGS, which have to be answered. gRPC clients measure the network with a PING per answer
 * they read, so every answer allows some.
 *
 * Owner: part of the connection.
 *
 * Thread: its worker.
 */
#ifndef PROFCOL_CORE_NET_H2_LIMITS_H
#define PROFCOL_CORE_NET_H2_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

struct h2_bucket {
    uint64_t filled_ns; /* when it was last brought up to date */
    uint32_t tokens;
    uint32_t burst;
    uint32_t per_second;
};

struct h2_limits {
    struct h2_bucket glitches;
    struct h2_bucket pings;
    uint32_t free_pings;
    uint32_t free_window_updates;
};

enum { H2_COST_STREAM = 50 }; /* glitches, of a stream that was refused or had to be reset */

void h2_limits_init(struct h2_limits *limits, uint64_t now_ns);
/* A frame begins. False: too many. */
bool h2_limits_on_frame(struct h2_limits *limits, uint8_t type, uint8_t flags, uint64_t length,
                        uint64_t now_ns);
bool h2_limits_spend(struct h2_limits *limits, uint32_t cost, uint64_t now_ns);
/* We sent a frame. */
void h2_limits_on_sent(struct h2_limits *limits, uint8_t type);

#endif

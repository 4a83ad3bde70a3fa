/*
 * client_tunnel: asks an HTTP proxy for a connection to the endpoint (CONNECT, RFC 9110, section
 * 9.3.6).
 *
 * The proxy's answer is read to the end of its head; what follows belongs to the endpoint. Heads
 * above 32 KiB are refused.
 *
 * Owner: the connection.
 *
 * Thread: its worker.
 */
#ifndef PROFCOL_CORE_NET_CLIENT_TUNNEL_H
#define PROFCOL_CORE_NET_CLIENT_TUNNEL_H

#include "core/base/text.h"

#define TUNNEL_HEAD_MAX ((size_t)32 * 1024)

/* All zero: nothing was read. */
struct client_tunnel {
    struct text head; /* of the answer, as far as it has arrived */
};

enum client_tunnel_result { TUNNEL_UNFINISHED, TUNNEL_OPEN, TUNNEL_REFUSED };

/* Appends the request for a tunnel to "host:port". authorization: for the proxy, or NULL. */
void client_tunnel_print(struct text *out, const char *address, const char *authorization);
/* Reads bytes of the answer. TUNNEL_OPEN: *rest_out is what follows its head. TUNNEL_REFUSED: why
 * says what the proxy answered. */
enum client_tunnel_result client_tunnel_feed(struct client_tunnel *tunnel, struct slice bytes,
                                             struct slice *rest_out, char *why, size_t why_size);
void client_tunnel_deinit(struct client_tunnel *tunnel);

/* What to do about a proxy's answer, for messages; "" if there is nothing to say. */
const char *client_tunnel_advice(int status);

#endif

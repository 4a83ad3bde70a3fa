/*
 * peer_counts: how many connections each address has, and a limit to that.
 *
 * IPv4 counts by address, also where it comes over IPv6; IPv6 by its first 64 bits, which is what
 * one customer gets. What has no address (Unix sockets) is not counted.
 *
 * Owner: the server.
 *
 * Thread: any; it locks. The order of the hash never reaches an output.
 */
#ifndef PROFCOL_CORE_NET_PEER_COUNTS_H
#define PROFCOL_CORE_NET_PEER_COUNTS_H

#include <stdbool.h>
#include <sys/socket.h>

struct peer_counts;

struct peer_counts *peer_counts_new(unsigned limit);
void peer_counts_free(struct peer_counts *counts); /* NULL is allowed */
/* False, and not counted: the limit is reached. */
bool peer_counts_add(struct peer_counts *counts, const struct sockaddr *address);
/* One that was added. */
void peer_counts_remove(struct peer_counts *counts, const struct sockaddr *address);

#endif

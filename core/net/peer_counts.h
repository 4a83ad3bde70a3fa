/*
 * peer_counts: counts the connections of each client (core/net/peer_key.h), and limits them.
 *
 * Connections without an address (key 0) are not counted.
 *
 * Owner: the server.
 *
 * Thread: any; it locks. The order of the hash never reaches an output.
 */
#ifndef PROFCOL_CORE_NET_PEER_COUNTS_H
#define PROFCOL_CORE_NET_PEER_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

struct peer_counts;

/* Creates a table that allows each client `limit` connections. */
struct peer_counts *peer_counts_new(unsigned limit);
void peer_counts_free(struct peer_counts *counts); /* NULL is allowed */
/* Counts a new connection. Returns false, and does not count it, if the client has reached the
 * limit. */
bool peer_counts_add(struct peer_counts *counts, uint64_t key);
/* Removes a connection that was counted. */
void peer_counts_remove(struct peer_counts *counts, uint64_t key);

#endif

/*
 * peer_counts: how many connections each client (core/net/peer_key.h) has, and a limit to that.
 *
 * What has no address (key 0) is not counted.
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
/* False, and not counted: the limit is reached. */
bool peer_counts_add(struct peer_counts *counts, uint64_t key);
/* One that was added. */
void peer_counts_remove(struct peer_counts *counts, uint64_t key);

#endif

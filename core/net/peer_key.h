/*
 * peer_key: which client an address belongs to, as a number.
 *
 * IPv4 is one client for each address, also where it comes over IPv6; IPv6 one for each /64, which
 * is what one customer gets. Equal numbers are the same client, different ones are not. The number
 * is chosen from outside: hash it (hash_u64) before it becomes a place in a table.
 *
 * Owner: nobody; it keeps nothing.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_NET_PEER_KEY_H
#define PROFCOL_CORE_NET_PEER_KEY_H

#include <stdint.h>
#include <sys/socket.h>

/* 0: it has no address (a Unix socket, NULL). */
uint64_t peer_key(const struct sockaddr *address);

#endif

/*
 * peer_key: which client an address belongs to, as a number.
 *
 * For IPv4, each address is one client, also when mapped to IPv6; for IPv6, each /64, which
 * is what one customer gets. Equal numbers mean the same client, different numbers different ones.
 * Clients can choose the number: hash it (hash_u64) before you use it as a place in a table.
 *
 * Owner: nobody; it keeps nothing.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_NET_PEER_KEY_H
#define PROFCOL_CORE_NET_PEER_KEY_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

/* Returns the client's number. 0: it has no address (a Unix socket, NULL). */
uint64_t peer_key(const struct sockaddr *address);
/* Prints the address without port, IPv4 in its own form even if mapped to IPv6; "" if there is
 * none. */
void peer_print(const struct sockaddr *address, char out[INET6_ADDRSTRLEN]);

#endif

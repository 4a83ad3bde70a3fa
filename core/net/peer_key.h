/*
 * peer_key: identifies the client that an address belongs to, by a number.
 *
 * Each IPv4 address is one client, also if mapped to IPv6. Each /64 of IPv6, which is what one
 * customer gets, is one client. Different clients have different numbers. Clients can choose the
 * number: hash it (hash_u64) before you use it as an index of a table.
 *
 * Owner: nobody; it keeps nothing.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_NET_PEER_KEY_H
#define PROFCOL_CORE_NET_PEER_KEY_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Returns the client's number; 0 if it has no address (a Unix socket, NULL). */
uint64_t peer_key(const struct sockaddr *address);
/* Whether a client is on this host. */
bool peer_key_is_loopback(uint64_t key);
/* Prints the address without its port, an IPv4 address as such even if mapped to IPv6; "" if there
 * is none. */
void peer_print(const struct sockaddr *address, char out[INET6_ADDRSTRLEN]);

#endif

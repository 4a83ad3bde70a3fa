/*
 * client_resolver: the addresses of one host, looked up when needed and kept for a while.
 *
 * Names are resolved on libuv's pool; addresses and unix paths need no look-up. Kept for 30 s,
 * asked again after a failure once 5 s old.
 *
 * Owner: the client.
 *
 * Thread: its worker.
 */
#ifndef PROFCOL_CORE_NET_CLIENT_RESOLVER_H
#define PROFCOL_CORE_NET_CLIENT_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

struct client;

enum { RESOLVER_ADDRESSES_MAX = 16 };

struct client_address {
    struct sockaddr_storage storage;
    socklen_t size;
};

struct client_resolver {
    struct client_address addresses[RESOLVER_ADDRESSES_MAX];
    size_t count;
    bool fixed;               /* needs no look-up */
    uv_getaddrinfo_t *lookup; /* under way, or NULL */
    bool doubtful;            /* connecting failed */
    uint64_t looked_ns;
    uint64_t lookups; /* how many there were, for tests */
};

/* Finds addresses that need no look-up. */
void client_resolver_init(struct client *client);
/* True: addresses are there. False: being looked up; client_resolved or client_connect_failed
 * follows. */
bool client_resolve(struct client *client);
/* The client goes away: forgets a look-up that has not begun (one that has must end by itself). */
void client_resolver_cancel(struct client *client);
/* Connecting to all of them failed. */
void client_resolver_doubt(struct client *client);
/* Implemented by client.c. */
void client_resolved(struct client *client);
/* "127.0.0.1:4317", "[::1]:4317", "unix:/path" */
void client_address_print(const struct client_address *address, char *out, size_t size);

#endif

/*
 * client_resolver: the addresses of one host, looked up when needed and kept for a while.
 *
 * Names are resolved on libuv's pool; addresses and unix paths need no look-up. Kept for 30 s,
 * asked again after a failure once 5 s old.
 *
 * Owner: whoever initialised it; it stays where it is until on_resolved of a look-up that has
 * begun.
 *
 * Thread: its worker.
 */
#ifndef PROFCOL_CORE_NET_CLIENT_RESOLVER_H
#define PROFCOL_CORE_NET_CLIENT_RESOLVER_H

#include "core/base/worker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { RESOLVER_ADDRESSES_MAX = 16 };

struct client_address {
    struct sockaddr_storage storage;
    socklen_t size;
};

struct client_resolver {
    /* The owner's, before client_resolver_init: */
    struct worker *worker;
    const char *host; /* or the path of a unix socket; stays where it is */
    uint16_t port;
    bool is_unix;
    /* A look-up that client_resolve began has ended, or was cancelled: once for each. The addresses
     * are what is known, also from before; with count 0 `error` says why. */
    void (*on_resolved)(struct client_resolver *resolver);
    /* What came of it: */
    struct client_address addresses[RESOLVER_ADDRESSES_MAX];
    size_t count;
    char error[200];
    uint64_t lookups; /* how many there were, for tests */
    /* The room's: */
    bool fixed;               /* needs no look-up */
    bool doubtful;            /* connecting failed */
    uv_getaddrinfo_t *lookup; /* under way, or NULL */
    uint64_t looked_ns;
};

/* Finds addresses that need no look-up. */
void client_resolver_init(struct client_resolver *resolver);

enum client_resolution {
    RESOLUTION_READY,     /* addresses are there */
    RESOLUTION_BEGUN,     /* a look-up: on_resolved follows */
    RESOLUTION_UNDER_WAY, /* one that had begun before */
    RESOLUTION_FAILED,    /* `error` says why */
};
enum client_resolution client_resolve(struct client_resolver *resolver);
/* Nobody wants the addresses any more. A look-up that has not begun on its thread is forgotten, one
 * that has must end by itself; on_resolved comes either way. */
void client_resolver_cancel(struct client_resolver *resolver);
/* Connecting to all of them failed. */
void client_resolver_doubt(struct client_resolver *resolver);
/* "127.0.0.1:4317", "[::1]:4317", "unix:/path" */
void client_address_print(const struct client_address *address, char *out, size_t size);

#endif

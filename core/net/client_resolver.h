/*
 * client_resolver: looks up the addresses of one host when needed, and caches them.
 *
 * Names are resolved on libuv's pool; addresses and Unix paths need no look-up. Results are cached
 * for 30 s; after a failed connection they are looked up again if older than 5 s.
 *
 * Owner: whoever initialised it; it must not be moved or freed before on_resolved if a look-up has
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
    /* Set by the owner before client_resolver_init: */
    struct worker *worker;
    const char *host; /* or the path of a Unix socket; must stay valid */
    uint16_t port;
    bool is_unix;
    /* Called once for each look-up that client_resolve began, when it has ended or was cancelled.
     * `addresses` may be from an earlier look-up; if count is 0, `error` is set. */
    void (*on_resolved)(struct client_resolver *resolver);
    /* Results: */
    struct client_address addresses[RESOLVER_ADDRESSES_MAX];
    size_t count;
    char error[200];
    uint64_t lookups; /* number of look-ups, for tests */
    /* Set by client_resolver.c: */
    bool fixed;               /* needs no look-up */
    bool doubtful;            /* connecting failed */
    uv_getaddrinfo_t *lookup; /* in progress, or NULL */
    uint64_t looked_ns;
};

/* Initialises the resolver. Sets the address if it needs no look-up. */
void client_resolver_init(struct client_resolver *resolver);

enum client_resolution {
    RESOLUTION_READY,     /* `addresses` is set */
    RESOLUTION_BEGUN,     /* a look-up has begun: on_resolved will be called */
    RESOLUTION_UNDER_WAY, /* a look-up had begun before */
    RESOLUTION_FAILED,    /* `error` says why */
};
/* Returns whether addresses are known; begins a look-up if necessary. */
enum client_resolution client_resolve(struct client_resolver *resolver);
/* Cancels the look-up. If it already runs on its thread, it continues to its end. on_resolved is
 * called in both cases. */
void client_resolver_cancel(struct client_resolver *resolver);
/* Notes that connecting to all addresses failed. */
void client_resolver_doubt(struct client_resolver *resolver);
/* Prints an address: "127.0.0.1:4317", "[::1]:4317", "unix:/path". */
void client_address_print(const struct client_address *address, char *out, size_t size);

#endif

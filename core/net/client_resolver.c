#include "core/net/client_resolver.h"

#include "core/base/memory.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/un.h>

#define KEEP_NS UINT64_C(30000000000)
#define KEEP_DOUBTFUL_NS UINT64_C(5000000000)

static void take_addresses(struct client_resolver *resolver, const struct addrinfo *list)
{
    resolver->count = 0;
    for (; list && resolver->count < RESOLVER_ADDRESSES_MAX; list = list->ai_next) {
        if (list->ai_family != AF_INET && list->ai_family != AF_INET6)
            continue;
        struct client_address *address = &resolver->addresses[resolver->count++];
        memset(address, 0, sizeof *address);
        assert(list->ai_addrlen <= sizeof address->storage);
        memcpy(&address->storage, list->ai_addr, list->ai_addrlen);
        address->size = list->ai_addrlen;
    }
}

static void take_path(struct client_resolver *resolver, const char *path)
{
    struct client_address *address = &resolver->addresses[0];
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    assert(strlen(path) < sizeof name.sun_path); /* client_new checked it */
    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    memcpy(&address->storage, &name, sizeof name);
    address->size = sizeof name;
    resolver->count = 1;
}

static const struct addrinfo stream_hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};

void client_resolver_init(struct client_resolver *resolver)
{
    assert(resolver->worker && resolver->on_resolved && resolver->count == 0);
    resolver->fixed = true;
    if (resolver->is_unix) {
        take_path(resolver, resolver->host);
        return;
    }
    char port[8];
    snprintf(port, sizeof port, "%u", resolver->port);
    struct addrinfo hints = stream_hints, *list = NULL;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    if (getaddrinfo(resolver->host, port, &hints, &list) == 0) {
        take_addresses(resolver, list);
        freeaddrinfo(list);
    }
    resolver->fixed = resolver->count > 0;
}

static void on_looked_up(uv_getaddrinfo_t *lookup, int status, struct addrinfo *list)
{
    struct client_resolver *resolver = lookup->data;
    assert(resolver->lookup == lookup);
    free(lookup);
    resolver->lookup = NULL;
    resolver->looked_ns = worker_now(resolver->worker);
    if (status == 0)
        take_addresses(resolver, list);
    uv_freeaddrinfo(list);
    snprintf(resolver->error, sizeof resolver->error, "look up %s: %s", resolver->host,
             status == 0 ? "no address" : uv_strerror(status));
    resolver->on_resolved(resolver);
}

static enum client_resolution look_up(struct client_resolver *resolver)
{
    assert(!resolver->fixed && worker_is_current(resolver->worker));
    if (resolver->lookup)
        return RESOLUTION_UNDER_WAY;
    char port[8];
    snprintf(port, sizeof port, "%u", resolver->port);
    uv_getaddrinfo_t *lookup = memory_zalloc(sizeof *lookup);
    lookup->data = resolver;
    resolver->lookups++;
    resolver->doubtful = false;
    if (uv_getaddrinfo(&resolver->worker->loop, lookup, on_looked_up, resolver->host, port,
                       &stream_hints) != 0) {
        free(lookup);
        snprintf(resolver->error, sizeof resolver->error, "look up %s: not a host name",
                 resolver->host);
        return RESOLUTION_FAILED;
    }
    resolver->lookup = lookup;
    return RESOLUTION_BEGUN;
}

enum client_resolution client_resolve(struct client_resolver *resolver)
{
    if (resolver->fixed)
        return RESOLUTION_READY;
    uint64_t age = resolver->worker->now_ns - resolver->looked_ns;
    bool fresh = resolver->count > 0 && age < (resolver->doubtful ? KEEP_DOUBTFUL_NS : KEEP_NS);
    return fresh ? RESOLUTION_READY : look_up(resolver);
}

void client_resolver_cancel(struct client_resolver *resolver)
{
    if (resolver->lookup)
        uv_cancel((uv_req_t *)resolver->lookup);
}

void client_resolver_doubt(struct client_resolver *resolver)
{
    resolver->doubtful = true;
}

void client_address_print(const struct client_address *address, char *out, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";
    const struct sockaddr *any = (const struct sockaddr *)&address->storage;
    if (any->sa_family == AF_UNIX) {
        const struct sockaddr_un *name = (const struct sockaddr_un *)any;
        snprintf(out, size, "unix:%s", name->sun_path);
    } else if (any->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)any;
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        snprintf(out, size, "[%s]:%u", host, ntohs(v6->sin6_port));
    } else {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)any;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(out, size, "%s:%u", host, ntohs(v4->sin_port));
    }
}

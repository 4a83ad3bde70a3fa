/*
 * Any bytes as the Location of a redirect, and as the URL of a proxy: the path that is followed is
 * one that a request may have.
 */
#include "core/net/proxy.h"
#include "core/pipeline/endpoint.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void follow(struct arena *arena, struct slice location)
{
    struct endpoint from;
    struct error err;
    require(endpoint_parse_url(arena, "http://backend:4318/v1/traces?key=1", &from, &err));
    const char *path = endpoint_redirect(arena, &from, from.path, location);
    if (!path)
        return;
    require(path[0] == '/');
    for (const char *c = path; *c; c++)
        require(*c > ' ' && *c <= '~' && *c != '#');
}

static void parse_proxy(struct arena *arena, const char *text)
{
    struct proxy proxy;
    struct error err;
    if (proxy_parse(arena, text, &proxy, &err))
        require(proxy.host[0] && proxy.port > 0);
    proxy_is_excluded(text, "www.example.com", 443);
    proxy_is_excluded(text, "10.1.2.3", 443);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    arena_init(&arena, NULL);
    follow(&arena, slice_of(data, size));
    parse_proxy(&arena, arena_string(&arena, slice_of(data, size)));
    arena_deinit(&arena);
    return 0;
}

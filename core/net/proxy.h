/*
 * proxy: which HTTP proxy the requests to an endpoint go through: the one of a setting, or the one
 * of the environment (HTTP_PROXY, HTTPS_PROXY, NO_PROXY), by the rules of Go's httpproxy.
 *
 * Only proxies that are reached in cleartext are supported. Requests to a local address never use
 * a proxy of the environment.
 *
 * Owner: texts are in the caller's arena.
 *
 * Thread: plain data. The environment is read while the configuration is loaded.
 */
#ifndef PROFCOL_CORE_NET_PROXY_H
#define PROFCOL_CORE_NET_PROXY_H

#include "core/base/arena.h"
#include "core/base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy {
    const char *host; /* without brackets; NULL: no proxy */
    uint16_t port;
    const char *authorization; /* "Basic dXNlcjpwYXNz"; NULL: none. Secret */
};

/* Parses "http://user:password@host:port"; the scheme may be absent, the default port is 80.
 * Returns false, with err set, if it is another kind of proxy or not valid; err->text does not
 * contain user and password. */
bool proxy_parse(struct arena *arena, const char *url, struct proxy *out, struct error *err);

/* Determines the proxy of the environment for an endpoint. is_https: HTTPS_PROXY applies, otherwise
 * HTTP_PROXY. out->host is NULL if there is none. Returns false, with err set, if the proxy that
 * applies cannot be used. */
bool proxy_from_environment(struct arena *arena, bool is_https, const char *host, uint16_t port,
                            struct proxy *out, struct error *err);

/* Whether NO_PROXY's value `list` excludes this endpoint from proxies, or it is local. */
bool proxy_is_excluded(const char *list, const char *host, uint16_t port);

#endif

/*
 * endpoint: parses the address that an exporter sends to, in the Collector's forms.
 *
 * gRPC: host:port, http://host:port, https://host:port, dns:///host:port, unix:///path. HTTP: a
 * URL.
 *
 * Owner: texts are in the caller's arena.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_PIPELINE_ENDPOINT_H
#define PROFCOL_CORE_PIPELINE_ENDPOINT_H

#include "core/base/arena.h"
#include "core/base/error.h"

struct endpoint {
    enum endpoint_scheme { ENDPOINT_NO_SCHEME, ENDPOINT_HTTP, ENDPOINT_HTTPS } scheme;
    bool unix_socket;
    const char *host; /* without brackets; or the path of the socket */
    uint16_t port;
    const char *authority; /* "host:port" as written; NULL for a socket */
    const char *path;      /* of a URL: path and query, "/" at least */
    const char *url;       /* of a URL: for messages, without parts that may be secret */
};

/* Parse an endpoint; texts of *out live in the arena. Return false on an error; err->text does not
 * contain the key. */
bool endpoint_parse_grpc(struct arena *arena, const char *text, struct endpoint *out,
                         struct error *err);
bool endpoint_parse_url(struct arena *arena, const char *text, struct endpoint *out,
                        struct error *err);

/* Whether a URL as written ends with this path, but for slashes behind it, and has more before. */
bool endpoint_ends_with(const char *url, const char *path);
/* The warning of an exporter that appends a path to such a URL: a format for the path, the path
 * again, the one that is appended, and the path. */
#define ENDPOINT_HAS_PATH                                                                          \
    "ends with %s, but the path of requests is appended to it: they go to %s%s; write it without " \
    "%s"

/* Resolves the Location of a redirect from `path` of this endpoint (a URL). Returns the path and
 * query to continue with; NULL if it leads to another origin (RFC 6454) or is not a valid URL. */
const char *endpoint_redirect(struct arena *arena, const struct endpoint *from, const char *path,
                              struct slice location);

#endif

/*
 * cors: answers browsers that send telemetry from pages of another origin.
 *
 * https://fetch.spec.whatwg.org/#http-cors-protocol , with the settings and the answers of the
 * Collector's confighttp, which uses github.com/rs/cors: credentials are always allowed, the
 * methods are GET, POST and HEAD, and every answer has Vary, whether its origin is allowed or not.
 *
 * Owner: the server owns its struct cors, which keeps pointers to the settings. Headers that are
 * returned point to it and to the request.
 *
 * Thread: cors_new and cors_free on main; the rest any, it changes nothing.
 */
#ifndef PROFCOL_CORE_NET_CORS_H
#define PROFCOL_CORE_NET_CORS_H

#include "config/field.h"
#include "core/net/http_types.h"

struct config_check;
struct cors;

struct cors_settings {
    bool enabled;
    struct config_strings allowed_origins, allowed_headers, exposed_headers;
    int64_t max_age; /* in seconds; below 0: do not cache */
};
extern const struct field cors_fields[];

/* Checks the settings and reports errors at `key`. */
void cors_check(const struct cors_settings *settings, struct config_check *check, const char *key);

/* Returns NULL if no origin is allowed: CORS is then off, as in the Collector. */
struct cors *cors_new(const struct cors_settings *settings);
void cors_free(struct cors *cors); /* NULL is allowed */

enum {
    CORS_LISTS_MAX = 4, /* fields Access-Control-Request-Headers that are read; browsers send one */
    CORS_HEADERS_MAX = 6 + CORS_LISTS_MAX,
};

/* Whether a browser asks what it may send. Such a request has no credentials, and gets status 204
 * with the headers of cors_preflight, on any path. */
bool cors_is_preflight(struct slice method, const struct http_headers *request);
/* Return the headers of the answer, and their number. */
size_t cors_preflight(const struct cors *cors, const struct http_headers *request,
                      struct http_header out[CORS_HEADERS_MAX]);
size_t cors_headers(const struct cors *cors, struct slice method,
                    const struct http_headers *request, struct http_header out[CORS_HEADERS_MAX]);

#endif

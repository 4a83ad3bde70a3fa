/*
 * cookie_jar: the cookies that one server has set, and those that a request to it carries (RFC
 * 6265).
 *
 * All requests go to the same host, so Domain decides only whether a cookie is accepted. At most 50
 * cookies of 4 KiB are kept (the oldest leaves), and 8 KiB of them are sent.
 *
 * Owner: whoever initialised it, all zero; it owns copies of the texts.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_NET_COOKIE_JAR_H
#define PROFCOL_CORE_NET_COOKIE_JAR_H

#include "core/base/text.h"

enum { COOKIES_MAX = 50, COOKIE_BYTES_MAX = 4096, COOKIE_HEADER_MAX = 8192 };

struct cookie {
    char *name;
    char *value;
    char *path;
    uint64_t expires_ns; /* wall clock; UINT64_MAX: with the process */
    bool is_secure;      /* over TLS only */
};

struct cookie_jar {
    struct cookie items[COOKIES_MAX]; /* oldest first */
    size_t count;
};

/* Takes over a value of Set-Cookie from the answer to a request for `path` (with or without its
 * query) of `host`. Ignores what is not valid. */
void cookie_jar_store(struct cookie_jar *jar, struct slice set_cookie, const char *host,
                      const char *path, uint64_t wall_ns);
/* Appends the value of Cookie for a request; nothing if no cookie is for it. */
void cookie_jar_print(const struct cookie_jar *jar, const char *path, bool is_tls, uint64_t wall_ns,
                      struct text *out);
/* Frees all cookies. */
void cookie_jar_deinit(struct cookie_jar *jar);

#endif

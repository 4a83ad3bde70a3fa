/*
 * http_path: the clean form of a path, and the redirect to it.
 *
 * A path is clean if it has no empty segment and no segment "." or ".." (RFC 3986, section 5.2.4).
 * Go's ServeMux, which answers for the Collector, redirects any other path, even an unknown one.
 *
 * Owner: the caller owns all memory.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_NET_HTTP_PATH_H
#define PROFCOL_CORE_NET_HTTP_PATH_H

#include "core/base/slice.h"

#include <stdbool.h>

enum { HTTP_PATH_MAX_BYTES = 2048 }; /* the longest Location */

/* Writes the clean path and the query, and returns true. Returns false if the path is clean
 * already, if it does not begin with a slash, if the result is longer than HTTP_PATH_MAX_BYTES, or
 * if it has a byte that does not belong in a URL, such as a backslash, which browsers take for a
 * slash. */
bool http_path_redirect(struct slice path, struct slice query, char out[HTTP_PATH_MAX_BYTES],
                        struct slice *location_out);

#endif

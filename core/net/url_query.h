/*
 * url_query: reads parameters of a URL's query, "pipeline=traces%2Fslow&verbose".
 *
 * Owner: the caller's memory.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_NET_URL_QUERY_H
#define PROFCOL_CORE_NET_URL_QUERY_H

#include "core/base/slice.h"

/* Copies the decoded value of the first parameter with this name (which needs no decoding), with a
 * NUL after it; "" if it has none. Returns false, with an empty value, if there is no such
 * parameter, or if its value has `size` bytes or more, or a NUL. size > 0. */
bool url_query_get(struct slice query, const char *name, char *value_out, size_t size);

#endif

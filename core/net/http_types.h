/*
 * http_types: types and header functions that the server and the client share.
 *
 * Owner: whoever holds the bytes that the slices point into.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_NET_HTTP_TYPES_H
#define PROFCOL_CORE_NET_HTTP_TYPES_H

#include "core/base/slice.h"

/* Limits of a request's head, for all protocols. HTTP/1.1 counts all bytes of the head; HTTP/2
 * counts names, values and 32 bytes for each field (RFC 9113, section 6.5.2). */
enum {
    HTTP_FIELD_MAX_BYTES = 16 * 1024, /* name and value */
    HTTP_HEAD_MAX_BYTES = 32 * 1024,
    HTTP_FIELDS_MAX = 128, /* without pseudo-fields */
};

struct http_header {
    struct slice name; /* lower case */
    struct slice value;
};

struct http_headers {
    struct http_header *items;
    size_t count;
};

/* Returns the first value of a field with this lower-case name; a NULL slice if there is none. */
struct slice http_header_get(const struct http_headers *headers, const char *name);
/* Returns how many fields have this lower-case name. */
size_t http_header_count(const struct http_headers *headers, const char *name);
/* Whether the text is the name of a field (a token), and whether it is a value: without control
 * characters except tabs (RFC 9110, sections 5.1 and 5.5). */
bool http_is_field_name(struct slice text);
bool http_is_field_value(struct slice text);
/* Whether the text is a value that can be sent as it is: without blanks and tabs at its ends. */
bool http_is_trimmed_value(struct slice text);
/* Whether the text is host [":" port] (RFC 3986, section 3.2, without userinfo), or empty. */
bool http_is_authority(struct slice text);
/* Whether a Content-Type has this media type, ignoring its parameters and case. */
bool http_is_media_type(struct slice content_type, const char *type);
/* Returns the delay in nanoseconds that Retry-After asks for, in seconds or as a date (RFC 9110,
 * 10.2.3); wall_ns is the present time. Returns 0 for a date in the past, -1 if the header is
 * absent or invalid. */
int64_t http_retry_after_ns(const struct http_headers *headers, uint64_t wall_ns);

#endif

/*
 * h2_message: the rules for the fields of an HTTP/2 request (RFC 9113, section 8), and its length.
 *
 * nghttp2 has them, too, but refuses a request without :authority and host, which gRPC servers
 * tolerate. So its rules are off in h2_server.c, and these are in their place.
 *
 * Owner: part of the connection, for the header block that is being received.
 *
 * Thread: the connection's worker.
 */
#ifndef PROFCOL_CORE_NET_H2_MESSAGE_H
#define PROFCOL_CORE_NET_H2_MESSAGE_H

#include "core/base/slice.h"

#include <stdbool.h>

struct h2_message {
    unsigned seen; /* fields that may come once only: a bit for each */
    bool is_trailers;
    bool has_fields;                      /* a field that is no pseudo-field came */
    bool is_options, is_connect, is_http; /* of :method and :scheme */
    char path_start;                      /* of :path */
    int64_t content_length;               /* in bytes; -1: not given */
};

enum h2_field_verdict {
    H2_FIELD_GOOD,
    H2_FIELD_IGNORED,   /* its name or value has a byte that is not allowed */
    H2_FIELD_MALFORMED, /* the stream has to be reset with PROTOCOL_ERROR */
};

/* Begins a header block. */
void h2_message_begin(struct h2_message *message, bool is_trailers);
/* Checks a decoded field, in the order of arrival. */
enum h2_field_verdict h2_message_field(struct h2_message *message, struct slice name,
                                       struct slice value);
/* Whether the head of a request is complete. Without :authority it is, too. */
bool h2_message_is_complete(const struct h2_message *message);

#endif

/*
 * http1_chunked: decodes the chunked coding of a request body strictly (RFC 9112, section 7.1).
 *
 * Extensions and trailers are skipped, within bounds. Lines end with CR LF and nothing else.
 *
 * Owner: plain data, zeroed before the first byte.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_NET_HTTP1_CHUNKED_H
#define PROFCOL_CORE_NET_HTTP1_CHUNKED_H

#include "core/base/slice.h"

enum {
    HTTP1_CHUNK_EXTENSION_MAX_BYTES = 256,
    HTTP1_TRAILERS_MAX_BYTES = 4 * 1024,
};

struct http1_chunked {
    uint8_t state;
    uint8_t digits;
    uint16_t skipped;   /* bytes of the extension, or of all trailers */
    uint64_t remaining; /* of the chunk */
};

enum http1_chunked_result {
    HTTP1_CHUNKED_MORE, /* *data is used up, or *payload is set and *data continues after it */
    HTTP1_CHUNKED_DONE, /* the body is complete; the rest of *data belongs to the next request */
    HTTP1_CHUNKED_BAD,
};
/* Removes bytes from the front of *data, up to and including the next piece of payload, which may
 * be empty. */
enum http1_chunked_result http1_chunked_step(struct http1_chunked *chunked, struct slice *data,
                                             struct slice *payload);

#endif

/*
 * http1_head: parses the head of an HTTP/1.1 request twice: with the parser library and with
 * stricter rules of our own.
 *
 * Anything that two readers of one connection could understand differently is refused (RFC 9112,
 * sections 3, 5, 6, 11.2): bare CR or LF, folded lines, blanks around a name, Content-Length with
 * Transfer-Encoding, either of them twice, any transfer coding other than "chunked".
 *
 * Owner: the caller owns the bytes; names are made lower case in place and all slices point into
 * them.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_NET_HTTP1_HEAD_H
#define PROFCOL_CORE_NET_HTTP1_HEAD_H

#include "core/net/http_types.h"

/* RFC 9112, section 3, recommends 8,000 bytes at least; links of explore that compare two
 * operations have more, if their names are long. */
enum { HTTP1_TARGET_MAX_BYTES = 16 * 1024 };

/* Finds the end of the head while its bytes arrive. All zero before the first byte. */
struct http1_scan {
    size_t scanned;
    size_t line_start;
};

enum http1_scan_result { HTTP1_SCAN_MORE, HTTP1_SCAN_WHOLE, HTTP1_SCAN_BAD };
/* Looks for the end of the head. data: everything since the first byte of the head. WHOLE: the
 * first *size_out bytes are the head, with its empty line. BAD: *status_out is the status to answer
 * with. */
enum http1_scan_result http1_scan(struct http1_scan *scan, struct slice data, size_t *size_out,
                                  int *status_out);

struct http1_head {
    struct slice method;
    struct slice path;  /* without the query */
    struct slice query; /* after the '?' */
    unsigned minor;     /* HTTP/1.0 or 1.1 */
    bool keep_alive;
    bool expect_continue;
    bool chunked;
    bool has_length;
    uint64_t content_length;
};

/* Parses a complete head. headers->items has room for HTTP_FIELDS_MAX. Returns 0, or the status to
 * refuse it with.
 */
int http1_head_parse(uint8_t *data, size_t size, struct http1_head *head,
                     struct http_headers *headers);

#endif

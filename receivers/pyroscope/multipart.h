/*
 * multipart: reads the parts of a multipart/form-data body.
 *
 * RFC 2046, section 5.1, and RFC 7578, as far as clients use them. Lines end with CR LF. The last
 * delimiter must be present, so a truncated body is an error. A header that would change the
 * meaning of a part's bytes (Content-Transfer-Encoding) is refused.
 *
 * Owner: slices point into the caller's body and Content-Type.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_PYROSCOPE_MULTIPART_H
#define PROFCOL_PYROSCOPE_MULTIPART_H

#include "core/base/error.h"
#include "core/base/slice.h"

enum {
    MULTIPART_BOUNDARY_MAX_BYTES = 70, /* RFC 2046, section 5.1.1 */
    MULTIPART_PARTS_MAX = 32,
    MULTIPART_HEAD_MAX_BYTES = 4096, /* of a part */
};

struct multipart_part {
    struct slice name; /* of the form field; empty: none */
    bool is_file;      /* it has a file name */
    struct slice body;
};

struct multipart {
    struct slice boundary;
    struct slice rest; /* after the delimiter of the next part */
    unsigned part_count;
};

/* Whether the Content-Type is multipart/form-data. */
bool multipart_is(struct slice content_type);
/* Finds the first delimiter. Returns false, with err set, if there is none or the boundary is
 * invalid. */
bool multipart_begin(struct multipart *multipart, struct slice content_type, struct slice body,
                     struct error *err);

enum multipart_result { MULTIPART_PART, MULTIPART_END, MULTIPART_BROKEN };
/* Reads the next part. */
enum multipart_result multipart_next(struct multipart *multipart, struct multipart_part *part,
                                     struct error *err);

#endif

/*
 * upload: one request of a client while it is taken apart: what it becomes, and how much it may
 * still grow to.
 *
 * Compressed parts are undone under the same limit and budget as the body, all parts of a request
 * together.
 *
 * Owner: who initialised it.
 *
 * Thread: one at a time, any.
 */
#ifndef PROFCOL_PYROSCOPE_UPLOAD_H
#define PROFCOL_PYROSCOPE_UPLOAD_H

#include "core/base/verdict.h"
#include "core/formats/series.h"
#include "core/net/compression.h"
#include "core/net/http_types.h"
#include "receivers/pyroscope/pyroscope_settings.h"

struct upload {
    const struct pyroscope_settings *settings;
    const struct http_headers *headers;
    struct budget *budget;
    struct profiles_builder *builder;
    struct arena arena;
    size_t plain_max;  /* bytes that compressed parts may become in all */
    size_t plain_left; /* and that they still may */
    bool unfolds;      /* they would become more */
    uint64_t now_ns;   /* for what does not say when it was */
};

/* plain_max: bytes that compressed parts may become in all; at most max_request_body_size. */
void upload_init(struct upload *upload, const struct pyroscope_settings *settings,
                 const struct http_headers *headers, size_t plain_max, struct budget *budget);
void upload_deinit(struct upload *upload);

/* Some bytes of the request without their compression. */
struct plain {
    struct slice bytes;
    struct buffer *buffer; /* NULL: they are the request's own */
};
bool upload_decompress(struct upload *upload, enum compression compression, struct slice bytes,
                       struct plain *plain, struct verdict *why);
/* gzip is told by its first bytes, as Pyroscope does. */
bool upload_open(struct upload *upload, struct slice bytes, struct plain *plain,
                 struct verdict *why);
void plain_close(struct plain *plain);

/* What the settings, or the header that they name, call the service of who does not name it. */
struct slice upload_default_service(const struct pyroscope_settings *settings,
                                    const struct http_headers *headers);
/* The service's name where the labels do not say it, then the builder's resource. */
void upload_begin_series(struct upload *upload, struct series *series);

#endif

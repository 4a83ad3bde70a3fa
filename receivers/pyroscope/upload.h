/*
 * upload: the state of reading one request of a client: its result, and how much it may still
 * decompress.
 *
 * Compressed parts are decompressed within the same limit and budget as the body, for all parts of
 * a request together.
 *
 * Owner: whoever initialised it.
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
    size_t plain_max;       /* limit in bytes for all decompressed parts together */
    size_t plain_left;      /* the rest of plain_max */
    bool unfolds;           /* the parts exceed plain_max */
    unsigned added_threads; /* which samples get threads and times: bits of enum added_threads
                               (core/data/sample_threads.h); 0: none */
    uint64_t now_ns;        /* for profiles without a time */
};

/* Initialises an upload. plain_max: limit in bytes for all decompressed parts together; at most
 * max_request_body_size. */
void upload_init(struct upload *upload, const struct pyroscope_settings *settings,
                 const struct http_headers *headers, size_t plain_max, struct budget *budget);
/* Frees the memory. */
void upload_deinit(struct upload *upload);

/* Decompressed bytes of a part of the request. */
struct plain {
    struct slice bytes;
    struct buffer *buffer; /* NULL: `bytes` point into the request */
};
/* Decompresses bytes of the request; free the result with plain_close. Returns false, with *why
 * set, if they are refused. */
bool upload_decompress(struct upload *upload, enum compression compression, struct slice bytes,
                       struct plain *plain, struct verdict *why);
/* Like upload_decompress, but recognises gzip by the first bytes, as Pyroscope does; otherwise
 * returns the bytes unchanged. */
bool upload_open(struct upload *upload, struct slice bytes, struct plain *plain,
                 struct verdict *why);
/* Frees the decompressed bytes. */
void plain_close(struct plain *plain);

/* Returns the service name for a client that sends none: from the header that the settings name,
 * otherwise from the settings. */
struct slice upload_default_service(const struct pyroscope_settings *settings,
                                    const struct http_headers *headers);
/* Adds the default service name if the labels have none, then begins the builder's resource. */
void upload_begin_series(struct upload *upload, struct series *series);

#endif

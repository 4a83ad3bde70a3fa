/*
 * pushes: converts a profiles request to PushRequests of push.v1, one for each pprof.
 *
 * Profiles with the same series, time and period become one pprof with several sample types; a
 * pprof that is too large is split. There is one pprof per request, because Pyroscope may have
 * stored parts of a request that it refuses, and these would count twice after a retry.
 *
 * Requests are built one at a time, because each repeats the stacks that it needs: if 100,000
 * resources share one large stack, all requests together would not fit into memory.
 *
 * Owner: the caller; the batch must live as long. Requests are separate buffers.
 *
 * Thread: the batch's worker.
 */
#ifndef PROFCOL_PYROSCOPE_PUSHES_H
#define PROFCOL_PYROSCOPE_PUSHES_H

#include "core/pipeline/batch.h"
#include "exporters/pyroscope/series_labels.h"

struct push_options {
    const struct label_settings *labels;
    struct label_limits *limits;
    const char *label; /* of the component, for the log */
    size_t max_profile_bytes;
    uint32_t max_samples; /* of a pprof */
    bool gzip;
    uint64_t now_ns; /* monotonic */
};

struct pushes;

/* Prepares the requests of a batch. */
struct pushes *pushes_new(struct batch *batch, const struct push_options *options);
/* Returns the next encoded request, or NULL after the last. Compresses it if `gzip` is set, unless
 * it is too small to gain from compression. */
struct buffer *pushes_next(struct pushes *pushes, bool *is_gzip_out);
/* Frees everything except requests that were returned. */
void pushes_free(struct pushes *pushes);

#endif

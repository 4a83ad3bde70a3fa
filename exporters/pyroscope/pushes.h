/*
 * pushes: a profiles request as PushRequests of push.v1, one for each pprof.
 *
 * Profiles with the same series, time and period become one pprof with their sample types side by
 * side; what is too large is cut into several. One pprof a request, because Pyroscope keeps what it
 * could of a request that it refuses: sent again, that would count twice.
 *
 * They are made one after the other, because each repeats the stacks that it needs: of a hundred
 * thousand resources with one large stack no memory could hold them all.
 *
 * Owner: the caller; the batch has to live as long. Requests are buffers of their own.
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

struct pushes *pushes_new(struct batch *batch, const struct push_options *options);
/* The next one, encoded. NULL: that was the last. When gzip is asked for it is compressed, unless
 * it is so small that nobody gains by it. */
struct buffer *pushes_next(struct pushes *pushes, bool *is_gzip_out);
void pushes_free(struct pushes *pushes);

#endif

/*
 * pushes: a profiles request as PushRequests of push.v1, one for each pprof.
 *
 * Profiles with the same series, time and period become one pprof with their sample types side by
 * side; what is too large is cut into several. One pprof a request, because Pyroscope keeps what it
 * could of a request that it refuses: sent again, that would count twice.
 *
 * Owner: the caller owns the list; requests are buffers of their own.
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

struct pushes {
    struct buffer **requests; /* encoded, and compressed when that is asked for */
    size_t count;
    size_t capacity;
};

void pushes_make(struct pushes *out, struct batch *batch, const struct push_options *options);
void pushes_deinit(struct pushes *pushes);

#endif

/*
 * reading: converts the body of a request to the request for the pipelines: a small one at once, a
 * large one in a job (core/base/job.h).
 *
 * Reading a body of 20 MiB can take more than a second (docs/architecture.md, Costs), during which
 * the loop serves other connections and SIGTERM. If the client is gone before the job's turn, the
 * body is not read. If it goes meanwhile, the receiver drops the result.
 *
 * Owner: the receiver's struct, on the heap if the body is large; freed in `done`.
 *
 * Thread: `read` on any; the rest on the exchange's worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_READING_H
#define PROFCOL_CORE_PIPELINE_READING_H

#include "core/base/job.h"
#include "core/base/verdict.h"
#include "core/net/server.h"

struct reading {
    struct job job;
    struct exchange *exchange; /* the receiver owns it until it answers */
    struct buffer *body;       /* one reference, which `read` takes over */
    /* Results: */
    struct buffer *request; /* NULL: see `why` */
    uint32_t items;         /* spans or samples; 0: nothing to pass on */
    struct verdict why;
    /* Sets the results. It may use only the head of the exchange and the number of bytes
     * received. */
    void (*read)(struct reading *reading);
    /* Called last. */
    void (*done)(struct reading *reading);
};

/* Bodies of this size or more are read by a job. */
#define READING_LARGE_BYTES ((size_t)256 * 1024)
/* Bodies may contain compressed parts, whose plain size is known only after decompression. A body
 * of fewer than READING_PACKED_BYTES is first read on the loop. If its parts decompress to more
 * than READING_UNPACKED_BYTES, that is stopped, and a job begins again. */
#define READING_PACKED_BYTES ((size_t)64 * 1024)
#define READING_UNPACKED_BYTES ((size_t)1024 * 1024)

/* Starts to read. Call it in on_request, with `exchange`, `body`, `read` and `done` set. */
void reading_start(struct reading *reading);

/* Call it in `done`: drops the result if the client no longer waits for the answer, because it will
 * send the data again. Counts it as refused. */
void reading_drop_abandoned(struct reading *reading, struct counter *refused);

#endif

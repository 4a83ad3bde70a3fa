/*
 * reading: a request's body becomes the request for the pipelines: at once where it is small,
 * beside the worker's loop (core/base/job.h) where it is large.
 *
 * Reading a body of 20 MiB can take more than a second (docs/architecture.md, Costs), in which
 * other connections and SIGTERM are served. A reading whose client has gone before its turn does
 * not begin; the result of one whose client has gone meanwhile is the receiver's to drop.
 *
 * Owner: the receiver's struct, on the heap where the body is large; free in `done`.
 *
 * Thread: `read` on any, and it says so in its own header; the rest on the exchange's worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_READING_H
#define PROFCOL_CORE_PIPELINE_READING_H

#include "core/base/job.h"
#include "core/base/verdict.h"
#include "core/net/server.h"

struct reading {
    struct job job;
    struct exchange *exchange; /* the receiver has it until its answer */
    struct buffer *body;       /* one reference, `read` takes it over */
    /* What comes out: */
    struct buffer *request; /* NULL: `why` says why */
    uint32_t items;         /* 0: nobody needs it */
    struct verdict why;
    /* Fills in what comes out. Of the exchange it may see what its head says, and
     * how many bytes were received. */
    void (*read)(struct reading *reading);
    /* The last call. */
    void (*done)(struct reading *reading);
};

/* Bodies of so many bytes are read beside the loop. */
#define READING_LARGE_BYTES ((size_t)256 * 1024)
/* Clients compress what is in the body, too, and that tells its length only when it is undone. A
 * body of fewer bytes than the first is read at once, unless its parts become more than the second:
 * then that is given up, and begun again beside the loop. */
#define READING_PACKED_BYTES ((size_t)64 * 1024)
#define READING_UNPACKED_BYTES ((size_t)1024 * 1024)

/* In on_request; fields up to `body`, `read` and `done` are set. */
void reading_start(struct reading *reading);

/* In `done`: what nobody waits for any more is dropped, its sender sends it again. It counts as
 * refused. */
void reading_drop_abandoned(struct reading *reading, struct counter *refused);

#endif

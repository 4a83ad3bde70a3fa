/*
 * batch_cut: splits a batch into several.
 *
 * A part contains only the dictionary entries that its items refer to. What it repeats (resource,
 * scope, dictionary) counts towards a limit in bytes, but is known only once the part is made. So
 * the cutter expects of each part what the one before it repeated, and makes a part that turns out
 * too large again, with fewer items. All parts together repeat a limited number of bytes
 * (cut_source.h).
 *
 * Owner: the functions take ownership of the batch, and return a list linked by batch->next.
 *
 * Thread: the batch's worker, but for batch_cutter_run.
 */
#ifndef PROFCOL_CORE_PIPELINE_BATCH_CUT_H
#define PROFCOL_CORE_PIPELINE_BATCH_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch;

/* What a part may have. */
struct cut_limits {
    uint32_t max_items; /* not 0 */
    size_t max_bytes;   /* encoded; 0: no limit. A single item may be larger, and goes alone */
    bool
        is_sparing; /* parts save memory: together they repeat no more bytes than the request has */
};
/* Whether the batch exceeds the limits and has items to divide. */
bool cut_limits_are_exceeded(const struct cut_limits *limits, struct batch *batch);
/* Splits the batch into parts within the limits, in order; each has its part of the receipt. When
 * the room is used up, the rest stays in one part. */
struct batch *batch_cut(struct batch *batch, const struct cut_limits *limits);

/* Like batch_cut, in three calls; the second one may run in a job (core/base/job.h). The batch
 * must exceed the limits, and must not change until the last call. */
struct batch_cutter {
    struct batch *whole;
    struct cut_limits limits;
    struct cut_part *parts; /* as bytes */
    size_t part_count;
};
void batch_cutter_init(struct batch_cutter *cutter, struct batch *whole,
                       const struct cut_limits *limits);
/* Any thread: reads the bytes of the batch, and charges its budget. */
void batch_cutter_run(struct batch_cutter *cutter);
/* The last call: the parts as batches. The whole is gone. */
struct batch *batch_cutter_finish(struct batch_cutter *cutter);
/* Instead: the parts are gone, if there are any, and the whole stays. */
void batch_cutter_cancel(struct batch_cutter *cutter);

#endif

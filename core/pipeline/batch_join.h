/*
 * batch_join: merges several batches into one, and splits one into several.
 *
 * Traces are concatenated; profiles get one dictionary
 * (core/data/profiles_merge.h). A part contains only the entries that its items refer to. What it
 * repeats (resource, scope, dictionary) counts towards a limit in bytes, but is known only once the
 * part is made. So the cutter expects of each part what the one before it repeated, and makes a
 * part that turns out too large again, with fewer items.
 *
 * Owner: lists are linked by batch->next; the functions take ownership of their arguments.
 *
 * Thread: the batches' worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_BATCH_JOIN_H
#define PROFCOL_CORE_PIPELINE_BATCH_JOIN_H

#include "core/pipeline/batch.h"

/* Returns one batch with the items of all batches, in order. They must have the same signal, and
 * their receipts be settled or NULL. The context is that of the first one. */
struct batch *batch_join(struct batch *list);
/* How many bytes the parts of a split request may repeat (resource, scope, dictionary), plus
 * 512 bytes for each part: 31 times its size, but no more than 16 MiB. So its parts, and a rest
 * that is not split, are together no larger than the request plus that. */
struct cut_room {
    size_t left;
    size_t
        last; /* the bytes that the last part repeated: the next one is expected to do the same */
};
struct cut_room cut_room_of(size_t size_bytes);
/* A part was made. part_bytes: what it has, or what was read for it, if more; item_bytes: of its
 * items themselves. */
void cut_room_use(struct cut_room *room, size_t part_bytes, size_t item_bytes);
static inline bool cut_room_is_used_up(const struct cut_room *room)
{
    return room->left <= room->last;
}

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

/* The same in three calls, the second of which may run beside the loop (core/base/job.h). The
 * batch exceeds the limits, and nobody changes it until the last. */
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

/*
 * batch_join: several batches as one, and one as several, for queues that shape what they send.
 *
 * Traces are joined by standing one behind the other; profiles get one dictionary
 * (core/data/profiles_merge.h). A part carries only what its items refer to.
 *
 * Owner: lists go through batch->next; what is given is taken over.
 *
 * Thread: the batches' worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_BATCH_JOIN_H
#define PROFCOL_CORE_PIPELINE_BATCH_JOIN_H

#include "core/pipeline/batch.h"

/* One batch with the items of all of them, in order; one signal, receipts settled or NULL. The
 * first one's context stays. */
struct batch *batch_join(struct batch *list);
/* How much of a request that is cut may stand in several parts (resource, scope, dictionary), with
 * 512 bytes for each part: 31 times its size, but no more than 16 MiB. So its parts, and a rest
 * that stays in one piece, are no larger than itself and that. */
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
/* Parts of at most max_items each, in order; each has its part of the receipt. When the room
 * is used up the rest stays in one piece. */
struct batch *batch_cut(struct batch *batch, uint32_t max_items);
/* The same where smaller parts are wanted to save memory: what stands in several of them takes no
 * more than the request itself. */
struct batch *batch_cut_sparingly(struct batch *batch, uint32_t max_items);

/* Either of them in three calls, the second of which may run beside the loop (core/base/job.h). The batch
 * has more than max_items, and nobody changes it until the last. */
struct batch_cutter {
    struct batch *whole;
    uint32_t max_items;
    bool is_sparing;
    struct cut_part *parts; /* as bytes */
    size_t part_count;
};
void batch_cutter_init(struct batch_cutter *cutter, struct batch *whole, uint32_t max_items,
                       bool is_sparing);
/* Any thread: reads the bytes of the batch, and charges its budget. */
void batch_cutter_run(struct batch_cutter *cutter);
/* The last call: the parts as batches. The whole is gone. */
struct batch *batch_cutter_finish(struct batch_cutter *cutter);
/* Instead: the parts are gone, if there are any, and the whole stays. */
void batch_cutter_cancel(struct batch_cutter *cutter);

#endif

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
/* What stands in every part (resource, scope, dictionary) may make the parts of a batch of this
 * size so many bytes large, or read so many: 64 times its size, but no more than itself and 32 MiB.
 * Each counts as a little more than its bytes. */
size_t batch_cut_room(size_t size_bytes);
/* Parts of at most max_items each, in order; each has its part of the receipt. When the room
 * (batch_cut_room) is used up the rest stays in one piece. */
struct batch *batch_cut(struct batch *batch, uint32_t max_items);

#endif

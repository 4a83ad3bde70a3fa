/*
 * batch_join: merges several batches into one.
 *
 * Traces are concatenated; profiles get one dictionary (core/data/profiles_merge.h). The opposite
 * is in batch_cut.h.
 *
 * Owner: the list is linked by batch->next; the function takes ownership of it.
 *
 * Thread: the batches' worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_BATCH_JOIN_H
#define PROFCOL_CORE_PIPELINE_BATCH_JOIN_H

struct batch;

/* Returns one batch with the items of all batches, in order. They must have the same signal, and
 * their receipts be settled or NULL. The context is that of the first one. */
struct batch *batch_join(struct batch *list);

#endif

/*
 * batch_sending: when a shard sends, and what becomes of its batches.
 *
 * A shard sends when it holds send_batch_size items, or when its first request has waited for
 * `timeout`. Batches are made only when they can go: what waits stays as it came, in the order in
 * which it came. What is under way counts as held until the next component has accepted it.
 *
 * Owner: a batch under way belongs to the components behind; its receipt is here.
 *
 * Thread: that of the node.
 */
#ifndef PROFCOL_PROCESSORS_BATCH_BATCH_SENDING_H
#define PROFCOL_PROCESSORS_BATCH_BATCH_SENDING_H

struct shard;

/* Of a new shard, whose node is set. */
void batch_sending_init(struct shard *shard);
/* Sends what is due, and sets the timer for the rest. */
void batch_sending_pump(struct shard *shard);
/* Everything that is held has waited long enough. */
void batch_sending_flush(struct shard *shard);
/* No batch is under way any more. Gives up what is held: settles receipts, and adds items that
 * nobody sends again to node->lost. */
void batch_sending_stop(struct shard *shard);

#endif

/*
 * batch_sending: decides when a shard sends, and handles the verdicts on its batches.
 *
 * A shard sends when it holds send_batch_size items, or when its first request has waited for
 * `timeout`. A batch is made only when it can be sent: until then requests stay unchanged, in the
 * order of their arrival. A batch that is being sent counts as held until the next component has
 * accepted it.
 *
 * Owner: the components behind own a batch that is being sent; its receipt is here.
 *
 * Thread: that of the node.
 */
#ifndef PROFCOL_PROCESSORS_BATCH_BATCH_SENDING_H
#define PROFCOL_PROCESSORS_BATCH_BATCH_SENDING_H

struct shard;

/* Initialises a new shard, whose `node` is set. */
void batch_sending_init(struct shard *shard);
/* Sends the requests that are due, and sets the timer for the rest. */
void batch_sending_pump(struct shard *shard);
/* Makes all held requests due. */
void batch_sending_flush(struct shard *shard);
/* Gives up all held requests: settles their receipts, and adds the items that no sender will
 * send again to node->lost. No batch is being sent any more. */
void batch_sending_stop(struct shard *shard);

#endif

/*
 * next_batch: makes the next batch to send from the oldest requests of a shard.
 *
 * Small requests are merged until there are send_batch_size items, and a request with more than
 * send_batch_max_size items left is split. A batch of one whole request is that request, unchanged.
 *
 * Owner: the caller gets the batch and the receipts; the shard keeps the rest of a request.
 *
 * Thread: that of the node.
 */
#ifndef PROFCOL_PROCESSORS_BATCH_NEXT_BATCH_H
#define PROFCOL_PROCESSORS_BATCH_NEXT_BATCH_H

#include <stdbool.h>

struct receipt_group;
struct shard;

/* The senders of a batch, who get its verdict. */
struct senders {
    struct receipt_group *receipts; /* of the requests in the batch; NULL: none */
    bool were_told_success;         /* at least one sender got success */
    bool have_no_receipt;           /* at least one; losses must be counted here */
};

/* Returns the batch, without a context or a receipt. The shard must hold a request. */
struct batch *next_batch(struct shard *shard, struct senders *senders_out);

#endif

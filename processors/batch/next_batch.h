/*
 * next_batch: makes the next batch to send of the first requests that a shard holds.
 *
 * Small requests are merged until there are send_batch_size items, and a request that has more than
 * send_batch_max_size left is split. A request that goes alone stays as it came.
 *
 * Owner: the caller gets the batch and the receipts; the shard keeps what is left of a request.
 *
 * Thread: that of the node.
 */
#ifndef PROFCOL_PROCESSORS_BATCH_NEXT_BATCH_H
#define PROFCOL_PROCESSORS_BATCH_NEXT_BATCH_H

#include <stdbool.h>

struct receipt_group;
struct shard;

/* Who is told what became of a batch. */
struct senders {
    struct receipt_group *receipts; /* of the requests in it; NULL: none */
    bool were_told_success;         /* some of them */
    bool have_no_receipt;           /* some of them: nobody else would say that it is lost */
};

/* Returns the batch, without context and receipt. The shard must hold a request. */
struct batch *next_batch(struct shard *shard, struct senders *senders_out);

#endif

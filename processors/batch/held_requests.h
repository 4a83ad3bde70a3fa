/*
 * held_requests: the requests that a shard holds, in the order of their arrival.
 *
 * Owner: the shard.
 *
 * Thread: that of the node.
 */
#ifndef PROFCOL_PROCESSORS_BATCH_HELD_REQUESTS_H
#define PROFCOL_PROCESSORS_BATCH_HELD_REQUESTS_H

#include <stddef.h>
#include <stdint.h>

struct batch;
struct held_request;
struct shard;

/* Adds the batch at the end. Takes ownership of it and of its receipt. held_bytes: the bytes
 * reserved for it. */
void held_requests_append(struct shard *shard, struct batch *batch, size_t held_bytes);
/* Returns the oldest request. NULL if there is none. */
struct held_request *held_requests_first(const struct shard *shard);
/* Removes the oldest request, after its last items were sent or given up. Releases the bytes
 * reserved for it, and frees its batch if there still is one. The caller has taken its receipt. */
void held_requests_remove_first(struct shard *shard);
/* Drops the first requests as long as their clients have given up: these will send the data
 * again. */
void held_requests_drop_abandoned(struct shard *shard);
/* Returns the number of items that are not sent yet. */
uint32_t held_requests_items_left(const struct held_request *request);

#endif

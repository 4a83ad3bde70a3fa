/*
 * held_requests: the requests that a shard holds, in the order in which they came.
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

/* Adds the batch at the end. Takes ownership, and over its receipt. held_bytes: what was reserved
 * for it. */
void held_requests_append(struct shard *shard, struct batch *batch, size_t held_bytes);
/* Returns the oldest; NULL: there is none. */
struct held_request *held_requests_first(const struct shard *shard);
/* Removes the oldest one, of which nothing is left or the rest is lost, and gives back what was
 * reserved for it. Its batch, if still there, is freed. Its receipt belongs to the caller. */
void held_requests_remove_first(struct shard *shard);
/* Drops the first ones whose clients have given up: they will send the data again. */
void held_requests_drop_abandoned(struct shard *shard);
/* Returns the items that are not sent yet. */
uint32_t held_requests_items_left(const struct held_request *request);

#endif

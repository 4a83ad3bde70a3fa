/*
 * shards: finds the shard for a request, by the values of metadata_keys.
 *
 * Owner: the node.
 *
 * Thread: that of the node.
 */
#ifndef PROFCOL_PROCESSORS_BATCH_SHARDS_H
#define PROFCOL_PROCESSORS_BATCH_SHARDS_H

struct batch_node;
struct context;

/* Returns the shard for requests with these headers, and creates it if necessary. NULL if that
 * would exceed metadata_cardinality_limit. */
struct shard *shards_find(struct batch_node *node, const struct context *context);
/* Stops all shards and frees them. */
void shards_stop(struct batch_node *node);

#endif

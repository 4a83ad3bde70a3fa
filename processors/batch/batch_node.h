/*
 * batch_node: the data of the processor batch.
 *
 * A node divides what it gets into shards, by the values of metadata_keys. A shard holds requests
 * as they came until there is a reason to send (batch_sending.h); only then are they merged and
 * split (next_batch.h).
 *
 * Owner: the node owns its shards, a shard the requests that it holds.
 *
 * Thread: that of the node; the limit of what is held is an atomic over all workers.
 */
#ifndef PROFCOL_PROCESSORS_BATCH_BATCH_NODE_H
#define PROFCOL_PROCESSORS_BATCH_BATCH_NODE_H

#include "core/base/container_of.h"
#include "core/base/index_table.h"
#include "core/base/list.h"
#include "core/base/log.h"
#include "core/pipeline/component.h"
#include "core/pipeline/cut_source.h"
#include "core/pipeline/offer.h"

/* When the sender is told success. */
enum ack { ACK_ADMITTED, ACK_DELIVERED };

struct batch_settings {
    int64_t timeout;
    uint64_t send_batch_size;
    uint64_t send_batch_max_size;
    struct config_strings metadata_keys; /* lower case after check */
    uint64_t metadata_cardinality_limit;
    uint64_t max_held_mib;
    int ack;
};

struct batch_processor {
    struct component component;
    struct budget held;
};

/* A request as it came, or what is left of it. */
struct held_request {
    struct list_link link; /* of its shard */
    struct batch *batch;
    struct receipt *receipt; /* of `ack: delivered`; one open part */
    bool acknowledged;       /* to its sender, by this processor or one before it */
    size_t held_bytes;
    /* When it is split: */
    struct cut_source source;
    uint32_t taken; /* items */
    struct cut_room room;
};

/* What has the same values of metadata_keys. */
struct shard {
    struct offers offers; /* of batches */
    struct batch_node *node;
    struct slice key;
    struct context *context; /* those values; NULL without metadata_keys */
    struct list requests;    /* oldest first */
    uint64_t items;          /* in all of them */
    size_t due;              /* so many of the first of them have waited long enough */
    bool by_timeout;         /* what made it send, for the metrics */
    struct timer timeout;
};

struct batch_node {
    struct node node;
    struct arena arena; /* of the next two */
    struct shard **shards;
    struct index_table shards_by_key;
    uint32_t shard_count, shard_capacity;
    struct profiles_merge *merge; /* of profiles */
    struct histogram *send_size;
    struct counter *size_triggers;
    struct counter *timeout_triggers;
    struct counter *refused; /* on arrival */
    struct counter *dropped;
    struct gauge *cardinality;
    struct log_interval too_large;
    uint64_t lost; /* items that were given up at the stop */
};

/* What a held request takes beside its bytes, about: many tiny ones must not pass below the limit.
 */
enum { HOLDING_BYTES = 1024 };

static inline const struct batch_settings *batch_node_settings(const struct batch_node *node)
{
    return node->node.component->settings;
}

/* Returns the limit of what is held, over all workers. */
static inline struct budget *batch_node_held(const struct batch_node *node)
{
    return &container_of(node->node.component, struct batch_processor, component)->held;
}

#endif

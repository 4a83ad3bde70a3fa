/*
 * batch_node: the data of the processor batch.
 *
 * A node divides requests among shards by the values of metadata_keys. A shard holds requests
 * unchanged until it is time to send (batch_sending.h); only then are they merged and split
 * (next_batch.h).
 *
 * Owner: the node owns its shards, a shard the requests that it holds.
 *
 * Thread: that of the node; the limit of held bytes is an atomic over all workers.
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

/* When the sender gets its answer: on admission, or after delivery. */
enum ack { ACK_ADMITTED, ACK_DELIVERED };

struct batch_settings {
    int64_t timeout;
    uint64_t send_batch_size;
    uint64_t send_batch_max_size;
    struct config_strings metadata_keys; /* lower case after `check` */
    uint64_t metadata_cardinality_limit;
    uint64_t max_held_mib;
    int ack;
};

struct batch_processor {
    struct component component;
    struct budget held;
};

/* A held request, or what is left of it. */
struct held_request {
    struct list_link link; /* of shard->requests */
    struct batch *batch;
    struct receipt *receipt; /* for `ack: delivered`; has one open part */
    bool acknowledged;       /* by this processor or one before it */
    size_t held_bytes;
    /* While it is being split: */
    struct cut_source source;
    uint32_t taken; /* number of items already sent */
    struct cut_room room;
};

/* The requests with the same values of metadata_keys. */
struct shard {
    struct offers offers; /* of batches being sent */
    struct batch_node *node;
    struct slice key;
    struct context *context; /* these values; NULL without metadata_keys */
    struct list requests;    /* oldest first */
    uint64_t items;          /* in all requests */
    size_t due;              /* how many of the first requests have waited for `timeout` */
    bool by_timeout;         /* why it sends, for the metrics */
    struct timer timeout;
};

struct batch_node {
    struct node node;
    struct arena arena; /* memory of the next two */
    struct shard **shards;
    struct index_table shards_by_key;
    uint32_t shard_count, shard_capacity;
    struct profiles_merge *merge; /* for profiles */
    struct histogram *send_size;
    struct histogram *send_bytes; /* NULL unless metrics are detailed */
    struct counter *size_triggers;
    struct counter *timeout_triggers;
    struct counter *refused; /* items refused on arrival */
    struct counter *dropped;
    struct gauge *cardinality;
    struct log_interval too_large;
    uint64_t lost; /* items given up at the stop */
};

/* About how much memory a held request takes besides its bytes. It is counted so that many tiny
 * requests cannot exceed the limit. */
enum { HOLDING_BYTES = 1024 };

static inline const struct batch_settings *batch_node_settings(const struct batch_node *node)
{
    return node->node.component->settings;
}

/* Returns the limit of held bytes, over all workers. */
static inline struct budget *batch_node_held(const struct batch_node *node)
{
    return &container_of(node->node.component, struct batch_processor, component)->held;
}

#endif

/*
 * batch: some spans or some samples on their way, as bytes and a lazy tree over them.
 *
 * Traces: one or more requests, merged by standing one behind the other (parts). Profiles: exactly
 * one request with its dictionary; merging makes a new one (core/data/profiles_merge.h). Parts
 * were scanned, so reading needs no checks.
 *
 * Owner: exactly one at a time; `consume` takes it over. Opening mutates, so a batch belongs to
 * one worker and asserts so. Fan-out makes clones that share the bytes and nothing else; therefore
 * whoever holds a batch may change it.
 *
 * Thread: batch->owner, or the job that it is lent to. To other threads go finished bytes only.
 */
#ifndef PROFCOL_CORE_PIPELINE_BATCH_H
#define PROFCOL_CORE_PIPELINE_BATCH_H

#include "core/base/arena.h"
#include "core/base/buffer.h"
#include "core/data/dictionary.h"
#include "core/data/message.h"
#include "core/data/otlp.h"
#include "core/pipeline/receipt.h"

struct branch;
struct reservation;
struct worker;

struct batch_part {
    struct buffer *buffer; /* one reference */
    struct message root;   /* over its bytes */
};

/* What came with the request beside its body (include_metadata): shared by reference, immutable.
 * NULL in a batch: nothing. */
struct context {
    atomic_uint references;
    struct context_entry {
        const char *name; /* lower case */
        const char *value;
    } * entries;
    size_t entry_count;
    char peer[64]; /* client address */
    struct arena arena;
};
struct context *context_new(void);
struct context *context_ref(struct context *context);
void context_unref(struct context *context);
/* NULL: not there. */
const char *context_get(const struct context *context, const char *name);

struct batch {
    enum signal signal;
    struct worker *owner; /* NULL: lent to a job */
    struct receipt
        *receipt; /* one open part of it; NULL: somebody has taken responsibility already */
    struct context *context; /* one reference, or NULL */
    uint64_t peer;           /* who sent it (exchange_peer_key); 0: not known, or several */
    struct batch_part *parts;
    size_t part_count;
    uint32_t items;      /* spans, or Sample messages */
    uint64_t arrived_ns; /* monotonic */
    struct arena arena;
    struct dictionary *dictionary; /* of profiles; NULL until batch_dictionary */
    struct batch *next;            /* for whoever holds it in a list */
    bool acknowledged;             /* its sender was told success, so nobody sends it again */
    /* The outlet's (outlet.h): */
    struct branch *branch;           /* by which it came last */
    struct reservation *reservation; /* of room for it behind that; one reference, or NULL */
    uint64_t refused_ns;             /* when it was handed back first; 0: never */
    int64_t backoff_ns;              /* of the next time */
};

/* Takes over one reference to the buffer. receipt and context may be NULL; a context reference is
 * taken over. */
struct batch *batch_new(struct worker *owner, enum signal signal, struct buffer *buffer,
                        uint32_t items, struct receipt *receipt, struct context *context);
/* The same data with an overlay of its own. A changed batch is written out first, once
 * (batch_flatten), and shares the result. Without a receipt, which the caller sets, and without the
 * outlet's members. */
struct batch *batch_clone(struct batch *batch);
/* Replaces parts and their changes by the bytes they mean. */
void batch_flatten(struct batch *batch);
/* The same, and gives back what was opened but not changed: for a batch that will wait. */
void batch_compact(struct batch *batch);
/* Of data from several peers none is known. Traces: takes over the parts of `other` and frees it
 * (its receipt must be settled or NULL). */
void batch_append(struct batch *batch, struct batch *other);
bool batch_is_changed(const struct batch *batch);

/* Lends the batch to a job (core/base/job.h), which may read and change its bytes and its tree as
 * the worker would. Meanwhile the worker asks its receipt at most whether it is abandoned. */
void batch_lend(struct batch *batch);
void batch_take_back(struct batch *batch, struct worker *owner);

/* Settles its part of the receipt, if it still has one. */
void batch_settle(struct batch *batch, const struct verdict *verdict);
/* Asserts that the receipt is settled. */
void batch_free(struct batch *batch);
/* Both. */
void batch_drop(struct batch *batch, const struct verdict *verdict);

/* Of profiles: the tables of its one request. */
struct dictionary *batch_dictionary(struct batch *batch);

/* The encoded request as slices (valid as long as the batch is). */
void batch_gather(struct batch *batch, struct slice_list *out);
/* Encoded size in bytes. */
size_t batch_size(struct batch *batch);
/* What it pins: capacities of its buffers plus its arena. */
size_t batch_memory(const struct batch *batch);

const char *signal_name(enum signal signal); /* "traces" */
const char *signal_item_name(
    enum signal signal); /* "spans", "profile_samples": as in the Collector's metrics */

#endif

/*
 * batch: data of one signal in the pipelines, as bytes with a lazy tree over them.
 *
 * Profiles: exactly one request with its dictionary; merging makes a new one
 * (core/data/profiles_merge.h). Other signals: one or more requests, merged by concatenation
 * (parts). Parts were scanned, so reading needs no checks.
 *
 * Owner: exactly one at a time; `consume` takes ownership. Opening a message changes the tree, so a
 * batch belongs to one worker, which it asserts. A fan-out makes clones that share only the bytes,
 * so the owner may always change its batch.
 *
 * Thread: batch->owner, or the job that it is lent to. Other threads get only finished bytes.
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
struct identity;
struct queue;
struct reservation;
struct worker;
struct sample_marks;

struct batch_part {
    struct buffer *buffer; /* one reference */
    struct message root;   /* over its bytes */
};

/* The request's headers and client address (include_metadata): shared by reference, immutable.
 * NULL in a batch: none. */
struct context {
    atomic_uint references;
    struct context_entry {
        const char *name; /* lower case */
        const char *value;
    } * entries;
    size_t entry_count;
    struct identity *identity; /* of an authenticated client (identity.h); one reference, or NULL.
                                  Apart from the headers, because a client may send any of those */
    char peer[64];             /* client address */
    struct arena arena;
};
/* Returns an empty context with one reference. */
struct context *context_new(void);
/* Adds a reference and returns the context. NULL is allowed. */
struct context *context_ref(struct context *context);
/* Drops a reference. NULL is allowed. */
void context_unref(struct context *context);
/* Returns the value of the header `name` (lower case); NULL: there is none. */
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
    uint32_t items;      /* spans, Sample messages, data points or log records */
    uint64_t arrived_ns; /* monotonic */
    /* Of profiles: their format has no Links; the reader made them of labels (span_labels.h). */
    bool links_are_labels;
    bool has_added_threads; /* samples may have threads that a reader added (threads_behind.h) */
    bool arrived_empty;     /* a profiles request without samples (empty_profiles.h) */
    struct arena arena;
    struct dictionary_layout layout; /* of the bytes of profiles, if the scan has told it */
    struct dictionary *dictionary;   /* of profiles; NULL until batch_dictionary */
    struct batch *next;              /* for whoever holds it in a list */
    bool acknowledged;               /* its sender was told success, so nobody sends it again */
    /* The outlet's (node.h): */
    struct branch *branch;           /* by which it came last; NULL: none, or it cannot go back,
                                        because its receipt is settled */
    size_t *branch_users;            /* the branch's count of such batches; NULL without a branch */
    struct reservation *reservation; /* of room for it behind that; one reference, or NULL */
    uint64_t refused_ns;             /* when it was handed back first; 0: never */
    int64_t backoff_ns;              /* of the next time */
};

/* Returns a batch of `items` items in the buffer. Takes over one reference to the buffer
 * and one to the context. receipt and context may be NULL. */
struct batch *batch_new(struct worker *owner, enum signal signal, struct buffer *buffer,
                        uint32_t items, struct receipt *receipt, struct context *context);
/* Returns a batch with the same data and a lazy tree of its own. A changed batch is written out
 * first, once (batch_flatten), and both share the result. The clone has no receipt, which the
 * caller sets, and not the outlet's members. */
struct batch *batch_clone(struct batch *batch);
/* Writes each changed part out as plain bytes: over the received ones if only the batch has them
 * and nothing became longer (message_shrinks), else into a new buffer. If there was a change, the
 * arena is emptied and the dictionary is gone: nothing taken from them or from the bytes is valid
 * afterwards. */
void batch_flatten(struct batch *batch);
/* The same, and also frees nodes that were opened but not changed: for a batch that will wait. */
void batch_compact(struct batch *batch);
/* Appends the parts of `other`, which is not of profiles, and frees it (its receipt must be settled
 * or NULL). If the peers differ, the batch has none. */
void batch_append(struct batch *batch, struct batch *other);
/* Sets the branch by which the batch came, and counts it in *users. NULL, NULL: none. */
void batch_set_branch(struct batch *batch, struct branch *branch, size_t *users);
/* Copies who sent a batch, when it arrived, and how it was read, to one that has all or a part of
 * its items. */
void batch_copy_origin(struct batch *to, const struct batch *from);
/* Copies what the outlet knows of a batch to one that is made of it. */
void batch_copy_way(struct batch *to, const struct batch *from);
/* Whether something in the batch was changed since it was made or flattened. */
bool batch_is_changed(const struct batch *batch);

/* Lends the batch to a job (core/base/job.h), which may read and change its bytes and its tree as
 * the worker would. Meanwhile the worker asks its receipt at most whether it is abandoned. */
void batch_lend(struct batch *batch);
void batch_take_back(struct batch *batch, struct worker *owner);

/* Settles its part of the receipt, if it still has one. Afterwards nobody can hand it back. */
void batch_settle(struct batch *batch, const struct verdict *verdict);
/* Asserts that the receipt is settled. */
void batch_free(struct batch *batch);
/* Settles the batch's part of the receipt, and frees the batch. */
void batch_drop(struct batch *batch, const struct verdict *verdict);

/* Returns the dictionary of a profiles batch, which the batch owns. Made at the first call. */
struct dictionary *batch_dictionary(struct batch *batch);
/* Takes out of a profiles batch what nothing refers to any more (core/data/prune.h), and the
 * original payloads of its profiles. Call it once before passing a batch on from which the
 * component removed or replaced something, so that the removed text does not leave. Nothing taken
 * from the batch, its arena or its dictionary is valid afterwards. Batches of other signals stay as
 * they are. */
void batch_prune(struct batch *batch);
/* The same if it is known what all samples that are left refer to; NULL: it is not. */
void batch_prune_marked(struct batch *batch, const struct sample_marks *marks);

/* The encoded request as slices (valid as long as the batch is). */
void batch_gather(struct batch *batch, struct slice_list *out);
/* Encoded size in bytes. */
size_t batch_size(struct batch *batch);
/* Returns the bytes that it keeps in memory: the capacities of its buffers plus its arena. */
size_t batch_memory(const struct batch *batch);
/* Returns its size in the unit of the queue; 0 if that has none. */
uint64_t batch_queued_size(struct batch *batch, const struct queue *queue);

const char *signal_name(enum signal signal); /* "traces" */
const char *signal_item_name(
    enum signal signal); /* "spans", "profile_samples": as in the Collector's metrics */

#endif

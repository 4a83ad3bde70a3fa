#include "core/pipeline/batch.h"

#include "core/base/budget.h"
#include "core/base/memory.h"
#include "core/base/worker.h"
#include "core/data/profiles_merge.h"
#include "core/data/prune.h"
#include "core/data/signals.h"
#include "core/pipeline/identity.h"
#include "core/pipeline/queue.h"
#include "core/pipeline/reservation.h"

#include <assert.h>

struct context *context_new(void)
{
    struct context *context = memory_zalloc(sizeof(*context));
    atomic_init(&context->references, 1);
    return context;
}

struct context *context_ref(struct context *context)
{
    if (context)
        atomic_fetch_add_explicit(&context->references, 1, memory_order_relaxed);
    return context;
}

void context_unref(struct context *context)
{
    if (!context)
        return;
    unsigned references = atomic_fetch_sub_explicit(&context->references, 1, memory_order_acq_rel);
    assert(references > 0);
    if (references > 1)
        return;
    identity_unref(context->identity);
    arena_deinit(&context->arena);
    free(context);
}

const char *context_get(const struct context *context, const char *name)
{
    for (size_t i = 0; context && i < context->entry_count; i++)
        if (strcmp(context->entries[i].name, name) == 0)
            return context->entries[i].value;
    return NULL;
}

static void assert_owned(const struct batch *batch)
{
    assert(!batch->owner || worker_is_current(batch->owner));
}

/* Without parts. */
static struct batch *batch_empty(struct worker *owner, enum signal signal, struct budget *budget)
{
    struct batch *batch = memory_zalloc(sizeof(*batch));
    batch->owner = owner;
    batch->signal = signal;
    arena_init(&batch->arena, budget);
    return batch;
}

static void set_part(struct batch_part *part, struct buffer *buffer)
{
    part->buffer = buffer;
    message_init(&part->root, buffer_slice(buffer));
}

struct batch *batch_new(struct worker *owner, enum signal signal, struct buffer *buffer,
                        uint32_t items, struct receipt *receipt, struct context *context)
{
    struct batch *batch = batch_empty(owner, signal, buffer->budget);
    assert_owned(batch);
    batch->receipt = receipt;
    batch->context = context;
    batch->items = items;
    batch->arrived_ns = worker_now(owner);
    batch->parts = memory_alloc(sizeof(*batch->parts));
    batch->part_count = 1;
    set_part(&batch->parts[0], buffer);
    return batch;
}

struct batch *batch_clone(struct batch *batch)
{
    assert_owned(batch);
    batch_flatten(batch);
    assert(batch->part_count > 0 && !batch_is_changed(batch));
    struct batch *clone = batch_empty(batch->owner, batch->signal, batch->arena.budget);
    clone->context = context_ref(batch->context);
    batch_copy_origin(clone, batch);
    clone->items = batch->items;
    clone->arrived_empty = batch->arrived_empty;
    clone->layout = batch->layout;
    clone->part_count = batch->part_count;
    clone->parts = memory_array(batch->part_count, sizeof(*clone->parts));
    for (size_t i = 0; i < batch->part_count; i++)
        set_part(&clone->parts[i], buffer_ref(batch->parts[i].buffer));
    return clone;
}

/* Writes the part over its own bytes, if nobody else reads them and nothing of it became longer. */
static bool shrink_part(struct batch_part *part, size_t size)
{
    struct buffer *buffer = part->buffer;
    if (size == 0 || part->root.raw.data != buffer->data || !buffer_is_own(buffer) ||
        !message_shrinks(&part->root))
        return false;
    const uint8_t *end = message_write(&part->root, buffer->data);
    assert(end == buffer->data + size);
    buffer->size = size;
    buffer_trim(buffer);
    set_part(part, buffer);
    return true;
}

static void flatten_part(struct batch_part *part)
{
    size_t size = message_measure(&part->root);
    if (shrink_part(part, size))
        return;
    struct buffer *flat = buffer_new_charged(size, part->buffer->budget);
    const uint8_t *end = message_write(&part->root, flat->data);
    assert(end == flat->data + size);
    flat->size = size;
    buffer_unref(part->buffer);
    set_part(part, flat);
}

void batch_compact(struct batch *batch)
{
    assert_owned(batch);
    batch->layout.are_known &= !batch_is_changed(batch);
    for (size_t i = 0; i < batch->part_count; i++)
        if (batch->parts[i].root.changed)
            flatten_part(&batch->parts[i]);
        else
            set_part(&batch->parts[i], batch->parts[i].buffer); /* nodes go with the arena */
    batch->dictionary = NULL;
    arena_deinit(&batch->arena);
}

void batch_flatten(struct batch *batch)
{
    assert_owned(batch);
    if (batch_is_changed(batch))
        batch_compact(batch);
}

/* A root has moved; nodes that were opened, though not changed, point to it. */
static void adopt_children(struct message *root)
{
    for (struct message *child = root->children; child; child = child->next)
        child->parent = root;
}

void batch_append(struct batch *batch, struct batch *other)
{
    assert(batch != other && batch->owner == other->owner);
    assert(signal_concatenates(batch->signal) && other->signal == batch->signal && !other->receipt);
    batch_flatten(other); /* its changes live in its arena */
    batch->peer = batch->peer == other->peer ? batch->peer : 0;
    size_t count = batch->part_count + other->part_count;
    batch_flatten(batch);
    batch->parts = memory_grow(batch->parts, count, sizeof(*batch->parts));
    for (size_t i = 0; i < batch->part_count; i++)
        adopt_children(&batch->parts[i].root);
    for (size_t i = 0; i < other->part_count; i++)
        set_part(&batch->parts[batch->part_count + i], other->parts[i].buffer);
    batch->part_count = count;
    batch->items += other->items;
    arena_set_budget(&batch->arena, budget_of_both(batch->arena.budget, other->arena.budget));
    other->part_count = 0;
    batch_free(other);
}

void batch_set_branch(struct batch *batch, struct branch *branch, size_t *users)
{
    assert(!branch == !users);
    if (users)
        ++*users;
    if (batch->branch_users) {
        assert(*batch->branch_users > 0);
        --*batch->branch_users;
    }
    batch->branch = branch;
    batch->branch_users = users;
}

void batch_copy_origin(struct batch *to, const struct batch *from)
{
    to->peer = from->peer;
    to->arrived_ns = from->arrived_ns;
    to->links_are_labels = from->links_are_labels;
    to->has_added_threads = from->has_added_threads;
}

void batch_copy_way(struct batch *to, const struct batch *from)
{
    to->acknowledged = from->acknowledged;
    batch_set_branch(to, from->branch, from->branch_users);
    to->refused_ns = from->refused_ns;
    to->backoff_ns = from->backoff_ns;
}

bool batch_is_changed(const struct batch *batch)
{
    for (size_t i = 0; i < batch->part_count; i++)
        if (batch->parts[i].root.changed)
            return true;
    return false;
}

void batch_lend(struct batch *batch)
{
    assert(batch->owner);
    assert_owned(batch);
    batch->owner = NULL;
}

void batch_take_back(struct batch *batch, struct worker *owner)
{
    assert(!batch->owner && worker_is_current(owner));
    batch->owner = owner;
}

void batch_settle(struct batch *batch, const struct verdict *verdict)
{
    assert(worker_is_current(batch->owner)); /* the receipt is of the same worker */
    struct receipt *receipt = batch->receipt;
    batch->receipt = NULL;
    batch_set_branch(batch, NULL, NULL);
    if (receipt)
        receipt_settle(receipt, verdict);
}

void batch_free(struct batch *batch)
{
    assert(!batch->receipt);
    assert(worker_is_current(batch->owner));
    batch_set_branch(batch, NULL, NULL);
    for (size_t i = 0; i < batch->part_count; i++)
        buffer_unref(batch->parts[i].buffer);
    free(batch->parts);
    context_unref(batch->context);
    reservation_unref(batch->reservation);
    arena_deinit(&batch->arena);
    free(batch);
}

void batch_drop(struct batch *batch, const struct verdict *verdict)
{
    batch_settle(batch, verdict);
    batch_free(batch);
}

struct dictionary *batch_dictionary(struct batch *batch)
{
    assert(batch->signal == SIGNAL_PROFILES && batch->part_count == 1);
    assert_owned(batch);
    if (!batch->dictionary) {
        batch->dictionary = dictionary_new(&batch->parts[0].root, &batch->arena);
        dictionary_know(batch->dictionary, &batch->layout);
    }
    return batch->dictionary;
}

/* Writes a profiles batch anew, with a dictionary that has only what samples and profiles refer to.
 */
static void write_anew(struct batch *batch)
{
    batch_flatten(batch);
    struct batch_part *part = &batch->parts[0];
    struct profiles_merge *merge = profiles_merge_new(part->buffer->budget);
    struct profiles_source *source = profiles_source_new(merge, part->buffer);
    assert(profiles_source_items(source) == batch->items);
    profiles_source_add(source, 0, batch->items);
    struct buffer *result = profiles_merge_finish(merge);
    profiles_source_free(source);
    profiles_merge_free(merge);
    buffer_unref(part->buffer);
    set_part(part, result);
    batch->layout.are_known = false;
}

void batch_prune(struct batch *batch)
{
    batch_prune_marked(batch, NULL);
}

void batch_prune_marked(struct batch *batch, const struct sample_marks *marks)
{
    assert_owned(batch);
    if (batch->signal != SIGNAL_PROFILES)
        return;
    assert(batch->part_count == 1);
    enum prune_result result =
        dictionary_prune(&batch->parts[0].root, &batch->layout, marks, &batch->arena);
    if (result != PRUNE_NOTHING)
        batch->dictionary = NULL;
    if (result == PRUNE_SPARSE)
        write_anew(batch);
}

void batch_gather(struct batch *batch, struct slice_list *out)
{
    assert_owned(batch);
    for (size_t i = 0; i < batch->part_count; i++) {
        message_measure(&batch->parts[i].root);
        message_gather(&batch->parts[i].root, &batch->arena, out);
    }
}

size_t batch_size(struct batch *batch)
{
    size_t size = 0;
    for (size_t i = 0; i < batch->part_count; i++)
        size += message_measure(&batch->parts[i].root);
    return size;
}

size_t batch_memory(const struct batch *batch)
{
    size_t size = batch->arena.reserved_bytes;
    for (size_t i = 0; i < batch->part_count; i++)
        size += batch->parts[i].buffer->capacity;
    return size;
}

uint64_t batch_queued_size(struct batch *batch, const struct queue *queue)
{
    switch (queue->sizer) {
    case QUEUE_SIZER_REQUESTS:
        return 1;
    case QUEUE_SIZER_ITEMS:
        return batch->items;
    case QUEUE_SIZER_BYTES:
        return batch_size(batch);
    case QUEUE_SIZER_NONE:
        break;
    }
    return 0;
}

const char *signal_name(enum signal signal)
{
    return signal_traits(signal)->name;
}

const char *signal_item_name(enum signal signal)
{
    return signal_traits(signal)->item_metric;
}

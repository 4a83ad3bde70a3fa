#include "core/pipeline/batch_join.h"

#include "core/base/budget.h"
#include "core/base/memory.h"
#include "core/base/worker.h"
#include "core/data/profiles_merge.h"
#include "core/data/traces_split.h"

#include <assert.h>

enum { CUT_REPEATED_MAX = 31, CUT_REPEATED_BYTES = 16 << 20 };
/* A part is a batch of its own: so much besides its bytes, about. */
enum { CUT_PART_BYTES = 512 };

/* What the outlet knows of one batch holds for what is made of it. */
static void copy_way(struct batch *to, const struct batch *from)
{
    to->acknowledged = from->acknowledged;
    to->branch = from->branch;
    to->refused_ns = from->refused_ns;
    to->backoff_ns = from->backoff_ns;
}

/* Joining */

static struct batch *join_traces(struct batch *list)
{
    struct batch *joined = list;
    list = list->next;
    joined->next = NULL;
    while (list) {
        struct batch *next = list->next;
        list->next = NULL;
        batch_append(joined, list);
        list = next;
    }
    return joined;
}

static struct budget *common_budget(const struct batch *list)
{
    struct budget *budget = list->arena.budget;
    for (const struct batch *batch = list->next; batch; batch = batch->next)
        budget = budget_of_both(budget, batch->arena.budget);
    return budget;
}

static struct batch *join_profiles(struct batch *list)
{
    struct batch *first = list;
    struct profiles_merge *merge = profiles_merge_new(common_budget(list));
    uint64_t peer = first->peer;
    for (struct batch *batch = list; batch; batch = batch->next) {
        assert(batch->signal == SIGNAL_PROFILES && !batch->receipt);
        assert(batch->part_count == 1 && batch->owner == first->owner);
        peer = batch->peer == peer ? peer : 0;
        batch_flatten(batch);
        profiles_merge_add(merge, batch->parts[0].buffer);
    }
    uint32_t items = profiles_merge_items(merge);
    struct buffer *buffer = profiles_merge_finish(merge);
    profiles_merge_free(merge);
    struct batch *joined =
        batch_new(first->owner, SIGNAL_PROFILES, buffer, items, NULL, context_ref(first->context));
    joined->arrived_ns = first->arrived_ns;
    joined->peer = peer;
    copy_way(joined, first);
    while (list) {
        struct batch *next = list->next;
        batch_free(list);
        list = next;
    }
    return joined;
}

struct batch *batch_join(struct batch *list)
{
    assert(list);
    if (!list->next)
        return list;
    return list->signal == SIGNAL_TRACES ? join_traces(list) : join_profiles(list);
}

/* Cutting */

struct cut_room cut_room_of(size_t size)
{
    size_t most = CUT_REPEATED_BYTES;
    return (struct cut_room){.left =
                                 size < most / CUT_REPEATED_MAX ? size * CUT_REPEATED_MAX : most};
}

void cut_room_use(struct cut_room *room, size_t part_bytes, size_t item_bytes)
{
    room->last = CUT_PART_BYTES + (part_bytes > item_bytes ? part_bytes - item_bytes : 0);
    room->left = room->last < room->left ? room->left - room->last : 0;
}

struct cut {
    const struct batch *whole;
    struct traces_source *traces;
    struct profiles_merge *merge;
    struct profiles_source *profiles;
};

static void begin_cut(struct cut *cut, struct batch *whole)
{
    *cut = (struct cut){.whole = whole};
    batch_flatten(whole);
    assert(whole->part_count > 0 && whole->items > 0);
    if (whole->signal == SIGNAL_PROFILES) {
        cut->merge = profiles_merge_new(whole->arena.budget);
        cut->profiles = profiles_source_new(cut->merge, whole->parts[0].buffer);
        return;
    }
    struct slice *pieces = memory_array(whole->part_count, sizeof(*pieces));
    for (size_t i = 0; i < whole->part_count; i++)
        pieces[i] = buffer_slice(whole->parts[i].buffer);
    cut->traces = traces_source_new(pieces, whole->part_count, whole->arena.budget);
    free(pieces);
}

static size_t item_bytes(const struct cut *cut, uint32_t first, uint32_t count)
{
    assert((cut->traces == NULL) != (cut->profiles == NULL)); /* one signal */
    return cut->traces ? traces_source_item_bytes(cut->traces, first, count)
                       : profiles_source_item_bytes(cut->profiles, first, count);
}

/* Uses some of the room. */
static struct buffer *cut_part(struct cut *cut, uint32_t first, uint32_t count,
                               struct cut_room *room)
{
    struct buffer *part;
    size_t work;
    if (cut->traces) {
        part = traces_source_part(cut->traces, first, count);
        work = part->size;
    } else {
        profiles_source_add(cut->profiles, first, count);
        work = profiles_merge_work(cut->merge);
        part = profiles_merge_finish(cut->merge);
    }
    cut_room_use(room, work, item_bytes(cut, first, count));
    return part;
}

static void end_cut(struct cut *cut)
{
    traces_source_free(cut->traces);
    profiles_source_free(cut->profiles);
    profiles_merge_free(cut->merge);
}

static size_t encoded_size(const struct batch *batch)
{
    size_t size = 0;
    for (size_t i = 0; i < batch->part_count; i++)
        size += batch->parts[i].buffer->size;
    return size;
}

struct batch *batch_cut(struct batch *batch, uint32_t max_items)
{
    assert(max_items > 0 && !batch->next);
    assert(worker_is_current(batch->owner));
    if (batch->items <= max_items)
        return batch;
    struct cut cut;
    begin_cut(&cut, batch);
    struct cut_room room = cut_room_of(encoded_size(batch));
    struct batch *first = NULL, **last = &first;
    for (uint32_t taken = 0; taken < batch->items;) {
        uint32_t rest = batch->items - taken;
        uint32_t count = rest > max_items && !cut_room_is_used_up(&room) ? max_items : rest;
        assert(count > 0 && count <= rest);
        struct buffer *buffer = cut_part(&cut, taken, count, &room);
        if (taken > 0 && batch->receipt)
            receipt_add_parts(batch->receipt, 1);
        *last = batch_new(batch->owner, batch->signal, buffer, count, batch->receipt,
                          context_ref(batch->context));
        (*last)->arrived_ns = batch->arrived_ns;
        (*last)->peer = batch->peer;
        copy_way(*last, batch);
        last = &(*last)->next;
        taken += count;
    }
    end_cut(&cut);
    batch->receipt = NULL; /* it is with the parts */
    batch_free(batch);
    return first;
}

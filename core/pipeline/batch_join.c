#include "core/pipeline/batch_join.h"

#include "core/base/budget.h"
#include "core/base/memory.h"
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

struct cut_part {
    struct buffer *buffer;
    uint32_t items;
};

/* What stands in a part is found by this. */
struct cut {
    struct traces_source *traces;
    struct profiles_merge *merge;
    struct profiles_source *profiles;
};

static void begin_cut(struct cut *cut, const struct batch *whole)
{
    *cut = (struct cut){.traces = NULL};
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

void batch_cutter_init(struct batch_cutter *cutter, struct batch *whole, uint32_t max_items,
                       bool is_sparing)
{
    assert(max_items > 0 && whole->items > max_items && !whole->next);
    batch_flatten(whole);
    *cutter = (struct batch_cutter){
        .whole = whole, .max_items = max_items, .is_sparing = is_sparing};
}

static void add_part(struct batch_cutter *cutter, struct buffer *buffer, uint32_t items)
{
    size_t count = cutter->part_count;
    if ((count & (count - 1)) == 0) /* full: 0, 1, 2, 4, ... */
        cutter->parts = memory_grow(cutter->parts, count ? count * 2 : 1, sizeof *cutter->parts);
    cutter->parts[cutter->part_count++] = (struct cut_part){buffer, items};
}

static struct cut_room room_of(const struct batch_cutter *cutter)
{
    enum { SPARE_BYTES = 16 * CUT_PART_BYTES };
    size_t size = encoded_size(cutter->whole);
    return cutter->is_sparing ? (struct cut_room){.left = size + SPARE_BYTES} : cut_room_of(size);
}

void batch_cutter_run(struct batch_cutter *cutter)
{
    const struct batch *whole = cutter->whole;
    struct cut_room room = room_of(cutter);
    struct cut cut;
    assert(cutter->part_count == 0);
    begin_cut(&cut, whole);
    for (uint32_t taken = 0, count; taken < whole->items; taken += count) {
        uint32_t rest = whole->items - taken;
        count = rest > cutter->max_items && !cut_room_is_used_up(&room) ? cutter->max_items : rest;
        add_part(cutter, cut_part(&cut, taken, count, &room), count);
    }
    end_cut(&cut);
}

/* Takes over the buffer. */
static struct batch *new_part(const struct batch *whole, const struct cut_part *part)
{
    struct batch *batch = batch_new(whole->owner, whole->signal, part->buffer, part->items,
                                    whole->receipt, context_ref(whole->context));
    batch->arrived_ns = whole->arrived_ns;
    batch->peer = whole->peer;
    copy_way(batch, whole);
    return batch;
}

struct batch *batch_cutter_finish(struct batch_cutter *cutter)
{
    struct batch *whole = cutter->whole, *first = NULL, **last = &first;
    assert(cutter->part_count > 0);
    if (whole->receipt && cutter->part_count > 1)
        receipt_add_parts(whole->receipt, (uint32_t)cutter->part_count - 1);
    for (size_t i = 0; i < cutter->part_count; i++) {
        *last = new_part(whole, &cutter->parts[i]);
        last = &(*last)->next;
    }
    free(cutter->parts);
    whole->receipt = NULL; /* it is with the parts */
    batch_free(whole);
    return first;
}

void batch_cutter_cancel(struct batch_cutter *cutter)
{
    for (size_t i = 0; i < cutter->part_count; i++)
        buffer_unref(cutter->parts[i].buffer);
    free(cutter->parts);
}

static struct batch *cut_at_once(struct batch *batch, uint32_t max_items, bool is_sparing)
{
    struct batch_cutter cutter;
    assert(max_items > 0 && !batch->next);
    if (batch->items <= max_items)
        return batch;
    batch_cutter_init(&cutter, batch, max_items, is_sparing);
    batch_cutter_run(&cutter);
    return batch_cutter_finish(&cutter);
}

struct batch *batch_cut(struct batch *batch, uint32_t max_items)
{
    return cut_at_once(batch, max_items, false);
}

struct batch *batch_cut_sparingly(struct batch *batch, uint32_t max_items)
{
    return cut_at_once(batch, max_items, true);
}

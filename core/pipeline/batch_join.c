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

/* work_out: the bytes of the part, or what was read for it, if more. */
static struct buffer *make_part(struct cut *cut, uint32_t first, uint32_t count, size_t *work_out)
{
    struct buffer *part;
    if (cut->traces) {
        part = traces_source_part(cut->traces, first, count);
        *work_out = part->size;
        return part;
    }
    profiles_source_add(cut->profiles, first, count);
    *work_out = profiles_merge_work(cut->merge);
    return profiles_merge_finish(cut->merge);
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

bool cut_limits_are_exceeded(const struct cut_limits *limits, struct batch *batch)
{
    assert(limits->max_items > 0);
    if (batch->items > limits->max_items)
        return true;
    return limits->max_bytes > 0 && batch->items > 1 && batch_size(batch) > limits->max_bytes;
}

void batch_cutter_init(struct batch_cutter *cutter, struct batch *whole,
                       const struct cut_limits *limits)
{
    assert(!whole->next && cut_limits_are_exceeded(limits, whole));
    batch_flatten(whole);
    *cutter = (struct batch_cutter){.whole = whole, .limits = *limits};
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
    return cutter->limits.is_sparing ? (struct cut_room){.left = size + SPARE_BYTES}
                                     : cut_room_of(size);
}

/* How many items are put into the next part. */
struct pace {
    uint32_t items_max;
    size_t bytes_max;  /* 0: no limit */
    size_t repeated;   /* bytes of the last part beside its items */
    uint32_t expected; /* at most so many items fit into bytes_max */
};

/* Of an item in a part, beside its bytes. */
enum { ITEM_HEADER_BYTES = 2 };

static size_t part_item_bytes(const struct cut *cut, uint32_t first, uint32_t count)
{
    return item_bytes(cut, first, count) + (size_t)count * ITEM_HEADER_BYTES;
}

static struct pace pace_of(const struct batch_cutter *cutter)
{
    const struct batch *whole = cutter->whole;
    const struct cut_limits *limits = &cutter->limits;
    struct pace pace = {.items_max = limits->max_items, .bytes_max = limits->max_bytes};
    size_t size = encoded_size(whole);
    pace.expected = whole->items;
    if (size > limits->max_bytes) /* by the average */
        pace.expected = (uint32_t)((double)whole->items * (double)limits->max_bytes / (double)size);
    return pace;
}

/* How many items from `first` on have no more than so many bytes; at least 1. */
static uint32_t items_within(const struct cut *cut, uint32_t first, uint32_t max, size_t bytes)
{
    uint32_t count = 1;
    size_t taken = part_item_bytes(cut, first, 1);
    while (count < max && (taken += part_item_bytes(cut, first + count, 1)) <= bytes)
        count++;
    return count;
}

/* The next part may repeat a little more than the last one. */
static uint32_t next_count(const struct pace *pace, const struct cut *cut, uint32_t first,
                           uint32_t rest)
{
    uint32_t max = rest < pace->items_max ? rest : pace->items_max;
    if (pace->bytes_max == 0)
        return max;
    size_t repeated = pace->repeated + pace->repeated / 16;
    size_t bytes = repeated < pace->bytes_max ? pace->bytes_max - repeated : 0;
    return items_within(cut, first, pace->expected < max ? pace->expected : max, bytes);
}

/* Of a part that turned out too large. Fewer items repeat no more, so these fit unless that alone
 * is too large. */
static uint32_t fewer_items(const struct pace *pace, const struct cut *cut, uint32_t first,
                            uint32_t count)
{
    assert(count > 1 && pace->bytes_max > 0);
    if (pace->repeated >= pace->bytes_max)
        return count / 2;
    uint32_t fewer = items_within(cut, first, count, pace->bytes_max - pace->repeated);
    assert(fewer < count);
    return fewer;
}

/* The part has so many bytes. The next one may have twice as many items. */
static void learn(struct pace *pace, const struct cut *cut, uint32_t first, uint32_t count,
                  size_t part_bytes)
{
    if (pace->bytes_max == 0)
        return;
    size_t items = part_item_bytes(cut, first, count);
    pace->repeated = part_bytes > items ? part_bytes - items : 0;
    pace->expected = count < UINT32_MAX / 2 ? count * 2 : UINT32_MAX;
}

static bool is_too_large(const struct pace *pace, const struct buffer *part, uint32_t count)
{
    return pace->bytes_max > 0 && part->size > pace->bytes_max && count > 1;
}

/* The part from item `first` on; returns how many it has. What is made in vain uses up the room
 * too, so that work is bounded. */
static uint32_t cut_next(struct batch_cutter *cutter, struct cut *cut, struct pace *pace,
                         uint32_t first, struct cut_room *room)
{
    uint32_t rest = cutter->whole->items - first;
    bool is_rest = cut_room_is_used_up(room);
    uint32_t count = is_rest ? rest : next_count(pace, cut, first, rest);
    size_t work;
    struct buffer *part = make_part(cut, first, count, &work);
    while (!is_rest && is_too_large(pace, part, count)) {
        learn(pace, cut, first, count, part->size);
        cut_room_use(room, work, 0);
        if (cut_room_is_used_up(room))
            break;
        buffer_unref(part);
        count = fewer_items(pace, cut, first, count);
        part = make_part(cut, first, count, &work);
    }
    learn(pace, cut, first, count, part->size);
    cut_room_use(room, work, item_bytes(cut, first, count));
    add_part(cutter, part, count);
    return count;
}

void batch_cutter_run(struct batch_cutter *cutter)
{
    const struct batch *whole = cutter->whole;
    struct cut_room room = room_of(cutter);
    struct pace pace = pace_of(cutter);
    struct cut cut;
    assert(cutter->part_count == 0);
    begin_cut(&cut, whole);
    for (uint32_t taken = 0; taken < whole->items;) {
        uint32_t count = cut_next(cutter, &cut, &pace, taken, &room);
        assert(count > 0 && count <= whole->items - taken);
        taken += count;
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

struct batch *batch_cut(struct batch *batch, const struct cut_limits *limits)
{
    struct batch_cutter cutter;
    assert(!batch->next);
    assert(worker_is_current(batch->owner));
    if (!cut_limits_are_exceeded(limits, batch))
        return batch;
    batch_cutter_init(&cutter, batch, limits);
    batch_cutter_run(&cutter);
    return batch_cutter_finish(&cutter);
}

#include "core/pipeline/batch_cut.h"

#include "core/base/memory.h"
#include "core/base/worker.h"
#include "core/data/profiles_merge.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/cut_source.h"

#include <assert.h>

struct cut_part {
    struct buffer *buffer;
    uint32_t items;
};

static struct buffer *make_part(struct cut_source *source, uint32_t first, uint32_t count,
                                size_t *work_out)
{
    struct buffer *part = cut_source_part(source, first, count, work_out);
    return part ? part : profiles_merge_finish(source->merge);
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
    size_t size = encoded_size(cutter->whole);
    return cutter->limits.is_sparing ? cut_room_sparing(size) : cut_room_of(size);
}

/* How many items are put into the next part. */
struct part_plan {
    uint32_t items_max;
    size_t bytes_max;  /* 0: no limit */
    size_t repeated;   /* bytes of the last part besides its items */
    uint32_t expected; /* at most so many items fit into bytes_max */
};

static struct part_plan plan_of(const struct batch_cutter *cutter)
{
    const struct batch *whole = cutter->whole;
    const struct cut_limits *limits = &cutter->limits;
    struct part_plan plan = {.items_max = limits->max_items, .bytes_max = limits->max_bytes};
    size_t size = encoded_size(whole);
    plan.expected = whole->items;
    if (size > limits->max_bytes) /* by the average */
        plan.expected = (uint32_t)((double)whole->items * (double)limits->max_bytes / (double)size);
    return plan;
}

/* The next part may repeat a little more than the last one. */
static uint32_t next_count(const struct part_plan *plan, const struct cut_source *source,
                           uint32_t first, uint32_t rest)
{
    uint32_t max = rest < plan->items_max ? rest : plan->items_max;
    if (plan->bytes_max == 0)
        return cut_source_fit(source, first, max, SIZE_MAX);
    size_t repeated = plan->repeated + plan->repeated / 16;
    size_t bytes = repeated < plan->bytes_max ? plan->bytes_max - repeated : 0;
    uint32_t expected = plan->expected > 0 ? plan->expected : 1;
    return cut_source_fit(source, first, expected < max ? expected : max, bytes);
}

/* Returns how many items of a part that is too large fit. Fewer items do not repeat more, so
 * they fit unless the repeated bytes alone are too large. Returns `count` if it cannot be
 * divided. */
static uint32_t fewer_items(const struct part_plan *plan, const struct cut_source *source,
                            uint32_t first, uint32_t count)
{
    assert(plan->bytes_max > 0);
    if (count == 1)
        return 1;
    if (plan->repeated >= plan->bytes_max)
        return cut_source_fit(source, first, count / 2, SIZE_MAX);
    return cut_source_fit(source, first, count - 1, plan->bytes_max - plan->repeated);
}

/* The part has so many bytes. The next one may have twice as many items. */
static void learn(struct part_plan *plan, const struct cut_source *source, uint32_t first,
                  uint32_t count, size_t part_bytes)
{
    if (plan->bytes_max == 0)
        return;
    size_t items = cut_source_bytes_in_part(source, first, count);
    plan->repeated = part_bytes > items ? part_bytes - items : 0;
    plan->expected = count < UINT32_MAX / 2 ? count * 2 : UINT32_MAX;
}

static bool is_too_large(const struct part_plan *plan, const struct buffer *part)
{
    return plan->bytes_max > 0 && part->size > plan->bytes_max;
}

/* Makes the part from item `first` on; returns its number of items. Discarded parts also use up
 * the room, so that the work is limited. */
static uint32_t cut_next(struct batch_cutter *cutter, struct cut_source *source,
                         struct part_plan *plan, uint32_t first, struct cut_room *room)
{
    uint32_t rest = cutter->whole->items - first;
    bool is_rest = cut_room_is_used_up(room);
    uint32_t count = is_rest ? rest : next_count(plan, source, first, rest);
    size_t work;
    struct buffer *part = make_part(source, first, count, &work);
    while (!is_rest && is_too_large(plan, part)) {
        learn(plan, source, first, count, part->size);
        uint32_t fewer = fewer_items(plan, source, first, count);
        if (fewer >= count)
            break;
        cut_room_use(room, work, 0);
        if (cut_room_is_used_up(room))
            break;
        buffer_unref(part);
        count = fewer;
        part = make_part(source, first, count, &work);
    }
    learn(plan, source, first, count, part->size);
    cut_room_use(room, work, cut_source_item_bytes(source, first, count));
    add_part(cutter, part, count);
    return count;
}

void batch_cutter_run(struct batch_cutter *cutter)
{
    const struct batch *whole = cutter->whole;
    struct cut_room room = room_of(cutter);
    struct part_plan plan = plan_of(cutter);
    struct cut_source source = {0};
    assert(cutter->part_count == 0);
    bool has_merge = whole->signal == SIGNAL_PROFILES;
    struct profiles_merge *merge = has_merge ? profiles_merge_new(whole->arena.budget) : NULL;
    cut_source_open(&source, whole, merge);
    for (uint32_t taken = 0; taken < whole->items;) {
        uint32_t count = cut_next(cutter, &source, &plan, taken, &room);
        assert(count > 0 && count <= whole->items - taken);
        taken += count;
    }
    cut_source_close(&source);
    profiles_merge_free(merge);
}

/* Takes over the buffer. */
static struct batch *new_part(const struct batch *whole, const struct cut_part *part)
{
    struct batch *batch = batch_new(whole->owner, whole->signal, part->buffer, part->items,
                                    whole->receipt, context_ref(whole->context));
    batch_copy_origin(batch, whole);
    batch_copy_way(batch, whole);
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

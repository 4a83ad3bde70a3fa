#include "core/pipeline/cut_source.h"

#include "core/base/memory.h"
#include "core/data/groups_split.h"
#include "core/data/profiles_merge.h"
#include "core/data/traces_split.h"
#include "core/pipeline/batch.h"

#include <assert.h>

enum { REPEATED_MAX = 31, REPEATED_BYTES_MAX = 16 << 20 };
/* A part is a batch of its own: so much besides its bytes, about. */
enum { PART_BYTES = 512, SPARE_BYTES = 16 * PART_BYTES };

static void read_parts(struct cut_source *source, const struct batch *batch)
{
    struct slice *slices = memory_array(batch->part_count, sizeof *slices);
    struct budget *budget = batch->arena.budget;
    for (size_t i = 0; i < batch->part_count; i++)
        slices[i] = buffer_slice(batch->parts[i].buffer);
    if (batch->signal == SIGNAL_TRACES)
        source->traces = traces_source_new(slices, batch->part_count, budget);
    else
        source->groups = groups_source_new(batch->signal, slices, batch->part_count, budget);
    free(slices);
}

void cut_source_open(struct cut_source *source, const struct batch *batch,
                     struct profiles_merge *merge)
{
    assert(!cut_source_is_open(source) && batch->part_count > 0);
    assert((batch->signal == SIGNAL_PROFILES) == (merge != NULL));
    *source = (struct cut_source){.merge = merge};
    if (merge)
        source->profiles = profiles_source_new(merge, batch->parts[0].buffer);
    else
        read_parts(source, batch);
}

bool cut_source_is_open(const struct cut_source *source)
{
    assert(!!source->traces + !!source->profiles + !!source->groups <= 1); /* one signal */
    return source->traces || source->profiles || source->groups;
}

void cut_source_close(struct cut_source *source)
{
    traces_source_free(source->traces);
    profiles_source_free(source->profiles);
    groups_source_free(source->groups);
    *source = (struct cut_source){.traces = NULL};
}

size_t cut_source_item_bytes(const struct cut_source *source, uint32_t first, uint32_t count)
{
    if (source->groups)
        return groups_source_item_bytes(source->groups, first, count);
    return source->traces ? traces_source_item_bytes(source->traces, first, count)
                          : profiles_source_item_bytes(source->profiles, first, count);
}

/* Of an item in a part, beside its bytes. */
enum { ITEM_HEADER_BYTES = 2 };

size_t cut_source_bytes_in_part(const struct cut_source *source, uint32_t first, uint32_t count)
{
    size_t headers = source->groups ? 0 : (size_t)count * ITEM_HEADER_BYTES;
    return cut_source_item_bytes(source, first, count) + headers;
}

uint32_t cut_source_fit(const struct cut_source *source, uint32_t first, uint32_t max_items,
                        size_t max_bytes)
{
    assert(max_items > 0);
    if (source->groups)
        return groups_source_fit(source->groups, first, max_items, max_bytes);
    if (max_bytes == SIZE_MAX)
        return max_items;
    uint32_t count = 1;
    size_t taken = cut_source_bytes_in_part(source, first, 1);
    while (count < max_items &&
           (taken += cut_source_bytes_in_part(source, first + count, 1)) <= max_bytes)
        count++;
    return count;
}

struct buffer *cut_source_part(struct cut_source *source, uint32_t first, uint32_t count,
                               size_t *work_out)
{
    if (!source->profiles) {
        struct buffer *part = source->traces ? traces_source_part(source->traces, first, count)
                                             : groups_source_part(source->groups, first, count);
        *work_out = part->size;
        return part;
    }
    size_t before = profiles_merge_work(source->merge);
    profiles_source_add(source->profiles, first, count);
    *work_out = profiles_merge_work(source->merge) - before;
    return NULL;
}

struct cut_room cut_room_of(size_t size)
{
    size_t most = REPEATED_BYTES_MAX;
    return (struct cut_room){.left = size < most / REPEATED_MAX ? size * REPEATED_MAX : most};
}

struct cut_room cut_room_sparing(size_t size)
{
    return (struct cut_room){.left = size + SPARE_BYTES};
}

void cut_room_use(struct cut_room *room, size_t work_bytes, size_t item_bytes)
{
    room->last = PART_BYTES + (work_bytes > item_bytes ? work_bytes - item_bytes : 0);
    room->left = room->last < room->left ? room->left - room->last : 0;
}

bool cut_room_is_used_up(const struct cut_room *room)
{
    return room->left <= room->last;
}

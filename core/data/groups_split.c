#include "core/data/groups_split.h"

#include "core/base/arena.h"
#include "core/base/memory.h"
#include "core/data/signals.h"
#include "core/data/wire.h"

#include <assert.h>

struct source_group {
    struct slice field; /* with its tag and length */
    uint32_t end_item;  /* end of the group's items, counted over all groups */
    uint64_t end_bytes;
};

struct groups_source {
    struct arena arena;
    struct budget *budget;
    struct source_group *groups; /* only those with items */
    uint32_t count;
};

/* ---- reading ---- */

static uint32_t count_fields(struct slice message, uint32_t number)
{
    struct wire_cursor cursor = wire_cursor(message);
    struct wire_field field;
    uint32_t count = 0;
    while (wire_next_bytes(&cursor, number, &field))
        count++;
    return count;
}

static bool is_metric_data(uint32_t number)
{
    return number == METRIC_GAUGE || number == METRIC_SUM || number == METRIC_HISTOGRAM ||
           number == METRIC_EXPONENTIAL_HISTOGRAM || number == METRIC_SUMMARY;
}

static uint32_t count_points(struct slice metric)
{
    struct wire_cursor cursor = wire_cursor(metric);
    struct wire_field field;
    uint32_t count = 0;
    while (wire_next(&cursor, &field))
        if (is_metric_data(field.number))
            count += count_fields(field.bytes, METRIC_DATA_DATA_POINTS);
    return count;
}

uint32_t groups_count_scope_items(enum signal signal, struct slice scope)
{
    if (signal == SIGNAL_LOGS || signal == SIGNAL_TRACES)
        return count_fields(scope, SCOPE_ITEMS);
    struct wire_cursor cursor = wire_cursor(scope);
    struct wire_field item;
    uint32_t count = 0;
    while (wire_next_bytes(&cursor, SCOPE_ITEMS, &item))
        count += signal == SIGNAL_METRICS ? count_points(item.bytes)
                                          : count_fields(item.bytes, PROFILE_SAMPLES);
    return count;
}

uint32_t groups_count_items(enum signal signal, struct slice group)
{
    struct wire_cursor cursor = wire_cursor(group);
    struct wire_field scope;
    uint32_t count = 0;
    while (wire_next_bytes(&cursor, GROUP_SCOPES, &scope))
        count += groups_count_scope_items(signal, scope.bytes);
    return count;
}

static void add_group(struct groups_source *source, const struct wire_field *field, uint32_t items)
{
    size_t size = (size_t)(field->end - field->start);
    uint32_t items_before = groups_source_items(source);
    uint64_t bytes_before = source->count ? source->groups[source->count - 1].end_bytes : 0;
    source->groups[source->count++] = (struct source_group){
        slice_of(field->start, size), items_before + items, bytes_before + size};
}

static void read_slice(struct groups_source *source, enum signal signal, struct slice slice)
{
    struct wire_cursor cursor = wire_cursor(slice);
    struct wire_field field;
    while (wire_next_bytes(&cursor, REQUEST_GROUPS, &field)) {
        uint32_t items = groups_count_items(signal, field.bytes);
        if (items > 0)
            add_group(source, &field, items);
    }
    assert(!cursor.broken); /* scanned */
}

struct groups_source *groups_source_new(enum signal signal, const struct slice *slices,
                                        size_t slice_count, struct budget *budget)
{
    assert(signal_traits(signal)->is_relayed);
    struct groups_source *source = memory_zalloc(sizeof *source);
    uint32_t count = 0;
    source->budget = budget;
    arena_init(&source->arena, budget);
    for (size_t i = 0; i < slice_count; i++)
        count += count_fields(slices[i], REQUEST_GROUPS);
    source->groups = arena_array(&source->arena, count, sizeof *source->groups);
    for (size_t i = 0; i < slice_count; i++)
        read_slice(source, signal, slices[i]);
    assert(source->count <= count);
    return source;
}

void groups_source_free(struct groups_source *source)
{
    if (!source)
        return;
    arena_deinit(&source->arena);
    free(source);
}

/* ---- parts ---- */

uint32_t groups_source_items(const struct groups_source *source)
{
    return source->count ? source->groups[source->count - 1].end_item : 0;
}

/* Returns the first group that ends after the item; the number of groups if there is none. */
static uint32_t find_group(const struct groups_source *source, uint64_t item)
{
    uint32_t low = 0, high = source->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (source->groups[middle].end_item > item)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Returns the group that begins with the item. */
static uint32_t group_from(const struct groups_source *source, uint32_t first)
{
    uint32_t group = find_group(source, first);
    assert(group < source->count && (group ? source->groups[group - 1].end_item : 0) == first);
    return group;
}

/* A range of groups, [from, to). */
struct group_range {
    uint32_t from, to;
};

static struct group_range range_of(const struct groups_source *source, uint32_t first,
                                   uint32_t count)
{
    assert(count > 0);
    struct group_range range = {.from = group_from(source, first)};
    range.to = find_group(source, (uint64_t)first + count - 1) + 1;
    assert(range.to <= source->count && source->groups[range.to - 1].end_item == first + count);
    return range;
}

static size_t bytes_of(const struct groups_source *source, const struct group_range *range)
{
    uint64_t before = range->from ? source->groups[range->from - 1].end_bytes : 0;
    return (size_t)(source->groups[range->to - 1].end_bytes - before);
}

uint32_t groups_source_fit(const struct groups_source *source, uint32_t first, uint32_t max_items,
                           size_t max_bytes)
{
    uint32_t from = group_from(source, first);
    uint32_t low = from + 1, high = find_group(source, (uint64_t)first + max_items);
    while (low < high) { /* the largest `to` within max_bytes, at least from + 1 */
        struct group_range range = {from, low + (high - low + 1) / 2};
        if (bytes_of(source, &range) <= max_bytes)
            low = range.to;
        else
            high = range.to - 1;
    }
    return source->groups[low - 1].end_item - first;
}

size_t groups_source_item_bytes(const struct groups_source *source, uint32_t first, uint32_t count)
{
    struct group_range range = range_of(source, first, count);
    return bytes_of(source, &range);
}

struct buffer *groups_source_part(const struct groups_source *source, uint32_t first,
                                  uint32_t count)
{
    struct group_range range = range_of(source, first, count);
    struct buffer *part = buffer_new_charged(bytes_of(source, &range), source->budget);
    for (uint32_t i = range.from; i < range.to; i++) {
        struct slice field = source->groups[i].field;
        memcpy(part->data + part->size, field.data, field.size);
        part->size += field.size;
    }
    return part;
}

#include "core/data/span_table.h"

#include "core/base/memory.h"

#include <assert.h>
#include <string.h>

enum {
    LINE_SLOTS = 64 / sizeof(struct span_slot),
    LINES = SPAN_PAGE_SIZE / 64 - 1, /* the first line is the header of the segment */
    SLOTS = LINES * LINE_SLOTS,
    SLOTS_FULL = SLOTS / 3 * 2,
    SLOTS_FEW = SLOTS / 4, /* so few slots can be crowded only by a sender that knows the hash */
    HOME_BITS = 16, /* bits of a tag that choose the line; the upper bits choose the segment */
    DEPTH_MAX = 32 - HOME_BITS,
};

struct span_segment {
    uint32_t live;
    uint32_t depth; /* number of bits that all its tags have in common */
    struct span_slot slots[SLOTS] __attribute__((aligned(64)));
};

_Static_assert(sizeof(struct span_segment) == SPAN_PAGE_SIZE, "a segment is a page");

static struct span_segment *new_segment(struct span_table *table, uint32_t depth)
{
    assert(depth <= DEPTH_MAX);
    struct span_segment *segment = span_pages_take(table->pages);
    memset(segment, 0, sizeof *segment);
    segment->depth = depth;
    table->segment_count++;
    return segment;
}

static void free_segment(struct span_table *table, struct span_segment *segment)
{
    assert(table->segment_count > 0);
    span_pages_give_back(table->pages, segment);
    table->segment_count--;
}

void span_table_deinit(struct span_table *table)
{
    /* The first pointer to a segment has an index below 1 << its depth. */
    for (uint32_t i = table->segments ? 1U << table->depth : 0; i-- > 0;)
        if (i >> table->segments[i]->depth == 0)
            free_segment(table, table->segments[i]);
    assert(table->segment_count == 0);
    free(table->segments);
    *table = (struct span_table){.pages = table->pages};
}

static struct span_segment **place_of(const struct span_table *table, uint32_t tag)
{
    return &table->segments[tag >> HOME_BITS & ((1U << table->depth) - 1)];
}

static uint32_t home_of(uint32_t tag)
{
    return ((tag & ((1U << HOME_BITS) - 1)) * LINES >> HOME_BITS) * LINE_SLOTS;
}

static uint32_t behind(uint32_t at)
{
    return at + 1 < SLOTS ? at + 1 : 0;
}

/* Returns by how many slots `to` is after `from`. */
static uint32_t distance(uint32_t from, uint32_t to)
{
    return to >= from ? to - from : to + SLOTS - from;
}

void span_table_prefetch(const struct span_table *table, uint32_t tag)
{
    if (!table->segments)
        return;
    const struct span_segment *segment = *place_of(table, tag);
    __builtin_prefetch(&segment->slots[home_of(tag)]);
    __builtin_prefetch(segment); /* an insert needs it */
}

struct span_probe span_table_probe(const struct span_table *table, uint32_t tag)
{
    return (struct span_probe){.segment = table->segments ? *place_of(table, tag) : NULL,
                               .tag = tag,
                               .at = home_of(tag),
                               .left = SPAN_TABLE_PROBES};
}

struct span_slot *span_probe_any(struct span_probe *probe)
{
    if (!probe->segment || probe->left == 0)
        return NULL;
    struct span_slot *slot = &probe->segment->slots[probe->at];
    if (slot->tag == 0)
        return NULL;
    probe->at = behind(probe->at);
    probe->left--;
    return slot;
}

struct span_slot *span_probe_next(struct span_probe *probe)
{
    struct span_slot *slot = span_probe_any(probe);
    while (slot && slot->tag != probe->tag)
        slot = span_probe_any(probe);
    return slot;
}

/* Returns the first empty slot of a probe; NULL if there is none. */
static struct span_slot *empty_slot(struct span_segment *segment, uint32_t tag)
{
    uint32_t at = home_of(tag);
    for (uint32_t i = 0; i < SPAN_TABLE_PROBES; i++, at = behind(at))
        if (segment->slots[at].tag == 0)
            return &segment->slots[at];
    return NULL;
}

static void double_places(struct span_table *table)
{
    assert(table->depth < DEPTH_MAX);
    size_t size = (size_t)1 << table->depth++;
    table->segments = memory_grow(table->segments, 2 * size, sizeof *table->segments);
    memcpy(table->segments + size, table->segments, size * sizeof *table->segments);
}

/* Divides the slots of a segment. They move in their order, beginning after an empty one, so none
 * gets further from its home. */
static void divide(const struct span_segment *old, struct span_segment *const halves[2])
{
    uint32_t at = 0;
    while (old->slots[at].tag != 0)
        at = behind(at);
    for (uint32_t i = 0; i < SLOTS; i++, at = behind(at)) {
        struct span_slot slot = old->slots[at];
        if (slot.tag == 0)
            continue;
        struct span_segment *half = halves[slot.tag >> HOME_BITS >> old->depth & 1];
        *empty_slot(half, slot.tag) = slot;
        half->live++;
    }
}

static void split(struct span_table *table, uint32_t tag)
{
    struct span_segment *old = *place_of(table, tag);
    uint32_t bit = 1U << old->depth;
    if (old->depth == table->depth)
        double_places(table);
    struct span_segment *const halves[2] = {new_segment(table, old->depth + 1),
                                            new_segment(table, old->depth + 1)};
    divide(old, halves);
    assert(halves[0]->live + halves[1]->live == old->live);
    for (uint32_t i = tag >> HOME_BITS & (bit - 1); i >> table->depth == 0; i += bit)
        table->segments[i] = halves[(i & bit) != 0];
    free_segment(table, old);
}

bool span_table_insert(struct span_table *table, uint32_t tag, uint32_t number)
{
    assert(tag != 0); /* 0 is an empty slot */
    if (!table->segments) {
        table->segments = memory_alloc(sizeof *table->segments);
        table->segments[0] = new_segment(table, 0);
    }
    struct span_segment *segment = *place_of(table, tag);
    struct span_slot *slot = segment->live < SLOTS_FULL ? empty_slot(segment, tag) : NULL;
    if (!slot && segment->live >= SLOTS_FEW && segment->depth < DEPTH_MAX) {
        split(table, tag);
        segment = *place_of(table, tag);
    }
    if (!slot)
        slot = empty_slot(segment, tag);
    if (!slot)
        return false;
    *slot = (struct span_slot){tag, number};
    segment->live++;
    table->live++;
    return true;
}

void span_table_remove(struct span_table *table, struct span_slot *slot)
{
    struct span_segment *segment = *place_of(table, slot->tag);
    struct span_slot *slots = segment->slots;
    uint32_t begin = (uint32_t)(slot - slots), hole = begin;
    assert(hole < SLOTS && slots[hole].tag != 0);
    /* Later slots move up, so that no probe stops early. */
    for (uint32_t at = behind(begin); slots[at].tag != 0 && at != begin; at = behind(at))
        if (distance(home_of(slots[at].tag), at) >= distance(hole, at)) {
            slots[hole] = slots[at];
            hole = at;
        }
    slots[hole] = (struct span_slot){0};
    assert(segment->live > 0 && table->live > 0);
    segment->live--;
    if (--table->live == 0)
        span_table_deinit(table);
}

size_t span_table_memory(const struct span_table *table)
{
    size_t places = table->segments ? (size_t)1 << table->depth : 0;
    return table->segment_count * (size_t)SPAN_PAGE_SIZE + places * sizeof *table->segments;
}

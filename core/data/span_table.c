#include "core/data/span_table.h"

#include "core/base/memory.h"

#include <assert.h>
#include <string.h>

enum {
    SLOTS = SPAN_TABLE_LINES * SPAN_LINE_SLOTS,
    SLOTS_FULL = SLOTS / 3 * 2,
    SLOTS_FEW = SLOTS / 4, /* so few slots can be crowded only by a sender that knows the hash */
    HOME_BITS = SPAN_TABLE_HOME_BITS,
    DEPTH_MAX = 32 - HOME_BITS,
};

_Static_assert(sizeof(struct span_line) == 64, "a line is a cache line");
_Static_assert((SPAN_TABLE_LINES & (SPAN_TABLE_LINES - 1)) == 0,
               "the last one is before the first");
_Static_assert(SPAN_TABLE_PROBES % SPAN_LINE_SLOTS == 0, "a probe visits whole lines");

static struct span_segment_place new_segment(struct span_table *table, uint32_t depth)
{
    assert(depth <= DEPTH_MAX);
    struct span_segment_place place = {span_pages_take(table->pages),
                                       memory_alloc(sizeof *place.segment)};
    *place.segment = (struct span_segment){.depth = depth};
    for (uint32_t i = 0; i < SPAN_TABLE_LINES; i++)
        memset(place.lines[i].tags, 0, sizeof place.lines[i].tags);
    table->segment_count++;
    return place;
}

static void free_segment(struct span_table *table, struct span_segment_place place)
{
    assert(table->segment_count > 0);
    span_pages_give_back(table->pages, place.lines);
    free(place.segment);
    table->segment_count--;
}

void span_table_deinit(struct span_table *table)
{
    /* The first place of a segment has an index below 1 << its depth. */
    for (uint32_t i = table->places ? 1U << table->depth : 0; i-- > 0;)
        if (i >> table->places[i].segment->depth == 0)
            free_segment(table, table->places[i]);
    assert(table->segment_count == 0);
    free(table->places);
    *table = (struct span_table){.pages = table->pages};
}

/* Returns by how many lines `to` is after `from`. */
static uint32_t distance(uint32_t from, uint32_t to)
{
    return (to - from) % SPAN_TABLE_LINES;
}

/* Puts an entry into the first empty slot of its probe. Returns false if there is none. */
static inline bool put(const struct span_segment_place *place, uint32_t tag, uint32_t number)
{
    uint32_t at = span_table_home(tag);
    for (uint32_t i = 0; i < SPAN_TABLE_PROBES / SPAN_LINE_SLOTS; i++, at = span_table_behind(at)) {
        struct span_line *line = &place->lines[at];
        unsigned empty = span_line_match(line, 0);
        if (empty == 0)
            continue;
        unsigned slot = (unsigned)__builtin_ctz(empty);
        line->tags[slot] = tag;
        line->numbers[slot] = number;
        place->segment->live++;
        return true;
    }
    return false;
}

static void double_places(struct span_table *table)
{
    assert(table->depth < DEPTH_MAX);
    size_t size = (size_t)1 << table->depth++;
    table->places = memory_grow(table->places, 2 * size, sizeof *table->places);
    memcpy(table->places + size, table->places, size * sizeof *table->places);
}

/* Divides the entries of a segment. They move in the order of their lines, beginning after one with
 * room, so none gets further from its home. */
static void divide(const struct span_segment_place *old, const struct span_segment_place halves[2])
{
    uint32_t at = 0;
    while (span_line_match(&old->lines[at], 0) == 0)
        at = span_table_behind(at);
    for (uint32_t i = 0; i < SPAN_TABLE_LINES; i++) {
        at = span_table_behind(at);
        const struct span_line *line = &old->lines[at];
        for (unsigned slot = 0; slot < SPAN_LINE_SLOTS; slot++) {
            uint32_t tag = line->tags[slot];
            if (tag == 0)
                continue;
            unsigned half = tag >> HOME_BITS >> old->segment->depth & 1;
            bool is_put = put(&halves[half], tag, line->numbers[slot]);
            assert(is_put);
            (void)is_put;
        }
    }
}

static __attribute__((noinline)) void split(struct span_table *table, uint32_t tag)
{
    const struct span_segment_place old = *span_table_place(table, tag);
    uint32_t bit = 1U << old.segment->depth;
    if (old.segment->depth == table->depth)
        double_places(table);
    const struct span_segment_place halves[2] = {new_segment(table, old.segment->depth + 1),
                                                 new_segment(table, old.segment->depth + 1)};
    divide(&old, halves);
    assert(halves[0].segment->live + halves[1].segment->live == old.segment->live);
    for (uint32_t i = tag >> HOME_BITS & (bit - 1); i >> table->depth == 0; i += bit)
        table->places[i] = halves[(i & bit) != 0];
    free_segment(table, old);
}

bool span_table_insert(struct span_table *table, uint32_t tag, uint32_t number)
{
    assert(tag != 0); /* 0 is an empty slot */
    if (!table->places) {
        table->places = memory_alloc(sizeof *table->places);
        table->places[0] = new_segment(table, 0);
    }
    const struct span_segment_place *place = span_table_place(table, tag);
    bool is_put = place->segment->live < SLOTS_FULL && put(place, tag, number);
    if (!is_put && place->segment->live >= SLOTS_FEW && place->segment->depth < DEPTH_MAX) {
        split(table, tag);
        place = span_table_place(table, tag);
    }
    if (!is_put && !put(place, tag, number))
        return false;
    table->live++;
    return true;
}

/* Returns a slot of the line whose entry a probe would look for in an earlier line, too: at
 * `hole`. Returns SPAN_LINE_SLOTS if there is none. */
static unsigned movable(const struct span_line *line, uint32_t at, uint32_t hole)
{
    for (unsigned slot = 0; slot < SPAN_LINE_SLOTS; slot++)
        if (line->tags[slot] != 0 &&
            distance(span_table_home(line->tags[slot]), at) >= distance(hole, at))
            return slot;
    return SPAN_LINE_SLOTS;
}

/* Fills a hole in a line that was full with entries of later lines, so that no probe ends early. */
static void fill(struct span_line *lines, uint32_t at, unsigned slot)
{
    uint32_t hole = at;
    for (;;) {
        at = span_table_behind(at);
        struct span_line *line = &lines[at];
        bool was_full = span_line_match(line, 0) == 0;
        unsigned from = at == hole ? SPAN_LINE_SLOTS : movable(line, at, hole);
        if (from < SPAN_LINE_SLOTS) {
            lines[hole].tags[slot] = line->tags[from];
            lines[hole].numbers[slot] = line->numbers[from];
            line->tags[from] = 0;
            hole = at;
            slot = from;
        }
        if (!was_full)
            return;
    }
}

static unsigned slots_of(const struct span_line *line, uint32_t tag, uint32_t number)
{
    return span_line_match(line, tag) & span_slots_match(line->numbers, number);
}

void span_table_remove(struct span_table *table, uint32_t tag, uint32_t number)
{
    assert(table->live > 0);
    const struct span_segment_place *place = span_table_place(table, tag);
    uint32_t at = span_table_home(tag);
    struct span_line *line = &place->lines[at];
    unsigned found = slots_of(line, tag, number);
    for (unsigned left = SPAN_TABLE_PROBES / SPAN_LINE_SLOTS; found == 0; left--) {
        assert(left > 1);
        at = span_table_behind(at);
        line = &place->lines[at];
        found = slots_of(line, tag, number);
    }
    bool was_full = span_line_match(line, 0) == 0;
    unsigned slot = (unsigned)__builtin_ctz(found);
    line->tags[slot] = 0;
    if (was_full)
        fill(place->lines, at, slot);
    assert(place->segment->live > 0);
    place->segment->live--;
    if (--table->live == 0)
        span_table_deinit(table);
}

size_t span_table_memory(const struct span_table *table)
{
    size_t places = table->places ? (size_t)1 << table->depth : 0;
    return table->segment_count * (SPAN_PAGE_SIZE + sizeof(struct span_segment)) +
           places * sizeof *table->places;
}

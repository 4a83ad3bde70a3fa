#include "core/data/thread_timeline.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>

#define OVERLAP_MIN_NS UINT64_C(1000000)

enum {
    BLOCK_SPANS_FIRST = 4,
    LOOK_OUTWARD_MAX = 64, /* covering spans that are looked at */
    LOOK_INSIDE_MAX = 256, /* contained spans that are looked at */
    /* A thread is an event loop if more than one in LOOP_PART of its spans hop, and some more, so
     * that a few say nothing. */
    LOOP_PART = 4,
    LOOP_MIN = 16,
    JUDGED_MAX = 512, /* then all count half */
};

/* A span of a timeline. */
struct place {
    uint32_t block;
    uint32_t span;
};

static struct timeline_span *at(const struct thread_timeline *timeline, struct place place)
{
    assert(place.block < timeline->count && place.span < timeline->blocks[place.block].count);
    return &timeline->blocks[place.block].spans[place.span];
}

/* ---- searching ---- */

/* Finds the last block that starts at this time or before. Returns false if there is none. A new
 * span is mostly later than all others, so that the last block is looked at first; likewise below.
 */
static bool find_block(const struct thread_timeline *timeline, uint64_t time_ns,
                       uint32_t *block_out)
{
    uint32_t low = 0, high = timeline->count;
    if (high > 0 && timeline->blocks[high - 1].start_ns <= time_ns)
        low = high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (timeline->blocks[middle].start_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    *block_out = low - 1;
    return low > 0;
}

/* Returns how many spans of the block start at this time or before. */
static uint32_t count_started(const struct timeline_block *block, uint64_t time_ns)
{
    uint32_t low = 0, high = block->count;
    if (high > 0 && block->spans[high - 1].start_ns <= time_ns)
        low = high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (block->spans[middle].start_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Looks for spans that cover a time, innermost first. */
struct outward {
    uint64_t time_ns;
    struct place next; /* the spans before this one were not looked at */
    unsigned looked;
};

static struct outward look_outward(const struct thread_timeline *timeline, uint64_t time_ns)
{
    struct outward outward = {.time_ns = time_ns};
    if (find_block(timeline, time_ns, &outward.next.block))
        outward.next.span = count_started(&timeline->blocks[outward.next.block], time_ns);
    else
        outward.next = (struct place){0, 0};
    return outward;
}

/* Whether the span, which started before this time, or one before it in its block ends then or
 * later. It may say so of one that ends up to a microsecond earlier. */
static bool reaches(const struct timeline_span *span, uint64_t time_ns)
{
    assert(span->start_ns <= time_ns);
    return span->reach_us == UINT32_MAX ||
           time_ns - span->start_ns <= span->reach_us * UINT64_C(1000);
}

static struct timeline_span *next_outward(const struct thread_timeline *timeline,
                                          struct outward *outward)
{
    if (timeline->count == 0 || outward->looked++ == LOOK_OUTWARD_MAX)
        return NULL;
    for (;;) {
        const struct timeline_block *block = &timeline->blocks[outward->next.block];
        if (block->reach_ns < outward->time_ns)
            return NULL;
        while (outward->next.span > 0 && block->end_ns >= outward->time_ns) {
            struct timeline_span *span = &block->spans[--outward->next.span];
            if (span->end_ns >= outward->time_ns)
                return span;
            if (!reaches(span, outward->time_ns))
                break;
        }
        if (outward->next.block == 0)
            return NULL;
        outward->next.block--;
        outward->next.span = timeline->blocks[outward->next.block].count;
    }
}

/* Returns the last time before another span begins; place: behind those that began before. */
static uint64_t last_before(const struct thread_timeline *timeline, struct place place)
{
    if (place.block < timeline->count && place.span < timeline->blocks[place.block].count)
        return at(timeline, place)->start_ns - 1;
    return place.block + 1 < timeline->count ? timeline->blocks[place.block + 1].start_ns - 1
                                             : UINT64_MAX;
}

/* Returns where the first span is that starts after this time. */
static struct place first_after(const struct thread_timeline *timeline, uint64_t time_ns)
{
    return look_outward(timeline, time_ns).next;
}

/* Returns the span at *place, and moves it to the next one; NULL at the end. */
static const struct timeline_span *next_started(const struct thread_timeline *timeline,
                                                struct place *place)
{
    while (place->block < timeline->count && place->span == timeline->blocks[place->block].count)
        *place = (struct place){place->block + 1, 0};
    if (place->block == timeline->count)
        return NULL;
    const struct timeline_span *span = at(timeline, *place);
    place->span++;
    return span;
}

/* Adds a range, which begins no earlier than those that are there. */
static void add_range(struct time_range *ranges, uint32_t *count, uint64_t start_ns,
                      uint64_t end_ns)
{
    struct time_range *last = *count > 0 ? &ranges[*count - 1] : NULL;
    if (!last || start_ns > last->end_ns)
        ranges[(*count)++] = (struct time_range){start_ns, end_ns};
    else if (end_ns > last->end_ns)
        last->end_ns = end_ns;
}

bool timeline_covered(const struct thread_timeline *timeline, uint64_t from_ns, uint64_t to_ns,
                      struct time_range *ranges_out, uint32_t max, uint32_t *count_out)
{
    *count_out = 0;
    if (timeline->count == 0 || timeline->blocks[0].start_ns > from_ns ||
        timeline->blocks[timeline->count - 1].end_ns < to_ns)
        return false;
    struct outward outward = look_outward(timeline, from_ns);
    struct place place = outward.next;
    for (const struct timeline_span *span; (span = next_outward(timeline, &outward));)
        if (!span->hops)
            add_range(ranges_out, count_out, from_ns, span->end_ns < to_ns ? span->end_ns : to_ns);
    for (uint32_t looked = *count_out;; looked++) {
        const struct timeline_span *span = next_started(timeline, &place);
        if (!span || span->start_ns > to_ns)
            return true;
        if (looked == max)
            return false;
        if (!span->hops)
            add_range(ranges_out, count_out, span->start_ns,
                      span->end_ns < to_ns ? span->end_ns : to_ns);
    }
}

/* ---- how two spans are related ---- */

static bool is_same_trace(const struct timeline_span *a, const struct timeline_span *b)
{
    return memcmp(a->key.trace_id, b->key.trace_id, TRACE_ID_SIZE) == 0;
}

static bool is_parent(const struct timeline_span *parent, const struct timeline_span *span)
{
    return memcmp(parent->key.span_id, span->parent_id, SPAN_ID_SIZE) == 0;
}

static bool is_sibling(const struct timeline_span *a, const struct timeline_span *b)
{
    static const uint8_t none[SPAN_ID_SIZE];
    return memcmp(a->parent_id, b->parent_id, SPAN_ID_SIZE) == 0 &&
           memcmp(a->parent_id, none, SPAN_ID_SIZE) != 0;
}

/* Returns how much of an overlap with the start or the end of a span does not count. */
static uint64_t margin_of(const struct timeline_span *span)
{
    uint64_t half_ns = (span->end_ns - span->start_ns) / 2;
    return half_ns < OVERLAP_MIN_NS ? half_ns : OVERLAP_MIN_NS;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static bool is_empty(const struct timeline_span *span)
{
    return span->start_ns == span->end_ns;
}

/* Whether two spans were running at the same time. Those that touch were not, nor those that would
 * not overlap if one of the clocks were a little different, nor those without a length, which
 * stand for an event. */
static bool do_overlap(const struct timeline_span *a, const struct timeline_span *b)
{
    uint64_t margin_ns = larger(margin_of(a), margin_of(b));
    return !is_empty(a) && !is_empty(b) && a->end_ns > b->start_ns && b->end_ns > a->start_ns &&
           a->end_ns - b->start_ns > margin_ns && b->end_ns - a->start_ns > margin_ns;
}

static bool ends_before(const struct timeline_span *a, const struct timeline_span *b)
{
    return a->end_ns < b->end_ns - margin_of(b);
}

/* Whether a span began and ended inside another one, or had the same times. */
static bool is_inside(const struct timeline_span *span, const struct timeline_span *other)
{
    return span->start_ns >= other->start_ns && span->end_ns <= other->end_ns;
}

/* Whether two spans that overlap, the inner one of which began later, do not nest on one thread. */
static bool is_stranger(const struct timeline_span *outer, const struct timeline_span *inner)
{
    return ends_before(outer, inner) || !is_same_trace(outer, inner) || is_sibling(outer, inner);
}

/* ---- finding ---- */

/* Follows the spans around one, innermost first. */
struct enclosing {
    const struct timeline_span *inner;
    const struct timeline_span *oldest; /* the outermost one that is known to be its ancestor */
    bool has_others;                    /* of its trace, and not known to be one, inside the next */
};

/* Whether the inner span ran in this one, and not beside it. */
static bool encloses(const struct timeline_span *span, struct enclosing *enclosing)
{
    if (!do_overlap(span, enclosing->inner))
        return true;
    if (!is_parent(span, enclosing->oldest)) {
        enclosing->has_others = true;
        return !span->hops && !is_stranger(span, enclosing->inner) &&
               !is_sibling(span, enclosing->oldest);
    }
    bool is_last = !enclosing->has_others;
    enclosing->oldest = span;
    return is_last && !ends_before(span, enclosing->inner);
}

struct timeline_found timeline_find(const struct thread_timeline *timeline, uint64_t time_ns)
{
    struct outward outward = look_outward(timeline, time_ns);
    struct timeline_found found = {.from_ns = time_ns,
                                   .to_ns = last_before(timeline, outward.next)};
    const struct timeline_span *span = next_outward(timeline, &outward);
    struct enclosing enclosing = {.inner = span, .oldest = span};
    found.is_unsure = span && (span->hops || timeline_is_loop(timeline));
    for (; span; span = next_outward(timeline, &outward)) {
        found.to_ns = span->end_ns < found.to_ns ? span->end_ns : found.to_ns;
        if (span != enclosing.inner && !encloses(span, &enclosing))
            found.is_unsure = true;
    }
    if (!found.is_unsure)
        found.span = enclosing.inner;
    if (outward.looked > LOOK_OUTWARD_MAX) /* not all that cover it were looked at */
        found.to_ns = time_ns;
    return found;
}

bool timeline_is_loop(const struct thread_timeline *timeline)
{
    return timeline->hopping * LOOP_PART > timeline->judged + LOOP_MIN;
}

/* ---- spans that do not nest ---- */

/* The time of a span without the margins in which an overlap does not count. */
struct core {
    uint64_t from_ns;
    uint64_t to_ns;
};

static struct core core_of(const struct timeline_span *span)
{
    return (struct core){span->start_ns + margin_of(span), span->end_ns - margin_of(span)};
}

static void mark(struct thread_timeline *timeline, struct timeline_span *span)
{
    timeline->hopping += !span->hops;
    span->hops = true;
}

/* Marks the spans that were running when this one began. Those that contain it are its ancestors,
 * or do not nest. Returns whether its parent ended before it, so that it went on elsewhere, too. */
static bool mark_around(struct thread_timeline *timeline, const struct timeline_span *span)
{
    struct outward outward = look_outward(timeline, core_of(span).from_ns);
    struct timeline_span *between[LOOK_OUTWARD_MAX]; /* this span and its parent */
    unsigned between_count = 0;
    for (struct timeline_span *other; (other = next_outward(timeline, &outward));) {
        bool is_its_parent = is_parent(other, span);
        if (is_inside(other, span) || !do_overlap(other, span))
            continue;
        if (is_stranger(other, span))
            mark(timeline, other);
        else if (!is_its_parent)
            between[between_count++] = other;
        for (unsigned i = 0; is_its_parent && i < between_count; i++)
            mark(timeline, between[i]);
        if (is_its_parent)
            return ends_before(other, span);
    }
    return false;
}

/* Whether another span began on the thread while this one was running, and ended after it. Its
 * children that did so went on elsewhere, too, and are marked. */
static bool ends_inside_another(struct thread_timeline *timeline, const struct timeline_span *span)
{
    struct core core = core_of(span);
    struct outward outward = look_outward(timeline, core.to_ns);
    bool is_found = false;
    for (struct timeline_span *other; (other = next_outward(timeline, &outward));) {
        if (other->start_ns <= core.from_ns)
            break;
        if (other->end_ns <= span->end_ns || !do_overlap(other, span))
            continue;
        is_found = true;
        other->hops |= is_parent(span, other) && ends_before(span, other);
    }
    return is_found;
}

/* Whether a span began on the thread while this one was running that is not its descendant. */
static bool contains_another(const struct thread_timeline *timeline,
                             const struct timeline_span *span)
{
    struct core core = core_of(span);
    struct place place = first_after(timeline, core.from_ns);
    for (unsigned looked = 0; looked < LOOK_INSIDE_MAX; looked++) {
        const struct timeline_span *other = next_started(timeline, &place);
        if (!other || other->start_ns >= core.to_ns)
            return false;
        if (do_overlap(other, span) && (!is_same_trace(other, span) || is_sibling(other, span)))
            return true;
    }
    return false;
}

/* Counts a span for timeline_is_loop. */
static void judge(struct thread_timeline *timeline, const struct timeline_span *span)
{
    timeline->judged += span->hops || span->end_ns - span->start_ns >= OVERLAP_MIN_NS;
    timeline->hopping += span->hops;
    if (timeline->judged < JUDGED_MAX)
        return;
    timeline->judged /= 2;
    timeline->hopping /= 2;
}

/* ---- adding ---- */

static void insert_block(struct thread_timeline *timeline, uint32_t position)
{
    assert(timeline->count < TIMELINE_BLOCKS_MAX && position <= timeline->count);
    if (timeline->count == timeline->capacity) {
        timeline->capacity = timeline->capacity ? timeline->capacity * 2 : 1;
        timeline->blocks =
            memory_grow(timeline->blocks, timeline->capacity, sizeof *timeline->blocks);
    }
    memmove(&timeline->blocks[position + 1], &timeline->blocks[position],
            (timeline->count - position) * sizeof *timeline->blocks);
    timeline->blocks[position] = (struct timeline_block){.count = 0};
    timeline->count++;
}

/* Computes how far blocks reach from this one on; those after the next one have not changed. */
static void update_reach(struct thread_timeline *timeline, uint32_t position)
{
    uint64_t reach_ns = position > 0 ? timeline->blocks[position - 1].reach_ns : 0;
    for (uint32_t i = position; i < timeline->count; i++) {
        struct timeline_block *block = &timeline->blocks[i];
        reach_ns = larger(reach_ns, block->end_ns);
        if (i > position + 1 && block->reach_ns == reach_ns)
            return;
        block->reach_ns = reach_ns;
    }
}

static void set_reach(struct timeline_span *span, uint64_t latest_ns)
{
    assert(latest_ns >= span->end_ns);
    uint64_t reach_us = (latest_ns - span->start_ns) / 1000 + 1;
    span->reach_us = reach_us < UINT32_MAX ? (uint32_t)reach_us : UINT32_MAX;
}

/* Computes the times of a block after its spans have changed. */
static void set_times(struct timeline_block *block)
{
    block->start_ns = block->spans[0].start_ns;
    block->end_ns = 0;
    for (uint32_t i = 0; i < block->count; i++) {
        block->end_ns = larger(block->end_ns, block->spans[i].end_ns);
        set_reach(&block->spans[i], block->end_ns);
    }
}

/* Moves the second half of a full block to a new one behind it. */
static void split_block(struct thread_timeline *timeline, uint32_t position)
{
    insert_block(timeline, position + 1);
    struct timeline_block *full = &timeline->blocks[position], *second = full + 1;
    uint32_t half = full->count / 2;
    second->capacity = TIMELINE_BLOCK_SPANS;
    second->spans = memory_grow(NULL, second->capacity, sizeof *second->spans);
    second->count = full->count - half;
    second->arrived_ns = full->arrived_ns;
    memcpy(second->spans, full->spans + half, second->count * sizeof *second->spans);
    full->count = half;
    set_times(full);
    set_times(second);
    update_reach(timeline, position);
}

/* Whether this span comes before another one because of its times: it began earlier, or it began at
 * the same time and ends later, so that it may contain the other. */
static bool is_before(const struct timeline_span *a, const struct timeline_span *b)
{
    return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->end_ns > b->end_ns;
}

/* Returns the end of the spans whose times are before those of this one. */
static struct place end_of_those_before(const struct thread_timeline *timeline,
                                        const struct timeline_span *span)
{
    struct place place = {0, 0};
    uint32_t low = 0, high = timeline->count - 1;
    assert(timeline->count > 0);
    if (is_before(&timeline->blocks[high].spans[0], span))
        place.block = low = high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (!is_before(&timeline->blocks[middle].spans[0], span)) {
            high = middle;
            continue;
        }
        place.block = middle;
        low = middle + 1;
    }
    const struct timeline_block *block = &timeline->blocks[place.block];
    if (is_before(&block->spans[block->count - 1], span))
        place.span = block->count;
    for (high = block->count; place.span < high;) {
        uint32_t middle = place.span + (high - place.span) / 2;
        if (is_before(&block->spans[middle], span))
            place.span = middle + 1;
        else
            high = middle;
    }
    return place;
}

/* Returns where a span belongs, so that of spans with the same times those inside come later:
 * behind its parent, else before all of them, because spans arrive when they end, inner ones first.
 */
static struct place place_in_order(const struct thread_timeline *timeline,
                                   const struct timeline_span *span)
{
    struct place place = end_of_those_before(timeline, span), next = place;
    for (unsigned looked = 0; looked < LOOK_OUTWARD_MAX; looked++) {
        const struct timeline_span *other = next_started(timeline, &next);
        if (!other || other->start_ns != span->start_ns || other->end_ns != span->end_ns)
            return place;
        if (is_parent(other, span))
            return next;
    }
    return place;
}

/* Returns the place behind all spans; makes room for one. */
static struct place place_behind(struct thread_timeline *timeline)
{
    uint32_t behind = timeline->count;
    if (behind > 0 && timeline->blocks[behind - 1].count < TIMELINE_BLOCK_SPANS)
        return (struct place){behind - 1, timeline->blocks[behind - 1].count};
    insert_block(timeline, behind);
    return (struct place){behind, 0};
}

/* Returns where a span belongs, likewise. */
static struct place place_for(struct thread_timeline *timeline, const struct timeline_span *span)
{
    if (timeline->count == 0)
        return place_behind(timeline);
    struct place place = place_in_order(timeline, span);
    const struct timeline_block *block = &timeline->blocks[place.block];
    if (block->count < TIMELINE_BLOCK_SPANS)
        return place;
    if (place.block + 1 == timeline->count && place.span == block->count)
        return place_behind(timeline);
    split_block(timeline, place.block);
    return place_for(timeline, span);
}

/* Finds the spans with the times of this one, which is one of them, in their order. Returns how
 * many there are up to it; 0: more than are looked at. */
static unsigned find_equals(const struct thread_timeline *timeline,
                            const struct timeline_span *span,
                            struct timeline_span *equals_out[LOOK_OUTWARD_MAX])
{
    struct place next = end_of_those_before(timeline, span);
    for (unsigned count = 0; count < LOOK_OUTWARD_MAX; count++) {
        const struct timeline_span *other = next_started(timeline, &next);
        assert(other);
        next.span--;
        equals_out[count] = at(timeline, next);
        next.span++;
        if (memcmp(&other->key, &span->key, sizeof span->key) == 0)
            return count + 1;
    }
    return 0;
}

/* Puts a span in the place of one with the same times. */
static void put(struct timeline_span *place, const struct timeline_span *span)
{
    uint32_t reach_us = place->reach_us;
    assert(place->start_ns == span->start_ns && place->end_ns == span->end_ns);
    *place = *span;
    place->reach_us = reach_us;
}

/* Moves those of the spans with the same times that descend from a new one behind it. They came
 * before their parent, and their order says nothing yet. */
static void put_descendants_behind(struct thread_timeline *timeline,
                                   const struct timeline_span *span)
{
    struct timeline_span *equals[LOOK_OUTWARD_MAX], moved[LOOK_OUTWARD_MAX];
    unsigned count = find_equals(timeline, span, equals), moved_count = 0, kept = 0;
    if (count <= 1)
        return;
    moved[moved_count++] = *equals[count - 1];
    for (unsigned i = 0; i + 1 < count; i++) {
        bool descends = false;
        for (unsigned k = 0; k < moved_count && !descends; k++)
            descends = is_parent(&moved[k], equals[i]);
        if (descends)
            moved[moved_count++] = *equals[i];
        else
            put(equals[kept++], equals[i]);
    }
    for (unsigned k = 0; k < moved_count; k++)
        put(equals[kept + k], &moved[k]);
    assert(kept + moved_count == count);
}

/* Notes the times of a span that was put here. Mostly it is the last one of its block. */
static void note_times(struct timeline_block *block, uint32_t position)
{
    if (position + 1 < block->count) {
        set_times(block);
        return;
    }
    struct timeline_span *span = &block->spans[position];
    block->start_ns = block->spans[0].start_ns;
    block->end_ns = larger(block->end_ns, span->end_ns);
    set_reach(span, block->end_ns);
}

static void insert(struct thread_timeline *timeline, struct place place,
                   const struct timeline_span *span, uint64_t now_ns)
{
    struct timeline_block *block = &timeline->blocks[place.block];
    if (block->count == block->capacity) {
        block->capacity = block->capacity ? block->capacity * 4 : BLOCK_SPANS_FIRST;
        block->spans = memory_grow(block->spans, block->capacity, sizeof *block->spans);
    }
    memmove(&block->spans[place.span + 1], &block->spans[place.span],
            (block->count - place.span) * sizeof *block->spans);
    block->spans[place.span] = *span;
    block->count++;
    block->arrived_ns = now_ns;
    bool is_latest = span->end_ns > block->reach_ns || block->count == 1;
    note_times(block, place.span);
    if (is_latest)
        update_reach(timeline, place.block);
}

static bool is_known(const struct thread_timeline *timeline, const struct timeline_span *span)
{
    struct outward outward = look_outward(timeline, span->start_ns);
    for (const struct timeline_span *other; (other = next_outward(timeline, &outward));)
        if (other->start_ns < span->start_ns ||
            memcmp(&other->key, &span->key, sizeof span->key) == 0)
            return other->start_ns == span->start_ns;
    return false;
}

/* Whether all spans that are known end before this one starts, so that none overlaps with it. */
static bool is_after_all(const struct thread_timeline *timeline, const struct timeline_span *span)
{
    return timeline->count == 0 || timeline->blocks[timeline->count - 1].reach_ns < span->start_ns;
}

bool timeline_add(struct thread_timeline *timeline, const struct timeline_span *span,
                  uint64_t now_ns)
{
    assert(span->start_ns <= span->end_ns);
    struct timeline_span added = *span;
    added.hops = false;
    if (is_after_all(timeline, span)) {
        judge(timeline, &added);
        insert(timeline, place_behind(timeline), &added, now_ns);
        return true;
    }
    if (is_known(timeline, span))
        return false;
    bool outlives_parent = mark_around(timeline, span);
    added.hops = ends_inside_another(timeline, span) || contains_another(timeline, span);
    judge(timeline, &added);
    added.hops |= outlives_parent; /* counts once, with its parent */
    insert(timeline, place_for(timeline, &added), &added, now_ns);
    put_descendants_behind(timeline, &added);
    return true;
}

uint32_t timeline_drop_first(struct thread_timeline *timeline)
{
    assert(timeline->count > 0);
    uint32_t count = timeline->blocks[0].count;
    free(timeline->blocks[0].spans);
    timeline->count--;
    memmove(&timeline->blocks[0], &timeline->blocks[1], timeline->count * sizeof *timeline->blocks);
    if (timeline->count == 0) {
        free(timeline->blocks);
        *timeline = (struct thread_timeline){.count = 0};
    }
    update_reach(timeline, 0);
    return count;
}

size_t timeline_memory(const struct thread_timeline *timeline)
{
    size_t size = timeline->capacity * sizeof *timeline->blocks;
    for (uint32_t i = 0; i < timeline->count; i++)
        size += timeline->blocks[i].capacity * sizeof(struct timeline_span);
    return size;
}

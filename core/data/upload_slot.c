#include "core/data/upload_slot.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>

#define SECOND_NS UINT64_C(1000000000)
#define HOLE_MIN_NS UINT64_C(2000000000)
#define SENDER_SILENCE_MIN_NS UINT64_C(2000000000)

enum {
    STEPS_MAX = 32,    /* bits of `holes` */
    STEPS_OF_HOLE = 8, /* a sender is continuous if at most one in so many left a hole */
};

bool upload_slot_counts(const struct upload_slot *slot, uint64_t now_ns, uint64_t window_ns)
{
    return is_within(slot->arrived_ns, now_ns, window_ns);
}

static bool may_be_rounded(struct upload_range range)
{
    return range.from_ns % SECOND_NS == 0 || range.to_ns % SECOND_NS == 0;
}

/* What is shorter is none: ends are rounded, and a profiler takes a while to begin again. If short
 * uploads have exact times, a missing one leaves a hole of its length. */
static uint64_t shortest_hole(struct upload_range range)
{
    uint64_t length_ns = range.to_ns - range.from_ns;
    if (length_ns / 4 * 3 < HOLE_MIN_NS && !may_be_rounded(range))
        return length_ns / 4 * 3;
    return length_ns / 2 > HOLE_MIN_NS ? length_ns / 2 : HOLE_MIN_NS;
}

/* ---- gaps ---- */

static void release(struct upload_gap *gap, struct list *released)
{
    for (struct list_link *link; (link = list_pop(&gap->waiting));)
        list_append(released, link);
}

static void forget(struct upload_gap *gap, struct list *released)
{
    release(gap, released);
    gap->noticed_ns = 0;
}

static void forget_all(struct upload_slot *slot, struct list *released)
{
    for (int i = 0; slot->gaps && i < UPLOAD_GAPS_MAX; i++)
        forget(&slot->gaps[i], released);
}

/* Lets nobody wait for the gaps. What fills them shows that they were not meant. */
static void excuse_all(struct upload_slot *slot, struct list *released)
{
    for (int i = 0; slot->gaps && i < UPLOAD_GAPS_MAX; i++) {
        release(&slot->gaps[i], released);
        slot->gaps[i].is_meant = true;
    }
}

/* Returns an unused gap; without one, the gap that was noticed first. */
static struct upload_gap *room_for_gap(struct upload_slot *slot)
{
    if (!slot->gaps)
        slot->gaps = memory_zalloc(UPLOAD_GAPS_MAX * sizeof *slot->gaps);
    struct upload_gap *first = slot->gaps;
    for (int i = 1; i < UPLOAD_GAPS_MAX; i++)
        if (slot->gaps[i].noticed_ns < first->noticed_ns)
            first = &slot->gaps[i];
    return first;
}

static struct upload_gap *add_gap(struct upload_slot *slot, struct upload_range range,
                                  uint64_t noticed_ns, struct list *released)
{
    struct upload_gap *gap = room_for_gap(slot);
    release(gap, released);
    gap->range = range;
    gap->noticed_ns = noticed_ns;
    gap->is_part = gap->is_meant = false;
    return gap;
}

/* Takes a late upload out of a gap. What is left on either side is still a gap, unless it is short
 * enough for a usual hole. */
static void fill(struct upload_slot *slot, struct upload_gap *gap, struct upload_range late,
                 struct list *released)
{
    uint64_t shortest_ns = shortest_hole(late);
    struct upload_range before = {gap->range.from_ns, late.from_ns};
    struct upload_range after = {late.to_ns, gap->range.to_ns};
    bool is_left = before.to_ns > before.from_ns + shortest_ns;
    bool is_right = after.to_ns > after.from_ns + shortest_ns;
    release(gap, released);
    if (is_left || is_right)
        gap->range = is_left ? before : after;
    if (is_left && is_right) {
        bool is_meant = gap->is_meant;
        struct upload_gap *rest = add_gap(slot, after, gap->noticed_ns, released);
        rest->is_part = true;
        rest->is_meant = is_meant;
    }
    if (is_left || is_right)
        return;
    forget(gap, released);
    if (!gap->is_part)
        slot->holes &= slot->holes - 1; /* the sender did not leave one */
}

static void fill_gaps(struct upload_slot *slot, struct upload_range late, uint64_t now_ns,
                      uint64_t window_ns, struct list *released)
{
    for (int i = 0; slot->gaps && i < UPLOAD_GAPS_MAX; i++)
        if (is_within(slot->gaps[i].noticed_ns, now_ns, window_ns) &&
            upload_ranges_overlap(slot->gaps[i].range, late))
            fill(slot, &slot->gaps[i], late, released);
}

struct upload_gap *upload_slot_find_gap(const struct upload_slot *slot, struct upload_range range,
                                        uint64_t now_ns, uint64_t window_ns)
{
    for (int i = 0; slot->gaps && i < UPLOAD_GAPS_MAX; i++)
        if (upload_gap_counts(&slot->gaps[i], now_ns, window_ns) &&
            upload_ranges_overlap(slot->gaps[i].range, range))
            return &slot->gaps[i];
    return NULL;
}

void upload_ranges_add(struct upload_ranges *ranges, struct upload_range range)
{
    unsigned i = 0;
    while (i < ranges->count && !upload_ranges_overlap(ranges->items[i], range))
        i++;
    if (i == ranges->count && i < UPLOAD_RANGES_MAX) {
        ranges->items[ranges->count++] = range;
        return;
    }
    struct upload_range *one = &ranges->items[i < UPLOAD_RANGES_MAX ? i : UPLOAD_RANGES_MAX - 1];
    *one = upload_ranges_union(*one, range);
}

/* ---- senders ---- */

static bool may_follow(struct upload_range before, struct upload_range range)
{
    return before.to_ns <= range.from_ns + upload_range_largest_overlap(range);
}

/* Returns the time between the end of one and the begin of the other. */
static uint64_t distance(struct upload_range before, struct upload_range range)
{
    return before.to_ns > range.from_ns ? before.to_ns - range.from_ns
                                        : range.from_ns - before.to_ns;
}

/* Returns the sender of this form whose upload this one follows most closely, or one whose upload
 * ended at the same time; NULL: it overlaps with those of all. */
static struct upload_sender *sender_of(struct upload_slot *slot, struct upload_range range,
                                       uint32_t form)
{
    struct upload_sender *nearest = NULL;
    for (int i = 0; i < UPLOAD_SENDERS_MAX; i++) {
        struct upload_sender *sender = &slot->senders[i];
        if (sender->arrived_ns == 0 || sender->form != form)
            continue;
        if (sender->range.to_ns == range.to_ns)
            return sender;
        if (may_follow(sender->range, range) &&
            (!nearest || distance(sender->range, range) < distance(nearest->range, range)))
            nearest = sender;
    }
    return nearest;
}

/* Returns an unused place, or that of the sender that has been silent for the longest time. */
static struct upload_sender *room_for_sender(struct upload_slot *slot)
{
    struct upload_sender *room = slot->senders;
    for (int i = 1; i < UPLOAD_SENDERS_MAX; i++)
        if (slot->senders[i].arrived_ns < room->arrived_ns)
            room = &slot->senders[i];
    return room;
}

static void note_sender(struct upload_slot *slot, struct upload_range range, uint32_t form,
                        uint64_t now_ns)
{
    struct upload_range latest = {slot->from_ns, slot->until_ns};
    bool overlaps = range.to_ns > latest.to_ns && !may_follow(latest, range);
    bool is_other = latest.from_ns != 0 && (overlaps || form != slot->form);
    if (!slot->senders && !is_other)
        return;
    if (!slot->senders) {
        slot->senders = memory_zalloc(UPLOAD_SENDERS_MAX * sizeof *slot->senders);
        slot->senders[0] = (struct upload_sender){latest, slot->form, slot->arrived_ns};
    }
    struct upload_sender *sender = sender_of(slot, range, form);
    if (sender && sender->range.to_ns == range.to_ns) /* a part, or told again after it waited */
        return;
    if (!sender)
        sender = room_for_sender(slot);
    *sender = (struct upload_sender){range, form, happened_at(now_ns)};
}

/* Returns for how long after its last upload a sender is waited for. */
static uint64_t longest_silence(const struct upload_sender *sender)
{
    return 2 * (sender->range.to_ns - sender->range.from_ns) + SENDER_SILENCE_MIN_NS;
}

static bool is_silent(const struct upload_sender *sender, uint64_t now_ns)
{
    return !is_within(sender->arrived_ns, now_ns, longest_silence(sender));
}

static uint64_t covered_by_all(const struct upload_slot *slot, uint64_t now_ns)
{
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; slot->senders && i < UPLOAD_SENDERS_MAX; i++) {
        const struct upload_sender *sender = &slot->senders[i];
        if (!is_silent(sender, now_ns) && sender->range.to_ns < least_ns)
            least_ns = sender->range.to_ns;
    }
    return least_ns == UINT64_MAX ? slot->until_ns : least_ns;
}

/* Returns when the first of those that are behind the others becomes silent; UINT64_MAX: none is
 * behind. */
static uint64_t silence_begins(const struct upload_slot *slot, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;
    for (int i = 0; slot->senders && i < UPLOAD_SENDERS_MAX; i++) {
        const struct upload_sender *sender = &slot->senders[i];
        uint64_t end_ns = sender->arrived_ns + longest_silence(sender) + 1;
        if (!is_silent(sender, now_ns) && sender->range.to_ns < slot->until_ns && end_ns < next_ns)
            next_ns = end_ns;
    }
    return next_ns;
}

uint64_t upload_slot_covered(const struct upload_slot *slot, uint64_t now_ns)
{
    uint64_t covered_ns = covered_by_all(slot, now_ns);
    bool is_partly = upload_slot_awaits_parts(slot, now_ns) && slot->before_ns < covered_ns;
    return is_partly ? slot->before_ns : covered_ns;
}

/* ---- parts ---- */

bool upload_slot_awaits_parts(const struct upload_slot *slot, uint64_t now_ns)
{
    return slot->parts_ns != 0 && is_within(slot->arrived_ns, now_ns, UPLOAD_PARTS_NS - 1);
}

void upload_slot_expect_parts(struct upload_slot *slot, uint64_t now_ns)
{
    slot->parts_ns = happened_at(now_ns);
    slot->has_parts = false;
}

void upload_slot_note_content(struct upload_slot *slot, struct upload_range range, uint32_t form,
                              uint64_t content, uint64_t now_ns, uint64_t window_ns)
{
    bool is_later = range.to_ns > slot->until_ns;
    bool is_same = range.from_ns != 0 && range.from_ns == slot->from_ns &&
                   range.to_ns == slot->until_ns && form == slot->form;
    assert(content != 0);
    if (is_same && slot->content != 0 && slot->content != content) {
        slot->parts_ns = happened_at(now_ns);
        slot->has_parts = true;
    } else if (!is_within(slot->parts_ns, now_ns, window_ns)) {
        slot->parts_ns = 0;
        slot->has_parts = false;
    }
    if (is_later)
        slot->before_ns = slot->until_ns;
    if (is_later || is_same)
        slot->content = content;
}

/* ---- time ---- */

/* from_ns stays 0 if it is not known. */
static struct upload_range moved(struct upload_range range, uint64_t by_ns)
{
    uint64_t from_ns = range.from_ns > by_ns ? range.from_ns - by_ns : range.from_ns > 0;
    uint64_t to_ns = range.to_ns > by_ns ? range.to_ns - by_ns : 1;
    return (struct upload_range){from_ns, from_ns > to_ns ? from_ns : to_ns};
}

static void move_gaps(struct upload_slot *slot, uint64_t by_ns, struct list *released)
{
    for (int i = 0; slot->gaps && i < UPLOAD_GAPS_MAX; i++) {
        release(&slot->gaps[i], released);
        if (slot->gaps[i].noticed_ns != 0)
            slot->gaps[i].range = moved(slot->gaps[i].range, by_ns);
    }
}

void upload_slot_move(struct upload_slot *slot, uint32_t form, uint64_t by_ns,
                      struct list *released)
{
    for (int i = 0; slot->senders && i < UPLOAD_SENDERS_MAX; i++)
        if (slot->senders[i].arrived_ns != 0 && slot->senders[i].form == form)
            slot->senders[i].range = moved(slot->senders[i].range, by_ns);
    if (slot->arrived_ns == 0 || slot->form != form)
        return;
    struct upload_range latest = moved((struct upload_range){slot->from_ns, slot->until_ns}, by_ns);
    slot->from_ns = latest.from_ns;
    slot->until_ns = latest.to_ns;
    slot->before_ns = slot->before_ns > by_ns ? slot->before_ns - by_ns : 0;
    slot->since_ns = slot->since_ns > by_ns ? slot->since_ns - by_ns : 0;
    if (!slot->senders)
        move_gaps(slot, by_ns, released);
}

uint64_t upload_slot_settle(struct upload_slot *slot, uint64_t now_ns, uint64_t window_ns,
                            struct list *released)
{
    uint64_t next_ns = silence_begins(slot, now_ns);
    if (upload_slot_awaits_parts(slot, now_ns) && slot->arrived_ns + UPLOAD_PARTS_NS < next_ns)
        next_ns = slot->arrived_ns + UPLOAD_PARTS_NS;
    for (int i = 0; slot->gaps && i < UPLOAD_GAPS_MAX; i++) {
        struct upload_gap *gap = &slot->gaps[i];
        uint64_t end_ns = gap->noticed_ns + window_ns + 1;
        if (!upload_gap_counts(gap, now_ns, window_ns))
            release(gap, released);
        else if (end_ns < next_ns)
            next_ns = end_ns;
    }
    return next_ns;
}

/* ---- uploads ---- */

/* Returns how many of the holes may still be filled by an upload that is late. */
static unsigned count_open_holes(const struct upload_slot *slot, uint64_t late_ns, uint64_t now_ns)
{
    unsigned open = 0;
    for (int i = 0; slot->gaps && i < UPLOAD_GAPS_MAX; i++)
        open += !slot->gaps[i].is_part && upload_gap_counts(&slot->gaps[i], now_ns, late_ns);
    return open;
}

/* Whether few of the last steps left a hole that nothing filled for as long as two uploads. */
static bool is_continuous(const struct upload_slot *slot, struct upload_range range,
                          uint64_t now_ns)
{
    uint64_t late_ns = 2 * (range.to_ns - range.from_ns);
    unsigned holes = (unsigned)__builtin_popcount(slot->holes);
    unsigned open = late_ns > 0 ? count_open_holes(slot, late_ns - 1, now_ns) : 0;
    assert(holes <= slot->steps);
    return open >= holes || (holes - open) * STEPS_OF_HOLE <= slot->steps;
}

/* After a long upload, what a short one leaves may be usual. */
static uint64_t shortest_hole_after(const struct upload_slot *slot, struct upload_range range)
{
    struct upload_range before = {slot->from_ns, slot->until_ns};
    uint64_t usual_ns = slot->from_ns != 0 ? shortest_hole(before) : HOLE_MIN_NS;
    uint64_t shortest_ns = shortest_hole(range);
    usual_ns = usual_ns < HOLE_MIN_NS ? usual_ns : HOLE_MIN_NS;
    return shortest_ns > usual_ns ? shortest_ns : usual_ns;
}

/* Goes on from the latest upload to a later one. The first hole of a new sender counts as a gap,
 * until a second one shows that it leaves them on purpose. */
static void step(struct upload_slot *slot, struct upload_range range, uint64_t now_ns,
                 struct list *released)
{
    bool is_hole = range.from_ns > slot->until_ns + shortest_hole_after(slot, range);
    if (is_hole) {
        struct upload_range hole = {slot->until_ns, range.from_ns};
        bool is_meant = !is_continuous(slot, range, now_ns);
        add_gap(slot, hole, happened_at(now_ns), released);
        if (is_meant)
            excuse_all(slot, released);
    }
    slot->holes = slot->holes << 1 | is_hole;
    slot->steps += slot->steps < STEPS_MAX;
}

/* The sender was silent for long, or begins. */
static void begin_anew(struct upload_slot *slot, struct upload_range range, uint64_t now_ns,
                       struct list *released)
{
    forget_all(slot, released);
    slot->began_ns = happened_at(now_ns);
    slot->since_ns = range.from_ns;
    slot->holes = slot->steps = 0;
    slot->from_ns = 0;
    free(slot->senders);
    slot->senders = NULL;
}

void upload_slot_add(struct upload_slot *slot, struct upload_range range, uint32_t form,
                     uint64_t now_ns, uint64_t window_ns, struct list *released)
{
    assert(range.from_ns <= range.to_ns);
    bool is_known = range.from_ns != 0, is_later = range.to_ns > slot->until_ns;
    if (!upload_slot_counts(slot, now_ns, window_ns) ||
        (is_known && range.from_ns > slot->until_ns && range.from_ns - slot->until_ns > window_ns))
        begin_anew(slot, range, now_ns, released);
    else if (is_known && is_later)
        step(slot, range, now_ns, released);
    if (is_known && range.from_ns < slot->since_ns)
        slot->since_ns = range.from_ns;
    if (is_known) {
        fill_gaps(slot, range, now_ns, window_ns, released);
        note_sender(slot, range, form, now_ns);
    }
    if (is_later) {
        slot->until_ns = range.to_ns;
        slot->from_ns = range.from_ns;
        slot->form = form;
    }
    slot->arrived_ns = happened_at(now_ns);
}

void upload_slot_deinit(struct upload_slot *slot)
{
    for (int i = 0; slot->gaps && i < UPLOAD_GAPS_MAX; i++)
        assert(slot->gaps[i].waiting.count == 0);
    free(slot->gaps);
    free(slot->senders);
    *slot = (struct upload_slot){.until_ns = 0};
}

size_t upload_slot_memory(const struct upload_slot *slot)
{
    return (slot->gaps ? UPLOAD_GAPS_MAX * sizeof *slot->gaps : 0) +
           (slot->senders ? UPLOAD_SENDERS_MAX * sizeof *slot->senders : 0);
}

#include "core/data/clock_offset.h"

#include <assert.h>

#define STEP_NS INT64_C(1000000)
#define USED_MIN_NS INT64_C(5000000)
/* Offsets that differ by less are one, or by less than a part of them. */
#define SAME_NS INT64_C(2000000)

enum {
    VOTES_KEPT = 16384, /* samples; then all votes count half */
    VOTES_SETTLED = 4096,
    /* If nothing looks wrong. Or if they say after a doubt what was known before it: a doubt is
     * mostly a false one. */
    VOTES_SETTLED_SOON = 1024,
    DOUBTED = 128, /* samples that are left of those before the clock was set */
    RANGES_MAX = 256,
    /* How many standard deviations the difference must have: there are hundreds of offsets to
     * choose from. */
    DEVIATIONS = 5,
    DEVIATIONS_OF_REST = 3, /* if the clocks are known to differ */
    DEVIATIONS_OF_EQUALS = 2,
    SAME_PART = 4,
    NO_OFFSET = CLOCK_OFFSETS / 2, /* the position of 0 */
    TIMES = 8,                     /* near each sample that checks */
    CHECKS_KEPT = 16384,           /* samples; then all count half */
    ENOUGH = 16,                   /* expected samples that decide something */
    FEW = 2,      /* a part of spans with 1 / FEW of the samples of another has few */
    VERY_FEW = 8, /* work inside spans is not as even as chance */
};

static_assert(NO_OFFSET * STEP_NS == CLOCK_OFFSET_MAX_NS, "as many offsets before 0 as after it");

/* Returns the first offset at or after this distance. */
static int64_t position_of(int64_t distance_ns)
{
    return (distance_ns + CLOCK_OFFSET_MAX_NS + STEP_NS - 1) / STEP_NS;
}

void clock_offset_vote(struct clock_offset *clock, const struct thread_timeline *timeline,
                       uint64_t time_ns)
{
    struct time_range ranges[RANGES_MAX];
    uint32_t count;
    if (time_ns < (uint64_t)CLOCK_OFFSET_MAX_NS || time_ns > INT64_MAX ||
        !timeline_covered(timeline, time_ns - CLOCK_OFFSET_MAX_NS, time_ns + CLOCK_OFFSET_MAX_NS,
                          ranges, RANGES_MAX, &count))
        return;
    for (uint32_t i = 0; i < count; i++) {
        int64_t first = position_of((int64_t)ranges[i].start_ns - (int64_t)time_ns);
        int64_t behind = position_of((int64_t)ranges[i].end_ns - (int64_t)time_ns + 1);
        assert(first >= 0 && behind <= CLOCK_OFFSETS);
        clock->votes[first]++;
        clock->votes[behind]--;
    }
    clock->samples++;
    clock->newer++;
}

static void fade(struct clock_offset *clock)
{
    /* The sums are halved, not the differences: rounding those would move the sums. */
    int32_t sum = 0, half = 0;
    for (uint32_t i = 0; i <= CLOCK_OFFSETS; i++) {
        sum += clock->votes[i];
        clock->votes[i] = sum / 2 - half;
        half = sum / 2;
    }
    clock->samples /= 2;
}

/* Whether chance does not explain that so many samples are inside spans at one offset, and so many
 * at another: a sign test (McNemar's). The samples that are inside at one of the two only are not
 * counted; there are at most as many as those that are outside at one of them. */
static bool is_significant(const struct clock_offset *clock, int64_t most, int64_t votes,
                           int64_t deviations)
{
    int64_t outside = (clock->samples - most) + (clock->samples - votes);
    return (most - votes) * (most - votes) > deviations * deviations * outside;
}

static int64_t offset_at(int64_t position)
{
    return position * STEP_NS - CLOCK_OFFSET_MAX_NS;
}

static int64_t absolute(int64_t value)
{
    return value < 0 ? -value : value;
}

/* Returns the offset that is nearest to 0 among those that may be as good as the best one. */
static int64_t least_of(const struct clock_offset *clock, int32_t most)
{
    int64_t least_ns = CLOCK_OFFSET_MAX_NS;
    int32_t sum = 0;
    for (int i = 0; i < CLOCK_OFFSETS; i++) {
        sum += clock->votes[i];
        if (absolute(offset_at(i)) < absolute(least_ns) &&
            !is_significant(clock, most, sum, DEVIATIONS_OF_EQUALS))
            least_ns = offset_at(i);
    }
    return least_ns;
}

/* Finds the candidate; 0: there is none. */
static void estimate(struct clock_offset *clock)
{
    int32_t sum = 0, most = 0, without = 0;
    int first = 0, last = 0; /* with the most votes */
    for (int i = 0; i < CLOCK_OFFSETS; i++) {
        sum += clock->votes[i];
        if (sum > most)
            first = i;
        if (sum >= most)
            last = i;
        if (sum > most)
            most = sum;
        if (i == NO_OFFSET)
            without = sum;
    }
    int64_t offset_ns = (offset_at(first) + offset_at(last)) / 2;
    bool is_rest = clock->is_rest;
    bool is_better =
        is_significant(clock, most, without, is_rest ? DEVIATIONS_OF_REST : DEVIATIONS);
    bool is_used = is_better && absolute(offset_ns) >= (is_rest ? STEP_NS : USED_MIN_NS) &&
                   absolute(offset_ns) <= CLOCK_OFFSET_USED_MAX_NS;
    clock->is_even = !is_rest && !is_significant(clock, most, without, DEVIATIONS_OF_EQUALS);
    clock->candidate_ns = is_used ? offset_ns : 0;
    clock->least_ns = is_used ? least_of(clock, most) : 0;
}

static bool differs(int64_t offset_ns, int64_t before_ns)
{
    return absolute(offset_ns - before_ns) > SAME_NS + absolute(before_ns) / SAME_PART;
}

bool clock_offset_is_settled(const struct clock_offset *clock)
{
    bool is_again = clock->was_settled && !differs(clock->candidate_ns, clock->settled_ns);
    return clock->samples >= (is_again || clock->is_even ? VOTES_SETTLED_SOON : VOTES_SETTLED);
}

bool clock_offset_find(struct clock_offset *clock)
{
    if (clock->newer > clock->samples / 16) {
        estimate(clock);
        clock->newer = 0;
        if (clock->samples > VOTES_KEPT)
            fade(clock);
    }
    const struct clock_check *check = &clock->check;
    if (clock->candidate_ns != 0 && (differs(clock->candidate_ns, check->offset_ns) ||
                                     differs(clock->least_ns, check->least_ns)))
        clock->check =
            (struct clock_check){.offset_ns = clock->candidate_ns, .least_ns = clock->least_ns};
    return clock->candidate_ns != 0;
}

/* ---- checking ---- */

static bool is_inside(const struct time_range *ranges, uint32_t count, uint64_t time_ns)
{
    uint32_t low = 0, high = count; /* the first one that ends at this time or later */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ranges[middle].end_ns < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && ranges[low].start_ns <= time_ns;
}

/* Returns a time at most CLOCK_OFFSET_MAX_NS away (xorshift). */
static uint64_t time_near(struct clock_offset *clock, uint64_t time_ns)
{
    uint32_t random = clock->random ? clock->random : 1;
    random ^= random << 13;
    random ^= random >> 17;
    random ^= random << 5;
    clock->random = random;
    return time_ns - (uint64_t)CLOCK_OFFSET_MAX_NS + random % (2 * (uint64_t)CLOCK_OFFSET_MAX_NS);
}

static uint32_t count_checks(const struct clock_check *check)
{
    uint32_t count = 0;
    for (int i = 0; i < CLOCK_PLACES; i++)
        count += check->samples.at[i];
    return count;
}

bool clock_offset_is_checked(const struct clock_offset *clock)
{
    return count_checks(&clock->check) >= VOTES_SETTLED;
}

static void halve(struct clock_places *places)
{
    for (int i = 0; i < CLOCK_PLACES; i++)
        places->at[i] /= 2;
    places->next /= 2;
}

static void note_place(const struct clock_check *check, const struct time_range *ranges,
                       uint32_t count, uint64_t time_ns, struct clock_places *places)
{
    uint64_t least_ns = (uint64_t)check->least_ns;
    bool without = is_inside(ranges, count, time_ns);
    bool with = is_inside(ranges, count, time_ns + (uint64_t)check->offset_ns);
    places->at[(without ? CLOCK_WITHOUT_OFFSET : 0) | (with ? CLOCK_WITH_OFFSET : 0)]++;
    places->next += without && is_inside(ranges, count, time_ns + least_ns) &&
                    !is_inside(ranges, count, time_ns + 2 * least_ns);
}

void clock_offset_check(struct clock_offset *clock, const struct thread_timeline *timeline,
                        uint64_t time_ns)
{
    struct clock_check *check = &clock->check;
    struct time_range ranges[RANGES_MAX];
    uint64_t reach_ns = 3 * (uint64_t)CLOCK_OFFSET_MAX_NS; /* of the time near it, moved twice */
    uint32_t count;
    if (time_ns < reach_ns || time_ns > INT64_MAX ||
        !timeline_covered(timeline, time_ns - reach_ns, time_ns + reach_ns, ranges, RANGES_MAX,
                          &count))
        return;
    for (int i = 0; i <= TIMES; i++) {
        uint64_t at_ns = i == 0 ? time_ns : time_near(clock, time_ns);
        note_place(check, ranges, count, at_ns, i == 0 ? &check->samples : &check->times);
    }
    if (count_checks(check) > CHECKS_KEPT) {
        halve(&check->samples);
        halve(&check->times);
    }
}

void clock_offset_doubt(struct clock_offset *clock)
{
    if (clock_offset_is_settled(clock)) {
        clock->was_settled = true;
        clock->settled_ns = clock->candidate_ns;
    }
    while (clock->samples > DOUBTED)
        fade(clock);
    while (count_checks(&clock->check) > DOUBTED) {
        halve(&clock->check.samples);
        halve(&clock->check.times);
    }
}

/* Returns how many samples are expected where so many of the times are, if those of other times
 * have so many. */
static uint64_t expect(uint64_t times, uint64_t samples, uint64_t other_times)
{
    return samples * times / (other_times > 0 ? other_times : 1);
}

enum offset_verdict clock_offset_judge(const struct clock_offset *clock, int64_t *offset_out)
{
    const struct clock_places *samples = &clock->check.samples, *times = &clock->check.times;
    uint64_t start = samples->at[CLOCK_WITHOUT_OFFSET], end = samples->at[CLOCK_WITH_OFFSET];
    uint64_t both = samples->at[CLOCK_WITH_BOTH], inner = times->at[CLOCK_WITH_BOTH];
    /* An offset moves as much time into spans as out of them. */
    uint64_t edges = (times->at[CLOCK_WITHOUT_OFFSET] + times->at[CLOCK_WITH_OFFSET] + 1) / 2;
    uint64_t next = expect(times->next, both, inner);
    *offset_out = 0;
    if (clock->candidate_ns == 0)
        return CLOCK_AGREES;
    if (expect(inner, end, edges) < ENOUGH) /* the spans are short: hardly any time has both */
        return start * FEW >= end ? CLOCK_AGREES : CLOCK_UNKNOWN;
    if (both * VERY_FEW < expect(inner, end, edges) || start * FEW > expect(edges, both, inner))
        return CLOCK_AGREES;
    if (next >= ENOUGH && (uint64_t)samples->next * FEW < next)
        return CLOCK_AGREES;
    *offset_out = clock->candidate_ns;
    return CLOCK_IS_OFF;
}

#include "core/data/clock_offset.h"

#include <assert.h>

#define STEP_NS INT64_C(1000000)
#define USED_MIN_NS INT64_C(5000000)

enum {
    VOTES_KEPT = 16384, /* samples; then all votes count half */
    VOTES_SETTLED = 4096,
    RANGES_MAX = 256,
    /* How many standard deviations the difference must have: there are hundreds of offsets to
     * choose from. */
    DEVIATIONS = 5,
    NO_OFFSET = CLOCK_OFFSETS / 2, /* the position of 0 */
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
static bool is_significant(int64_t samples, int64_t most, int64_t votes)
{
    int64_t outside = (samples - most) + (samples - votes);
    return (most - votes) * (most - votes) > (int64_t)DEVIATIONS * DEVIATIONS * outside;
}

static int64_t estimate(const struct clock_offset *clock)
{
    int32_t sum = 0, most = 0, without = 0;
    uint32_t first = 0, last = 0; /* with the most votes */
    for (uint32_t i = 0; i < CLOCK_OFFSETS; i++) {
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
    if (!is_significant(clock->samples, most, without))
        return 0;
    int64_t offset_ns = ((int64_t)first + last) * STEP_NS / 2 - CLOCK_OFFSET_MAX_NS;
    return offset_ns >= USED_MIN_NS || offset_ns <= -USED_MIN_NS ? offset_ns : 0;
}

bool clock_offset_is_settled(const struct clock_offset *clock)
{
    return clock->samples >= VOTES_SETTLED;
}

int64_t clock_offset_ns(struct clock_offset *clock)
{
    if (clock->newer > clock->samples / 16) {
        clock->offset_ns = estimate(clock);
        clock->newer = 0;
        if (clock->samples > VOTES_KEPT)
            fade(clock);
    }
    return clock->offset_ns;
}

#include "core/data/clock_search.h"

#include "core/data/clock_offset.h"
#include "core/data/share.h"

#include <assert.h>

#define MINUTE_NS UINT64_C(60000000000)
/* Arrivals do not show smaller differences: SDKs and profilers send at intervals. */
#define SAME_NS INT64_C(750000000)

enum {
    RANGES_MAX = 512,
    NEWER_MIN = 16,      /* votes, before they are counted again: that takes longer than they do */
    REQUESTS_MIN = 8,    /* so many tell how soon they arrive */
    KNOWN_MIN = 48,      /* samples that an offset must be known of, */
    KNOWN_PART = 2,      /* and this part of the most that any is known of */
    KNOWN_NEAR_MIN = 16, /* or near what arrivals show, */
    SAMPLES_STAND = 256, /* so many show that nothing is wrong, if nothing looks so */
    SAMPLES_SURE = 128,  /* if hardly any is outside: one of so many */
    OUTSIDE_PART = 16,
    SAMPLES_MAX = 1024,
    /* Standard deviations, squared. There are thousands of offsets to choose from, */
    SURELY_WORSE = 36,
    MAYBE_WORSE = 16, /* more samples will show it */
    NEAR_WORSE = 16,  /* hundreds near what arrivals show, */
    /* but few that are nearly as good as the best one. */
    HARDLY_WORSE = 9,
};

static_assert(CLOCK_SEARCH_OFFSETS <= INT16_MAX && SAMPLES_MAX < INT16_MAX / 2,
              "votes and positions fit");

/* ---- votes ---- */

/* Returns the first offset at or after this distance. */
static int64_t position_of(int64_t distance_ns)
{
    return (distance_ns + CLOCK_SEARCH_MAX_NS + CLOCK_SEARCH_STEP_NS - 1) / CLOCK_SEARCH_STEP_NS;
}

static void count_range(int16_t *votes, struct time_range range, uint64_t time_ns)
{
    int64_t first = position_of((int64_t)range.start_ns - (int64_t)time_ns);
    int64_t behind = position_of((int64_t)range.end_ns - (int64_t)time_ns + 1);
    assert(first >= 0 && first <= behind && behind <= CLOCK_SEARCH_OFFSETS);
    votes[first]++;
    votes[behind]--;
}

/* The time around a sample in which the spans of its thread are known. */
static struct time_range known_around(const struct thread_timeline *timeline, uint64_t time_ns,
                                      uint64_t reach_ns)
{
    struct time_range known = {time_ns - reach_ns, time_ns + reach_ns};
    if (timeline->blocks[0].start_ns > known.start_ns)
        known.start_ns = timeline->blocks[0].start_ns;
    if (timeline->blocks[timeline->count - 1].end_ns < known.end_ns)
        known.end_ns = timeline->blocks[timeline->count - 1].end_ns;
    return known;
}

void clock_search_vote(struct clock_search *search, const struct thread_timeline *timeline,
                       uint64_t time_ns)
{
    struct time_range ranges[RANGES_MAX];
    uint32_t count;
    if (timeline->count == 0 || time_ns < (uint64_t)CLOCK_SEARCH_MAX_NS ||
        time_ns >= (uint64_t)(INT64_MAX - CLOCK_SEARCH_MAX_NS) || search->samples == SAMPLES_MAX)
        return;
    /* Of a thread with many short spans, fewer offsets are looked at. */
    for (uint64_t reach_ns = CLOCK_SEARCH_MAX_NS; reach_ns > CLOCK_SEARCH_MAX_NS / 256;
         reach_ns /= 4) {
        struct time_range known = known_around(timeline, time_ns, reach_ns);
        if (known.start_ns >= known.end_ns)
            return;
        if (!timeline_covered(timeline, known.start_ns, known.end_ns, ranges, RANGES_MAX, &count))
            continue;
        count_range(search->known, known, time_ns);
        for (uint32_t i = 0; i < count; i++)
            count_range(search->inside, ranges[i], time_ns);
        search->samples++;
        search->newer++;
        return;
    }
}

/* ---- counting ---- */

struct shares {
    struct share of[CLOCK_SEARCH_OFFSETS]; /* the samples inside a span at each offset */
    int32_t most;                          /* samples that an offset is known of */
    int32_t least;                         /* an offset counts if it is known of so many */
    int64_t best;                          /* position; -1: none counts */
};

static void count_votes(const struct clock_search *search, struct shares *shares)
{
    struct share sum = {0, 0};
    int32_t most = 0;
    for (int64_t i = 0; i < CLOCK_SEARCH_OFFSETS; i++) {
        sum.known += search->known[i];
        sum.inside += search->inside[i];
        shares->of[i] = sum;
        most = sum.known > most ? sum.known : most;
    }
    shares->most = most;
}

/* Finds the best offset from the first position to the last one, among those that are known of
 * enough samples. */
static void find_best(struct shares *shares, int64_t first, int64_t last, int32_t known_min)
{
    int32_t half = shares->most / KNOWN_PART, least = half > known_min ? half : known_min;
    struct share best = {-1, 1}; /* less than any */
    shares->least = least;
    shares->best = -1;
    for (int64_t i = first; i <= last; i++)
        if (shares->of[i].known >= least && share_is_greater(shares->of[i], best)) {
            best = shares->of[i];
            shares->best = i;
        }
}

/* Whether an offset may be the right one. */
static bool is_candidate(const struct shares *shares, int64_t position)
{
    struct share share = shares->of[position], best = shares->of[shares->best];
    return share.known >= shares->least && !share_is_worse(share, best, HARDLY_WORSE);
}

/* The candidates around the best one. Offsets between them may be none, if they are not far apart:
 * chance makes some worse. */
struct candidates {
    int64_t first;
    int64_t last;
    bool are_all; /* there are none elsewhere */
};

static struct candidates candidates_of(const struct shares *shares)
{
    enum { APART = 25 }; /* 100 ms */
    struct candidates found = {shares->best, shares->best, true};
    for (int64_t i = shares->best; i >= 0 && i >= found.first - APART; i--)
        if (is_candidate(shares, i))
            found.first = i;
    for (int64_t i = shares->best; i < CLOCK_SEARCH_OFFSETS && i <= found.last + APART; i++)
        if (is_candidate(shares, i))
            found.last = i;
    for (int64_t i = 0; i < CLOCK_SEARCH_OFFSETS; i++)
        if ((i < found.first || i > found.last) && is_candidate(shares, i))
            found.are_all = false;
    return found;
}

/* Whether so many quarters of the samples are inside. Of a thread that has spans, most are, if the
 * clocks agree. */
static bool are_quarters(struct share share, int quarters)
{
    return share.inside * 4 >= share.known * quarters;
}

/* Whether it is known how many samples are inside at an offset. */
static bool is_known(const struct shares *shares, int64_t position)
{
    return shares->of[position].known >= shares->least / KNOWN_PART;
}

/* Returns what chance explains: as many samples as at the best offset, of all offsets. */
static struct share average(const struct shares *shares)
{
    int64_t inside = 0, known = 0;
    for (int64_t i = 0; i < CLOCK_SEARCH_OFFSETS; i++) {
        inside += shares->of[i].inside;
        known += shares->of[i].known;
    }
    int32_t count = shares->of[shares->best].known;
    return (struct share){known ? (int32_t)(inside * count / known) : 0, count};
}

static int64_t offset_at(struct candidates candidates)
{
    return (candidates.first + candidates.last) * CLOCK_SEARCH_STEP_NS / 2 - CLOCK_SEARCH_MAX_NS;
}

static int64_t clamp_position(int64_t position)
{
    return position < 0 ? 0 : position < CLOCK_SEARCH_OFFSETS ? position : CLOCK_SEARCH_OFFSETS - 1;
}

static uint64_t distance(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

/* Looks near what arrivals show, if that is not the present offset: there, fewer votes are enough,
 * the program may work mostly outside of spans, and it need not be known how good the present
 * offset is (no span has arrived yet of times that are ahead). But none elsewhere may be better. */
static bool find_near_estimate(struct shares *shares, int64_t present_ns,
                               struct clock_estimate estimate, int64_t *offset_out)
{
    if (!clock_estimate_differs(estimate, present_ns) ||
        distance(estimate.offset_ns, 0) > CLOCK_SEARCH_MAX_NS)
        return false;
    find_best(shares, clamp_position(position_of(estimate.offset_ns - SAME_NS)),
              clamp_position(position_of(estimate.offset_ns + SAME_NS)), KNOWN_NEAR_MIN);
    if (shares->best < 0)
        return false;
    int64_t present = clamp_position(position_of(present_ns));
    struct share near = shares->of[shares->best], chance = average(shares);
    struct share other = is_known(shares, present) ? shares->of[present] : chance;
    if (!share_is_worse(other, near, NEAR_WORSE) ||
        !(are_quarters(near, 3) || share_is_worse(chance, near, NEAR_WORSE)))
        return false;
    *offset_out = offset_at(candidates_of(shares));
    find_best(shares, 0, CLOCK_SEARCH_OFFSETS - 1, KNOWN_NEAR_MIN);
    return distance(*offset_out, estimate.offset_ns) < 2 * SAME_NS &&
           (shares->best < 0 || !share_is_worse(near, shares->of[shares->best], NEAR_WORSE));
}

/* Whether what arrives shows about the same difference. */
static bool agrees(struct clock_estimate estimate, int64_t offset_ns)
{
    return !estimate.is_known ||
           distance(estimate.offset_ns, offset_ns) < distance(offset_ns, 0) / 2 + SAME_NS / 3;
}

/* The verdict if an offset anywhere is better than the present one. One that is near belongs to
 * clock_offset, which also asks whether it is work beside spans that looks like a wrong clock. */
static enum clock_verdict judge_better(const struct shares *shares, int64_t present_ns,
                                       struct clock_estimate estimate, bool is_last,
                                       int64_t *offset_out)
{
    struct candidates candidates = candidates_of(shares);
    *offset_out = offset_at(candidates);
    if (distance(*offset_out, present_ns) <= CLOCK_OFFSET_USED_MAX_NS)
        return CLOCK_STANDS;
    if (candidates.are_all && agrees(estimate, *offset_out))
        return CLOCK_MOVES;
    if (!is_last)
        return CLOCK_OPEN;
    return estimate.is_known && agrees(estimate, 0) ? CLOCK_STANDS : CLOCK_UNCLEAR;
}

/* Whether hardly any sample is outside at the present offset, so that no other one can be much
 * better: SAMPLES_STAND of them would not show it. Most clocks agree, and then this is all that is
 * counted. */
static bool are_nearly_all_inside(const struct clock_search *search, int64_t present_ns)
{
    struct share share = {0, 0};
    int64_t present = clamp_position(position_of(present_ns));
    for (int64_t i = 0; i <= present; i++) {
        share.known += search->known[i];
        share.inside += search->inside[i];
    }
    bool is_known = (uint32_t)share.known >= search->samples / KNOWN_PART;
    return is_known && (share.known - share.inside) * OUTSIDE_PART <= share.known;
}

enum clock_verdict clock_search_decide(struct clock_search *search, int64_t present_ns,
                                       struct clock_estimate estimate, int64_t *offset_out)
{
    struct shares shares;
    bool is_last = search->samples == SAMPLES_MAX;
    if (search->newer < NEWER_MIN + search->samples / 16 && !is_last)
        return CLOCK_OPEN;
    search->newer = 0;
    if (!clock_estimate_differs(estimate, present_ns) && are_nearly_all_inside(search, present_ns))
        return search->samples >= SAMPLES_SURE ? CLOCK_STANDS : CLOCK_OPEN;
    count_votes(search, &shares);
    if (find_near_estimate(&shares, present_ns, estimate, offset_out))
        return CLOCK_MOVES;
    find_best(&shares, 0, CLOCK_SEARCH_OFFSETS - 1, KNOWN_MIN);
    int64_t present = clamp_position(position_of(present_ns));
    bool may_be_better = shares.best >= 0 && is_known(&shares, present) &&
                         are_quarters(shares.of[shares.best], 2) &&
                         share_is_worse(shares.of[present], shares.of[shares.best], MAYBE_WORSE);
    if (may_be_better && share_is_worse(shares.of[present], shares.of[shares.best], SURELY_WORSE))
        return judge_better(&shares, present_ns, estimate, is_last, offset_out);
    bool are_enough = search->samples >= SAMPLES_STAND && !may_be_better;
    return are_enough || is_last ? CLOCK_STANDS : CLOCK_OPEN;
}

/* ---- arrivals ---- */

static int64_t least_lag(const struct clock_lag *lag)
{
    return lag->now_ns < lag->before_ns ? lag->now_ns : lag->before_ns;
}

/* Whether a request arrives so much sooner than others did that the clock was set. */
static bool is_sooner(const struct clock_lag *lag, int64_t lag_ns)
{
    return lag->requests >= REQUESTS_MIN && lag_ns < least_lag(lag) - SAME_NS;
}

bool clock_lag_add(struct clock_lag *lag, uint64_t end_ns, uint64_t arrived_ns)
{
    if (arrived_ns == 0)
        return false;
    int64_t now_ns = (int64_t)(arrived_ns - end_ns);
    bool is_set = is_sooner(lag, now_ns);
    if (is_set)
        *lag = (struct clock_lag){.since_ns = 0};
    lag->requests += lag->requests < REQUESTS_MIN;
    if (lag->since_ns == 0 || arrived_ns - lag->since_ns > MINUTE_NS) {
        lag->before_ns = lag->since_ns == 0 ? INT64_MAX : lag->now_ns;
        lag->since_ns = arrived_ns;
        lag->now_ns = INT64_MAX;
    }
    lag->now_ns = now_ns < lag->now_ns ? now_ns : lag->now_ns;
    return is_set;
}

bool clock_estimate_differs(struct clock_estimate estimate, int64_t offset_ns)
{
    return estimate.is_known && distance(estimate.offset_ns, offset_ns) >= SAME_NS;
}

struct clock_estimate clock_lag_compare(const struct clock_lag *spans,
                                        const struct clock_lag *samples)
{
    if (spans->since_ns == 0 || samples->since_ns == 0)
        return (struct clock_estimate){.is_known = false};
    return (struct clock_estimate){
        true, (int64_t)((uint64_t)least_lag(samples) - (uint64_t)least_lag(spans))};
}

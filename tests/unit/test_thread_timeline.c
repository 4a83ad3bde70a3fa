#include "core/data/thread_timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SPANS = 600, RANGES_MAX = SPANS, QUESTIONS = 400, SEEDS = 40 };
#define HORIZON_NS UINT64_C(2000000) /* in which spans begin */

static uint64_t below(unsigned *seed, uint64_t limit)
{
    return ((uint64_t)rand_r(seed) << 31 | (uint64_t)rand_r(seed)) % limit;
}

/* Lengths of all sizes: many spans are hardly longer than a microsecond, some last for hours. */
static uint64_t random_length(unsigned *seed)
{
    return below(seed, UINT64_C(1) << below(seed, 45)) / (below(seed, 3) ? 1000 : 1);
}

/* Spans arrive nearly in the order of their starts. Many are equal in their times, and come before
 * their parents. */
static void add_spans(struct thread_timeline *timeline, unsigned *seed)
{
    struct timeline_span span = {.start_ns = 1, .end_ns = 1};
    for (uint64_t id = 1; id <= SPANS; id++) {
        bool is_equal = below(seed, 3) == 0;
        uint64_t parent = below(seed, 2) ? id + 1 : below(seed, id);
        span.start_ns = is_equal             ? span.start_ns
                        : below(seed, 5) > 0 ? HORIZON_NS * id / SPANS
                                             : 1 + below(seed, HORIZON_NS);
        span.end_ns = is_equal ? span.end_ns : span.start_ns + random_length(seed);
        memcpy(span.key.span_id, &id, sizeof id);
        memcpy(span.parent_id, &parent, sizeof parent);
        span.key.trace_id[0] = (uint8_t)(below(seed, 16) == 0);
        assert_true(timeline_add(timeline, &span, 1));
    }
}

/* Whether a time is in the ranges; they are in order, with time between them. */
static bool has(const struct time_range *ranges, uint32_t count, uint64_t time_ns)
{
    bool is_in = false;
    for (uint32_t i = 0; i < count; i++) {
        assert_true(ranges[i].start_ns <= ranges[i].end_ns);
        assert_true(i == 0 || ranges[i - 1].end_ns < ranges[i].start_ns);
        is_in |= ranges[i].start_ns <= time_ns && time_ns <= ranges[i].end_ns;
    }
    return is_in;
}

/* How many spans cover a time, and how many of them did not go on elsewhere. */
struct covering {
    uint32_t all, steady;
};

static struct covering covering(const struct thread_timeline *timeline, uint64_t time_ns)
{
    struct covering found = {0};
    for (uint32_t b = 0; b < timeline->count; b++)
        for (uint32_t i = 0; i < timeline->blocks[b].count; i++) {
            const struct timeline_span *span = &timeline->blocks[b].spans[i];
            bool covers = span->start_ns <= time_ns && time_ns <= span->end_ns;
            found.all += covers;
            found.steady += covers && !span->hops;
        }
    return found;
}

/* Returns a time at an edge of a span, or near it. */
static uint64_t time_at_edge(const struct thread_timeline *timeline, unsigned *seed)
{
    const struct timeline_block *block = &timeline->blocks[below(seed, timeline->count)];
    const struct timeline_span *span = &block->spans[below(seed, block->count)];
    return (below(seed, 2) ? span->end_ns : span->start_ns) + below(seed, 3) - 1;
}

static void ask(const struct thread_timeline *timeline, unsigned *seed)
{
    enum { LOOKED_AT = 64 }; /* of the spans that cover a time */
    struct time_range ranges[RANGES_MAX];
    uint32_t count;
    uint64_t from_ns = time_at_edge(timeline, seed), to_ns = from_ns + below(seed, HORIZON_NS / 4);
    uint64_t time_ns = from_ns + below(seed, to_ns - from_ns + 1);
    struct covering at = covering(timeline, time_ns);
    struct timeline_found found = timeline_find(timeline, time_ns);
    assert_int_equal(found.span || found.is_unsure, at.all > 0);
    if (covering(timeline, from_ns).all <= LOOKED_AT &&
        timeline_covered(timeline, from_ns, to_ns, ranges, RANGES_MAX, &count))
        assert_int_equal(has(ranges, count, time_ns), at.steady > 0);
}

static void test_a_search_finds_what_covers_a_time(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SEEDS; i++) {
        struct thread_timeline timeline = {.count = 0};
        unsigned seed = i;
        add_spans(&timeline, &seed);
        for (int question = 0; question < QUESTIONS; question++)
            ask(&timeline, &seed);
        while (timeline.count > 0)
            timeline_drop_first(&timeline);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_search_finds_what_covers_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

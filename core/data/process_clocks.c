#include "core/data/process_clocks.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>

/* After a search, the clock is not looked at for some requests. */
enum { SPANS_OF_SEARCH = 4096, SEARCHES_MAX = 256, REQUESTS_BETWEEN_SEARCHES = 16 };

/* ---- the table ---- */

void process_clocks_init(struct process_clocks *clocks, uint64_t max_spans)
{
    uint64_t most = 1 + max_spans / SPANS_OF_SEARCH;
    *clocks = (struct process_clocks){.most_searches =
                                          most < SEARCHES_MAX ? (uint32_t)most : SEARCHES_MAX};
}

static void end_search(struct process_clocks *clocks, struct process_clock *clock)
{
    clocks->searches -= clock->search != NULL;
    free(clock->search);
    clock->search = NULL;
}

static void free_clock(struct process_clocks *clocks, uint32_t place)
{
    struct process_clock *clock = clocks->items[place];
    if (clock)
        end_search(clocks, clock);
    free(clock);
    clocks->items[place] = NULL;
}

void process_clocks_deinit(struct process_clocks *clocks)
{
    for (uint32_t i = 0; i < PROCESS_CLOCKS_MAX; i++)
        free_clock(clocks, i);
    assert(clocks->searches == 0);
}

struct process_clock *process_clocks_find(const struct process_clocks *clocks, uint16_t instance)
{
    struct process_clock *clock = clocks->items[instance % PROCESS_CLOCKS_MAX];
    return clock && clock->instance == instance ? clock : NULL;
}

struct process_clock *process_clocks_open(struct process_clocks *clocks, uint16_t instance)
{
    struct process_clock *clock = process_clocks_find(clocks, instance);
    if (clock)
        return clock;
    uint32_t place = instance % PROCESS_CLOCKS_MAX;
    free_clock(clocks, place);
    clock = memory_zalloc(sizeof *clock);
    clock->instance = instance;
    clocks->items[place] = clock;
    return clock;
}

void process_clocks_sweep(struct process_clocks *clocks, uint64_t now_ns, uint64_t window_ns)
{
    for (uint32_t i = 0; i < PROCESS_CLOCKS_MAX; i++) {
        struct process_clock *clock = clocks->items[i];
        if (!clock)
            continue;
        if (clock->is_used)
            clock->used_ns = now_ns;
        clock->is_used = false;
        if (clock->used_ns + window_ns < now_ns)
            free_clock(clocks, i);
    }
}

size_t process_clocks_memory(const struct process_clocks *clocks)
{
    size_t size = clocks->searches * sizeof(struct clock_search);
    for (uint32_t i = 0; i < PROCESS_CLOCKS_MAX; i++)
        size += clocks->items[i] ? sizeof(struct process_clock) : 0;
    return size;
}

/* ---- votes ---- */

/* Begins to look at a clock, if it is its turn. */
static void begin_search(struct process_clocks *clocks, struct process_clock *clock)
{
    if (clock->requests > 0) {
        clock->requests--;
    } else if (!clock->search && clocks->searches < clocks->most_searches) {
        clock->search = memory_zalloc(sizeof *clock->search);
        clocks->searches++;
    }
}

void process_clock_begin(struct process_clocks *clocks, struct process_clock *clock)
{
    clock->is_used = true;
    begin_search(clocks, clock);
}

static void vote_in_search(struct clock_search *search, const struct thread_timeline *timeline,
                           uint64_t *searched_ns, uint64_t time_ns)
{
    uint64_t apart_ns = time_ns > *searched_ns ? time_ns - *searched_ns : *searched_ns - time_ns;
    if (apart_ns < CLOCK_SEARCH_APART_NS)
        return;
    *searched_ns = time_ns;
    clock_search_vote(search, timeline, time_ns);
}

void process_clock_vote(struct process_clock *clock, const struct thread_timeline *timeline,
                        uint64_t *searched_ns, uint64_t time_ns)
{
    if (clock->search)
        vote_in_search(clock->search, timeline, searched_ns, time_ns);
    clock_offset_vote(&clock->offset, timeline, time_ns + (uint64_t)clock->moved_ns);
}

/* ---- decisions ---- */

struct clock_difference process_clock_difference(const struct process_clock *clock)
{
    struct clock_difference difference = {0, false};
    if (!clock)
        return difference;
    enum offset_verdict verdict = clock_offset_judge(&clock->offset, &difference.offset_ns);
    difference.offset_ns += clock->moved_ns;
    difference.is_unclear = clock->is_unclear || verdict == CLOCK_UNKNOWN;
    return difference;
}

static void move_clock(struct process_clock *clock, int64_t offset_ns)
{
    clock->moved_ns = offset_ns;
    clock->offset = (struct clock_offset){.is_rest = offset_ns != 0};
}

/* Begins anew to look at a clock that seems to have been set. */
static void doubt_clock(struct process_clocks *clocks, struct process_clock *clock)
{
    clock_offset_doubt(&clock->offset);
    end_search(clocks, clock);
    clock->requests = 0;
    begin_search(clocks, clock);
}

/* Decides what the search has found. */
static void decide_search(struct process_clocks *clocks, struct process_clock *clock,
                          struct clock_estimate estimate)
{
    int64_t offset_ns, present_ns = process_clock_difference(clock).offset_ns;
    enum clock_verdict verdict =
        clock_search_decide(clock->search, present_ns, estimate, &offset_ns);
    if (verdict == CLOCK_OPEN)
        return;
    if (verdict == CLOCK_MOVES)
        move_clock(clock, offset_ns);
    clock->is_unclear = verdict == CLOCK_UNCLEAR;
    clock->requests = REQUESTS_BETWEEN_SEARCHES;
    end_search(clocks, clock);
}

void process_clock_end(struct process_clocks *clocks, struct process_clock *clock,
                       uint64_t newest_ns, uint64_t arrived_ns, const struct clock_lag *spans)
{
    bool is_set = clock_lag_add(&clock->lag, newest_ns, arrived_ns);
    struct clock_estimate estimate = {.is_known = false};
    if (spans)
        estimate = clock_lag_compare(spans, &clock->lag);
    if (is_set) {
        doubt_clock(clocks, clock);
        /* Until it is known by how much: */
        clock->is_unclear |= clock->search && clock_estimate_differs(estimate, clock->moved_ns);
    } else if (clock->search) {
        decide_search(clocks, clock, estimate);
    }
}

void process_clock_look(struct process_clocks *clocks, struct process_clock *clock)
{
    if (!clock_watch_is_set(&clock->watch))
        return;
    clock->lag = (struct clock_lag){.since_ns = 0}; /* what arrived before says nothing any more */
    doubt_clock(clocks, clock);
}

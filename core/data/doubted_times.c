#include "core/data/doubted_times.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { RANGES_FIRST = 4, COARSER = DOUBTED_RANGES_MAX / 2 };

static struct time_range both(struct time_range a, struct time_range b)
{
    return (struct time_range){a.start_ns < b.start_ns ? a.start_ns : b.start_ns,
                               a.end_ns > b.end_ns ? a.end_ns : b.end_ns};
}

/* Makes one of each two ranges of the older half. */
static void coarsen(struct doubted_times *times)
{
    assert(times->count == DOUBTED_RANGES_MAX);
    for (size_t i = 0; i < COARSER / 2; i++)
        times->ranges[i] = both(times->ranges[2 * i], times->ranges[2 * i + 1]);
    times->count -= COARSER / 2;
    memmove(&times->ranges[COARSER / 2], &times->ranges[COARSER],
            (times->count - COARSER / 2) * sizeof *times->ranges);
}

/* Returns where a range belongs: behind those that begin before it. */
static uint32_t place_for(const struct doubted_times *times, struct time_range range)
{
    uint32_t low = 0, high = times->count;
    if (high > 0 && times->ranges[high - 1].start_ns <= range.start_ns)
        return high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (times->ranges[middle].start_ns <= range.start_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(struct doubted_times *times, uint32_t place, struct time_range range)
{
    if (times->count == times->capacity) {
        times->capacity = times->capacity ? times->capacity * 2 : RANGES_FIRST;
        times->ranges = memory_grow(times->ranges, times->capacity, sizeof *times->ranges);
    }
    memmove(&times->ranges[place + 1], &times->ranges[place],
            (times->count - place) * sizeof *times->ranges);
    times->ranges[place] = range;
    times->count++;
}

/* Joins a range with those behind it that it touches now. */
static void join_next(struct doubted_times *times, uint32_t place)
{
    uint32_t next = place + 1;
    while (next < times->count && doubted_ranges_touch(times->ranges[place], times->ranges[next])) {
        times->ranges[place] = both(times->ranges[place], times->ranges[next]);
        next++;
    }
    if (next == place + 1)
        return;
    memmove(&times->ranges[place + 1], &times->ranges[next],
            (times->count - next) * sizeof *times->ranges);
    times->count -= next - place - 1;
}

void doubted_times_add(struct doubted_times *times, struct time_range range)
{
    assert(range.start_ns <= range.end_ns);
    if (times->count == DOUBTED_RANGES_MAX)
        coarsen(times);
    uint32_t place = place_for(times, range);
    if (place > 0 && doubted_ranges_touch(times->ranges[place - 1], range)) {
        place--;
        times->ranges[place] = both(times->ranges[place], range);
    } else {
        insert(times, place, range);
    }
    join_next(times, place);
}

bool doubted_times_meet(const struct doubted_times *times, struct time_range range)
{
    uint32_t low = 0, high = times->count;
    while (low < high) { /* the first one that ends no earlier than the range begins */
        uint32_t middle = low + (high - low) / 2;
        if (times->ranges[middle].end_ns < range.start_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low < times->count && times->ranges[low].start_ns <= range.end_ns;
}

void doubted_times_deinit(struct doubted_times *times)
{
    free(times->ranges);
    *times = (struct doubted_times){.count = 0};
}

#include "extensions/explore/percentiles.h"

#include <math.h>
#include <stdlib.h>

unsigned fine_bucket_of(uint64_t ns)
{
    unsigned bucket = store_bucket_of(ns);
    uint64_t lower = store_bucket_lower(bucket), part = ns - lower;
    uint64_t width = store_bucket_lower(bucket + 1) - lower;
    uint64_t fine = part / (width / FINE_PARTS);
    return bucket * FINE_PARTS + (unsigned)(fine < FINE_PARTS ? fine : FINE_PARTS - 1);
}

uint64_t fine_bucket_lower(unsigned fine)
{
    unsigned bucket = fine / FINE_PARTS;
    uint64_t lower = store_bucket_lower(bucket);
    return lower + (store_bucket_lower(bucket + 1) - lower) / FINE_PARTS * (fine % FINE_PARTS);
}

static int compare_counts(const void *a, const void *b)
{
    const struct fine_count *one = a, *other = b;
    return one->bucket < other->bucket ? -1 : one->bucket > other->bucket;
}

/* Where the counts of each operation begin, in one array for all. */
static void place(struct fine_counts *groups, uint32_t operations, struct fine_count *all)
{
    for (uint32_t i = 0; i < operations; i++) {
        groups[i].first = all;
        all += groups[i].size;
        groups[i].size = 0;
    }
}

struct fine_counts *fine_counts_group(struct arena *arena, const struct fine_count *counts,
                                      uint32_t size, uint32_t operations)
{
    struct fine_counts *groups = arena_array(arena, operations + 1, sizeof *groups);
    for (uint32_t i = 0; i < size; i++) {
        assert(counts[i].operation < operations);
        groups[counts[i].operation].size++;
    }
    place(groups, operations, arena_array(arena, size + 1, sizeof *counts));
    for (uint32_t i = 0; i < size; i++) {
        struct fine_counts *group = &groups[counts[i].operation];
        group->first[group->size++] = counts[i];
        group->spans += counts[i].spans;
    }
    for (uint32_t i = 0; i < operations; i++)
        if (groups[i].size > 1)
            qsort(groups[i].first, groups[i].size, sizeof *counts, compare_counts);
    return groups;
}

/* Entries of one bucket come from several cells. Returns the spans in the bucket at *index, and
 * moves *index behind it. */
static uint64_t take_bucket(const struct fine_counts *counts, uint32_t *index)
{
    unsigned bucket = counts->first[*index].bucket;
    uint64_t spans = 0;
    while (*index < counts->size && counts->first[*index].bucket == bucket)
        spans += counts->first[(*index)++].spans;
    return spans;
}

uint64_t fine_counts_percentile(const struct fine_counts *counts, double part, uint64_t max_ns)
{
    uint64_t before = 0, rank = (uint64_t)ceil(part * (double)counts->spans);
    for (uint32_t i = 0; i < counts->size;) {
        unsigned bucket = counts->first[i].bucket;
        uint64_t spans = take_bucket(counts, &i);
        before += spans;
        if (before < rank)
            continue;
        uint64_t lower = fine_bucket_lower(bucket), upper = fine_bucket_lower(bucket + 1);
        if (max_ns > lower && max_ns < upper)
            upper = max_ns;
        double inside = spans ? (double)(spans - (before - rank)) / (double)spans : 0;
        return lower + (uint64_t)((double)(upper - lower) * inside);
    }
    return 0;
}

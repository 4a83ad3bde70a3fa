#include "extensions/explore/percentiles.h"

#include <math.h>

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
    return groups;
}

/* Returns the duration of the span with this rank (from 1) in a bucket of so many spans. */
static uint64_t interpolate(unsigned bucket, uint64_t rank, uint64_t spans, uint64_t max_ns)
{
    uint64_t lower = fine_bucket_lower(bucket), upper = fine_bucket_lower(bucket + 1);
    assert(rank <= spans && spans > 0);
    bool is_last = bucket == FINE_BUCKETS - 1; /* it has no upper bound */
    if (max_ns >= lower && (max_ns < upper || is_last))
        upper = max_ns;
    return lower + (uint64_t)((double)(upper - lower) * (double)rank / (double)spans);
}

void fine_counts_percentiles(const struct fine_counts *counts, const double *parts, unsigned count,
                             uint64_t max_ns, uint64_t *out)
{
    uint64_t spans[FINE_BUCKETS] = {0}, before = 0;
    for (uint32_t i = 0; i < counts->size; i++)
        spans[counts->first[i].bucket] += counts->first[i].spans;
    unsigned bucket = 0;
    for (unsigned i = 0; i < count && counts->spans > 0; i++) {
        uint64_t rank = (uint64_t)ceil(parts[i] * (double)counts->spans);
        while (before + spans[bucket] < rank)
            before += spans[bucket++];
        out[i] = interpolate(bucket, rank - before, spans[bucket], max_ns);
    }
    for (unsigned i = 0; i < count && counts->spans == 0; i++)
        out[i] = 0;
}

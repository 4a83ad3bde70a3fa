/*
 * percentiles: of the durations of operations, within 7 % from 4 us on.
 *
 * Stacks are kept by the buckets of store_cells.h, whose width is up to a quarter. Durations are
 * counted in fine buckets, a quarter of such a bucket each, and a percentile is interpolated
 * between the bounds of its fine bucket.
 *
 * Owner: the caller.
 *
 * Thread: that of the store.
 */
#ifndef PROFCOL_EXPLORE_PERCENTILES_H
#define PROFCOL_EXPLORE_PERCENTILES_H

#include "core/base/arena.h"
#include "extensions/explore/store_cells.h"

enum { FINE_PARTS = 4 /* of a bucket */, FINE_BUCKETS = STORE_BUCKETS * FINE_PARTS };

/* Returns the fine bucket of a duration; its bounds: [lower, lower of the next). */
unsigned fine_bucket_of(uint64_t ns);
uint64_t fine_bucket_lower(unsigned fine);

/* Spans of an operation in a fine bucket. */
struct fine_count {
    uint32_t operation;
    uint32_t bucket;
    uint64_t spans;
};

/* All counts of one operation. */
struct fine_counts {
    struct fine_count *first;
    uint32_t size;
    uint64_t spans;
};

/* Groups counts by operation. Returns an array with a member for each of `operations`, in the
 * arena; the counts of a member are in the arena, too. */
struct fine_counts *fine_counts_group(struct arena *arena, const struct fine_count *counts,
                                      uint32_t size, uint32_t operations);
/* Writes for each part (0 to 1, ascending) the duration that it of the spans takes at most; 0
 * without spans. max_ns: the longest; 0: that, or not known. */
void fine_counts_percentiles(const struct fine_counts *counts, const double *parts, unsigned count,
                             uint64_t max_ns, uint64_t *out);

#endif

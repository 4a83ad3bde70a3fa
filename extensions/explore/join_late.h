/*
 * join_late: samples that came after the join had forgotten their span.
 *
 * The join remembers for a quarter of its window that a span has left it; later samples are
 * `not_found` for it. The store knows many of these spans for longer, so it counts such samples for
 * each spanjoin, by how long after their span they came. The advice is for the figures of the
 * process, which another thread reads; so the counts are atomic.
 *
 * Owner: the store.
 *
 * Thread: join_late_add: one at a time. join_late_apply: any.
 */
#ifndef PROFCOL_EXPLORE_JOIN_LATE_H
#define PROFCOL_EXPLORE_JOIN_LATE_H

#include "extensions/explore/join_advice.h"

#include <stdatomic.h>

enum { JOIN_LATE_MAX = 16 /* spanjoins; further ones are not counted */ };

struct join_late_of {
    char id[96]; /* as in an offer */
    atomic_ullong samples[JOIN_LATE_STEPS];
};

struct join_late {
    atomic_uint count;
    struct join_late_of of[JOIN_LATE_MAX];
};

/* Counts a sample. id: of the spanjoin; after_ns: arrival of the sample minus that of its span. */
void join_late_add(struct join_late *late, const char *id, uint64_t after_ns);
/* Moves these samples of the figures from `not_found` to `expired`. */
void join_late_apply(const struct join_late *late, struct join_figures *figures);

#endif

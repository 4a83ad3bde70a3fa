/*
 * join_advice: what to change so that more samples find their span.
 *
 * The advice follows from the histogram of lags (arrival of a sample minus arrival of its span) and
 * from the reasons why samples stayed without one. A share below 1 % gives none.
 *
 * Owner: the caller.
 *
 * Thread: any.
 */
#ifndef PROFCOL_EXPLORE_JOIN_ADVICE_H
#define PROFCOL_EXPLORE_JOIN_ADVICE_H

#include "extensions/explore/json_text.h"

enum join_reason {
    JOIN_REASON_NO_ID,
    JOIN_REASON_NO_PROCESS,
    JOIN_REASON_NO_SPAN_ON_THREAD,
    JOIN_REASON_AMBIGUOUS_THREAD,
    JOIN_REASON_NOT_SPLIT,
    JOIN_REASON_NOT_FOUND,
    JOIN_REASON_EXPIRED,
    JOIN_REASON_OVERFLOW,
    JOIN_REASONS
};
/* As in the label `reason` of profcol_spanjoin_samples_unjoined. */
extern const char *const join_reason_names[JOIN_REASONS];

enum { JOIN_LAGS_MAX = 64, JOIN_LATE_STEPS = 12 };
/* Bounds of `late` in seconds, ascending; the last step has none. */
extern const uint64_t join_late_seconds[JOIN_LATE_STEPS - 1];

struct join_figures {
    const char *id; /* of the spanjoin */
    int64_t window_ns, wait_ns;
    uint64_t joined, by_thread;
    uint64_t unjoined[JOIN_REASONS];
    /* Of the expired ones, those that came after the join had forgotten their span, by how long
     * after it they came (join_late.h): */
    uint64_t late[JOIN_LATE_STEPS];
    uint64_t evicted;             /* entries that left the index early because it was full */
    double bounds[JOIN_LAGS_MAX]; /* seconds, ascending */
    uint64_t counts[JOIN_LAGS_MAX + 1];
    size_t bound_count;
};

/* Returns all samples, joined or not. */
uint64_t join_figures_samples(const struct join_figures *figures);
/* Writes the elements of the array `advice`. */
void join_advice_write(const struct join_figures *figures, struct json_text *json);

#endif

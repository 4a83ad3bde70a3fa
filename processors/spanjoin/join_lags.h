/*
 * join_lags: how long after its span a sample arrived, for the histogram of the join. Negative: its
 * span arrived later.
 *
 * The lags of samples that name their span are recorded when they arrive, or when their span does
 * (span_put.lag_ns). Those of samples that are joined by thread are only known when they leave,
 * which may be in a job; only the worker records.
 *
 * Owner: whoever holds the lags.
 *
 * Thread: join_lags_note_threads: that of the plan. The others: the worker whose number they get.
 */
#ifndef PROFCOL_SPANJOIN_JOIN_LAGS_H
#define PROFCOL_SPANJOIN_JOIN_LAGS_H

#include "core/base/metrics.h"
#include "processors/spanjoin/sample_plan.h"

/* Of the spans that were joined by thread. All-zero is empty. */
struct join_lags {
    int64_t *items_ns; /* allocated */
    uint32_t count;
};

/* Records the lag of each span that samples name, and that is there. now_ns: they arrive. */
void join_lags_record_named(const struct sample_plan *plan, uint64_t now_ns,
                            struct histogram *histogram, unsigned worker);
/* Keeps the lags of the spans that samples were joined to by thread. arrived_ns: when the samples
 * arrived. */
void join_lags_note_threads(const struct sample_plan *plan, uint64_t arrived_ns,
                            struct join_lags *out);
/* Records lags, and makes them empty. */
void join_lags_record(struct join_lags *lags, struct histogram *histogram, unsigned worker);
void join_lags_deinit(struct join_lags *lags);

#endif

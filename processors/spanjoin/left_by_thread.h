/*
 * left_by_thread: gives samples that have left without a span by thread to spans that arrive later
 * (docs/spanjoin.md, "By thread and time").
 *
 * When a request leaves, what left_upload.h has noted is kept in left_samples.h. Spans that arrive
 * later, and began before what is kept, get it: its totals are added to their entries of the index,
 * as those of samples that name their span are. The samples themselves have left, and stay without
 * a Link.
 *
 * Owner: results are in the arena of the upload, or of the spans.
 *
 * Thread: that of the batch: its worker, or a job.
 */
#ifndef PROFCOL_SPANJOIN_LEFT_BY_THREAD_H
#define PROFCOL_SPANJOIN_LEFT_BY_THREAD_H

#include "processors/spanjoin/enrich_spans.h"
#include "processors/spanjoin/left_upload.h"

/* What was given to spans. */
struct left_given {
    uint64_t samples;      /* that left without their span */
    uint64_t kept_samples; /* of these, of spans that keep their detail */
    int64_t *lags;         /* for each span: arrival of the first of its samples minus its own */
    uint32_t lag_count;
    bool changed; /* the index has something new of their spans, or they may lack more */
};
/* Keeps what was noted when the request leaves. Gives to spans that have arrived meanwhile what is
 * theirs. */
void left_upload_leave(struct left_upload *upload, const struct spanjoin_settings *settings,
                       uint64_t now_ns, struct left_given *given_out);

/* Gives to spans of a request what has left. They are in the index and in thread_spans. */
void left_samples_give(struct request_spans *spans, const struct request_sender *sender,
                       struct left_given *given_out);

#endif

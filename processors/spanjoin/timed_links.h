/*
 * timed_links: gives samples the Links of the spans that are found for their times.
 *
 * Samples get the key of their span in the plan, as if they had named it. But a sample whose
 * timestamps belong to several spans is split; values and timestamps stay paired. Then the samples
 * are written with their Links (timed_writing.h), so that they name their span like all others, and
 * a new plan is made.
 *
 * Owner: the plan's; results as described.
 *
 * Thread: that of the batch: its worker, or a job.
 */
#ifndef PROFCOL_SPANJOIN_TIMED_LINKS_H
#define PROFCOL_SPANJOIN_TIMED_LINKS_H

#include "processors/spanjoin/sample_ids.h"
#include "processors/spanjoin/timed_writing.h"

struct thread_links {
    uint8_t *is_linked; /* as in struct timed_written; NULL: the request did not change */
    uint64_t linked;    /* samples whose span was found */
    struct unnamed_samples *unnamed_of; /* those of link_source; thread_links_deinit frees them */
    uint64_t not_split; /* samples that stay without their spans, because a split would repeat
                           too much, or their values have no pairs */
    uint64_t more;      /* samples that the request gained */
};

/* Where the Links of samples come from. */
struct link_source {
    /* Answers all asks, which are those of the samples, one after the other. */
    void (*find)(struct link_source *source, const struct timed_sample *samples,
                 uint32_t sample_count, struct thread_ask *asks, size_t ask_count);
    /* Called for each sample that may have times without a span, with its answered asks; NULL:
     * nobody wants to know. */
    void (*leaves)(struct link_source *source, const struct timed_sample *sample,
                   const struct thread_ask *asks);
    uint32_t sample_count;              /* with SAMPLE_HAS_THREAD: these are linked */
    bool keeps_links;                   /* parts of samples that get no new Link keep theirs */
    bool writes;                        /* all Links, even if no sample is split */
    struct unnamed_samples *unnamed_of; /* for each resource of the request: those that get no Link
                                           are added; allocated with malloc. NULL: not counted */
    struct plan_totals totals;          /* of the plan, if it does not */
};
/* Names the spans of samples in the plan, or changes the batch. Returns true if it did the latter;
 * then the plan is of no use any more. Call thread_links_deinit in any case. */
bool timed_samples_link(struct sample_plan *plan, struct link_source *source,
                        struct thread_links *links_out);
void thread_links_deinit(struct thread_links *links);

#endif

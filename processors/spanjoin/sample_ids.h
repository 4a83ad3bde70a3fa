/*
 * sample_ids: finds the span that each sample of a request names, and computes the totals of the
 * samples of each span.
 *
 * A plan is built from the bytes of a profiles request in one pass: every distinct id becomes a
 * key, and every sample refers to one key or none. Then the keys are looked up in the index, and
 * enrich_samples.c changes the request according to the plan.
 *
 * Owner: the node that created it, until the request is sent on. A plan is several times as large
 * as its results, too large to be queued with the request.
 *
 * Thread: the batch's worker.
 */
#ifndef PROFCOL_SPANJOIN_SAMPLE_IDS_H
#define PROFCOL_SPANJOIN_SAMPLE_IDS_H

#include "processors/spanjoin/timed_sample.h"

/* Which samples totals are computed of. */
struct plan_totals {
    struct span_index *index;  /* NULL: of none; otherwise used to leave out profiles that arrived
                                  in another request */
    const uint8_t *counts;     /* for each sample of the request, whether of it; NULL: of all */
    uint64_t request;          /* a number that no other request has */
    struct content_id content; /* of the request as it arrived; not known: as it is now */
};
/* What an earlier plan of the same request has found. */
struct plan_before {
    bool only_threads; /* all samples have SAMPLE_HAS_THREAD: they need not be read again */
    bool has_added_threads;
    struct content_id content;
};
struct plan_before sample_plan_before(const struct sample_plan *plan);
/* Builds the plan of a batch, which must be unchanged. sender: of this batch. before: NULL: there
 * was no other plan. */
struct sample_plan *sample_plan_new(struct batch *batch, const struct request_sender *sender,
                                    const struct plan_totals *totals,
                                    const struct plan_before *before);
/* Frees the plan. */
void sample_plan_free(struct sample_plan *plan);

/* Give samples that name no span (SAMPLE_HAS_THREAD) the key of the one that was found for them.
 * Begin and end for each profile; totals of the plan contain these samples then. */
enum { NAMED_KEYS_REMEMBERED = 256 };
struct sample_naming {
    struct sample_plan *plan;
    const struct profile_plan *profile;
    bool with_totals;
    uint32_t named;                       /* samples */
    uint32_t keys[NAMED_KEYS_REMEMBERED]; /* + 1, by a hash of their spans; 0: none */
};
void sample_plan_begin_naming(struct sample_plan *plan, const struct profile_plan *profile,
                              struct sample_naming *out);
/* Returns false if there is no room for another key; then the sample is sent on unchanged. */
bool sample_plan_name(struct sample_naming *naming, const struct timed_sample *sample,
                      const struct span_key *span);
void sample_plan_end_naming(struct sample_naming *naming);

/* Call it after span_index_find_many on plan->finds: chooses the span of each key. Keys without a
 * trace id get that of their span. */
void sample_plan_choose(struct sample_plan *plan);
/* After that: gives some keys a second one for the same span, so that their samples can be treated
 * in two ways. The second ones have no samples and no totals yet. wanted: for each key, whether it
 * gets one. Returns for each key its second one; itself if it gets none, or if there is no room. */
const uint32_t *sample_plan_double_keys(struct sample_plan *plan, const bool *wanted);
/* Returns the number of keys whose span has not arrived yet. */
uint32_t sample_plan_missing(const struct sample_plan *plan);
/* Records the ids of the profiles in the index. Call it once the request is admitted. */
void sample_plan_remember_profiles(const struct sample_plan *plan);

#endif

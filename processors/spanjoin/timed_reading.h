/*
 * timed_reading: reads the threads and times of the samples whose spans are looked for
 * (timed_links.h).
 *
 * Most samples have the attributes of one before, so that what a list says is remembered.
 *
 * Owner: the plan's arena.
 *
 * Thread: that of the plan.
 */
#ifndef PROFCOL_SPANJOIN_TIMED_READING_H
#define PROFCOL_SPANJOIN_TIMED_READING_H

#include "core/data/thread_spans.h"
#include "processors/spanjoin/timed_sample.h"

#include <string.h>

/* Those of a request, in their order. */
struct timed_samples {
    struct timed_sample *items;
    uint32_t count;
    struct thread_ask *asks; /* one for each timestamp */
    size_t ask_count;
    bool are_single; /* each sample has one ask */
};

/* Reads the samples with SAMPLE_HAS_THREAD, of which there are sample_count. */
void timed_samples_read(struct sample_plan *plan, uint32_t sample_count, struct timed_samples *out);

/* Whether two asks have the same answer, if THREAD_SPAN is the only one that counts. */
static inline bool timed_asks_are_of_same_span(const struct thread_ask *a,
                                               const struct thread_ask *b)
{
    bool both = a->answer == THREAD_SPAN && b->answer == THREAD_SPAN;
    return both ? memcmp(&a->key, &b->key, sizeof a->key) == 0
                : a->answer != THREAD_SPAN && b->answer != THREAD_SPAN;
}

#endif

/*
 * timed_writing: writes samples with the Links that were found for them (timed_links.h), and splits
 * those whose times belong to several spans.
 *
 * Owner: what is written lives in the batch's arena; results as described.
 *
 * Thread: that of the plan.
 */
#ifndef PROFCOL_SPANJOIN_TIMED_WRITING_H
#define PROFCOL_SPANJOIN_TIMED_WRITING_H

#include "processors/spanjoin/timed_reading.h"

#include <assert.h>

enum { SAMPLE_IS_LINKED = 1, SAMPLE_IS_KEPT = 2 };

/* Returns by how many bytes a sample grows at most if it is split into so many pieces. */
static inline size_t timed_sample_growth(const struct timed_sample *sample, uint32_t pieces)
{
    enum { PIECE_OVERHEAD = 40 }; /* of a piece besides what the sample had: headers, the Link */
    assert(pieces > 0 && sample->repeated <= sample->raw.size);
    return (size_t)(pieces - 1) * sample->repeated + (size_t)pieces * PIECE_OVERHEAD;
}

struct timed_written {
    uint8_t *is_linked; /* for each sample of the changed request SAMPLE_IS_LINKED, and if the span
                           that it named is kept, SAMPLE_IS_KEPT; allocated with malloc */
    uint32_t samples;
    uint64_t linked; /* of these */
};
/* Writes the samples with pieces. keeps_links: parts that get no new Link keep theirs. more:
 * samples that the request gains at most. Sets batch->items. */
struct timed_written timed_samples_write(struct sample_plan *plan,
                                         const struct timed_samples *timed, bool keeps_links,
                                         uint32_t more);

#endif

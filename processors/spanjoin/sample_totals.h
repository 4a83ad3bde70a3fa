/*
 * sample_totals: computes what the samples of a profile add to the totals of their spans.
 *
 * One upload often has the same samples in several units (Go: samples/count and cpu/nanoseconds),
 * as sibling profiles of one scope with the same time. CPU time and the number of samples are taken
 * from one of them only (core/data/profile_measure.h).
 *
 * Owner: arrays live in the batch's arena.
 *
 * Thread: the batch's worker.
 */
#ifndef PROFCOL_SPANJOIN_SAMPLE_TOTALS_H
#define PROFCOL_SPANJOIN_SAMPLE_TOTALS_H

#include "core/base/saturate.h"
#include "core/data/profile_measure.h"
#include "processors/spanjoin/sample_view.h"

#include <assert.h>

/* A text of the string_table. Long texts are compared by entry, without reading all their bytes. */
struct header_text {
    struct slice text;
    uint32_t entry; /* of a long text: the first equal entry of the table; otherwise 0 */
};

/* A Profile without its samples. */
struct profile_header {
    struct slice raw;
    struct header_text type;
    struct header_text unit;
    struct header_text period_type;
    struct header_text period_unit;
    int64_t period;
    struct profile_measure measure;
    uint64_t time_ns;
    uint64_t duration_ns;
    const uint8_t *profile_id; /* NULL: none, or all zero */
    uint32_t samples;          /* their number */
    bool has_attributes;
    struct profile_sums sums;
};

/* Iterates over the profiles of an encoded ScopeProfiles that have samples. To recognise siblings,
 * it reads some profiles ahead and keeps some; their number is bounded. */
enum { PROFILE_WINDOW = 64 };
struct profile_window {
    struct sample_plan *plan;
    struct message_iter ahead;
    size_t next;
    size_t read; /* number of headers read; number i is in ring[i % PROFILE_WINDOW] */
    struct profile_header ring[PROFILE_WINDOW];
};
/* Begins to iterate over the profiles of an encoded ScopeProfiles. */
void profile_window_init(struct profile_window *window, struct sample_plan *plan,
                         struct slice scope_profiles);
/* Returns the next header, valid until the next call; NULL at the end. */
const struct profile_header *profile_window_next(struct profile_window *window);

/* Reads a profile without its siblings: `sums` are not set. */
void profile_header_read(struct sample_plan *plan, struct profile_header *profile,
                         struct slice raw);
/* Returns which sample type of the settings the profile tells something of; settings.type_count:
 * another one. */
unsigned profile_header_slot(const struct spanjoin_settings *settings,
                             const struct profile_header *profile);

/* Whether a profile of the plan arrived before in another request than this one, so that its
 * samples count no more. */
bool profile_is_repeated(const struct sample_plan *plan, const struct profile_plan *profile,
                         struct span_index *index, uint64_t request);

/* Adds to the totals of a sample type. */
static inline void sample_totals_add(uint64_t *totals, int type, uint64_t count, uint64_t sum)
{
    assert(type >= 0);
    totals[1 + 2 * type] += count;
    totals[2 + 2 * type] = saturate_sum(totals[2 + 2 * type], sum);
}
/* Returns the CPU time of a sum of values in nanoseconds. */
static inline uint64_t profile_sums_cpu(const struct profile_sums *sums, uint64_t sum)
{
    return (uint64_t)saturate_multiply((int64_t)sum, sums->cpu_per_value);
}
/* Whether a trace view shows samples of this profile. */
static inline bool profile_sums_are_shown(const struct spanjoin_settings *settings,
                                          const struct profile_sums *sums)
{
    uint32_t types = sums->type_position < 0 ? 0 : UINT32_C(1) << sums->type_position;
    if (sums->cpu_per_value)
        types |= UINT32_C(1) << settings->cpu_type;
    return settings->profile_types == 0 || (settings->profile_types & types);
}
/* Returns how many samples of such profiles totals contain. */
static inline uint64_t sample_totals_shown(const struct spanjoin_settings *settings,
                                           const uint64_t *totals)
{
    uint64_t count = settings->profile_types == 0 ? totals[0] : 0;
    for (unsigned i = 0; i < settings->type_count; i++)
        if (settings->profile_types & UINT32_C(1) << i)
            count = saturate_sum(count, totals[1 + 2 * i]);
    return count;
}
/* Whether these samples measured anything: backends show none whose value is 0. */
static inline bool sample_totals_show_any(const struct spanjoin_settings *settings,
                                          const uint64_t *totals)
{
    for (unsigned i = 0; i < settings->type_count; i++)
        if (settings->profile_types & UINT32_C(1) << i && totals[2 + 2 * i] > 0)
            return true;
    return settings->profile_types == 0;
}
/* Adds a sample of this profile to the totals of a span. */
static inline void profile_sums_add(const struct spanjoin_settings *settings,
                                    const struct profile_sums *sums, struct sample_amount amount,
                                    uint64_t *totals)
{
    if (sums->counts_samples)
        totals[0] = saturate_sum(totals[0], sums->counts_values ? amount.sum : amount.count);
    if (sums->type_position >= 0)
        sample_totals_add(totals, sums->type_position, amount.count, amount.sum);
    if (sums->cpu_per_value)
        sample_totals_add(totals, settings->cpu_type, amount.count,
                          profile_sums_cpu(sums, amount.sum));
}

#endif

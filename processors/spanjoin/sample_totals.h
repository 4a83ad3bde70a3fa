/*
 * sample_totals: what a profile's samples add to the totals of their spans.
 *
 * One upload often shows the same samples in several units (Go: samples/count and
 * cpu/nanoseconds), as sibling profiles of one scope with one time. CPU time and the number of
 * samples are taken from one of them only.
 *
 * Owner: arrays live in the batch's arena.
 *
 * Thread: the batch's worker.
 */
#ifndef PROFCOL_SPANJOIN_SAMPLE_TOTALS_H
#define PROFCOL_SPANJOIN_SAMPLE_TOTALS_H

#include "processors/spanjoin/sample_view.h"

/* A text of the string table; equal ones are told without looking at all of a long one. */
struct header_text {
    struct slice text;
    uint32_t entry; /* of a long one: the first in the table that is equal; else 0 */
};

/* A Profile without its samples. */
struct profile_header {
    struct slice raw;
    struct header_text type;
    struct header_text unit;
    struct header_text period_type;
    struct header_text period_unit;
    uint64_t period;
    uint64_t time_ns;
    uint64_t duration_ns;
    const uint8_t *profile_id; /* NULL: none, or all zero */
    bool has_attributes;
    /* What its samples add. */
    bool counts_samples;
    bool counts_values;     /* values are numbers of samples */
    int type_position;      /* in settings.types; -1: not asked for */
    uint64_t cpu_per_value; /* nanoseconds of CPU that a value stands for; 0: none */
};

/* The profiles of an encoded ScopeProfiles that have samples, one after the other; it sees some
 * before and behind, and no more than that is kept, however many there are. */
enum { PROFILE_SIBLINGS = 16, PROFILE_WINDOW = 64 };
struct profile_window {
    struct sample_plan *plan;
    struct message_iter ahead;
    size_t next;
    size_t read; /* headers so far; that of i is in ring[i % PROFILE_WINDOW] */
    struct profile_header ring[PROFILE_WINDOW];
};
void profile_window_init(struct profile_window *window, struct sample_plan *plan,
                         struct slice scope_profiles);
/* NULL at the end. Valid until the next call. */
const struct profile_header *profile_window_next(struct profile_window *window);

void profile_header_add(const struct spanjoin_settings *settings,
                        const struct profile_header *profile, const struct sample_view *sample,
                        uint64_t *totals);

#endif

/*
 * clock_offset: how far the clock of a process's samples is from that of its spans.
 *
 * Samples of a thread are taken while it runs, and mostly inside its spans. Each sample votes for
 * the offsets at which its time is inside a span of its thread. If the clocks agree, no other
 * offset has many more votes. If another one has, more than chance explains, the offset with the
 * most votes is a candidate. Those below 5 ms are not used, unless the clocks are known to differ:
 * code that runs directly before a span looks the same.
 *
 * A candidate is checked, because a program may do its work after its spans (or before them), and
 * wait inside. If the clocks differ, the part of the spans that the candidate moves out of them has
 * few samples, and all parts that it leaves or moves into them have about as many. If there are few
 * beyond what has to be moved, the program begins its work later than its spans, and ends it later.
 * If the clocks agree, samples are as frequent at the start of spans as later on, or rare in all of
 * their time. If samples do not decide this, the offset is not known, and no sample belongs to a
 * span.
 *
 * Offsets of up to a quarter of a second are found. Votes fade, so that the estimate follows a
 * clock that is set.
 *
 * Owner: thread_spans.
 *
 * Thread: whoever holds its lock.
 */
#ifndef PROFCOL_CORE_DATA_CLOCK_OFFSET_H
#define PROFCOL_CORE_DATA_CLOCK_OFFSET_H

#include "core/data/thread_timeline.h"

#define CLOCK_OFFSET_MAX_NS INT64_C(250000000)
/* One that is nearly as large as those that are looked at may only be on the way to a larger one.
 */
#define CLOCK_OFFSET_USED_MAX_NS INT64_C(245000000)

enum { CLOCK_OFFSETS = 501 }; /* one for each millisecond */

enum offset_verdict {
    CLOCK_AGREES,
    CLOCK_IS_OFF,
    CLOCK_UNKNOWN, /* it may be off */
};

/* Where samples are, and where times near them: by whether they are inside a span without the
 * candidate, and with it. */
enum { CLOCK_OUTSIDE, CLOCK_WITH_OFFSET, CLOCK_WITHOUT_OFFSET, CLOCK_WITH_BOTH, CLOCK_PLACES };
struct clock_places {
    uint32_t at[CLOCK_PLACES];
    uint32_t next; /* inside, and next to what the least offset moves out of spans */
};
struct clock_check {
    int64_t offset_ns; /* the candidate */
    int64_t least_ns;  /* nearest to 0 of the offsets that may be as good */
    struct clock_places samples;
    struct clock_places times;
};

/* All-zero is new. */
struct clock_offset {
    bool is_rest;         /* what is left of a difference of seconds: small ones are used, too */
    bool is_even;         /* no offset was better than none, as far as chance lets it be seen */
    int64_t candidate_ns; /* 0: none */
    int64_t least_ns;     /* nearest to 0 of those that may be as good */
    uint32_t samples;     /* that voted */
    uint32_t newer;       /* of these, since the candidate was found */
    uint32_t random;
    bool was_settled;   /* before it was doubted, */
    int64_t settled_ns; /* with this candidate */
    /* Votes for an offset minus those for the one before it. */
    int32_t votes[CLOCK_OFFSETS + 1];
    struct clock_check check; /* of the candidate */
};

/* Lets the sample of a thread vote, if its spans before and after it are known. */
void clock_offset_vote(struct clock_offset *clock, const struct thread_timeline *timeline,
                       uint64_t time_ns);
/* Call it when the clock may have been set: votes so far count little. */
void clock_offset_doubt(struct clock_offset *clock);
/* Whether so many samples have voted that a few of those to come are enough. */
bool clock_offset_is_settled(const struct clock_offset *clock);
/* Finds the candidate after votes. Returns whether there is one; then samples check it. */
bool clock_offset_find(struct clock_offset *clock);
/* Lets the sample of a thread check the candidate, likewise. */
void clock_offset_check(struct clock_offset *clock, const struct thread_timeline *timeline,
                        uint64_t time_ns);
/* Whether so many have checked it that a few of those to come are enough. */
bool clock_offset_is_checked(const struct clock_offset *clock);
/* Returns what is known. With CLOCK_IS_OFF, *offset_out is what is added to the time of a sample,
 * otherwise 0. */
enum offset_verdict clock_offset_judge(const struct clock_offset *clock, int64_t *offset_out);

#endif

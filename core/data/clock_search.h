/*
 * clock_search: finds clocks of samples and spans that differ by seconds.
 *
 * It works like clock_offset.h, which finds small differences exactly: each sample votes for the
 * offsets at which its time is inside a span of its thread. Here the offsets go up to 12 s, in
 * coarse steps, and not all of them are known for each sample, because the spans after it have not
 * arrived yet. So what counts is the share of the samples inside, of those for which it is known.
 *
 * Samples near each other are mostly inside the same span, so that they count as one: a thread
 * votes every half second at most.
 *
 * Code that always runs some seconds after a span looks the same as a wrong clock. So what arrives
 * has to show the difference, too: the newest spans and samples of a process arrive soon after
 * their times, by their own clocks (struct clock_lag).
 *
 * Owner: thread_spans; a search only while the clock of a process is being looked at.
 *
 * Thread: whoever holds its lock.
 */
#ifndef PROFCOL_CORE_DATA_CLOCK_SEARCH_H
#define PROFCOL_CORE_DATA_CLOCK_SEARCH_H

#include "core/data/thread_timeline.h"

#define CLOCK_SEARCH_MAX_NS INT64_C(12000000000)
#define CLOCK_SEARCH_STEP_NS INT64_C(4000000)
/* The least time between two votes of a thread. */
#define CLOCK_SEARCH_APART_NS UINT64_C(500000000)

enum { CLOCK_SEARCH_OFFSETS = 2 * (CLOCK_SEARCH_MAX_NS / CLOCK_SEARCH_STEP_NS) + 1 };

/* All-zero is new. */
struct clock_search {
    uint32_t samples; /* that voted */
    uint32_t newer;   /* of these, since they were counted last */
    /* By offset, the difference to the offset before it. */
    int16_t known[CLOCK_SEARCH_OFFSETS + 1];  /* samples of which it is known */
    int16_t inside[CLOCK_SEARCH_OFFSETS + 1]; /* of these, those inside a span */
};

/* How soon after its end something arrives at least, in the last minute or two. It is negative if
 * the sender's clock is ahead of ours. All-zero is not known. */
struct clock_lag {
    uint64_t since_ns; /* `now` counts since this time; 0: nothing is known */
    int64_t now_ns;
    int64_t before_ns; /* of the minute before */
    uint32_t requests; /* up to those that are enough */
};
/* Notes the newest end of a request. Both since 1970; arrived_ns 0: not known. Returns whether the
 * clock seems to have been set: requests before it took longer. */
bool clock_lag_add(struct clock_lag *lag, uint64_t end_ns, uint64_t arrived_ns);

/* The difference that arrivals show: what is to be added to times of samples. */
struct clock_estimate {
    bool is_known;
    int64_t offset_ns;
};
struct clock_estimate clock_lag_compare(const struct clock_lag *spans,
                                        const struct clock_lag *samples);
/* Whether it shows another offset than this one. */
bool clock_estimate_differs(struct clock_estimate estimate, int64_t offset_ns);

enum clock_verdict {
    CLOCK_OPEN,    /* more votes are needed */
    CLOCK_STANDS,  /* the present offset is as good as any */
    CLOCK_MOVES,   /* another one is better */
    CLOCK_UNCLEAR, /* others are better, but it is not sure which one is right */
};

/* Lets the sample of a thread vote. */
void clock_search_vote(struct clock_search *search, const struct thread_timeline *timeline,
                       uint64_t time_ns);
/* Counts the votes. present_ns: what is added to the times of samples now. offset_out: set with
 * CLOCK_MOVES. After any verdict but CLOCK_OPEN, the search is over. */
enum clock_verdict clock_search_decide(struct clock_search *search, int64_t present_ns,
                                       struct clock_estimate estimate, int64_t *offset_out);

#endif

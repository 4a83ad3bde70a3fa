/*
 * process_clocks: how far the clock of each process's samples is from that of its spans.
 *
 * Samples of a request vote. A difference of seconds is searched for now and then (clock_search.h),
 * what is left of it is always estimated (clock_offset.h), and a clock that seems to have been set
 * is looked at at once (clock_watch.h, struct clock_lag).
 *
 * Owner: thread_spans.
 *
 * Thread: whoever holds its lock.
 */
#ifndef PROFCOL_CORE_DATA_PROCESS_CLOCKS_H
#define PROFCOL_CORE_DATA_PROCESS_CLOCKS_H

#include "core/data/clock_offset.h"
#include "core/data/clock_search.h"
#include "core/data/clock_watch.h"

/* Estimates are kept for so many processes. Two processes whose numbers differ by a multiple of it
 * replace each other. */
enum { PROCESS_CLOCKS_MAX = 1024 };

struct process_clock {
    struct clock_offset offset;  /* what is left after `moved_ns` */
    struct clock_search *search; /* NULL: it is not looked at */
    struct clock_lag lag;        /* of its samples */
    struct clock_watch watch;
    int64_t moved_ns;  /* a difference of seconds, which is added to times of samples */
    bool is_unclear;   /* they differ, but it is not sure by how much */
    uint32_t requests; /* for which it is not looked at */
    uint16_t instance;
    bool is_used;     /* since the last sweep */
    uint64_t used_ns; /* the last sweep that found it used; monotonic */
};

struct process_clocks {
    struct process_clock *items[PROCESS_CLOCKS_MAX]; /* by process; NULL: none */
    uint32_t searches;                               /* now */
    uint32_t most_searches;
};

/* max_spans: a search takes 24 KiB, so that there may be one for so many thousand spans. */
void process_clocks_init(struct process_clocks *clocks, uint64_t max_spans);
void process_clocks_deinit(struct process_clocks *clocks);

/* Returns the clock of a process; NULL if it has none. */
struct process_clock *process_clocks_find(const struct process_clocks *clocks, uint16_t instance);
/* The same; creates it if it has none, and may free that of another process. */
struct process_clock *process_clocks_open(struct process_clocks *clocks, uint16_t instance);

/* The samples of a process in one request vote between begin and end. */
void process_clock_begin(struct process_clocks *clocks, struct process_clock *clock);
/* searched_ns: of the thread; 0 at first. */
void process_clock_vote(struct process_clock *clock, const struct thread_timeline *timeline,
                        uint64_t *searched_ns, uint64_t time_ns);
/* newest_ns: the latest time of these samples. arrived_ns: since 1970; 0: not known. spans: how
 * soon those of the process arrive; NULL: not known. */
void process_clock_end(struct process_clocks *clocks, struct process_clock *clock,
                       uint64_t newest_ns, uint64_t arrived_ns, const struct clock_lag *spans);
/* Looks at the clock at once if its watch says that it was set. */
void process_clock_look(struct process_clocks *clocks, struct process_clock *clock);

/* What is added to times of samples. clock NULL: nothing. */
struct clock_difference {
    int64_t offset_ns;
    bool is_unclear; /* the clocks differ by an unknown time */
};
struct clock_difference process_clock_difference(const struct process_clock *clock);

/* Frees those that were not used for window_ns. Call it regularly. */
void process_clocks_sweep(struct process_clocks *clocks, uint64_t now_ns, uint64_t window_ns);
/* Returns the memory in bytes, without the struct itself. */
size_t process_clocks_memory(const struct process_clocks *clocks);

#endif

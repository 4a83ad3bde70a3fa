/*
 * schedule: the named schedules of the join simulator.
 *
 * Owner: constants.
 *
 * Thread: any.
 */
#ifndef PROFCOL_BENCH_JOINSIM_SCHEDULE_H
#define PROFCOL_BENCH_JOINSIM_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* By span duration: below 100 ms, 1 s, 10 s, and above (up to 60 s). */
enum { BUCKETS = 4 };

/* Times are in milliseconds of simulated time; shares are per mille. */
struct schedule {
    const char *name;
    uint32_t services; /* one process each */
    uint32_t seconds;  /* of traffic */
    uint32_t requests; /* of a service, in 1,000 s */
    uint16_t durations[BUCKETS];
    uint16_t linked;          /* samples that name their span */
    uint32_t samples;         /* of a span, in a second of its time */
    uint32_t upload_interval; /* of profiles */
    uint32_t export_interval; /* of spans */
    uint32_t window;
    uint32_t wait;
    uint32_t span_wait;  /* of spans, for their costs; 0: they leave at once */
    uint32_t skew;       /* the profiler's clock is wrong by at most this */
    int32_t offset;      /* and, besides, ahead by this; negative: behind */
    uint32_t disorder;   /* requests come late by at most this */
    uint16_t duplicates; /* requests that are sent twice */
    uint16_t restarts;   /* processes that are killed once */
    uint16_t reused_ids; /* spans with the span id of an earlier one, in another trace */
    uint16_t inherited;  /* spans with samples up to 45 s after their end */
    uint16_t hops;       /* requests that change their thread */
    uint16_t threads;    /* of a process, used again by its requests; 0: one for each request */
    uint32_t turn;       /* requests of a process share a thread and take turns of at most this, as
                            on an event loop; 0: each has a thread for itself */
    uint32_t keep_above; /* duration of the spans that keep their detail; 0: not by duration */
    uint16_t keep_ratio; /* traces that keep their detail; 0: not by ratio. Neither: no `keep` */
    bool by_thread; /* samples name no span, but their thread and its id in the operating system */
    bool is_recording; /* by_thread, with Java's ids, as readers of recordings add them; they and
                          the times are gone when it leaves */
    bool in_container; /* the profiler runs outside of the programs' containers */
    bool in_pool;      /* all threads of a process have names that begin with the same 15 bytes */
    bool is_labelled;  /* ids are in attributes, as SDKs send them; otherwise in Links */
    bool is_timeless;  /* samples say neither time nor thread, as pprof; totals are judged */
};

extern const struct schedule schedules[];
extern const size_t schedule_count;
/* Returns the schedule with this name, or NULL. */
const struct schedule *schedule_find(const char *name);

#endif

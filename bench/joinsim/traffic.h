/*
 * traffic: what the processes of a schedule do, with the truth about each sample, and when their
 * requests arrive.
 *
 * The same schedule and seed give the same traffic. A sample knows its span, its thread and its
 * time, whatever the request will say about them.
 *
 * Owner: the caller frees the traffic with traffic_deinit.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_BENCH_JOINSIM_TRAFFIC_H
#define PROFCOL_BENCH_JOINSIM_TRAFFIC_H

#include "bench/joinsim/schedule.h"

#define MILLISECOND_NS UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)
#define TRAFFIC_WALL_NS UINT64_C(1760000000000000000) /* the wall clock at the beginning */
#define NEVER UINT64_MAX

struct sim_span {
    uint64_t trace; /* the last 8 bytes of its id */
    uint64_t id;
    uint64_t start_ns; /* of simulated time, like all times here */
    uint64_t end_ns;
    uint64_t arrivals_ns[2]; /* at the processor; NEVER: not */
    uint32_t service;
    uint32_t java_thread; /* where it began */
    uint32_t made;        /* its index in the order in which spans began */
    uint16_t route;
};

struct sim_sample {
    uint64_t time_ns;     /* when it was taken */
    uint64_t told_ns;     /* by the profiler's clock; no other sample of its request has it */
    uint32_t span;        /* index: the truth */
    uint32_t java_thread; /* which ran */
    uint32_t os_thread;
    uint16_t stack;
    bool is_linked; /* it names its span */
};

/* A request: samples [first, first + count), or as many spans. */
struct sim_request {
    uint64_t at_ns; /* its arrival */
    uint64_t number;
    uint64_t begin_ns; /* of a profile */
    uint32_t first;
    uint32_t count;
    uint32_t service;
    bool is_profile;
};

struct traffic {
    const struct schedule *schedule;
    uint64_t random;
    struct sim_span *spans; /* in the order of their requests */
    size_t span_count;
    struct sim_sample *samples; /* in the order of their requests, then of told_ns */
    size_t sample_count;
    struct sim_request *requests; /* in the order of arrival */
    size_t request_count;
};

enum { ROUTES = 32, STACKS = 32 };

void traffic_make(struct traffic *traffic, const struct schedule *schedule, uint64_t seed);
void traffic_deinit(struct traffic *traffic);

#endif

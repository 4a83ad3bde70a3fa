/*
 * thread_sampler: whose samples are those of a process, if their ids are of another pid namespace.
 *
 * A profiler of the host knows the processes of a container by other numbers than their spans do.
 * Only one process of it has spans, but others may have threads with the same names. So the samples
 * are taken for those of the process that has most of them, if all others together have next to
 * none. Samples of a process that sends none any more do not count: the program may have been
 * started again in its container, so that it is another one now.
 *
 * Owner: thread_spans.
 *
 * Thread: whoever holds its lock.
 */
#ifndef PROFCOL_CORE_DATA_THREAD_SAMPLER_H
#define PROFCOL_CORE_DATA_THREAD_SAMPLER_H

#include "core/data/arrivals.h"

/* Samples that have names of threads with spans. */
struct sampler_count {
    uint32_t samples;
    struct arrivals arrivals;
};
/* All-zero: there were none. */
struct thread_sampler {
    uint16_t instance; /* that with most of them; 0: none */
    struct sampler_count own;
    struct sampler_count others; /* those of all other instances */
};

/* Notes that a sample of an instance has the name of a thread. now_ns: monotonic. */
void thread_sampler_note(struct thread_sampler *sampler, uint16_t instance, uint64_t now_ns);
/* Whether samples of an instance are those of the process. */
bool thread_sampler_is(const struct thread_sampler *sampler, uint16_t instance);

#endif

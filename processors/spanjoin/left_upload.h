/*
 * left_upload: the samples of a request for which no span was found by thread and time.
 *
 * thread_samples.h notes their times; when the request leaves, left_samples.h keeps them for spans
 * that arrive later (left_by_thread.h), and the times that more than one span may own.
 *
 * Owner: the plan.
 *
 * Thread: that of the plan.
 */
#ifndef PROFCOL_SPANJOIN_LEFT_UPLOAD_H
#define PROFCOL_SPANJOIN_LEFT_UPLOAD_H

#include "core/data/left_samples.h"
#include "processors/spanjoin/timed_sample.h"

/* Threads of the last samples, in slots by their addresses. */
enum { LEFT_THREADS_REMEMBERED = 64 };
struct left_upload {
    struct arena arena;
    struct span_index *index;
    uint64_t request;
    uint64_t arrived_ns; /* since 1970 */
    struct left_thread *threads;
    uint32_t thread_count;
    uint32_t thread_capacity;
    uint16_t *watched; /* processes */
    uint32_t watched_count;
    /* while it is noted */
    const struct profile_plan *profile;
    const struct profile_sums *sums; /* of the profile; NULL: it has arrived before */
    struct {
        const struct sample_thread *thread;
        uint32_t number;
    } known[LEFT_THREADS_REMEMBERED];
    const struct sample_thread *doubted; /* the last one that may be of another process, */
    const struct sample_thread *other;   /* and the same of that process */
};

/* Begins to note what leaves. Call it before their spans are looked for. request: its number. */
struct left_upload *left_upload_new(const struct sample_plan *plan, struct span_index *index,
                                    uint64_t request);
void left_upload_free(struct left_upload *upload); /* NULL is allowed */
/* Notes the times of a sample for which no span was found, or which gets none of those that were
 * found. asks: its own, answered. other: the process of which those with THREAD_AMBIGUOUS may be,
 * too; 0: none. */
void left_upload_note(struct left_upload *upload, const struct sample_plan *plan,
                      const struct timed_sample *sample, const struct thread_ask *asks,
                      uint16_t other);
/* Keeps what was noted when the request leaves. Returns when the first of the spans began that have
 * arrived since left_upload_new, and have not seen it; UINT64_MAX: there are none. */
uint64_t left_upload_keep(struct left_upload *upload, uint64_t now_ns);

#endif

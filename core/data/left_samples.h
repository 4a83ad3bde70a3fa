/*
 * left_samples: what samples measured that were sent on without a span, by thread and time.
 *
 * A span arrives when it has ended. If it lasts longer than samples wait, its first samples have
 * left by then. Those that name a span are counted under its id (span_index.h). Of those that name
 * a thread, each time and its value are kept here. When a span arrives that began before the newest
 * of them, it asks thread_spans.h for those of its thread and time, and what is its own is added to
 * its totals (docs/spanjoin.md, "By thread and time").
 *
 * Times stay for the window after they left. At the limit, the owner with the most loses some:
 * those of threads without spans first, then the oldest ones. What was lost is remembered of its
 * thread, so that a span which may lack it can say so. So are the times of samples that more than
 * one span may own (doubted_times.h).
 *
 * Owner: a span_index. Results are in the caller's arena.
 *
 * Thread: any (it locks); called once for a request.
 */
#ifndef PROFCOL_CORE_DATA_LEFT_SAMPLES_H
#define PROFCOL_CORE_DATA_LEFT_SAMPLES_H

#include "core/base/arena.h"
#include "core/data/doubted_times.h"
#include "core/data/profile_measure.h"
#include "core/data/thread_spans.h"

/* Times of one thread that are kept. */
enum { LEFT_TIMES_OF_THREAD = 8192 };

struct left_samples;

/* Creates an empty table that takes so much memory at most, and a page for each 128 processes. */
struct left_samples *left_samples_new(size_t max_bytes);
void left_samples_free(struct left_samples *left); /* NULL is allowed */

/* ---- samples ---- */

/* A time of a sample, and its value. */
struct left_time {
    uint64_t time_ns; /* since 1970, by the clock of the samples */
    uint64_t value;   /* twice the value, and 1 if the time before is of the same sample */
};
static inline struct left_time left_time_of(uint64_t time_ns, uint64_t value, bool is_next)
{
    int64_t most = INT64_MAX / 2, number = (int64_t)value;
    number = number > most ? most : number < -most ? -most : number;
    return (struct left_time){time_ns, (uint64_t)number << 1 | is_next};
}
static inline uint64_t left_time_value(const struct left_time *time)
{
    return (uint64_t)((int64_t)time->value >> 1);
}

/* Times of a thread that count as the same. */
struct left_run {
    struct left_run *next;
    const struct profile_sums *sums;
    struct left_time *times;
    uint32_t count;
    uint32_t capacity;
};
/* A thread as the samples of a sender name it. */
struct left_thread {
    struct span_source source; /* of the samples */
    struct sample_thread thread;
    bool has_spans;    /* known now */
    int64_t offset_ns; /* thread_spans_offset of its process */
    uint64_t lost_ns;  /* the newest time that is not kept; 0: none */
    struct left_run *runs;
    struct left_run *last;
    struct time_range *doubts; /* times of samples that went to no span, but may be of one; in any
                                  order. In doubted_ranges_touch they need not be one range */
    uint32_t doubt_count;
    uint32_t doubt_capacity;
    bool doubts_name; /* they may be of any thread with this name */
};
/* Adds the samples of one request. arrived_ns: since 1970; the other times are monotonic. */
void left_samples_add(struct left_samples *left, const struct left_thread *threads, uint32_t count,
                      uint64_t arrived_ns, uint64_t now_ns, uint64_t window_ns);

/* Notes what is added to the times of a process's samples for the search (thread_spans_offset). If
 * it has changed by a quarter of a second or more, its samples were joined to wrong spans before:
 * those that began up to this time may lack some. */
void left_samples_note_offset(struct left_samples *left, uint16_t instance, int64_t offset_ns,
                              uint64_t time_ns, uint64_t now_ns);

/* Between the search for the spans of samples and left_samples_add, spans of their process may
 * arrive, and find nothing. left_samples_watch begins to look for such ones; left_samples_unwatch
 * returns when the first of them began; UINT64_MAX: there were none. */
void left_samples_watch(struct left_samples *left, uint16_t instance);
uint64_t left_samples_unwatch(struct left_samples *left, uint16_t instance);

/* ---- spans ---- */

/* Call it when a span is in thread_spans. Returns whether it may own times that are or were here:
 * false for nearly all spans, which end soon, without a lock. */
bool left_samples_reach(struct left_samples *left, const struct thread_span *span);

/* A span that may. */
struct left_asker {
    const struct thread_span *span;
    struct thread_handles handles;
    bool lacks; /* result: times were lost that it may have owned */
};
/* What times have in common that were taken out. */
struct left_origin {
    struct profile_sums sums;
    struct span_source source; /* of the samples */
    uint64_t arrived_ns;       /* since 1970 */
};
struct left_taken {
    struct left_taken_time {
        struct left_time time;
        const struct left_origin *origin;
    } * times;
    struct thread_ask *asks; /* of the times: not answered */
    uint32_t count;
    uint32_t capacity;
};
/* Let one request at a time take times, give them to their spans, and put the others back.
 * left_samples_takings returns how many have done so. */
void left_samples_begin_taking(struct left_samples *left);
void left_samples_end_taking(struct left_samples *left);
uint64_t left_samples_takings(struct left_samples *left);
/* Takes out the times that may be of one of these spans. */
void left_samples_take(struct left_samples *left, struct left_asker *askers, size_t count,
                       struct arena *arena, struct left_taken *out);
/* The same for all times of these threads from this one on. */
void left_samples_take_threads(struct left_samples *left, const struct left_thread *threads,
                               uint32_t count, uint64_t from_ns, struct arena *arena,
                               struct left_taken *out);
/* Puts back those times whose question was answered with THREAD_NO_SPAN, and remembers those with
 * THREAD_AMBIGUOUS as doubts. */
void left_samples_put_back(struct left_samples *left, const struct left_taken *taken,
                           uint64_t now_ns, uint64_t window_ns);

/* Whether a span that has its samples may lack some because of doubts: false for all spans of a
 * process without any, without a lock. */
bool left_samples_may_doubt(struct left_samples *left, uint16_t instance, uint64_t start_ns);
/* Sets `lacks` for those that do. */
void left_samples_doubt(struct left_samples *left, struct left_asker *askers, size_t count);

/* Frees times that left more than window_ns ago. Call it regularly. */
void left_samples_sweep(struct left_samples *left, uint64_t now_ns, uint64_t window_ns);
/* Returns the number of times. */
uint64_t left_samples_count(struct left_samples *left);
/* Returns the memory in bytes. */
size_t left_samples_memory(struct left_samples *left);

#endif

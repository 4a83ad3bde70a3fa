/*
 * span_index: keeps spans and the totals of their samples, by span id, for the duration of the
 * window.
 *
 * The index of the join (docs/spanjoin.md). An entry contains the times of a span and the hash of
 * what it has in common with others (span_sets.h), the totals of the samples that named it, and the
 * held requests that wait for either. Both stay for `window` after their arrival. Ids are hashed
 * with the process' key and verified by trace id. All functions work on many keys at once; a
 * shard's lock is held for one key at a time, only while data is copied.
 *
 * Sources share the room (span_sources.h). A source may use idle room; when the index is full, the
 * source that is furthest above its share gives up its oldest entry. If a source sends a span again
 * with other content, the first content stays. Samples prefer a span of their own source, then one
 * of the same owner, then any other; samples of one tenant never find spans of another.
 *
 * Owner: who has a reference: a spanjoin component, and one that a reload replaces it by. Results
 * are copies in the caller's arena; no pointer refers to the index.
 *
 * Thread: any; time is an argument (monotonic).
 */
#ifndef PROFCOL_CORE_DATA_SPAN_INDEX_H
#define PROFCOL_CORE_DATA_SPAN_INDEX_H

#include "core/base/arena.h"
#include "core/data/span_records.h"

struct instances;
struct left_samples;
struct span_index;
struct span_trees;
struct thread_spans;
struct top_functions;

struct span_index_options {
    uint64_t max_spans; /* entries; beyond it, the oldest entry of some source is evicted */
    uint64_t window_ns;
    unsigned threads;     /* that use it at the same time; 0: not known */
    unsigned type_count;  /* number of sample types whose counts and sums are kept, at most
                             SPAN_INDEX_TYPES_MAX */
    int sum_type;         /* the one whose sum matches tell; -1: none */
    bool keeps_trees;     /* the caller needs span_index_trees */
    bool keeps_runs;      /* likewise, with span_trees_find_running */
    bool keeps_functions; /* the caller needs span_index_functions */
};

/* Creates an empty index, with one reference. Its memory grows as spans arrive. */
struct span_index *span_index_new(const struct span_index_options *options);
struct span_index *span_index_ref(struct span_index *index);
/* Drops a reference; the last one frees the index. NULL is allowed. */
void span_index_unref(struct span_index *index);

/* Adds spans, and sets their totals. Appends the requests that waited for these spans to
 * `wakeups`. */
void span_index_put_many(struct span_index *index, uint64_t now_ns, struct span_put *puts,
                         size_t count, struct arena *arena, struct span_wakeups *wakeups);
/* Call it when spans that have waited are sent on: sets `totals` again, and `lacks` if their
 * entries were evicted. */
void span_index_collect_many(struct span_index *index, uint64_t now_ns, struct span_put *puts,
                             size_t count, struct arena *arena);

/* Looks up the keys; does not change the index. */
void span_index_find_many(struct span_index *index, uint64_t now_ns, struct span_find *finds,
                          size_t count, struct arena *arena);
/* Adds totals of samples; call it shortly after span_index_find_many. waiter: waits for missing
 * spans (NULL: nobody waits). */
void span_index_add_many(struct span_index *index, uint64_t now_ns, struct span_find *finds,
                         size_t count, const struct span_waiter *waiter);
/* Call it when the samples are sent on: removes the waiter from spans that are still missing, and
 * records how many samples were sent without them, or (of a chosen match) without their detail. */
void span_index_leave_many(struct span_index *index, uint64_t now_ns, struct span_find *finds,
                           size_t count, const struct span_waiter *waiter);

/* Whether a profile with this id arrived from this source in another request within the window.
 * remember: also records this one. */
bool span_index_see_profile(struct span_index *index, uint64_t now_ns,
                            const uint8_t profile_id[PROFILE_ID_SIZE],
                            const struct span_source *source, uint64_t request, bool remember);

/* Removes some expired entries of every shard. Call it regularly, because otherwise only arrivals
 * remove them. */
void span_index_sweep(struct span_index *index, uint64_t now_ns);

/* Set and return the window. Entries that are within a new one, and still there, are found. */
void span_index_set_window(struct span_index *index, uint64_t window_ns);
uint64_t span_index_window(const struct span_index *index);

/* The processes of spans and profiles; they live as long as the index. */
struct instances *span_index_instances(struct span_index *index);
/* The spans that name their threads; likewise. */
struct thread_spans *span_index_threads(struct span_index *index);
/* What left without a span, by thread; likewise. */
struct left_samples *span_index_left(struct span_index *index);

/* Which span is above which; likewise. NULL if the options do not ask for it. */
struct span_trees *span_index_trees(struct span_index *index);

/* The functions of samples; likewise. */
struct top_functions *span_index_functions(struct span_index *index);

/* Returns the source of a request, as span_sources_find does. */
struct span_source span_index_source(struct span_index *index, struct slice tenant, uint64_t peer,
                                     struct slice service, uint64_t now_ns);
/* Returns the number of sources that have a number now. */
unsigned span_index_sources(const struct span_index *index);

/* Returns the number of entries, without profile ids, which also count against max_spans. */
uint64_t span_index_entries(const struct span_index *index);
/* Returns max_spans. */
uint64_t span_index_limit(const struct span_index *index);
/* Returns the memory of the index in bytes. */
size_t span_index_memory(struct span_index *index);
/* The names of the reasons, ended by NULL; span_index_take_evicted returns the evictions for one
 * reason since the last call.
 */
extern const char *const span_index_eviction_names[];
uint64_t span_index_take_evicted(struct span_index *index, unsigned reason);

#endif

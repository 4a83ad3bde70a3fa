/*
 * span_index: what is known of each span id, for as long as the window lasts.
 *
 * The memory of the join (docs/spanjoin.md). An entry holds the facts of a span, the totals of the
 * samples that named it, and which held requests wait for either; both live `window` from their
 * arrival. Ids are hashed with the process' key and verified by trace id. Everything works on many
 * keys at once: a lock per shard is held for one key, for no more than copying.
 *
 * Room is shared by source (span_sources.h). One may use what is idle; when the index is full, the
 * source that is the furthest above its share gives up its oldest entry. For one span of one
 * source what came first stays. Samples find the span of their own source first, then one of the
 * same owner, then any other; tenants never find each other's.
 *
 * Owner: a spanjoin component; results are copies in the caller's arena, no pointer leads inside.
 *
 * Thread: any; time is an argument (monotonic).
 */
#ifndef PROFCOL_CORE_DATA_SPAN_INDEX_H
#define PROFCOL_CORE_DATA_SPAN_INDEX_H

#include "core/base/arena.h"
#include "core/data/span_records.h"

struct span_index;

struct span_index_options {
    uint64_t max_spans; /* entries; over it the oldest of some source leaves */
    uint64_t window_ns;
    unsigned
        type_count; /* sample types whose counts and sums are kept, at most SPAN_INDEX_TYPES_MAX */
};

struct span_index *span_index_new(const struct span_index_options *options);
void span_index_free(struct span_index *index);

/* waiter: for samples, where none were seen (NULL: nobody waits). */
void span_index_put_many(struct span_index *index, uint64_t now_ns, struct span_put *puts,
                         size_t count, const struct span_waiter *waiter, struct arena *arena,
                         struct span_wakeups *wakeups);
/* Later: fills `totals` again and takes the waiter out. */
void span_index_collect_many(struct span_index *index, uint64_t now_ns, struct span_put *puts,
                             size_t count, const struct span_waiter *waiter, struct arena *arena);

/* Only looks. */
void span_index_find_many(struct span_index *index, uint64_t now_ns, struct span_find *finds,
                          size_t count, struct arena *arena);
/* Adds totals; shortly after span_index_find_many. waiter: for spans that are missing (NULL: nobody
 * waits). */
void span_index_add_many(struct span_index *index, uint64_t now_ns, struct span_find *finds,
                         size_t count, const struct span_waiter *waiter,
                         struct span_wakeups *wakeups);
/* The samples go on: takes the waiter out where the span is still missing, and remembers how many
 * samples it missed. */
void span_index_leave_many(struct span_index *index, uint64_t now_ns, struct span_find *finds,
                           size_t count, const struct span_waiter *waiter);

/* True when a profile with this id came from this source within the window in another request.
 * remember: this one came. */
bool span_index_see_profile(struct span_index *index, uint64_t now_ns,
                            const uint8_t profile_id[PROFILE_ID_SIZE],
                            const struct span_source *source, uint64_t request, bool remember);

/* Takes out what is over its window, some of every shard; to be called now and then, because
 * otherwise only arrivals do so. */
void span_index_sweep(struct span_index *index, uint64_t now_ns);

/* Who sends, as span_sources_find says. */
struct span_source span_index_source(struct span_index *index, struct slice tenant, uint64_t peer,
                                     struct slice service, uint64_t now_ns);
unsigned span_index_sources(const struct span_index *index);

/* Without the profile ids, which count against max_spans too. */
uint64_t span_index_entries(const struct span_index *index);
size_t span_index_memory(struct span_index *index);
/* Reasons in the order of their names, ended by NULL; evictions of each since this was last asked.
 */
extern const char *const span_index_eviction_names[];
uint64_t span_index_take_evicted(struct span_index *index, unsigned reason);

#endif

/*
 * span_index: spans, and the totals of their samples, by span id, for the duration of the window.
 *
 * The index of the join (docs/spanjoin.md). An entry holds the facts of a span, the totals of the
 * samples that named it, and the held requests that wait for either. Both stay for `window` after
 * their arrival. Ids are hashed with the process' key and verified by trace id. All functions work
 * on many keys at once; a shard's lock is held for one key at a time, only while data is copied.
 *
 * Sources share the room (span_sources.h). A source may use idle room; when the index is full, the
 * source that is furthest above its share gives up its oldest entry. If a source sends a span
 * again, the first content stays. Samples find the span of their own source first, then one of the
 * same owner, then any other; tenants never find each other's spans.
 *
 * Owner: a spanjoin component. Results are copies in the caller's arena; no pointer refers to the
 * index.
 *
 * Thread: any; time is an argument (monotonic).
 */
#ifndef PROFCOL_CORE_DATA_SPAN_INDEX_H
#define PROFCOL_CORE_DATA_SPAN_INDEX_H

#include "core/base/arena.h"
#include "core/data/otlp.h"
#include "core/data/span_sources.h"

enum {
    SPAN_INDEX_TYPES_MAX = 16,
    SPAN_INDEX_VALUES_MAX = 4096,  /* bytes that a span may want to have kept */
    SPAN_INDEX_CANDIDATES_MAX = 8, /* spans with one span id in different traces */
};

struct span_index;

struct span_index_options {
    uint64_t max_spans; /* entries; over it the oldest of some source leaves */
    uint64_t window_ns;
    unsigned
        type_count; /* sample types whose counts and sums are kept, at most SPAN_INDEX_TYPES_MAX */
};

/* Creates an empty index. Its memory grows as spans arrive. */
struct span_index *span_index_new(const struct span_index_options *options);
/* Frees the index. No other thread may use it. */
void span_index_free(struct span_index *index);

struct span_key {
    uint8_t trace_id[TRACE_ID_SIZE]; /* all zero: not known */
    uint8_t span_id[SPAN_ID_SIZE];
};

/* A key and who asks; the first members of what is put and asked for. */
struct span_asker {
    struct span_key key;
    struct span_source source;
};

struct span_facts {
    uint64_t start_ns; /* since 1970 */
    uint64_t end_ns;
    uint8_t kind;
    uint8_t status;
    struct slice values; /* what the caller wants to have kept, at most SPAN_INDEX_VALUES_MAX */
};

/* Totals of samples are an array of span_totals_count numbers: [0] samples; of type i: [1 + 2 i]
 * their count, [2 + 2 i] their sum (signed). */
static inline unsigned span_totals_count(unsigned type_count)
{
    return 1 + 2 * type_count;
}

enum span_waits_for { SPAN_WAITS_FOR_SPAN, SPAN_WAITS_FOR_SAMPLES };

/* A held request, as its worker knows it. */
struct span_waiter {
    uint64_t hold;
    uint32_t worker;
};

/* Requests whose spans or samples have arrived; malloc'ed, all-zero is empty. It contains a request
 * once for each key that it waited for. */
struct span_wakeups {
    struct span_wakeup {
        struct span_waiter waiter;
        enum span_waits_for waits_for;
    } * items;
    size_t count;
    size_t capacity;
};
/* Frees the list; it is empty again. */
void span_wakeups_deinit(struct span_wakeups *wakeups);

/* A span that has arrived. */
struct span_put {
    struct span_key key; /* both ids known */
    struct span_source source;
    struct span_facts facts;

    const uint64_t *totals; /* of the samples seen; NULL: none */
    uint64_t samples_left;  /* samples that had gone on without it */
    int64_t lag_ns;         /* arrival of its first sample minus its own, <= 0 */
    bool has_lag;           /* samples came first, and the span for the first time */
    bool waits;             /* the waiter was registered: no samples yet */
    uint32_t place;         /* where; span_index_collect_many wants it back. 0: nowhere */
};
/* Adds spans, and fills in their totals. waiter: waits for samples of spans that have none yet
 * (NULL: nobody waits). */
void span_index_put_many(struct span_index *index, uint64_t now_ns, struct span_put *puts,
                         size_t count, const struct span_waiter *waiter, struct arena *arena,
                         struct span_wakeups *wakeups);
/* When the spans leave: fills in `totals` again and removes the waiter. */
void span_index_collect_many(struct span_index *index, uint64_t now_ns, struct span_put *puts,
                             size_t count, const struct span_waiter *waiter, struct arena *arena);

enum span_presence { SPAN_MISSING, SPAN_FOUND, SPAN_EXPIRED };

/* A span that matches a key. */
struct span_match {
    struct span_key key;
    struct span_facts facts; /* values in the arena */
    uint64_t arrived_ns;
    uint32_t number; /* where it is likely to be found again */
    uint16_t source; /* whose it is */
};

/* A span id that samples name. */
struct span_find {
    struct span_key key;
    struct span_source source;
    const uint64_t *totals;          /* of span_index_add_many: what to add; NULL: nothing */
    const struct span_match *chosen; /* that the key means now, with its ids; NULL: none */
    uint64_t samples_left; /* of span_index_leave_many: samples that go on without the span */

    bool skip; /* span_index_find_many passes it over */

    enum span_presence presence;
    const struct span_match
        *matches; /* of span_index_find_many: newest first; more than one only without a trace id.
                     All are as near to the source as any is: its own, its owner's, or others' */
    unsigned match_count;
    bool waits;     /* of span_index_add_many: the waiter was registered */
    uint32_t place; /* where; span_index_leave_many wants it back. 0: nowhere */
};
/* Looks up the keys; changes nothing. */
void span_index_find_many(struct span_index *index, uint64_t now_ns, struct span_find *finds,
                          size_t count, struct arena *arena);
/* Adds totals of samples; call it shortly after span_index_find_many. waiter: waits for spans that
 * are missing (NULL: nobody waits). */
void span_index_add_many(struct span_index *index, uint64_t now_ns, struct span_find *finds,
                         size_t count, const struct span_waiter *waiter,
                         struct span_wakeups *wakeups);
/* When the samples leave: removes the waiter from spans that are still missing, and records how
 * many samples left without them. */
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

/* Returns the source of a request, as span_sources_find does. */
struct span_source span_index_source(struct span_index *index, struct slice tenant, uint64_t peer,
                                     struct slice service, uint64_t now_ns);
/* Returns how many sources have a number now. */
unsigned span_index_sources(const struct span_index *index);

/* Returns the number of entries, without profile ids, which also count against max_spans. */
uint64_t span_index_entries(const struct span_index *index);
/* Returns the memory of the index in bytes. */
size_t span_index_memory(struct span_index *index);
/* The names of the reasons, ended by NULL; span_index_take_evicted returns the evictions for one
 * reason since the last call.
 */
extern const char *const span_index_eviction_names[];
uint64_t span_index_take_evicted(struct span_index *index, unsigned reason);

#endif

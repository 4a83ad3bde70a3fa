/*
 * store: what explore remembers of the requests that left the join (docs/explore.md).
 *
 * It has one budget, of which its tables take what they need. After each request, store_reduce
 * makes room for the next one, once nearly all of it is used, step by step, so that queries need
 * not wait for all of that. Everything that senders choose is
 * bounded: names are cut, stacks have at most STORE_DEPTH_MAX frames, and what has no room is
 * counted without its details.
 *
 * Times are nanoseconds since 1970. A request belongs to the minute in which it arrived here, so a
 * wrong clock of a sender changes nothing.
 *
 * Owner: a store_thread; it survives reloads.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_EXPLORE_STORE_H
#define PROFCOL_EXPLORE_STORE_H

#include "core/pipeline/join_feed.h"
#include "extensions/explore/join_late.h"
#include "extensions/explore/store_spans.h"
#include "extensions/explore/store_stacks.h"

enum {
    STORE_JSON_MAX = 4096,  /* bytes of the attributes of a span, as JSON */
    STORE_UNREAD_RINGS = 2, /* attributes whose names have "span", and others */
    STORE_UNREAD_MAX = 512, /* of a ring */
};
#define STORE_BUDGET_MIN ((size_t)512 * 1024)
#define STORE_MINUTE_NS UINT64_C(60000000000)

/* What became of the samples of a request that name one span, for explain. */
struct store_trail {
    uint8_t trace_id[TRACE_ID_SIZE];
    uint8_t span_id[SPAN_ID_SIZE];
    uint64_t arrived_ns, left_ns;
    int64_t lag_ns;
    uint64_t window_ns, wait_ns; /* of the join */
    uint64_t types;              /* a bit for each profile type */
    uint64_t tenant;
    uint32_t samples;
    uint32_t service;   /* number; STORE_NONE: not known */
    uint32_t condition; /* text: that of `keep` that is true of the span; empty: none */
    uint8_t outcome;    /* enum join_outcome */
    bool is_promoted, is_from_root, is_ambiguous, is_kept_out, is_kept_out_dry;
};

/* An attribute of a sample without a Link that looks like the id of a span. */
struct store_unread {
    uint8_t span_id[SPAN_ID_SIZE];
    uint32_t key; /* text */
    uint32_t service;
    uint64_t arrived_ns;
};

/* When samples of a service were taken on a thread of which it is not known which span they are
 * of. */
struct store_doubt {
    struct join_doubt of;
    uint32_t service; /* number */
};

/* What makes room next. */
enum store_phase {
    STORE_REDUCED,
    STORE_SWEEPS, /* names that nobody uses */
    STORE_REDUCES_LARGEST,
    STORE_REDUCES_CELLS,
    STORE_REDUCES_NAMES,
    STORE_REDUCES_ALL
};
struct store_reduction {
    enum store_phase phase;
    int rounds, names_rounds;
    unsigned cell_step, repeats; /* of store_reduce.c */
    bool has_cell_step;
    size_t names_limit; /* bytes */
};

struct store {
    struct store_pool pool;
    struct store_names names;
    struct store_cells cells;
    struct store_spans spans;
    struct store_trail *trails; /* a ring */
    uint32_t trail_limit;
    uint64_t trail_count; /* since the start */
    struct store_unread *unread[STORE_UNREAD_RINGS];
    uint64_t unread_count[STORE_UNREAD_RINGS]; /* since the start */
    struct store_doubt *doubts;                /* a ring */
    uint32_t doubt_limit;
    uint64_t doubt_count;  /* since the start */
    bool doubts_are_cut;   /* the join has left some out */
    struct join_late late; /* the only part that other threads may read */
    size_t budget_bytes;
    uint64_t started_ns;
    struct store_reduction reduction;
    uint64_t now_ns;           /* of the last request */
    uint64_t wait_ns;          /* of the join, for samples */
    uint64_t profiles, traces; /* requests */
};

/* Creates an empty store. budget_bytes: at least STORE_BUDGET_MIN. */
struct store *store_new(size_t budget_bytes, uint64_t now_ns);
void store_free(struct store *store); /* NULL is allowed */
/* Adds a request. now_ns: since 1970; monotonic_ns: now, for the times of the offer. The offer
 * stays the caller's. */
void store_add(struct store *store, const struct join_offer *offer, uint64_t now_ns,
               uint64_t monotonic_ns);
/* Makes room for the next request: one step. Returns whether there is another one; queries may come
 * before it. */
bool store_reduce(struct store *store);
/* All steps. */
static inline void store_make_room(struct store *store)
{
    while (store_reduce(store))
        ;
}
/* Returns how many trails there are. */
static inline uint32_t store_trails_used(const struct store *store)
{
    uint64_t count = store->trail_count;
    return (uint32_t)(count < store->trail_limit ? count : store->trail_limit);
}
/* Returns how many places of a ring are used. */
static inline uint32_t store_unread_used(const struct store *store, int ring)
{
    uint64_t count = store->unread_count[ring];
    return (uint32_t)(count < STORE_UNREAD_MAX ? count : STORE_UNREAD_MAX);
}
/* Returns how many places of the ring of doubts are used. */
static inline uint32_t store_doubts_used(const struct store *store)
{
    return store->doubt_count < store->doubt_limit ? (uint32_t)store->doubt_count
                                                   : store->doubt_limit;
}
/* Whether all doubts since the start are there. */
static inline bool store_has_all_doubts(const struct store *store)
{
    return store->doubt_count <= store->doubt_limit && !store->doubts_are_cut;
}
/* Returns the memory in bytes. */
size_t store_bytes(const struct store *store);

/* Internals: read a request (store_profiles.c, store_traces.c). */
void store_read_profiles(struct store *store, const struct join_offer *offer, uint64_t arrived_ns,
                         uint64_t left_ns);
void store_read_traces(struct store *store, const struct join_offer *offer, uint64_t arrived_ns);
/* Reads service.name and service.version of a resource; texts. */
void store_read_service(struct store *store, struct slice resource, uint32_t *service_out,
                        uint32_t *version_out);
/* Reads a number of a span id from an attribute's text; returns false if it is none. */
bool store_read_id(struct slice text, uint8_t span_id_out[SPAN_ID_SIZE]);

#endif

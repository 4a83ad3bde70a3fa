/*
 * store_spans: the spans that the store remembers, each with what its samples cost.
 *
 * A span is here from the arrival of its first sample or of itself, whichever comes first. When
 * there is no room, the oldest goes; spans of a trace with a notable span, one of the slowest or
 * most expensive ones of its operation, stay longer. The slowest one of an operation stays, unless
 * there are so many operations that nearly all spans are one; then the operation has no max_span.
 *
 * Owner: the store.
 *
 * Thread: that of the store.
 */
#ifndef PROFCOL_EXPLORE_STORE_SPANS_H
#define PROFCOL_EXPLORE_STORE_SPANS_H

#include "core/data/otlp.h"
#include "extensions/explore/store_cells.h"

/* What samples of a span cost: of one stack in one type. */
struct store_cost {
    int64_t value;
    uint32_t next; /* of the span; number + 1, 0: the last */
    uint32_t node;
    uint32_t cell; /* where the value was added to an entry, with `bucket` */
    uint8_t type;
    uint8_t bucket;
};

/* What a span gained when it left the join. */
enum store_gain {
    STORE_GAINED = 1,            /* attributes */
    STORE_GAINED_PROFILE_ID = 2, /* one of them opens its profile */
    STORE_IS_INCOMPLETE = 4,     /* samples might arrive later */
    STORE_HAD_SAMPLES = 8        /* some had been seen, so that it could gain something */
};

struct store_span {
    uint8_t trace_id[TRACE_ID_SIZE]; /* all zero: not known yet */
    uint8_t span_id[SPAN_ID_SIZE];
    uint8_t parent_id[SPAN_ID_SIZE];
    uint64_t start_ns;
    uint64_t duration_ns;
    uint64_t arrived_ns; /* at the join, since 1970; 0: only its samples have arrived */
    uint64_t tenant;
    int64_t cpu_ns;      /* of its samples */
    int64_t told_cpu_ns; /* of all that the join has told of */
    uint32_t operation;
    uint32_t name; /* text; that of the operation, unless that was merged */
    uint32_t cell;
    uint32_t version, status_message, scope, attributes, resource; /* texts; the last two: JSON */
    uint32_t first_cost;                                           /* number + 1; 0: none */
    uint32_t samples;                                              /* with its Link */
    uint32_t kept_out;   /* Sample messages that left without its detail (`keep`) */
    uint32_t minute;     /* that of its cell when it left the join */
    uint32_t trace;      /* number; STORE_NONE: in none */
    uint32_t next, last; /* in the trace: the next and the previous one, number + 1 */
    uint8_t kind, status;
    uint8_t notable; /* lists of its operation that it is in */
    bool is_used;
    bool is_entry;       /* no parent in its own service (span_parent_is_remote) */
    bool has_thread;     /* it names its thread */
    bool lacks_language; /* of its resource, so that its thread is compared by name only */
    uint8_t gains;       /* bits of enum store_gain */
};

struct store_trace {
    uint8_t trace_id[TRACE_ID_SIZE];
    uint32_t first; /* span + 1 */
    uint32_t count;
    uint32_t notable; /* lists that its spans are in */
};

struct store_spans {
    struct store_cells *cells;
    struct store_table spans;
    struct store_table traces;
    struct store_table costs;
    uint32_t hand;       /* the span that may go next */
    uint32_t free_trace; /* number + 1; linked by `first` */
    uint32_t free_cost;  /* number + 1; linked by `next` */
    uint8_t cpu_type;    /* STORE_TYPES_MAX: none yet */
};

void store_spans_init(struct store_spans *spans, struct store_cells *cells,
                      struct store_pool *pool);
void store_spans_deinit(struct store_spans *spans);

static inline struct store_span *store_span_at(const struct store_spans *spans, uint32_t number)
{
    return store_table_at(&spans->spans, number);
}
static inline const struct store_trace *store_trace_at(const struct store_spans *spans,
                                                       uint32_t number)
{
    return store_table_at(&spans->traces, number);
}
static inline const struct store_cost *store_cost_at(const struct store_spans *spans,
                                                     uint32_t number_plus_one)
{
    return store_table_at(&spans->costs, number_plus_one - 1);
}

/* Whether the span itself has arrived. */
static inline bool store_span_has_arrived(const struct store_span *span)
{
    return span->arrived_ns != 0;
}

/* Whether the span itself names a parent. */
static inline bool store_span_has_parent(const struct store_span *span)
{
    static const uint8_t none[SPAN_ID_SIZE];
    return memcmp(span->parent_id, none, sizeof none) != 0;
}

/* Returns the version of its samples; version: that of their profile. Few profilers send one, so
 * then it is that of the span. */
static inline uint32_t store_span_version_of(const struct store_span *span, uint32_t version)
{
    return version != STORE_TEXT_EMPTY ? version : span->version;
}

/* Whether it is the slowest one of its operation. */
bool store_spans_is_slowest(const struct store_spans *spans, uint32_t number);
/* Returns the number of a span; STORE_NONE: it is not here. trace_id NULL or all zero: any. */
uint32_t store_spans_find(struct store_spans *spans, const uint8_t *trace_id,
                          const uint8_t *span_id);
/* Returns the number of a span with this id that has arrived, in whichever trace; STORE_NONE. */
uint32_t store_spans_find_arrived(struct store_spans *spans, const uint8_t *span_id);
/* Returns the number of a trace; STORE_NONE. */
uint32_t store_spans_find_trace(struct store_spans *spans, const uint8_t *trace_id);
/* Adds a span that is not here. May evict others. */
uint32_t store_spans_add(struct store_spans *spans, const uint8_t *trace_id,
                         const uint8_t *span_id);
/* Sets the trace id of a span that has none. */
void store_spans_set_trace(struct store_spans *spans, uint32_t number, const uint8_t *trace_id);
/* Adds a cost; `next` is set here. */
void store_spans_cost(struct store_spans *spans, uint32_t number, const struct store_cost *cost);
/* Call it when the duration or CPU time of an arrived span has changed. */
void store_spans_note(struct store_spans *spans, uint32_t number);
/* Moves all costs of a span that arrives to its operation, and the bucket of its duration. */
void store_spans_settle(struct store_spans *spans, uint32_t number);
/* Moves an arrived span to the operation that stands for its own one, which was merged. */
void store_spans_merge_operation(struct store_spans *spans, uint32_t number, uint32_t operation);
void store_spans_evict(struct store_spans *spans, uint32_t number);
/* Forgets its stacks, attributes and other texts, besides its name and version. */
void store_spans_strip(struct store_spans *spans, uint32_t number);

size_t store_spans_bytes(const struct store_spans *spans);

#endif

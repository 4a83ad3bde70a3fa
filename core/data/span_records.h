/*
 * span_records: the arguments and results of the span index.
 *
 * Owner: the caller; results are in the caller's arena.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_DATA_SPAN_RECORDS_H
#define PROFCOL_CORE_DATA_SPAN_RECORDS_H

#include "core/data/otlp.h"
#include "core/data/span_sources.h"

enum {
    SPAN_INDEX_TYPES_MAX = 16,
    SPAN_INDEX_VALUES_MAX = 4096,  /* bytes of values kept for a span */
    SPAN_INDEX_CANDIDATES_MAX = 8, /* spans with the same span id in different traces */
    SPAN_INDEX_KEPT_BY_MAX = 31,
};

struct span_key {
    uint8_t trace_id[TRACE_ID_SIZE]; /* all zero: not known */
    uint8_t span_id[SPAN_ID_SIZE];
};

/* A key and its source: the first members of struct span_put and struct span_find. */
struct span_asker {
    struct span_key key;
    struct span_source source;
};

struct span_facts {
    uint64_t start_ns; /* since 1970 */
    uint64_t end_ns;
    uint8_t kind;
    uint8_t status;
    uint8_t kept_by; /* up to SPAN_INDEX_KEPT_BY_MAX; the index keeps this of the first arrival; the
                        caller knows what it means; 0: nothing */
    struct slice values; /* the caller's own bytes, at most SPAN_INDEX_VALUES_MAX */
};

/* Totals of samples are an array of span_totals_count numbers: [0] samples; of type i: [1 + 2 i]
 * their count, [2 + 2 i] their sum (signed). */
static inline unsigned span_totals_count(unsigned type_count)
{
    return 1 + 2 * type_count;
}

enum span_waits_for { SPAN_WAITS_FOR_SPAN, SPAN_WAITS_FOR_SAMPLES };

/* A held request: the number of the hold and its worker. */
struct span_waiter {
    uint64_t hold;
    uint32_t worker;
};

/* Requests whose spans or samples have arrived. Allocated with malloc; all-zero is empty. A request
 * occurs once for each key that it waited for. */
struct span_wakeups {
    struct span_wakeup {
        struct span_waiter waiter;
        enum span_waits_for waits_for;
    } * items;
    size_t count;
    size_t capacity;
};
void span_wakeups_add(struct span_wakeups *wakeups, struct span_wakeup wakeup);
void span_wakeups_deinit(struct span_wakeups *wakeups);

/* A span that has arrived. */
struct span_put {
    struct span_key key; /* with both ids */
    struct span_source source;
    struct span_facts facts;
    uint16_t instance;  /* number of its process (instances.h); 0: not known */
    struct slice raw;   /* its bytes in the request */
    bool is_incomplete; /* set by the caller: samples of it may arrive later */
    bool ran_unjoined;  /* likewise: it ran when samples were taken that named spans which had not
                           arrived when they left */
    bool ran_unasked;   /* likewise: it ran when samples were taken that named a thread, and left
                           before anybody looked for their spans */
    bool left_bare;     /* likewise: samples that were sent on without it have lost its detail, so
                           that span_find.samples_late tells them unless kept_by is set */
    bool keeps_awaited; /* likewise: samples that wait for it are sent on with its detail */

    const uint64_t *totals; /* result: totals of the samples that have arrived; NULL: none */
    uint64_t unlinked;      /* result: the sum of span_find.unlinked */
    uint64_t samples_left;  /* result: samples that were sent on without it */
    uint64_t samples_bare;  /* result: those of them that lost its detail (not span_find.passes) */
    bool lacks;             /* result: span_find.lacks was set for it, or its entry or totals of its
                               samples were evicted */
    bool was_awaited;       /* result: samples waited for it; of a span that is collected: they
                               still wait, and lack its detail unless their CPU time asks for it */
    bool has_detail;        /* result: samples were or are sent on with its detail
                               (span_find.with_detail, or keeps_awaited) */
    int64_t lag_ns;         /* result: arrival of its first sample minus its own, <= 0 */
    bool has_lag; /* lag_ns is set: samples arrived before the span, which arrived for the first
                     time */
    uint64_t set; /* internal: hash of its set */
};

enum span_presence { SPAN_MISSING, SPAN_FOUND, SPAN_EXPIRED };

/* A span that matches a key. */
struct span_match {
    struct span_key key;
    struct span_facts facts; /* values in the arena */
    uint64_t arrived_ns;
    uint64_t set; /* identity of kind, status and values: equal for spans that have these in common,
                     if they have an owner in common */
    int64_t sum;  /* of its samples so far, of the sum_type of the index */
    uint32_t number; /* of the entry, to find it again quickly */
    uint16_t source; /* number of its source */
    uint16_t instance;
};

/* A span id that samples name. */
struct span_find {
    struct span_key key;
    struct span_source source;
    const uint64_t *totals;          /* to be added by span_index_add_many; NULL: nothing */
    uint64_t unlinked;               /* likewise: how many of these were sent on without the Link */
    const struct span_match *chosen; /* the match that the caller has chosen; NULL: none */
    bool lacks; /* for span_index_add_many: samples of the chosen span are lost, which it keeps in
                   mind */
    bool with_detail; /* for span_index_add_many, if there is a chosen match, and
                         span_index_leave_many: samples are sent on with the detail of the span */
    /* For span_index_leave_many: */
    uint64_t samples_left; /* samples that are sent on without the span, or without its detail */
    bool passes;           /* without the span, but as they came */
    uint8_t kept_by;       /* samples of the span are sent on with its detail, and the index keeps
                              this as it keeps span_facts.kept_by; 0: they are not */
    uint64_t samples_late; /* result, if kept_by is not 0: samples that were sent on without it
                              before; told once */

    bool skip; /* span_index_find_many ignores it */

    enum span_presence presence;
    const struct span_match
        *matches; /* result of span_index_find_many: newest first; more than one only if the key has
                     no trace id. All belong to the source itself; if it has none, to its owner; if
                     that has none, to others */
    unsigned match_count;
    bool waits;     /* result of span_index_add_many: the waiter was registered */
    uint32_t place; /* of the waiter, for span_index_leave_many; 0: none */
};

#endif

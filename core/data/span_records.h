/*
 * span_records: what goes into the span index, and what it answers.
 *
 * Owner: the caller; what the index fills in is in the caller's arena.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_DATA_SPAN_RECORDS_H
#define PROFCOL_CORE_DATA_SPAN_RECORDS_H

#include "core/data/otlp.h"
#include "core/data/span_sources.h"

enum {
    SPAN_INDEX_TYPES_MAX = 16,
    SPAN_INDEX_VALUES_MAX = 4096,  /* bytes that a span may want to have kept */
    SPAN_INDEX_CANDIDATES_MAX = 8, /* spans with one span id in different traces */
};

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

#endif

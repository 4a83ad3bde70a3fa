/*
 * store_query: selects samples and spans of the store, and adds them up.
 *
 * A selection is what the parameters of docs/explore.md say. Samples come from the aggregates, or
 * from the remembered spans if the selection asks for what only these have: an attribute, a trace,
 * a span.
 *
 * Owner: the caller.
 *
 * Thread: that of the store.
 */
#ifndef PROFCOL_EXPLORE_STORE_QUERY_H
#define PROFCOL_EXPLORE_STORE_QUERY_H

#include "extensions/explore/store.h"

enum { SELECTION_ATTRIBUTES_MAX = 8 };

/* Members that are not set select everything. Texts that the store does not have select nothing. */
struct store_selection {
    bool has_service, has_operation, has_version;
    struct slice service, operation, version;
    int kind;                                          /* -1: any */
    int status;                                        /* -1: any */
    uint64_t from_ns, to_ns;                           /* 0: any */
    uint64_t min_ns, max_ns;                           /* duration; max 0: any */
    int bucket;                                        /* -1: any */
    struct slice attributes[SELECTION_ATTRIBUTES_MAX]; /* "key":"value", as in the store's JSON */
    struct slice numbers[SELECTION_ATTRIBUTES_MAX];    /* "key":value */
    unsigned attribute_count;
    uint16_t *memo; /* of spans with attributes: which of these each text of the store has */
    bool has_trace, has_span;
    uint8_t trace_id[TRACE_ID_SIZE];
    uint8_t span_id[SPAN_ID_SIZE];
};

static inline bool store_selection_is_of_spans(const struct store_selection *selection)
{
    return selection->attribute_count > 0 || selection->has_trace || selection->has_span;
}

/* Marks the cells that a selection has. Free with free(). */
bool *store_query_cells(const struct store *store, const struct store_selection *selection);
/* Whether a remembered span that has arrived is in the selection. */
bool store_query_has_span(const struct store *store, const struct store_selection *selection,
                          const struct store_span *span);
/* Whether an entry's bucket, or the duration of a bucket, is in the selection. */
bool store_query_has_bucket(const struct store_selection *selection, unsigned bucket);

/* What stacks cost, by node. */
struct store_values {
    int64_t *self;
    int64_t *total; /* with all that is called */
    uint32_t count; /* of nodes */
    int64_t sum;
    uint64_t spans;
};
struct store_values store_query_values(const struct store *store,
                                       const struct store_selection *selection, uint8_t type);
void store_values_deinit(struct store_values *values);

/* Returns what a span's samples of one type cost. */
int64_t store_query_cost(const struct store *store, const struct store_span *span, uint8_t type);
/* Returns the number of a type by name; the default for an empty name; STORE_TYPES_MAX: there is
 * none. */
uint8_t store_query_type(const struct store *store, struct slice name);

#endif

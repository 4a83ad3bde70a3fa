/*
 * store_cells: the aggregates of the store: what each operation cost, by minute.
 *
 * A cell is an operation with a status, a version (service.version) and a minute. Its numbers are
 * entries: the value of a stack in a profile type, or how many of its spans are in a bucket of the
 * histograms of duration and CPU time. Stacks of samples whose span is known are kept by the bucket
 * of its duration.
 *
 * The totals of a service are exact whatever happens to its cells: a value for which there is no
 * room goes to a cell of the service without details, or to that of all services.
 *
 * Owner: the store.
 *
 * Thread: that of the store.
 */
#ifndef PROFCOL_EXPLORE_STORE_CELLS_H
#define PROFCOL_EXPLORE_STORE_CELLS_H

#include "extensions/explore/store_names.h"

enum {
    STORE_TYPES_MAX = 48,   /* the last one stands for all further ones */
    STORE_VERSIONS_MAX = 8, /* of a service or operation that are listed */
    STORE_BUCKETS = 128,    /* of a histogram */
    STORE_BUCKET_ANY = 255, /* of an entry: the duration of its span is not known, or not kept */
    STORE_ENTRY_DURATION = 254, /* types of entries: the histograms; `node` is the bucket, of
                                   durations the fine one (percentiles.h) */
    STORE_ENTRY_CPU = 253,
    STORE_NOTABLE_MAX = 8, /* the slowest and the most expensive spans of an operation, each */
};

/* Returns the bucket of a duration or CPU time; its bounds: [lower, lower of the next). */
unsigned store_bucket_of(uint64_t ns);
uint64_t store_bucket_lower(unsigned bucket);

struct store_type {
    uint32_t name, unit; /* texts */
    uint32_t label;      /* the name; with the unit, if another type has this name */
    int64_t total;
};

/* The versions seen last, newest first; texts. STORE_TEXT_EMPTY ends the list. */
struct store_versions {
    uint32_t texts[STORE_VERSIONS_MAX];
};

/* Why samples have no span. */
enum store_unjoined {
    STORE_UNJOINED_NO_ID,
    STORE_UNJOINED_NO_PROCESS,
    STORE_UNJOINED_NO_SPAN_ON_THREAD,
    STORE_UNJOINED_AMBIGUOUS_THREAD,
    STORE_UNJOINED_NOT_FOUND,
    STORE_UNJOINED_EXPIRED,
    STORE_UNJOINED_OVERFLOW,
    STORE_UNJOINED_COUNT
};

struct store_service {
    uint32_t name;
    uint32_t operations;
    struct store_versions versions;
    uint64_t spans, errors;
    uint64_t unjoined[STORE_UNJOINED_COUNT]; /* Sample messages */
    uint64_t joined_samples;
    /* When requests with such samples left the join; 0: none has. */
    uint64_t last_ambiguous_ns, first_no_span_ns;
    int64_t totals[STORE_TYPES_MAX];
    int64_t joined[STORE_TYPES_MAX]; /* the part of samples whose span is known */
};

struct store_operation {
    uint32_t service; /* number */
    uint32_t name;    /* STORE_TEXT_EMPTY: samples whose span is not known; STORE_TEXT_MERGED:
                         operations that were merged */
    uint8_t kind;
    bool keeps_buckets; /* its stacks are kept by bucket */
    struct store_versions versions;
    uint64_t max_ns;
    uint32_t max_span;                   /* which took max_ns: its number + 1; 0: it was evicted */
    uint32_t slowest[STORE_NOTABLE_MAX]; /* spans (store_spans.h) + 1, any order; 0: none */
    uint32_t costliest[STORE_NOTABLE_MAX];
};

struct store_cell {
    uint32_t operation;
    uint32_t version; /* text */
    uint32_t minute;  /* since 1970; 0: of any time */
    uint8_t status;
    bool is_hour;   /* from `minute` on */
    uint32_t spans; /* for comparing operations; it saturates */
};

struct store_entry {
    int64_t value;
    uint32_t cell;
    uint32_t node;
    uint8_t type;
    uint8_t bucket;
};

struct store_merged {
    uint64_t minutes;    /* cells that became hours */
    uint64_t operations; /* that became "(merged)" */
    uint64_t stacks;     /* entries that lost their stack */
};

struct store_cells {
    struct store_names *names;
    struct store_type types[STORE_TYPES_MAX];
    uint32_t type_count;
    struct store_table services;
    struct store_table operations;
    struct store_table cells;
    struct store_table entries;
    struct store_merged merged;
};

void store_cells_init(struct store_cells *cells, struct store_names *names,
                      struct store_pool *pool);
void store_cells_deinit(struct store_cells *cells);

static inline struct store_service *store_service_at(const struct store_cells *cells, uint32_t n)
{
    return store_table_at(&cells->services, n);
}
static inline struct store_operation *store_operation_at(const struct store_cells *cells,
                                                         uint32_t n)
{
    return store_table_at(&cells->operations, n);
}
static inline struct store_cell *store_cell_at(const struct store_cells *cells, uint32_t n)
{
    return store_table_at(&cells->cells, n);
}
static inline struct store_entry *store_entry_at(const struct store_cells *cells, uint32_t n)
{
    return store_table_at(&cells->entries, n);
}

static inline void store_cell_add_spans(struct store_cell *cell, uint32_t spans)
{
    cell->spans = cell->spans > UINT32_MAX - spans ? UINT32_MAX : cell->spans + spans;
}

/* Return the number of a type, service, operation or cell; add it if it is new. If there is no
 * room, they return one that stands for it. */
uint8_t store_cells_type(struct store_cells *cells, uint32_t name, uint32_t unit);
uint32_t store_cells_service(struct store_cells *cells, uint32_t name);
uint32_t store_cells_operation(struct store_cells *cells, uint32_t service, uint32_t name,
                               uint8_t kind);
uint32_t store_cells_cell(struct store_cells *cells, const struct store_cell *key);
/* Adds a value to an entry. Zero adds nothing. */
void store_cells_add(struct store_cells *cells, const struct store_entry *entry);
/* Subtracts a value from an entry. Returns false if the entry has less. */
bool store_cells_take(struct store_cells *cells, const struct store_entry *entry);
/* Moves a version to the front. */
void store_versions_note(struct store_versions *versions, uint32_t version);
/* Adds all records to their indexes again. Equal cells must not exist; equal entries are added up.
 */
void store_cells_index_services(struct store_cells *cells);
void store_cells_index_operations(struct store_cells *cells);
void store_cells_index_cells(struct store_cells *cells);
void store_cells_index_entries(struct store_cells *cells);

/* Whether a table has more records than store_reduce leaves. */
bool store_cells_have_excess(const struct store_cells *cells);
size_t store_cells_bytes(const struct store_cells *cells);

#endif

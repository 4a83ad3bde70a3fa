/*
 * metrics_private: what the files of metrics share. metrics.c keeps the values, metrics_page.c
 * prints them for Prometheus.
 *
 * Owner: the registry owns all families and series.
 *
 * Thread: families and series are read and changed with the registry's lock.
 */
#ifndef PROFCOL_CORE_BASE_METRICS_PRIVATE_H
#define PROFCOL_CORE_BASE_METRICS_PRIVATE_H

#include "core/base/metrics.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

enum { CACHE_LINE = 64 };

enum metric_kind {
    METRIC_COUNTER,
    METRIC_GAUGE,
    METRIC_GAUGE_FROM,
    METRIC_COUNTER_FROM,
    METRIC_HISTOGRAM
};

struct counter_cell {
    alignas(CACHE_LINE) _Atomic uint64_t value;
};

struct counter {
    struct counter_cell *cells;
    unsigned workers;
};

struct gauge {
    _Atomic int64_t value;
};

/* During a reload, an old and a new component have the same gauge or counter. The new one's counts,
 * or the sum of both. */
struct value_from {
    double (*read)(void *context);
    void *context;
    bool is_summed;
    struct value_from *older; /* NULL: none */
};

/* Per worker: a count per bucket (the last is +Inf), then the sum, the least and the greatest value
 * (enum after_buckets), whose bits are stored in a uint64_t. */
struct histogram {
    const double *bounds;
    size_t bound_count;
    unsigned workers;
    size_t stride; /* of a worker's cells, in uint64_t */
    _Atomic uint64_t *cells;
};

enum after_buckets { CELL_SUM, CELL_LEAST, CELL_GREATEST, CELLS_AFTER_BUCKETS };

struct series {
    struct series *next;
    char *labels;
    size_t number; /* of a counter or histogram: see struct metric_series */
    union {
        struct counter counter;
        struct gauge gauge;
        struct value_from from;
        struct histogram histogram;
    };
};

struct family {
    char *name;
    char *help;
    enum metric_kind kind;
    struct series *first;
};

struct metrics {
    pthread_mutex_t lock;
    atomic_int level; /* enum metrics_level */
    unsigned workers;
    struct family **families; /* sorted by name */
    size_t count;
    size_t numbered; /* counters and histograms so far */
};

/* Returns how many values are in this bucket alone. */
uint64_t metrics_read_bucket(const struct histogram *histogram, size_t bucket);
/* Returns the sum of all values. */
double metrics_read_sum(const struct histogram *histogram);
/* Returns the value of a series that is no histogram. */
double metrics_series_value(const struct series *series, enum metric_kind kind);

#endif

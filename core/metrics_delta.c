#include "core/metrics_delta.h"

#include "core/base/memory.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* The state of a series: as it was sent, and as it was taken after that. */
struct point {
    int64_t number, taken_number;
    double real, taken_real;
    size_t bucket_count;     /* 0: no histogram */
    uint64_t *buckets;       /* NULL: as many zeros */
    uint64_t *taken_buckets; /* in the same block */
};

struct metrics_delta {
    bool keep_observed;
    uint64_t since_ns;
    struct point *points; /* by the number of the series */
    size_t count;
    uint64_t *difference; /* buckets of the series that was taken last */
};

bool metrics_delta_is_for(const struct metrics_delta *delta, const struct metric_series *series)
{
    return series->type != METRIC_TYPE_GAUGE && !(delta->keep_observed && series->is_observed);
}

static struct point *find_point(struct metrics_delta *delta, size_t series)
{
    if (series >= delta->count) {
        delta->points = memory_grow(delta->points, series + 1, sizeof *delta->points);
        memset(delta->points + delta->count, 0,
               (series + 1 - delta->count) * sizeof *delta->points);
        delta->count = series + 1;
    }
    return &delta->points[series];
}

static void subtract_buckets(struct metrics_delta *delta, struct point *point,
                             const struct metric_series *series, struct metric_series *out)
{
    size_t count = series->bound_count + 1;
    if (!point->buckets) {
        point->buckets = memory_zalloc(2 * count * sizeof *point->buckets);
        point->taken_buckets = point->buckets + count;
        point->bucket_count = count;
    }
    assert(point->bucket_count == count); /* the bounds of a series stay */
    free(delta->difference);
    delta->difference = memory_alloc(count * sizeof *delta->difference);
    for (size_t i = 0; i < count; i++) {
        point->taken_buckets[i] = series->buckets[i];
        delta->difference[i] = series->buckets[i] - point->buckets[i];
    }
    out->buckets = delta->difference;
    /* The range is that of all values. Which of them are new is not known. */
    out->least = INFINITY;
    out->greatest = -INFINITY;
}

bool metrics_delta_take(struct metrics_delta *delta, const struct metric_series *series,
                        struct metric_series *out)
{
    assert(metrics_delta_is_for(delta, series));
    struct point *point = find_point(delta, series->series);
    point->taken_number = series->number;
    point->taken_real = series->real;
    *out = *series;
    out->number -= point->number;
    out->real -= point->real;
    if (series->type == METRIC_TYPE_HISTOGRAM)
        subtract_buckets(delta, point, series, out);
    return series->is_observed || out->number != 0;
}

static void commit_point(struct point *point)
{
    point->number = point->taken_number;
    point->real = point->taken_real;
    for (size_t i = 0; i < point->bucket_count; i++)
        point->buckets[i] = point->taken_buckets[i];
}

void metrics_delta_commit(struct metrics_delta *delta, uint64_t now_ns)
{
    assert(now_ns >= delta->since_ns);
    for (size_t i = 0; i < delta->count; i++)
        commit_point(&delta->points[i]);
    delta->since_ns = now_ns;
}

static void take_only(void *context, const struct metric_series *series)
{
    struct metric_series difference;
    if (metrics_delta_is_for(context, series))
        metrics_delta_take(context, series, &difference);
}

struct metrics_delta *metrics_delta_new(struct metrics *metrics, bool keep_observed,
                                        uint64_t now_ns)
{
    struct metrics_delta *delta = memory_zalloc(sizeof *delta);
    delta->keep_observed = keep_observed;
    metrics_visit(metrics, take_only, delta);
    metrics_delta_commit(delta, now_ns);
    return delta;
}

void metrics_delta_free(struct metrics_delta *delta)
{
    if (!delta)
        return;
    for (size_t i = 0; i < delta->count; i++)
        free(delta->points[i].buckets);
    free(delta->points);
    free(delta->difference);
    free(delta);
}

uint64_t metrics_delta_since(const struct metrics_delta *delta)
{
    return delta->since_ns;
}

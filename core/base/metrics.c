#include "core/base/metrics.h"

#include "core/base/memory.h"
#include "core/base/metrics_private.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

struct metrics *metrics_new(unsigned workers)
{
    assert(workers > 0);
    struct metrics *metrics = memory_zalloc(sizeof *metrics);
    pthread_mutex_init(&metrics->lock, NULL);
    metrics->workers = workers;
    atomic_init(&metrics->level, METRICS_NORMAL);
    return metrics;
}

/* Puts the older gauge in its place. Returns false if there is none. */
static bool become_older(struct value_from *from)
{
    struct value_from *older = from->older;
    if (!older)
        return false;
    *from = *older;
    free(older);
    return true;
}

static void free_older(struct value_from *from)
{
    for (struct value_from *older; from; from = older) {
        older = from->older;
        free(from);
    }
}

void metrics_set_level(struct metrics *metrics, enum metrics_level level)
{
    assert(level <= METRICS_DETAILED);
    atomic_store_explicit(&metrics->level, (int)level, memory_order_relaxed);
}

enum metrics_level metrics_get_level(const struct metrics *metrics)
{
    return (enum metrics_level)atomic_load_explicit(&metrics->level, memory_order_relaxed);
}

bool metrics_are_detailed(const struct metrics *metrics)
{
    return metrics_get_level(metrics) >= METRICS_DETAILED;
}

static bool is_read_elsewhere(enum metric_kind kind)
{
    return kind == METRIC_GAUGE_FROM || kind == METRIC_COUNTER_FROM;
}

static void series_free(struct series *series, enum metric_kind kind)
{
    if (kind == METRIC_COUNTER)
        free(series->counter.cells);
    else if (is_read_elsewhere(kind))
        free_older(series->from.older);
    else if (kind == METRIC_HISTOGRAM)
        free(series->histogram.cells);
    free(series->labels);
    free(series);
}

void metrics_free(struct metrics *metrics)
{
    if (!metrics)
        return;
    for (size_t i = 0; i < metrics->count; i++) {
        struct family *family = metrics->families[i];
        while (family->first) {
            struct series *series = family->first;
            family->first = series->next;
            series_free(series, family->kind);
        }
        free(family->name);
        free(family->help);
        free(family);
    }
    free(metrics->families);
    pthread_mutex_destroy(&metrics->lock);
    free(metrics);
}

static struct family *find_family(struct metrics *metrics, const char *name, size_t *position_out)
{
    size_t low = 0, high = metrics->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(metrics->families[middle]->name, name);
        if (order == 0)
            return metrics->families[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *position_out = low;
    return NULL;
}

static struct family *get_family(struct metrics *metrics, const char *name, const char *help,
                                 enum metric_kind kind)
{
    size_t position;
    struct family *family = find_family(metrics, name, &position);
    if (family) {
        assert(family->kind == kind);
        return family;
    }
    assert(position == 0 || strcmp(metrics->families[position - 1]->name, name) < 0);
    family = memory_zalloc(sizeof *family);
    family->name = memory_strdup(name);
    family->help = memory_strdup(help);
    family->kind = kind;
    metrics->families = memory_grow(metrics->families, metrics->count + 1, sizeof(struct family *));
    memmove(metrics->families + position + 1, metrics->families + position,
            (metrics->count - position) * sizeof(struct family *));
    metrics->families[position] = family;
    metrics->count++;
    return family;
}

/* Finds or appends a series. *made: it is new, and must be initialised. Called with the lock
 * held. */
static struct series *get_series(struct metrics *metrics, struct family *family, const char *labels,
                                 bool *made)
{
    struct series **link = &family->first;
    for (; *link; link = &(*link)->next)
        if (strcmp((*link)->labels, labels) == 0) {
            *made = false;
            return *link;
        }
    *link = memory_zalloc(sizeof(**link));
    (*link)->labels = memory_strdup(labels);
    if (family->kind != METRIC_GAUGE && family->kind != METRIC_GAUGE_FROM)
        (*link)->number = metrics->numbered++;
    *made = true;
    return *link;
}

static void *aligned_cells(size_t count, size_t size)
{
    assert(count * size % CACHE_LINE == 0); /* no worker writes to a line of another one */
    void *cells = aligned_alloc(CACHE_LINE, count * size);
    if (!cells)
        abort();
    memset(cells, 0, count * size);
    return cells;
}

struct counter *metrics_counter(struct metrics *metrics, const char *name, const char *help,
                                const char *labels)
{
    bool made;
    pthread_mutex_lock(&metrics->lock);
    struct series *series =
        get_series(metrics, get_family(metrics, name, help, METRIC_COUNTER), labels, &made);
    if (made) {
        series->counter.workers = metrics->workers;
        series->counter.cells = aligned_cells(metrics->workers, sizeof(struct counter_cell));
    }
    pthread_mutex_unlock(&metrics->lock);
    return &series->counter;
}

struct gauge *metrics_gauge(struct metrics *metrics, const char *name, const char *help,
                            const char *labels)
{
    bool made;
    pthread_mutex_lock(&metrics->lock);
    struct series *series =
        get_series(metrics, get_family(metrics, name, help, METRIC_GAUGE), labels, &made);
    pthread_mutex_unlock(&metrics->lock);
    return &series->gauge;
}

static void add_value_from(struct metrics *metrics, enum metric_kind kind, const char *name,
                           const char *help, const char *labels, struct value_from from)
{
    bool made;
    pthread_mutex_lock(&metrics->lock);
    struct series *series =
        get_series(metrics, get_family(metrics, name, help, kind), labels, &made);
    if (!made) {
        from.older = memory_alloc(sizeof *from.older);
        *from.older = series->from;
    }
    series->from = from;
    pthread_mutex_unlock(&metrics->lock);
}

static void forget_older(struct value_from *from, const void *context)
{
    for (struct value_from **link = &from->older, *each; (each = *link) != NULL;) {
        if (each->context != context) {
            link = &each->older;
            continue;
        }
        *link = each->older;
        free(each);
    }
}

void metrics_gauge_from(struct metrics *metrics, const char *name, const char *help,
                        const char *labels, double (*read)(void *context), void *context)
{
    add_value_from(metrics, METRIC_GAUGE_FROM, name, help, labels,
                   (struct value_from){.read = read, .context = context});
}

void metrics_gauge_sum_from(struct metrics *metrics, const char *name, const char *help,
                            const char *labels, double (*read)(void *context), void *context)
{
    add_value_from(metrics, METRIC_GAUGE_FROM, name, help, labels,
                   (struct value_from){.read = read, .context = context, .is_summed = true});
}

void metrics_counter_from(struct metrics *metrics, const char *name, const char *help,
                          const char *labels, double (*read)(void *context), void *context)
{
    add_value_from(metrics, METRIC_COUNTER_FROM, name, help, labels,
                   (struct value_from){.read = read, .context = context});
}

void metrics_forget(struct metrics *metrics, const void *context)
{
    pthread_mutex_lock(&metrics->lock);
    for (size_t i = 0; i < metrics->count; i++) {
        struct family *family = metrics->families[i];
        if (!is_read_elsewhere(family->kind))
            continue;
        for (struct series **link = &family->first; *link;) {
            struct series *series = *link;
            forget_older(&series->from, context);
            if (series->from.context == context && !become_older(&series->from)) {
                *link = series->next;
                series_free(series, family->kind);
            } else {
                link = &series->next;
            }
        }
    }
    pthread_mutex_unlock(&metrics->lock);
}

static double as_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t as_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static _Atomic uint64_t *cell_after_buckets(const struct histogram *histogram, unsigned worker,
                                            enum after_buckets which)
{
    return &histogram->cells[worker * histogram->stride + histogram->bound_count + 1 + which];
}

/* Until a worker records its first value, its least one is above its greatest. */
static void empty_range(const struct histogram *histogram)
{
    for (unsigned w = 0; w < histogram->workers; w++) {
        atomic_init(cell_after_buckets(histogram, w, CELL_LEAST), as_bits(INFINITY));
        atomic_init(cell_after_buckets(histogram, w, CELL_GREATEST), as_bits(-INFINITY));
    }
}

struct histogram *metrics_histogram(struct metrics *metrics, const char *name, const char *help,
                                    const char *labels, const double *bounds, size_t bound_count)
{
    bool made;
    pthread_mutex_lock(&metrics->lock);
    struct series *series =
        get_series(metrics, get_family(metrics, name, help, METRIC_HISTOGRAM), labels, &made);
    struct histogram *histogram = &series->histogram;
    if (made) {
        histogram->bounds = bounds;
        histogram->bound_count = bound_count;
        histogram->workers = metrics->workers;
        size_t used = (bound_count + 1 + CELLS_AFTER_BUCKETS) * sizeof(uint64_t);
        size_t rounded = (used + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
        histogram->stride = rounded / sizeof(uint64_t);
        histogram->cells = aligned_cells(metrics->workers, rounded);
        empty_range(histogram);
    }
    assert(histogram->bound_count == bound_count); /* also if it was made before */
    pthread_mutex_unlock(&metrics->lock);
    return histogram;
}

void counter_add(struct counter *counter, unsigned worker, uint64_t n)
{
    assert(worker < counter->workers);
    /* One writer per cell: a plain add, made visible to readers. */
    _Atomic uint64_t *cell = &counter->cells[worker].value;
    atomic_store_explicit(cell, atomic_load_explicit(cell, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

uint64_t counter_read(const struct counter *counter)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < counter->workers; i++)
        sum += atomic_load_explicit(&counter->cells[i].value, memory_order_relaxed);
    return sum;
}

void gauge_set(struct gauge *gauge, int64_t value)
{
    atomic_store_explicit(&gauge->value, value, memory_order_relaxed);
}

void gauge_add(struct gauge *gauge, int64_t delta)
{
    atomic_fetch_add_explicit(&gauge->value, delta, memory_order_relaxed);
}

int64_t gauge_read(const struct gauge *gauge)
{
    return atomic_load_explicit(&gauge->value, memory_order_relaxed);
}

static double load_double(const _Atomic uint64_t *cell)
{
    return as_double(atomic_load_explicit(cell, memory_order_relaxed));
}

static void store_double(_Atomic uint64_t *cell, double value)
{
    atomic_store_explicit(cell, as_bits(value), memory_order_relaxed);
}

void histogram_record(struct histogram *histogram, unsigned worker, double value)
{
    histogram_record_many(histogram, worker, value, 1);
}

void histogram_record_many(struct histogram *histogram, unsigned worker, double value,
                           uint64_t times)
{
    assert(worker < histogram->workers && times > 0);
    _Atomic uint64_t *cells = histogram->cells + worker * histogram->stride;
    size_t bucket = 0;
    while (bucket < histogram->bound_count && value > histogram->bounds[bucket])
        bucket++;
    uint64_t count = atomic_load_explicit(&cells[bucket], memory_order_relaxed);
    atomic_store_explicit(&cells[bucket], count + times, memory_order_relaxed);
    _Atomic uint64_t *after = cell_after_buckets(histogram, worker, CELL_SUM);
    store_double(&after[CELL_SUM], load_double(&after[CELL_SUM]) + value * (double)times);
    if (value < load_double(&after[CELL_LEAST]))
        store_double(&after[CELL_LEAST], value);
    if (value > load_double(&after[CELL_GREATEST]))
        store_double(&after[CELL_GREATEST], value);
}

uint64_t metrics_read_bucket(const struct histogram *histogram, size_t bucket)
{
    uint64_t count = 0;
    for (unsigned w = 0; w < histogram->workers; w++)
        count += atomic_load_explicit(&histogram->cells[w * histogram->stride + bucket],
                                      memory_order_relaxed);
    return count;
}

double metrics_read_sum(const struct histogram *histogram)
{
    double sum = 0;
    for (unsigned w = 0; w < histogram->workers; w++)
        sum += load_double(cell_after_buckets(histogram, w, CELL_SUM));
    return sum;
}

/* Reads the least and the greatest value; the first is above the second if there is none. */
static void read_range(const struct histogram *histogram, double *least_out, double *greatest_out)
{
    *least_out = INFINITY;
    *greatest_out = -INFINITY;
    for (unsigned w = 0; w < histogram->workers; w++) {
        *least_out = fmin(*least_out, load_double(cell_after_buckets(histogram, w, CELL_LEAST)));
        *greatest_out =
            fmax(*greatest_out, load_double(cell_after_buckets(histogram, w, CELL_GREATEST)));
    }
}

static double read_from(const struct value_from *from)
{
    double value = from->read(from->context);
    for (const struct value_from *older = from->older; from->is_summed && older;
         older = older->older)
        value += older->read(older->context);
    return value;
}

double metrics_series_value(const struct series *series, enum metric_kind kind)
{
    switch (kind) {
    case METRIC_COUNTER:
        return (double)counter_read(&series->counter);
    case METRIC_GAUGE:
        return (double)gauge_read(&series->gauge);
    case METRIC_GAUGE_FROM:
    case METRIC_COUNTER_FROM:
        return read_from(&series->from);
    case METRIC_HISTOGRAM:
        break;
    }
    return 0;
}

static void visit_histogram(struct metric_series *out, const struct histogram *histogram,
                            void (*visit)(void *context, const struct metric_series *series),
                            void *context)
{
    enum { BUCKETS_MAX = 64 };
    uint64_t buckets[BUCKETS_MAX];
    assert(histogram->bound_count < BUCKETS_MAX);
    for (size_t i = 0; i <= histogram->bound_count; i++) {
        buckets[i] = metrics_read_bucket(histogram, i);
        out->number += (int64_t)buckets[i];
    }
    out->real = metrics_read_sum(histogram);
    read_range(histogram, &out->least, &out->greatest);
    out->bounds = histogram->bounds;
    out->bound_count = histogram->bound_count;
    out->buckets = buckets;
    visit(context, out);
}

/* Seconds have fractions; all else is counted. */
static void visit_value(struct metric_series *out, const struct series *series,
                        enum metric_kind kind,
                        void (*visit)(void *context, const struct metric_series *series),
                        void *context)
{
    out->is_integer = !is_read_elsewhere(kind) || strcmp(metric_unit(out->name), "s") != 0;
    if (kind == METRIC_COUNTER)
        out->number = (int64_t)counter_read(&series->counter);
    else if (kind == METRIC_GAUGE)
        out->number = gauge_read(&series->gauge);
    else
        out->real = metrics_series_value(series, kind);
    if (is_read_elsewhere(kind) && out->is_integer)
        out->number = (int64_t)out->real;
    visit(context, out);
}

static void visit_family(const struct family *family,
                         void (*visit)(void *context, const struct metric_series *series),
                         void *context)
{
    static const enum metric_type types[] = {METRIC_TYPE_COUNTER, METRIC_TYPE_GAUGE,
                                             METRIC_TYPE_GAUGE, METRIC_TYPE_COUNTER,
                                             METRIC_TYPE_HISTOGRAM};
    for (const struct series *series = family->first; series; series = series->next) {
        struct metric_series out = {.name = family->name,
                                    .help = family->help,
                                    .labels = series->labels,
                                    .series = series->number,
                                    .type = types[family->kind],
                                    .is_observed = is_read_elsewhere(family->kind)};
        if (family->kind == METRIC_HISTOGRAM)
            visit_histogram(&out, &series->histogram, visit, context);
        else
            visit_value(&out, series, family->kind, visit, context);
    }
}

void metrics_visit(struct metrics *metrics,
                   void (*visit)(void *context, const struct metric_series *series), void *context)
{
    pthread_mutex_lock(&metrics->lock);
    for (size_t i = 0; i < metrics->count; i++)
        if (metric_level(metrics->families[i]->name) <= metrics_get_level(metrics))
            visit_family(metrics->families[i], visit, context);
    pthread_mutex_unlock(&metrics->lock);
}

void metrics_label(struct text *labels, const char *key, const char *value)
{
    text_printf(labels, "%s%s=\"", labels->size > 0 ? "," : "", key);
    for (const char *c = value; *c; c++) {
        if (*c == '\n')
            text_append(labels, "\\n");
        else if (*c == '"' || *c == '\\')
            text_printf(labels, "\\%c", *c);
        else
            text_append_char(labels, *c);
    }
    text_append_char(labels, '"');
}

double metrics_value(struct metrics *metrics, const char *name, const char *labels)
{
    double value = 0;
    size_t position;
    pthread_mutex_lock(&metrics->lock);
    struct family *family = find_family(metrics, name, &position);
    for (struct series *series = family ? family->first : NULL; series; series = series->next)
        if (strcmp(series->labels, labels) == 0)
            value = metrics_series_value(series, family->kind);
    pthread_mutex_unlock(&metrics->lock);
    return value;
}

/* Whether one of the labels is this one. A quote in a value is escaped, so none is found in
 * another's value. */
static bool has_label(const char *labels, const char *label)
{
    size_t size = strlen(label);
    for (const char *at = labels; size > 0 && (at = strstr(at, label)); at += size)
        if ((at == labels || at[-1] == ',') && (at[size] == '\0' || at[size] == ','))
            return true;
    return size == 0;
}

double metrics_sum(struct metrics *metrics, const char *name, const char *label)
{
    double sum = 0;
    size_t position;
    pthread_mutex_lock(&metrics->lock);
    struct family *family = find_family(metrics, name, &position);
    for (struct series *series = family ? family->first : NULL; series; series = series->next)
        if (has_label(series->labels, label))
            sum += metrics_series_value(series, family->kind);
    pthread_mutex_unlock(&metrics->lock);
    return sum;
}

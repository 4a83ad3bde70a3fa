#include "core/base/metrics_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append_number(struct text *out, double value)
{
    if (value == floor(value) && fabs(value) < 1e15)
        text_printf(out, "%.0f\n", value);
    else
        text_printf(out, "%.17g\n", value);
}

/* Appends the labels in braces. `last`: one more, or "". */
static void append_labels(struct text *out, const char *labels, const char *scope, const char *last)
{
    const char *const parts[] = {labels, scope, last};
    const char *before = "{";
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i][0]) {
            text_printf(out, "%s%s", before, parts[i]);
            before = ",";
        }
    if (before[0] == ',')
        text_append_char(out, '}');
    text_append_char(out, ' ');
}

static void append_sample(struct text *out, const char *name, const char *suffix,
                          const char *labels, const char *scope, double value)
{
    text_printf(out, "%s%s", name, suffix);
    append_labels(out, labels, scope, "");
    append_number(out, value);
}

/* As Go prints it (strconv.FormatFloat with 'g' and -1): the fewest digits that give the value
 * again, with an exponent from a million on, and below 1e-4. */
static void print_bound(double value, char *out, size_t size)
{
    char text[32];
    int digits = 0;
    do
        snprintf(text, sizeof text, "%.*e", digits++, value);
    while (digits < 17 && strtod(text, NULL) != value);
    int exponent = value != 0 ? (int)floor(log10(fabs(value))) : 0;
    if (exponent >= -4 && exponent < 6)
        snprintf(text, sizeof text, "%.*g", digits > 6 ? digits : 6, value);
    snprintf(out, size, "le=\"%s\"", text);
}

static void append_bucket(struct text *out, const char *name, const struct series *series,
                          const char *scope, size_t bucket, uint64_t count)
{
    const struct histogram *histogram = &series->histogram;
    char bound[40] = "le=\"+Inf\"";
    if (bucket < histogram->bound_count)
        print_bound(histogram->bounds[bucket], bound, sizeof bound);
    text_printf(out, "%s_bucket", name);
    append_labels(out, series->labels, scope, bound);
    append_number(out, (double)count);
}

static void append_histogram(struct text *out, const char *name, const struct series *series,
                             const char *scope)
{
    const struct histogram *histogram = &series->histogram;
    uint64_t running = 0;
    for (size_t bucket = 0; bucket <= histogram->bound_count; bucket++) {
        running += metrics_read_bucket(histogram, bucket);
        append_bucket(out, name, series, scope, bucket, running);
    }
    append_sample(out, name, "_sum", series->labels, scope, metrics_read_sum(histogram));
    append_sample(out, name, "_count", series->labels, scope, (double)running);
}

static bool ends_in(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* Appends the name of a family with what its readers expect at the end. */
static void append_name(struct text *out, const struct family *family, unsigned form)
{
    bool is_counter = family->kind == METRIC_COUNTER || family->kind == METRIC_COUNTER_FROM;
    text_append(out, family->name);
    if (!(form & METRICS_SUFFIXES))
        return;
    text_append(out, metric_unit_suffix(family->name));
    if (is_counter && !ends_in(family->name, "_total"))
        text_append(out, "_total");
}

static void append_scope(struct text *out, const struct family *family, unsigned form)
{
    const struct metric_scope *scope = metric_scope(family->name);
    if (!(form & METRICS_SCOPES) || !scope)
        return;
    metrics_label(out, "otel_scope_name", scope->name);
    metrics_label(out, "otel_scope_schema_url", scope->schema_url);
    metrics_label(out, "otel_scope_version", scope->version);
}

static void append_family(struct text *out, const struct family *family, unsigned form)
{
    static const char *const types[] = {"counter", "gauge", "gauge", "counter", "histogram"};
    struct text full_name = {0}, scope_labels = {0};
    append_name(&full_name, family, form);
    append_scope(&scope_labels, family, form);
    const char *name = text_string(&full_name), *scope = text_string(&scope_labels);
    text_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, family->help, name, types[family->kind]);
    for (const struct series *series = family->first; series; series = series->next) {
        if (family->kind == METRIC_HISTOGRAM)
            append_histogram(out, name, series, scope);
        else
            append_sample(out, name, "", series->labels, scope,
                          metrics_series_value(series, family->kind));
    }
    text_deinit(&full_name);
    text_deinit(&scope_labels);
}

void metrics_write(struct metrics *metrics, unsigned form, struct text *out)
{
    pthread_mutex_lock(&metrics->lock);
    for (size_t i = 0; i < metrics->count; i++) {
        const struct family *family = metrics->families[i];
        if (family->first && metric_level(family->name) <= metrics_get_level(metrics))
            append_family(out, family, form);
    }
    pthread_mutex_unlock(&metrics->lock);
}

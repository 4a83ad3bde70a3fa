#include "core/metrics_encode.h"

#include "core/data/otlp.h"

#include <assert.h>
#include <stdlib.h>

/* As the Collector 0.158 sends it. */
#define RESOURCE_SCHEMA "https://opentelemetry.io/schemas/1.40.0"

/* AggregationTemporality */
enum { TEMPORALITY_DELTA = 1, TEMPORALITY_CUMULATIVE = 2 };

/* A position in the request; messages that are open end before the next of their kind begins. */
struct encoding {
    struct wire_writer *out;
    uint64_t start_ns;
    uint64_t now_ns;
    struct metrics_delta *delta;      /* NULL: all is cumulative */
    const struct metric_scope *scope; /* of the open ScopeMetrics; NULL: none is open */
    size_t scope_begun;
    const char *metric; /* the name of the open one; NULL: none is open */
    size_t metric_begun;
    size_t data_begun;
};

static void write_string(struct wire_writer *out, uint32_t number, const char *text)
{
    wire_writer_bytes(out, number, slice_of_string(text));
}

/* Writes it even if it is 0: members of a oneof. */
static void write_fixed64(struct wire_writer *out, uint32_t number, uint64_t value)
{
    uint8_t *to = wire_writer_room(out, WIRE_HEADER_MAX);
    wire_writer_wrote(out, wire_write_fixed64(to, number, value));
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- attributes ---- */

static void write_value(struct wire_writer *out, enum metric_label_type type, const char *value)
{
    size_t begun = wire_writer_begin(out, KEY_VALUE_VALUE);
    if (type == METRIC_LABEL_INT)
        wire_writer_varint_set(out, ANY_VALUE_INT, strtoull(value, NULL, 10));
    else if (type == METRIC_LABEL_BOOL)
        wire_writer_varint_set(out, ANY_VALUE_BOOL, strcmp(value, "true") == 0);
    else
        write_string(out, ANY_VALUE_STRING, value);
    wire_writer_end(out, begun);
}

static void write_attribute(struct wire_writer *out, uint32_t number, const char *key,
                            enum metric_label_type type, const char *value)
{
    size_t begun = wire_writer_begin(out, number);
    write_string(out, KEY_VALUE_KEY, key);
    write_value(out, type, value);
    wire_writer_end(out, begun);
}

/* Takes the value of a label, up to its closing quote, without escapes. Returns what follows. */
static const char *take_value(const char *at, struct text *value)
{
    text_clear(value);
    for (; *at != '"'; at++) {
        assert(*at); /* metrics_label closes each value */
        if (*at == '\\' && at[1] == 'n')
            text_append_char(value, '\n');
        else if (*at == '\\')
            text_append_char(value, at[1]);
        else
            text_append_char(value, *at);
        at += *at == '\\';
    }
    return at + 1;
}

/* Writes labels, as metrics_label prints them, as attributes. */
static void write_labels(struct wire_writer *out, uint32_t number, const char *labels)
{
    struct text key = {0}, value = {0};
    for (const char *at = labels; *at; at += *at == ',') {
        const char *equals = strchr(at, '=');
        assert(equals && equals[1] == '"');
        text_clear(&key);
        text_append_slice(&key, slice_of(at, (size_t)(equals - at)));
        at = take_value(equals + 2, &value);
        enum metric_label_type type;
        const char *name = metric_otlp_label(text_string(&key), &type);
        write_attribute(out, number, name, type, text_string(&value));
    }
    text_deinit(&key);
    text_deinit(&value);
}

static void write_resource(struct wire_writer *out, const struct config_pairs *resource)
{
    size_t begun = wire_writer_begin(out, GROUP_RESOURCE);
    for (size_t i = 0; i < resource->count; i++)
        write_attribute(out, RESOURCE_ATTRIBUTES, resource->items[i].name, METRIC_LABEL_TEXT,
                        resource->items[i].value);
    wire_writer_end(out, begun);
}

/* ---- points ---- */

static bool is_delta(const struct encoding *at, const struct metric_series *series)
{
    return at->delta && metrics_delta_is_for(at->delta, series);
}

static uint64_t start_of(const struct encoding *at, const struct metric_series *series)
{
    return is_delta(at, series) ? metrics_delta_since(at->delta) : at->start_ns;
}

static void write_number_point(struct encoding *at, const struct metric_series *series)
{
    size_t begun = wire_writer_begin(at->out, METRIC_DATA_DATA_POINTS);
    wire_writer_fixed64(at->out, NUMBER_POINT_START_TIME_UNIX_NANO, start_of(at, series));
    wire_writer_fixed64(at->out, NUMBER_POINT_TIME_UNIX_NANO, at->now_ns);
    if (series->is_integer)
        write_fixed64(at->out, NUMBER_POINT_AS_INT, (uint64_t)series->number);
    else
        write_fixed64(at->out, NUMBER_POINT_AS_DOUBLE, bits_of(series->real));
    write_labels(at->out, NUMBER_POINT_ATTRIBUTES, series->labels);
    wire_writer_end(at->out, begun);
}

static void write_packed(struct wire_writer *out, uint32_t number, const void *values, size_t count)
{
    wire_writer_bytes(out, number, slice_of(values, count * sizeof(uint64_t)));
}

static void write_histogram_point(struct encoding *at, const struct metric_series *series)
{
    size_t begun = wire_writer_begin(at->out, METRIC_DATA_DATA_POINTS);
    wire_writer_fixed64(at->out, HISTOGRAM_POINT_START_TIME_UNIX_NANO, start_of(at, series));
    wire_writer_fixed64(at->out, HISTOGRAM_POINT_TIME_UNIX_NANO, at->now_ns);
    wire_writer_fixed64(at->out, HISTOGRAM_POINT_COUNT, (uint64_t)series->number);
    write_fixed64(at->out, HISTOGRAM_POINT_SUM, bits_of(series->real));
    write_packed(at->out, HISTOGRAM_POINT_BUCKET_COUNTS, series->buckets, series->bound_count + 1);
    write_packed(at->out, HISTOGRAM_POINT_EXPLICIT_BOUNDS, series->bounds, series->bound_count);
    write_labels(at->out, HISTOGRAM_POINT_ATTRIBUTES, series->labels);
    if (series->least <= series->greatest) {
        write_fixed64(at->out, HISTOGRAM_POINT_MIN, bits_of(series->least));
        write_fixed64(at->out, HISTOGRAM_POINT_MAX, bits_of(series->greatest));
    }
    wire_writer_end(at->out, begun);
}

/* ---- metrics and scopes ---- */

static void end_metric(struct encoding *at)
{
    if (!at->metric)
        return;
    wire_writer_end(at->out, at->data_begun);
    wire_writer_end(at->out, at->metric_begun);
    at->metric = NULL;
}

static void end_scope(struct encoding *at)
{
    end_metric(at);
    if (!at->scope)
        return;
    write_string(at->out, GROUP_SCHEMA_URL, at->scope->schema_url);
    wire_writer_end(at->out, at->scope_begun);
    at->scope = NULL;
}

static void begin_scope(struct encoding *at, const struct metric_scope *scope)
{
    if (at->scope && strcmp(at->scope->name, scope->name) == 0)
        return;
    end_scope(at);
    at->scope = scope;
    at->scope_begun = wire_writer_begin(at->out, GROUP_SCOPES);
    size_t begun = wire_writer_begin(at->out, SCOPE_SPANS_SCOPE);
    write_string(at->out, SCOPE_NAME, scope->name);
    write_string(at->out, SCOPE_VERSION, scope->version);
    wire_writer_end(at->out, begun);
}

static uint32_t data_of(const struct metric_series *series)
{
    if (series->type == METRIC_TYPE_HISTOGRAM)
        return METRIC_HISTOGRAM;
    bool is_sum = series->type == METRIC_TYPE_COUNTER || metric_is_up_down(series->name);
    return is_sum ? METRIC_SUM : METRIC_GAUGE;
}

static void begin_metric(struct encoding *at, const struct metric_series *series)
{
    uint32_t data = data_of(series);
    end_metric(at);
    at->metric = series->name;
    at->metric_begun = wire_writer_begin(at->out, SCOPE_ITEMS);
    write_string(at->out, METRIC_NAME, metric_otlp_name(series->name));
    write_string(at->out, METRIC_DESCRIPTION, series->help);
    write_string(at->out, METRIC_UNIT, metric_unit(series->name));
    at->data_begun = wire_writer_begin(at->out, data);
    if (data != METRIC_GAUGE)
        wire_writer_varint(at->out, METRIC_DATA_AGGREGATION_TEMPORALITY,
                           is_delta(at, series) ? TEMPORALITY_DELTA : TEMPORALITY_CUMULATIVE);
    if (data == METRIC_SUM)
        wire_writer_varint(at->out, SUM_IS_MONOTONIC, series->type == METRIC_TYPE_COUNTER);
}

static void write_series(struct encoding *at, const struct metric_series *series)
{
    begin_scope(at, metric_scope(series->name));
    if (!at->metric || strcmp(at->metric, series->name) != 0)
        begin_metric(at, series);
    if (series->type == METRIC_TYPE_HISTOGRAM)
        write_histogram_point(at, series);
    else
        write_number_point(at, series);
}

static void on_series(void *context, const struct metric_series *series)
{
    struct encoding *at = context;
    struct metric_series difference;
    if (!metric_scope(series->name))
        return; /* target_info is the resource */
    if (!is_delta(at, series))
        write_series(at, series);
    else if (metrics_delta_take(at->delta, series, &difference))
        write_series(at, &difference);
}

void metrics_encode(struct metrics *metrics, const struct config_pairs *resource, uint64_t start_ns,
                    uint64_t now_ns, struct metrics_delta *delta, struct wire_writer *out)
{
    assert(start_ns <= now_ns && (!delta || metrics_delta_since(delta) <= now_ns));
    struct encoding at = {.out = out, .start_ns = start_ns, .now_ns = now_ns, .delta = delta};
    size_t begun = wire_writer_begin(out, REQUEST_GROUPS);
    write_resource(out, resource);
    metrics_visit(metrics, on_series, &at);
    end_scope(&at);
    write_string(out, GROUP_SCHEMA_URL, RESOURCE_SCHEMA);
    wire_writer_end(out, begun);
}

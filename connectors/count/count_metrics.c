#include "connectors/count/count_metrics.h"

#include "core/base/clock.h"
#include "core/data/any_value.h"
#include "core/data/wire_writer.h"

#include <assert.h>

/* The name under which the Collector's connector emits its metrics. */
#define SCOPE "github.com/open-telemetry/opentelemetry-collector-contrib/connector/countconnector"

/* The attribute of OpenTelemetry's metrics SDKs for data points beyond a limit. */
#define OVERFLOW_KEY "otel.metric.overflow"

enum { AGGREGATION_TEMPORALITY_DELTA = 1 };

/* ---- data points ---- */

static void write_attribute(struct wire_writer *out, struct slice key, struct slice value)
{
    size_t attribute = wire_writer_begin(out, NUMBER_POINT_ATTRIBUTES);
    wire_writer_bytes(out, KEY_VALUE_KEY, key);
    wire_writer_bytes(out, KEY_VALUE_VALUE, value);
    wire_writer_end(out, attribute);
}

static void write_count(struct wire_writer *out, const struct time_range *times, uint64_t count)
{
    assert(count > 0);
    wire_writer_fixed64(out, NUMBER_POINT_START_TIME_UNIX_NANO, times->first);
    wire_writer_fixed64(out, NUMBER_POINT_TIME_UNIX_NANO, times->last);
    wire_writer_fixed64(out, NUMBER_POINT_AS_INT, count);
}

static void write_set(const struct count_table *table, const struct count_metric *metric,
                      const struct count_set *set, const struct time_range *times,
                      struct wire_writer *out)
{
    const struct count_attribute *attributes = count_attributes_of(metric);
    size_t point = wire_writer_begin(out, METRIC_DATA_DATA_POINTS);
    write_count(out, times, set->count);
    for (size_t i = 0; i < metric->attributes.count; i++)
        write_attribute(out, slice_of_string(attributes[i].key), count_set_value(table, set, i));
    wire_writer_end(out, point);
}

static void write_overflow(uint64_t count, const struct time_range *times, struct wire_writer *out)
{
    static const uint8_t is_true[] = {ANY_VALUE_BOOL << 3 | WIRE_VARINT, 1};
    size_t point = wire_writer_begin(out, METRIC_DATA_DATA_POINTS);
    write_count(out, times, count);
    write_attribute(out, SLICE(OVERFLOW_KEY), slice_of(is_true, sizeof is_true));
    wire_writer_end(out, point);
}

static void write_points(const struct count_table *table, const struct count_metric *metric,
                         const struct tally *tally, const struct time_range *times,
                         struct wire_writer *out)
{
    if (tally->plain > 0) {
        size_t point = wire_writer_begin(out, METRIC_DATA_DATA_POINTS);
        write_count(out, times, tally->plain);
        wire_writer_end(out, point);
    }
    for (uint32_t set = tally->first_set; set != NO_SET; set = table->sets[set].next)
        write_set(table, metric, &table->sets[set], times, out);
    if (tally->overflow > 0)
        write_overflow(tally->overflow, times, out);
}

/* ---- metrics ---- */

static uint32_t count_points(const struct tally *tally)
{
    return (tally->plain > 0) + tally->set_count + (tally->overflow > 0);
}

static void write_text(struct wire_writer *out, uint32_t number, const char *text)
{
    if (text && *text)
        wire_writer_bytes(out, number, slice_of_string(text));
}

static void write_metric(const struct count_table *table, const struct count_metric *metric,
                         const struct tally *tally, const struct time_range *times,
                         struct wire_writer *out)
{
    size_t written = wire_writer_begin(out, SCOPE_ITEMS);
    write_text(out, METRIC_NAME, metric->name);
    write_text(out, METRIC_DESCRIPTION, metric->description);
    size_t sum = wire_writer_begin(out, METRIC_SUM);
    write_points(table, metric, tally, times, out);
    wire_writer_varint(out, METRIC_DATA_AGGREGATION_TEMPORALITY, AGGREGATION_TEMPORALITY_DELTA);
    wire_writer_varint(out, SUM_IS_MONOTONIC, true);
    wire_writer_end(out, sum);
    wire_writer_end(out, written);
}

static uint32_t write_kind(const struct count_table *table, enum counted kind,
                           struct time_range times, struct wire_writer *out)
{
    const struct count_metric *metrics = count_metrics_of(table->settings, kind);
    uint32_t points = 0;
    if (times.first == 0)
        times.first = times.last = clock_wall_ns();
    for (size_t i = 0; i < table->settings->sections[kind]->count; i++) {
        const struct tally *tally = &table->tallies[kind][i];
        uint32_t more = count_points(tally);
        if (more > 0)
            write_metric(table, &metrics[i], tally, &times, out);
        points += more;
    }
    return points;
}

/* ---- the resource ---- */

static bool has_counts(const struct count_table *table)
{
    for (int kind = COUNTED_NOTHING + 1; kind < COUNTED_KINDS; kind++)
        for (size_t i = 0; table->tallies[kind] && i < table->settings->sections[kind]->count; i++)
            if (count_points(&table->tallies[kind][i]) > 0)
                return true;
    return false;
}

static void write_resource(struct message_iter resource, struct wire_writer *out)
{
    struct message_field attribute;
    size_t written = wire_writer_begin(out, GROUP_RESOURCE);
    while (message_next_bytes(&resource, RESOURCE_ATTRIBUTES, &attribute))
        wire_writer_bytes(out, RESOURCE_ATTRIBUTES, attribute.wire.bytes);
    wire_writer_end(out, written);
}

static void write_scope(struct wire_writer *out)
{
    size_t scope = wire_writer_begin(out, SCOPE_SPANS_SCOPE);
    wire_writer_bytes(out, SCOPE_NAME, SLICE(SCOPE));
    wire_writer_end(out, scope);
}

uint32_t count_metrics_write(const struct count_table *table, const struct time_range *times,
                             struct message_iter resource, struct wire_writer *out)
{
    uint32_t points = 0;
    if (!has_counts(table))
        return 0;
    size_t group = wire_writer_begin(out, REQUEST_GROUPS);
    write_resource(resource, out);
    size_t scopes = wire_writer_begin(out, GROUP_SCOPES);
    write_scope(out);
    for (int kind = COUNTED_NOTHING + 1; kind < COUNTED_KINDS; kind++)
        if (table->tallies[kind])
            points += write_kind(table, (enum counted)kind, times[kind], out);
    wire_writer_end(out, scopes);
    wire_writer_end(out, group);
    return points;
}

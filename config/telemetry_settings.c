#include "config/decode.h"

#include "config/node.h"
#include "config/service.h"
#include "config/telemetry_resource.h"
#include "core/base/log.h"
#include "core/base/metrics.h"

#include <assert.h>

/*
 * service::telemetry. profcol uses the level and the encoding of the log, the level of the metrics,
 * and the address of the first pull reader. It accepts the Collector's other keys, so that files of
 * the Collector can be used unchanged.
 */
struct log_sampling_settings {
    bool enabled;
    uint64_t initial;
    uint64_t thereafter;
    int64_t tick;
};

struct log_settings {
    int level;
    int encoding;
    struct log_sampling_settings sampling;
    struct config_strings output_paths;
    struct config_strings error_output_paths;
    bool development;
    bool disable_caller;
    bool disable_stacktrace;
    bool disable_zap_resource;
    const struct config_node *initial_fields;
    const struct config_node *processors;
};

struct prometheus_settings {
    bool enabled;
    const char *host;
    uint64_t port;
    bool without_units;
    bool without_type_suffix;
    bool without_scope_info;
    const struct config_node *with_resource_constant_labels;
};

struct pull_exporter_settings {
    struct prometheus_settings prometheus;
};

struct pull_settings {
    bool enabled;
    struct pull_exporter_settings exporter;
};

struct reader_settings {
    struct pull_settings pull;
    const struct config_node *periodic;
};

struct metrics_settings {
    int level;
    struct config_list readers;
    const struct config_node *views;
};

struct trace_settings {
    int level;
    const struct config_node *processors;
    struct config_strings propagators;
    const struct config_node *sampler;
};

struct telemetry_settings {
    struct log_settings logs;
    struct metrics_settings metrics;
    struct trace_settings traces;
    const struct config_node *resource;
};

/* in the order of enum log_level, enum log_encoding */
static const char *const log_levels[] = {"debug", "info", "warn", "error", NULL};
static const char *const log_encodings[] = {"console", "json", NULL};
/* in the order of enum metrics_level */
static const char *const metrics_levels[] = {"none", "basic", "normal", "detailed", NULL};

static const struct field log_sampling_fields[] = {
    FIELD_BOOL(log_sampling_settings, enabled, "Whether repeated messages are left out.",
               .fallback = "true", .ignored = true),
    FIELD_UINT(log_sampling_settings, initial,
               "Messages with the same text that are logged per tick before any are left out.",
               .fallback = "10", .ignored = true),
    FIELD_UINT(log_sampling_settings, thereafter, "After those, every n-th message is logged.",
               .fallback = "100", .ignored = true),
    FIELD_DURATION(log_sampling_settings, tick, "The time over which messages are counted.",
                   .fallback = "10s", .ignored = true),
    FIELD_END,
};

static const struct field log_fields[] = {
    FIELD_ENUM(log_settings, level, "The least severe messages that are written.", log_levels,
               .fallback = "info"),
    FIELD_ENUM(log_settings, encoding, "Console is for people; json writes one object per line.",
               log_encodings, .fallback = "console"),
    FIELD_BLOCK(log_settings, sampling, log_sampling_settings, log_sampling_fields,
                "How often a repeated message is written."),
    FIELD_STRINGS(log_settings, output_paths, "Where the log goes; profcol writes to stderr.",
                  .fallback = "stderr", .ignored = true),
    FIELD_STRINGS(log_settings, error_output_paths, "Where the logger's own errors go.",
                  .fallback = "stderr", .ignored = true),
    FIELD_BOOL(log_settings, development, "Changes what the Collector's logger does.",
               .fallback = "false", .ignored = true),
    FIELD_BOOL(log_settings, disable_caller, "Leaves the source location out of messages.",
               .fallback = "false", .ignored = true),
    FIELD_BOOL(log_settings, disable_stacktrace, "Leaves stack traces out of messages.",
               .fallback = "false", .ignored = true),
    FIELD_BOOL(log_settings, disable_zap_resource, "Leaves the resource out of messages.",
               .fallback = "false", .ignored = true),
    FIELD_NODE(log_settings, initial_fields, "Fields that every message gets.", .ignored = true),
    FIELD_NODE(log_settings, processors, "Where the log is sent as OTLP.", .ignored = true),
    FIELD_END,
};

static const struct field prometheus_fields[] = {
    FIELD_STRING(prometheus_settings, host, "The address that the metrics are served on.",
                 .fallback = "localhost"),
    FIELD_UINT(prometheus_settings, port, "The port that the metrics are served on.",
               .fallback = "8888", .min = "0", .max = "65535"),
    FIELD_BOOL(prometheus_settings, without_units,
               "Leaves units out of the names of metrics. If this or `without_type_suffix` is "
               "false, names have both.",
               .fallback = "true"),
    FIELD_BOOL(prometheus_settings, without_type_suffix,
               "Leaves _total out of the names of counters.", .fallback = "true"),
    FIELD_BOOL(prometheus_settings, without_scope_info, "Leaves the otel_scope labels out.",
               .fallback = "true"),
    FIELD_NODE(prometheus_settings, with_resource_constant_labels,
               "Resource attributes that become labels of every metric.", .ignored = true),
    FIELD_END,
};

static const struct field pull_exporter_fields[] = {
    FIELD_OPTIONAL(pull_exporter_settings, prometheus, prometheus_settings, prometheus_fields,
                   "Metrics in the text format of Prometheus, at /metrics."),
    FIELD_END,
};

static const struct field pull_fields[] = {
    FIELD_BLOCK(pull_settings, exporter, pull_exporter_settings, pull_exporter_fields,
                "The format that is served."),
    FIELD_END,
};

static const struct field reader_fields[] = {
    FIELD_OPTIONAL(reader_settings, pull, pull_settings, pull_fields, "Metrics that are scraped."),
    FIELD_NODE(reader_settings, periodic, "Metrics that are pushed; profcol does not push any.",
               .ignored = true),
    FIELD_END,
};

static const struct field metrics_fields[] = {
    FIELD_ENUM(metrics_settings, level, "How many metrics there are; none: no metrics are served.",
               metrics_levels, .fallback = "normal"),
    FIELD_LIST(metrics_settings, readers, reader_settings, reader_fields,
               "How metrics can be read; default: one pull reader on localhost:8888."),
    FIELD_NODE(metrics_settings, views, "Changes of individual metrics.", .ignored = true),
    FIELD_END,
};

static const char *const trace_levels[] = {"none", "basic", "normal", "detailed", NULL};

static const struct field trace_fields[] = {
    FIELD_ENUM(trace_settings, level, "How much the process traces itself.", trace_levels,
               .fallback = "none", .ignored = true),
    FIELD_NODE(trace_settings, processors, "Where the process sends its own traces.",
               .ignored = true),
    FIELD_STRINGS(trace_settings, propagators,
                  "How trace contexts are propagated between processes.", .ignored = true),
    FIELD_NODE(trace_settings, sampler, "Which of its own traces the process keeps.",
               .ignored = true),
    FIELD_END,
};

const struct field config_telemetry_fields[] = {
    FIELD_BLOCK(telemetry_settings, logs, log_settings, log_fields,
                "The log, which profcol writes to stderr."),
    FIELD_BLOCK(telemetry_settings, metrics, metrics_settings, metrics_fields,
                "Metrics about profcol itself."),
    FIELD_BLOCK(telemetry_settings, traces, trace_settings, trace_fields,
                "Traces of the process itself; profcol writes none."),
    FIELD_NODE(telemetry_settings, resource,
               "Attributes of the process itself, labels of the metric `target_info`: a map of "
               "texts (null removes a default), or `attributes`, a list of {name, value}. "
               "service.name, service.version and service.instance.id are set by default."),
    FIELD_END,
};

const size_t config_telemetry_size = sizeof(struct telemetry_settings);

/* Returns the first reader that is a Prometheus endpoint; NULL if there is none. */
static const struct prometheus_settings *first_endpoint(const struct metrics_settings *metrics)
{
    const struct reader_settings *readers = metrics->readers.items;
    for (size_t i = 0; i < metrics->readers.count; i++)
        if (readers[i].pull.enabled && readers[i].pull.exporter.prometheus.enabled)
            return &readers[i].pull.exporter.prometheus;
    return NULL;
}

/* Adds the reader that the Collector has by default. */
static void add_default_reader(struct arena *arena, struct metrics_settings *metrics)
{
    struct reader_settings *reader = arena_zalloc(arena, sizeof *reader);
    config_decode_defaults(arena, reader_fields, reader);
    struct prometheus_settings *prometheus = &reader->pull.exporter.prometheus;
    reader->pull.enabled = true;
    prometheus->enabled = true;
    metrics->readers = (struct config_list){reader, 1};
}

static bool has_readers(const struct config_node *telemetry)
{
    const struct config_node *metrics = config_node_get(telemetry, "metrics");
    return config_node_kind(config_node_get(metrics, "readers")) != CONFIG_NODE_NULL;
}

void config_telemetry_apply(struct config_check *check, const struct config_path *path,
                            const struct config_node *key, const struct config_node *node)
{
    struct telemetry_settings *settings = arena_zalloc(check->arena, sizeof *settings);
    config_decode_block(check, path, key, node, config_telemetry_fields, settings);
    if (!has_readers(node))
        add_default_reader(check->arena, &settings->metrics);
    const struct prometheus_settings *endpoint = first_endpoint(&settings->metrics);
    struct config_telemetry *telemetry = &check->config->telemetry;
    struct config_path inner = {.parent = path, .name = "resource"};
    config_telemetry_resource_read(check, &inner, settings->resource, &telemetry->resource);
    telemetry->settings = settings;
    telemetry->log_level = settings->logs.level;
    telemetry->log_encoding = settings->logs.encoding;
    telemetry->metrics_level = settings->metrics.level;
    telemetry->metrics_enabled = endpoint && settings->metrics.level != METRICS_NONE;
    if (!endpoint)
        return;
    assert(endpoint->port <= UINT16_MAX); /* bound in the table of fields */
    telemetry->metrics_host = endpoint->host;
    telemetry->metrics_port = endpoint->port;
    telemetry->metrics_without_units = endpoint->without_units;
    telemetry->metrics_without_type_suffix = endpoint->without_type_suffix;
    telemetry->metrics_without_scope_info = endpoint->without_scope_info;
}

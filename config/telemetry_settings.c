#include "config/decode.h"

#include "config/node.h"
#include "config/service.h"
#include "config/telemetry_logs.h"
#include "config/telemetry_resource.h"
#include "core/base/metrics.h"

#include <assert.h>

/*
 * service::telemetry. profcol uses the settings of the log, the level of the metrics, the address
 * of the first pull reader, and all periodic readers. It accepts the Collector's other keys, so
 * that files of the Collector can be used unchanged.
 */
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

struct push_otlp_settings {
    bool enabled;
    int protocol;
    const char *endpoint;
    struct config_pairs headers;
    const char *headers_list;
    int compression;
    uint64_t timeout;
    bool insecure;
    const char *certificate;
    const char *client_certificate;
    const char *client_key;
    int temporality_preference;
    const char *default_histogram_aggregation;
};

struct push_exporter_settings {
    struct push_otlp_settings otlp;
    const struct config_node *console;
};

struct periodic_settings {
    bool enabled;
    uint64_t interval;
    uint64_t timeout;
    struct push_exporter_settings exporter;
};

struct reader_settings {
    struct pull_settings pull;
    struct periodic_settings periodic;
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

/* in the order of enum metrics_level */
static const char *const metrics_levels[] = {"none", "basic", "normal", "detailed", NULL};

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

/* PUSH_GRPC, PUSH_HTTP */
static const char *const push_protocols[] = {"grpc", "http/protobuf", NULL};
enum { PUSH_GRPC, PUSH_HTTP };
static const char *const push_compressions[] = {"none", "gzip", NULL};
enum { PUSH_GZIP = 1 };
/* in the order of enum push_temporality */
static const char *const temporalities[] = {"cumulative", "delta", "lowmemory", NULL};

static const struct field push_otlp_fields[] = {
    FIELD_ENUM(push_otlp_settings, protocol, "How requests are sent.", push_protocols,
               .required = true),
    FIELD_STRING(
        push_otlp_settings, endpoint,
        "Where metrics are sent. With http/protobuf the whole URL; /v1/metrics is the path "
        "if it has none. https unless the scheme is http. Default: localhost, port 4317 "
        "or 4318."),
    FIELD_PAIRS(push_otlp_settings, headers, "Headers added to every request."),
    FIELD_SECRET(push_otlp_settings, headers_list,
                 "More headers, as in OTEL_EXPORTER_OTLP_HEADERS: `a=b,c=d`."),
    FIELD_ENUM(push_otlp_settings, compression, "How requests are compressed.", push_compressions,
               .fallback = "none"),
    FIELD_UINT(push_otlp_settings, timeout,
               "Time limit of a request in milliseconds; 0: the default.", .fallback = "10000",
               .max = "3600000"),
    FIELD_BOOL(push_otlp_settings, insecure,
               "With grpc and an endpoint without scheme: do not use TLS.", .fallback = "false"),
    FIELD_STRING(push_otlp_settings, certificate,
                 "File with the certificates of the authorities that are trusted."),
    FIELD_STRING(push_otlp_settings, client_certificate, "File with the client's certificate."),
    FIELD_STRING(push_otlp_settings, client_key, "File with its key."),
    FIELD_ENUM(push_otlp_settings, temporality_preference,
               "What counters and histograms count from: cumulative: the start; delta: the last "
               "push; lowmemory: as delta, but counters of the process itself from the start.",
               temporalities, .fallback = "cumulative"),
    FIELD_STRING(push_otlp_settings, default_histogram_aggregation,
                 "How histograms are kept; profcol has explicit buckets.", .ignored = true),
    FIELD_END,
};

static const struct field push_exporter_fields[] = {
    FIELD_OPTIONAL(push_exporter_settings, otlp, push_otlp_settings, push_otlp_fields,
                   "Metrics as OTLP."),
    FIELD_NODE(push_exporter_settings, console, "Metrics on standard output.", .ignored = true),
    FIELD_END,
};

static const struct field periodic_fields[] = {
    FIELD_UINT(periodic_settings, interval,
               "Milliseconds from one push to the next; 0: the default.", .fallback = "60000",
               .max = "86400000"),
    FIELD_UINT(periodic_settings, timeout,
               "Time limit of a push in milliseconds; 0: the default. The shorter of this and that "
               "of the exporter counts.",
               .fallback = "30000", .max = "3600000"),
    FIELD_BLOCK(periodic_settings, exporter, push_exporter_settings, push_exporter_fields,
                "Where metrics are sent."),
    FIELD_END,
};

static const struct field reader_fields[] = {
    FIELD_OPTIONAL(reader_settings, pull, pull_settings, pull_fields, "Metrics that are scraped."),
    FIELD_OPTIONAL(reader_settings, periodic, periodic_settings, periodic_fields,
                   "Metrics that are pushed, and once more when profcol ends."),
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
    FIELD_ENUM(trace_settings, level,
               "How much the process traces itself; it has an effect only with `processors`.",
               trace_levels, .fallback = "basic"),
    FIELD_NODE(trace_settings, processors,
               "Where the process sends its own traces: must be empty, unless the level is none."),
    FIELD_STRINGS(trace_settings, propagators,
                  "How trace contexts are propagated between processes.", .ignored = true),
    FIELD_NODE(trace_settings, sampler, "Which of its own traces the process keeps.",
               .ignored = true),
    FIELD_END,
};

const struct field config_telemetry_fields[] = {
    FIELD_BLOCK(telemetry_settings, logs, log_settings, config_telemetry_logs_fields,
                "The log of the process itself."),
    FIELD_BLOCK(telemetry_settings, metrics, metrics_settings, metrics_fields,
                "Metrics about profcol itself."),
    FIELD_BLOCK(telemetry_settings, traces, trace_settings, trace_fields,
                "Traces of the process itself, which profcol does not have."),
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

static int64_t milliseconds_or(uint64_t milliseconds, uint64_t otherwise)
{
    return (int64_t)(milliseconds ? milliseconds : otherwise) * 1000000;
}

/* Keeps the members that profcol uses, with the Collector's defaults. */
static struct config_push make_push(const struct periodic_settings *periodic)
{
    enum { INTERVAL_MS = 60000, TIMEOUT_MS = 30000, REQUEST_TIMEOUT_MS = 10000 };
    const struct push_otlp_settings *otlp = &periodic->exporter.otlp;
    int64_t timeout = milliseconds_or(periodic->timeout, TIMEOUT_MS);
    int64_t request = milliseconds_or(otlp->timeout, REQUEST_TIMEOUT_MS);
    return (struct config_push){
        .uses_grpc = otlp->protocol == PUSH_GRPC,
        .uses_gzip = otlp->compression == PUSH_GZIP,
        .temporality = (enum push_temporality)otlp->temporality_preference,
        .endpoint = otlp->endpoint && otlp->endpoint[0] ? otlp->endpoint : NULL,
        .headers = otlp->headers,
        .headers_list = otlp->headers_list,
        .interval_ns = milliseconds_or(periodic->interval, INTERVAL_MS),
        .timeout_ns = request < timeout ? request : timeout,
        .insecure = otlp->insecure,
        .certificate = otlp->certificate,
        .client_certificate = otlp->client_certificate,
        .client_key = otlp->client_key,
    };
}

/* Returns whether the reader is valid, after reporting an error at `node`. */
static bool check_periodic(struct config_check *check, const struct config_path *path,
                           const struct config_node *node, const struct periodic_settings *periodic)
{
    const struct push_exporter_settings *exporter = &periodic->exporter;
    bool has_console = config_node_kind(exporter->console) != CONFIG_NODE_NULL;
    if (!exporter->otlp.enabled && !has_console)
        return config_error_at(check, node->place, path, "the exporter otlp must be specified");
    return exporter->otlp.enabled;
}

/* Adds the periodic readers. */
static void add_pushes(struct config_check *check, const struct config_path *path,
                       const struct config_node *node, const struct metrics_settings *metrics)
{
    struct config_telemetry *telemetry = &check->config->telemetry;
    const struct reader_settings *readers = metrics->readers.items;
    const struct config_node *list = config_node_get(config_node_get(node, "metrics"), "readers");
    struct config_push *pushes =
        arena_array(check->arena, metrics->readers.count + 1, sizeof *pushes);
    telemetry->pushes = pushes;
    for (size_t i = 0; i < metrics->readers.count; i++) {
        const struct periodic_settings *periodic = &readers[i].periodic;
        if (!periodic->enabled)
            continue;
        const struct config_node *reader = config_node_at(list, i);
        struct config_path inner = {.parent = path, .name = "metrics::readers::periodic"};
        if (check_periodic(check, &inner, reader, periodic) && metrics->level != METRICS_NONE)
            pushes[telemetry->push_count++] = make_push(periodic);
    }
}

/* profcol has no spans of itself. Without processors, the Collector has none either. */
static void refuse_traces(struct config_check *check, const struct config_path *path,
                          const struct trace_settings *traces)
{
    enum { TRACES_NONE };
    struct config_path inner = {.parent = path, .name = "traces::processors"};
    if (traces->level != TRACES_NONE && config_node_count(traces->processors) > 0)
        config_error_at(check, traces->processors->place, &inner,
                        "profcol does not trace itself: remove the processors, or set "
                        "traces::level to none; docs/metrics.md says what metrics show instead");
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
    inner.name = "logs";
    config_telemetry_logs_read(check, &inner, config_node_get(node, "logs"), &settings->logs,
                               &telemetry->log);
    telemetry->metrics_level = settings->metrics.level;
    add_pushes(check, path, node, &settings->metrics);
    refuse_traces(check, path, &settings->traces);
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

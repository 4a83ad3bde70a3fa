#include "core/base/metric_names.h"

#include <string.h>

/* Of the libraries that measure requests in the Collector 0.158. Its own scopes have neither. */
#define OTEL_HTTP_VERSION "0.69.0"
#define OTEL_GRPC_VERSION "0.69.0"
#define OTEL_GRPC_SCHEMA "https://opentelemetry.io/schemas/1.41.0"

/* The first prefix that fits decides. Names with another prefix are profcol's own. */
static const struct {
    const char *prefix;
    struct metric_scope scope;
    enum metrics_level level;
} groups[] = {
    {"target_info", {NULL, "", ""}, METRICS_BASIC},
    {"otelcol_processor_batch_batch_send_size_bytes",
     {"go.opentelemetry.io/collector/processor/batchprocessor", "", ""},
     METRICS_DETAILED},
    {"otelcol_processor_batch_",
     {"go.opentelemetry.io/collector/processor/batchprocessor", "", ""},
     METRICS_NORMAL},
    {"otelcol_processor_internal_duration",
     {"go.opentelemetry.io/collector/processor/processorhelper", "", ""},
     METRICS_DETAILED},
    {"otelcol_processor_memory_limiter_",
     {"go.opentelemetry.io/collector/processor/memorylimiterprocessor", "", ""},
     METRICS_BASIC},
    {"otelcol_processor_probabilistic_sampler_",
     {"github.com/open-telemetry/opentelemetry-collector-contrib/processor/"
      "probabilisticsamplerprocessor",
      "", ""},
     METRICS_BASIC},
    {"otelcol_processor_tail_sampling_",
     {"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor",
      "", ""},
     METRICS_BASIC},
    {"otelcol_processor_",
     {"go.opentelemetry.io/collector/processor/processorhelper", "", ""},
     METRICS_BASIC},
    {"otelcol_receiver_",
     {"go.opentelemetry.io/collector/receiver/receiverhelper", "", ""},
     METRICS_BASIC},
    {"otelcol_exporter_queue_batch_",
     {"go.opentelemetry.io/collector/exporter/exporterhelper", "", ""},
     METRICS_DETAILED},
    {"otelcol_exporter_",
     {"go.opentelemetry.io/collector/exporter/exporterhelper", "", ""},
     METRICS_BASIC},
    {"otelcol_process_", {"go.opentelemetry.io/collector/service", "", ""}, METRICS_BASIC},
    {"http_",
     {"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp", OTEL_HTTP_VERSION, ""},
     METRICS_DETAILED},
    {"rpc_",
     {"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc",
      OTEL_GRPC_VERSION, OTEL_GRPC_SCHEMA},
     METRICS_DETAILED},
    {"", {"profcol", "", ""}, METRICS_BASIC},
};

/* What names do not say. suffix: the unit at the end of the name, if that is asked for. */
static const struct {
    const char *name;
    const char *otlp_name; /* NULL: the same */
    const char *unit;
    const char *suffix; /* NULL: none */
} named[] = {
    {"http_client_request_body_size", "http.client.request.body.size", "By", "_bytes"},
    {"http_client_request_duration", "http.client.request.duration", "s", "_seconds"},
    {"http_server_request_body_size", "http.server.request.body.size", "By", "_bytes"},
    {"http_server_request_duration", "http.server.request.duration", "s", "_seconds"},
    {"http_server_response_body_size", "http.server.response.body.size", "By", "_bytes"},
    {"otelcol_exporter_in_flight_requests", NULL, "{request}", NULL},
    {"otelcol_exporter_queue_batch_send_size", NULL, "{unit}", NULL},
    {"otelcol_exporter_queue_capacity", NULL, "{batch}", NULL},
    {"otelcol_exporter_queue_size", NULL, "{batch}", NULL},
    {"otelcol_process_memory_rss", NULL, "By", "_bytes"},
    {"otelcol_process_uptime", NULL, "s", "_seconds"},
    {"otelcol_processor_batch_batch_send_size", NULL, "{unit}", NULL},
    {"otelcol_processor_batch_batch_size_trigger_send", NULL, "{time}", NULL},
    {"otelcol_processor_batch_metadata_cardinality", NULL, "{combination}", NULL},
    {"otelcol_processor_batch_timeout_trigger_send", NULL, "{time}", NULL},
    {"otelcol_processor_incoming_items", NULL, "{item}", NULL},
    {"otelcol_processor_internal_duration", NULL, "s", "_seconds"},
    {"otelcol_processor_outgoing_items", NULL, "{item}", NULL},
    {"rpc_client_call_duration", "rpc.client.call.duration", "s", "_seconds"},
    {"rpc_server_call_duration", "rpc.server.call.duration", "s", "_seconds"},
};

/* The units of all other names, by their ends. */
static const struct {
    const char *end;
    const char *unit;
} ends[] = {
    {"_seconds", "s"},
    {"_bytes", "By"},
    {"_spans", "{span}"},
    {"_profile_samples", "{sample}"},
    {"_metric_points", "{datapoint}"},
    {"_log_records", "{record}"},
};

static const struct {
    const char *label;
    const char *attribute;
    enum metric_label_type type;
} labels[] = {
    {"error_permanent", "error.permanent", METRIC_LABEL_BOOL},
    {"error_type", "error.type", METRIC_LABEL_TEXT},
    {"http_request_method", "http.request.method", METRIC_LABEL_TEXT},
    {"http_response_status_code", "http.response.status_code", METRIC_LABEL_INT},
    {"http_route", "http.route", METRIC_LABEL_TEXT},
    {"network_protocol_name", "network.protocol.name", METRIC_LABEL_TEXT},
    {"network_protocol_version", "network.protocol.version", METRIC_LABEL_TEXT},
    {"otel_signal", "otel.signal", METRIC_LABEL_TEXT},
    {"rpc_method", "rpc.method", METRIC_LABEL_TEXT},
    {"rpc_response_status_code", "rpc.response.status_code", METRIC_LABEL_TEXT},
    {"rpc_system_name", "rpc.system.name", METRIC_LABEL_TEXT},
    {"server_address", "server.address", METRIC_LABEL_TEXT},
    {"server_port", "server.port", METRIC_LABEL_INT},
    {"url_path", "url.path", METRIC_LABEL_TEXT},
    {"url_scheme", "url.scheme", METRIC_LABEL_TEXT},
};

static size_t group_of(const char *name)
{
    size_t i = 0;
    while (strncmp(name, groups[i].prefix, strlen(groups[i].prefix)) != 0)
        i++; /* the last prefix is empty */
    return i;
}

const struct metric_scope *metric_scope(const char *name)
{
    const struct metric_scope *scope = &groups[group_of(name)].scope;
    return scope->name ? scope : NULL;
}

enum metrics_level metric_level(const char *name)
{
    return groups[group_of(name)].level;
}

enum { NAMED_COUNT = sizeof named / sizeof named[0] };

/* Returns the index in `named`; NAMED_COUNT: none. */
static size_t find_name(const char *name)
{
    size_t i = 0;
    while (i < NAMED_COUNT && strcmp(named[i].name, name) != 0)
        i++;
    return i;
}

const char *metric_unit_suffix(const char *name)
{
    size_t i = find_name(name);
    return i < NAMED_COUNT && named[i].suffix ? named[i].suffix : "";
}

const char *metric_unit(const char *name)
{
    size_t at = find_name(name), size = strlen(name);
    if (at < NAMED_COUNT)
        return named[at].unit;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t end = strlen(ends[i].end);
        if (size > end && strcmp(name + size - end, ends[i].end) == 0)
            return ends[i].unit;
    }
    return "";
}

const char *metric_otlp_name(const char *name)
{
    size_t i = find_name(name);
    return i < NAMED_COUNT && named[i].otlp_name ? named[i].otlp_name : name;
}

bool metric_is_up_down(const char *name)
{
    return strcmp(name, "otelcol_exporter_in_flight_requests") == 0 ||
           strcmp(name, "otelcol_processor_batch_metadata_cardinality") == 0;
}

const char *metric_otlp_label(const char *label, enum metric_label_type *type_out)
{
    *type_out = METRIC_LABEL_TEXT;
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        if (strcmp(labels[i].label, label) != 0)
            continue;
        *type_out = labels[i].type;
        return labels[i].attribute;
    }
    return label;
}

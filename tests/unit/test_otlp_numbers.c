/* Compares the field numbers of core/data/otlp.h with the schema. */
#include "core/data/otlp.h"

#include "opentelemetry/proto/collector/logs/v1/logs_service.pb-c.h"
#include "opentelemetry/proto/collector/metrics/v1/metrics_service.pb-c.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct known {
    const char *field;
    uint32_t number;
};

#define TRACE(name) &opentelemetry__proto__trace__v1__##name##__descriptor
#define METRICS(name) &opentelemetry__proto__metrics__v1__##name##__descriptor
#define LOGS(name) &opentelemetry__proto__logs__v1__##name##__descriptor
#define COMMON(name) &opentelemetry__proto__common__v1__##name##__descriptor
#define PROFILES(name) &opentelemetry__proto__profiles__v1development__##name##__descriptor

static const struct {
    const ProtobufCMessageDescriptor *message;
    struct known fields[20];
} messages[] = {
    {&opentelemetry__proto__collector__trace__v1__export_trace_service_request__descriptor,
     {{"resource_spans", TRACES_RESOURCE_SPANS}}},
    {&opentelemetry__proto__collector__metrics__v1__export_metrics_service_request__descriptor,
     {{"resource_metrics", REQUEST_GROUPS}}},
    {METRICS(resource_metrics),
     {{"resource", GROUP_RESOURCE},
      {"scope_metrics", GROUP_SCOPES},
      {"schema_url", GROUP_SCHEMA_URL}}},
    {METRICS(scope_metrics), {{"metrics", SCOPE_ITEMS}}},
    {METRICS(metric),
     {{"gauge", METRIC_GAUGE},
      {"sum", METRIC_SUM},
      {"histogram", METRIC_HISTOGRAM},
      {"exponential_histogram", METRIC_EXPONENTIAL_HISTOGRAM},
      {"summary", METRIC_SUMMARY},
      {"name", METRIC_NAME},
      {"description", METRIC_DESCRIPTION},
      {"unit", METRIC_UNIT}}},
    {METRICS(gauge), {{"data_points", METRIC_DATA_DATA_POINTS}}},
    {METRICS(sum),
     {{"data_points", METRIC_DATA_DATA_POINTS},
      {"aggregation_temporality", METRIC_DATA_AGGREGATION_TEMPORALITY},
      {"is_monotonic", SUM_IS_MONOTONIC}}},
    {METRICS(histogram),
     {{"data_points", METRIC_DATA_DATA_POINTS},
      {"aggregation_temporality", METRIC_DATA_AGGREGATION_TEMPORALITY}}},
    {METRICS(exponential_histogram), {{"data_points", METRIC_DATA_DATA_POINTS}}},
    {METRICS(summary), {{"data_points", METRIC_DATA_DATA_POINTS}}},
    {METRICS(number_data_point),
     {{"start_time_unix_nano", NUMBER_POINT_START_TIME_UNIX_NANO},
      {"time_unix_nano", NUMBER_POINT_TIME_UNIX_NANO},
      {"as_double", NUMBER_POINT_AS_DOUBLE},
      {"exemplars", NUMBER_POINT_EXEMPLARS},
      {"as_int", NUMBER_POINT_AS_INT},
      {"attributes", NUMBER_POINT_ATTRIBUTES},
      {"flags", NUMBER_POINT_FLAGS}}},
    {METRICS(histogram_data_point),
     {{"start_time_unix_nano", HISTOGRAM_POINT_START_TIME_UNIX_NANO},
      {"time_unix_nano", HISTOGRAM_POINT_TIME_UNIX_NANO},
      {"count", HISTOGRAM_POINT_COUNT},
      {"sum", HISTOGRAM_POINT_SUM},
      {"bucket_counts", HISTOGRAM_POINT_BUCKET_COUNTS},
      {"explicit_bounds", HISTOGRAM_POINT_EXPLICIT_BOUNDS},
      {"exemplars", HISTOGRAM_POINT_EXEMPLARS},
      {"attributes", HISTOGRAM_POINT_ATTRIBUTES},
      {"flags", HISTOGRAM_POINT_FLAGS},
      {"min", HISTOGRAM_POINT_MIN},
      {"max", HISTOGRAM_POINT_MAX}}},
    {METRICS(exponential_histogram_data_point),
     {{"attributes", EXPONENTIAL_HISTOGRAM_POINT_ATTRIBUTES},
      {"time_unix_nano", EXPONENTIAL_HISTOGRAM_POINT_TIME_UNIX_NANO}}},
    {METRICS(summary_data_point),
     {{"time_unix_nano", SUMMARY_POINT_TIME_UNIX_NANO}, {"attributes", SUMMARY_POINT_ATTRIBUTES}}},
    {METRICS(exemplar),
     {{"time_unix_nano", EXEMPLAR_TIME_UNIX_NANO},
      {"as_double", EXEMPLAR_AS_DOUBLE},
      {"span_id", EXEMPLAR_SPAN_ID},
      {"trace_id", EXEMPLAR_TRACE_ID},
      {"as_int", EXEMPLAR_AS_INT},
      {"filtered_attributes", EXEMPLAR_FILTERED_ATTRIBUTES}}},
    {&opentelemetry__proto__collector__logs__v1__export_logs_service_request__descriptor,
     {{"resource_logs", REQUEST_GROUPS}}},
    {LOGS(resource_logs),
     {{"resource", GROUP_RESOURCE},
      {"scope_logs", GROUP_SCOPES},
      {"schema_url", GROUP_SCHEMA_URL}}},
    {LOGS(scope_logs), {{"log_records", SCOPE_ITEMS}}},
    {LOGS(log_record),
     {{"time_unix_nano", LOG_RECORD_TIME_UNIX_NANO},
      {"severity_number", LOG_RECORD_SEVERITY_NUMBER},
      {"severity_text", LOG_RECORD_SEVERITY_TEXT},
      {"body", LOG_RECORD_BODY},
      {"attributes", LOG_RECORD_ATTRIBUTES},
      {"dropped_attributes_count", LOG_RECORD_DROPPED_ATTRIBUTES_COUNT},
      {"flags", LOG_RECORD_FLAGS},
      {"trace_id", LOG_RECORD_TRACE_ID},
      {"span_id", LOG_RECORD_SPAN_ID},
      {"observed_time_unix_nano", LOG_RECORD_OBSERVED_TIME_UNIX_NANO},
      {"event_name", LOG_RECORD_EVENT_NAME}}},
    {TRACE(resource_spans),
     {{"resource", RESOURCE_SPANS_RESOURCE},
      {"scope_spans", RESOURCE_SPANS_SCOPE_SPANS},
      {"schema_url", RESOURCE_SPANS_SCHEMA_URL}}},
    {TRACE(scope_spans),
     {{"scope", SCOPE_SPANS_SCOPE},
      {"spans", SCOPE_SPANS_SPANS},
      {"schema_url", SCOPE_SPANS_SCHEMA_URL}}},
    {TRACE(span),
     {{"trace_id", SPAN_TRACE_ID},
      {"span_id", SPAN_SPAN_ID},
      {"trace_state", SPAN_TRACE_STATE},
      {"parent_span_id", SPAN_PARENT_SPAN_ID},
      {"name", SPAN_NAME},
      {"kind", SPAN_KIND},
      {"start_time_unix_nano", SPAN_START_TIME_UNIX_NANO},
      {"end_time_unix_nano", SPAN_END_TIME_UNIX_NANO},
      {"attributes", SPAN_ATTRIBUTES},
      {"dropped_attributes_count", SPAN_DROPPED_ATTRIBUTES_COUNT},
      {"events", SPAN_EVENTS},
      {"dropped_events_count", SPAN_DROPPED_EVENTS_COUNT},
      {"links", SPAN_LINKS},
      {"dropped_links_count", SPAN_DROPPED_LINKS_COUNT},
      {"status", SPAN_STATUS},
      {"flags", SPAN_FLAGS}}},
    {TRACE(span__event),
     {{"time_unix_nano", EVENT_TIME_UNIX_NANO},
      {"name", EVENT_NAME},
      {"attributes", EVENT_ATTRIBUTES},
      {"dropped_attributes_count", EVENT_DROPPED_ATTRIBUTES_COUNT}}},
    {TRACE(status), {{"message", STATUS_MESSAGE}, {"code", STATUS_CODE}}},
    {&opentelemetry__proto__resource__v1__resource__descriptor,
     {{"attributes", RESOURCE_ATTRIBUTES},
      {"dropped_attributes_count", RESOURCE_DROPPED_ATTRIBUTES_COUNT},
      {"entity_refs", RESOURCE_ENTITY_REFS}}},
    {COMMON(instrumentation_scope),
     {{"name", SCOPE_NAME},
      {"version", SCOPE_VERSION},
      {"attributes", SCOPE_ATTRIBUTES},
      {"dropped_attributes_count", SCOPE_DROPPED_ATTRIBUTES_COUNT}}},
    {COMMON(key_value),
     {{"key", KEY_VALUE_KEY},
      {"value", KEY_VALUE_VALUE},
      {"key_strindex", KEY_VALUE_KEY_STRINDEX}}},
    {COMMON(any_value),
     {{"string_value", ANY_VALUE_STRING},
      {"bool_value", ANY_VALUE_BOOL},
      {"int_value", ANY_VALUE_INT},
      {"double_value", ANY_VALUE_DOUBLE},
      {"array_value", ANY_VALUE_ARRAY},
      {"kvlist_value", ANY_VALUE_KVLIST},
      {"bytes_value", ANY_VALUE_BYTES},
      {"string_value_strindex", ANY_VALUE_STRING_STRINDEX}}},
    {COMMON(array_value), {{"values", ARRAY_VALUE_VALUES}}},
    {COMMON(key_value_list), {{"values", KEY_VALUE_LIST_VALUES}}},
    {&opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__descriptor,
     {{"resource_profiles", PROFILES_RESOURCE_PROFILES}, {"dictionary", PROFILES_DICTIONARY}}},
    {PROFILES(resource_profiles),
     {{"resource", RESOURCE_PROFILES_RESOURCE},
      {"scope_profiles", RESOURCE_PROFILES_SCOPE_PROFILES},
      {"schema_url", RESOURCE_PROFILES_SCHEMA_URL}}},
    {PROFILES(scope_profiles),
     {{"scope", SCOPE_PROFILES_SCOPE},
      {"profiles", SCOPE_PROFILES_PROFILES},
      {"schema_url", SCOPE_PROFILES_SCHEMA_URL}}},
    {PROFILES(profiles_dictionary),
     {{"mapping_table", DICTIONARY_MAPPING_TABLE},
      {"location_table", DICTIONARY_LOCATION_TABLE},
      {"function_table", DICTIONARY_FUNCTION_TABLE},
      {"link_table", DICTIONARY_LINK_TABLE},
      {"string_table", DICTIONARY_STRING_TABLE},
      {"attribute_table", DICTIONARY_ATTRIBUTE_TABLE},
      {"stack_table", DICTIONARY_STACK_TABLE}}},
    {PROFILES(profile),
     {{"sample_type", PROFILE_SAMPLE_TYPE},
      {"samples", PROFILE_SAMPLES},
      {"time_unix_nano", PROFILE_TIME_UNIX_NANO},
      {"duration_nano", PROFILE_DURATION_NANO},
      {"period_type", PROFILE_PERIOD_TYPE},
      {"period", PROFILE_PERIOD},
      {"profile_id", PROFILE_PROFILE_ID},
      {"dropped_attributes_count", PROFILE_DROPPED_ATTRIBUTES_COUNT},
      {"original_payload_format", PROFILE_ORIGINAL_PAYLOAD_FORMAT},
      {"original_payload", PROFILE_ORIGINAL_PAYLOAD},
      {"attribute_indices", PROFILE_ATTRIBUTE_INDICES}}},
    {PROFILES(value_type),
     {{"type_strindex", VALUE_TYPE_TYPE_STRINDEX}, {"unit_strindex", VALUE_TYPE_UNIT_STRINDEX}}},
    {PROFILES(sample),
     {{"stack_index", SAMPLE_STACK_INDEX},
      {"attribute_indices", SAMPLE_ATTRIBUTE_INDICES},
      {"link_index", SAMPLE_LINK_INDEX},
      {"values", SAMPLE_VALUES},
      {"timestamps_unix_nano", SAMPLE_TIMESTAMPS_UNIX_NANO}}},
    {PROFILES(mapping),
     {{"memory_start", MAPPING_MEMORY_START},
      {"memory_limit", MAPPING_MEMORY_LIMIT},
      {"file_offset", MAPPING_FILE_OFFSET},
      {"filename_strindex", MAPPING_FILENAME_STRINDEX},
      {"attribute_indices", MAPPING_ATTRIBUTE_INDICES}}},
    {PROFILES(location),
     {{"mapping_index", LOCATION_MAPPING_INDEX},
      {"address", LOCATION_ADDRESS},
      {"lines", LOCATION_LINES},
      {"attribute_indices", LOCATION_ATTRIBUTE_INDICES}}},
    {PROFILES(line),
     {{"function_index", LINE_FUNCTION_INDEX}, {"line", LINE_LINE}, {"column", LINE_COLUMN}}},
    {PROFILES(function),
     {{"name_strindex", FUNCTION_NAME_STRINDEX},
      {"system_name_strindex", FUNCTION_SYSTEM_NAME_STRINDEX},
      {"filename_strindex", FUNCTION_FILENAME_STRINDEX},
      {"start_line", FUNCTION_START_LINE}}},
    {PROFILES(link), {{"trace_id", LINK_TRACE_ID}, {"span_id", LINK_SPAN_ID}}},
    {PROFILES(key_value_and_unit),
     {{"key_strindex", KEY_VALUE_AND_UNIT_KEY_STRINDEX},
      {"value", KEY_VALUE_AND_UNIT_VALUE},
      {"unit_strindex", KEY_VALUE_AND_UNIT_UNIT_STRINDEX}}},
    {PROFILES(stack), {{"location_indices", STACK_LOCATION_INDICES}}},
};

/* Every number is equal to the schema's, and every field of the schema has one. */
static void test_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        const ProtobufCMessageDescriptor *message = messages[i].message;
        unsigned count = 0;

        for (const struct known *known = messages[i].fields; known->field; known++, count++) {
            const ProtobufCFieldDescriptor *field =
                protobuf_c_message_descriptor_get_field_by_name(message, known->field);
            if (!field)
                fail_msg("%s has no field %s", message->name, known->field);
            else if (field->id != known->number)
                fail_msg("%s.%s is %u, not %u", message->name, known->field, field->id,
                         known->number);
        }
        bool is_relayed =
            strstr(message->name, "proto.metrics") || strstr(message->name, "proto.logs");
        if (count != message->n_fields && !is_relayed) /* of which only some fields are read */
            fail_msg("%s has %u fields, %u are known", message->name, message->n_fields, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

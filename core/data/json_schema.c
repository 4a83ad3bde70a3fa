#include "core/data/json_schema.h"

#include "core/data/otlp.h"
#include "google/rpc/status.pb-c.h"
#include "opentelemetry/proto/collector/logs/v1/logs_service.pb-c.h"
#include "opentelemetry/proto/collector/metrics/v1/metrics_service.pb-c.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "push/v1/push.pb-c.h"

#include <assert.h>

const ProtobufCMessageDescriptor *json_schema_message(enum json_message message)
{
    switch (message) {
    case JSON_TRACES_REQUEST:
        return &opentelemetry__proto__collector__trace__v1__export_trace_service_request__descriptor;
    case JSON_PROFILES_REQUEST:
        return &opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__descriptor;
    case JSON_METRICS_REQUEST:
        return &opentelemetry__proto__collector__metrics__v1__export_metrics_service_request__descriptor;
    case JSON_LOGS_REQUEST:
        return &opentelemetry__proto__collector__logs__v1__export_logs_service_request__descriptor;
    case JSON_TRACES_RESPONSE:
        return &opentelemetry__proto__collector__trace__v1__export_trace_service_response__descriptor;
    case JSON_PROFILES_RESPONSE:
        return &opentelemetry__proto__collector__profiles__v1development__export_profiles_service_response__descriptor;
    case JSON_METRICS_RESPONSE:
        return &opentelemetry__proto__collector__metrics__v1__export_metrics_service_response__descriptor;
    case JSON_LOGS_RESPONSE:
        return &opentelemetry__proto__collector__logs__v1__export_logs_service_response__descriptor;
    case JSON_PUSH_REQUEST:
        return &push__v1__push_request__descriptor;
    case JSON_STATUS:
        break;
    }
    return &google__rpc__status__descriptor;
}

bool json_schema_is_any(const ProtobufCMessageDescriptor *message)
{
    return message == &google__protobuf__any__descriptor;
}

static bool is_upper(uint8_t c)
{
    return c >= 'A' && c <= 'Z';
}

/* Whether the name is `field`, which is in snake_case. */
static bool is_name_of(const char *field, struct slice name)
{
    for (size_t i = 0; i < name.size; i++) {
        uint8_t c = name.data[i];
        if (is_upper(c)) {
            if (*field++ != '_')
                return false;
            c |= 0x20;
        }
        if (c == '\0' || (uint8_t)*field++ != c)
            return false;
    }
    return *field == '\0';
}

const ProtobufCFieldDescriptor *json_schema_field(const ProtobufCMessageDescriptor *message,
                                                  struct slice name, unsigned first)
{
    assert(first <= message->n_fields);
    for (unsigned tried = 0, i = first; tried < message->n_fields; tried++, i++) {
        if (i == message->n_fields)
            i = 0;
        if (is_name_of(message->fields[i].name, name))
            return &message->fields[i];
    }
    return NULL;
}

size_t json_schema_name(const ProtobufCFieldDescriptor *field, char to[JSON_NAME_MAX])
{
    size_t size = 0;
    assert(strlen(field->name) < JSON_NAME_MAX);
    for (const char *from = field->name; *from; from++) {
        if (*from == '_' && from[1] >= 'a' && from[1] <= 'z')
            to[size++] = (char)(*++from & ~0x20);
        else
            to[size++] = *from;
    }
    assert(size < JSON_NAME_MAX);
    to[size] = '\0';
    return size;
}

size_t json_schema_id_size(const ProtobufCFieldDescriptor *field)
{
    static const struct {
        const char *name;
        size_t size;
    } ids[] = {{"trace_id", TRACE_ID_SIZE},
               {"span_id", SPAN_ID_SIZE},
               {"parent_span_id", SPAN_ID_SIZE},
               {"profile_id", PROFILE_ID_SIZE}};
    for (size_t i = 0; field->type == PROTOBUF_C_TYPE_BYTES && i < sizeof ids / sizeof ids[0]; i++)
        if (strcmp(field->name, ids[i].name) == 0)
            return ids[i].size;
    return 0;
}

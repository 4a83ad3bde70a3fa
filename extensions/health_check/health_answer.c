#include "extensions/health_check/health_answer.h"

#include "core/base/text.h"
#include "core/data/wire.h"

#include <assert.h>

/* https://github.com/grpc/grpc-proto/blob/master/grpc/health/v1/health.proto */
enum { REQUEST_FIELD_SERVICE = 1, RESPONSE_FIELD_STATUS = 1 };
enum { SERVING = 1, NOT_SERVING = 2 };

/* What the settings say of a status. A recoverable error counts once it has lasted. */
static bool is_healthy(const struct health *health,
                       const struct component_health_settings *settings, uint64_t now_ns)
{
    if (!settings->enabled || health->is_only_shown)
        return true;
    assert(settings->recovery_duration >= 0);
    if (health->status == STATUS_PERMANENT_ERROR)
        return !settings->include_permanent_errors;
    if (health->status == STATUS_RECOVERABLE_ERROR && settings->include_recoverable_errors)
        return now_ns < health->since_ns + (uint64_t)settings->recovery_duration;
    return health->status != STATUS_FATAL_ERROR;
}

int health_http_status(const struct health *health,
                       const struct component_health_settings *settings, uint64_t now_ns)
{
    static const int statuses[STATUS_KIND_COUNT] = {
        [STATUS_NONE] = 503,
        [STATUS_STARTING] = 503,
        [STATUS_OK] = 200,
        [STATUS_RECOVERABLE_ERROR] = 200,
        [STATUS_PERMANENT_ERROR] = 200,
        [STATUS_FATAL_ERROR] = 500,
        [STATUS_STOPPING] = 503,
        [STATUS_STOPPED] = 503,
    };
    assert(health->status < STATUS_KIND_COUNT);
    return is_healthy(health, settings, now_ns) ? statuses[health->status] : 500;
}

/* ---- JSON ---- */

static void append_string(struct text *out, const char *key, const char *value)
{
    text_printf(out, ",\"%s\":\"", key);
    text_append_json(out, slice_of_string(value));
    text_append_char(out, '"');
}

/* Appends the members that a status has at every level, behind the start of its object. */
static void append_members(const struct health *health,
                           const struct component_health_settings *settings, uint64_t now_ns,
                           struct text *out)
{
    text_printf(out, "\"healthy\":%s", is_healthy(health, settings, now_ns) ? "true" : "false");
    append_string(out, "status", status_name(health->status));
    if (health->error[0])
        append_string(out, "error", health->error);
    text_append(out, ",\"status_time\":\"");
    text_append_utc(out, health->since_ns);
    text_append_char(out, '"');
}

/* Appends the parts of a status. There are three levels: process, pipeline, component. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void append_parts(const struct health *health,
                         const struct component_health_settings *settings, uint64_t now_ns,
                         struct text *out)
{
    if (health->child_count == 0)
        return;
    text_append(out, ",\"components\":{");
    for (size_t i = 0; i < health->child_count; i++) {
        const struct health *child = &health->children[i];
        text_append(out, i ? ",\"" : "\"");
        text_append_json(out, slice_of_string(child->name));
        text_append(out, "\":{");
        append_members(child, settings, now_ns, out);
        append_parts(child, settings, now_ns, out);
        text_append_char(out, '}');
    }
    text_append_char(out, '}');
}

void health_print_json(const struct health *health,
                       const struct component_health_settings *settings, uint64_t started_ns,
                       uint64_t now_ns, bool is_verbose, struct text *out)
{
    text_append(out, "{\"start_time\":\"");
    text_append_utc(out, started_ns);
    text_append(out, "\",");
    append_members(health, settings, now_ns, out);
    if (is_verbose)
        append_parts(health, settings, now_ns, out);
    text_append_char(out, '}');
}

/* ---- grpc.health.v1 ---- */

bool health_grpc_read_service(struct slice request, struct slice *service_out)
{
    struct wire_cursor cursor = wire_cursor(request);
    struct wire_field field;
    *service_out = SLICE("");
    while (wire_next(&cursor, &field)) {
        if (field.number != REQUEST_FIELD_SERVICE)
            continue;
        if (field.type != WIRE_BYTES)
            return false;
        *service_out = field.bytes;
    }
    return !cursor.broken;
}

size_t health_grpc_write_response(const struct health *health,
                                  const struct component_health_settings *settings, uint64_t now_ns,
                                  uint8_t out[HEALTH_GRPC_RESPONSE_MAX])
{
    bool is_serving = health_http_status(health, settings, now_ns) == 200;
    uint8_t *end = wire_write_tag(out, RESPONSE_FIELD_STATUS, WIRE_VARINT);
    end = wire_write_varint(end, is_serving ? SERVING : NOT_SERVING);
    assert(end == out + HEALTH_GRPC_RESPONSE_MAX);
    return (size_t)(end - out);
}

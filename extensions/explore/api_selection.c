/* How answers read what they are asked about. */
#include "config/value.h"
#include "core/data/id_text.h"
#include "extensions/explore/api.h"

/* The selection being read. */
struct reading {
    struct api_request *request;
    const char *prefix;
    struct store_selection *selection;
};

static const char *name_of(const struct reading *reading, const char *name)
{
    return reading->prefix[0]
               ? arena_printf(&reading->request->arena, "%s%s", reading->prefix, name)
               : name;
}

static bool refuse(const struct reading *reading, const char *name, const char *why)
{
    return api_refuse(reading->request, 400, "invalid_parameter", "%s%s: %s", reading->prefix, name,
                      why);
}

/* Sets *out and returns true if the parameter is there; it may be empty. */
static bool read_text(const struct reading *reading, const char *name, struct slice *out)
{
    const char *full = name_of(reading, name);
    *out = api_parameter(reading->request, full);
    return api_has_parameter(reading->request, full);
}

static bool parse_duration(struct slice text, uint64_t *out)
{
    char why[128];
    int64_t ns;
    if (!config_parse_duration(text, &ns, why, sizeof why) || ns < 0)
        return false;
    *out = (uint64_t)ns;
    return true;
}

static bool read_duration(const struct reading *reading, const char *name, uint64_t *out)
{
    struct slice value = api_parameter(reading->request, name_of(reading, name));
    *out = 0;
    return value.size == 0 || parse_duration(value, out) ||
           refuse(reading, name, "must be a duration, such as 250ms");
}

/* "-15m" is before now. */
static bool read_time(const struct reading *reading, const char *name, uint64_t *out)
{
    struct slice value = api_parameter(reading->request, name_of(reading, name));
    uint64_t now_ns = reading->request->now_ns, ago_ns;
    *out = 0;
    if (value.size == 0 || text_read_u64(value, out))
        return true;
    if (value.data[0] != '-' || !parse_duration(slice_of(value.data + 1, value.size - 1), &ago_ns))
        return refuse(reading, name, "must be nanoseconds since 1970, or -15m");
    *out = now_ns > ago_ns ? now_ns - ago_ns : 1;
    return true;
}

static bool read_id(const struct reading *reading, const char *name, uint8_t *out, size_t size,
                    bool *has_out)
{
    struct slice value = api_parameter(reading->request, name_of(reading, name));
    *has_out = value.size > 0;
    return value.size == 0 || id_from_hex(value, out, size) ||
           api_refuse(reading->request, 400, "invalid_parameter",
                      "%s%s: must be %zu hex digits, not all 0", reading->prefix, name, 2 * size);
}

/* Writes an attribute as it is in the store's JSON. */
static bool add_attribute(const struct reading *reading, struct slice value)
{
    struct store_selection *selection = reading->selection;
    if (!memchr(value.data, '=', value.size))
        return refuse(reading, "attribute", "must be key=value");
    struct slice key = api_take_until(&value, '=');
    struct text json = {0};
    if (selection->attribute_count == SELECTION_ATTRIBUTES_MAX)
        return refuse(reading, "attribute", "there are too many");
    text_append_char(&json, '"');
    text_append_json(&json, key);
    text_append(&json, "\":");
    size_t prefix = json.size;
    text_append_json(&json, value);
    selection->numbers[selection->attribute_count] =
        arena_copy(&reading->request->arena, slice_of(json.data, json.size));
    json.size = prefix;
    text_append_char(&json, '"');
    text_append_json(&json, value);
    text_append_char(&json, '"');
    selection->attributes[selection->attribute_count++] =
        arena_copy(&reading->request->arena, slice_of(json.data, json.size));
    text_deinit(&json);
    return true;
}

static bool read_attributes(const struct reading *reading)
{
    const char *name = name_of(reading, "attribute");
    const struct api_request *request = reading->request;
    for (unsigned i = 0; i < request->parameter_count; i++)
        if (slice_is(request->parameters[i].name, name) &&
            !add_attribute(reading, request->parameters[i].value))
            return false;
    if (reading->selection->attribute_count > 0)
        reading->selection->memo =
            arena_array(&reading->request->arena, reading->request->store->names.texts.count,
                        sizeof *reading->selection->memo);
    return true;
}

static bool read_bucket(const struct reading *reading)
{
    uint64_t bucket;
    const char *name = name_of(reading, "bucket");
    reading->selection->bucket = -1;
    if (api_parameter(reading->request, name).size == 0)
        return true;
    if (!api_number(reading->request, name, 0, STORE_BUCKETS - 1, &bucket))
        return false;
    reading->selection->bucket = (int)bucket;
    return true;
}

/* Two selections may have one type together. */
static bool read_type(const struct reading *reading, uint8_t *type_out)
{
    const char *own = name_of(reading, "type");
    bool has_own = api_parameter(reading->request, own).size > 0;
    int word;
    return api_word_or_type(reading->request, has_own ? own : "type", NULL, 0, &word, type_out);
}

bool api_selection(struct api_request *request, const char *prefix,
                   struct store_selection *selection, uint8_t *type_out)
{
    struct reading reading = {request, prefix, selection};
    *selection = (struct store_selection){.kind = -1};
    selection->has_service = read_text(&reading, "service", &selection->service);
    selection->has_operation = read_text(&reading, "operation", &selection->operation);
    selection->has_version = read_text(&reading, "version", &selection->version);
    return api_word(request, name_of(&reading, "kind"), api_kinds, 6, -1, &selection->kind) &&
           api_word(request, name_of(&reading, "status"), api_states, 3, -1, &selection->status) &&
           read_time(&reading, "from", &selection->from_ns) &&
           read_time(&reading, "to", &selection->to_ns) &&
           read_duration(&reading, "min_duration", &selection->min_ns) &&
           read_duration(&reading, "max_duration", &selection->max_ns) && read_bucket(&reading) &&
           read_attributes(&reading) &&
           read_id(&reading, "trace", selection->trace_id, TRACE_ID_SIZE, &selection->has_trace) &&
           read_id(&reading, "span", selection->span_id, SPAN_ID_SIZE, &selection->has_span) &&
           read_type(&reading, type_out);
}

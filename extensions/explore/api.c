#include "extensions/explore/api.h"

#include "config/value.h"
#include "core/base/clock.h"

#include <stdarg.h>
#include <stdio.h>

const char *const api_kinds[6] = {"unspecified", "internal", "server",
                                  "client",      "producer", "consumer"};
const char *const api_states[3] = {"unset", "ok", "error"};

static const struct {
    const char *path;
    void (*answer)(struct api_request *request);
} paths[] = {
    {"status", api_status}, {"services", api_services},   {"operations", api_operations},
    {"spans", api_spans},   {"span", api_span},           {"flamegraph", api_flamegraph},
    {"diff", api_diff},     {"functions", api_functions}, {"histogram", api_histogram},
    {"export", api_export}, {"explain", api_explain},
};
enum { PATHS = sizeof paths / sizeof paths[0] };

static int path_index(struct slice path)
{
    int i = 0;
    while (i < PATHS && !slice_is(path, paths[i].path))
        i++;
    return i;
}

bool api_has_path(struct slice path)
{
    return path_index(path) < PATHS;
}

/* ---- errors and limits ---- */

bool api_refuse(struct api_request *request, int status, const char *code, const char *format, ...)
{
    struct text message = {0};
    va_list args;
    va_start(args, format);
    text_vprintf(&message, format, args);
    va_end(args);
    text_clear(&request->body);
    request->json = (struct json_text){&request->body, false};
    request->status = status;
    request->type = "application/json";
    request->file_name = NULL;
    json_text_open(&request->json, NULL, '{');
    json_text_open(&request->json, "error", '{');
    json_text_string(&request->json, "code", code);
    json_text_slice(&request->json, "message", slice_of(message.data, message.size));
    json_text_close(&request->json, '}');
    json_text_close(&request->json, '}');
    text_deinit(&message);
    return false;
}

bool api_must_stop(struct api_request *request)
{
    if (request->is_late)
        return true;
    if (request->body.size > API_ANSWER_MAX) {
        request->is_late = true;
        api_refuse(request, 503, "too_large", "the answer would have more than %d MiB",
                   API_ANSWER_MAX >> 20);
    } else if (request->deadline_ns && clock_monotonic_ns() > request->deadline_ns) {
        request->is_late = true;
        api_refuse(request, 503, "deadline", "the query takes too long");
    }
    return request->is_late;
}

/* ---- parameters ---- */

static struct slice take_until(struct slice *rest, char end)
{
    size_t size = 0;
    while (size < rest->size && rest->data[size] != (uint8_t)end)
        size++;
    struct slice taken = slice_of(rest->data, size);
    size_t skipped = size < rest->size ? size + 1 : size;
    *rest = slice_of(rest->data + skipped, rest->size - skipped);
    return taken;
}

static bool read_parameters(struct api_request *request, struct slice query)
{
    while (query.size > 0) {
        struct slice value = take_until(&query, '&');
        struct slice name = take_until(&value, '=');
        size_t size;
        if (name.size == 0)
            continue;
        if (request->parameter_count == API_PARAMETERS_MAX)
            return api_refuse(request, 400, "invalid_parameter", "more than %d parameters",
                              API_PARAMETERS_MAX);
        uint8_t *decoded = arena_alloc(&request->arena, value.size + 1);
        if (!text_decode_percent(value, TEXT_PERCENT_KEEP_BROKEN | TEXT_PERCENT_PLUS_BLANK, decoded,
                                 value.size, &size) ||
            size > API_VALUE_MAX || memchr(decoded, '\0', size))
            return api_refuse(request, 400, "invalid_parameter", "%.*s: the value is not valid",
                              SLICE_ARG(name));
        decoded[size] = '\0';
        request->parameters[request->parameter_count++] =
            (struct api_parameter){name, slice_of(decoded, size)};
    }
    return true;
}

struct slice api_parameter(const struct api_request *request, const char *name)
{
    for (unsigned i = 0; i < request->parameter_count; i++)
        if (slice_is(request->parameters[i].name, name))
            return request->parameters[i].value;
    return slice_of(NULL, 0);
}

static bool has_parameter(const struct api_request *request, const char *name)
{
    for (unsigned i = 0; i < request->parameter_count; i++)
        if (slice_is(request->parameters[i].name, name))
            return true;
    return false;
}

static bool read_u64(struct slice text, uint64_t *out)
{
    *out = 0;
    if (text.size == 0 || text.size > 20 || text_count_digits(text, 0) != text.size)
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, (uint64_t)(text.data[i] - '0'), out))
            return false;
    return true;
}

bool api_number(struct api_request *request, const char *name, uint64_t fallback, uint64_t max,
                uint64_t *out)
{
    struct slice value = api_parameter(request, name);
    *out = fallback;
    if (value.size == 0 || (read_u64(value, out) && *out <= max))
        return true;
    return api_refuse(request, 400, "invalid_parameter", "%s: must be a number from 0 to %llu",
                      name, (unsigned long long)max);
}

/* A cursor is the number of items that were listed. */
bool api_page(struct api_request *request, uint64_t fallback, uint64_t *from_out,
              uint64_t *limit_out)
{
    return api_number(request, "cursor", 0, UINT32_MAX, from_out) &&
           api_number(request, "limit", fallback, API_LIST_MAX, limit_out);
}

void api_next(struct api_request *request, uint64_t next, bool has_more)
{
    char cursor[24];
    snprintf(cursor, sizeof cursor, "%llu", (unsigned long long)next);
    if (has_more)
        json_text_string(&request->json, "next", cursor);
    else
        json_text_null(&request->json, "next");
}

void api_costs(struct api_request *request, const char *key, const int64_t *values)
{
    const struct store_cells *cells = &request->store->cells;
    json_text_open(&request->json, key, '{');
    for (uint32_t i = 0; i < cells->type_count; i++)
        if (values[i] != 0)
            json_text_member(&request->json, api_text(request, cells->types[i].name), values[i]);
    json_text_close(&request->json, '}');
}

/* ---- the selection ---- */

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
    return has_parameter(reading->request, full);
}

static bool read_word(const struct reading *reading, const char *name, const char *const *words,
                      int count, int *out)
{
    struct slice value = api_parameter(reading->request, name_of(reading, name));
    *out = -1;
    for (int i = 0; i < count; i++)
        if (slice_is(value, words[i]))
            *out = i;
    return value.size == 0 || *out >= 0 || refuse(reading, name, "not one of the words for it");
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
    if (value.size == 0 || read_u64(value, out))
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
    for (size_t i = 0; i < size && value.size == 2 * size; i++) {
        int byte = text_hex_byte(value.data + 2 * i);
        if (byte < 0)
            return refuse(reading, name, "must be hex digits");
        out[i] = (uint8_t)byte;
    }
    return value.size == 0 || value.size == 2 * size ||
           refuse(reading, name, "has another length than an id");
}

/* Writes an attribute as it is in the store's JSON. */
static bool add_attribute(const struct reading *reading, struct slice value)
{
    struct store_selection *selection = reading->selection;
    struct slice key = take_until(&value, '=');
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

static bool read_type(const struct reading *reading, uint8_t *type_out)
{
    struct slice name;
    read_text(reading, "type", &name);
    if (name.size == 0)
        name = api_parameter(reading->request, "type");
    *type_out = store_query_type(reading->request->store, name);
    return *type_out < STORE_TYPES_MAX || name.size == 0 ||
           refuse(reading, "type", "there is no such profile type");
}

bool api_selection(struct api_request *request, const char *prefix,
                   struct store_selection *selection, uint8_t *type_out)
{
    struct reading reading = {request, prefix, selection};
    *selection = (struct store_selection){.kind = -1};
    selection->has_service = read_text(&reading, "service", &selection->service);
    selection->has_operation = read_text(&reading, "operation", &selection->operation);
    selection->has_version = read_text(&reading, "version", &selection->version);
    return read_word(&reading, "kind", api_kinds, 6, &selection->kind) &&
           read_word(&reading, "status", api_states, 3, &selection->status) &&
           read_time(&reading, "from", &selection->from_ns) &&
           read_time(&reading, "to", &selection->to_ns) &&
           read_duration(&reading, "min_duration", &selection->min_ns) &&
           read_duration(&reading, "max_duration", &selection->max_ns) && read_bucket(&reading) &&
           read_attributes(&reading) &&
           read_id(&reading, "trace", selection->trace_id, TRACE_ID_SIZE, &selection->has_trace) &&
           read_id(&reading, "span", selection->span_id, SPAN_ID_SIZE, &selection->has_span) &&
           read_type(&reading, type_out);
}

/* ---- answers ---- */

void api_answer(struct api_request *request, struct slice path, struct slice query)
{
    int index = path_index(path);
    arena_init(&request->arena, NULL);
    request->status = 200;
    request->type = "application/json";
    request->json = (struct json_text){&request->body, false};
    if (index == PATHS)
        api_refuse(request, 404, "not_found", "there is no such path");
    else if (read_parameters(request, query))
        paths[index].answer(request);
}

void api_deinit(struct api_request *request)
{
    arena_deinit(&request->arena);
    text_deinit(&request->body);
}

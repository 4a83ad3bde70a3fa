#include "extensions/explore/api.h"

#include "core/base/clock.h"

#include <stdarg.h>
#include <stdio.h>

const char *const api_kinds[6] = {"unspecified", "internal", "server",
                                  "client",      "producer", "consumer"};
const char *const api_states[3] = {"unset", "ok", "error"};

static const struct {
    const char *path;
    void (*answer)(struct api_request *request);
    struct api_known known; /* its parameters */
} paths[] = {
    {"status", api_status, {0, ""}},
    {"services", api_services, {0, ""}},
    {"operations", api_operations, {1, "sort limit cursor"}},
    {"spans", api_spans, {1, "sort order entry limit cursor"}},
    {"span", api_span, {0, "span trace"}},
    {"flamegraph", api_flamegraph, {1, "max_nodes"}},
    {"diff", api_diff, {2, "type max_nodes"}},
    {"functions", api_functions, {1, "sort search limit cursor"}},
    {"histogram", api_histogram, {1, "measure"}},
    {"export", api_export, {1, "format"}},
    {"explain", api_explain, {0, "id"}},
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
    } else if (request->is_given_up &&
               atomic_load_explicit(request->is_given_up, memory_order_relaxed)) {
        request->is_late = true;
        api_refuse(request, 503, "given_up", "nobody waits for the answer");
    } else if (request->deadline_ns && clock_monotonic_ns() > request->deadline_ns) {
        request->is_late = true;
        api_refuse(request, 503, "deadline", "the query takes too long");
    }
    return request->is_late;
}

/* ---- parts of answers ---- */

void api_next(struct api_request *request, uint64_t next, bool has_more)
{
    char cursor[24];
    snprintf(cursor, sizeof cursor, "%llu", (unsigned long long)next);
    if (has_more)
        json_text_string(&request->json, "next", cursor);
    else
        json_text_null(&request->json, "next");
}

const char *api_hex(struct api_request *request, const uint8_t *bytes, size_t size)
{
    struct text hex = {0};
    text_append_hex(&hex, slice_of(bytes, size));
    const char *copy = arena_strdup(&request->arena, text_string(&hex));
    text_deinit(&hex);
    return copy;
}

void api_costs(struct api_request *request, const char *key, const int64_t *values)
{
    const struct store_cells *cells = &request->store->cells;
    json_text_open(&request->json, key, '{');
    for (uint32_t i = 0; i < cells->type_count; i++)
        if (values[i] != 0)
            json_text_member(&request->json, api_text(request, cells->types[i].label), values[i]);
    json_text_close(&request->json, '}');
}

/* ---- answers ---- */

static void begin(struct api_request *request)
{
    arena_init(&request->arena, NULL);
    request->status = 200;
    request->type = "application/json";
    request->json = (struct json_text){&request->body, false};
}

bool api_begin_plain(struct api_request *request, struct slice query)
{
    static const struct api_known none = {0, ""};
    begin(request);
    return api_read_parameters(request, &none, query);
}

void api_answer(struct api_request *request, struct slice path, struct slice query)
{
    int index = path_index(path);
    begin(request);
    if (index == PATHS)
        api_refuse(request, 404, "not_found", "there is no such path");
    else if (api_read_parameters(request, &paths[index].known, query))
        paths[index].answer(request);
}

void api_deinit(struct api_request *request)
{
    arena_deinit(&request->arena);
    text_deinit(&request->body);
}

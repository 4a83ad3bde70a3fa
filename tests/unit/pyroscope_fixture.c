#include "tests/unit/pyroscope_fixture.h"

#include "core/base/memory.h"
#include "core/data/normalise.h"
#include "core/data/scan.h"
#include "core/net/compression.h"
#include "core/pipeline/received_profiles.h"
#include "receivers/pyroscope/grpc_web.h"
#include "receivers/pyroscope/ingest.h"
#include "receivers/pyroscope/push.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>

void pyroscope_word(struct pyroscope_request *request, const char *query, const char *content_type,
                    struct slice body)
{
    *request = (struct pyroscope_request){.settings = {.default_service_name = "unknown_service"}};
    request->settings.server.max_request_body_size = 20 << 20;
    request->query_text = memory_strdup(query ? query : "");
    request->query = slice_of_string(request->query_text);
    request->body = body;
    request->headers.items = request->items;
    if (!content_type)
        return;
    request->content_type = memory_strdup(content_type);
    pyroscope_add_header(request, "content-type", request->content_type);
}

void pyroscope_add_header(struct pyroscope_request *request, const char *name, const char *value)
{
    assert(request->headers.count < sizeof request->items / sizeof request->items[0]);
    request->items[request->headers.count++] =
        (struct http_header){slice_of_string(name), slice_of_string(value)};
}

static struct buffer *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert(file);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    struct buffer *buffer = buffer_new_charged(size, NULL);
    buffer->size = fread(buffer->data, 1, size, file);
    assert(buffer->size == size);
    fclose(file);
    return buffer;
}

static const char *header_of(json_t *meta, const char *name)
{
    json_t *headers = json_object_get(meta, "headers");
    for (size_t i = 0; i < json_array_size(headers); i++) {
        json_t *pair = json_array_get(headers, i);
        if (strcasecmp(json_string_value(json_array_get(pair, 0)), name) == 0)
            return json_string_value(json_array_get(pair, 1));
    }
    return "";
}

static struct buffer *undo_encoding(struct buffer *body, const char *encoding)
{
    if (strcmp(encoding, "gzip") != 0)
        return body;
    struct buffer *plain = NULL;
    struct error err;
    enum decompress_result result =
        decompress(COMPRESSION_GZIP, buffer_slice(body), 1 << 28, NULL, &plain, &err);
    assert(result == DECOMPRESS_OK);
    buffer_unref(body);
    return plain;
}

void pyroscope_load(struct pyroscope_request *request, const char *capture)
{
    char path[4096];
    const char *source = getenv("PROFCOL_SOURCE");
    snprintf(path, sizeof path, "%s/tests/data/pyroscope/%s.meta.json", source ? source : ".",
             capture);
    json_t *meta = json_load_file(path, 0, NULL);
    assert(meta);
    snprintf(path, sizeof path, "%s/tests/data/pyroscope/%s.body", source ? source : ".", capture);
    struct buffer *body = undo_encoding(read_file(path), header_of(meta, "content-encoding"));
    pyroscope_word(request, json_string_value(json_object_get(meta, "query")),
                   header_of(meta, "content-type"), buffer_slice(body));
    request->file = body;
    json_decref(meta);
}

void pyroscope_request_deinit(struct pyroscope_request *request)
{
    buffer_unref(request->file);
    free(request->query_text);
    free(request->content_type);
}

/* ---- reading ---- */

typedef bool (*reader)(struct upload *upload, const struct pyroscope_request *request,
                       struct verdict *why);

static void check(const struct pyroscope_result *result)
{
    struct scan_result scan;
    struct error err;
    struct slice profiles = buffer_slice(result->profiles);
    scan_init();
    bool passes = scan_profiles(profiles, &scan_limits_default, &scan, &err);
    if (!passes)
        fprintf(stderr, "the scan refuses what was made: %s\n", err.text);
    if (!passes || normalise_needed(&scan) || scan.items != result->samples)
        abort();
}

static bool run(const struct pyroscope_request *request, struct pyroscope_result *result,
                reader read)
{
    struct upload upload;
    *result = (struct pyroscope_result){.why = verdict_ok};
    upload_init(&upload, &request->settings, &request->headers, SIZE_MAX, &result->budget);
    if (read(&upload, request, &result->why))
        result->profiles = received_profiles_finish(upload.builder, &result->samples, &result->why);
    upload_deinit(&upload);
    /* A request is refused exactly if a reason is given. */
    assert(verdict_is_ok(&result->why) == (result->profiles != NULL));
    if (result->profiles)
        check(result);
    return result->profiles != NULL;
}

void pyroscope_result_deinit(struct pyroscope_result *result)
{
    buffer_unref(result->profiles);
    assert(budget_used(&result->budget) == 0);
}

static bool read_ingest(struct upload *upload, const struct pyroscope_request *request,
                        struct verdict *why)
{
    struct ingest_query query;
    struct error err;
    if (ingest_query_parse(request->query, upload->now_ns, &upload->arena, &query, &err))
        return ingest_read(upload, &query, request->body, why);
    *why = verdict_of(GRPC_INVALID_ARGUMENT, "%s", err.text);
    return false;
}

static bool read_push(struct upload *upload, const struct pyroscope_request *request,
                      struct verdict *why)
{
    return push_read(upload, request->body, why);
}

static bool read_push_json(struct upload *upload, const struct pyroscope_request *request,
                           struct verdict *why)
{
    return push_read_json(upload, request->body, why);
}

static bool read_grpc_web(struct upload *upload, const struct pyroscope_request *request,
                          struct verdict *why)
{
    struct plain message = {0};
    bool fine = grpc_web_read(upload, request->body, &message, why) &&
                push_read(upload, message.bytes, why);
    plain_close(&message);
    return fine;
}

bool pyroscope_ingest(const struct pyroscope_request *request, struct pyroscope_result *result)
{
    return run(request, result, read_ingest);
}

bool pyroscope_push(const struct pyroscope_request *request, struct pyroscope_result *result)
{
    return run(request, result, read_push);
}

bool pyroscope_push_json(const struct pyroscope_request *request, struct pyroscope_result *result)
{
    return run(request, result, read_push_json);
}

bool pyroscope_grpc_web(const struct pyroscope_request *request, struct pyroscope_result *result)
{
    return run(request, result, read_grpc_web);
}

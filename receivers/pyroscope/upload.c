#include "receivers/pyroscope/upload.h"

#include "core/base/worker.h"
#include "core/data/scan.h"
#include "core/pipeline/received.h"

enum {
    BUILT_PER_BODY = 8, /* what tables and samples may take, in bodies of the largest size */
    BUILT_MIN_BYTES = 4 * 1024 * 1024,
};

void upload_init(struct upload *upload, const struct pyroscope_settings *settings,
                 const struct http_headers *headers, struct budget *budget)
{
    size_t body = (size_t)settings->server.max_request_body_size;
    *upload = (struct upload){.settings = settings,
                              .headers = headers,
                              .budget = budget,
                              .plain_left = body,
                              .now_ns = clock_wall_ns()};
    upload->builder = profiles_builder_new(budget, BUILT_MIN_BYTES + BUILT_PER_BODY * body);
    arena_init(&upload->arena, budget);
}

void upload_deinit(struct upload *upload)
{
    profiles_builder_free(upload->builder);
    arena_deinit(&upload->arena);
}

static struct verdict verdict_of_result(const struct upload *upload, enum decompress_result result,
                                        const char *text)
{
    switch (result) {
    case DECOMPRESS_TOO_LARGE:
        return verdict_of(GRPC_RESOURCE_EXHAUSTED,
                          "decompressed, the upload has more than %llu bytes",
                          (unsigned long long)upload->settings->server.max_request_body_size);
    case DECOMPRESS_OVER_BUDGET:
        return received_over_budget;
    case DECOMPRESS_CORRUPT:
    case DECOMPRESS_OK:
        break;
    }
    return verdict_of(GRPC_INVALID_ARGUMENT, "%s", text);
}

bool upload_decompress(struct upload *upload, enum compression compression, struct slice bytes,
                       struct plain *plain, struct verdict *why)
{
    struct error err = {""};
    *plain = (struct plain){.bytes = bytes};
    if (compression == COMPRESSION_NONE)
        return true;
    enum decompress_result result =
        decompress(compression, bytes, upload->plain_left, upload->budget, &plain->buffer, &err);
    if (result != DECOMPRESS_OK) {
        *why = verdict_of_result(upload, result, err.text);
        return false;
    }
    plain->bytes = buffer_slice(plain->buffer);
    upload->plain_left -= plain->bytes.size;
    return true;
}

bool upload_open(struct upload *upload, struct slice bytes, struct plain *plain,
                 struct verdict *why)
{
    bool is_gzip = bytes.size >= 2 && bytes.data[0] == 0x1f && bytes.data[1] == 0x8b;
    return upload_decompress(upload, is_gzip ? COMPRESSION_GZIP : COMPRESSION_NONE, bytes, plain,
                             why);
}

void plain_close(struct plain *plain)
{
    buffer_unref(plain->buffer);
    *plain = (struct plain){0};
}

struct slice upload_default_service(const struct pyroscope_settings *settings,
                                    const struct http_headers *headers)
{
    struct slice name = {0};
    if (settings->service_name_header_lower)
        name = http_header_get(headers, settings->service_name_header_lower);
    return name.size > 0 ? name : slice_of_string(settings->default_service_name);
}

void upload_begin_series(struct upload *upload, struct series *series)
{
    series_set_default(series, SLICE("service.name"),
                       upload_default_service(upload->settings, upload->headers));
    series_begin(series, upload->builder);
}

struct buffer *upload_finish(struct upload *upload, uint32_t *samples_out, struct verdict *why)
{
    struct buffer *request = profiles_builder_finish(upload->builder, samples_out);
    if (!request) {
        *why = profiles_builder_state(upload->builder) == PROFILES_BUILDER_OVER_BUDGET
                   ? received_over_budget
                   : verdict_of(GRPC_RESOURCE_EXHAUSTED, "the upload unfolds to too much");
    } else if (*samples_out > scan_limits_default.items_max) {
        *why = verdict_of(GRPC_RESOURCE_EXHAUSTED, "%u samples, at most %u are allowed",
                          *samples_out, scan_limits_default.items_max);
        buffer_unref(request);
        request = NULL;
    }
    return request;
}

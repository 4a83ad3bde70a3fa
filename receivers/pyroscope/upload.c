#include "receivers/pyroscope/upload.h"

#include "core/base/clock.h"
#include "core/pipeline/received_profiles.h"

#include <assert.h>

void upload_init(struct upload *upload, const struct pyroscope_settings *settings,
                 const struct http_headers *headers, size_t plain_max, struct budget *budget)
{
    size_t body = (size_t)settings->server.max_request_body_size;
    *upload = (struct upload){.settings = settings,
                              .headers = headers,
                              .budget = budget,
                              .plain_max = plain_max < body ? plain_max : body,
                              .now_ns = clock_wall_ns()};
    upload->plain_left = upload->plain_max;
    upload->builder = received_profiles_builder(body, budget);
    arena_init(&upload->arena, budget);
}

void upload_deinit(struct upload *upload)
{
    profiles_builder_free(upload->builder);
    arena_deinit(&upload->arena);
}

bool upload_decompress(struct upload *upload, enum compression compression, struct slice bytes,
                       struct plain *plain, struct verdict *why)
{
    struct error err = {0};
    *plain = (struct plain){.bytes = bytes};
    if (compression == COMPRESSION_NONE)
        return true;
    enum decompress_result result =
        decompress(compression, bytes, upload->plain_left, upload->budget, &plain->buffer, &err);
    if (result != DECOMPRESS_OK) {
        upload->unfolds = result == DECOMPRESS_TOO_LARGE;
        *why = received_profiles_not_plain(result, upload->plain_max, err.text);
        return false;
    }
    plain->bytes = buffer_slice(plain->buffer);
    assert(plain->bytes.size <= upload->plain_left);
    upload->plain_left -= plain->bytes.size;
    return true;
}

bool upload_open(struct upload *upload, struct slice bytes, struct plain *plain,
                 struct verdict *why)
{
    return upload_decompress(upload, received_profiles_compression(bytes), bytes, plain, why);
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

/* Pushes, forms and OTLP as clients of Pyroscope send them: see cost.h. */
#include "core/data/otlp.h"
#include "core/net/compression.h"
#include "tests/unit/cost_uploads.h"

/* ---- push.v1 ---- */

static void put_label_pair(struct wire_writer *out, const char *name, const char *value)
{
    size_t label = wire_writer_begin(out, 1);
    wire_writer_bytes(out, 1, slice_of_string(name));
    wire_writer_bytes(out, 2, slice_of_string(value));
    wire_writer_end(out, label);
}

/* Writes series with the given number of samples, each with these bytes. */
static void put_pushes(struct wire_writer *out, size_t size, size_t samples, struct slice pprof)
{
    while (out->size < size) {
        size_t series = wire_writer_begin(out, 1);
        put_label_pair(out, "__name__", "x");
        for (size_t i = 0; i < samples && out->size < size; i++) {
            size_t sample = wire_writer_begin(out, 2);
            wire_writer_bytes(out, 1, pprof);
            wire_writer_end(out, sample);
        }
        wire_writer_end(out, series);
    }
}

/* A sample type, a string "", a sample. */
static const uint8_t least_pprof[] = {0x0a, 0, 0x32, 0, 0x12, 2, 0x10, 1};

static void push_small_pprofs(struct wire_writer *out, size_t size)
{
    put_pushes(out, size, SIZE_MAX, slice_of(least_pprof, sizeof least_pprof));
}

static void push_empty_pprofs(struct wire_writer *out, size_t size)
{
    put_pushes(out, size, SIZE_MAX, slice_of(least_pprof, 4));
}

/* The same with an unused string. */
static void put_small_pprof(struct wire_writer *out)
{
    wire_writer_raw(out, slice_of(least_pprof, sizeof least_pprof));
    put_repeated(out, 6, 'x', 60);
}

static void push_gzip_pprofs(struct wire_writer *out, size_t size)
{
    struct wire_writer small = {0};
    put_small_pprof(&small);
    struct slice pprof = wire_writer_slice(&small);
    struct buffer *gzip = compress_slices(COMPRESSION_GZIP, 0, false, &pprof, 1, NULL);
    put_pushes(out, size, SIZE_MAX, buffer_slice(gzip));
    buffer_unref(gzip);
    wire_writer_deinit(&small);
}

static void push_series(struct wire_writer *out, size_t size)
{
    put_pushes(out, size, 1, slice_of(least_pprof, sizeof least_pprof));
}

static void push_empty_series(struct wire_writer *out, size_t size)
{
    put_pushes(out, size, 0, (struct slice){0});
}

static void push_labels(struct wire_writer *out, size_t size)
{
    while (out->size < size) {
        size_t series = wire_writer_begin(out, 1);
        put_label_pair(out, "__name__", "x");
        put_label_pair(out, "service_name", "x");
        for (int i = 0; i < 98; i++)
            put_label_pair(out, (const char[]){'k', (char)('0' + i / 10), (char)('0' + i % 10), 0},
                           "");
        wire_writer_end(out, series);
    }
}

static void push_json(struct wire_writer *out, size_t size)
{
    wire_writer_raw(out, SLICE("{\"series\":[{\"labels\":[{\"name\":\"__name__\",\"value\":\"x\"},"
                               "{\"name\":\"service_name\",\"value\":\"x\"}],\"samples\":["));
    while (out->size < size)
        wire_writer_raw(out,
                        SLICE("{\"rawProfile\":\"CgAyABICEAEyFHh4eHh4eHh4eHh4eHh4eHh4eHh4\"},"));
    out->size--;
    wire_writer_raw(out, SLICE("]}]}"));
}

static void grpc_web(struct wire_writer *out, size_t size)
{
    wire_writer_raw(out, slice_of("\0\0\0\0\0", 5));
    put_pushes(out, size, SIZE_MAX, slice_of(least_pprof, sizeof least_pprof));
    size_t message = out->size - 5;
    for (size_t i = 4; i > 0; i--, message >>= 8)
        out->data[i] = (uint8_t)message;
}

/* ---- OTLP ---- */

/* Resources without attributes, not even service.name. */
static void otlp_resources(struct wire_writer *out, size_t size)
{
    while (out->size < size)
        wire_writer_bytes(out, PROFILES_RESOURCE_PROFILES, (struct slice){0});
}

/* Each has 4 KiB of data. */
static void otlp_resources_of_samples(struct wire_writer *out, size_t size)
{
    while (out->size < size)
        put_repeated(out, PROFILES_RESOURCE_PROFILES, 0x7a, 4096 + 124 - 4096 % 124);
}

/* ---- forms ---- */

static void put_form(struct wire_writer *out, struct slice filler, size_t size)
{
    wire_writer_raw(out, SLICE("--" COST_BOUNDARY "\r\nContent-Disposition: form-data; name=\"x\"; "
                               "filename=\"x\"\r\n\r\n"));
    while (out->size < size)
        wire_writer_raw(out, filler);
    wire_writer_raw(out, SLICE("\r\n--" COST_BOUNDARY "--\r\n"));
}

static void form_near_boundaries(struct wire_writer *out, size_t size)
{
    put_form(out, SLICE("\r\n--b-b-b-b-b-b-b-b-b-b-b-b-b-b-b-"), size);
}

static void form_repeated_boundaries(struct wire_writer *out, size_t size)
{
    put_form(out, SLICE("b-"), size);
}

static void form_longer_boundaries(struct wire_writer *out, size_t size)
{
    put_form(out, SLICE("\r\n--" COST_BOUNDARY "                x"), size);
}

int main(int argc, char **argv)
{
    static const struct cost_case cases[] = {
        {"push_sample", push_small_pprofs, send_push, GRPC_RESOURCE_EXHAUSTED},
        {"push_sample_empty", push_empty_pprofs, send_push, GRPC_RESOURCE_EXHAUSTED},
        {"push_sample_gzip", push_gzip_pprofs, send_push, GRPC_OK},
        {"push_series", push_series, send_push, GRPC_RESOURCE_EXHAUSTED},
        {"push_series_empty", push_empty_series, send_push, GRPC_RESOURCE_EXHAUSTED},
        {"push_series_labels", push_labels, send_push, GRPC_OK},
        {"push_json", push_json, send_push_json, GRPC_OK},
        {"push_grpc_web", grpc_web, send_grpc_web, GRPC_RESOURCE_EXHAUSTED},
        {"otlp_resource", otlp_resources, send_otlp, GRPC_RESOURCE_EXHAUSTED},
        {"otlp_resource_of_a_sample", otlp_resources_of_samples, send_otlp, GRPC_OK},
        {"form_near_boundary", form_near_boundaries, send_form, GRPC_OK},
        {"form_repeated_boundary", form_repeated_boundaries, send_form, GRPC_OK},
        {"form_longer_boundary", form_longer_boundaries, send_form, GRPC_OK},
    };
    return cost_main(argc, argv, cases, sizeof cases / sizeof *cases);
}

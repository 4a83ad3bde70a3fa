#include "receivers/pprof/profile_intake.h"

#include "core/data/scan.h"
#include "core/formats/jfr_read.h"
#include "core/formats/pprof_read.h"
#include "core/net/compression.h"
#include "core/pipeline/received.h"

enum {
    BUILT_PER_BODY = 8, /* what tables and samples may take, in bodies of the largest size */
    BUILT_MIN_BYTES = 4 * 1024 * 1024,
};

static bool starts_with(struct slice bytes, const char *magic, size_t size)
{
    return bytes.size >= size && memcmp(bytes.data, magic, size) == 0;
}

/* *plain_out: NULL when the bytes are not compressed. */
static bool open_gzip(const struct profile_intake *intake, struct buffer **plain_out,
                      struct verdict *why)
{
    struct error err = {""};
    *plain_out = NULL;
    if (!starts_with(intake->bytes, "\x1f\x8b", 2))
        return true;
    switch (decompress(COMPRESSION_GZIP, intake->bytes, intake->max_size, intake->budget, plain_out,
                       &err)) {
    case DECOMPRESS_OK:
        return true;
    case DECOMPRESS_CORRUPT:
        *why = verdict_of(GRPC_INVALID_ARGUMENT, "%s", err.text);
        break;
    case DECOMPRESS_TOO_LARGE:
        *why = verdict_of(GRPC_RESOURCE_EXHAUSTED,
                          "decompressed, the profile has more than %zu bytes", intake->max_size);
        break;
    case DECOMPRESS_OVER_BUDGET:
        *why = received_over_budget;
        break;
    }
    return false;
}

static bool read_plain_pprof(const struct profile_intake *intake, struct slice pprof,
                             uint64_t duration_ns, struct profiles_builder *builder,
                             struct error *err)
{
    struct sample_type_name types[PPROF_SAMPLE_TYPES_MAX];
    size_t count = pprof_sample_types(pprof, types, PPROF_SAMPLE_TYPES_MAX);
    struct slice name = intake->series->metric_name;
    if (name.size == 0)
        name = intake->name.size > 0 ? intake->name : profile_name(types, count);
    struct pprof_options options = {.time_unix_nano = intake->time_unix_nano,
                                    .duration_nano = duration_ns,
                                    .metric_name = name,
                                    .upload = intake->series->ids};
    return pprof_read(builder, pprof, &options, err);
}

static bool read_pprof(const struct profile_intake *intake, struct slice pprof,
                       struct profiles_builder *builder, struct error *err)
{
    struct pprof_delta *delta = intake->delta;
    struct wire_writer gained = {0};
    if (!delta)
        return read_plain_pprof(intake, pprof, 0, builder, err);
    bool fine = pprof_delta_next(delta, pprof, &gained, err);
    uint64_t duration_ns =
        pprof_delta_has_base(delta) ? intake->time_unix_nano - intake->delta_base_ns : 0;
    fine = fine && read_plain_pprof(intake, wire_writer_slice(&gained), duration_ns, builder, err);
    wire_writer_deinit(&gained);
    return fine;
}

static bool read_jfr(const struct profile_intake *intake, struct slice jfr,
                     struct profiles_builder *builder, struct error *err)
{
    struct jfr_options options = {.upload = intake->series->ids, .budget = intake->budget};
    return jfr_read(builder, jfr, (struct slice){0}, &options, err);
}

static struct buffer *finish(struct profiles_builder *builder, uint32_t *samples_out,
                             struct verdict *why)
{
    struct buffer *request = profiles_builder_finish(builder, samples_out);
    if (!request) {
        *why = profiles_builder_state(builder) == PROFILES_BUILDER_OVER_BUDGET
                   ? received_over_budget
                   : verdict_of(GRPC_RESOURCE_EXHAUSTED, "the profile unfolds to too much");
    } else if (*samples_out > scan_limits_default.items_max) {
        *why = verdict_of(GRPC_RESOURCE_EXHAUSTED, "%u samples, at most %u are allowed",
                          *samples_out, scan_limits_default.items_max);
        buffer_unref(request);
        request = NULL;
    }
    return request;
}

struct buffer *profile_intake_read(const struct profile_intake *intake, uint32_t *samples_out,
                                   struct verdict *why)
{
    struct buffer *plain, *request = NULL;
    struct error err;
    if (!open_gzip(intake, &plain, why))
        return NULL;
    struct slice bytes = plain ? buffer_slice(plain) : intake->bytes;
    struct profiles_builder *builder =
        profiles_builder_new(intake->budget, BUILT_MIN_BYTES + BUILT_PER_BODY * intake->max_size);
    series_begin(intake->series, builder);
    if (starts_with(bytes, "FLR", 4) ? read_jfr(intake, bytes, builder, &err)
                                     : read_pprof(intake, bytes, builder, &err))
        request = finish(builder, samples_out, why);
    else
        *why = verdict_of(GRPC_INVALID_ARGUMENT, "%s", err.text);
    profiles_builder_free(builder);
    buffer_unref(plain);
    return request;
}

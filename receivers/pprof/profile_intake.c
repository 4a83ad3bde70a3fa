#include "receivers/pprof/profile_intake.h"

#include "core/formats/jfr_read.h"
#include "core/formats/pprof_read.h"
#include "core/pipeline/received_profiles.h"

#include <assert.h>

/* Decompresses gzip. *plain_out is NULL if the bytes are not compressed. */
static bool open_gzip(const struct profile_intake *intake, bool *unfolds_out,
                      struct buffer **plain_out, struct verdict *why)
{
    struct error err = {0};
    size_t max_size = unfolds_out && intake->first_try_bytes < intake->max_size
                          ? intake->first_try_bytes
                          : intake->max_size;
    *plain_out = NULL;
    enum compression compression = received_profiles_compression(intake->bytes);
    if (compression == COMPRESSION_NONE)
        return true;
    enum decompress_result result =
        decompress(compression, intake->bytes, max_size, intake->budget, plain_out, &err);
    assert((result == DECOMPRESS_OK) == (*plain_out != NULL));
    if (unfolds_out)
        *unfolds_out = result == DECOMPRESS_TOO_LARGE;
    if (result != DECOMPRESS_OK)
        *why = received_profiles_not_plain(result, intake->max_size, err.text);
    return result == DECOMPRESS_OK;
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
    struct jfr_options options = {.upload = intake->series->ids,
                                  .budget = intake->budget,
                                  .added_threads = intake->added_threads};
    return jfr_read(builder, jfr, (struct slice){0}, &options, err);
}

struct buffer *profile_intake_read(const struct profile_intake *intake, bool *unfolds_out,
                                   uint32_t *samples_out, struct verdict *why)
{
    struct buffer *plain, *request = NULL;
    struct error err;
    if (unfolds_out)
        *unfolds_out = false;
    if (!open_gzip(intake, unfolds_out, &plain, why))
        return NULL;
    struct slice bytes = plain ? buffer_slice(plain) : intake->bytes;
    bool is_jfr = bytes.size >= 4 && memcmp(bytes.data, "FLR", 4) == 0;
    struct profiles_builder *builder = received_profiles_builder(intake->max_size, intake->budget);
    series_begin(intake->series, builder);
    if (is_jfr ? read_jfr(intake, bytes, builder, &err) : read_pprof(intake, bytes, builder, &err))
        request = received_profiles_finish(builder, samples_out, why);
    else
        *why = verdict_of(GRPC_INVALID_ARGUMENT, "%s", err.text);
    profiles_builder_free(builder);
    buffer_unref(plain);
    return request;
}

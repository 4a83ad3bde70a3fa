#include "receivers/pyroscope/ingest.h"

#include "core/data/json_reader.h"
#include "core/formats/folded_read.h"
#include "core/formats/jfr_read.h"
#include "core/formats/pprof_read.h"
#include "core/formats/speedscope_read.h"
#include "core/formats/tree_read.h"
#include "receivers/pyroscope/multipart.h"

#include <assert.h>

struct ingest {
    struct upload *upload;
    const struct ingest_query *query;
    struct slice content_type;
    struct slice body;
    struct series series;
    struct verdict *why;
};

static bool refuse(struct ingest *ingest, const char *format, const char *text)
{
    *ingest->why = verdict_of(GRPC_INVALID_ARGUMENT, "%s%s%s", format, format[0] ? ": " : "", text);
    return false;
}

static uint64_t duration(const struct ingest_query *query)
{
    return query->until_ns > query->from_ns ? query->until_ns - query->from_ns : 0;
}

/* service: the application, used unless a label names the service. */
static void begin_series(struct ingest *ingest, struct slice service)
{
    series_set_default(&ingest->series, SLICE("service.name"), service);
    series_set_default(&ingest->series, SLICE("pyroscope_spy"), ingest->query->spy_name);
    upload_begin_series(ingest->upload, &ingest->series);
}

/* ---- forms ---- */

struct form_field {
    const char *name;
    struct slice body;
    bool found;
};

static bool take_part(struct ingest *ingest, const struct multipart_part *part,
                      struct form_field *fields)
{
    for (struct form_field *field = fields; field->name; field++) {
        if (!slice_is(part->name, field->name))
            continue;
        if (field->found)
            return refuse(ingest, field->name, "it appears more than once in the form");
        field->found = true;
        field->body = part->body;
    }
    return true;
}

/* Reads the files of a form, and ignores other parts, as Pyroscope does. fields: ended by one
 * without a name. */
static bool read_form(struct ingest *ingest, struct form_field *fields)
{
    struct multipart form;
    struct multipart_part part;
    struct error err;
    if (!multipart_begin(&form, ingest->content_type, ingest->body, &err))
        return refuse(ingest, "form", err.text);
    enum multipart_result result;
    while ((result = multipart_next(&form, &part, &err)) == MULTIPART_PART)
        if (part.is_file && !take_part(ingest, &part, fields))
            return false;
    return result == MULTIPART_END || refuse(ingest, "form", err.text);
}

/* ---- pprof ---- */

struct type_config {
    struct slice type, display_name;
};

/* Reads one entry of {"contentions":{"units":"lock_samples","display-name":"block_count"}, ...}.
 * Only the display name is still used. */
static bool read_type(struct json_reader *json, struct type_config *out)
{
    bool first = true, escaped;
    struct slice key;
    if (json_peek(json) != JSON_OBJECT)
        return false;
    while (json_next_member(json, &first, &key, &escaped)) {
        bool is_name = slice_is(key, "display-name") && json_peek(json) == JSON_STRING;
        if (is_name ? !json_take_string(json, &out->display_name, &escaped) : !json_skip(json, 8))
            return false;
    }
    return !json->problem;
}

static bool read_type_config(struct slice text, struct type_config *out, size_t max,
                             size_t *count_out)
{
    struct json_reader json = json_reader(text);
    bool first = true, escaped;
    *count_out = 0;
    if (json_peek(&json) != JSON_OBJECT)
        return false;
    struct slice key;
    while (json_next_member(&json, &first, &key, &escaped)) {
        struct type_config type = {.type = key};
        if (!read_type(&json, &type))
            return false;
        if (*count_out < max)
            out[(*count_out)++] = type;
    }
    return !json.problem && json_peek(&json) == JSON_BROKEN && json.next == json.end;
}

static bool name_types(struct ingest *ingest, struct slice config, struct sample_type_name *types,
                       size_t count)
{
    assert(count <= PPROF_SAMPLE_TYPES_MAX);
    struct type_config configs[PPROF_SAMPLE_TYPES_MAX];
    size_t config_count;
    if (!read_type_config(config, configs, PPROF_SAMPLE_TYPES_MAX, &config_count))
        return refuse(ingest, "sample_type_config", "not a JSON object of objects");
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < config_count; j++)
            if (slice_equal(types[i].type, configs[j].type))
                types[i].display_name = configs[j].display_name;
    return true;
}

static bool read_plain_pprof(struct ingest *ingest, struct slice pprof, struct slice config)
{
    struct sample_type_name types[PPROF_SAMPLE_TYPES_MAX];
    size_t count = pprof_sample_types(pprof, types, PPROF_SAMPLE_TYPES_MAX);
    struct error err;
    if (config.size > 0 && !name_types(ingest, config, types, count))
        return false;
    struct pprof_options options = {.time_unix_nano = ingest->query->from_ns,
                                    .duration_nano = duration(ingest->query),
                                    .metric_name = profile_name(types, count),
                                    .upload = ingest->series.ids};
    begin_series(ingest, ingest->query->name.application);
    return pprof_read(ingest->upload->builder, pprof, &options, &err) ||
           refuse(ingest, "pprof", err.text);
}

/* Reads a pprof. An empty one contains no samples; Pyroscope's SDKs expect success for it. */
static bool read_pprof(struct ingest *ingest, struct slice pprof, struct slice config)
{
    struct plain plain, plain_config = {0};
    if (!upload_open(ingest->upload, pprof, &plain, ingest->why))
        return false;
    bool fine =
        upload_open(ingest->upload, config, &plain_config, ingest->why) &&
        (plain.bytes.size == 0 || read_plain_pprof(ingest, plain.bytes, plain_config.bytes));
    plain_close(&plain);
    plain_close(&plain_config);
    return fine;
}

static bool read_raw_pprof(struct ingest *ingest)
{
    return read_pprof(ingest, ingest->body, (struct slice){0});
}

static bool read_pprof_form(struct ingest *ingest)
{
    struct form_field fields[] = {{.name = "profile"},
                                  {.name = "prev_profile"},
                                  {.name = "sample_type_config"},
                                  {.name = NULL}};
    if (!read_form(ingest, fields))
        return false;
    if (fields[1].body.size > 0)
        return refuse(
            ingest, "prev_profile",
            "this client is too old: it sends cumulative profiles, which are not supported");
    return read_pprof(ingest, fields[0].body, fields[2].body);
}

/* ---- jfr ---- */

static bool read_recording(struct ingest *ingest, struct slice jfr, struct slice labels)
{
    const struct ingest_query *query = ingest->query;
    struct jfr_options options = {.time_unix_nano = query->from_ns,
                                  .duration_nano = duration(query),
                                  .sample_rate_hz = query->sample_rate_hz,
                                  .upload = ingest->series.ids,
                                  .budget = ingest->upload->budget,
                                  .added_threads = ingest->upload->added_threads};
    struct error err;
    if (series_attribute(&ingest->series, SLICE("service.name")).size >
        0) /* as in Pyroscope, for this format only */
        series_set_default(&ingest->series, SLICE("app_name"), query->name.application);
    begin_series(ingest, query->name.application);
    return jfr_read(ingest->upload->builder, jfr, labels, &options, &err) ||
           refuse(ingest, "jfr", err.text);
}

/* Reads a recording, or a form with a recording and the labels of its contexts. */
static bool read_jfr(struct ingest *ingest)
{
    struct form_field fields[] = {{.name = "jfr"}, {.name = "labels"}, {.name = NULL}};
    struct plain jfr, labels = {0};
    if (!multipart_is(ingest->content_type))
        fields[0].body = ingest->body;
    else if (!read_form(ingest, fields))
        return false;
    else if (!fields[0].found)
        return refuse(ingest, "form", "the file jfr is missing");
    if (!upload_open(ingest->upload, fields[0].body, &jfr, ingest->why))
        return false;
    bool fine = upload_open(ingest->upload, fields[1].body, &labels, ingest->why) &&
                read_recording(ingest, jfr.bytes, labels.bytes);
    plain_close(&jfr);
    plain_close(&labels);
    return fine;
}

/* ---- stacks of names ---- */

typedef bool (*stacks_reader)(struct profiles_builder *builder, struct slice body,
                              const struct stacks_options *options, struct error *err);

/* The suffix after the last dot of the application says what is measured. Pyroscope refuses a name
 * with a dot and an unknown suffix; here it measures CPU, like one without a dot. */
static void choose_kind(struct slice application, struct stacks_kind *kind, struct slice *service)
{
    struct error unused;
    if (stacks_kind_of(application, kind, service, &unused))
        return;
    bool is_known = stacks_kind_of(SLICE("cpu"), kind, service, &unused);
    assert(is_known);
    *service = application;
}

static bool read_stacks(struct ingest *ingest, const char *format, stacks_reader read)
{
    const struct ingest_query *query = ingest->query;
    struct stacks_options options = {.sample_rate_hz = query->sample_rate_hz,
                                     .time_unix_nano = query->from_ns,
                                     .duration_nano = duration(query),
                                     .upload = ingest->series.ids};
    struct slice service;
    struct plain plain;
    struct error err;
    choose_kind(query->name.application, &options.kind, &service);
    if (!upload_open(ingest->upload, ingest->body, &plain, ingest->why))
        return false;
    begin_series(ingest, service);
    bool fine = read(ingest->upload->builder, plain.bytes, &options, &err) ||
                refuse(ingest, format, err.text);
    plain_close(&plain);
    return fine;
}

bool ingest_read(struct upload *upload, const struct ingest_query *query, struct slice body,
                 struct verdict *why)
{
    assert(query->name.label_count <= SERIES_LABELS_MAX);
    struct ingest ingest = {.upload = upload,
                            .query = query,
                            .content_type = http_header_get(upload->headers, "content-type"),
                            .body = body,
                            .why = why};
    struct slice format = query->format;
    struct error err;
    if (!series_read(&ingest.series, query->name.labels, query->name.label_count, &err))
        return refuse(&ingest, "name", err.text);
    if (slice_is(format, "trie") ||
        http_is_media_type(ingest.content_type, "binary/octet-stream+trie"))
        return read_stacks(&ingest, "trie", trie_read);
    if (slice_is(format, "tree") ||
        http_is_media_type(ingest.content_type, "binary/octet-stream+tree"))
        return read_stacks(&ingest, "tree", tree_read);
    if (slice_is(format, "lines"))
        return read_stacks(&ingest, "lines", lines_read);
    if (slice_is(format, "jfr"))
        return read_jfr(&ingest);
    if (slice_is(format, "pprof"))
        return read_raw_pprof(&ingest);
    if (slice_is(format, "speedscope"))
        return read_stacks(&ingest, "speedscope", speedscope_read);
    if (multipart_is(ingest.content_type))
        return read_pprof_form(&ingest);
    return read_stacks(&ingest, "folded", folded_read);
}

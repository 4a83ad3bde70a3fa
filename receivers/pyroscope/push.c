#include "receivers/pyroscope/push.h"

#include "core/data/json.h"
#include "core/data/wire.h"
#include "core/formats/pprof_read.h"
#include "core/formats/push.h"

#include <assert.h>

#define DELTA_PREFIX "godeltaprof_"

/* The position in a request, for errors. */
struct place {
    size_t series, sample;
    const struct series *labels; /* NULL: not known yet */
};

static struct slice shown(struct slice text)
{
    return slice_of(text.data, text.size > 40 ? 40 : text.size);
}

static bool refuse_series(const struct place *place, const char *text, struct verdict *why)
{
    *why = verdict_of(GRPC_INVALID_ARGUMENT, "series[%zu]: %s", place->series, text);
    return false;
}

/* Adds the position to a refusal, which keeps its code. */
static bool refuse_sample(const struct place *place, const struct verdict *reason,
                          struct verdict *why)
{
    struct slice name = shown(place->labels->metric_name);
    struct slice service = shown(series_attribute(place->labels, SLICE("service.name")));
    *why =
        verdict_try_later(reason->code, reason->retry_after_ns,
                          "series[%zu] (%.*s of %.*s).samples[%zu].raw_profile: %s", place->series,
                          SLICE_ARG(name), SLICE_ARG(service), place->sample, reason->text);
    return false;
}

static bool read_label(struct slice bytes, struct series_label *label)
{
    struct wire_cursor cursor = wire_cursor(bytes);
    struct wire_field field;
    *label = (struct series_label){0};
    while (wire_next(&cursor, &field)) {
        if (field.number != PUSH_LABEL_NAME && field.number != PUSH_LABEL_VALUE)
            continue;
        if (field.type != WIRE_BYTES)
            return false;
        *(field.number == PUSH_LABEL_NAME ? &label->name : &label->value) = field.bytes;
    }
    return !cursor.broken;
}

static bool read_labels(struct slice bytes, struct series *series, const struct place *place,
                        struct verdict *why)
{
    struct series_label labels[SERIES_LABELS_MAX + 1]; /* series_read reports one too many */
    size_t count = 0;
    struct wire_cursor cursor = wire_cursor(bytes);
    struct wire_field field;
    struct error err;
    while (wire_next(&cursor, &field) && count <= SERIES_LABELS_MAX)
        if (field.number == PUSH_SERIES_LABELS &&
            (field.type != WIRE_BYTES || !read_label(field.bytes, &labels[count++])))
            return refuse_series(place, "a label is not a LabelPair message", why);
    if (cursor.broken)
        return refuse_series(place, "broken protobuf", why);
    assert(count <= SERIES_LABELS_MAX + 1);
    if (!series_read(series, labels, count, &err))
        return refuse_series(place, err.text, why);
    struct slice *name = &series->metric_name;
    size_t prefix = sizeof DELTA_PREFIX - 1;
    if (name->size > prefix && memcmp(name->data, DELTA_PREFIX, prefix) == 0)
        *name = slice_of(name->data + prefix, name->size - prefix);
    return name->size > 0 || refuse_series(place, "the label __name__ is missing", why);
}

/* Finds the pprof of a RawSample; the last one counts, as in protobuf. */
static bool find_raw_profile(struct slice sample, struct slice *out)
{
    struct wire_cursor cursor = wire_cursor(sample);
    struct wire_field field;
    *out = (struct slice){0};
    while (wire_next(&cursor, &field)) {
        if (field.number != PUSH_SAMPLE_RAW_PROFILE)
            continue;
        if (field.type != WIRE_BYTES)
            return false;
        *out = field.bytes;
    }
    return !cursor.broken;
}

static bool read_sample(struct upload *upload, struct slice sample, const struct place *place,
                        struct verdict *why)
{
    struct slice raw;
    struct plain plain = {0};
    struct error err = {.text = "the message that contains it is malformed"};
    struct verdict reason;
    bool fine = find_raw_profile(sample, &raw);
    if (fine && !upload_open(upload, raw, &plain, &reason))
        return refuse_sample(place, &reason, why);
    struct pprof_options options = {.metric_name = place->labels->metric_name,
                                    .upload = place->labels->ids,
                                    .time_unix_nano = upload->now_ns};
    fine = fine && pprof_read(upload->builder, plain.bytes, &options, &err);
    plain_close(&plain);
    if (fine)
        return true;
    reason = verdict_of(GRPC_INVALID_ARGUMENT, "%s", err.text);
    return refuse_sample(place, &reason, why);
}

static bool read_series(struct upload *upload, struct slice bytes, size_t number,
                        struct verdict *why)
{
    struct series series;
    struct place place = {.series = number};
    if (!read_labels(bytes, &series, &place, why))
        return false;
    upload_begin_series(upload, &series);
    place.labels = &series;
    struct wire_cursor cursor = wire_cursor(bytes);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (field.number != PUSH_SERIES_SAMPLES)
            continue;
        if (field.type != WIRE_BYTES)
            return refuse_series(&place, "samples are not messages", why);
        if (!read_sample(upload, field.bytes, &place, why))
            return false;
        place.sample++;
    }
    return true;
}

bool push_read(struct upload *upload, struct slice request, struct verdict *why)
{
    struct wire_cursor cursor = wire_cursor(request);
    struct wire_field field;
    size_t series = 0;
    while (wire_next(&cursor, &field)) {
        if (field.number != PUSH_REQUEST_SERIES)
            continue;
        if (field.type != WIRE_BYTES) {
            *why = verdict_of(GRPC_INVALID_ARGUMENT, "series are not messages");
            return false;
        }
        if (!read_series(upload, field.bytes, series, why))
            return false;
        series++;
    }
    if (cursor.broken)
        *why = verdict_of(GRPC_INVALID_ARGUMENT, "series[%zu]: broken protobuf", series);
    return !cursor.broken;
}

bool push_read_json(struct upload *upload, struct slice json, struct verdict *why)
{
    struct error err;
    bool is_over_budget;
    struct buffer *request =
        json_to_protobuf(JSON_PUSH_REQUEST, json, upload->budget, &is_over_budget, &err);
    if (!request) {
        *why = is_over_budget ? verdict_over_budget
                              : verdict_of(GRPC_INVALID_ARGUMENT, "%s", err.text);
        return false;
    }
    bool fine = push_read(upload, buffer_slice(request), why);
    buffer_unref(request);
    return fine;
}

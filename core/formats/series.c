#include "core/formats/series.h"

#include "core/data/utf8.h"

#include <assert.h>

static bool check(const struct series_label *label, struct error *err)
{
    struct slice shown = label->name.size > 64 ? slice_of(label->name.data, 64) : label->name;
    if (label->name.size == 0)
        return error_set(err, "a label without a name");
    if (!utf8_is_valid(label->name))
        return error_set(err, "a label's name is not valid UTF-8");
    if (label->name.size > SERIES_NAME_MAX_BYTES)
        return error_set(err, "label %.*s...: its name has %zu bytes, at most %d are allowed",
                         SLICE_ARG(shown), label->name.size, SERIES_NAME_MAX_BYTES);
    if (!utf8_is_valid(label->value))
        return error_set(err, "label %.*s: its value is not valid UTF-8", SLICE_ARG(shown));
    if (label->value.size > SERIES_VALUE_MAX_BYTES)
        return error_set(err, "label %.*s: its value has %zu bytes, at most %d are allowed",
                         SLICE_ARG(shown), label->value.size, SERIES_VALUE_MAX_BYTES);
    return true;
}

struct slice series_attribute(const struct series *series, struct slice key)
{
    for (size_t i = 0; i < series->attribute_count; i++)
        if (slice_equal(series->attributes[i].key, key))
            return series->attributes[i].value;
    return (struct slice){0};
}

void series_set_default(struct series *series, struct slice key, struct slice value)
{
    if (value.size == 0 || series_attribute(series, key).size > 0)
        return;
    assert(series->attribute_count < sizeof series->attributes / sizeof series->attributes[0]);
    series->attributes[series->attribute_count++] = (struct built_attribute){key, value};
}

static bool is_private(struct slice name)
{
    return name.size >= 2 && memcmp(name.data, "__", 2) == 0 && !slice_is(name, "__session_id__");
}

static void take(struct series *series, const struct series_label *label)
{
    if (slice_is(label->name, "__name__"))
        series->metric_name = label->value;
    else if (slice_is(label->name, "otel.scope.name"))
        series->scope_name = label->value;
    else if (slice_is(label->name, "otel.scope.version"))
        series->scope_version = label->value;
    else if (slice_is(label->name, "service_namespace"))
        series_set_default(series, SLICE("service.namespace"), label->value);
    else if (!is_private(label->name) && !span_labels_take(&series->ids, label->name, label->value))
        series_set_default(series, label->name, label->value);
}

bool series_read(struct series *series, const struct series_label *labels, size_t count,
                 struct error *err)
{
    *series = (struct series){0};
    if (count > SERIES_LABELS_MAX)
        return error_set(err, "%zu labels, at most %d are allowed", count, SERIES_LABELS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!check(&labels[i], err))
            return false;
        for (size_t j = 0; j < i; j++)
            if (slice_equal(labels[i].name, labels[j].name))
                return error_set(err, "label %.*s is given twice", SLICE_ARG(labels[i].name));
        /* It takes precedence over a label service.name. */
        if (slice_is(labels[i].name, "service_name"))
            series_set_default(series, SLICE("service.name"), labels[i].value);
    }
    for (size_t i = 0; i < count; i++)
        if (!slice_is(labels[i].name, "service_name"))
            take(series, &labels[i]);
    return true;
}

void series_begin(const struct series *series, struct profiles_builder *builder)
{
    assert(series->attribute_count <= sizeof series->attributes / sizeof series->attributes[0]);
    struct built_resource resource = {.attributes = series->attributes,
                                      .attribute_count = series->attribute_count,
                                      .scope_name = series->scope_name,
                                      .scope_version = series->scope_version};
    profiles_builder_resource(builder, &resource);
}

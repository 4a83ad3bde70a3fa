#include "exporters/pyroscope/series_labels.h"

#include "core/base/text.h"
#include "core/data/any_value.h"

#include <assert.h>
#include <inttypes.h>

const struct field label_fields[] = {
    FIELD_STRINGS(label_settings, include,
                  "Attributes of resources, scopes and samples that become labels; a * at the end "
                  "matches any rest. Empty: all that are not excluded. service.name and "
                  "service.namespace are always labels."),
    FIELD_STRINGS(
        label_settings, exclude, "Attributes that never become labels.",
        .fallback =
            "process.pid, process.parent_pid, process.executable.path, process.command*, "
            "process.environment_variable.*, process.owner, process.vpid, process.creation.time, "
            "process.runtime.description, container.id, host.id, host.ip, host.mac, "
            "service.instance.id, telemetry.*, os.description, thread.*, cpu.logical_number"),
    FIELD_UINT(label_settings, max_values,
               "Values that a label may have for a service within an hour; further ones are sent "
               "as `other`. 0: no limit.",
               .fallback = "200"),
    FIELD_END,
};

void label_check(const struct label_settings *settings, struct config_check *check)
{
    for (size_t i = 0; i < settings->include.count; i++)
        if (*settings->include.items[i] == 0)
            config_check_error(check, "labels::include", "has an empty name");
    for (size_t i = 0; i < settings->exclude.count; i++)
        if (*settings->exclude.items[i] == 0)
            config_check_error(check, "labels::exclude", "has an empty name");
}

static bool is_listed(const struct config_strings *names, struct slice key)
{
    for (size_t i = 0; i < names->count; i++) {
        size_t size = strlen(names->items[i]);
        bool any_rest = size > 0 && names->items[i][size - 1] == '*';
        if (any_rest ? key.size >= size - 1 && memcmp(key.data, names->items[i], size - 1) == 0
                     : slice_is(key, names->items[i]))
            return true;
    }
    return false;
}

bool label_is_wanted(const struct label_settings *settings, struct slice key)
{
    if (key.size == 0 || key.size > SERIES_NAME_MAX ||
        (key.size >= 2 && memcmp(key.data, "__", 2) == 0))
        return false; /* such names are reserved by Pyroscope */
    return (settings->include.count == 0 || is_listed(&settings->include, key)) &&
           !is_listed(&settings->exclude, key);
}

/* Gets the only element of an ArrayValue. Returns false if there is none, or more than one. */
static bool only_element(struct slice array, struct slice *element)
{
    struct wire_cursor cursor = wire_cursor(array);
    struct wire_field field;
    size_t count = 0;
    *element = (struct slice){0};
    while (wire_next_bytes(&cursor, ARRAY_VALUE_VALUES, &field)) {
        *element = field.bytes;
        count++;
    }
    return count == 1;
}

bool label_value(struct slice any, struct arena *arena, struct slice *out)
{
    struct any_value value = any_value_read(any);
    struct slice element;
    if (value.kind == ANY_VALUE_ARRAY && only_element(value.bytes, &element))
        value = any_value_read(element);
    switch (value.kind) {
    case ANY_VALUE_STRING:
        *out = value.bytes;
        return out->size > 0;
    case ANY_VALUE_INT:
        *out = slice_of_string(arena_printf(arena, "%" PRId64, value.integer));
        return true;
    case ANY_VALUE_BOOL:
        *out = value.truth ? SLICE("true") : SLICE("false");
        return true;
    default:
        return false;
    }
}

/* ---- series ---- */

static struct slice cut_value(struct slice value)
{
    return slice_of(value.data, text_utf8_cut(value, SERIES_VALUE_MAX));
}

/* Whether there is room, and no label with this name: the first one counts. */
static bool has_room(struct series_labels *labels, struct slice name)
{
    for (size_t i = 0; i < labels->count; i++)
        if (slice_equal(labels->items[i].name, name))
            return false;
    if (labels->count < SERIES_LABELS_MAX - 2)
        return true;
    labels->left_out++;
    return false;
}

static void add_label(struct series_labels *out, struct slice name, struct slice value)
{
    if (has_room(out, name))
        out->items[out->count++] = (struct series_label){name, cut_value(value)};
}

struct attribute {
    struct slice key, value; /* in the form of a label */
};

/* Which attributes are read. */
struct attribute_filter {
    bool (*wants)(const struct attribute_filter *filter, struct slice key);
    struct series_labels *labels;
    const struct label_reader *reader;
};

/* Finds the next KeyValue among the fields `number` that the filter selects and that can be a
 * label. Prints a value that is not a text into the arena. */
static bool next_attribute(struct wire_cursor *cursor, uint32_t number, struct arena *arena,
                           const struct attribute_filter *filter, struct attribute *out)
{
    struct wire_field field;
    while (wire_next_bytes(cursor, number, &field)) {
        struct key_value pair = key_value_read(field.bytes);
        out->key = pair.key;
        if (filter->wants(filter, out->key) && label_value(pair.value, arena, &out->value))
            return true;
    }
    return false;
}

static bool names_service(const struct attribute_filter *filter, struct slice key)
{
    (void)filter;
    return slice_is(key, "service.name") || slice_is(key, "service.namespace") ||
           slice_is(key, "process.executable.name");
}

/* Adds the two labels by which span profiles find their series. They come first, so that others
 * cannot take their room. */
static void add_service(struct series_labels *out, struct slice resource, struct arena *arena)
{
    struct wire_cursor cursor = wire_cursor(resource);
    struct attribute attribute;
    const struct attribute_filter filter = {.wants = names_service};
    struct slice name = {0}, service_namespace = {0}, executable = {0};
    while (next_attribute(&cursor, RESOURCE_ATTRIBUTES, arena, &filter, &attribute)) {
        if (slice_is(attribute.key, "service.name"))
            name = attribute.value;
        else if (slice_is(attribute.key, "service.namespace"))
            service_namespace = attribute.value;
        else
            executable = attribute.value;
    }
    if (name.size == 0)
        name = executable.size == 0 ? SLICE("unknown_service")
                                    : slice_of_string(arena_printf(arena, "unknown_service:%.*s",
                                                                   SLICE_ARG(executable)));
    add_label(out, SLICE("service_name"), name);
    assert(out->count == 1); /* the first label always has room */
    out->service = out->items[0].value;
    if (service_namespace.size > 0)
        add_label(out, SLICE("service_namespace"), service_namespace);
}

void series_labels_rename(struct series_labels *labels, struct slice service)
{
    assert(labels->count > 0); /* service_name */
    labels->service = cut_value(service);
    for (size_t i = 0; i < labels->count; i++)
        if (slice_is(labels->items[i].name, "service_name"))
            labels->items[i].value = labels->service;
}

/* Whether an attribute becomes a label. One without room is neither printed nor counted among the
 * values of its label. */
static bool becomes_label(const struct attribute_filter *filter, struct slice key)
{
    return !slice_is(key, "service.name") && !slice_is(key, "service.namespace") &&
           label_is_wanted(filter->reader->settings, key) && has_room(filter->labels, key);
}

static void add_attributes(struct series_labels *out, const struct label_reader *reader,
                           struct slice message, uint32_t number)
{
    const struct attribute_filter filter = {becomes_label, out, reader};
    struct wire_cursor cursor = wire_cursor(message);
    struct attribute attribute;
    assert(out->count > 0); /* the service comes first: labels are limited for each service */
    while (next_attribute(&cursor, number, reader->arena, &filter, &attribute)) {
        if (!label_limits_admit(reader->limits, out->service, attribute.key,
                                cut_value(attribute.value), reader->now_ns))
            attribute.value = SLICE("other");
        add_label(out, attribute.key, attribute.value);
    }
}

void series_labels_add_scope(struct series_labels *out, const struct label_reader *reader,
                             struct slice scope)
{
    struct wire_cursor cursor = wire_cursor(scope);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        struct slice key = field.number == SCOPE_NAME      ? SLICE("otel.scope.name")
                           : field.number == SCOPE_VERSION ? SLICE("otel.scope.version")
                                                           : (struct slice){0};
        if (field.type == WIRE_BYTES && field.bytes.size > 0 &&
            label_is_wanted(reader->settings, key))
            add_label(out, key, field.bytes);
    }
    add_attributes(out, reader, scope, SCOPE_ATTRIBUTES);
}

void series_labels_read(struct series_labels *out, const struct label_reader *reader,
                        struct slice resource)
{
    *out = (struct series_labels){.count = 0};
    add_service(out, resource, reader->arena);
    add_attributes(out, reader, resource, RESOURCE_ATTRIBUTES);
}

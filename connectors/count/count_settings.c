#include "connectors/count/count_settings.h"

#include "config/node.h"
#include "core/ottl/ottl_check.h"
#include "core/pipeline/configured_value.h"

#include <assert.h>

static const struct field attribute_fields[] = {
    FIELD_STRING(count_attribute, key, "The key of the attribute.", .required = true),
    FIELD_NODE(
        count_attribute, default_value,
        "The value for what has no such attribute, with the type that YAML gives it. Without "
        "it, such items are not counted."),
    FIELD_END,
};

static const struct field metric_fields[] = {
    FIELD_STRING(count_metric, description, "The metric's description."),
    FIELD_STRINGS(
        count_metric, conditions,
        "OTTL conditions: what one of them matches counts; without any, everything does. Only "
        "spans "
        "and their events have paths of their own, the rest those of its resource and scope."),
    FIELD_LIST(count_metric, attributes, count_attribute, attribute_fields,
               "Attributes of the data points: one data point for each combination of their "
               "values. Each is that of the item, else of its scope, else of its resource."),
    FIELD_END,
};

#define SECTION(MEMBER, HELP) FIELD_MAP(count_settings, MEMBER, count_metric, metric_fields, HELP)

const struct field count_fields[] = {
    SECTION(spans, "Metrics that count spans; without any, `trace.span.count`."),
    SECTION(spanevents, "Metrics that count events of spans; without any, "
                        "`trace.span.event.count`."),
    SECTION(metrics, "Metrics that count metrics; without any, `metric.count`."),
    SECTION(datapoints, "Metrics that count data points; without any, `metric.datapoint.count`."),
    SECTION(logs, "Metrics that count log records; without any, `log.record.count`."),
    SECTION(profiles, "Metrics that count profiles; without any, `profile.count`."),
    SECTION(samples, "Metrics that count the Sample messages of profiles; without any, they are "
                     "not counted. The Collector does not have this section."),
    FIELD_END,
};

struct section {
    const char *key;
    size_t offset;
    enum signal signal;
    const char *name; /* of the default metric; NULL: none */
    const char *description;
};

#define AT(MEMBER) #MEMBER, offsetof(struct count_settings, MEMBER)

static const struct section sections[COUNTED_KINDS] = {
    [COUNTED_SPANS] = {AT(spans), SIGNAL_TRACES, "trace.span.count",
                       "The number of spans observed."},
    [COUNTED_SPAN_EVENTS] = {AT(spanevents), SIGNAL_TRACES, "trace.span.event.count",
                             "The number of span events observed."},
    [COUNTED_METRICS] = {AT(metrics), SIGNAL_METRICS, "metric.count",
                         "The number of metrics observed."},
    [COUNTED_DATA_POINTS] = {AT(datapoints), SIGNAL_METRICS, "metric.datapoint.count",
                             "The number of data points observed."},
    [COUNTED_LOGS] = {AT(logs), SIGNAL_LOGS, "log.record.count",
                      "The number of log records observed."},
    [COUNTED_PROFILES] = {AT(profiles), SIGNAL_PROFILES, "profile.count",
                          "The number of profiles observed."},
    [COUNTED_SAMPLES] = {AT(samples), SIGNAL_PROFILES, NULL, NULL},
};

enum signal count_signal_of(enum counted kind)
{
    assert(kind > COUNTED_NOTHING && kind < COUNTED_KINDS);
    return sections[kind].signal;
}

static void add_default(struct config_list *list, const struct section *section,
                        struct arena *arena)
{
    struct count_metric *metric = arena_zalloc(arena, sizeof *metric);
    metric->name = section->name;
    metric->description = section->description;
    *list = (struct config_list){metric, 1};
}

/* Returns the position of a key, which it adds if it is new. There are as many as the configuration
 * has, so a walk is fine. */
static uint32_t add_key(struct count_keys *keys, const char *key, struct arena *arena)
{
    struct slice wanted = slice_of_string(key);
    for (uint32_t i = 0; i < keys->count; i++)
        if (slice_equal(keys->keys[i], wanted))
            return i;
    keys->keys = arena_grow(arena, keys->keys, keys->count, &keys->capacity, sizeof *keys->keys);
    keys->keys[keys->count] = wanted;
    return keys->count++;
}

/* ---- conditions ---- */

/* Why conditions have no paths of the items themselves. */
static const char *limit_of(enum counted kind)
{
    if (kind == COUNTED_PROFILES || kind == COUNTED_SAMPLES)
        return "there are no paths of profiles yet";
    return kind == COUNTED_LOGS ? "profcol passes logs on unopened"
                                : "profcol passes metrics on unopened";
}

struct ottl_program *count_condition_compile(enum counted kind, const char *text, struct error *err)
{
    struct slice condition = slice_of_string(text);
    assert(kind > COUNTED_NOTHING && kind < COUNTED_KINDS);
    if (kind == COUNTED_SPANS)
        return ottl_compile_condition(OTTL_SPAN, condition, OTTL_PREFIX_OPTIONAL, err);
    if (kind == COUNTED_SPAN_EVENTS)
        return ottl_compile_condition(OTTL_SPAN_EVENT, condition, OTTL_PREFIX_OPTIONAL, err);
    struct error why;
    struct ottl_program *program =
        ottl_compile_condition(OTTL_SCOPE, condition, OTTL_PREFIX_REQUIRED, &why);
    if (!program) {
        error_set(err,
                  "%.800s; conditions of this section can only use paths that begin with "
                  "\"resource.\" or \"scope.\", because %s",
                  why.text, limit_of(kind));
        err->offset = why.offset;
    }
    return program;
}

/* ---- checks ---- */

struct metric_check {
    struct config_check *check;
    const struct section *section;
    struct count_metric *metric;
};

static const char *key_of_metric(const struct metric_check *c)
{
    return config_check_key(c->check, c->section->key, c->metric->name);
}

/* Returns the key of an item of one of its lists. */
static const char *item_of(const struct metric_check *c, const char *list, size_t at)
{
    return config_check_item(c->check, config_check_key(c->check, key_of_metric(c), list), at);
}

/* Conditions of what no pipeline contains are valid as well. */
static void check_condition(const struct metric_check *c, size_t at)
{
    struct error err;
    struct ottl_program *program = count_condition_compile((enum counted)(c->section - sections),
                                                           c->metric->conditions.items[at], &err);
    ottl_check_program(c->check, item_of(c, "conditions", at), program, &err);
}

static void check_attribute(const struct metric_check *c, size_t at, struct count_keys *keys)
{
    struct arena *arena = config_check_arena(c->check);
    struct count_attribute *attributes = c->metric->attributes.items;
    for (size_t i = 0; i < at; i++)
        if (strcmp(attributes[i].key, attributes[at].key) == 0)
            config_check_error(c->check,
                               config_check_key(c->check, item_of(c, "attributes", at), "key"),
                               "\"%s\" is listed twice", attributes[at].key);
    if (attributes[at].default_value)
        attributes[at].encoded_default =
            configured_value_encode(arena, attributes[at].default_value);
    attributes[at].position = add_key(keys, attributes[at].key, arena);
}

static void check_metric(const struct metric_check *c, struct count_keys *keys)
{
    for (size_t i = 0; i < c->metric->conditions.count; i++)
        check_condition(c, i);
    if (c->section->offset == offsetof(struct count_settings, metrics) &&
        c->metric->attributes.count > 0)
        config_check_error(c->check, key_of_metric(c),
                           "a metric has no attributes to count by; count data points instead");
    for (size_t i = 0; i < c->metric->attributes.count; i++)
        check_attribute(c, i, keys);
}

void count_settings_check(void *config, struct config_check *check)
{
    struct count_settings *settings = config;
    for (int kind = COUNTED_NOTHING + 1; kind < COUNTED_KINDS; kind++) {
        const struct section *section = &sections[kind];
        struct config_list *list = (struct config_list *)((char *)config + section->offset);
        assert(section->key);
        if (list->count == 0 && section->name)
            add_default(list, section, config_check_arena(check));
        settings->sections[kind] = list;
        for (size_t i = 0; i < list->count; i++) {
            struct metric_check c = {check, section, (struct count_metric *)list->items + i};
            check_metric(&c, &settings->keys[section->signal]);
            c.metric->first_condition = settings->condition_count;
            settings->condition_count += (uint32_t)c.metric->conditions.count;
        }
    }
}

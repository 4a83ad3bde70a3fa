/*
 * count_settings: which metrics the connector count emits, and by which attributes it divides them.
 *
 * Sections and keys are those of the Collector's connector; `samples` is profcol's own.
 *
 * Owner: the configuration's arena.
 *
 * Thread: read-only after the configuration is loaded.
 */
#ifndef PROFCOL_CONNECTORS_COUNT_SETTINGS_H
#define PROFCOL_CONNECTORS_COUNT_SETTINGS_H

#include "config/model.h"
#include "core/base/slice.h"
#include "core/data/otlp.h"
#include "core/ottl/ottl.h"

struct config_check;

/* What is counted. */
enum counted {
    COUNTED_NOTHING, /* a message that only contains what is counted */
    COUNTED_SPANS,
    COUNTED_SPAN_EVENTS,
    COUNTED_METRICS,
    COUNTED_DATA_POINTS,
    COUNTED_LOGS,
    COUNTED_PROFILES,
    COUNTED_SAMPLES,
    COUNTED_KINDS
};

struct count_attribute {
    const char *key;
    const struct config_node *default_value; /* NULL: none */
    /* Derived: */
    struct slice encoded_default; /* the payload of an AnyValue */
    uint32_t position;            /* of the key in count_keys */
};

/* One metric of a section. */
struct count_metric {
    const char *name; /* its key in the configuration */
    const char *description;
    struct config_strings conditions;
    struct config_list attributes; /* of count_attribute */
    /* Derived: */
    uint32_t first_condition; /* among those of all metrics */
};

/* The keys of all attributes that are read from the requests of one signal. */
struct count_keys {
    struct slice *keys;
    uint32_t count;
    uint32_t capacity;
};

struct count_settings {
    struct config_list spans; /* these of count_metric */
    struct config_list spanevents;
    struct config_list metrics;
    struct config_list datapoints;
    struct config_list logs;
    struct config_list profiles;
    struct config_list samples;
    /* Derived: */
    const struct config_list *sections[COUNTED_KINDS]; /* the lists above */
    struct count_keys keys[SIGNAL_COUNT];
    uint32_t condition_count; /* of all metrics */
};

extern const struct field count_fields[];

/* Returns the signal whose requests contain what is counted. */
enum signal count_signal_of(enum counted kind);

static inline const struct count_metric *count_metrics_of(const struct count_settings *settings,
                                                          enum counted kind)
{
    return settings->sections[kind]->items;
}

static inline const struct count_attribute *count_attributes_of(const struct count_metric *metric)
{
    return metric->attributes.items;
}

/* Compiles a condition. Returns NULL, with err set, if it is not valid for what is counted.
 * Only spans and their events have paths of their own: metrics and logs are not opened, and OTTL
 * has no paths of profiles yet. */
struct ottl_program *count_condition_compile(enum counted kind, const char *text,
                                             struct error *err);

/* Reports mistakes, adds the default metrics, and sets the derived members. */
void count_settings_check(void *config, struct config_check *check);

#endif
